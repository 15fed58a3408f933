"""One subscriber: when a session opens, what ends it, and what its user is shown."""

from clusters.ndb.shape import DATA_NODES, MS, SUBSCRIBERS, buckets_of
from clusters.ndb.stream.library import Epoch
from clusters.ndb.stream.messages import (
    Disconnected,
    EpochAck,
    EpochComplete,
    Row,
    SessionNumber,
    SubStart,
    SubStartConf,
)
from clusters.ndb.stream.subscriber import Subscriber
from clusters.ndb.stream.user import User
from harness.core.machine import Closed, Delivery, Message, NodeId, Received, Settings, Synced, TimerFired
from tests.unit.clusters.ndb.stream_nodes import Effects, NoDisk, Plan
from tests.unit.clusters.ndb.stream_world import StreamWorld

D1, D2, D3, D4 = DATA_NODES
S1 = SUBSCRIBERS[0]


class Saved(NoDisk):
    """A disk on which a session was used."""

    def value(self, key: str) -> Message | None:
        return SessionNumber(6)


class One:
    """s1 alone, with everything that it sends."""

    def __init__(self, disk: NoDisk | None = None, *, event_buffer: int = 1000) -> None:
        self.sent: list[tuple[NodeId, Message]] = []
        world = StreamWorld(Plan(seed=0, crash=False))
        world.send = lambda source, to, message: self.sent.append((to, message))  # type: ignore[method-assign]  # A spy.
        self.effects = Effects(world, S1)
        self.machine = Subscriber()
        settings = Settings(parameters={"event_buffer": event_buffer, "nap_permille": 0})
        self.machine.recover(NoDisk() if disk is None else disk, settings, self.effects)

    def synced(self) -> None:
        self.machine.handle(Synced(self.effects.synced[-1]), self.effects)

    def hear(self, sender: NodeId, message: Message) -> None:
        self.machine.handle(Received(sender, message), self.effects)

    def lose(self, *peers: NodeId) -> None:
        for peer in peers:
            self.machine.handle(Closed(peer), self.effects)

    def fire(self, name: str) -> None:
        self.machine.handle(TimerFired(name), self.effects)

    def confirm(
        self,
        *nodes: NodeId,
        session: int = 1,
        view: int = 1,
        generation: int = 1,
        first: int = 10,
        started: tuple[NodeId, ...] = DATA_NODES,
        publishing_from: int | None = 0,
    ) -> None:
        for node in nodes:
            self.hear(node, SubStartConf(session, generation, view, started, first, publishing_from))

    def end_epoch(self, epoch: int, session: int = 1) -> None:
        """The epoch is announced by one node of each group, for all its buckets."""
        for node, group in ((D1, 0), (D3, 1)):
            self.hear(node, EpochComplete(session, epoch, tuple(buckets_of(group))))

    def shown(self) -> list[tuple[int, str, object, int | None]]:
        """What the user has taken, after it has looked."""
        self.fire("user")
        return [(each.session, each.kind, each.value, each.position) for each in self.effects.delivered]


def opened() -> One:
    one = One()
    one.synced()
    one.confirm(*DATA_NODES)
    return one


def test_nothing_is_asked_before_the_number_is_durable() -> None:
    one = One(Saved())
    one.fire("tick")
    assert one.sent == []
    assert one.effects.stored == SessionNumber(7)
    one.synced()
    assert one.sent == [(node, SubStart(7)) for node in DATA_NODES]


def test_a_session_opens_behind_the_highest_first_epoch_when_all_have_confirmed() -> None:
    one = One()
    one.synced()
    one.confirm(D1, D2, D3)
    assert one.shown() == []
    one.confirm(D4, first=12)
    assert one.shown() == [(1, "open", None, 11)]


def test_what_was_complete_before_the_session_opened_is_shown_from_its_first_epoch_on() -> None:
    one = One()
    one.synced()
    one.confirm(D1, D2, D3)
    for epoch in (10, 11, 12):
        one.hear(D1, Row(1, epoch, 0, epoch, 0, epoch))
        one.end_epoch(epoch)
    one.confirm(D4, first=12)
    assert one.shown() == [(1, "open", None, 11), (1, "row", 12, 12), (1, "watermark", None, 12)]


def test_a_confirmation_of_an_older_view_does_not_open_a_session() -> None:
    one = One()
    one.synced()
    one.confirm(D1, D3)
    one.confirm(D4, view=2, started=(D1, D3, D4))
    assert one.shown() == []
    one.confirm(D1, D3, view=2, started=(D1, D3, D4), first=15)
    assert one.shown() == [(1, "open", None, 14)]


def test_everybody_is_asked_again_until_it_opens_and_then_only_who_has_not_confirmed() -> None:
    one = One()
    one.synced()
    one.confirm(D1, D2, D3)
    one.sent.clear()
    one.fire("tick")
    assert [to for to, _ in one.sent] == list(DATA_NODES)
    one.confirm(D4)
    one.lose(D2)
    one.sent.clear()
    one.fire("tick")
    assert one.sent == [(D2, SubStart(1))]


def test_an_announcement_is_acknowledged_at_once_whatever_the_user_does() -> None:
    one = opened()
    one.sent.clear()
    one.hear(D3, EpochComplete(1, 10, tuple(buckets_of(1))))
    assert one.sent == [(D3, EpochAck(1, 10))]
    one.hear(D3, EpochComplete(9, 10, ()))
    assert len(one.sent) == 1, "of another session"


def test_a_lost_node_ends_nothing_but_the_last_one_does() -> None:
    one = opened()
    one.lose(D1, D2, D3)
    one.hear(D4, Row(1, 10, 7, 1, 7, 1))
    assert [kind for _, kind, _, _ in one.shown()] == ["open"]
    one.lose(D4)
    assert one.shown()[1:] == [(1, "gap", "cluster-failure", 10), (1, "close", None, None)]


