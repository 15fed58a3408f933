"""Registers, by hand: what is allowed, what is not, what is legal and looks odd, and what cannot be decided."""

from pathlib import Path

import pytest

from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import Limits, check
from checkers.linearizability.deeds import Form, form_of
from checkers.words.anomalies import NON_LINEARIZABLE
from harness.core.errors import HistoryError
from harness.core.record import Complete, Evidence, Invoke
from harness.record.formats.parquet.parquet import write_history
from tests.unit.checkers.linearizability.judging import EMPTY, ENGINE, judged
from tests.worlds.registers.language import register_history

ALLOWED = {
    "one after the other": "0:w1 0:ok 0:r 0:ok1 0:c12 0:ok 0:r 0:ok2",
    "a read beside a write may see it or not": "0:w1 0:ok 0:w2 1:r 2:r 1:ok1 2:ok2 0:ok",
    "two reads beside a write, the new value first, and never back": "0:w1 0:ok 0:w2 1:r 1:ok2 2:r 2:ok2 0:ok",
    "two cas of which the second builds on the first": "0:c91 0:fail 0:w1 0:ok 1:c23 2:c12 2:ok 1:ok 0:r 0:ok3",
    "what is unclear happens late": "0:w1 0:ok 1:w2 1:info 0:r 0:ok1 0:r 0:ok1 0:r 0:ok2",
    "what is unclear never happens": "0:w1 0:ok 1:w2 1:info 0:r 0:ok1 0:w3 0:ok 0:r 0:ok3",
    "what never completed happens after all": "0:w1 0:ok 1:w2 0:r 0:ok1 0:r 0:ok2",
    "an unclear cas enables another": "0:w1 0:ok 1:c12 1:info 2:c23 2:info 0:r 0:ok3",
    "each of two equal unclear writes": "0:w1 0:ok 1:w2 1:info 2:w2 2:info 0:r 0:ok2 0:w1 0:ok 0:r 0:ok2",
    "what failed is nobody's": "0:w1 0:ok 1:w2 1:fail 0:r 0:ok1",
    "an unclear read says nothing": "0:w1 0:ok 1:r 1:info 0:r 0:ok1 0:w2 0:ok",
    "nil before the first write": "0:r 0:ok- 0:w1 0:ok 0:r 0:ok1",
    "keys know nothing of each other": "0:a.w1 0:ok 0:b.w2 0:ok 0:a.r 0:ok1 0:b.r 0:ok2",
    "a lock goes from hand to hand": "0:acquire 1:acquire 0:ok 0:release 1:ok 0:ok 1:release 1:ok",
}
FORBIDDEN = {
    "a stale read": ("0:w1 0:ok 0:w2 0:ok 1:r 1:ok1", 2),
    "back to the old value": ("0:w1 0:ok 0:w2 1:r 1:ok2 2:r 2:ok1 0:ok", 3),
    "a cas that found another value": ("0:w1 0:ok 0:c23 0:ok", 1),
    "both of two cas from one value": ("0:w1 0:ok 1:c12 2:c13 1:ok 2:ok", 2),
    "an unclear write happens once": ("0:w1 0:ok 1:w2 1:info 0:r 0:ok2 0:w1 0:ok 0:r 0:ok2", 4),
    "an unclear write before it was asked for": ("0:w1 0:ok 0:r 0:ok2 1:w2 1:info", 1),
    "what failed was seen": ("0:w1 0:ok 1:w2 1:fail 0:r 0:ok2", 2),
    "what nobody wrote was seen": ("0:w1 0:ok 0:r 0:ok7", 1),
    "nil after a write": ("0:w1 0:ok 0:r 0:ok-", 1),
    "the second key alone": ("0:a.w1 0:ok 0:b.w1 0:ok 0:b.w2 0:ok 0:b.r 0:ok1 0:a.r 0:ok1", 3),
    "a lock in two hands": ("0:acquire 0:ok 1:acquire 1:ok", 1),
    "a lock let go twice": ("0:acquire 0:ok 0:release 0:ok 0:release 0:ok", 2),
}


@pytest.mark.parametrize("case", ALLOWED)
def test_what_some_order_explains_is_no_finding(tmp_path: Path, case: str) -> None:
    judgement = judged(tmp_path, ALLOWED[case])
    assert (judgement.findings, judgement.unknown) == ((), {})


@pytest.mark.parametrize("case", FORBIDDEN)
def test_what_no_order_explains_names_the_operation_without_a_place(tmp_path: Path, case: str) -> None:
    text, op = FORBIDDEN[case]
    judgement = judged(tmp_path, text)
    (finding,) = judgement.findings
    assert (finding.anomaly, finding.count) == (NON_LINEARIZABLE, 1)
    assert op in finding.ops
    assert f"T{op} " in finding.sentence.split(",")[0]
    assert judgement.witnesses[NON_LINEARIZABLE] > 0


