"""Conflicts of faults that must not be in force together, as one would have no effect, and the plan would mislead."""

from nemesis.plan import Step

CONNECTION_FAULTS = ("reset", "limit-data")  # A datagram link has no connection for them to affect.
LINK_FAULTS = ("cut", "stall", "delay", "bandwidth", "drop", "duplicate", "reorder", *CONNECTION_FAULTS)
_DOWN = ("crash", "pause")  # A node in such a state neither sends nor handles anything.
_SILENT = ("cut", "reset", "stall")  # A link in such a state carries no messages.


def conflict(one: Step, other: Step) -> str | None:
    """The reason why those two may not be in force together; None if they may, or never are."""
    if one.until_ns <= other.at_ns or other.until_ns <= one.at_ns:
        return None
    shared = [target for target in one.targets if target in other.targets]
    if shared:
        return f"both strike {shared[0]}"
    return _hidden(one, other) or _hidden(other, one)


def ends(link: str) -> tuple[str, str]:
    """The source and the target of a link "n1>n2"; two empty strings if it is not a link."""
    source, arrow, target = link.partition(">")
    return (source, target) if arrow and source and target else ("", "")


def _hidden(links: Step, nodes: Step) -> str | None:
    """The reason why the state of `nodes` makes a link fault ineffective, or the reverse; else None."""
    if links.fault not in LINK_FAULTS or nodes.fault in LINK_FAULTS:
        return None
    if nodes.fault in _DOWN:
        # At a failpoint one of the targets goes down, unknown which; otherwise they all do.
        groups = [(target,) for target in nodes.targets] if "point" in nodes.args else [nodes.targets]
        for down in groups:
            if all(any(end in down for end in ends(link)) for link in links.targets):
                return (
                    f"every link that {links.fault} strikes ends at {', '.join(down)}, which {nodes.fault} holds down"
                )
    if nodes.fault == "consumer" and links.fault in _SILENT:
        for link in links.targets:
            if ends(link)[1] in nodes.targets:
                return f"{links.fault} keeps from {ends(link)[1]} what it should be slow to handle"
    return None
