"""How long report.html of a large run takes, how big it is, and how soon a browser has it.

Run as `python -m tests.bench.report [OPERATIONS]`. Aims, for a million: written in 2 CPU s, open in 3 s,
under 2 MB.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from harness.core.arrow import leave_out_pandas
from harness.core.record import Complete, Fault, Footer, Invoke, Mark, MicroOp, Record, StreamEvent
from harness.core.verdict import Step
from harness.record.formats.parquet.parquet import write_history
from harness.report.findings.story import DRAWN_MAX
from harness.report.model import FindingRow, Report
from harness.report.page import page

OPERATIONS = 1_000_000
MS = 1_000_000
KEY_ELEMENTS = 40
CLIENTS = 50
FAULTS = 10


def records(count: int) -> Iterator[Record]:
    """One operation a millisecond, each with a row and a tenth of a watermark; some never answer."""
    yield Mark(0, "load")
    for index in range(count):
        ns, key = index * MS, index // KEY_ELEMENTS
        asked = (MicroOp("append", key, index), MicroOp("r", key))
        seen = (asked[0], MicroOp("r", key, list(range(key * KEY_ELEMENTS, index + 1))))
        yield Invoke(index, ns, ns, index % CLIENTS, "txn", None, asked)
        if index % 97:
            end_ns = ns + MS // 10 + index * 7919 % (8 * MS // 10)
            yield Complete(index, end_ns, "ok", None, seen, None, "n1", index, None, None, index + 1)
        yield StreamEvent(ns + MS // 2, f"s{index % 2}", 0, index, "row", None, key, index, index + 1)
        if index % 10 == 9:
            yield StreamEvent(ns + MS // 2, f"s{index // 10 % 2}", 0, index, "watermark", position=index - 20)
        step, place = divmod(index, count // FAULTS)
        if place == 0:
            yield Fault(ns, step, "begin", "crash", ("n1",))
        if place == count // FAULTS // 2:
            yield Fault(ns, step, "end", "crash", ("n1",))
    yield Footer(count * MS, "done")


def findings(count: int) -> Iterator[FindingRow]:
    """As many as are drawn, all over the run."""
    for number in range(DRAWN_MAX):
        first = number * (count // DRAWN_MAX)
        names = (f"T{first}", f"T{first + 5}")
        cycle = tuple(Step(source=a, target=b, relation="rw", sentence="so") for a, b in (names, names[::-1]))
        yield FindingRow(
            fingerprint=str(number), anomaly="G2-item", checker="c", sentence="s", ops=(first, first + 5), cycle=cycle
        )


def main() -> None:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else OPERATIONS
    leave_out_pandas()  # As the command does.
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_history(records(count), folder / "history")
        report = Report(verdict="invalid", exit_code=1, reason="a measurement", findings=tuple(findings(count)))
        begin, begin_cpu = time.perf_counter(), time.process_time()
        html = page(report, folder / "history")
        took_s, cpu_s = time.perf_counter() - begin, time.process_time() - begin_cpu
        size = f"{len(html.encode()) / 1e6:.1f} MB"
        print(f"report: {count:,} operations, {DRAWN_MAX} findings: {took_s:.1f} s ({cpu_s:.2f} s of CPU), {size}")
        (folder / "report.html").write_text(html, encoding="utf-8")
        (folder / "empty.html").write_text("<p>nothing</p>", encoding="utf-8")
        browser = shutil.which("chromium")
        if browser is not None:
            for name in ("empty.html", "report.html"):
                took_s, cpu_s = _opened_s(browser, folder / name)
                print(f"report: Chromium has {name} after {took_s:.1f} s ({cpu_s:.1f} s of CPU)")


def _opened_s(browser: str, path: Path) -> tuple[float, float]:
    begin, before = time.perf_counter(), os.times()
    command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", path.as_uri()]
    subprocess.run(command, check=True, capture_output=True)
    took_s, after = time.perf_counter() - begin, os.times()
    return took_s, after.children_user + after.children_system - before.children_user - before.children_system


if __name__ == "__main__":
    main()
