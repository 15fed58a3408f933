"""A run.json from elsewhere that says anything: no code of the run is imported, no other file is touched, and nothing
passes whose promises were taken away.

SEAMARK_FUZZ_COUNT is the number of files, SEAMARK_FUZZ_SEED where their seeds begin. A failure names its seed.
"""

import os
import random
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from harness.cli.main import main
from harness.core.record import Json
from tests.amount import FIRST_SEED, count

PARTS: Final = 4
BASE: Final = ("run", "--cluster", "tutorial", "--seed", "7", "--time", "2", "--nemesis", "crash", "--engine", "local")
LOAD: Final = ("time_s", "rate", "clients", "keys", "timeout_ms")
WRITING: Final = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGING: Final = {"os.remove", "os.rename", "os.rmdir", "os.mkdir", "os.link", "os.symlink", "os.truncate", "os.chmod"}
EVIL: Final = "from pathlib import Path\nPath({sign!r}).touch()\nfrom clusters.tutorial import Cluster\n"


class Watch:
    """The files that this process writes, removes or imports, from the interpreter's audit events."""

    def __init__(self) -> None:
        self.is_on = False
        self.changed: list[str] = []
        self.imported: list[str] = []
        sys.addaudithook(self._hear)

    def _hear(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.is_on:
            return
        if (event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITING) or event in CHANGING:
            self.changed.append(str(arguments[0]))
        elif event == "exec":
            self.imported.append(str(getattr(arguments[0], "co_filename", "")))


@pytest.fixture(scope="session")
def watch() -> Watch:
    return Watch()


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert command(patch, *BASE, "--rate", "60", "--quiet") == 0
    return next((folder / "store" / "tutorial").iterdir())


def command(patch: pytest.MonkeyPatch, *arguments: str | Path) -> int:
    patch.setattr(sys, "argv", ["seamark", *map(str, arguments)])
    with pytest.raises(SystemExit) as ended:
        main()
    assert isinstance(ended.value.code, int)
    return ended.value.code


def nodes(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The places of all values in a document, but itself."""
    pairs: list[tuple[str | int, Json]] = []
    if isinstance(value, dict):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = list(enumerate(value))
    for name, each in pairs:
        yield (*path, name)
        yield from nodes(each, (*path, name))


def hostile(draw: random.Random, run: Path) -> Json:
    deep: Json = 1
    for _ in range(draw.choice((3, 70, 400))):
        deep = [deep]
    values: list[Json] = [
        None,
        True,
        False,
        0,
        -1,
        1 << 62,
        (1 << 64) - 1,
        1e308,
        0.5,
        "",
        "x",
        "tutorial",
        "ndb",
        "sim",
    ]
    values += [f"{run}/evil.py:Cluster", f"{run}/evil.py", "./evil.py:Cluster", "evil.py:", "harness.cli.main:main"]
    values += ["../../../guard/file", f"{run.parent}/guard/file", "/dev/stdin", "$(touch guard/x)", "\u202e\x1b[2J\r\n"]
    values += [[], {}, [[]], {"": ""}, ["torn-unit"], ["torn-unit", "torn-unti"], "s" * 9_999, deep]
    return draw.choice(values)


def spoiled(draw: random.Random, document: dict[str, Json], run: Path) -> dict[str, Json]:
    """The document with a few places that say something else; often those that matter most."""
    emptied: list[Json] = [[], [], None, {}, [{}]]
    places = list(nodes(document))
    for _ in range(draw.randint(1, 3)):
        match draw.randrange(6):
            case 0:
                document["promises"] = draw.choice(emptied)
            case 1:
                document["code_sha256"] = draw.choice((None, "", "0" * 64, 0))
                options = document.get("options")
                if isinstance(options, dict):
                    options["cluster"] = hostile(draw, run)
            case _:
                *way, last = draw.choice(places)
                with suppress(LookupError, TypeError):  # An earlier spoiling took that place away.
                    spoil(document, way, last, hostile(draw, run), is_removed=draw.random() < 0.2)
    return document


def spoil(document: Any, way: Sequence[str | int], last: str | int, value: Json, *, is_removed: bool) -> None:
    """Put the value there, or take what is there away."""
    for step in way:
        document = document[step]
    if is_removed:
        del document[last]
    else:
        document[last] = value


def chosen(draw: random.Random, document: dict[str, Json], run: Path) -> tuple[str | Path, ...]:
    """A command that is not made to work for hours by what the document says."""
    options = document.get("options")
    numbers = [options.get(name) for name in LOAD] if isinstance(options, dict) else []
    is_light = all(number is None or (isinstance(number, int | float) and 0 < number <= 1_000) for number in numbers)
    is_simulated = isinstance(options, dict) and options.get("runtime", "sim") != "docker"
    commands: list[tuple[str | Path, ...]] = [("check", run, "--engine", "local"), ("export", run), ("list", "--json")]
    commands += [("check", run, "--engine", "local")] * 3
    if is_light or not numbers:
        commands += [("replay", run, "--engine", "local"), ("replay", run, "--trace", "0..1", "--engine", "local")]
    if is_simulated:
        load = ("--time", "1", "--rate", "30", "--clients", "2", "--keys", "5", "--engine", "local")
        commands += [("run", run / "run.json", *load)]
    return draw.choice(commands)


def tree(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("part", range(PARTS))
def test_no_run_file_does_harm(
    part: int,
    base: Path,
    watch: Watch,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "file").write_text("of somebody else", encoding="utf-8")
    sign = tmp_path / "imported"
    document = msgspec.json.decode((base / "run.json").read_bytes(), type=dict[str, Json])
    seeds = range(FIRST_SEED + part, FIRST_SEED + count(60), PARTS)
    codes: dict[int, int] = {}
    for seed in seeds:
        draw = random.Random(seed)
        shutil.rmtree(tmp_path / "store", ignore_errors=True)
        run = Path(shutil.copytree(base, tmp_path / "store" / "tutorial" / base.name))
        (run / "evil.py").write_text(EVIL.format(sign=str(sign)), encoding="utf-8")
        said = spoiled(draw, msgspec.json.decode(msgspec.json.encode(document)), run)
        (run / "run.json").write_bytes(msgspec.json.encode(said))
        arguments = chosen(draw, said, run)
        guarded = tree(tmp_path / "guard")
        watch.changed, watch.imported, watch.is_on = [], [], True
        try:
            code = command(monkeypatch, *arguments)
        finally:
            watch.is_on = False
        message = capfd.readouterr().err
        where = f"seed {seed}: {arguments[:2]}: {message[-300:]}"
        codes[code] = codes.get(code, 0) + 1
        assert code in {0, 1, 2, 3, 4, 64}, where
        assert "a fault of the harness" not in message, where
        assert "Traceback" not in message, where
        assert not sign.exists(), where
        assert not [name for name in watch.imported if "evil" in name], where
        assert tree(tmp_path / "guard") == guarded, where
        assert sorted(each.name for each in tmp_path.iterdir()) in (["guard", "store"], ["guard"]), where
        assert not [name for name in watch.changed if not is_inside(name, tmp_path)], where
        if not said.get("promises") and arguments[0] in {"check", "replay"}:
            assert code != 0, where
    assert len(codes) > 1, f"one exit code for all: {codes}"


def is_inside(name: str, folder: Path) -> bool:
    """In the test's own folder, the machine's temporary one, or no file at all, such as a pipe."""
    path = Path(name)
    places = (folder, Path("/tmp"), Path("/dev/null"), Path("/dev/shm"))  # noqa: S108  Where others put theirs.
    return not path.is_absolute() or name.isdigit() or any(path.is_relative_to(place) for place in places)
