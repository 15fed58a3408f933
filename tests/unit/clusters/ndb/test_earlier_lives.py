"""A message to an earlier life of its receiver changes nothing, and its sender's transaction ends without a lock."""

from collections.abc import Mapping, Sequence
from random import Random
from types import BuiltinFunctionType, FunctionType, MethodType, NoneType, UnionType
from typing import Union, get_args, get_origin, get_type_hints

import msgspec
import pytest

from clusters.ndb.data_node import ADDRESSED, DataNode
from clusters.ndb.membership.view import Member, View
from clusters.ndb.messages import (
    CHECKPOINT,
    MASTER,
    MEMBERSHIP,
    STARTING,
    Behind,
    Cancel,
    Chosen,
    Excluded,
    FailRep,
    HeartBeat,
    Install,
    Propose,
    Running,
    StartConf,
    StartOrder,
    StartReq,
    Vote,
)
from clusters.ndb.shape import DATA_NODES, MS
from clusters.ndb.stream.messages import PUBLISHER_MESSAGES, EpochAck, SubStart
from clusters.ndb.transactions.messages import NODE_FAILED, Prepare, Refused, Transact
from harness.core.draw import Stream
from harness.core.machine import Answer, Call, Dump, Message, NodeId, Received, Settings, Synced
from harness.core.record import MicroOp
from tests.amount import FIRST_SEED, count

D1, D2, D3, D4 = DATA_NODES
CLIENT, ARBITER = NodeId("c1"), NodeId("m1")
LIFE = 5_000 * MS  # When the process of d4 started that the messages are not for,
NEXT_LIFE = 6_000 * MS  # and when the next one did.
FIRST = View(1, 1, (Member(D1, 1), Member(D2, 1), Member(D3, 1), Member(D4, 1, life=LIFE)))
WITHOUT = View(8, 1, FIRST.members[:3])
AGAIN = View(16, 1, (*WITHOUT.members, Member(D4, 16, is_started=False, life=NEXT_LIFE)))
PARAMETERS = {"suspect_ms": 400, "epoch_ms": 100, "gci_ms": 1000, "lock_ms": 250, "lag_ms": 1000}
SETTINGS = Settings(parameters={**PARAMETERS, "max_buffered_rows": 100, "max_records": 10})

Address = tuple[type, str]  # A message, and the field that names a view of its receiver's life, or the life itself.
BY_VIEW: tuple[Address, ...] = (
    *((message, "view") for message in ADDRESSED),
    *((message, "number") for message in (*CHECKPOINT, *MASTER, HeartBeat, FailRep)),
    *((message, "base") for message in (Vote, Excluded)),
)
BY_LIFE: tuple[Address, ...] = tuple((message, "life") for message in (StartOrder, StartConf, Chosen))
# These four are answered with the view in force, or concern a view in which this life would have to be.
ABOUT_VIEWS = (Propose, Install, Behind, Cancel)
ABOUT_SENDERS = (StartReq, Running)  # These are true for any receiver.
OF_SUBSCRIBERS = (SubStart, EpochAck)


class Remembered:
    """A context that keeps what a node sends; its disk is always in sync."""

    def __init__(self, node: NodeId, now_ns: int) -> None:
        self.node = node
        self.time_ns = now_ns
        self.sent: list[tuple[NodeId, Message]] = []
        self.tokens: list[int] = []
        self.ended = False

    def now_ns(self) -> int:
        return self.time_ns

    def local_clock_ns(self) -> int:
        return self.time_ns

    def draw(self, name: str) -> Stream:
        return Stream(1, name)

    def send(self, to: NodeId, message: Message) -> None:
        self.sent.append((to, message))

    def queued(self, to: NodeId) -> int:
        return 0

    def sync(self, token: int) -> None:
        self.tokens.append(token)

    def exit(self, after_ns: int) -> None:
        self.ended = True

    def set_timer(self, name: str, after_ns: int) -> None: ...
    def cancel_timer(self, name: str) -> None: ...
    def append(self, log: str, record: Message) -> None: ...
    def truncate(self, log: str, index: int) -> None: ...
    def put(self, key: str, value: Message) -> None: ...
    def deliver(self, delivery: object) -> None: ...
    def probe(self, name: str, value: int) -> None: ...
    def sometimes(self, goal: str) -> None: ...
    def point(self, name: str) -> None: ...
    def dump(self, state: Dump) -> None: ...
    def unexpected(self, message: Message) -> None: ...


