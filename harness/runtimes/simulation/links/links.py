"""All links: possible senders and receivers, the kind of each link, and the effect of a connection's end on both sides.

There is one connection for each ordered pair of addresses, opened by the first send. It is refused, after a delay, if
the path is cut or the other end is down. When an end goes down, each of its peers gets one `Closed` for both
directions; after it, sends open a new connection.
"""

from collections.abc import Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple, Protocol

from harness.core.draw import Draw
from harness.core.errors import ScenarioError, require
from harness.core.machine import Links as LinkKinds
from harness.core.machine import Message, NodeId
from harness.runtimes.simulation.links.datagram import Datagrams
from harness.runtimes.simulation.links.fifo import WINDOW, End, Fifo, Side
from harness.runtimes.simulation.links.paths import BREAKING, Path
from harness.runtimes.simulation.loop import VirtualLoop
from nemesis.topology import CLIENT

FIFO: Final = "fifo"
DATAGRAM: Final = "datagram"


class Port:
    """One address on the network: a node, or a client."""

    def __init__(self, links: "Links", address: NodeId, end: End) -> None:
        self.address, self.end = address, end
        self.is_up = True
        self.life = 0  # The number of its crashes: notices for an earlier life are not given to a later one.
        self.outgoing: dict[NodeId, Fifo | Datagrams] = {}
        self.incoming: dict[int, Fifo] = {}  # By number: all pipes from which it may still receive messages or an end.
        self.first_ns: dict[NodeId, int] = {}  # Nothing of a new connection arrives before the end of the old one.
        self._links = links

    def send(self, to: NodeId, message: Message) -> Fifo | Datagrams:
        """Pass the message to the link; returns the connection used."""
        pipe = self.outgoing.get(to)
        if pipe is None:
            pipe = self._links.dial(self, to)
        pipe.send(message)
        return pipe

    def queued(self, to: NodeId, to_come: int) -> int:
        """The number of messages in the send buffer, once `to_come` more have been sent."""
        pipe = self.outgoing.get(to)
        return pipe.queued(to_come) if pipe is not None else max(0, to_come - WINDOW)


class Watcher(Protocol):
    """The observer of the network, if there is one: `harness.runtimes.simulation.tracer`."""

    def port(self, links: "Links", address: NodeId, end: End) -> Port:
        """A port that the observer can watch."""

    def lost(self, pipe: Fifo) -> None:
        """Note that a connection lost its messages in transit."""


