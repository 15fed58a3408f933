"""Fenced logs: one writer, none before it, nothing lost that was acknowledged."""

import pytest

from clusters.parts.fenced_log import Add, Added, Fenced, FencedLogs, LogWrite, Look, Looked, Open, Opened


def test_who_opens_a_log_fences_those_who_had() -> None:
    logs = FencedLogs(())
    assert logs.serve(Open("a", 1))[0] == Opened("a", 1, 1, ())
    assert logs.serve(Add("a", 1, 0, (b"x",)))[0] == Added("a", 1, 1)
    assert logs.serve(Open("a", 2))[0] == Opened("a", 2, 2, (b"x",))
    assert logs.serve(Add("a", 1, 1, (b"y",))) == (Fenced("a", 1), None)
    assert logs.serve(Add("a", 1, 1, ())) == (Fenced("a", 1), None)
    assert logs.serve(Add("a", 2, 1, (b"z",)))[0] == Added("a", 2, 2)


def test_an_older_claim_opens_nothing_and_the_same_one_fences_its_earlier_life() -> None:
    logs = FencedLogs(())
    logs.serve(Open("a", 2))
    assert logs.serve(Open("a", 1)) == (Fenced("a", 0), None)
    assert logs.serve(Open("a", 2))[0] == Opened("a", 2, 2, ())
    assert logs.serve(Add("a", 1, 0, (b"x",)))[0] == Fenced("a", 1)


def test_records_leave_no_hole_and_come_once() -> None:
    logs = FencedLogs(())
    logs.serve(Open("a", 1))
    assert isinstance(logs.serve(Add("a", 1, 1, (b"x",)))[0], Fenced)
    logs.serve(Add("a", 1, 0, (b"x",)))
    assert isinstance(logs.serve(Add("a", 1, 0, (b"y",)))[0], Fenced)
    assert logs.serve(Open("a", 1))[0] == Opened("a", 1, 2, (b"x",))


def test_the_same_request_again_is_acknowledged_and_changes_nothing() -> None:
    logs = FencedLogs(())
    logs.serve(Open("a", 1))
    logs.serve(Add("a", 1, 0, (b"x", b"y")))
    assert logs.serve(Add("a", 1, 0, (b"x", b"y"))) == (Added("a", 1, 2), None)
    assert logs.serve(Add("a", 1, 1, (b"y",))) == (Added("a", 1, 2), None)
    logs.serve(Open("a", 1))
    assert logs.serve(Add("a", 1, 0, (b"x", b"y")))[0] == Fenced("a", 1)


def test_a_reader_sees_the_records_and_fences_no_writer() -> None:
    logs = FencedLogs(())
    logs.serve(Open("a", 1))
    logs.serve(Add("a", 1, 0, (b"x",)))
    assert logs.serve(Look("a")) == (Looked("a", 1, (b"x",)), None)
    assert logs.serve(Add("a", 1, 1, (b"y",)))[0] == Added("a", 1, 2)


def test_logs_are_apart() -> None:
    logs = FencedLogs(())
    logs.serve(Open("a", 5))
    logs.serve(Add("a", 1, 0, (b"x",)))
    assert logs.serve(Open("b", 1))[0] == Opened("b", 1, 1, ())


@pytest.mark.parametrize("kept", range(4))
def test_after_a_restart_the_log_is_what_was_durable(kept: int) -> None:
    disk: list[LogWrite] = []
    logs = FencedLogs(())
    for request in (Open("a", 3), Add("a", 1, 0, (b"x", b"y")), Add("a", 1, 2, (b"z",))):
        _, write = logs.serve(request)
        assert write is not None
        disk.append(write)
    again = FencedLogs(disk[:kept])
    expected = ((), (), (b"x", b"y"), (b"x", b"y", b"z"))[kept]
    assert again.serve(Open("a", 3))[0] == Opened("a", 3, 1 if kept == 0 else 2, expected)