def test_a_finding_says_what_was_possible_and_what_was_open(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, "0:x.w1 0:ok 1:x.w2 2:x.w5 2:info 3:x.r 0:x.w4 0:fail 3:ok4 1:ok").findings
    assert finding.sentence == (
        'Key "x": T3 read 4 (process 3, from 0.006 s to 0.009 s), and no order of the operations allows that. '
        "With all in its place that was answered before, the state can only be 1, 2 or 5. "
        "One order up to there ends with T0 write 1. "
        "Only operations that certainly failed had tried to write 4: T4. "
        "Open at the same time: T1 write 2 (process 1, from 0.003 s to 0.010 s) "
        "and T2 write 5 (process 2, from 0.004 s, unclear)."
    )
    assert finding.ops == (0, 1, 2, 3)


def test_the_end_of_one_order_is_told_and_not_all_of_it(tmp_path: Path) -> None:
    text = " ".join(f"0:w{value} 0:ok" for value in range(1, 8))
    (finding,) = judged(tmp_path, f"{text} 0:r 0:ok7 1:r 1:ok3").findings
    tail = "One order up to there ends with T4 write 5, T5 write 6, T6 write 7 and T7 read 7."
    assert tail in finding.sentence
    assert finding.ops == (4, 5, 6, 7, 8)


def test_only_what_had_begun_is_told_and_no_read_without_answer(tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, "0:w1 0:ok 2:r 2:info 3:r 1:r 1:ok3 3:ok1 0:w7 0:ok").findings
    assert "the state can only be 1." in finding.sentence
    assert finding.sentence.endswith("Open at the same time: T2 read 1 (process 3, from 0.005 s to 0.008 s).")


def test_what_was_open_is_counted_beyond_the_first_few(tmp_path: Path) -> None:
    many = " ".join(f"{process}:w{process % 4}" for process in range(1, 13))
    (finding,) = judged(tmp_path, f"0:w1 0:ok {many} 0:r 0:ok9").findings
    result = finding.sentence.partition("Open at the same time: ")[2]
    assert (result.count("T"), result.endswith(" and 8 more.")) == (4, True)
    assert len(finding.ops) == 12


def test_unclear_writes_that_nobody_saw_cost_nothing(tmp_path: Path) -> None:
    unclear = " ".join(f"{process}:w{process % 8} {process}:info" for process in range(2, 40))
    text = f"0:w1 0:ok {unclear} 0:w1 0:ok 0:r 0:ok1 0:r 0:ok9"
    judgement = judged(tmp_path, text, EMPTY, Limits(first=30, shared=30))
    assert [finding.count for finding in judgement.findings] == [1]
    assert judgement.facts["most_configurations"] == 3


def test_of_several_registers_the_first_contradiction_is_told_and_all_are_counted(tmp_path: Path) -> None:
    late, early = "0:a.w1 0:ok 0:b.w1 0:ok", "0:b.r 0:ok7 0:a.r 0:ok8 0:c.w1 0:ok 0:c.r 0:ok1"
    judgement = judged(tmp_path, f"{late} {early}")
    (finding,) = judgement.findings
    assert finding.count == 2
    assert finding.sentence.startswith('Key "b": T2 read 7 (')
    assert "No operation had tried to write 7" in finding.sentence
    assert judgement.facts["violated"] == 2


def test_one_contradiction_has_one_fingerprint_whatever_follows(tmp_path: Path) -> None:
    text = "0:a.w1 0:ok 0:a.r 0:ok7"
    one, other = (judged(tmp_path, each).findings[0] for each in (text, f"{text} 0:a.w3 0:ok 0:b.r 0:ok-"))
    assert one.fingerprint == other.fingerprint
    assert judged(tmp_path, text.replace("a.", "b.")).findings[0].fingerprint != one.fingerprint


# What is not known


@pytest.mark.parametrize(
    ("text", "start"),
    [
        ("0:r 0:ok3 0:w1 0:ok", "3"),
        ("0:c31 0:ok 0:r 0:ok1", "3"),
        ("1:c32 1:info 0:r 0:ok2", "3"),
        ("1:w3 0:r 0:ok3 0:w7 0:ok 0:r 0:ok3 1:ok", "3"),  # What is written at last was there at first.
    ],
)
def test_a_value_from_before_the_history_is_unknown_until_somebody_says_it(
    tmp_path: Path, text: str, start: str
) -> None:
    judgement = judged(tmp_path, text, Register())
    assert judgement.findings == ()
    assert judgement.unknown[NON_LINEARIZABLE].startswith(
        f"initial-value: the register is linearizable only if it held {start} "
    )
    assert len(judged(tmp_path, text, Register(initial=4, is_initial_known=True)).findings) == 1
    known = judged(tmp_path, text, Register(initial=3, is_initial_known=True))
    assert (known.findings, known.unknown) == ((), {})


