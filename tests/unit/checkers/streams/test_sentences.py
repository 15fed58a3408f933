"""What a finding about a stream says: all that a tired engineer has to know."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.names import Dictionary, Names
from checkers.streams.check import check
from harness.core.record import Complete, Invoke, MicroOp, Record, StreamEvent
from harness.core.verdict import Finding
from harness.record.formats.parquet.parquet import write_history
from tests.worlds.streams.cases import EPOCHS, contract
from tests.worlds.streams.language import Event, deliveries_of, events, writes

KINDS = {0: "open", 1: "row", 2: "watermark", 5: "gap", 7: "close"}
SECOND = 1_000_000_000
OUTCOMES = ("ok", "fail", "info")


def records(log: str, source: str) -> list[Record]:
    """What a run would have recorded of them: keys by their letters, one event a second."""
    result: list[Record] = []
    for op in sorted({write.op for write in writes(source)}):
        own = [write for write in writes(source) if write.op == op]
        mops = tuple(MicroOp("append", chr(ord("a") + write.key), write.value) for write in own)
        result.append(Invoke(op, op, op, op, "txn", None, mops))
        position = None if own[0].position > SECOND else own[0].position
        txn = None if own[0].txn > SECOND else own[0].txn
        result.append(Complete(op, op, OUTCOMES[own[0].outcome], None, mops, commit_ts=position, txn=txn))  # type: ignore[arg-type]  # One of its three values.
    of = deliveries_of(events(log))
    return result + [_recorded(n, event, int(of.ns[n])) for n, event in enumerate(events(log))]


def _recorded(number: int, event: Event, ns: int) -> StreamEvent:
    def known(value: int) -> int | None:
        return None if value > SECOND else value

    key = None if event.key > SECOND else chr(ord("a") + event.key)
    what = (None, key, known(event.value), known(event.position), known(event.ordinal), None, known(event.unit))
    return StreamEvent(ns, f"s{event.subscriber}", event.session, number, KINDS[event.kind], *what)


def told(folder: Path, log: str, source: str, reads: str = "", **changes: object) -> dict[str, Finding]:
    """The findings by anomaly. `reads` is the final read of x, as in "12"."""
    written = records(log, source)
    if reads:
        index = len({write.op for write in writes(source)})
        read = (MicroOp("r", "x", [int(digit) for digit in reads]),)
        written.append(Invoke(index, index, index, index, "txn", None, (MicroOp("r", "x"),)))
        written.append(Complete(index, index, "ok", None, read))
    write_history(written, folder / "history")
    name = Dictionary(folder / "history").text
    judgement = check(
        folder / "history", Context(engine=LocalEngine(2), contract=contract(**(EPOCHS | changes)), name=Names(name))
    )
    return {finding.anomaly: finding for finding in judgement.findings}


@pytest.mark.parametrize(
    ("anomaly", "log", "source", "sentence"),
    [
        (
            "order-inversion",
            "open@0 x=1@5 x=2@4",
            "",
            "Value 2 of key x reached s1 1.0 s after value 1 of key x, but its position 4 is below 5: they came in "
            "the wrong order.",
        ),
        (
            "order-inversion",
            "open@0 x=2@4 x=1@4",
            "ok@4 x=1; ok@4 x=2",
            "Value 1 of key x reached s1 1.0 s after value 2 of key x: both are at position 4, where the source "
            "wrote them the other way "
            "round.",
        ),
        (
            "duplicate-event",
            "open@0 x=1@4 w@4 x=1@4",
            "",
            "Value 1 of key x at position 4 reached s1 again, 2.0 s after the previous delivery.",
        ),
        (
            "phantom-event",
            "open@0 x=1@4",
            "ok@4 y=1",
            "Value 1 of key x at position 4 reached s1, but no operation ever wrote it.",
        ),
        (
            "phantom-event",
            "open@0 x=1@4",
            "ok@4 y=1; fail x=1",
            "Value 1 of key x at position 4 reached s1, but operation 1, which wrote it, certainly failed.",
        ),
        (
            "wrong-value",
            "open@0 x=1@4 u7*1",
            "ok@4t7 x=1 x=2",
            "Value 1 of key x at position 4 reached s1, but operation 0, whose row it is, wrote value 2.",
        ),
        (
            "wrong-value",
            "open@0 y=3@4 u7*1",
            "ok@4t7 x=1; ok@4t8 y=3",
            "Value 3 of key y at position 4 reached s1, but operation 0, whose row it is, wrote nothing to key y.",
        ),
        (
            "silent-gap",
            "open@0 w@5",
            "ok@4 x=1",
            "Value 1 of key x at position 4 (operation 0) never reached s1, and no gap marker said so before "
            "watermark 5.",
        ),
        (
            "state-mismatch",
            "open@0 x=2@4 x=1@4 w@4",
            "ok@4 x=1; ok@4 x=2",
            "At watermark 4 s1 has built value 1 of key x from its stream, where the source had value 2 from "
            "position 4 on "
            "(operation 1), which is newer.",
        ),
        (
            "split-view",
            "s1 open@0 x=1@4 w@4 s2/3 open@0 w@4",
            "",
            "s1 (session 1) and s2 (session 3) completed position 4, but only s1 (session 1) received value 1 of "
            "key x there.",
        ),
        (
            "split-view",
            "s1 open@0 w@4 s2 open@0 x=1@4 w@4",
            "",
            "s1 (session 1) and s2 (session 1) completed position 4, but only s2 (session 1) received value 1 of "
            "key x there.",
        ),
        (
            "split-view",
            "s1 open@0 y=3@4 x=1@4 x=2@4 w@4 s2 open@0 y=3@4 x=2@4 x=1@4 w@4",
            "",
            "s1 (session 1) and s2 (session 1) completed position 4, but s1 (session 1) received value 1 of key x "
            "there before "
            "value 2 of key x, the other after it.",
        ),
    ],
)
def test_a_finding_says_what_came_where_and_what_is_wrong(
    tmp_path: Path, anomaly: str, log: str, source: str, sentence: str
) -> None:
    reads = "12" if "ok@4 x=2" in source else ""
    finding = told(tmp_path, log, source, reads)[anomaly]
    assert finding.sentence == sentence
    assert finding.count == 1
    assert len(finding.events) > 0


def test_a_repetition_in_a_later_session_names_both(tmp_path: Path) -> None:
    log = "s1/1 open@0 x=1@4 s1/2 open@4 x=1@4"
    finding = told(tmp_path, log, "", wm_scope="subscriber")["duplicate-event"]
    assert finding.sentence == (
        "Value 1 of key x at position 4 reached s1 again in session 2, having come in 1, 2.0 s after the previous "
        "delivery."
    )


def test_fingerprints_tell_findings_apart(tmp_path: Path) -> None:
    one = told(tmp_path / "one", "open@0 x=1@5 x=2@4", "")["order-inversion"]
    other = told(tmp_path / "other", "open@0 x=1@5 x=3@4", "")["order-inversion"]
    again = told(tmp_path / "again", "open@0 w@1 x=1@5 x=2@4", "")["order-inversion"]
    assert one.fingerprint != other.fingerprint
    assert one.fingerprint == again.fingerprint
