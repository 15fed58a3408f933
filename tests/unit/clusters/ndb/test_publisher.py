"""One publisher: what it sends, keeps, frees and gives up."""

import pytest

from clusters.ndb import planted
from clusters.ndb.membership.view import Member, View
from clusters.ndb.shape import GROUPS, SUBSCRIBERS, bucket_of, buckets_of, fragment_of, preferred_owner
from clusters.ndb.stream.messages import (
    Disconnected,
    EpochAck,
    EpochComplete,
    GroupAck,
    RemoveSubscriber,
    Row,
    Sessions,
    SubStart,
    SubStartConf,
)
from harness.core.machine import Message, NodeId
from tests.unit.clusters.ndb.stream_nodes import Plan, Replica
from tests.unit.clusters.ndb.stream_world import StreamWorld

D1, D2 = GROUPS[0]
D3, D4 = GROUPS[1]
S1, S2 = SUBSCRIBERS
ALL = View(1, 1, tuple(Member(node, 1) for node in (D1, D2, D3, D4)))


def key_of_bucket(bucket: int) -> int:
    return next(key for key in range(1000) if bucket_of(key) == bucket)


OWN = next(key_of_bucket(bucket) for bucket in buckets_of(0) if preferred_owner(bucket) == D1)
PEERS = next(key_of_bucket(bucket) for bucket in buckets_of(0) if preferred_owner(bucket) == D2)


class One:
    """d1 alone, with everything that it sends."""

    def __init__(self, *bugs: str, view: View = ALL, max_records: int = 100, max_buffered_rows: int = 100) -> None:
        plan = Plan(
            seed=0, bugs=frozenset(bugs), max_records=max_records, max_buffered_rows=max_buffered_rows, crash=False
        )
        self.sent: list[tuple[NodeId, Message]] = []
        world = StreamWorld(plan)
        world.send = lambda source, to, message: self.sent.append((to, message))  # type: ignore[method-assign]  # A spy.
        self.replica = Replica(world, D1, 9)
        self.publisher = self.replica.publisher
        self.install(view)

    def install(self, view: View) -> None:
        self.replica.control.append(("view", view))
        self.replica.obey()

    def subscribe(self, *subscribers: NodeId, session: int = 1) -> None:
        for subscriber in subscribers:
            self.publisher.handle(subscriber, SubStart(session))

    def run_epoch(self, epoch: int, *keys: int) -> None:
        """The epoch begins, has these rows, and is complete."""
        self.replica.epochs.current = epoch
        for key in keys:
            self.publisher.row(epoch, 100 * epoch + key, key, key)
        self.publisher.complete(epoch)

    def lose_peer(self, number: int = 2) -> None:
        members = tuple(member for member in self.replica.site.view.members if member.node != D2)
        self.install(View(number, 1, members))

    def take(self, to: NodeId) -> list[Message]:
        """What was sent to that node since the last time."""
        taken = [message for target, message in self.sent if target == to]
        self.sent = [(target, message) for target, message in self.sent if target != to]
        return taken


def test_a_subscription_begins_behind_all_that_has_begun() -> None:
    one = One()
    one.publisher.row(12, 1, OWN, 1)
    one.subscribe(S1)
    confirmation = one.take(S1)[0]
    assert isinstance(confirmation, SubStartConf)
    assert (confirmation.first_epoch, confirmation.publishing_from) == (13, 0)
    one.publisher.row(12, 2, OWN, 2)
    one.publisher.complete(12)
    assert one.take(S1) == [], "neither rows nor the end of an epoch that had begun"


def test_asked_again_a_node_gives_the_same_answer() -> None:
    one = One()
    one.subscribe(S1)
    one.run_epoch(20)
    one.take(S1)
    one.subscribe(S1)
    assert [message.first_epoch for message in one.take(S1) if isinstance(message, SubStartConf)] == [10]


