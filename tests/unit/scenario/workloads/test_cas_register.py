"""The load of registers: what it asks, of which keys, and what it reads at the end."""

from collections import Counter

from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import Json
from harness.scenario.workloads import WORKLOADS, WorkloadOptions
from harness.scenario.workloads.cas_register import LIFE, register

OPTIONS = WorkloadOptions(seed=3, rate_per_s=100, duration_ns=20_000_000_000, threads=5, key_count=6)
IDLE = Context(time_ns=0, free=(0,), processes=(0,))


def planned(generator: Generator, count: int | None = None) -> list[Planned]:
    result: list[Planned] = []
    answer = generator.op(IDLE)
    while answer is not None and isinstance(answer[0], Planned) and len(result) != count:
        result.append(answer[0])
        answer = answer[1].op(IDLE)
    return result


def key_of(value: Json) -> Json:
    assert isinstance(value, list)
    return value[0]


def test_each_sort_of_operation_has_its_share() -> None:
    load = planned(WORKLOADS["cas-register"](OPTIONS).load)
    counts = Counter(each.f for each in load)
    assert 1800 < len(load) < 2200
    assert set(counts) == {"txn", "read", "write", "cas"}
    assert all(counts[f] > 0.09 * len(load) for f in counts)


def test_an_operation_says_which_register_and_what() -> None:
    for each in planned(WORKLOADS["cas-register"](OPTIONS).load):
        match each.f, each.value:
            case "read", [str(), None]:
                pass
            case "write", [str(), int(value)]:
                assert 0 <= value < 5
            case "cas", [str(), [int(old), int(new)]]:
                assert 0 <= old < 5
                assert 0 <= new < 5
            case "txn", None:
                assert [mop.f for mop in each.mops or ()] == ["append", "append"]
            case _:
                raise AssertionError(each)


def test_registers_give_way_to_new_ones() -> None:
    load = planned(WORKLOADS["cas-register"](OPTIONS).load)
    keys = [key_of(each.value) for each in load if each.f != "txn"]
    assert [keys[0] in {register(0, place) for place in range(6)}, register(0, 0) in keys[-LIFE:]] == [True, False]
    assert max(Counter(map(str, keys)).values()) < 2 * LIFE


def test_at_the_end_everything_that_was_asked_for_is_read() -> None:
    workload = WORKLOADS["cas-register"](OPTIONS)
    load, final = planned(workload.load), planned(workload.final, 200)
    read = {key_of(each.value) for each in final if each.f == "read"}
    assert read >= {key_of(each.value) for each in load if each.f != "txn"}
    lists = {mop.key for each in final for mop in each.mops or ()}
    assert lists >= {mop.key for each in load for mop in each.mops or ()}


def test_one_seed_gives_one_load_and_another_seed_another() -> None:
    first = planned(WORKLOADS["cas-register"](OPTIONS).load)
    assert planned(WORKLOADS["cas-register"](OPTIONS).load) == first
    other = WorkloadOptions(seed=4, rate_per_s=100, duration_ns=20_000_000_000, threads=5, key_count=6)
    assert planned(WORKLOADS["cas-register"](other).load) != first