def test_a_disconnected_session_ends_behind_what_was_complete_and_another_begins() -> None:
    one = opened()
    one.end_epoch(10)
    one.hear(D2, Disconnected(1, "lagging"))
    one.hear(D3, Disconnected(1, "lagging"))
    one.end_epoch(11)
    assert one.shown()[1:] == [
        (1, "watermark", None, 10),
        (1, "gap", "disconnected", 11),
        (1, "close", None, None),
    ]
    one.fire("begin")
    one.synced()
    one.confirm(*DATA_NODES, session=2, first=20)
    assert one.shown()[-1] == (2, "open", None, 19)


def test_a_session_that_never_opened_ends_without_a_word() -> None:
    one = One()
    one.synced()
    one.confirm(D1)
    one.hear(D1, Disconnected(1, "link"))
    assert one.shown() == []
    assert one.effects.timers["begin"] > 0


def test_a_new_generation_ends_the_session_and_an_older_one_is_not_believed() -> None:
    one = opened()
    one.confirm(D1, generation=5, view=5)
    assert one.shown()[-2:] == [(1, "gap", "cluster-failure", 10), (1, "close", None, None)]
    assert one.effects.goals == {"a subscriber saw the whole cluster fail": 1}
    one.fire("begin")
    one.synced()
    one.confirm(*DATA_NODES, session=2, generation=1)
    assert len(one.shown()) == 3, "these nodes have not noticed yet"
    one.confirm(*DATA_NODES, session=2, generation=5, view=5, first=90)
    assert one.shown()[-1] == (2, "open", None, 89)


def test_a_node_that_publishes_what_it_does_not_send_here_ends_the_session() -> None:
    one = opened()
    one.lose(D2)
    one.confirm(D2, view=3, first=30, publishing_from=None)
    one.lose(D2)
    one.confirm(D2, view=5, first=30, publishing_from=35)
    assert [kind for _, kind, _, _ in one.shown()] == ["open"], "from its first epoch on nothing is lacking"
    one.lose(D2)
    one.confirm(D2, view=5, first=37, publishing_from=35)
    assert one.shown()[-2:] == [(1, "gap", "disconnected", 10), (1, "close", None, None)]


def test_a_promise_that_is_taken_back_before_the_session_opens_moves_its_beginning() -> None:
    one = One()
    one.synced()
    one.confirm(D1, D2, D3)
    one.confirm(D1, first=14)
    one.confirm(D4)
    assert one.shown() == [(1, "open", None, 13)]


def test_missing_data_is_a_gap_of_one_epoch_in_the_same_session() -> None:
    one = opened()
    one.hear(D1, Row(1, 10, 0, 1, 0, 1))
    one.hear(D1, EpochComplete(1, 10, tuple(buckets_of(0)), True, True))
    one.hear(D3, EpochComplete(1, 10, tuple(buckets_of(1))))
    one.end_epoch(11)
    assert one.shown()[1:] == [
        (1, "gap", "inconsistent", 10),
        (1, "open", None, 10),
        (1, "watermark", None, 10),
        (1, "watermark", None, 11),
    ]


def test_a_full_buffer_discards_whole_epochs_until_there_is_room() -> None:
    one = opened()
    user, effects = User(5, 0), one.effects
    rows = [Row(1, 10, 0, 1, 0, value) for value in (1, 2, 3)]
    for number in (10, 11):
        user.epoch(1, Epoch(number, rows, is_missing_data=False), effects)
    for number in (12, 13):
        user.epoch(1, Epoch(number, rows, is_missing_data=False), effects)
    user.wake(effects)
    user.epoch(1, Epoch(14, rows[:1], is_missing_data=False), effects)
    user.wake(effects)
    shown = [(each.kind, each.position) for each in effects.delivered if isinstance(each, Delivery)]
    assert shown == [
        *[("row", 10)] * 3, ("watermark", 10), *[("row", 11)] * 3, ("watermark", 11),
        ("gap", 12), ("open", 13), ("row", 14), ("watermark", 14),
    ]  # fmt: skip
    assert ("event-buffer-full", 8) in effects.probes


def test_discarding_goes_on_while_more_than_four_fifths_are_full() -> None:
    effects = opened().effects
    user = User(10, 0)
    rows = [Row(1, 10, 0, 1, 0, value) for value in range(10)]
    user.epoch(1, Epoch(10, rows, is_missing_data=False), effects)
    for number in range(11, 15):
        user.epoch(1, Epoch(number, [], is_missing_data=False), effects)
    user.opened(2, 30, effects)
    user.epoch(2, Epoch(31, [], is_missing_data=False), effects)
    user.wake(effects)
    kinds = [(each.session, each.kind, each.position) for each in effects.delivered][-4:]
    assert kinds[1:] == [(1, "gap", 11), (2, "open", 30), (2, "gap", 31)]


def test_a_napping_user_takes_nothing_and_then_all() -> None:
    effects = opened().effects
    user = User(1000, 1000)
    user.tick(effects)
    nap_ns = effects.timers["user"] - effects.now_ns()
    assert 500 * MS <= nap_ns <= 2000 * MS
    before = len(effects.delivered)
    for number in range(10, 14):
        user.epoch(1, Epoch(number, [], is_missing_data=False), effects)
    user.tick(effects)
    assert effects.timers["user"] - effects.now_ns() == nap_ns
    assert ("user-lag", 4) in effects.probes
    assert len(effects.delivered) == before
    user.wake(effects)
    assert len(effects.delivered) == before + 4