def test_a_node_without_a_view_does_not_answer() -> None:
    one = One()
    one.replica.site.view = View(1, 0, ())
    one.subscribe(S1)
    assert one.take(S1) == []


def test_own_rows_are_sent_and_those_of_the_peer_are_kept_until_the_group_acknowledges() -> None:
    one = One()
    one.subscribe(S1)
    one.take(S1)
    one.run_epoch(10, OWN, PEERS)
    row, complete = one.take(S1)
    assert isinstance(row, Row)
    assert row.key == OWN
    assert isinstance(complete, EpochComplete)
    assert [preferred_owner(bucket) for bucket in complete.buckets] == [D1, D1]
    one.publisher.handle(D2, GroupAck(1, 10, ((S1, 1, 10),)))
    one.lose_peer()
    assert one.take(S1) == [], "nothing is owed"


def test_a_take_over_resends_what_the_group_has_not_acknowledged_in_order() -> None:
    one = One()
    one.subscribe(S1)
    for epoch in (10, 11, 12):
        one.run_epoch(epoch, PEERS)
    one.publisher.handle(D2, GroupAck(1, 10, ((S1, 1, 10),)))
    one.replica.epochs.current = 13
    one.publisher.row(13, 1, PEERS, 1)
    one.take(S1)
    one.lose_peer()
    resent = [(type(message), message.epoch) for message in one.take(S1) if isinstance(message, Row | EpochComplete)]
    assert resent == [(Row, 11), (EpochComplete, 11), (Row, 12), (EpochComplete, 12)]
    one.publisher.complete(13)
    row, complete = one.take(S1)
    assert isinstance(row, Row)
    assert isinstance(complete, EpochComplete)
    assert (complete.buckets, complete.is_resent) == (tuple(buckets_of(0)), True)
    one.run_epoch(14, PEERS)
    later = one.take(S1)[-1]
    assert isinstance(later, EpochComplete)
    assert (later.buckets, later.is_resent) == (tuple(buckets_of(0)), False)


def test_an_epoch_that_the_group_acknowledged_before_it_was_complete_here_is_not_owed() -> None:
    """The peer hears sooner that it is complete; to announce it again, without its rows, would be a lie."""
    one = One()
    one.subscribe(S1)
    one.replica.epochs.current = 10
    one.publisher.row(10, 1, PEERS, 1)
    one.publisher.handle(D2, GroupAck(1, 10, ((S1, 1, 10),)))
    one.publisher.complete(10)
    one.take(S1)
    one.lose_peer()
    assert one.take(S1) == []


def test_the_group_is_told_when_all_subscribers_have_acknowledged() -> None:
    one = One()
    one.subscribe(S1, S2)
    one.run_epoch(10)
    one.publisher.handle(S1, EpochAck(1, 10))
    assert one.take(D2) == []
    one.publisher.handle(S2, EpochAck(7, 10))
    assert one.take(D2) == [], "of another session"
    one.publisher.handle(S2, EpochAck(1, 10))
    assert one.take(D2) == [GroupAck(1, 10, ((S1, 1, 10), (S2, 1, 10)))]


def test_the_group_ack_stops_before_an_older_epoch_that_was_resent() -> None:
    one = One()
    one.subscribe(S1)
    one.run_epoch(10, PEERS)
    one.publisher.handle(S1, EpochAck(1, 10))
    one.run_epoch(11)
    one.lose_peer()
    one.install(View(3, 1, (*one.replica.site.view.members, Member(D2, 3, is_started=False))))
    one.take(D2)
    one.publisher.handle(S1, EpochAck(1, 11))
    assert one.take(D2) == [], "epoch 10 was sent a second time, and 11 too"
    one.publisher.handle(S1, EpochAck(1, 10))
    assert one.take(D2) == [GroupAck(3, 10, ((S1, 1, 10),))]
    one.publisher.handle(S1, EpochAck(1, 11))
    assert one.take(D2) == [GroupAck(3, 11, ((S1, 1, 10),))]