class Links:
    """The network of one run."""

    def __init__(
        self,
        kinds: LinkKinds,
        roles: Mapping[NodeId, str],
        loop: VirtualLoop,
        draw: Draw,
        watcher: Watcher | None = None,
    ) -> None:
        for pair, kind in kinds.items():
            require(kind in (FIFO, DATAGRAM), f"link {'>'.join(pair)} is {kind!r}, but must be fifo or datagram", self)
        self._kinds, self._roles, self._loop, self._draw = kinds, roles, loop, draw
        self._ports: dict[NodeId, Port] = {}
        self._paths: dict[tuple[str, str], Path] = {}
        self._next_number = count().__next__
        self._watcher = watcher

    def attach(self, address: NodeId, end: End) -> Port:
        """A port for a node or client. Raises ScenarioError if the address is taken."""
        require(address not in self._ports, f"the address {address!r} is taken", self)
        port = Port(self, address, end) if self._watcher is None else self._watcher.port(self, address, end)
        self._ports[address] = port
        return port

    def detach(self, port: Port) -> None:
        """Remove the port: the end is gone for good."""
        self.take_down(port)
        del self._ports[port.address]

    def receiver(self, address: NodeId) -> End | None:
        """The end of that address, or None if it is down."""
        port = self._ports.get(address)
        return port.end if port is not None and port.is_up else None

    def path(self, source: str, target: str) -> Path:
        """The path between two names of a plan."""
        path = self._paths.get((source, target))
        if path is None:
            path = self._paths[source, target] = Path(source, target, self._draw)
        return path

    def dial(self, port: Port, to: NodeId) -> Fifo | Datagrams:
        """A new connection, or a refused one, added to the port's `outgoing`.

        Raises ScenarioError if the cluster declares no such link.
        """
        roles = (self._roles.get(port.address, CLIENT), self._roles.get(to, CLIENT))
        kind = self._kinds.get(roles)
        if kind is None:
            raise ScenarioError(f"{port.address} sends to {to}: the cluster must declare a link {'>'.join(roles)}")
        path = self.path(self._name(port.address), self._name(to))
        pipe: Fifo | Datagrams
        if kind == DATAGRAM:
            pipe = Datagrams(path, self._next_number(), source=port.address, target=to, directory=self, loop=self._loop)
            path.pipes[pipe.number] = pipe
        else:
            pipe = self._connection(path, port, to)
        port.outgoing[to] = pipe
        return pipe

    def take_down(self, port: Port) -> None:
        """End all connections of an end that crashed or left, and notify its peers."""
        port.is_up = False
        port.life += 1
        ended: dict[NodeId, list[Fifo]] = {}
        for pipe in port.outgoing.values():
            if isinstance(pipe, Fifo) and pipe.is_open:
                ended.setdefault(pipe.target, []).append(pipe)
            pipe.close()
        for pipe in port.incoming.values():
            if pipe.is_open:
                ended.setdefault(pipe.source, []).append(pipe)
            pipe.lose()
        for peer, pipes in ended.items():
            if peer != port.address:
                self._announce(self._ports[peer], port.address, pipes, pipes[0].path.close_delay_ns(), is_new=True)
        port.outgoing.clear()
        port.incoming.clear()
        port.first_ns.clear()

    def bring_up(self, port: Port) -> None:
        """Mark the end as up, without connections."""
        port.is_up = True

    def was_cut(self, pipe: Fifo) -> None:
        """Lose the messages in transit on a cut path, and notify both ends, at different times."""
        was_open = pipe.is_open
        pipe.lose()
        if was_open:
            pipe.path.touch(*BREAKING)
            self._end_both(pipe, sender_delay_ns=pipe.path.close_delay_ns())

    def overflowed(self, pipe: Fifo) -> None:
        """End a connection whose send buffer was full: the sender is notified at once, the receiver later."""
        pipe.close()
        self._end_both(pipe, sender_delay_ns=0)

    def reached_limit(self, pipe: Fifo) -> None:
        """End a connection that used up its byte limit: messages in transit arrive, and both ends are notified."""
        pipe.close()
        pipe.path.touch("limit-data")
        self._end_both(pipe, sender_delay_ns=pipe.path.close_delay_ns())

    def forget(self, pipe: Fifo) -> None:
        """Forget a pipe: the next message from its source opens a new connection."""
        port = self._ports.get(pipe.source)
        if port is not None and port.outgoing.get(pipe.target) is pipe:
            del port.outgoing[pipe.target]

    def lost(self, pipe: Fifo) -> None:
        """Note that the messages in transit on that pipe will not arrive."""
        if self._watcher is not None:
            self._watcher.lost(pipe)

    def _connection(self, path: Path, port: Port, to: NodeId) -> Fifo:
        other = self._ports.get(to)
        pipe = Fifo(
            path,
            self._next_number(),
            source=Side(port.address, port.end),
            target=Side(to, port.end if other is None else other.end),
            closer=self,
            loop=self._loop,
            first_ns=0 if other is None else other.first_ns.get(port.address, 0),
        )
        is_up = other is not None and other.is_up
        if path.is_cut or other is None or not is_up:
            pipe.was_refused = True
            pipe.was_cut = is_up
            pipe.lose()
            self._announce(port, to, [pipe], path.close_delay_ns(), is_new=False)
        else:
            path.pipes[pipe.number] = pipe
            other.incoming[pipe.number] = pipe
        return pipe

    def _end_both(self, pipe: Fifo, *, sender_delay_ns: int) -> None:
        receiver_delay_ns = pipe.path.close_delay_ns()
        if receiver_delay_ns == sender_delay_ns:
            receiver_delay_ns += 1  # Never immediately, so that no protocol comes to rely on it.
        self._announce(self._ports[pipe.source], pipe.target, [pipe], sender_delay_ns, is_new=False)
        self._announce(self._ports[pipe.target], pipe.source, [pipe], receiver_delay_ns, is_new=True)

    def _announce(self, port: Port, peer: NodeId, pipes: Sequence[Fifo], delay_ns: int, *, is_new: bool) -> None:
        """Notify the port later. `is_new`: all that the peer sends from now on arrives after that."""
        at_ns = self._loop.now_ns + delay_ns
        if is_new:
            # Ends are notified in order: a connection that ended at once could else be reported before an earlier one.
            at_ns = max(at_ns, port.first_ns.get(peer, 0) + 1)
            port.first_ns[peer] = at_ns
        self._loop.schedule(at_ns, self._tell, _News(port, port.life, peer, pipes))

    def _tell(self, news: "_News") -> None:
        port = news.port
        if port.life != news.life:
            return
        for pipe in news.pipes:
            if pipe.target == port.address:
                pipe.lose()
                port.incoming.pop(pipe.number, None)
        if port.first_ns.get(news.peer) == self._loop.now_ns:
            del port.first_ns[news.peer]
        port.end.closed(news.peer, tuple(pipe for pipe in news.pipes if pipe.source == port.address))

    def _name(self, address: NodeId) -> str:
        return address if address in self._roles else CLIENT


class _News(NamedTuple):
    """The notice that connections with `peer` have ended, for the end's life of that number."""

    port: Port
    life: int
    peer: NodeId
    pipes: Sequence[Fifo]
