"""Slow, obvious twins of the checks of replication: each prefix of a log is replayed, and each piece read once more."""

from collections.abc import Sequence

from harness.core.record import Json

Row = tuple[Json, Json]
Lists = dict[Json, list[Json]]


def replayed(units: Sequence[Sequence[Row]]) -> Lists:
    """The lists that these units append."""
    lists: Lists = {}
    for unit in units:
        for key, element in unit:
            lists.setdefault(key, []).append(element)
    return lists


def prefixes(units: Sequence[Sequence[Row]], shown: Lists) -> list[int]:
    """The numbers of units after which the lists are as shown; keys without any row in the log are left out."""
    known = {key: elements for key, elements in shown.items() if key in replayed(units)}
    return [
        count
        for count in range(len(units) + 1)
        if all(replayed(units[:count]).get(key, []) == elements for key, elements in known.items())
    ]


def faults_of(pieces: Sequence[tuple[str, int, bool, tuple[str, ...]]]) -> set[str]:
    """The anomalies of a log whose statements may be cut, unit by unit."""
    found: set[str] = set()
    for unit in {piece[0] for piece in pieces}:
        own = [piece for piece in pieces if piece[0] == unit]
        ends = [at for at, piece in enumerate(own) if piece[2]]
        if not ends:
            found.add("open-unit")
        elif ends[0] < len(own) - 1:
            found.add("piece-after-end")
        own = own[: ends[0] + 1] if ends else own
        if [piece[1] for piece in own] != list(range(1, len(own) + 1)):
            found.add("piece-order")
        if not _fits([symbol for piece in own for symbol in piece[3]], is_ended=bool(ends)):
            found.add("broken-framing")
    return found


def _fits(symbols: list[str], *, is_ended: bool) -> bool:
    """True if the symbols are whole statements, and cut ones that are continued or cancelled."""
    is_open = False
    for at, symbol in enumerate(symbols):
        if symbol in ("whole", "open") and is_open:
            return False
        if symbol in ("more", "last", "cancel") and not is_open:
            return False
        if symbol == "rollback":
            return at == len(symbols) - 1
        is_open = symbol in ("open", "more")
    return not (is_open and is_ended)
