"""A run or a scenario from elsewhere names code of its own: no command imports it unless the command line names it."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from harness.core.record import Json
from tests.command.conftest import Seamark

LOCAL = ("--engine", "local")
COMMANDS: dict[str, Callable[[Path], tuple[str | Path, ...]]] = {
    "replay": lambda gift: ("replay", gift, *LOCAL),
    "replay run.json": lambda gift: ("replay", gift / "run.json", *LOCAL),
    "replay --trace": lambda gift: ("replay", gift, "--trace", "0..1", *LOCAL),
    "run": lambda gift: ("run", gift / "run.json", "--time", "1", *LOCAL),
    "run --count": lambda gift: ("run", gift / "run.json", "--time", "1", "--count", "2", *LOCAL),
    "check": lambda gift: ("check", gift, *LOCAL),
    "export": lambda gift: ("export", gift),
    "list": lambda gift: ("list", "--store", gift.parent.parent),
}
REFUSED = [name for name in COMMANDS if name.startswith(("replay", "run"))]


@pytest.fixture
def gift(run_copy: Path) -> Path:
    """A run with a file that leaves a trace when it is imported."""
    (run_copy / "evil.py").write_text(
        "from pathlib import Path\nPath(__file__).with_name('imported').touch()\n"
        "from clusters.tutorial import Cluster as Cluster\n",
        encoding="utf-8",
    )
    return run_copy


def says(gift: Path, **fields: Json) -> None:
    """Let the gift's run.json say something else; `cluster` goes to its options."""
    path = gift / "run.json"
    content = msgspec.json.decode(path.read_bytes(), type=dict[str, Json])
    options = content["options"]
    assert isinstance(options, dict)
    cluster = fields.pop("cluster", options["cluster"])
    path.write_bytes(msgspec.json.encode(content | fields | {"options": options | {"cluster": cluster}}))


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("place", ["{gift}/evil.py:Cluster", "{gift}/evil.py", "{gift}/evil.py:", "./evil.py:Cluster"])
@pytest.mark.parametrize("code_sha256", [None, "0" * 64])
def test_no_command_imports_what_a_run_names(
    seamark: Seamark, gift: Path, command: str, place: str, code_sha256: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(gift)
    says(gift, cluster=place.format(gift=gift), code_sha256=code_sha256)
    outcome = seamark(*COMMANDS[command](gift))
    assert not (gift / "imported").exists()
    if command in REFUSED:
        assert outcome.code == 64
        assert "its cluster is code in a file: if that may be run, add --cluster" in outcome.line


def test_a_scenario_file_is_no_consent_either(seamark: Seamark, gift: Path) -> None:
    for name, text in (
        ("scenario.json", f'{{"cluster": "{gift}/evil.py:Cluster"}}'),
        ("scenario.toml", f'cluster = "{gift}/evil.py:Cluster"'),
    ):
        (gift / name).write_text(text, encoding="utf-8")
        outcome = seamark("run", gift / name, "--time", "1", *LOCAL)
        assert (outcome.code, "add --cluster" in outcome.line) == (64, True)
        assert not (gift / "imported").exists()


def test_the_command_line_names_the_code_that_is_loaded_whatever_the_run_names(seamark: Seamark, gift: Path) -> None:
    mine = gift.parent / "mine.py"
    mine.write_text("from clusters.tutorial import Cluster as Cluster\n", encoding="utf-8")
    says(gift, cluster=f"{gift}/evil.py:Cluster")
    assert seamark("run", gift / "run.json", "--cluster", f"{mine}:Cluster", *LOCAL).code == 0
    lacks = seamark("replay", gift, "--cluster", f"{mine}:Cluster", *LOCAL)
    assert (lacks.code, "its run.json lacks the hash of its code" in lacks.line) == (4, True)
    says(gift, cluster=f"{gift}/evil.py:Cluster", code_sha256="0" * 64)
    assert seamark("replay", gift, "--cluster", f"{mine}:Cluster", *LOCAL).code == 0  # Another version: a new run.
    assert not (gift / "imported").exists()


def test_faults_on_nodes_that_another_cluster_lacks_are_refused(seamark: Seamark, gift: Path) -> None:
    outcome = seamark("replay", gift, "--cluster", "ndb", *LOCAL)
    assert (outcome.code, "is neither a node nor 'client'" in outcome.line) == (64, True)
    assert not (gift / "imported").exists()
    assert seamark("replay", gift, "--cluster", "tutorial", *LOCAL, "--quiet").code == 0


@pytest.mark.parametrize("name", ["scenario.json", "run.json"])
def test_no_file_strikes_containers_that_the_command_line_does_not_name(
    seamark: Seamark, gift: Path, name: str
) -> None:
    if name == "run.json":
        content = msgspec.json.decode((gift / name).read_bytes())
        content["options"]["attach"] = "my; shop"
        (gift / name).write_bytes(msgspec.json.encode(content))
    else:
        (gift / name).write_text('{"cluster": "postgres", "runtime": "docker", "attach": "my; shop"}', encoding="utf-8")
    outcome = seamark("run", gift / name, *LOCAL)
    assert (outcome.code, "if that may be, add --attach 'my; shop'" in outcome.line) == (64, True)
