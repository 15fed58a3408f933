"""Stores for tests: folders with reports as Seamark writes them, without the runs that they are about."""

import os
from pathlib import Path

import msgspec

from harness.core.record import Complete, Evidence, Footer, Header, Invoke, Mark, StreamEvent
from harness.record.journal import JournalWriter
from harness.record.store import JOURNAL, RUN_FILE
from harness.report.model import FindingRow, Report, to_json

SECOND = 1_000_000_000
TORN = FindingRow(
    fingerprint="f00d", anomaly="torn-unit", checker="streams", sentence="Half of it arrived.", promise="T-4", ops=(1,),
    events=(6,),
)  # fmt: skip


def report(*findings: FindingRow, **known: object) -> Report:
    """A report with those findings."""
    code = str(known.get("verdict", "invalid" if findings else "valid"))
    fields: dict[str, object] = {"cluster": "tutorial", "workload": "list-append", "runtime": "sim", "seed": 7} | known
    exit_code = {"invalid": 1, "valid": 0, "vacuous": 3, "unknown": 2, "error": 4}[code]
    return msgspec.convert(
        {"verdict": code, "exit_code": exit_code, "reason": "as told", "findings": findings, "operations": {"ok": 12}}
        | fields,
        Report,
        from_attributes=True,
    )


def judged(store: Path, content: Report, name: str = "20261123T010203Z-7", test: str = "tutorial") -> Path:
    """A run in the store, with that report."""
    run = store / test / name
    run.mkdir(parents=True)
    (run / "report.json").write_bytes(to_json(content))
    (run / "report.html").write_text("<!doctype html><title>a page</title>", encoding="utf-8")
    return run


def planned(store: Path, name: str = "20261123T010204Z-8", test: str = "tutorial") -> Path:
    """A run that has just begun: with the part of its run.json that a list needs."""
    run = store / test / name
    run.mkdir(parents=True)
    (run / RUN_FILE).write_text(
        '{"cluster": "tutorial", "workload": "list-append", "runtime": "sim", "seed": 8}', encoding="utf-8"
    )
    return run


def evidence() -> list[Evidence]:
    """Seven records: three operations, of which the second is open from 2 to 5 s, and the third for ever."""
    return [
        Mark(0, "load"),
        Invoke(0, SECOND, SECOND, 0, "read"),
        Complete(0, SECOND + 1, "ok"),
        Invoke(1, 2 * SECOND, 2 * SECOND, 0, "read"),
        Invoke(2, 4 * SECOND, 4 * SECOND, 1, "read"),
        Complete(1, 5 * SECOND, "ok"),
        StreamEvent(6 * SECOND, "s1", 0, 0, "watermark", position=5),
    ]


def journal(run: Path, *, is_whole: bool = True) -> None:
    """Write the run's journal with that evidence."""
    with JournalWriter(run / JOURNAL) as writer:
        for record in (
            Header(1, "2026-11-23T01:02:03Z"),
            *evidence(),
            *([Footer(7 * SECOND, "ended")] if is_whole else []),
        ):
            writer.append(record)


def aged(run: Path) -> None:
    """Make the run look as if nothing had been written in it for an hour."""
    for path in run.iterdir():
        before = path.stat().st_mtime - 3600
        os.utime(path, (before, before))
