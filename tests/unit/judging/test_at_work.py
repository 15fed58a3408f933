"""Of checks that are at work at once, the one that began first is shown."""

from harness.judging.at_work import AtWork


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