def test_without_subscribers_epochs_are_acknowledged_to_the_group_at_once() -> None:
    one = One()
    one.run_epoch(10, OWN)
    assert one.take(D2) == [GroupAck(1, 10, ())]


def test_a_subscription_that_the_peer_did_not_have_begins_behind_what_it_acknowledged() -> None:
    one = One()
    one.subscribe(S1)
    one.take(S1)
    for epoch in (10, 11, 12):
        one.run_epoch(epoch, PEERS)
    one.take(S1)
    one.publisher.handle(D2, GroupAck(1, 11, ()))
    assert [m.first_epoch for m in one.take(S1) if isinstance(m, SubStartConf)] == [12]
    one.publisher.handle(D2, GroupAck(1, 12, ((S1, 1, 12),)))
    assert one.take(S1) == [], "from there on the peer has it, too"


def test_a_laggard_is_removed_everywhere_and_told() -> None:
    one = One(max_records=3)
    one.subscribe(S1, S2)
    for epoch in range(10, 14):
        one.run_epoch(epoch)
        one.publisher.handle(S2, EpochAck(1, epoch))
    assert Disconnected(1, "lagging") in one.take(S1)
    assert all(not isinstance(message, Disconnected) for message in one.take(S2))
    for node in (D2, D3, D4):
        assert RemoveSubscriber(1, S1, 1, "lagging") in one.take(node)
    (state,) = one.replica.context.dumps
    assert (state.object, state.key, state.position) == ("disconnect", S1, 13)
    assert isinstance(state.value, list)
    assert state.value[:2] == ["lagging", 4]
    one.subscribe(S1, session=1)
    assert one.take(S1) == [Disconnected(1, "link")], "an ended session never comes back"
    one.subscribe(S1, session=2)
    assert isinstance(one.take(S1)[0], SubStartConf)


def test_records_never_pass_their_limit_as_a_probe_sees_them() -> None:
    one = One(max_records=3)
    one.subscribe(S1)
    for epoch in range(10, 20):
        one.run_epoch(epoch)
    one.publisher.timer("suma-tick")
    assert [value for name, value in one.replica.context.probes if name == "records"] == [3]


def test_the_peer_hears_of_a_removal_before_any_ack_on_its_behalf() -> None:
    one = One()
    one.subscribe(S1)
    one.run_epoch(10)
    one.publisher.handle(D3, RemoveSubscriber(1, S1, 1, "link"))
    assert one.take(D2) == [RemoveSubscriber(1, S1, 1, "link"), GroupAck(1, 10, ())]
    assert one.replica.context.dumps == [], "it was not this node's decision"


def test_a_node_outside_the_view_removes_nobody() -> None:
    one = One(view=View(1, 1, tuple(member for member in ALL.members if member.node != D4)))
    one.subscribe(S1)
    one.take(S1)
    one.publisher.handle(D4, RemoveSubscriber(1, S1, 1, "link"))
    assert one.take(S1) == []


def test_a_closed_link_ends_the_session_and_nothing_else() -> None:
    one = One()
    one.subscribe(S1)
    one.publisher.closed(S2)
    assert one.take(D3) == []
    one.publisher.closed(S1)
    assert one.take(D3) == [RemoveSubscriber(1, S1, 1, "link")]


@pytest.mark.parametrize(("bugs", "is_marked"), [((), True), ((planted.OOB_SILENT,), False)])
def test_an_epoch_that_did_not_fit_is_marked_when_it_is_taken_over(bugs: tuple[str, ...], is_marked: bool) -> None:
    one = One(*bugs, max_buffered_rows=2)
    one.subscribe(S1)
    one.run_epoch(10, PEERS, PEERS, PEERS)
    one.run_epoch(11, PEERS)
    one.take(S1)
    one.lose_peer()
    messages = one.take(S1)
    complete = [message for message in messages if isinstance(message, EpochComplete)]
    assert [(message.epoch, message.is_missing_data) for message in complete] == [(10, is_marked), (11, False)]
    assert [message.epoch for message in messages if isinstance(message, Row)] == [11]
    assert [state.position for state in one.replica.context.dumps] == ([10, 10] if is_marked else [])