class EmptyDisk:
    def log(self, name: str) -> Sequence[Message]:
        return ()

    def value(self, key: str) -> Message | None:
        return None


class Life:
    """One life of a data node, with what it sent."""

    def __init__(self, node: NodeId, now_ns: int) -> None:
        self.context = Remembered(node, now_ns)
        self.machine = DataNode()
        self.machine.recover(EmptyDisk(), SETTINGS, self.context)

    def receive(self, sender: NodeId, message: Message) -> None:
        self.machine.handle(Received(sender, message), self.context)
        while self.context.tokens:
            self.machine.handle(Synced(self.context.tokens.pop(0)), self.context)

    def join(self, base: int, view: View) -> None:
        self.receive(D1, Propose(base, view))
        self.receive(D1, Install(view))

    def sent(self, kind: type) -> list[tuple[NodeId, Message]]:
        return [(to, message) for to, message in self.context.sent if isinstance(message, kind)]

    def state(self) -> object:
        return frozen(self.machine, {})


def frozen(value: object, seen: dict[int, int]) -> object:
    """The value's whole content as nested tuples; an object that was met before is only numbered."""
    if isinstance(value, FunctionType | MethodType | BuiltinFunctionType | Remembered | EmptyDisk | type):
        return type(value).__name__
    if isinstance(value, str | int | bool | float | None):
        return value
    if id(value) in seen:
        return seen[id(value)]
    seen[id(value)] = len(seen)
    if isinstance(value, Mapping):
        return tuple((frozen(key, seen), frozen(item, seen)) for key, item in value.items())
    if isinstance(value, msgspec.Struct):
        return (type(value).__name__, *(frozen(getattr(value, name), seen) for name in value.__struct_fields__))
    fields = {**getattr(value, "__dict__", {}), **{name: getattr(value, name, None) for name in slots(value)}}
    if fields:
        return (type(value).__name__, *((name, frozen(item, seen)) for name, item in fields.items()))
    return tuple(frozen(item, seen) for item in value) if isinstance(value, Sequence) else tuple(map(repr, [value]))


def slots(value: object) -> tuple[str, ...]:
    return tuple(name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ()))


def drawn(hint: object, random: Random) -> object:
    """A random value of that type."""
    arguments = get_args(hint)
    if hint is int:
        return random.randrange(20)
    if hint is bool:
        return random.random() < 0.5
    if hint is NodeId:
        return random.choice(DATA_NODES)
    if hint is NoneType:
        return None
    if isinstance(hint, type) and issubclass(hint, msgspec.Struct):
        return hint(**{name: drawn(kind, random) for name, kind in get_type_hints(hint).items()})
    if get_origin(hint) is tuple and arguments[-1] is Ellipsis:
        return tuple(drawn(arguments[0], random) for _ in range(random.randrange(3)))
    if get_origin(hint) is tuple:
        return tuple(drawn(argument, random) for argument in arguments)
    if get_origin(hint) in (Union, UnionType):
        return drawn(random.choice(arguments), random)
    return random.choice(["append", "r", "x", "exclusive"])


def message_with(kind: type[Message], field: str, value: int, random: Random) -> Message:
    """A random message of that kind with that address."""
    message = drawn(kind, random)
    assert isinstance(message, Message)
    return msgspec.structs.replace(message, **{field: value})


def joined_again(random: Random) -> Life:
    """The second life of d4 in a view: with locks held and awaited, and rows that are being copied to it."""
    life = Life(D4, NEXT_LIFE)
    life.join(WITHOUT.number, AGAIN)
    for _ in range(random.randrange(12)):
        message = message_with(random.choice(list(ADDRESSED)), "view", AGAIN.number, random)
        life.receive(random.choice((D1, D2, D3)), message)
    return life


def test_every_message_between_data_nodes_names_the_life_that_it_is_for() -> None:
    known = (*STARTING, *MEMBERSHIP, *CHECKPOINT, *MASTER, *ADDRESSED, *PUBLISHER_MESSAGES, Chosen)
    addressed = {message for message, _ in (*BY_VIEW, *BY_LIFE)}
    assert addressed | {*ABOUT_VIEWS, *ABOUT_SENDERS, *OF_SUBSCRIBERS} == set(known)


