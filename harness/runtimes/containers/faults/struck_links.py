"""Link faults in force: their actions on proxies and packets, their probes, and their measured effects.

1. The effect of a step is counted in messages and connections, as in the simulation, from the counts of nodes and
   clients at both ends; and only on paths where a probe has shown that the fault is in force.
2. A path on which nothing arrives shows the fault only if, before, a probe came through, or messages did, behind which
   the probe may be queued: else something other than the fault may block probes. And no message may arrive there
   either.
3. Connections that only our own probes opened, or that were refused to them, are no effect.
"""

import asyncio
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Final, assert_never

from harness.core.machine import NodeId
from harness.runtimes.containers.faults.probing import LinkPath, Passed, Probing, Seen
from harness.runtimes.containers.faults.rules import Rules
from harness.runtimes.containers.faults.site import GONE, Holds, Site, listed
from harness.runtimes.containers.links.links import Toxic
from nemesis.plan import Effect, LinkFault, Step

SILENT_S: Final = 0.3  # A probe that has not arrived within this time counts as lost.
HEALTHY_S: Final = 1.0
_PATIENCE_S: Final = 2.0  # The time-out of a probe that a fault delays.
_NOTICEABLE_S: Final = 0.001  # The delay that limited bandwidth must cause a probe to count as an effect.
_AGAIN_S: Final = 0.1
_CERTAIN_PERCENT: Final = 80  # The share of a latency that a probe must show: clocks and timers are coarse.
_MS: Final = 1_000_000
_US_PER_S: Final = 1_000_000
_BYTES_PER_KB: Final = 1000
_FOREVER_MS: Final = 24 * 3600 * 1000
_CUT: Final = "cut"
_DONE: Final[dict[LinkFault, str]] = {
    "cut": "connections closed or refused",
    "reset": "connections reset or refused",
    "stall": "messages held back",
    "delay": "messages delayed",
    "bandwidth": "messages held back",
    "limit-data": "connections closed",
}


def toxics(name: str, fault: LinkFault, step: Step, path: LinkPath) -> tuple[Toxic, ...]:
    """The toxics of a step for that path, with names that begin with `name`; empty if the fault needs none."""
    args = {key: int(value) for key, value in step.args.items()}
    match fault:
        case "reset":
            return (
                Toxic(f"{name}-up", "reset_peer", "upstream", {"timeout": 0}),
                Toxic(f"{name}-down", "reset_peer", "downstream", {"timeout": 0}),
            )
        case "stall":
            # Not the toxic "timeout": it loses the data that it holds back, and closes connections when it is removed.
            hold = Toxic(name, "latency", path.stream, {"latency": _FOREVER_MS, "jitter": 0})
            return (hold,) if path.is_shared else ()
        case "delay":
            latency_ms, jitter_ms = args["latency_ns"] // _MS, args.get("jitter_ns", 0) // (2 * _MS)
            return (Toxic(name, "latency", path.stream, {"latency": latency_ms + jitter_ms, "jitter": jitter_ms}),)
        case "bandwidth":
            return (_narrow(name, path, args["bytes_per_s"]),)
        case "limit-data":
            return (Toxic(name, "limit_data", path.stream, {"bytes": args["bytes"]}),)
        case "cut":
            return ()
        case _:
            assert_never(fault)


