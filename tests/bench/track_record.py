"""Known defects of released systems, found again: `python -m tests.bench.track_record [ROW ...]`.

Runs the command of each row of docs/track-record.json on its versions and on its controls, keeps how often it found
the defect, and writes docs/track-record.md. Exits with 1 if a control showed the defect, 4 if a command failed.
"""

import datetime
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

import msgspec

from harness.core.record import Json

ROOT: Final = Path(__file__).resolve().parents[2]
DATA, PAGE = ROOT / "docs" / "track-record.json", ROOT / "docs" / "track-record.md"
FOUND, CLEAN = 1, 0
UNDECIDED: Final = (2, 3)  # Too little was known, or nothing was tested.
LIMIT_S: Final = 600


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A defect, its command, and the versions that have it. Without a `promise` the documentation permits it."""

    name: str
    system: str
    defect: str
    source: str
    promise: str | None
    anomaly: str
    command: str  # {version} and {seed} stand for those of a run.
    affected: tuple[str, ...]
    control: str  # What the clean versions have, or do.
    clean: tuple[str, ...]
    times: int
    control_command: str | None = None


class Result(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How many of some runs found the defect, and on which day; and how many could not decide."""

    runs: int
    found: int
    date: str
    undecided: int = 0


class Record(msgspec.Struct, kw_only=True):
    """The data of the page. The key of a result is "ROW VERSION", or "ROW VERSION control"."""

    rows: tuple[Row, ...]
    results: dict[str, Result]


def load() -> Record:
    """The record in the repository."""
    return msgspec.json.decode(DATA.read_bytes(), type=Record)


def page(record: Record) -> str:
    """The page, in Markdown."""
    lines = [
        "# Track record",
        "",
        "Defects of released versions that others have reported, found again. `make track-record` runs all of it, and",
        "writes this page; `python -m tests.bench.track_record NAME` runs one row.",
        "",
        "| system | defect | broken promise | anomaly | found | control |",
        "| --- | --- | --- | --- | --- | --- |",
        *(_line(row, record) for row in record.rows),
        "",
        "`seamark run` exits with 1 if a promise is broken: a documented one, or `SETTLE`, which forbids a `stall` in",
        "[every run](promises.md). Where the table has none, the documentation permits the defect: a run lists any",
        "other anomaly, and exits with 0, or with 3 if it tested nothing else. `tests.bench.etcd_requests` exits",
        "with 1 if it saw the defect.",
        "",
        "## Commands",
        "",
    ]
    names: dict[str, list[str]] = {}
    for row in record.rows:
        names.setdefault(row.command.format(version=row.affected[0], seed=1), []).append(row.name)
    for command, of_rows in names.items():
        lines += [f"### {', '.join(of_rows)}", "", "```", command, "```", ""]
    return "\n".join(lines)


def _line(row: Row, record: Record) -> str:
    promise = f"[{row.promise}](promises/{row.system}.md)" if row.promise else "none"
    found = ", ".join(_counted(record.results.get(f"{row.name} {version}"), version) for version in row.affected)
    key = " control" if row.control_command else ""
    clean = ", ".join(_counted(record.results.get(f"{row.name} {version}{key}"), version) for version in row.clean)
    defect = f"{row.defect} [Report]({row.source})"
    return f"| {row.system} | {defect} | {promise} | `{row.anomaly}` | {found} | {row.control}: {clean} |"


def _counted(result: Result | None, version: str) -> str:
    if result is None:
        return f"{version}: not run"
    open_runs = f" ({result.undecided} undecided)" if result.undecided else ""
    return f"{version}: {result.found} of {result.runs}{open_runs}"


def carried_out(row: Row, command: str, version: str) -> Result:
    """The outcome of the row's command on that version. Raises RuntimeError if one of its runs failed."""
    found = undecided = 0
    for seed in range(1, row.times + 1):
        with tempfile.TemporaryDirectory(prefix="seamark-track-") as folder:
            words = shlex.split(command.format(version=version, seed=seed))
            is_run = words[0] == "seamark"
            words[0] = str(Path(sys.executable).with_name(words[0])) if is_run else sys.executable
            words += ["--json", "--engine", "local", "--store", folder] if is_run else []
            done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False, timeout=LIMIT_S)
        if done.returncode not in ((FOUND, CLEAN, *UNDECIDED) if is_run else (FOUND, CLEAN)):
            told = done.stderr.strip() or done.stdout[:300]
            raise RuntimeError(f"{row.name} {version}: exit {done.returncode}: {told}")
        is_found = done.returncode == FOUND
        if is_run:  # What the documentation permits breaks no promise: the run may pass, or have tested nothing else.
            is_found = row.anomaly in _anomalies(done.stdout) and (is_found or row.promise is None)
        elif ("SEEN. " in done.stdout, "not seen. " in done.stdout) != (is_found, not is_found):
            # A program that does not even start may exit with 1 as well.
            raise RuntimeError(f"{row.name} {version}: exit {done.returncode} without a result: {done.stderr[-300:]}")
        if not is_found and done.returncode in UNDECIDED:
            undecided += 1
            reason = msgspec.json.decode(done.stdout, type=dict[str, Json])["reason"]
            print(f"{row.name} {version} {seed}: undecided: {reason}", flush=True)
            continue
        found += is_found
        print(f"{row.name} {version} {seed}: {'found' if is_found else 'not found'}", flush=True)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    return Result(runs=row.times, found=found, date=today, undecided=undecided)


def _anomalies(report: str) -> set[str]:
    findings = msgspec.json.decode(report, type=dict[str, Json])["findings"]
    return {str(each["anomaly"]) for each in msgspec.convert(findings, list[dict[str, Json]])}


def main() -> int:
    record = load()
    names = sys.argv[1:] or [row.name for row in record.rows]
    unknown = set(names) - {row.name for row in record.rows}
    if unknown:
        every = ", ".join(row.name for row in record.rows)
        print(f"no row {', '.join(sorted(unknown))}; there are {every}", file=sys.stderr)
        return 64
    is_clean = True
    for row in (row for row in record.rows if row.name in names):
        runs = [(row.command, version, "", False) for version in row.affected]
        control, suffix = row.control_command or row.command, " control" if row.control_command else ""
        runs += [(control, version, suffix, True) for version in row.clean]
        for command, version, suffix, is_control in runs:
            try:
                result = carried_out(row, command, version)
            except (RuntimeError, subprocess.TimeoutExpired) as error:
                print(error, file=sys.stderr)
                return 4
            record.results[f"{row.name} {version}{suffix}"] = result
            is_clean &= not (is_control and result.found)
            DATA.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=2) + b"\n")
            PAGE.write_text(page(record), encoding="utf-8")
    return 0 if is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
