"""Facts: each computed once, unless they are not kept."""

from collections.abc import Callable
from copy import copy

import pytest

from checkers.columns.facts import Facts


def counter() -> Callable[[], int]:
    """A function whose result is the number of its calls."""
    calls: list[None] = []

    def count() -> int:
        calls.append(None)
        return len(calls)

    return count


def test_a_fact_is_computed_once() -> None:
    facts, make = Facts(), counter()
    assert [facts.of("fact", make), facts.of("fact", make), facts.of("other", make)] == [1, 1, 2]


def test_what_is_not_kept_is_computed_each_time() -> None:
    facts, make = Facts(is_kept=False), counter()
    assert [facts.of("fact", make), facts.of("fact", make)] == [1, 2]


@pytest.mark.parametrize("is_kept", [True, False])
def test_another_process_gets_an_empty_copy_that_keeps_as_much(is_kept: bool) -> None:
    facts, make = Facts(is_kept=is_kept), counter()
    facts.of("fact", make)
    other = copy(facts)
    assert other.is_copy
    assert [other.of("fact", make), other.of("fact", make)] == ([2, 2] if is_kept else [2, 3])