def test_buffered_rows_that_are_dropped_harm_nobody_while_the_peer_lives() -> None:
    one = One(max_buffered_rows=2)
    one.subscribe(S1)
    one.run_epoch(10, PEERS, PEERS, PEERS)
    one.publisher.handle(D2, GroupAck(1, 10, ((S1, 1, 10),)))
    one.take(S1)
    one.lose_peer()
    assert one.take(S1) == []


def test_with_the_bug_rows_are_freed_when_the_own_epoch_is_acknowledged() -> None:
    for bugs, expected in (((), [10]), ((planted.FREE_ON_OWN_ACK,), [])):
        one = One(*bugs)
        one.subscribe(S1)
        one.run_epoch(10, PEERS)
        one.publisher.handle(S1, EpochAck(1, 10))
        one.take(S1)
        one.lose_peer()
        assert [message.epoch for message in one.take(S1) if isinstance(message, Row)] == expected


JOINING = View(3, 1, (*ALL.members[2:], Member(D2, 1), Member(D1, 3, is_started=False)))


def test_a_joiner_publishes_nothing_before_its_buckets_are_handed_over() -> None:
    one = One(view=JOINING)
    one.subscribe(S1)
    (confirmation,) = one.take(S1)
    assert isinstance(confirmation, SubStartConf)
    assert (confirmation.publishing_from, D1 in confirmation.started) == (None, False)
    one.run_epoch(10, OWN, PEERS)
    (complete,) = one.take(S1)
    assert isinstance(complete, EpochComplete)
    assert complete.buckets == ()
    one.publisher.hand_over(12, D1)
    one.run_epoch(11, OWN)
    one.run_epoch(12, OWN, PEERS)
    assert [message.epoch for message in one.take(S1) if isinstance(message, Row)] == [12]


def test_a_joiner_is_connected_when_all_sessions_of_its_peer_are_here_or_over() -> None:
    one = One(view=JOINING)
    assert not one.publisher.is_connected(), "it does not know yet whom to expect"
    one.publisher.handle(D2, Sessions(1, ((S1, 4), (S2, 1))))
    one.subscribe(S1, session=5)
    assert not one.publisher.is_connected()
    one.publisher.handle(D3, RemoveSubscriber(1, S2, 1, "link"))
    assert one.publisher.is_connected()


def test_a_joiner_that_takes_over_marks_what_is_older_than_its_hand_over() -> None:
    one = One(view=JOINING)
    one.subscribe(S1)
    one.run_epoch(10, PEERS)
    one.publisher.hand_over(11, D1)
    one.run_epoch(11, PEERS)
    one.take(S1)
    one.lose_peer(4)
    complete = [message for message in one.take(S1) if isinstance(message, EpochComplete)]
    assert [(message.epoch, message.is_missing_data) for message in complete] == [(10, True), (11, False)]


def test_a_node_is_drained_when_the_epoch_is_complete_and_everything_older_acknowledged() -> None:
    one = One()
    one.subscribe(S1)
    one.run_epoch(10)
    assert not one.publisher.drained_below(11), "11 is not complete, so something older could still be"
    one.run_epoch(11)
    assert not one.publisher.drained_below(11)
    one.publisher.handle(S1, EpochAck(1, 10))
    assert one.publisher.drained_below(11)


def test_a_key_that_is_text_has_a_bucket_too() -> None:
    one = One()
    one.subscribe(S1)
    one.take(S1)
    key = next(f"k{number}" for number in range(99) if preferred_owner(bucket_of(f"k{number}")) == D1)
    one.publisher.row(10, 1, key, "v")
    (row,) = one.take(S1)
    assert isinstance(row, Row)
    assert (row.key, row.value, fragment_of(key) % 2) == (key, "v", 0)
