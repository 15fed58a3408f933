from functools import partial

import msgspec
import pytest

from harness.core.draw import Draw
from harness.core.errors import ScenarioError
from harness.core.machine import NodeId
from harness.runtimes.simulation.links.datagram import Datagrams
from harness.runtimes.simulation.links.fifo import BUFFER, WINDOW, Fifo
from harness.runtimes.simulation.links.links import Links
from harness.runtimes.simulation.links.paths import Condition, Path
from harness.runtimes.simulation.loop import VirtualLoop
from nemesis.plan import DatagramFault, LinkFault
from tests.unit.runtimes.simulation.small import MS, A, B, Pair, Text


def condition(fault: LinkFault | DatagramFault, **args: int) -> Condition:
    return Condition(fault=fault, **args)


def test_messages_arrive_in_order_after_a_delay() -> None:
    pair = Pair("fifo")
    pair.send(*range(100))
    pair.go(50 * MS)
    assert pair.b.numbers == list(range(100))
    assert pair.b.seen[0][0] > 0


def test_the_two_directions_are_connections_of_their_own() -> None:
    pair = Pair("fifo")
    pair.send(1)
    pair.port_b.send(A, Text(2))
    pair.path.begin(condition("cut"))
    pair.go(100 * MS)
    assert pair.a.numbers == [2]
    assert pair.b.numbers == []


