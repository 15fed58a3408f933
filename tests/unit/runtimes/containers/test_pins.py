import pytest

from harness.core.errors import ScenarioError
from harness.runtimes.containers.images.pins import VARIABLE, pinned

ONE, OTHER = f"sha256:{'1' * 64}", f"sha256:{'2' * 64}"


def test_a_pin_is_of_one_name_and_tag(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"redis:7@{ONE}  registry.example:5000/shop:main@{OTHER}")
    assert pinned("redis:7") == f"redis:7@{ONE}"
    assert pinned("registry.example:5000/shop:main") == f"registry.example:5000/shop:main@{OTHER}"
    assert pinned("redis:8") == "redis:8"
    assert pinned("") == ""


def test_without_pins_a_reference_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    assert pinned("redis:7") == "redis:7"


@pytest.mark.parametrize("text", ["redis:7", f"redis:7@{ONE[:-1]}", f"redis:7={ONE}", f"@{ONE}"])
def test_what_is_no_pin_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ScenarioError, match="is not a pin: write name:tag@sha256:"):
        pinned("redis:7")


def test_two_digests_for_one_image_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, f"redis:7@{ONE} redis:7@{OTHER}")
    with pytest.raises(ScenarioError, match="pins redis:7 twice"):
        pinned("redis:7")
