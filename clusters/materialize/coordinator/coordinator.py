"""A coordinator: boots as the leader, serves clients while it leads, and else waits to take over.

Theory of operation. It keeps nothing on disk: its durable state is in the catalog.
1. A leader shows that it lives. Another coordinator boots if it hears nothing for a while; or when it is deployed,
   though the leader is well. Then there are two: see reign.py for how the older one ends.
2. A coordinator that does not lead sends clients to the other one.
"""

from functools import partial

from clusters.materialize import planted
from clusters.materialize.coordinator.boot import Booted, boot
from clusters.materialize.coordinator.commits import Commits
from clusters.materialize.coordinator.sequencing import Answer, Sequencer
from clusters.materialize.coordinator.tables import Table
from clusters.materialize.messages import (
    AckOk,
    Asked,
    Change,
    Count,
    Define,
    Downgrade,
    Hold,
    Lead,
    MayAcknowledge,
    Query,
    ReadPast,
    Refused,
    Told,
    Transact,
    Unclear,
)
from clusters.materialize.shape import BAGS, COORDINATORS, DATA, FOLLOWERS, LISTS, MS, SOURCE, WALL
from clusters.materialize.site import Site
from clusters.parts.procedures import TIMER
from clusters.parts.routing import Elsewhere, Later, Procedure
from harness.core.machine import Answer as Answered
from harness.core.machine import Call, Closed, Context, Durable, Event, Message, NodeId, Received, Settings, TimerFired

TICK, WATCH = "tick", "watch"
TICK_NS, WATCH_NS = 3 * MS, 40 * MS
LATE_NS = 100 * MS  # A timer that comes this late shows a machine that is too busy.


class _Leading:
    """The parts of a leader: its reign, its tables, its commits, and its open requests."""

    def __init__(self, booted: Booted, site: Site) -> None:
        self.reign = booted.reign
        self.tables = booted.tables[WALL]
        self.commits = {
            name: Commits(self.reign, timeline, booted.tables[name], site.parameters["interval_ms"])
            for name, timeline in self.reign.timelines.items()
        }
        self.sequencer = Sequencer(self.reign, self.commits, lambda: tuple(self.tables))
        self.open: dict[tuple[NodeId, int], Message] = {}  # Requests without an answer.
        self.since = 0


