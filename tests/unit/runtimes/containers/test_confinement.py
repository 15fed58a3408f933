import re

from harness.runtimes.containers.engine.confinement import SERVER, capabilities_of, confined
from harness.runtimes.containers.images.catalogue import IMAGES, ROOT


def test_everything_is_dropped_before_anything_comes_back() -> None:
    assert confined() == {"cap_drop": ["ALL"], "cap_add": [], "security_opt": ["no-new-privileges"]}


def test_a_capability_has_one_name_with_and_without_its_prefix() -> None:
    assert confined(["CAP_IPC_LOCK", "CHOWN", "IPC_LOCK"])["cap_add"] == ["CHOWN", "IPC_LOCK"]


def test_images_of_ours_need_nothing_and_others_what_published_images_start_with() -> None:
    assert [capabilities_of(name, ()) for name in IMAGES] == [()] * len(IMAGES)
    assert capabilities_of("redis:7", ("IPC_LOCK",)) == (*SERVER, "IPC_LOCK")
    assert capabilities_of("", ()) == tuple(SERVER)  # From Debian's packages.


def test_no_container_is_created_without_its_confinement() -> None:
    """Each place names it, or takes the options of a crew, which do."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "harness").rglob("*.py")}
    made = [
        found
        for text in sources.values()
        for found in re.findall(r"containers\.(?:create|run)\(.*?\n {4,8}\)", text, re.DOTALL)
    ]
    assert len(made) == sum(len(re.findall(r"containers\.(?:create|run)\(", text)) for text in sources.values()) == 2
    assert all("**confined()" in each or "**self._crew.options(node)" in each for each in made)
    for crew in ("machines", "services"):
        assert sources[ROOT / "harness" / "runtimes" / "containers" / f"{crew}.py"].count("**confined(") == 1
