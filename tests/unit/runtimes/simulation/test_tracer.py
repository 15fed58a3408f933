"""A trace tells everything, and watching changes nothing."""

from collections import Counter
from pathlib import Path

import msgspec
import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.core.machine import Context, Durable, Event, Settings, TimerFired
from harness.core.record import Evidence, Mark
from harness.core.seams import Node
from harness.core.trace import HANDLED, SECOND, TraceRecord, Window, window
from harness.record.journal import history_sha256
from harness.runtimes.simulation.child import simulate, unseed
from harness.runtimes.simulation.loop import VirtualLoop
from harness.runtimes.simulation.tracer import Tracer
from harness.runtimes.simulation.world import World
from harness.scenario.consent import installed
from harness.scenario.registry import load_machines
from harness.scenario.scenario import Scenario, decide
from nemesis.plan import Step
from tests.scenario.simulation.toy import Toy
from tests.unit.runtimes.simulation.small import MS, A, Actor, B, Text

SCENARIO = Scenario(cluster="tutorial", seed=7, time_s=6, rate=60)
ALL = Window(from_ns=0, to_ns=10**18)


class Traced:
    """A run of the tutorial, its trace of one window, and what it came to."""

    def __init__(self, path: Path, moments: Window | None) -> None:
        evidence: list[Evidence] = []
        cluster = load_machines(installed("tutorial"))
        decided = decide(SCENARIO, cluster)
        if moments is None:
            _, world = simulate(SCENARIO, cluster, decided, evidence.append)
        else:
            with Tracer(moments, path) as tracer:
                _, world = simulate(SCENARIO, cluster, decided, evidence.append, tracer)
        self.evidence, self.sha256 = evidence, history_sha256(evidence)
        self.unseed = unseed(self.sha256, world)
        self.lines = lines_of(path) if moments is not None else []

    def of(self, *what: str) -> list[TraceRecord]:
        return [line for line in self.lines if line.what in what]

    def numbers(self, what: str) -> list[int | None]:
        return [line.number for line in self.of(what)]


def lines_of(path: Path) -> list[TraceRecord]:
    return [msgspec.json.decode(line, type=TraceRecord) for line in path.read_bytes().splitlines()]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return Traced(tmp_path_factory.mktemp("whole") / "trace.jsonl", ALL)


