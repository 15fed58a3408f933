"""Laws of fifo links under any sequence of sends, faults and crashes."""

from hypothesis import example, given, settings
from hypothesis import strategies as st

from harness.runtimes.simulation.links.fifo import BUFFER, WINDOW
from harness.runtimes.simulation.links.links import Port
from harness.runtimes.simulation.links.paths import Condition
from tests.amount import count
from tests.unit.runtimes.simulation.small import MS, A, B, Memory, Pair, Text

ACTIONS = (
    "send",
    "burst",
    "cut",
    "reset",
    "limit-data",
    "heal",
    "stall",
    "delay",
    "bandwidth",
    "crash sender",
    "crash receiver",
    "slow",
    "read",
)
Script = list[tuple[int, str]]
SCRIPTS = st.lists(st.tuples(st.integers(0, 12 * MS), st.sampled_from(ACTIONS)), max_size=60)


class Play:
    """Carries a script out on the link from a to b; each message has the number of its connection, as the sender knows
    it, times 10,000 and its place in it. Both ends stay where they are, but for crashes that last no time."""

    def __init__(self, seed: int, script: Script) -> None:
        self.pair = Pair("fifo", seed)
        self.conditions: list[Condition] = []
        self.connections: list[object] = []
        self.sent = 0
        when_ns = 0
        for pause_ns, action in script:
            when_ns += pause_ns
            self.pair.loop.schedule(when_ns, self.act, action)
        self.pair.go(when_ns + 1)
        self.end()

    def act(self, action: str) -> None:
        match action:
            case "send":
                self.send(1)
            case "burst":
                self.send(400)
            case "cut" | "reset" | "stall":
                self.begin(Condition(fault=action))
            case "delay":
                self.begin(Condition(fault=action, latency_ns=2 * MS, jitter_ns=20 * MS))
            case "bandwidth":
                self.begin(Condition(fault=action, bytes_per_s=20_000))
            case "limit-data":
                self.begin(Condition(fault=action, bytes=300))
            case "heal":
                self.heal()
            case "crash sender":
                self.crash(self.pair.port_a)
            case "crash receiver":
                self.crash(self.pair.port_b)
                self.pair.b.unread.clear()
                self.pair.b.seen.append((self.pair.loop.now_ns, "crashed"))
            case "slow":
                self.pair.b.is_slow = True
            case "read":
                self.read()

    def send(self, count: int) -> None:
        for _ in range(count):
            before = self.pair.port_a.outgoing.get(B)
            if before is None:
                before = self.pair.links.dial(self.pair.port_a, B)
                self.connections.append(before)
                self.sent = 0
            self.pair.port_a.send(B, Text(10_000 * len(self.connections) + self.sent))
            self.sent += 1
            assert self.pair.port_a.queued(B, 0) <= BUFFER

    def begin(self, condition: Condition) -> None:
        self.conditions.append(condition)
        self.pair.path.begin(condition)

    def heal(self) -> None:
        for condition in self.conditions:
            self.pair.path.end(condition)

    def crash(self, port: Port) -> None:
        self.pair.links.take_down(port)
        self.pair.links.bring_up(port)

    def read(self) -> None:
        self.pair.b.is_slow = False
        self.pair.b.read_all()

    def end(self) -> None:
        """Heal all, let all arrive, then send one message more, twice: the first may find its connection ended."""
        self.heal()
        self.read()
        for _ in range(2):
            self.pair.go(2000 * MS)
            self.send(1)
        self.pair.go(2000 * MS)


def spans(end: Memory) -> list[list[int]]:
    """The messages that an end received between two pieces of news."""
    found: list[list[int]] = [[]]
    for _, what in end.seen:
        if isinstance(what, int):
            found[-1].append(what)
        else:
            found.append([])
    return found


@settings(max_examples=count(150))
@given(seed=st.integers(0, 2**32), script=SCRIPTS)
# The second connection ends at once, before the receiver has heard of the first one's end.
@example(seed=463129088, script=[(0, "burst"), (0, "limit-data"), (0, "crash sender"), (0, "burst")])
def test_each_connection_delivers_a_prefix_and_is_closed_before_the_next_one_begins(seed: int, script: Script) -> None:
    seen_before: list[int] = []
    for numbers in spans(Play(seed, script).pair.b):
        connections = {number // 10_000 for number in numbers}
        assert len(connections) <= 1, "two connections without a Closed between them"
        assert not connections & set(seen_before), "a connection went on after its Closed"
        assert [number % 10_000 for number in numbers] == list(range(len(numbers))), "no prefix in order"
        seen_before.extend(connections)


@settings(max_examples=count(150))
@given(seed=st.integers(0, 2**32), script=SCRIPTS)
def test_a_healed_link_delivers_again_and_keeps_nothing_back(seed: int, script: Script) -> None:
    play = Play(seed, script)
    assert play.pair.port_a.queued(B, 0) == 0
    assert play.pair.b.numbers[-1] == 10_000 * len(play.connections) + play.sent - 1


@settings(max_examples=count(50))
@given(
    seed=st.integers(0, 2**32),
    script=SCRIPTS.map(lambda script: [s for s in script if s[1] in ("send", "delay", "heal", "stall")]),
)
def test_without_an_end_of_the_connection_everything_arrives_in_order(seed: int, script: Script) -> None:
    play = Play(seed, script)
    assert play.pair.a.news == []
    assert play.pair.b.news == []
    assert play.pair.b.numbers == list(range(10_000, 10_000 + play.sent))


@settings(max_examples=count(50))
@given(seed=st.integers(0, 2**32), count=st.integers(0, 3 * WINDOW))
def test_a_receiver_that_reads_nothing_is_sent_no_more_than_its_window(seed: int, count: int) -> None:
    pair = Pair("fifo", seed)
    pair.b.is_slow = True
    pair.send(*range(count))
    pair.go(1000 * MS)
    assert pair.b.numbers == list(range(min(count, WINDOW)))
    assert pair.port_a.queued(B, 0) == max(0, count - WINDOW)


@settings(max_examples=count(50))
@given(seed=st.integers(0, 2**32), script=SCRIPTS)
def test_the_same_seed_and_script_give_the_same_history(seed: int, script: Script) -> None:
    one, other = Play(seed, script).pair, Play(seed, script).pair
    assert (one.a.seen, one.b.seen) == (other.a.seen, other.b.seen)
    assert A not in [what for _, what in one.a.seen]