@pytest.mark.parametrize(("kind", "field"), BY_VIEW, ids=lambda value: getattr(value, "__name__", value))
def test_a_member_drops_a_message_for_its_earlier_life(kind: type[Message], field: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(10)):
        random = Random(f"{seed} {kind.__name__}")
        life = joined_again(random)
        before, sent = life.state(), len(life.context.sent)
        message = message_with(kind, field, random.randrange(AGAIN.number), random)
        life.receive(random.choice((D1, D2, D3)), message)
        assert life.state() == before, f"seed {seed}: {message}"
        assert len(life.context.sent) == sent, f"seed {seed}: {message}"


@pytest.mark.parametrize(("kind", "field"), BY_VIEW, ids=lambda value: getattr(value, "__name__", value))
def test_what_came_before_the_node_joined_is_dropped_when_it_joins(kind: type[Message], field: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(10)):
        random = Random(f"{seed} {kind.__name__}")
        lives = Life(D4, NEXT_LIFE), Life(D4, NEXT_LIFE)
        message = message_with(kind, field, random.randrange(AGAIN.number), random)
        lives[0].receive(random.choice((D1, D2, D3)), message)
        for life in lives:
            life.join(WITHOUT.number, AGAIN)
        states = [life.state() for life in lives]
        if kind is Vote:  # A node without a view learns from any vote which numbers are used.
            continue
        assert states[0] == states[1], f"seed {seed}: {message}"


@pytest.mark.parametrize(("kind", "field"), BY_LIFE, ids=lambda value: getattr(value, "__name__", value))
def test_a_waiting_node_drops_an_order_for_its_earlier_life(kind: type[Message], field: str) -> None:
    for seed in range(FIRST_SEED, FIRST_SEED + count(10)):
        random = Random(f"{seed} {kind.__name__}")
        life = Life(D4, NEXT_LIFE)
        before = life.state()
        sender = ARBITER if kind is Chosen else random.choice((D1, D2, D3))
        life.receive(sender, message_with(kind, field, LIFE, random))
        assert life.state() == before, f"seed {seed}"
        assert not life.context.sent


def test_a_waiting_node_does_not_vote_for_its_earlier_life() -> None:
    life = Life(D4, NEXT_LIFE)
    earlier = View(16, 1, (*WITHOUT.members, Member(D4, 16, is_started=False, life=LIFE)))
    life.join(WITHOUT.number, earlier)
    assert not life.sent(Vote)
    life.join(WITHOUT.number, AGAIN)
    assert [to for to, _ in life.sent(Vote)] == [D1]


def test_a_transaction_with_an_operation_at_an_earlier_life_ends_everywhere() -> None:
    """The execution of seed 730201.

    1. d3 coordinates an append to its own group, and passes Prepare on to d4, which it takes for alive.
    2. d4 has started anew, waits to join, and keeps the message. Two views later it has joined.
    3. d3 learns that the life of d4 had ended, aborts, and holds no lock. d4 must hold none, either.
    """
    d3, d4 = Life(D3, 0), Life(D4, NEXT_LIFE)
    members = tuple(Member(member.node, member.since, life=0) for member in FIRST.members)
    d3.machine._start.expects = lambda view: True  # type: ignore[method-assign]  # As after a start of the cluster.
    d3.receive(D1, Install(View(1, 1, members)))
    for other in (D1, D2, D4):
        d3.receive(other, HeartBeat(1, 1, d3.context.now_ns()))
    key = next(key for key in range(8) if d3.machine._site.view.replicas(key % 4)[:1] == (D3,))
    d3.receive(CLIENT, Call(1, Transact((MicroOp("append", key, "a"),))))
    ((to, prepare),) = d3.sent(Prepare)
    assert to == D4
    d4.receive(D3, prepare)
    for base, view in ((1, WITHOUT), (WITHOUT.number, AGAIN)):
        d3.join(base, view)
    d4.join(WITHOUT.number, AGAIN)
    assert d3.sent(Answer) == [(CLIENT, Answer(1, Refused(NODE_FAILED)))]
    for life in (d3, d4):
        assert life.machine._storage.is_idle()
        assert life.machine._coordinator.is_idle()