@pytest.fixture(scope="module")
def part(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    return Traced(tmp_path_factory.mktemp("part") / "trace.jsonl", Window(from_ns=2 * SECOND, to_ns=3 * SECOND))


def test_a_traced_run_is_the_run_itself(whole: Traced, part: Traced, tmp_path: Path) -> None:
    plain = Traced(tmp_path / "none", None)
    assert whole.unseed == part.unseed == plain.unseed
    assert whole.sha256 == part.sha256 == plain.sha256


def test_every_message_is_sent_once_and_ends_at_most_once(whole: Traced) -> None:
    sent = whole.numbers("send")
    ended = [*whole.numbers("deliver"), *whole.numbers("lost")]
    assert len(set(sent)) == len(sent) > 3000
    assert max(Counter(ended).values()) == 1
    assert set(ended) <= set(sent)
    assert len(whole.of("lost")) > 0  # Crashes and partitions took some.
    assert set(whole.numbers("handle")) <= set(whole.numbers("deliver"))


def test_a_delivery_has_the_type_and_the_ends_of_its_sending(whole: Traced) -> None:
    sent = {line.number: line for line in whole.of("send")}
    for line in whole.of("deliver", "lost", "handle"):
        origin = sent[line.number]
        assert (line.peer, line.node, line.type) == (origin.node, origin.peer, origin.type)
        assert line.ns >= origin.ns + (100_000 if line.what == "deliver" else 0)
        assert isinstance(origin.fields, dict)


def test_messages_of_one_connection_are_delivered_in_the_order_in_which_they_were_sent(whole: Traced) -> None:
    by_link: dict[tuple[str | None, str | None], list[int]] = {}
    for line in whole.of("deliver"):
        by_link.setdefault((line.peer, line.node), []).append(line.number or 0)
    assert all(numbers == sorted(numbers) for numbers in by_link.values())


def test_every_event_that_a_node_handled_is_there(whole: Traced) -> None:
    (final,) = [record for record in whole.evidence if isinstance(record, Mark) and record.phase == "final"]
    counts = Counter(line.node for line in whole.of(*HANDLED) if line.ns <= final.time_ns)
    late = Counter(line.node for line in whole.of(*HANDLED) if line.ns == final.time_ns)
    for node, handled in final.handled.items():
        assert counts[node] - late[node] <= handled <= counts[node]  # Of the final moment, some come after the mark.


def test_all_that_the_journal_holds_is_there(whole: Traced) -> None:
    of_the_journal = whole.of("invoke", "complete", "event", "fault", "probe", "state", "mark")
    assert [line.ns for line in of_the_journal] == [record.time_ns for record in whole.evidence]


def test_a_node_that_crashed_starts_before_it_does_anything_again(whole: Traced) -> None:
    down: set[str | None] = {"c1", "n1", "n2", "s1", "s2"}
    crashes = 0
    for line in whole.lines:
        if line.what == "start":
            down.remove(line.node)
        elif line.what == "crash":
            crashes += 1
            down.add(line.node)
        elif line.what in (*HANDLED, "append", "put", "sync", "durable", "event"):
            assert line.node not in down, line
    assert crashes > 0


def test_what_is_durable_was_written_and_synced_before(whole: Traced) -> None:
    written, asked = Counter[str | None](), dict[str | None, list[int]]()
    for line in whole.lines:
        if line.what in ("append", "put", "truncate"):
            assert line.number is not None
            written[line.node] = line.number
        elif line.what == "sync":
            assert line.number == written[line.node]
            asked.setdefault(line.node, []).append(line.number)
        elif line.what == "durable":
            assert line.number in asked[line.node]
    assert sum(map(len, asked.values())) > 500


def test_a_window_holds_its_moments_and_both_ends_of_what_touches_them(whole: Traced, part: Traced) -> None:
    inside = [line for line in whole.lines if 2 * SECOND <= line.ns <= 3 * SECOND]
    assert [line for line in part.lines if 2 * SECOND <= line.ns <= 3 * SECOND] == inside
    outside = [line for line in part.lines if not 2 * SECOND <= line.ns <= 3 * SECOND]
    touching = {line.number for line in inside if line.what in ("send", "deliver", "handle", "lost")}
    for line in outside:
        lasts = line.what in ("crash", "pause") or (line.what, line.note) == ("fault", "begin")
        assert lasts or line.number in touching
    sent = set(part.numbers("send"))
    assert {*part.numbers("deliver"), *part.numbers("lost"), *part.numbers("handle")} <= sent


def sent_to_b(
    path: Path, kind: str, fault: Step, *, count: int, at_ms: int = 10, moments: Window = ALL
) -> list[TraceRecord]:
    """The trace of a world in which a sends b `count` messages at `at_ms`; the fault lasts from 11 to 61 ms."""

    def starts(_: Durable, context: Context) -> None:
        context.set_timer("send", at_ms * MS)

    def sends(event: Event, context: Context) -> None:
        if isinstance(event, TimerFired):
            for number in range(count):
                context.send(B, Text(number))

    toy = Toy(
        machines={A: lambda: Actor(sends, starts), B: Actor},
        nodes=(Node(A, "node"), Node(B, "node")),
        links={("node", "node"): kind},
        points=(),
    )
    with Tracer(moments, path) as tracer:
        world = World(toy, Settings(), Draw(1), lambda _: None, tracer)
        world.start()

        async def main() -> None:
            await world.clock.sleep_ns(11 * MS)
            await world.faults.apply(fault)
            await world.clock.sleep_ns(50 * MS)
            await world.faults.undo(fault)
            await world.clock.sleep_ns(100 * MS)

        world.loop.run(main())
    return lines_of(path)


def fault(kind: str, *targets: str, **args: int | str) -> Step:
    return Step(fault=kind, package="partition", at_ns=0, until_ns=1000 * MS, targets=targets, args=args)


def test_a_cut_loses_what_is_under_way_at_the_moment_of_the_cut(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "fifo", fault("cut", "a>b"), count=100)
    counts = Counter(line.what for line in lines)
    assert counts["send"] == 100
    assert 0 < counts["deliver"] == counts["handle"] < 100
    assert counts["deliver"] + counts["lost"] == 100
    assert {line.ns for line in lines if line.what == "lost"} == {11 * MS}
    assert {(line.node, line.peer) for line in lines if line.what == "closed"} == {("a", "b"), ("b", "a")}


def test_a_crash_loses_what_is_under_way_and_forgets_what_has_arrived(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "fifo", fault("crash", "b"), count=1100)
    counts = Counter(line.what for line in lines)
    assert counts["deliver"] + counts["lost"] == counts["send"] == 1100
    assert [line.ns for line in lines if line.what == "crash"] == [11 * MS]
    assert [line.ns for line in lines if line.what == "start" and line.node == "b"] == [0, 61 * MS]


def test_a_pause_keeps_what_arrives_until_it_ends(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "fifo", fault("pause", "b"), count=20)
    (begin,) = [line.ns for line in lines if line.what == "pause"]
    (end,) = [line.ns for line in lines if line.what == "resume"]
    assert (begin, end) == (11 * MS, 61 * MS)
    arrived = {line.number: line.ns for line in lines if line.what == "deliver"}
    handled = {line.number: line.ns for line in lines if line.what == "handle"}
    assert len(handled) == len(arrived) == 20
    waited = [number for number, ns in arrived.items() if ns > begin]
    assert len(waited) > 5
    assert all(handled[number] == end for number in waited)


def test_a_pause_that_began_before_the_window_is_told_first(tmp_path: Path) -> None:
    moments = Window(from_ns=30 * MS, to_ns=90 * MS)
    lines = sent_to_b(tmp_path / "t", "fifo", fault("pause", "b"), count=20, moments=moments)
    assert (lines[0].what, lines[0].ns) == ("pause", 11 * MS)
    places = {(line.what, line.number): place for place, line in enumerate(lines) if line.number is not None}
    handled = [number for what, number in places if what == "handle"]
    assert len(handled) > 5  # Sent and arrived before the window, handled in it.
    assert all(places["send", each] < places["deliver", each] < places["handle", each] for each in handled)
    assert len(places) == 3 * len(handled)


def test_a_doubled_datagram_arrives_twice_under_one_number(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "datagram", fault("duplicate", "a>b", permille=1000), count=5, at_ms=20)
    assert Counter(line.what for line in lines if line.number is not None) == {"send": 5, "deliver": 10, "handle": 10}
    assert set(Counter(line.number for line in lines if line.what == "handle").values()) == {2}


def test_a_dropped_datagram_is_lost(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "datagram", fault("drop", "a>b", permille=1000), count=5, at_ms=20)
    assert Counter(line.what for line in lines if line.number is not None) == {"send": 5, "lost": 5}


def test_datagrams_that_found_no_room_are_lost_at_their_sending(tmp_path: Path) -> None:
    lines = sent_to_b(tmp_path / "t", "datagram", fault("pause", "b"), count=400, at_ms=20)
    counts = Counter(line.what for line in lines)
    assert counts["send"] == 400
    assert counts["deliver"] + counts["lost"] == 400
    assert counts["lost"] > 100  # A receiver leaves 128 unread.
    assert {line.ns for line in lines if line.what == "lost"} == {20 * MS}


def test_what_json_cannot_hold_is_written_as_text(tmp_path: Path) -> None:
    with Tracer(ALL, tmp_path / "t") as tracer:
        tracer.watch(VirtualLoop())
        tracer.note(A, "put", type_="huge", fields=Text(2**80))
        tracer.note(A, "put", type_="odd", fields=Text(1, "\ud800"))
        tracer.note(A, "put", type_="object", fields=object)
    huge, odd, thing = lines_of(tmp_path / "t")
    assert str(2**80) in str(huge.fields)
    assert "ud800" in str(odd.fields)
    assert "object" in str(thing.fields)


def test_a_range_is_read_exactly() -> None:
    assert window("12.5..13") == Window(from_ns=12_500_000_000, to_ns=13 * SECOND)
    assert window("0..0.000000001") == Window(from_ns=0, to_ns=1)
    assert str(window("12.50..13.0")) == "12.5..13"
    assert window(str(window("3.000000007..10"))) == Window(from_ns=3_000_000_007, to_ns=10 * SECOND)


@pytest.mark.parametrize(
    "text", ["", "12", "12..", "..3", "a..b", "1...2", "-1..2", "5..5", "6..5", "nan..5", "1..inf", "0.0000000001..1"]
)
def test_what_is_no_range_is_refused(text: str) -> None:
    with pytest.raises(ScenarioError, match=r"--trace .*: must"):
        window(text)
