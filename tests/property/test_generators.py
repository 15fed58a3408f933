"""Laws that hold for every generator, however it is composed."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from harness.core.generators.combinators import (
    Counted,
    Delay,
    EachThread,
    Filter,
    FlipFlop,
    Limit,
    Mix,
    Phases,
    Repeat,
    Reserve,
    Stagger,
    TimeLimit,
)
from harness.core.generators.dice import Dice
from harness.core.generators.generator import Generator
from harness.core.generators.until_ok import EachUntilOk, UntilOk
from harness.core.record import Invoke
from harness.core.seams import Invocation
from tests.amount import count
from tests.unit.generator_simulator import (
    MS,
    Clients,
    Trace,
    imperfect,
    invocation,
    perfect,
    perfect_info,
    quick,
    simulate,
)

DICE = st.builds(Dice.named, st.integers(0, 5), st.just("property"))
SOURCES: st.SearchStrategy[Generator] = st.sampled_from(
    [
        Limit(Repeat(invocation("r")), 3),
        Limit(Counted(lambda number: Invocation(f="n", value=number)), 7),
        Limit(EachUntilOk((invocation("a"), invocation("b")), pause_ns=15 * MS), 6),
    ]
)


def compositions(inner: st.SearchStrategy[Generator]) -> st.SearchStrategy[Generator]:
    duration_ns = st.integers(1, 60 * MS)
    some = st.lists(inner, min_size=1, max_size=3).map(tuple)
    return st.one_of(
        st.builds(Limit, inner, st.integers(0, 9)),
        st.builds(TimeLimit, inner, duration_ns),
        st.builds(Stagger, inner, st.integers(0, 20 * MS), DICE),
        st.builds(Delay, inner, st.integers(0, 20 * MS)),
        st.builds(Mix, some, DICE),
        st.builds(FlipFlop, inner, inner),
        # Of sources only: UntilOk would offer again and again what a filter refuses, until the filter gives up.
        st.builds(Filter, SOURCES, st.just(lambda planned: planned.value != 3)),
        st.builds(Phases, some),
        st.builds(EachThread, inner),
        st.builds(lambda first, second: Reserve((first, second), (1,)), inner, inner),
        st.builds(UntilOk, inner),
    )


GENERATORS: st.SearchStrategy[Generator] = st.recursive(SOURCES, compositions, max_leaves=5)
CLIENTS = st.sampled_from([quick, perfect, perfect_info, imperfect])


def traced(generator: Generator, clients: Clients, threads: int = 3) -> Trace:
    trace = simulate(generator, clients, threads=threads)  # Purity is checked there, at every question.
    assert trace.is_exhausted
    return trace


@settings(max_examples=count(75))
@given(GENERATORS, CLIENTS, st.integers(2, 4))
def test_a_generator_of_finite_sources_ends_and_serves_a_thread_one_operation_at_a_time(
    generator: Generator, clients: Clients, threads: int
) -> None:
    trace = traced(generator, clients, threads)
    busy: set[int] = set()
    for event in trace.events:
        if isinstance(event, Invoke):
            assert event.intended_ns <= event.time_ns
            assert trace.threads[event.index] not in busy
            busy.add(trace.threads[event.index])
        else:
            busy.remove(trace.threads[event.index])
    assert busy == set()


@settings(max_examples=count(50))
@given(GENERATORS, CLIENTS)
def test_the_same_generator_and_clients_give_the_same_events(generator: Generator, clients: Clients) -> None:
    assert traced(generator, clients).events == traced(generator, clients).events


@settings(max_examples=count(50))
@given(GENERATORS, CLIENTS, st.integers(1, 50 * MS))
def test_a_time_limit_is_respected_whatever_is_inside(generator: Generator, clients: Clients, limit_ns: int) -> None:
    invokes = traced(TimeLimit(generator, limit_ns), clients).invokes
    # A generator whose first plan is for later has its time counted from when that plan is carried out.
    start_ns = invokes[0].time_ns if invokes else 0
    assert all(invoke.time_ns < start_ns + limit_ns for invoke in invokes)


@settings(max_examples=count(50))
@given(GENERATORS, CLIENTS, st.integers(1, 30 * MS))
def test_a_delay_is_kept_whatever_is_inside(generator: Generator, clients: Clients, delay_ns: int) -> None:
    times = [invoke.time_ns for invoke in traced(Delay(generator, delay_ns), clients).invokes]
    assert all(later - earlier >= delay_ns for earlier, later in pairwise(times))


@settings(max_examples=count(50))
@given(GENERATORS, GENERATORS, CLIENTS)
def test_phases_never_overlap_whatever_is_inside(first: Generator, second: Generator, clients: Clients) -> None:
    alone = len(traced(Phases((first,)), clients).invokes)
    trace = traced(Phases((first, second)), clients)
    ends_ns = [c.time_ns for c in trace.completes if c.index < alone]
    assert all(invoke.time_ns >= max(ends_ns, default=0) for invoke in trace.invokes[alone:])


@settings(max_examples=count(50))
@given(GENERATORS, CLIENTS)
def test_until_ok_sees_one_success_and_those_under_way(generator: Generator, clients: Clients) -> None:
    trace = traced(UntilOk(generator), clients)
    first_ok = next((at for at, event in enumerate(trace.events) if getattr(event, "outcome", "") == "ok"), None)
    if first_ok is not None:
        assert all(not isinstance(event, Invoke) for event in trace.events[first_ok:])
