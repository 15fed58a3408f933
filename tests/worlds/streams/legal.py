"""Worlds whose streams are legal under their contract."""

from tests.oracles.watermark_classes import Named

SNAPSHOT = ("G-single-watermark", "G-nonadjacent-watermark")


CLOSED = ("G0-watermark", "G1c-watermark")


ADJACENT = "G2-item-watermark"


CLIENTS = (*CLOSED, *SNAPSHOT, ADJACENT)


TIMED = ("-process", "-realtime")


def suffix_of(name: str) -> str:
    return next((suffix for suffix in TIMED if name.endswith(suffix)), "")


def base(name: str) -> str:
    return name.removesuffix(suffix_of(name))


def is_legal(kind: str, cycle: Named) -> bool:
    """The table of what each source and stream forbids, the other way round."""
    name = base(cycle.name)
    is_timed = name != cycle.name
    match kind:
        case "skewed":
            return is_timed
        case "ssi" | "fresh":
            return name == ADJACENT
        case "stale":
            return name == ADJACENT or (is_timed and name in SNAPSHOT)
        case "epochs":
            return name in (*SNAPSHOT, ADJACENT) and not cycle.is_locked
        case "uncut":
            return name in (*CLIENTS, "torn-watermark", "fork-watermark")
        case _:
            return False
