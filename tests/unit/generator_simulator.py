"""Runs a generator against clients that are functions, in virtual time, and holds it to its laws at every question."""

from collections.abc import Callable
from dataclasses import dataclass, field

from harness.core.generators.combinators import Event
from harness.core.generators.generator import Context, Generator, Planned
from harness.core.record import Complete, Invoke, Outcome
from harness.core.seams import Invocation

MS = 1_000_000
LATENCY_NS = 10 * MS
Clients = Callable[[Invoke], tuple[int, Outcome]]


def quick(invoke: Invoke) -> tuple[int, Outcome]:
    """Every operation succeeds at once."""
    return 0, "ok"


def perfect(invoke: Invoke) -> tuple[int, Outcome]:
    """Every operation succeeds after 10 ms."""
    return LATENCY_NS, "ok"


def perfect_info(invoke: Invoke) -> tuple[int, Outcome]:
    """Every operation ends after 10 ms, nobody knows how."""
    return LATENCY_NS, "info"


def imperfect(invoke: Invoke) -> tuple[int, Outcome]:
    """Operations succeed, fail and end as info in turn, after 10, 20 and 30 ms."""
    outcomes: tuple[Outcome, ...] = ("ok", "fail", "info")
    return LATENCY_NS * (1 + invoke.index % 3), outcomes[invoke.index % 3]


@dataclass(slots=True)
class Trace:
    """What came of a simulation: all events in order, the thread of each invocation, and whether it came to an end."""

    events: list[Event] = field(default_factory=list)
    threads: list[int] = field(default_factory=list)
    is_exhausted: bool = False

    @property
    def invokes(self) -> list[Invoke]:
        return [event for event in self.events if isinstance(event, Invoke)]

    @property
    def completes(self) -> list[Complete]:
        return [event for event in self.events if isinstance(event, Complete)]

    @property
    def fs(self) -> list[str]:
        return [invoke.f for invoke in self.invokes]


def simulate(generator: Generator, clients: Clients = perfect, *, threads: int = 3, most: int = 500) -> Trace:
    """The trace of at most `most` invocations. A Planned for later and a Pending are dropped, as rule 1 allows."""
    trace, now_ns = Trace(), 0
    free, processes, next_process = list(range(threads)), list(range(threads)), threads
    running: list[tuple[int, int, int, Outcome]] = []  # When it ends, its index, its thread, and how it ends.
    while len(trace.threads) < most:
        context = Context(now_ns, tuple(free), tuple(processes))
        answer = asked(generator, context)
        if answer is not None and isinstance(answer[0], Planned) and answer[0].time_ns <= now_ns:
            planned = answer[0]
            assert planned.thread in free
            free.remove(planned.thread)
            process = processes[planned.thread]
            invoke = Invoke(
                len(trace.threads), now_ns, planned.time_ns, process, planned.f, planned.value, planned.mops
            )
            trace.events.append(invoke)
            trace.threads.append(planned.thread)
            latency_ns, outcome = clients(invoke)
            running.append((now_ns + latency_ns, invoke.index, planned.thread, outcome))
            generator = answer[1].update(Context(now_ns, tuple(free), tuple(processes)), invoke)
            continue
        if answer is None and not running:
            trace.is_exhausted = True
            return trace
        wakeups = [ends_ns for ends_ns, *_ in running]
        if answer is not None and isinstance(answer[0], Planned):
            wakeups.append(answer[0].time_ns)
        assert wakeups, "the generator waits, and nothing is under way"
        now_ns = min(wakeups)
        for ended in sorted(each for each in running if each[0] <= now_ns):
            running.remove(ended)
            _, index, thread, outcome = ended
            free.append(thread)
            if outcome == "info":
                processes[thread], next_process = next_process, next_process + 1
            complete = Complete(index, now_ns, outcome)
            trace.events.append(complete)
            generator = generator.update(Context(now_ns, tuple(free), tuple(processes)), complete)
    return trace


def asked(generator: Generator, context: Context) -> tuple[object, Generator] | None:
    """The generator's answer. It must be the same twice, and leave the generator as it was."""
    before = repr(generator)
    answer = generator.op(context)
    assert generator.op(context) == answer
    assert repr(generator) == before
    return answer


def invocation(f: str) -> Invocation:
    """An operation that is told by its name."""
    return Invocation(f=f)
