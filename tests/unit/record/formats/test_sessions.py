from pathlib import Path

from harness.core.record import Complete, Evidence, Fault, Invoke
from harness.record.formats.edn.exchange import read_edn_history, write_edn_history
from harness.record.formats.jsonl import read_jsonl, write_jsonl
from harness.record.formats.sessions import OVERLAPPING, in_sessions


def history(signs: str) -> list[Evidence]:
    """Operations of process 0, each named by a letter: it begins at the first of its two, and ends at the second."""
    found: list[Evidence] = []
    begun: list[str] = []
    for time, sign in enumerate(signs):
        if sign in begun:
            found.append(Complete(begun.index(sign), time, "ok", sign))
        else:
            found.append(Invoke(len(begun), time, time, 0, "write", sign))
            begun.append(sign)
    return found


def sessions(records: list[Evidence]) -> list[int]:
    return [each.process for each in records if isinstance(each, Invoke)]


def test_a_process_that_does_one_thing_at_a_time_keeps_its_number() -> None:
    assert list(in_sessions(history("aabbcc"))) == history("aabbcc")


def test_operations_that_overlap_go_to_sessions_of_their_own() -> None:
    assert sessions(list(in_sessions(history("aabcbc")))) == [0, 0, OVERLAPPING]
    assert sessions(list(in_sessions(history("abcabc")))) == [0, OVERLAPPING, OVERLAPPING + 1]


def test_an_operation_follows_the_last_one_that_ended_before_it() -> None:
    assert sessions(list(in_sessions(history("abbacdcd")))) == [0, OVERLAPPING, 0, OVERLAPPING]
    assert sessions(list(in_sessions(history("abbacc")))) == [0, OVERLAPPING, 0]
    assert sessions(list(in_sessions(history("abaccb")))) == [0, OVERLAPPING, 0]


def test_an_operation_that_never_ends_keeps_its_session() -> None:
    assert sessions(list(in_sessions(history("abbcc")))) == [0, OVERLAPPING, OVERLAPPING]


def test_what_is_no_operation_stays_as_it_is() -> None:
    others: list[Evidence] = [Fault(1, 0, "begin", "pause", ("n1",)), Complete(7, 1, "ok")]
    assert list(in_sessions(others)) == others


def test_processes_are_split_alike_whatever_the_format(tmp_path: Path) -> None:
    for signs in ("aabcbc", "abaccb", "abbacdcd", "abcadbecde"):
        write_edn_history(history(signs), tmp_path / "history.edn")
        write_jsonl(history(signs), tmp_path / "history.jsonl")
        assert list(read_edn_history(tmp_path / "history.edn")) == list(read_jsonl(tmp_path / "history.jsonl"))