def test_where_an_initial_value_is_not_decided_nor_is_the_register(tmp_path: Path) -> None:
    writes = " ".join(f"{process}:w{process}" for process in range(1, 9))
    text = f"9:c91 9:ok {writes} 9:r 9:ok0 {' '.join(f'{process}:ok' for process in range(1, 9))}"
    found = [judged(tmp_path, text, Register(), Limits(first=limit, shared=limit)) for limit in (60, 20_000)]
    assert [len(one.findings) for one in found] == [0, 1]
    assert found[0].unknown[NON_LINEARIZABLE].startswith("search-too-long")


@pytest.mark.parametrize(
    ("text", "start"), [("0:r 1:w3 1:fail 0:ok3", 3), ("0:c20 0:fail 0:r 0:ok0", 0), ("0:c21 0:fail 0:c11 0:ok", 1)]
)
def test_what_a_failed_operation_tried_to_write_may_have_been_there_at_first(
    text: str, start: int, tmp_path: Path
) -> None:
    open_ = judged(tmp_path, text, Register())
    assert (open_.findings, "initial-value" in open_.unknown[NON_LINEARIZABLE]) == ((), True)
    assert judged(tmp_path, text, Register(initial=start, is_initial_known=True)).findings == ()
    assert len(judged(tmp_path, text, Register(initial=9, is_initial_known=True)).findings) == 1


@pytest.mark.parametrize(("text", "op"), [("0:r 0:ok5 0:w1 0:ok 0:r 0:ok7", 2), ("0:c54 0:ok 0:r 0:ok3", 1)])
def test_a_finding_blames_the_operation_that_no_initial_value_explains(text: str, op: int, tmp_path: Path) -> None:
    (finding,) = judged(tmp_path, text, Register()).findings
    assert f"T{op} " in finding.sentence.split(",")[0]


def test_a_read_of_nil_says_nothing_unless_it_is_said_what_nil_means(tmp_path: Path) -> None:
    text = "0:w1 0:ok 0:r 0:ok- 0:r 0:ok1"
    lenient = judged(tmp_path, text, Register())
    assert (lenient.findings, lenient.witnesses) == ((), {NON_LINEARIZABLE: 1})
    assert len(judged(tmp_path, text).findings) == 1


def test_a_search_that_is_too_long_is_unknown_and_says_how_far_it_came(tmp_path: Path) -> None:
    writes = " ".join(f"{process}:w{process}" for process in range(1, 9))
    text = f"{writes} 9:w1 9:ok 9:r 9:ok0 {' '.join(f'{process}:ok' for process in range(1, 9))}"
    judgement = judged(tmp_path, text, EMPTY, Limits(first=5, shared=3))
    assert judgement.findings == ()
    reason = "search-too-long: the register has 10 operations, of which 5 configurations were searched"
    assert judgement.unknown == {NON_LINEARIZABLE: reason}
    assert judgement.witnesses == {NON_LINEARIZABLE: 0}
    assert judgement.facts["undecided"] == 1
    assert len(judged(tmp_path, text, EMPTY, Limits(first=5)).findings) == 1


def test_each_register_is_open_for_its_own_reason(tmp_path: Path) -> None:
    writes = " ".join(f"{process}:b.w{process}" for process in range(1, 9))
    text = f"0:a.r 0:ok3 0:a.w1 0:ok {writes} 9:b.w1 9:ok 9:b.r 9:ok5"
    text += " ".join(["", *(f"{process}:ok" for process in range(1, 9))])
    judgement = judged(tmp_path, text, Register(), Limits(first=5))
    assert judgement.unknown[NON_LINEARIZABLE].startswith(
        'initial-value: register "a" is linearizable only if it held 3 '
    )
    assert judgement.unknown[NON_LINEARIZABLE].endswith("with --initial, or in a promise file, under [register]")
    assert (judgement.facts["undecided"], judgement.facts["registers"], judgement.findings) == (1, 2, ())
    short = judged(tmp_path, text, Register(), Limits(first=5, shared=5))
    assert short.unknown[NON_LINEARIZABLE].endswith("; so it is with 1 more")
    assert short.facts["undecided"] == 2


