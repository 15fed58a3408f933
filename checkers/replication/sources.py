"""The logs of sources, and what replicas show of them: the input of the checks of prefixes, positions and gaps.

A state `source-log` (its key names the source) is a list of [position, unit, rows] in the order of the log, and a row
is [key, element]: the element is appended to the list of that key. Without such a state the rows of the stream are the
log of a source named "stream", with their positions and units.

An operation `replica-read` that succeeded shows a replica at one moment: its value is [positions, lists], positions are
[source, position], or [source, null] if the replica does not know it, and lists are [key, elements]. The operation's
`node` is the replica. A state `replica-state` (its key names the replica) has the same form, for the end of the run. A
state `skipped` of a replica lists the [source, position] that it has left out, and shows so.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

from checkers.history.names import Dictionary, shown_list
from checkers.history.tables import rows, states
from harness.core.columns import NEVER, OK
from harness.core.errors import HistoryError
from harness.core.record import Json

STREAM: Final = "stream"
Lists = tuple[tuple[Json, tuple[Json, ...]], ...]
Positions = tuple[tuple[str, int | None], ...]


class Unit(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """A transaction in a log."""

    position: int
    name: Json
    rows: tuple[tuple[Json, Json], ...]


class Log(NamedTuple):
    """The log of a source. Elements of a key, in the order of the log, each with the place of its unit from 0."""

    source: str
    units: tuple[Unit, ...]
    keys: Mapping[Json, tuple[tuple[Json, int], ...]]


class Seen(NamedTuple):
    """What a replica showed at one moment. `op` is None for the state at the end."""

    replica: str
    op: int | None
    invoke_ns: int
    complete_ns: int
    positions: Positions
    lists: Lists

    @property
    def name(self) -> str:
        """Its name in sentences."""
        return f"the state of {self.replica} at the end" if self.op is None else f"T{self.op} on {self.replica}"

    @property
    def begun(self) -> str:
        """Its name at the beginning of a sentence."""
        return self.name[0].upper() + self.name[1:]


class Replication(NamedTuple):
    """All logs by source, what was seen of replicas, and what each left out: (replica, source) -> positions."""

    logs: Mapping[str, Log]
    seen: Sequence[Seen]
    skipped: Mapping[tuple[str, str], frozenset[int]]

    def log_for(self, replica: str, source: str) -> Log | None:
        """The log as that replica applies it: without what it left out."""
        log, left_out = self.logs.get(source), self.skipped.get((replica, source))
        if log is None or not left_out:
            return log
        return log_of(source, [unit for unit in log.units if unit.position not in left_out])


def shown(elements: Sequence[Json]) -> str:
    """A list as sentences show it."""
    return shown_list([*map(str, elements)])


def log_of(source: str, units: Sequence[Unit]) -> Log:
    """The log of these units."""
    keys: dict[Json, list[tuple[Json, int]]] = {}
    for place, unit in enumerate(units):
        for key, element in unit.rows:
            keys.setdefault(key, []).append((element, place))
    return Log(source, tuple(units), {key: tuple(found) for key, found in keys.items()})


def replication(history: Path) -> Replication:
    """All of it. Raises HistoryError if a record has another form than the module's text has."""
    names = Dictionary(history)
    found = states(history, names, "source-log", "replica-state", "skipped")
    try:
        logs = {
            str(state.key): log_of(str(state.key), msgspec.convert(state.value, list[Unit]))
            for state in found["source-log"]
        }
        reads = [
            Seen(row["node"] or "a replica", row["index"], row["invoke_ns"], row["complete_ns"], *_shown(row["value"]))
            for row in rows(history, "ops", _COLUMNS, f=["replica-read"], outcome=[OK])
        ]
        ends = [
            Seen(str(state.key), None, state.ns, NEVER, *msgspec.convert(state.value, tuple[Positions, Lists]))
            for state in found["replica-state"]
        ]
        left_out: dict[tuple[str, str], frozenset[int]] = {}
        for state in found["skipped"]:
            for source, position in msgspec.convert(state.value, list[tuple[str, int]]):
                place = (str(state.key), source)
                left_out[place] = left_out.get(place, frozenset()) | {position}
    except (msgspec.ValidationError, msgspec.DecodeError, TypeError) as error:
        raise HistoryError(f"{history}: a log or a state of a replica has another form ({error})") from None
    if not logs and (reads or ends):
        logs = {STREAM: log_of(STREAM, _streamed(history, names))}
    return Replication(logs, [*reads, *ends], left_out)


_COLUMNS: Final = ("index", "node", "f", "outcome", "value", "invoke_ns", "complete_ns")


def _shown(text: str) -> tuple[Positions, Lists]:
    return msgspec.json.decode(text, type=tuple[Positions, Lists])


def _streamed(history: Path, names: Dictionary) -> list[Unit]:
    """The rows of the stream as a log: each position once."""
    columns = ["seq", "kind", "key", "value", "position", "ordinal", "unit"]
    found: dict[int, dict[tuple[int, Json, Json], None]] = {}
    units: dict[int, Json] = {}
    for row in rows(history, "events", columns, kind=["row"]):
        if row["position"] is not None:
            units[row["position"]] = row["unit"]
            place = (row["ordinal"] or 0, names.value(row["key"]), names.value(row["value"]))
            found.setdefault(row["position"], {})[place] = None
    return [
        Unit(position, units[position], tuple((key, value) for _, key, value in sorted(held, key=lambda each: each[0])))
        for position, held in sorted(found.items())
    ]
