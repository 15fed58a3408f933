"""A store of hostile runs: links, pipes, devices, sparse files, and documents that take much more memory than disk."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Final

from harness.core.record import Complete, Header, Invoke, Json, Record, State, StreamEvent
from harness.record.journal import MAGIC, JournalWriter
from harness.record.store import JOURNAL, RUN_FILE
from harness.report.model import REPORT_FILE
from harness.serve.decoding.child import RECORD_MAX
from tests.unit.serve.stores import TORN, judged, planned, report
from tests.worlds import bombs

Make = Callable[[Path], object]
MIB: Final = 1 << 20
HUGE: Final = 1 << 40


def sparse(path: Path) -> None:
    """A journal of zeros, of a terabyte."""
    path.write_bytes(MAGIC)
    os.truncate(path, HUGE)


ENDLESS: Final[dict[str, Make]] = {
    "pipe": os.mkfifo,
    "device": lambda path: path.symlink_to("/dev/zero"),
    "link": lambda path: path.symlink_to("/etc/passwd"),
    "sparse": sparse,
    "folder": lambda path: path.mkdir(),
}
KNOWN: Final[dict[str, Json]] = {
    "verdict": "invalid",
    "exit_code": 1,
    "reason": "r",
    "cluster": "ndb",
    "operations": {"ok": 1},
}
BOMBS: Final[tuple[Make, ...]] = (
    lambda folder: bombs.rows(folder, "probes", 3_900_000),
    lambda folder: bombs.texts(folder, count=2, mib=15),
)
FINDING: Final[dict[str, Json]] = {"fingerprint": "f", "checker": "c", "sentence": "s"}


def text_of(**fields: Json) -> str:
    """A report with those fields."""
    return json.dumps(KNOWN | fields)


REPORTS: Final[dict[str, str]] = {
    "deep": "[" * MIB,
    "lists": text_of(facts={"x": [[]] * (2 * MIB)}),
    "fewer lists": text_of(facts={"x": [[]] * 200_000}),
    "findings": text_of(findings=[FINDING | {"anomaly": "a"}] * 30_000),
    "anomalies": text_of(findings=[FINDING | {"anomaly": f"a{number}"} for number in range(30_000)]),
    "promises": text_of(
        promises=[
            {"id": f"P{number}", "verdict": "holds", "witnesses": 1, "text": "t", "source": "s"}
            for number in range(30_000)
        ]
    ),
    "settings": text_of(drawn={f"name {number}": number for number in range(100_000)}),
    "text": text_of(bugs=["k" * (7 * MIB)]),
    "markup": text_of(bugs=["<script>" * 100_000]),
    "digits": text_of().replace('"r"', "9" * 5000),
    "large": text_of(bugs=["k" * (60 * MIB)]),
}


def write(store: Path, honest: int = 300) -> tuple[list[str], list[str]]:
    """Write the store; returns the places of its honest and of its hostile runs, as TEST/NAME."""
    for number in range(honest):
        judged(store, report(*([TORN] * (number % 3)), seed=number), f"20261122T{number:06}Z-{number}")
    number = 0

    def name() -> str:
        nonlocal number
        number += 1
        return f"20261123T{number:06}Z-{number}"

    for file in (JOURNAL, RUN_FILE, REPORT_FILE):
        for make in ENDLESS.values():
            run = planned(store, name(), "hostile")
            (run / file).unlink(missing_ok=True)
            make(run / file)
    for text in REPORTS.values():
        (judged(store, report(), name(), "hostile") / REPORT_FILE).write_text(text)
    for records in (_objects(), _open(), _names(), _small_objects()):
        _journal(planned(store, name(), "hostile"), records)
    for bomb in BOMBS:
        bomb(judged(store, report(), name(), "hostile") / "history")
    _campaigns(store)
    hostile = [f"hostile/{run.name}" for run in sorted((store / "hostile").iterdir())]
    return [f"tutorial/{run.name}" for run in sorted((store / "tutorial").iterdir())], hostile


def _campaigns(store: Path) -> None:
    """Sweeps, hunts and batches with documents of each kind."""
    for place, file in (("sweeps/nightly", "sweep.json"), ("hunts/ndb", "hunt.json"), ("batches", REPORT_FILE)):
        for number, make in enumerate(ENDLESS.values()):
            folder = store / place / f"20261124T00000{number}Z-{number}"
            folder.mkdir(parents=True)
            make(folder / file)
        for number, text in enumerate(REPORTS.values()):
            folder = store / place / f"20261125T00000{number}Z-{number}"
            folder.mkdir(parents=True)
            counted = text.replace('"reason"', '"planned": 9, "counts": {"valid": 9}, "reason"', 1)
            (folder / file).write_text(counted)


def _journal(run: Path, records: list[Record]) -> None:
    with JournalWriter(run / JOURNAL) as writer:
        writer.append(Header(1, "2026-11-23T01:02:03Z"))
        for record in records:
            writer.append(record)


def _objects() -> list[Record]:
    """Records that hold as many objects as one may."""
    return [State(0, "n1", "log", "x", [[]] * 3_900_000, None, None)] * 4


def _small_objects() -> list[Record]:
    """Records just under the limit of those that are read, with as many objects as they can hold."""
    return [Complete(number, number, "ok", [[]] * (RECORD_MAX - 100)) for number in range(8)]


def _open() -> list[Record]:
    """Operations that never complete."""
    return [Invoke(number, number, number, number, "read") for number in range(700_000)]


def _names() -> list[Record]:
    """Subscribers with long names, and commits that none of them has."""
    events: list[Record] = [
        StreamEvent(0, f"{number}" + "s" * 200_000, 0, 0, "watermark", position=0) for number in range(300)
    ]
    return events + [Complete(number, number * 20_000_000, "ok", commit_ts=number + 1) for number in range(100_000)]
