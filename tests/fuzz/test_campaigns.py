"""Damaged documents of campaigns: no traceback, no hang, and no sweep or sign-off greener than before the damage.

Each seed draws one document and damages it: bytes, lines, or values in its JSON or TOML, and at times the hashes of its
rows are computed anew, as somebody could who can run Seamark. SEAMARK_FUZZ_COUNT is the number of damages,
SEAMARK_FUZZ_SEED where their seeds begin; a failure names its seed.
"""

import faulthandler
import random
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from harness.campaign.config import read_config
from harness.campaign.document import read_sweep, sweep_to_json
from harness.campaign.evidence import kept_in
from harness.campaign.ledger import orders
from harness.campaign.ledger.orders import digest_of
from harness.campaign.ledger.rows import ROWS_FILE, Row, RowsFile, read_rows
from harness.campaign.outcome import sweep_of
from harness.campaign.sweep import resumed
from harness.campaign.task import Task
from harness.cli.main import main
from harness.core.errors import SeamarkError
from harness.core.record import Json
from harness.hunt import search as hunting
from harness.hunt.document import hunt_of
from harness.run.code import code_digest
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from harness.shrink.search import tries_in
from harness.signoff.decision import Inputs, sign_off
from harness.signoff.document import to_json
from harness.signoff.verification import Request, verified
from tests.amount import FIRST_SEED, count
from tests.fuzz.test_run_files import nodes, spoil
from tests.peak import peak_mb
from tests.unit.campaign.made import carried_out
from tests.unit.hunt.test_search import Inline
from tests.unit.signoff.folders import green, red

TODAY: Final = date(2026, 11, 23)
HANG_S: Final = 10
MEMORY_MB: Final = 512
RED_BEFORE: Final = ("signoff", "sweep --resume", "hunt --resume")
CODES: Final = {0, 1, 2, 3, 4, 64}
WAIVER: Final = '[[waiver]]\nfingerprint = "{}"\nowner = "A"\nreason = "R"\nexpires = 2000-01-01\n'
CONFIG: Final = """
name = "nightly"
clusters = ["tutorial"]
faults = ["usual", "none"]
time_budget = 60.0
min_runs = 1
count = 3
"""


