"""The report on a terminal: a few lines before the verdict, or all tables with --verbose; lines break at words."""

import io

import msgspec
import pytest
from rich.console import Console

from harness.core.record import Json
from harness.report.console.tables import FINDINGS_SHOWN, PROMISES_SHOWN
from harness.report.console.terminal import LINES_MAX, USUAL, Amount, show
from harness.report.model import FaultRow, FindingRow, PromiseRow, Report
from harness.report.screen import say, suggest


def row(number: int, verdict: str, witnesses: int) -> PromiseRow:
    return PromiseRow(
        id=f"P{number}", verdict=verdict, witnesses=witnesses, text=f"promise number {number}", source="here"
    )


def screen(*promises: PromiseRow) -> str:
    return shown(Report(verdict="invalid", exit_code=1, reason="something", promises=promises))


def shown(report: Report, width: int = 200, *, amount: Amount = Amount(is_verbose=True)) -> str:  # noqa: B008  Immutable.
    console = Console(file=io.StringIO(), width=width)
    show(console, report, amount)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def transactions(*, edges: int, out: list[Json], left: list[Json]) -> Report:
    facts: dict[str, Json] = {
        "edges": {"ww": 0, "wr": edges, "rw": 0},
        "ruled_out_weakest": out,
        "not_ruled_out_strongest": left,
    }
    return Report(verdict="invalid", exit_code=1, reason="something", facts={"serializability": facts})


def test_few_promises_have_a_row_each() -> None:
    text = screen(*[row(number, "holds", 100 + number) for number in range(PROMISES_SHOWN)])
    assert all(f"promise number {number} " in text for number in range(PROMISES_SHOWN))


def test_of_many_promises_those_that_hold_share_a_line_with_the_least_witnessed() -> None:
    held = [row(number, "holds", 100 + number) for number in range(PROMISES_SHOWN)]
    text = screen(*held, row(50, "violated", 3), row(51, "unknown", 0), row(52, "not-exercised", 7))
    assert f"{PROMISES_SHOWN} promises hold; fewest witnesses: 100 (P0): P0, P1, " in text
    assert "1 not exercised (witnesses in brackets): P52 (7)" in text
    assert "promise number 50" in text
    assert "promise number 51" in text
    assert "promise number 0" not in text


def test_on_a_narrow_terminal_further_lines_begin_below_the_text_and_none_is_too_long() -> None:
    held = [row(number, "holds", 100 + number) for number in range(40)]
    report = Report(
        verdict="invalid",
        exit_code=1,
        reason="something",
        promises=tuple(held),
        goals={f"a goal with several words and number {number}": 0 for number in range(5)},
        operations={"ok": 7, "info": 3},
        faults=(FaultRow(kind="slow-subscriber", planned=1, begun=1, effective=1, ok=1_234, fail=0, info=0),),
    )
    lines = shown(report, width=60).splitlines()
    assert all(len(line) <= 60 for line in lines)
    assert all(line.startswith("  ") for line in lines if line and not line.startswith("ANOMALY"))
    assert "  slow-subscriber" in "\n".join(lines)
    assert lines[0].startswith("  0.0 s  ok 7  unknown 3")


def test_the_weakest_models_that_are_violated_and_the_strongest_that_are_left_are_one_sentence() -> None:
    text = shown(transactions(edges=3, out=["repeatable-read"], left=["snapshot-isolation", "read-atomic"]))
    sentence = "not repeatable-read, nor anything stronger; consistent with snapshot-isolation and read-atomic"
    assert f"  models    {sentence}\n" in text


def test_where_nothing_is_violated_only_the_strongest_model_is_named() -> None:
    text = shown(transactions(edges=3, out=[], left=["strict-serializable"]))
    assert "  models    consistent with strict-serializable\n" in text


def test_transactions_that_do_not_depend_on_each_other_leave_no_model() -> None:
    assert "consistent" not in shown(transactions(edges=0, out=[], left=["strict-serializable"]))


def test_a_cycle_of_time_alone_rules_models_out_without_any_dependency() -> None:
    text = shown(transactions(edges=0, out=["strong-read-committed"], left=[]))
    assert "  models    not strong-read-committed, nor anything stronger\n" in text


def test_what_was_found_and_is_not_forbidden_is_told_with_its_count() -> None:
    report = transactions(edges=3, out=[], left=["strict-serializable"])
    facts: dict[str, Json] = {"allowed_anomalies": {"garbage-read": 2, "G2-item": 1}}
    text = shown(msgspec.structs.replace(report, facts={"serializability": facts}))
    assert "  permitted garbage-read (2), G2-item (1)\n" in text
    assert "permitted" not in shown(report)


def found(anomaly: str, *, count: int = 1, ops: tuple[int, ...] = (7,), promise: str | None = "P1") -> FindingRow:
    return FindingRow(
        fingerprint="f",
        anomaly=anomaly,
        checker="c",
        sentence=f"About {anomaly}.",
        count=count,
        ops=ops,
        promise=promise,
    )


