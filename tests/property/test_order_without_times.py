"""A file whose times show no order keeps the order inside each process, and claims no other."""

from pathlib import Path
from random import Random

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import Append, Load, Mop, Operation, Store
from harness.core.columns import NEVER, NOTHING
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.report.model import Report
from tests.amount import FIRST_SEED, count
from tests.worlds.weak_histories import drawn

SESSIONS = ("strong-session-serializable", "strong-session-causal", "strong-session-read-committed")


def written(path: Path, operations: list[Operation], *, has_times: bool) -> Path:
    """The history as EDN. Without times: each process has a clock of its own, and one map has no time."""
    ends = [(2 * each.after - 1, each, True) for each in operations if each.after != NEVER]
    moments = [*((2 * each.index, each, False) for each in operations), *ends]
    lines = []
    for place, (_, each, is_end) in enumerate(sorted(moments, key=lambda moment: moment[0])):
        at = place if has_times else place + 1000 * (50 - each.process)
        time = f", :time {at}" if has_times or place else ""
        steps = " ".join(_step(mop, is_end=is_end) for mop in each.mops)
        kind = ":ok" if is_end else ":invoke"
        lines.append(f"{{:type {kind}, :process {each.process}, :f :txn, :value [{steps}]{time}}}")
    path.write_text("\n".join(lines))
    return path


def _step(mop: Mop, *, is_end: bool) -> str:
    match mop:
        case Append():
            return f"[:append {mop.key} {mop.element}]"
        case Store():
            return f"[:w {mop.key} {mop.value}]"
        case Load():
            return f"[:r {mop.key} {mop.value if is_end and mop.value != NOTHING else 'nil'}]"
        case _:
            elements = mop.elements if is_end else None
            return f"[:r {mop.key} {'nil' if elements is None else '[' + ' '.join(map(str, elements)) + ']'}]"


def judged(path: Path, model: str | None) -> Report:
    return judge(load(path, path.parent), engine=LocalEngine(1), model=model)


@pytest.mark.parametrize("lists", [True, False])
def test_models_of_sessions_find_the_same_with_and_without_times(tmp_path: Path, lists: bool) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(4)):
        operations = drawn(Random(seed), lists=lists)
        timed = written(tmp_path / "timed.edn", operations, has_times=True)
        untimed = written(tmp_path / "untimed.edn", operations, has_times=False)
        model = SESSIONS[seed % len(SESSIONS)]
        one, other = judged(timed, model), judged(untimed, model)
        assert one.verdict == other.verdict, (seed, model)
        assert {each.anomaly for each in one.findings} == {each.anomaly for each in other.findings}, (seed, model)


def test_without_times_no_finding_needs_real_time(tmp_path: Path) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(4)):
        operations = drawn(Random(seed), lists=True)
        untimed = written(tmp_path / "untimed.edn", operations, has_times=False)
        report = judged(untimed, None)
        if "times fall back" in str(report.facts.get("notes")):  # Else the clocks of all processes agree by chance.
            assert not {each.anomaly for each in report.findings if each.anomaly.endswith("-realtime")}, seed
            assert report.verdict != "valid", seed