def test_what_the_intervals_decide_needs_no_search(tmp_path: Path) -> None:
    text = "0:w1 0:ok 0:w2 0:ok 1:r 1:ok1 0:w3 0:ok"
    judgement = judged(tmp_path, text, EMPTY, Limits(first=1, shared=1))
    assert [finding.sentence for finding in judgement.findings] == [
        "T2 read 1 (process 1, from 0.005 s to 0.006 s), and no order of the operations allows that."
    ]


def test_witnesses_are_only_answers_that_could_have_been_contradicted(tmp_path: Path) -> None:
    assert judged(tmp_path, "0:r 0:ok- 0:r 0:ok- 0:w1 0:ok").witnesses == {NON_LINEARIZABLE: 0}
    assert judged(tmp_path, "0:w1 0:ok 0:r 0:ok1 0:c12 0:ok 0:r 0:info 0:w1 0:fail").witnesses == {NON_LINEARIZABLE: 2}
    assert judged(tmp_path, "0:acquire 0:ok").witnesses == {NON_LINEARIZABLE: 0}


# What is no register


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("0:w1 0:ok 0:r 0:ok1", Form("register", is_keyed=False)),
        ("0:c12 0:ok 0:r 0:ok1", Form("cas-register", is_keyed=False)),
        ("0:a.c12 0:ok 0:a.r 0:ok1 0:a.w3 0:ok", Form("cas-register", is_keyed=True)),
        ("0:acquire 0:ok", Form("mutex", is_keyed=False)),
        ("0:release 0:ok", None),
        ("0:r 0:ok1", None),
        ("0:x 0:ok 0:r 0:ok1 0:w1 0:ok", None),
        ("0:acquire 0:ok 0:w1 0:ok", None),
    ],
)
def test_what_a_history_is_about_is_told_by_its_operations(tmp_path: Path, text: str, form: Form | None) -> None:
    write_history(register_history(text), tmp_path / "history")
    assert form_of(tmp_path / "history", Register()) == form


def test_reads_of_lists_beside_writes_of_numbers_are_no_register(tmp_path: Path) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "write", 1), Complete(0, 1, "ok", 1)]
    evidence += [Invoke(1, 2, 2, 0, "read"), Complete(1, 3, "ok", [1])]
    write_history(evidence, tmp_path / "history")
    assert form_of(tmp_path / "history", Register()) is None
    evidence[0], evidence[1] = Invoke(0, 0, 0, 0, "write", [1]), Complete(0, 1, "ok", [1])
    write_history(evidence, tmp_path / "history")
    assert form_of(tmp_path / "history", Register()) == Form("register", is_keyed=False)
    judgement = check(tmp_path / "history", Context(engine=ENGINE, register=EMPTY))
    assert (judgement.findings, judgement.witnesses) == ((), {NON_LINEARIZABLE: 1})


def test_keys_change_nothing_about_that(tmp_path: Path) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "write", ["k", 1]), Complete(0, 1, "ok", ["k", 1])]
    evidence += [Invoke(1, 2, 2, 0, "read", ["k", None]), Complete(1, 3, "ok", ["k", [1]])]
    write_history(evidence, tmp_path / "history")
    assert form_of(tmp_path / "history", Register()) is None
    evidence[3] = Complete(1, 3, "ok", ["k", 1])
    write_history(evidence, tmp_path / "history")
    assert form_of(tmp_path / "history", Register()) == Form("register", is_keyed=True)


@pytest.mark.parametrize(
    ("asked", "answered", "problem"),
    [
        (("cas", 5), 5, "operation 1 has the value 5, where a list of two is needed"),
        (("cas", [1, 2, 3]), None, "operation 1 has the value [1,2,3], where a list of two is needed"),
    ],
)
def test_a_value_that_no_register_has_is_named(
    tmp_path: Path, asked: tuple[str, object], answered: object, problem: str
) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "write", 1), Complete(0, 1, "ok", 1)]
    evidence += [Invoke(1, 2, 2, 0, asked[0], asked[1]), Complete(1, 3, "ok", answered)]  # type: ignore[arg-type]  # JSON.
    with pytest.raises(HistoryError, match="operation 1 has") as raised:
        judged(tmp_path, evidence)
    assert str(raised.value) == problem


def test_an_answer_about_another_key_is_named(tmp_path: Path) -> None:
    evidence: list[Evidence] = [Invoke(0, 0, 0, 0, "write", ["a", 1]), Complete(0, 1, "ok", ["a", 1])]
    evidence += [Invoke(1, 2, 2, 0, "read", ["a", None]), Complete(1, 3, "ok", ["b", 1])]
    with pytest.raises(HistoryError, match='operation 1 was invoked on key "a" and answered for "b"'):
        judged(tmp_path, evidence)
