"""The arbitrator: decides which of two halves continues.

Theory of operation. It keeps W, the last set of nodes that it allowed to continue, on its disk.
1. Whatever view is in force, its members are in W: a view shrinks inside W, and a node joins only after W has grown.
2. Half of the nodes may continue if they are in W; then they become W. So of two halves the second one is refused,
   forever.
3. Nodes that start the whole cluster must include all of W: then no view is in force, as every member of one is in W.
4. An answer is sent once the grant is on disk: a restart loses no grant.
"""

from clusters.ndb import planted
from clusters.ndb.messages import AreYouThere, Choose, Chosen, Granted, IAmHere, StartChoose
from clusters.ndb.shape import DATA_NODES
from harness.core.machine import Context, Dump, Durable, Event, NodeId, Received, Settings, Synced


class Arbitrator:
    """The arbitrator's machine. While it is down, halves cannot continue, and nobody can join or start the cluster."""

    def recover(self, durable: Durable, settings: Settings, context: Context) -> None:
        granted = durable.value("granted")
        self.is_forgetful = planted.ARBITRATOR_TWO_GRANTS in settings.bugs
        self.granted = granted if isinstance(granted, Granted) else Granted(0, DATA_NODES)
        self.waiting: list[tuple[NodeId, Chosen]] = []  # The answers to send when the grant is on disk, by token.

    def handle(self, event: Event, context: Context) -> None:
        match event:
            case Received(sender, AreYouThere(sent_ns)):
                context.send(sender, IAmHere(sent_ns))
            case Received(sender, Choose(_, base, members) as request):
                is_inside = set(base) <= set(self.granted.members) or set(members) <= set(self.granted.members)
                is_inside |= self.is_forgetful
                self._answer(sender, request, is_inside, context)
            case Received(sender, StartChoose(_, members) as request):
                self._answer(sender, request, set(self.granted.members) <= set(members), context)
            case Synced(token):
                context.send(*self.waiting[token])
            case Received(_, message):
                context.unexpected(message)
            case _:
                pass

    def dump(self, context: Context) -> None:
        """Do nothing: grants are recorded when they are given."""

    def _answer(self, node: NodeId, request: Choose | StartChoose, is_allowed: bool, context: Context) -> None:
        number, members = request.number, request.members
        is_repeated = number == self.granted.number and members == self.granted.members
        if not is_repeated and (not is_allowed or number <= self.granted.number):
            context.sometimes("the arbitrator refused")
            context.send(node, Chosen(number, is_granted=False, highest=self.granted.number, life=request.life))
            return
        if not is_repeated:
            self.granted = Granted(number, members)
            context.dump(Dump(object="grant", key=number, value=list(members)))
        context.put("granted", self.granted)
        context.sync(len(self.waiting))
        self.waiting.append((node, Chosen(number, is_granted=True, highest=number, life=request.life)))