class Coordinator:
    """The machine of the coordinators c1 and c2."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        self._site = Site(context.node, settings, context)
        self._leading: _Leading | None = None
        self._is_booting = False
        place = COORDINATORS.index(context.node)
        self._suspect_ns = (settings.parameters["suspect_ms"] + 150 * place) * MS
        self._heard_ns = context.now_ns() - (0 if place or context.now_ns() else self._suspect_ns)
        self._holds: dict[NodeId, int] = {}
        self._deploy_ns = self._next_deploy()
        self._watched_ns = context.now_ns()
        context.set_timer(TICK, TICK_NS)
        context.set_timer(WATCH, WATCH_NS)

    def handle(self, event: Event, context: Context) -> None:
        self._site.context = context
        match event:
            case Received(sender, Call(number, body)):
                self._called(sender, number, body)
            case Received(sender, Asked(number, MayAcknowledge(ts))):
                context.send(sender, Told(number, self._acknowledged(ts)))
            case Received(_, Told(number, body)):
                self._site.procedures.answered(number, body)
            case Received(_, Lead()):
                self._heard_ns = context.now_ns()
            case Received(_, Hold(follower, ts)):
                self._holds[follower] = max(ts, self._holds.get(follower, 0))
            case TimerFired(name) if name == TIMER:
                self._site.procedures.tick()
            case TimerFired(name) if name == TICK:
                if self._leading is not None:
                    self._tick(self._leading)
                context.set_timer(TICK, TICK_NS)
            case TimerFired():
                self._watch()
                context.set_timer(WATCH, WATCH_NS)
            case Closed(peer):
                self._site.procedures.closed(peer)
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: the catalog and the shards show what coordinators did."""

    def _tick(self, leading: _Leading) -> None:
        for commits in leading.commits.values():
            commits.tick()

    # Leadership.

    def _next_deploy(self) -> int:
        reach_ns = self._site.parameters["deploy_ms"] * MS
        return self._site.now_ns() + reach_ns + self._site.context.draw("deploy").below(reach_ns)

    def _watch(self) -> None:
        """Show that this coordinator leads, or find out if another one does (1)."""
        now_ns = self._site.now_ns()
        if now_ns > self._watched_ns + WATCH_NS + LATE_NS:
            self._site.context.probe("late", (now_ns - self._watched_ns) // MS)
        self._watched_ns = now_ns
        if self._leading is not None:
            if not (self._leading.commits[WALL].is_waiting and planted.COMMIT_LIVELOCK in self._site.bugs):
                self._leading.reign.beat()
            self._compact(self._leading)
            self._deploy_ns = self._next_deploy()
            return
        if now_ns >= self._deploy_ns:
            self._site.context.sometimes("a coordinator was deployed beside a leader")
        if not self._is_booting and (now_ns >= self._deploy_ns or now_ns >= self._heard_ns + self._suspect_ns):
            self._is_booting = True
            self._site.procedures.run(self._boot())

    def _boot(self) -> Procedure[None]:
        booted = yield from boot(self._site)
        self._is_booting = False
        self._heard_ns, self._deploy_ns = self._site.now_ns(), self._next_deploy()
        if booted is not None:
            self._leading = _Leading(booted, self._site)
            if booted.reign.epoch > 1:
                self._site.context.sometimes("a coordinator took over")
            booted.reign.on_end(self._ended)

    def _ended(self) -> None:
        """Answer all open requests: writes may have an effect, reads fail."""
        if self._leading is None:
            return
        leading, self._leading = self._leading, None
        self._heard_ns, self._deploy_ns = self._site.now_ns(), self._next_deploy()
        for (client, number), body in leading.open.items():
            is_read = (
                isinstance(body, Query | ReadPast)
                or (isinstance(body, Count) and body.element is None)
                or (isinstance(body, Transact) and all(mop.f == "r" for mop in body.mops))
            )
            answer = Refused("it was superseded") if is_read else Unclear("it was superseded")
            self._site.send(client, Answered(number, answer))

    # Requests.

    def _called(self, client: NodeId, number: int, body: Message) -> None:
        leading = self._leading
        if leading is None:
            self._site.send(client, Answered(number, Elsewhere()))
            return
        leading.open[client, number] = body

        def reply(answer: Answer) -> None:
            if leading.open.pop((client, number), None) is not None and self._leading is leading:
                self._site.send(client, Answered(number, answer))

        match body:
            case Transact():
                leading.sequencer.transact(body, reply)
            case Change():
                leading.sequencer.change(body, reply)
            case ReadPast():
                leading.sequencer.read_past(body, reply)
            case Query():
                leading.sequencer.query(body, reply)
            case Count():
                leading.sequencer.count(body, reply)
            case Define(table, is_drop):
                leading.sequencer.define(body, reply, partial(self._defined, leading, table, is_drop=is_drop))
            case _:
                self._site.context.unexpected(body)

    def _defined(self, leading: _Leading, name: str, *, is_drop: bool) -> None:
        if is_drop:
            leading.tables.pop(name, None)
        elif name not in leading.tables:
            leading.tables[name] = Table(leading.reign, name, 0)

    def _acknowledged(self, ts: int) -> AckOk | Later | Elsewhere:
        """The answer to ingestion, which may acknowledge what all later reads see."""
        if self._leading is None:
            return Elsewhere()
        reign = self._leading.reign
        seen = reign.wall.oracle.read_ts
        if planted.ACK_ON_AS_OF in self._site.bugs:
            seen = max(seen, reign.seen_ts)
        return AckOk(ts) if seen >= ts else Later()

    # Compaction.

    def _compact(self, leading: _Leading) -> None:
        """Let storage forget what no read needs: below the oracle's reads by a lag, below all reads in progress, and
        below the holds of all who follow collections.
        """
        if len(self._holds) < len(FOLLOWERS):
            return
        lag = self._site.parameters["lag_units"]
        wall = leading.reign.wall
        since = min(wall.oracle.read_ts - lag, *wall.holds, *self._holds.values())
        if planted.COMPACT_PAST_HOLD in self._site.bugs:
            since = wall.oracle.read_ts
        if since > leading.since:
            leading.since = since
            for node in DATA:
                self._site.send(node, Downgrade((*LISTS, *BAGS, SOURCE), since))