def _narrow(name: str, path: LinkPath, bytes_per_s: int) -> Toxic:
    """A bandwidth toxic. "bandwidth" counts in kilobytes; lower rates use slices of a few bytes with pauses."""
    if bytes_per_s >= _BYTES_PER_KB:
        return Toxic(name, "bandwidth", path.stream, {"rate": bytes_per_s // _BYTES_PER_KB})
    size = max(1, bytes_per_s // 20)
    pause_us = size * _US_PER_S // bytes_per_s
    return Toxic(name, "slicer", path.stream, {"average_size": size, "size_variation": 0, "delay": pause_us})


class OnLinks:
    """One step on its paths."""

    def __init__(
        self,
        number: int,
        fault: LinkFault,
        step: Step,
        paths: Sequence[LinkPath],
        *,
        site: Site,
        prober: Probing,
        rules: Rules,
        holds: Holds,
    ) -> None:
        self._name = f"step-{number}"
        self._fault, self._step, self._paths = fault, step, paths
        self._site, self._prober, self._rules, self._holds = site, prober, rules, holds
        self._before: Mapping[str, Seen] = {}
        self._start: Mapping[str, Passed] = {}
        self._shown: dict[str, str] = {}  # By path: the note on the probe that has shown the fault.
        self._last = "no probe was sent"  # The report of the latest probe that showed nothing.
        self._own: dict[str, int] = {}  # By path: connections opened for our probes (3).
        self._dialled = {each.name for each in paths if not each.is_shared}  # True if nodes count probes as dials.
        self._was_carrying: dict[str, bool] = {}  # By path: True if messages arrived during the first probe.
        self._is_in_force = False
        self._final: Effect | None = None

    async def begin(self) -> None:
        untouched = await self._prober.passed(self._paths)
        self._before = await self._healthy()
        self._start = await self._prober.passed(self._paths)
        for each in self._paths:
            before, now = untouched[each.name], self._start[each.name]
            self._own[each.name] = now.opened - before.opened
            self._was_carrying[each.name] = now.received > before.received
        self._is_in_force = True
        await self._strike()
        await self._probe()

    async def _healthy(self) -> Mapping[str, Seen]:
        """The outcomes of probes before the fault: a server killed by an earlier fault may not be back yet."""
        most_s = 0.75 * (self._step.until_ns - self._step.at_ns) / 1e9
        deadline_s = time.monotonic() + min(self._prober.patience_s, most_s)
        while True:
            seen = await self._prober.seen(self._paths, HEALTHY_S)
            if all(each.after_s is not None for each in seen.values()) or time.monotonic() > deadline_s:
                return seen
            await asyncio.sleep(_AGAIN_S)

    async def end(self) -> None:
        if not self._is_in_force:
            return
        self._is_in_force = False
        await asyncio.gather(*(self._heal(each) for each in self._paths))
        await self._rules.end(self._silent())

    async def effect(self) -> Effect:
        if not self._is_in_force:
            return self._final or Effect(0, f"it was not in force: {self._last}")
        if len(self._shown) < len(self._paths):
            await self._probe()
        passed = await self._prober.passed(self._paths)
        count = sum(self._count(each, passed[each.name]) for each in self._paths if each.name in self._shown)
        packets = await self._rules.dropped(self._silent())
        note = f"{count} {_DONE[self._fault]}" + (f", {packets} packets dropped" if packets else "")
        if not count and self._fault == "stall":  # If the node only listens, this path holds nothing back.
            count = sum(passed[name].standing for name in self._shown)
            note = f"{count} connections stood silent"
        self._final = Effect(count, f"{note}; {self._probed()}")
        return self._final

    def _count(self, path: LinkPath, passed: Passed) -> int:
        """The amount of traffic since the beginning that the fault affected."""
        start = self._start[path.name]
        match self._fault:
            case "cut" | "reset" | "limit-data":
                return max(0, passed.broken - start.broken - self._own.get(path.name, 0))
            case "stall":
                return max(0, passed.sent - start.sent - (passed.received - start.received))
            case "delay" | "bandwidth":
                return max(passed.sent - start.sent, passed.received - start.received)
            case _:
                assert_never(self._fault)

    def _probed(self) -> str:
        shown = [each.name for each in self._paths if each.name in self._shown]
        hidden = [each.name for each in self._paths if each.name not in self._shown]
        notes = [f"probed {listed(shown)}: {self._shown[shown[0]]}"] if shown else []
        notes += [f"not shown on {listed(hidden)}: {self._last}"] if hidden else []
        return "; ".join(notes)

    # Applying and undoing.

    def _silent(self) -> list[tuple[NodeId, int]]:
        if self._fault != "stall":
            return []
        return [(each.node, self._site.port_of(each.source, each.target)) for each in self._paths if not each.is_shared]

    async def _strike(self) -> None:
        await self._rules.begin(self._silent())
        await asyncio.gather(*(self._strike_proxy(each) for each in self._paths))

    async def _strike_proxy(self, path: LinkPath) -> None:
        if self._fault == _CUT:
            if self._holds.take(_CUT, path.proxy):
                await asyncio.to_thread(self._site.proxies.disable, path.proxy)
            return
        for toxic in toxics(self._name_on(path), self._fault, self._step, path):
            await asyncio.to_thread(self._site.proxies.add_toxic, path.proxy, toxic)
        if self._fault == "reset" and not self._holds.has(_CUT, path.proxy):
            # A toxic resets an existing connection only at its next traffic, and new ones at once.
            await asyncio.to_thread(self._site.proxies.disable, path.proxy)
            await asyncio.to_thread(self._site.proxies.enable, path.proxy)

    async def _heal(self, path: LinkPath) -> None:
        if self._fault == _CUT and self._holds.drop(_CUT, path.proxy):
            with suppress(*GONE):
                await asyncio.to_thread(self._site.proxies.enable, path.proxy)
        for toxic in toxics(self._name_on(path), self._fault, self._step, path):
            with suppress(*GONE):
                await asyncio.to_thread(self._site.proxies.remove_toxic, path.proxy, toxic.name)

    def _name_on(self, path: LinkPath) -> str:
        return f"{self._name}-{path.stream}"

    # Probing.

    async def _probe(self) -> None:
        hidden = [each for each in self._paths if each.name not in self._shown]
        before = await self._prober.passed(hidden)
        found = await self._prober.seen(hidden, self._patience_s())
        after = await self._prober.passed(hidden)
        for name, seen in found.items():
            arrived = after[name].received - before[name].received
            if self._is_shown(name, seen, arrived):
                self._shown[name] = self._outcome(name, seen)
            else:
                self._last = f"a probe {self._outcome(name, seen)}, and {arrived} messages arrived"
            if seen.after_s is None and name in self._dialled:
                self._own[name] += min(1, after[name].broken - before[name].broken)

    def _patience_s(self) -> float:
        late_s = (int(self._step.args.get("latency_ns", 0)) + int(self._step.args.get("jitter_ns", 0))) / 1e9
        return SILENT_S + (_PATIENCE_S if self._fault == "bandwidth" else min(late_s, _PATIENCE_S))

    def _outcome(self, name: str, seen: Seen) -> str:
        now, before = (
            f"took {each.after_s * 1000:.3g} ms" if each.after_s is not None else f"did not arrive ({each.reason})"
            for each in (seen, self._before[name])
        )
        return f"{now}; before, it {before}"

    def _is_shown(self, name: str, seen: Seen, arrived: int) -> bool:
        """True if that probe, and the messages meanwhile, show that the fault is in force (2)."""
        after_s, before_s = seen.after_s, self._before[name].after_s
        match self._fault:
            case "limit-data":
                return True  # The connections that it closes show it.
            case "delay":
                certain_s = int(self._step.args["latency_ns"]) * _CERTAIN_PERCENT / 100 / 1e9
                if after_s is None:
                    return before_s is not None
                return after_s >= max(certain_s, _NOTICEABLE_S)
            case "bandwidth":
                return before_s is not None and (after_s is None or after_s >= before_s + _NOTICEABLE_S)
            case "cut" | "reset" | "stall":
                was_alive = before_s is not None or self._was_carrying[name]
                return was_alive and after_s is None and arrived == 0
            case _:
                assert_never(self._fault)