class Documents:
    """A green baseline, a candidate of which one run is red, a waiver that has expired, a config and the sign-off."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.baseline, self.candidate = green(folder / "a"), red(folder / "b", 1, min_runs=1)
        (found,) = read_sweep(self.candidate).findings
        self.write("waivers.toml", WAIVER.format(found.fingerprint).encode())
        self.write("nightly.toml", CONFIG.encode())
        self.write("signoff.json", to_json(sign_off(self.inputs, TODAY)))
        self.write("notes.jsonl", b'{"key":"0123456789abcdef","is_shown":true}\n' * 9)
        scenario = Scenario(cluster="tutorial", time_s=6.0)
        begun = hunting.begin(scenario, installed("tutorial"), folder / "c", seed=1, jobs=1, known=("stall",))
        self.hunt = begun.folder
        self.hunted()
        names = {"order.json", "sweep.json", ROWS_FILE, "waivers.toml", "nightly.toml", "signoff.json", "notes.jsonl"}
        self._whole = {path: path.read_bytes() for path in folder.rglob("*") if path.name in names}

    @property
    def inputs(self) -> Inputs:
        return Inputs(baseline=self.baseline, candidate=self.candidate, waivers=self.folder / "waivers.toml")

    def write(self, name: str, content: bytes) -> None:
        (self.folder / name).write_bytes(content)

    def restore(self, damaged: Path) -> None:
        """Make the document whole again, and those beside it."""
        for path, content in self._whole.items():
            if path.parent == damaged.parent:
                path.write_bytes(content)

    def hunted(self) -> int:
        """The exit code of the hunt, gone on with up to its end."""
        hunt = hunting.resumed(self.hunt, self.folder, None)
        result = hunting.carry_out(hunt, 1, lambda so_far: None)
        return 1 if result.found is not None else hunt_of(hunt, result, None).exit_code

    def drawn(self, draw: random.Random) -> Path:
        """One of the documents. Rows are drawn as often as all others together."""
        paths = sorted(self._whole)
        return draw.choice([*paths, *(path for path in paths if path.name == ROWS_FILE for _ in range(4))])

    def decisions(self) -> dict[str, Callable[[], int]]:
        """All that decides by these documents, each with its exit code."""
        return {
            "signoff": lambda: sign_off(self.inputs, TODAY).exit_code,
            "sweep --resume": lambda: carried_out(resumed(self.candidate, self.folder), nobody).exit_code,
            "signoff --verify": lambda: verified(Request(document=self.folder / "signoff.json")).exit_code,
            "hunt --resume": self.hunted,
            "notes": lambda: 3 if all(tries_in(self.folder / "notes.jsonl")) else 4,
            "config": lambda: 3 if read_config(self.folder / "nightly.toml").planned else 4,
        }

    def affected(self, path: Path) -> tuple[str, ...]:
        """The decisions that read this document."""
        alone = {"signoff.json": "signoff --verify", "notes.jsonl": "notes", "nightly.toml": "config"}
        if path.name in alone:
            return (alone[path.name],)
        if path.parent == self.hunt:
            return ("hunt --resume",)
        by_sweep = ("sweep --resume",) if path.parent == self.candidate else ()
        return ("signoff", "signoff --verify", *by_sweep)


def value(draw: random.Random) -> Json:
    deep: Json = 1
    for _ in range(draw.choice((3, 70, 400))):
        deep = [deep]
    numbers: list[Json] = [0, -1, 1, 8, 9, 10**6, 1 << 53, (1 << 64) - 1, 0.5, -0.5, 1e308]
    codes: list[Json] = ["valid", "vacuous", "error", "unknown", "holds", "violated", "go", "green", "P1", "P2", "ndb"]
    others: list[Json] = [None, True, [], {}, [[]], {"": ""}, "", "x" * 9_999, deep, "\u202e\x1b[2J\r\n", "2999-01-01"]
    return draw.choice([*numbers, *codes, *others])


def spoiled(draw: random.Random, document: Json) -> Json:
    """The JSON document with a few places that say something else."""
    for _ in range(draw.randint(1, 3)):
        places = list(nodes(document))
        if not places:
            return value(draw)
        *way, last = draw.choice(places)
        with suppress(LookupError, TypeError):
            spoil(document, way, last, value(draw), is_removed=draw.random() < 0.2)
    return document


def damaged(draw: random.Random, content: bytes) -> bytes:
    """The bytes with some that are changed, lost, twice or moved."""
    lines = content.splitlines(keepends=True)
    place, other = draw.randrange(len(content)), draw.randrange(len(content))
    match draw.randrange(8):
        case 0:
            return content[:place] + bytes([draw.randrange(256)]) + content[place + 1 :]
        case 1:
            return content[:place]
        case 2:
            return content[: min(place, other)] + content[max(place, other) :]
        case 3:
            draw.shuffle(lines)
        case 4:
            lines.append(draw.choice(lines))
        case 5:
            del lines[draw.randrange(len(lines))]
        case 6:
            words = ((b'"invalid"', b'"valid"'), (b'"violated"', b'"holds"'), (b"2000", b"2999"), (b'"P1"', b"null"))
            old, new = draw.choice(words)
            return content.replace(old, new)
        case _:
            number = b"9" * draw.choice((3, 19, 20, 5_000))
            return content[:place] + number + content[place:]
    return b"".join(lines)


def changed(draw: random.Random, rows: list[Any]) -> None:
    """Change, add or remove one row."""
    place = draw.randrange(len(rows))
    match draw.randrange(5):
        case 0:
            rows.append(rows[place] | {"id": f"{draw.getrandbits(64):016x}", "seed": draw.choice((0, 1, 7, 8))})
        case 1:
            rows[place] = rows[place] | {"report": rows[place]["report"] | {"verdict": "valid", "exit_code": 0}}
        case 2:
            rows[place] = rows[place] | {draw.choice(("cell", "attempt", "seed")): draw.choice((0, 1, 2, 7, -1))}
        case 3 if len(rows) > 1:
            del rows[place]
        case _:
            rows[place] = spoiled(draw, rows[place])


def chained(draw: random.Random, folder: Path) -> None:
    """Damage rows, and compute the chain and the summary anew, as somebody could who can run Seamark."""
    order, kept = kept_in(folder)
    rows: list[Any] = [msgspec.to_builtins(row) for row in kept.rows]
    for _ in range(draw.randint(1, 2)):
        with suppress(LookupError, TypeError):  # An earlier damage took away what this one changes.
            changed(draw, rows)
    (folder / ROWS_FILE).unlink()
    with RowsFile[Any](folder, Row, digest_of(order)) as file:
        for row in rows:
            file.append(row)
    with suppress(Exception):  # Rows that make no sense have no summary: that of before stays.
        kept = read_rows(folder, Row, digest_of(order))
        (folder / "sweep.json").write_bytes(sweep_to_json(sweep_of(order, kept, folder=folder)))


def damage(draw: random.Random, documents: Documents) -> tuple[Path, str]:
    """Damage one document; returns it, and what was done."""
    path = documents.drawn(draw)
    content = path.read_bytes()
    if path.name == ROWS_FILE and path.parent != documents.hunt and draw.random() < 0.5:
        chained(draw, path.parent)
        return path, f"{path.name}, with a chain that holds"
    if path.suffix == ".json" and draw.random() < 0.6:
        path.write_bytes(msgspec.json.encode(spoiled(draw, msgspec.json.decode(content))))
    else:
        path.write_bytes(damaged(draw, content))
    return path, path.name


def nobody(task: Task) -> Row:
    raise AssertionError(f"a run of seed {task.scenario.seed}")


def exit_code(decide: Callable[[], int]) -> int:
    try:
        return decide()
    except SeamarkError:
        return 4


@pytest.fixture
def documents(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Documents:
    """The documents, in a folder that need not survive the machine. Code is hashed once: it does not change."""
    codes = code_digest([installed("tutorial")])
    monkeypatch.setattr(orders, "code_digest", lambda _: codes)
    monkeypatch.setattr(hunting, "LocalPool", Inline)
    monkeypatch.setattr(Inline, "tried", [], raising=False)
    for name in ("harness.campaign.ledger.rows.sync_folder", "harness.campaign.ledger.rows.os.fsync"):
        monkeypatch.setattr(name, lambda _: None)
    return Documents(tmp_path)


def test_no_damage_makes_a_decision_greener(documents: Documents) -> None:
    decisions = documents.decisions()
    before = {what: exit_code(decide) for what, decide in decisions.items()}
    assert before == {
        "signoff": 1,
        "sweep --resume": 1,
        "signoff --verify": 0,
        "hunt --resume": 1,
        "notes": 3,
        "config": 3,
    }
    seen = Counter[tuple[str, int]]()
    for seed in range(FIRST_SEED, FIRST_SEED + count(100)):
        path, what = damage(random.Random(seed), documents)
        for decided in documents.affected(path):
            faulthandler.dump_traceback_later(HANG_S, exit=True)
            try:
                code = exit_code(decisions[decided])
            except Exception as error:
                raise AssertionError(f"seed {seed}: {what}: {decided}: {error!r}") from error
            finally:
                faulthandler.cancel_dump_traceback_later()
            is_person_s = what == "waivers.toml"  # Whoever writes another day into it has decided.
            is_greener = code in {0, 3} and decided in RED_BEFORE and not is_person_s
            assert not is_greener, f"seed {seed}: {what}: {decided} has exit code {code}"
            seen[decided, code] += 1
        documents.restore(path)
    print(f"seeds from {FIRST_SEED}: {dict(sorted(seen.items()))}, at most {peak_mb()} MB")
    assert peak_mb() < MEMORY_MB
    assert len(seen) >= 6, f"few outcomes: {seen}"


def test_no_damage_is_a_traceback_of_a_command(
    documents: Documents, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = (
        ("signoff", documents.baseline, documents.candidate, "--waivers", "waivers.toml"),
        ("signoff", "--verify", "signoff.json"),
        ("hunt", "--cluster", "tutorial", "--baseline", documents.candidate, "--known", "x", "--nemesis", "none"),
        ("sweep", "nightly.toml", "--store", "waivers.toml"),  # A file is no store: no run begins.
        ("sweep", "--resume", documents.candidate, "--quiet"),
    )
    for seed in range(FIRST_SEED, FIRST_SEED + count(6)):
        path, what = damage(random.Random(seed), documents)
        command = random.Random(seed).choice(commands)
        monkeypatch.setattr(sys, "argv", ["seamark", *map(str, command)])
        with pytest.raises(SystemExit) as ended:
            main()
        message = capfd.readouterr().err
        assert ended.value.code in CODES, f"seed {seed}: {what}: {command}"
        assert "a fault of the harness" not in message, f"seed {seed}: {what}: {command}: {message}"
        assert "Traceback" not in message, f"seed {seed}: {what}: {command}: {message}"
        assert message.count("\n") <= 1, f"seed {seed}: {what}: {command}: {message}"
        documents.restore(path)
