"""Named streams of integers."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from harness.core.draw import Draw, Stream

SEEDS = st.integers(0, 2**63 - 1)


@given(seed=SEEDS, bound=st.integers(1, 2**40))
def test_a_draw_lies_below_its_bound(seed: int, bound: int) -> None:
    assert 0 <= Stream(seed, "x").below(bound) < bound


@given(seed=SEEDS)
def test_one_draw_more_in_one_stream_moves_no_other(seed: int) -> None:
    alone, beside = Draw(seed), Draw(seed)
    beside.stream("workload").below(10)
    assert [alone.stream("network").below(1000) for _ in range(5)] == [
        beside.stream("network").below(1000) for _ in range(5)
    ]
    assert beside.positions()["workload"] >= 1


@given(seed=SEEDS, items=st.lists(st.integers(), max_size=20))
def test_shuffling_keeps_the_items(seed: int, items: list[int]) -> None:
    assert sorted(Stream(seed, "x").shuffled(items)) == sorted(items)


def test_a_stream_names_itself_when_the_bound_is_wrong() -> None:
    with pytest.raises(ValueError, match="'network': bound 0"):
        Stream(1, "network").below(0)


def test_the_exponential_has_its_mean() -> None:
    stream = Stream(7, "x")
    drawn = [stream.exponential(1_000_000) for _ in range(20_000)]
    assert 970_000 < sum(drawn) / len(drawn) < 1_030_000
    assert min(drawn) >= 0


@given(seed=SEEDS, least=st.integers(0, 10**9), mean=st.integers(0, 10**9))
def test_many_exponentials_are_those_drawn_one_by_one(seed: int, least: int, mean: int) -> None:
    single, many = Stream(seed, "x"), Stream(seed, "x")
    draw = many.exponentials(least, mean)
    assert [draw() for _ in range(20)] == [least + single.exponential(mean) for _ in range(20)]
    assert many.position == single.position == 20


def test_draws_do_not_depend_on_the_hash_seed() -> None:
    code = "from harness.core.draw import Draw; d = Draw(7); print([d.stream(n).below(10**9) for n in 'abc'])"
    outputs = {
        subprocess.run(
            [sys.executable, "-c", code], env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True
        ).stdout
        for seed in ("0", "1", "424242")
    }
    assert len(outputs) == 1
    assert outputs != {""}
