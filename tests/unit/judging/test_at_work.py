"""Checks at work at once: the one that began first is shown, and an interrupt waits for none of them."""

import signal
import threading
import time

import pytest

from harness.judging.at_work import AtWork, of_all


def test_the_check_that_began_first_is_shown_until_it_ends() -> None:
    shown: list[str] = []
    at_work = AtWork(shown.append)
    first, second = at_work.on("first"), at_work.on("second")
    with second:
        with first:
            pass
        assert shown == ["judging: second"] * 3
    shown.clear()
    with at_work.on("one"):
        other = at_work.on("other")
        other.__enter__()
    assert shown == ["judging: one", "judging: one", "judging: other"]
    other.__exit__(None, None, None)
    assert len(shown) == 3


@pytest.mark.parametrize("at_once", [1, 2, 3])
def test_results_are_in_the_order_of_the_checks(at_once: int) -> None:
    assert of_all(len, ["a", "", "abc", "ab"], at_once) == [1, 0, 3, 2]


def test_an_interrupt_waits_for_no_check_at_work_and_begins_no_other() -> None:
    begun, may_end, ended = threading.Barrier(3), threading.Event(), list[int]()

    def judged(check: int) -> None:
        begun.wait(60)
        may_end.wait(60)
        ended.append(check)

    def interrupt() -> None:
        begun.wait(60)
        time.sleep(0.3)  # A signal just before the main thread waits would be noticed only after its wait.
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            of_all(judged, [0, 1, 2, 3], 2)
        assert ended == []
    finally:
        may_end.set()
    assert begun.n_waiting == 0  # The third and the fourth have not begun.


def test_a_check_that_raises_is_raised_once_the_others_have_ended() -> None:
    ended: list[str] = []

    def judged(check: str) -> None:
        if check == "broken":
            raise MemoryError
        ended.append(check)

    with pytest.raises(MemoryError):
        of_all(judged, ["fine", "broken"], 2)
    assert ended == ["fine"]
