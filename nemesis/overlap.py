"""Conflicts of faults that must not be in force together: one would have no effect, and the plan would mislead."""

from nemesis.fault import Fault
from nemesis.plan import Step
from nemesis.registry import FAULTS
from nemesis.topology import Topology, ends


def conflict(one: Step, other: Step, topology: Topology | None = None) -> str | None:
    """The reason why those two must not be in force together; None if they may, or if they never are.

    `topology` says which nodes send to which; some reasons need it.
    """
    if one.until_ns <= other.at_ns or other.until_ns <= one.at_ns:
        return None
    shared = [target for target in one.targets if target in other.targets]
    if shared:
        return f"both strike {shared[0]}"
    for first, second in ((one, other), (other, one)):
        links, nodes = FAULTS.get(first.fault), FAULTS.get(second.fault)
        if links and nodes and links.targets.are_links and not nodes.targets.are_links:
            return _hidden_by_nodes(first, nodes, second) or _hidden_by_links(links, first, nodes, second)
    return None if topology is None else _starved(one, other, topology) or _starved(other, one, topology)


def _starved(slow: Step, down: Step, topology: Topology) -> str | None:
    """The reason why one of the slow nodes gets no messages, if all its senders are down; else None."""
    slowing, silencing = FAULTS.get(slow.fault), FAULTS.get(down.fault)
    if not (slowing and slowing.needs_messages and silencing and silencing.is_silencing):
        return None
    for target in slow.targets:
        senders = [node for node in topology.ids() if topology.kind(node, target) is not None]
        if senders and any(set(senders) <= set(group) for group in _going_down(down)):
            return f"{down.fault} holds down {', '.join(senders)}, and nobody else sends to {target}"
    return None


def _hidden_by_nodes(links: Step, fault: Fault, nodes: Step) -> str | None:
    """The reason why none of those links carries messages, if the nodes at their ends are down; else None."""
    if fault.is_silencing:
        for down in _going_down(nodes):
            if all(any(end in down for end in ends(link)) for link in links.targets):
                return (
                    f"every link that {links.fault} strikes ends at {', '.join(down)}, which {nodes.fault} holds down"
                )
    return None


def _going_down(step: Step) -> list[tuple[str, ...]]:
    """Groups of nodes of which one goes down as a whole: at a failpoint any single target, otherwise all targets."""
    return [(target,) for target in step.targets] if "point" in step.args else [step.targets]


def _hidden_by_links(links_fault: Fault, links: Step, fault: Fault, nodes: Step) -> str | None:
    """The reason why one of those nodes gets no messages to handle, if its links carry none; else None."""
    if fault.needs_messages and links_fault.is_silencing:
        for link in links.targets:
            if ends(link)[1] in nodes.targets:
                return f"{links.fault} keeps messages from {ends(link)[1]}, so {nodes.fault} has none to slow down"
    return None