def test_one_event_is_one_sentence_and_what_else_shows_it_are_names() -> None:
    event = (found("split-view"), found("missing-event", count=4), found("missing-event", count=2), found("G-single"))
    other = (found("lag", ops=(9,)), found("internal", ops=(11,), promise=None))
    report = Report(verdict="invalid", exit_code=1, reason="something", findings=(*event, *other))
    lines = [line.rstrip() for line in shown(report).splitlines()]
    assert "  Missing event, 6 times: About missing-event." in lines
    assert "    also as  Split view; Read skew (G-single)" in lines
    assert "  Stream too far behind (lag): About lag." in lines
    assert any(line.endswith("About internal.  (no promise forbids it)") for line in lines)


def test_of_many_events_the_first_are_shown_and_the_rest_counted() -> None:
    many = tuple(found("lag", ops=(number,)) for number in range(FINDINGS_SHOWN + 3))
    text = shown(Report(verdict="invalid", exit_code=1, reason="something", findings=many))
    assert text.count("About lag.") == FINDINGS_SHOWN
    assert "  and 3 more in the report" in text


def long_report() -> Report:
    """A report with more than fits above the verdict."""
    event = FindingRow(
        fingerprint="f",
        anomaly="missing-event",
        checker="c",
        sentence=" ".join(f"word{number}" for number in range(200)),
        ops=(7,),
        promise="P50",
    )
    return Report(
        verdict="invalid",
        exit_code=1,
        reason="Missing event, once: P50 is violated",
        promises=(row(50, "violated", 3), *(row(number, "holds", 100) for number in range(40))),
        operations={"ok": 7, "fail": 0, "info": 3},
        duration_s=20.0,
        faults=(FaultRow(kind="slow-subscriber", planned=2, begun=2, effective=1, ok=1, fail=0, info=0),),
        excused=("slow subscriber d3>s2 at 0.1 s",),
        facts={"notes": [f"note {number} " + "is long " * 40 for number in range(9)]},
        findings=(event, found("lag", ops=(9,))),
    )


@pytest.mark.parametrize("width", [40, 80, 200])
def test_at_most_twelve_lines_come_before_the_verdict_and_none_is_too_long_or_padded(width: int) -> None:
    lines = shown(long_report(), width, amount=USUAL).splitlines()
    before = next(place for place, line in enumerate(lines) if line.startswith("ANOMALY"))
    assert before <= LINES_MAX
    assert all(len(line) <= width and line == line.rstrip() for line in lines[:before])
    assert any("more: --verbose" in line for line in lines[:before])
    assert lines[before + 1] == "  P50  promise number 50"  # Its id comes with words.


def test_the_promise_that_the_verdict_names_is_quoted() -> None:
    promises = (row(1, "violated", 3), row(2, "violated", 4), row(3, "holds", 5))
    report = Report(
        verdict="invalid",
        exit_code=1,
        reason="Missing event, once: P2 is violated",
        promises=promises,
        findings=(found("G-single", promise="P1"), found("missing-event", promise="P2")),
    )
    after = shown(report, amount=USUAL).partition("P2 is violated")[2]
    assert "P2  promise number 2" in after
    assert "P1" not in after


def test_a_fault_that_changed_nothing_is_a_note() -> None:
    report = msgspec.structs.replace(long_report(), facts={}, findings=())
    assert "  note  1 of 2 faults changed nothing: slow subscriber d3>s2 at 0.1 s.\n" in shown(report, amount=USUAL)


def test_without_a_terminal_no_line_of_a_table_ends_with_blanks() -> None:
    assert all(line == line.rstrip() for line in shown(long_report(), 80).splitlines())


def printed(*, width: int, is_terminal: bool, label: str = "again", text: str = "", command: str = "") -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=is_terminal, color_system=None)
    if command:
        suggest(console, label, command)
    else:
        say(console, text)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


def test_lines_break_between_words_and_go_on_below_the_text() -> None:
    text = "  exact  fingerprint 59f48400aa5b8fbf and words"
    assert printed(width=30, is_terminal=True, text=text) == ["  exact  fingerprint", "  59f48400aa5b8fbf and words"]


def test_a_long_command_goes_on_in_lines_that_a_shell_joins() -> None:
    command = "seamark run --cluster ndb --workload list-append --seed 7"
    lines = printed(width=40, is_terminal=True, command=command)
    assert all(len(line) <= 40 for line in lines)
    assert all(line.endswith(" \\") for line in lines[:-1])
    assert len(lines) > 1
    joined = " ".join(line.removesuffix("\\").strip() for line in lines)
    assert joined == f"again   {command}"


@pytest.mark.parametrize("command", ["seamark check 'a b'", "seamark check aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"])
def test_a_command_in_a_log_and_one_with_quotes_stay_whole(command: str) -> None:
    assert printed(width=20, is_terminal=False, command=command) == [f"  again   {command}"]
    assert printed(width=20, is_terminal=True, command="seamark check 'a b' c d")[0].endswith("seamark check 'a b' c d")