def test_a_cut_delivers_a_prefix_and_both_ends_hear_of_it_at_different_times() -> None:
    pair = Pair("fifo")
    for number in range(50):
        pair.at(number * MS // 10, partial(pair.send, number))
    pair.at(2 * MS, lambda: pair.path.begin(condition("cut")))
    pair.go(200 * MS)
    received = pair.b.numbers
    assert 0 < len(received) < 50
    assert received == list(range(len(received)))
    assert pair.a.news[0] == "closed b"
    assert pair.b.news == ["closed a"]
    assert pair.a.seen[0][0] != pair.b.seen[-1][0]
    assert pair.b.seen[-2][0] < 2 * MS, "something arrived after the cut"


def test_the_ends_of_a_cut_connection_never_hear_of_it_at_one_time() -> None:
    for seed in range(300):
        pair = Pair("fifo", seed)
        pair.send(1)
        pair.path.begin(condition("cut"))
        pair.go(100 * MS)
        assert [pair.a.news, pair.b.news] == [["closed b"], ["closed a"]]
        assert pair.a.seen[0][0] != pair.b.seen[0][0], f"seed {seed}"


def test_news_for_an_earlier_life_is_not_told_to_a_later_one() -> None:
    pair = Pair("fifo")
    pair.send(1)
    pair.path.begin(condition("cut"))
    pair.links.take_down(pair.port_a)
    pair.links.bring_up(pair.port_a)
    pair.go(100 * MS)
    assert pair.a.news == []


def test_a_connection_over_a_cut_path_is_refused_and_opens_again_after_healing() -> None:
    pair = Pair("fifo")
    cut = condition("cut")
    pair.path.begin(cut)
    pipe = pair.port_a.send(B, Text(1))
    assert isinstance(pipe, Fifo)
    assert pipe.was_refused
    pair.go(100 * MS)
    assert pair.a.news == ["closed b"]
    assert pair.b.seen == []
    pair.path.end(cut)
    pair.send(2)
    pair.go(10 * MS)
    assert pair.b.numbers == [2]
    assert cut.touched == 1


def test_a_stall_holds_back_what_is_under_way_and_what_comes_after_and_loses_nothing() -> None:
    pair = Pair("fifo")
    stall = condition("stall")
    pair.send(*range(10))
    pair.path.begin(stall)
    pair.send(*range(10, 20))
    assert pair.port_a.queued(B, 0) == 10
    pair.go(500 * MS)
    assert pair.b.seen == []
    pair.path.end(stall)
    pair.send(20)
    pair.go(500 * MS)
    assert pair.b.numbers == list(range(21))
    assert pair.a.news == []
    assert stall.touched == 20


def test_a_stall_that_ends_at_the_very_time_of_an_arrival_keeps_the_order() -> None:
    def arrivals(stall_ends_ns: int) -> list[tuple[int, str | int]]:
        pair, stall = Pair("fifo"), condition("stall")
        pair.at(stall_ends_ns, partial(pair.path.end, stall))
        for number in range(20):
            pair.at(number * MS // 10, partial(pair.send, number))
        pair.at(19 * MS // 10, partial(pair.path.begin, stall))
        pair.go(100 * MS)
        return pair.b.seen

    free = Pair("fifo")
    for number in range(20):
        free.at(number * MS // 10, partial(free.send, number))
    free.go(100 * MS)
    late_ns = sorted({when_ns for when_ns, _ in free.b.seen if when_ns > 19 * MS // 10})
    assert len(late_ns) > 1
    for when_ns in late_ns:
        assert [number for _, number in arrivals(when_ns)] == list(range(20))


def test_a_delay_slows_every_message_and_none_overtakes() -> None:
    pair = Pair("fifo")
    delay = condition("delay", latency_ns=30 * MS, jitter_ns=100 * MS)
    pair.path.begin(delay)
    pair.send(*range(20))
    pair.go(30 * MS)
    assert pair.b.seen == []
    pair.path.end(delay)
    pair.send(*range(20, 40))
    pair.go(500 * MS)
    assert pair.b.numbers == list(range(40))
    assert delay.touched == 20


def test_limited_bandwidth_takes_the_encoded_size_into_account_until_it_ends() -> None:
    pair, slow = Pair("fifo"), condition("bandwidth", bytes_per_s=10_000)
    pair.path.begin(slow)
    for number, size in enumerate((*[1000] * 10, 100_000)):
        pair.port_a.send(B, Text(number, "x" * size))
    assert pair.port_a.queued(B, 0) == 10
    pair.go(499 * MS)
    assert pair.b.numbers == [0, 1, 2, 3]
    pair.at(2000 * MS, partial(pair.path.end, slow))  # The last message would take ten seconds.
    pair.go(2100 * MS)
    assert pair.b.numbers == list(range(11))
    assert slow.touched == 11  # The first one left at once, and arrived a tenth of a second late.


def test_what_waits_for_a_slow_receiver_was_not_held_back_by_limited_bandwidth() -> None:
    pair = Pair("fifo")
    pair.b.is_slow = True
    pair.send(*range(WINDOW))
    pair.go(100 * MS)
    ample = condition("bandwidth", bytes_per_s=10**12)
    pair.path.begin(ample)
    pair.send(*range(10))
    assert pair.port_a.queued(B, 0) == 10
    assert ample.touched == 0


def test_a_limit_of_bytes_closes_each_connection_behind_the_messages_that_it_let_through() -> None:
    pair = Pair("fifo")
    size = len(msgspec.msgpack.encode(Text(1)))
    pair.send(0)
    pair.go(20 * MS)
    limit = condition("limit-data", bytes=5 * size)
    pair.path.begin(limit)
    pair.send(1, 2, 3, 4, 5, 6, 7)
    pair.go(200 * MS)
    assert pair.b.numbers == [0, 1, 2, 3, 4, 5], "what passed before the limit was set counts, or too little arrived"
    assert [pair.a.news, pair.b.news] == [["closed b"], ["closed a"]]
    pair.send(*range(10, 15))
    pair.go(200 * MS)
    assert pair.b.numbers[6:] == list(range(10, 15)), "a new connection has its own count"
    assert limit.touched == 1
    pair.path.end(limit)
    pair.send(*range(20, 120))
    pair.go(200 * MS)
    assert pair.b.numbers[11:] == list(range(20, 120))
    assert limit.touched == 1


def test_a_connection_that_stays_below_its_limit_notices_nothing() -> None:
    pair = Pair("fifo")
    limit = condition("limit-data", bytes=10_000)
    pair.path.begin(limit)
    pair.send(1, 2, 3)
    pair.go(200 * MS)
    assert pair.b.numbers == [1, 2, 3]
    assert not pair.a.news
    assert limit.touched == 0


def test_a_reset_loses_what_is_under_way_and_refuses_until_it_ends() -> None:
    pair = Pair("fifo")
    pair.send(1, 2)
    reset = condition("reset")
    pair.path.begin(reset)
    pair.go(100 * MS)
    pair.send(3)
    pair.go(100 * MS)
    assert pair.b.numbers == []
    assert pair.a.news == ["closed b", "closed b"]
    pair.path.end(reset)
    pair.send(4)
    pair.go(100 * MS)
    assert pair.b.numbers == [4]
    assert reset.touched >= 2


def test_messages_wait_at_the_sender_while_the_receiver_is_slow() -> None:
    pair = Pair("fifo")
    pair.b.is_slow = True
    pair.send(*range(WINDOW + 10))
    pair.go(100 * MS)
    assert len(pair.b.numbers) == WINDOW
    assert pair.port_a.queued(B, 0) == 10
    assert pair.port_a.queued(B, 5) == 15
    pair.b.is_slow = False
    pair.b.read_all()
    pair.go(100 * MS)
    assert pair.b.numbers == list(range(WINDOW + 10))


def test_the_sender_hears_when_a_buffer_that_was_more_than_half_full_is_half_empty() -> None:
    pair = Pair("fifo")
    pair.b.is_slow = True
    pair.send(*range(WINDOW + BUFFER // 2))
    pair.go(100 * MS)
    pair.b.read_all()
    pair.go(100 * MS)
    assert pair.a.news == [], "the buffer was never more than half full"
    pair.send(*range(WINDOW + 1))
    pair.b.is_slow = False
    pair.b.read_all()
    pair.go(100 * MS)
    assert pair.a.news == ["drained b"]
    assert pair.port_a.queued(B, 0) == 0


def test_a_send_into_a_full_buffer_closes_the_connection() -> None:
    pair = Pair("fifo")
    pair.b.is_slow = True
    pair.send(*range(WINDOW + BUFFER))
    pair.go(100 * MS)
    assert pair.port_a.queued(B, 0) == BUFFER
    assert pair.a.news == []
    pair.send(-1)
    pair.go(100 * MS)
    assert pair.a.news == ["closed b"]
    assert pair.b.numbers == list(range(WINDOW))
    assert pair.b.news == ["closed a"]


def test_the_crash_of_the_sender_lets_a_prefix_arrive_before_the_receiver_hears_of_it() -> None:
    lengths = set()
    for seed in range(20):
        pair = Pair("fifo", seed)
        pair.path.begin(condition("delay", jitter_ns=20 * MS))
        pair.send(*range(50))
        pair.at(1 * MS, partial(pair.links.take_down, pair.port_a))
        pair.go(300 * MS)
        assert pair.b.numbers == list(range(len(pair.b.numbers)))
        assert pair.b.seen[-1][1] == "closed a"
        assert pair.a.seen == []
        lengths.add(len(pair.b.numbers))
    assert len(lengths) > 2


def test_the_crash_of_the_receiver_closes_both_directions_at_its_peer_with_one_word() -> None:
    pair = Pair("fifo")
    pair.send(1)
    pair.port_b.send(A, Text(2))
    pair.go(10 * MS)
    pair.links.take_down(pair.port_b)
    pair.links.bring_up(pair.port_b)
    pair.send(3)
    pair.go(100 * MS)
    assert pair.a.news == ["closed b"]
    assert pair.b.numbers == [1], "what was sent on the old connection reached the new life"
    pair.send(4)
    pair.go(10 * MS)
    assert pair.b.numbers == [1, 4]


def test_an_end_that_is_down_or_unknown_refuses() -> None:
    pair = Pair("fifo")
    pair.links.take_down(pair.port_b)
    pair.send(1)
    pair.port_a.send(NodeId("gone"), Text(2))
    pair.go(100 * MS)
    assert sorted(pair.a.news) == ["closed b", "closed gone"]


def test_datagrams_overtake_each_other() -> None:
    pair = Pair("datagram")
    pair.send(*range(100))
    pair.go(50 * MS)
    assert sorted(pair.b.numbers) == list(range(100))
    assert pair.b.numbers != list(range(100))


@pytest.mark.parametrize(("fault", "low", "high"), [("drop", 60, 140), ("duplicate", 260, 340)])
def test_datagrams_are_lost_and_doubled_by_permille(fault: DatagramFault, low: int, high: int) -> None:
    pair = Pair("datagram")
    fallen = condition(fault, permille=500)
    pair.path.begin(fallen)
    for turn in range(4):
        pair.at(turn * 100 * MS, partial(pair.send, *range(turn * 50, turn * 50 + 50)))
    pair.go(1000 * MS)
    assert low < len(pair.b.numbers) < high
    assert abs(len(pair.b.numbers) - 200) == fallen.touched
    assert set(pair.b.numbers) <= set(range(200))


def test_reordered_datagrams_come_behind_later_ones() -> None:
    pair = Pair("datagram")
    behind = condition("reorder", permille=100)
    pair.path.begin(behind)
    pair.send(*range(100))
    pair.go(200 * MS)
    assert sorted(pair.b.numbers) == list(range(100))
    assert 0 < behind.touched < 40


def test_datagrams_are_lost_without_a_word_over_a_cut_or_to_an_end_that_is_down() -> None:
    pair = Pair("datagram")
    cut = condition("cut")
    pair.path.begin(cut)
    pair.send(1)
    pair.path.end(cut)
    pair.links.take_down(pair.port_b)
    pair.send(2)
    pair.go(10 * MS)
    pair.links.bring_up(pair.port_b)
    pair.send(3)
    pair.go(100 * MS)
    assert pair.b.numbers == [3]
    assert pair.a.news == []
    assert cut.touched == 1


def test_stalled_datagrams_wait_within_bounds() -> None:
    pair = Pair("datagram")
    stall = condition("stall")
    pair.path.begin(stall)
    pair.send(*range(BUFFER + 10))
    assert pair.port_a.queued(B, 0) == BUFFER
    pair.b.is_slow = True
    pair.path.end(stall)
    pair.go(100 * MS)
    assert len(pair.b.numbers) == WINDOW, "a receiver that does not read loses what comes beyond its window"


def test_a_slow_path_loses_datagrams_that_would_wait_too_long() -> None:
    pair = Pair("datagram")
    pair.path.begin(condition("bandwidth", bytes_per_s=10_000))
    for number in range(10):
        pair.port_a.send(B, Text(number, "x" * 900))
    pair.go(2000 * MS)
    assert sorted(pair.b.numbers) == [0, 1, 2]


def test_a_link_that_was_not_declared_is_refused_when_it_is_used() -> None:
    links = Links({}, {A: "node", B: "node"}, VirtualLoop(), Draw(0))
    pair = Pair("fifo")
    port = links.attach(A, pair.a)
    with pytest.raises(ScenarioError, match="a sends to b: the cluster must declare a link node>node"):
        port.send(B, Text(1))


def test_a_link_of_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ScenarioError, match="node>node is 'tcp', but must be fifo or datagram"):
        Links({("node", "node"): "tcp"}, {}, VirtualLoop(), Draw(0))


def test_both_kinds_are_what_was_declared() -> None:
    assert isinstance(Pair("fifo").port_a.send(B, Text(1)), Fifo)
    assert isinstance(Pair("datagram").port_a.send(B, Text(1)), Datagrams)


def test_half_of_the_seeds_have_paths_that_are_longer_than_others() -> None:
    names = [(one, other) for one in "abcd" for other in "abcd" if one != other]
    lengths = [{Path(one, other, Draw(seed)).latency_ns_mean for one, other in names} for seed in range(200)]
    uneven = [each for each in lengths if len(each) > 1]
    assert 70 < len(uneven) < 130
    assert {min(each) for each in lengths} == {400_000}
    assert max(max(each) for each in uneven) == 32 * 400_000
    assert any(
        Path("a", "b", Draw(seed)).latency_ns_mean != Path("b", "a", Draw(seed)).latency_ns_mean for seed in range(20)
    )
