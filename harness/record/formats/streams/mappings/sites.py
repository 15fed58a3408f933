"""Converts a file with the logs of several sites that write to each other to a history of what each site shows.

A line is a row that a site committed, or rejected. A site's lines stand in its own order; lines of different sites may
alternate. Neighbours of one site with one transaction and origin are a transaction in its log. Its epoch is the field
`epoch`, else its place in the log. With `at_rest` a site's state is what its log gives.
"""

from collections.abc import Sequence
from pathlib import Path

import msgspec

from checkers.replication import conflicts, convergence
from checkers.replication.sites import Entry, Rejected
from harness.core.errors import HistoryError
from harness.core.promises import Promise
from harness.core.record import Json, State
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.promise_file import Promised
from harness.record.formats.streams.line import DELETED, Content, SiteFormat, StreamFormat
from harness.record.formats.streams.lines import lines_of
from harness.record.store import HISTORY


class Site:
    """The log and the exceptions of a site, as its lines come."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._entries: list[Entry] = []
        self._exceptions: list[Rejected] = []

    def take(self, content: Content) -> None:
        """Add a row to the log's last transaction, or to a new one. Raises ValueError if an epoch falls."""
        if content.unit is None:
            raise ValueError("it has no unit: name the row's transaction")
        origin = content.origin or self._name
        value = None if content.value == DELETED else content.value
        last = self._entries[-1] if self._entries else None
        if last is None or (last.transaction, last.origin) != (content.unit, origin):
            epoch = len(self._entries) if content.epoch is None else content.epoch
            if last is not None and epoch < last.epoch:
                raise ValueError(f"its epoch {epoch} is less than {last.epoch}, that of the site's line before it")
            last = Entry(content.unit, origin, epoch)
            self._entries.append(last)
        if content.kind == "row":
            self._entries[-1] = msgspec.structs.replace(last, rows=(*last.rows, (content.key, value)))
        else:
            self._exceptions.append(Rejected(content.unit, content.key, value))

    def states(self, *, has_exceptions: bool, is_at_rest: bool) -> list[State]:
        """What the site shows."""
        shown: list[tuple[str, object]] = [("site-log", self._entries)]
        if has_exceptions:
            shown.append(("exceptions", self._exceptions))
        if is_at_rest:
            rows: dict[bytes, tuple[Json, Json]] = {}
            for entry in self._entries:
                rows |= {msgspec.json.encode(key): (key, value) for key, value in entry.rows}
            shown.append(("site-state", [row for row in rows.values() if row[1] is not None]))
        return [State(0, self._name, kind, self._name, _plain(value)) for kind, value in shown]


def load_sites(paths: Sequence[Path], into: Path, form: StreamFormat, declared: SiteFormat) -> tuple[Loaded, Promised]:
    """The logs in these files as a history inside `into`, and what is demanded of sites.

    Raises HistoryError with the file, the line and the problem.
    """
    sites: dict[str, Site] = {}
    has_exceptions = False
    if form.begin is not None:
        form.begin()
    for path in paths:
        for place, line in lines_of(path, form.shape):
            try:
                for content in form.read(line):
                    if content.kind in {"row", "rejected"} and content.site is not None:
                        sites.setdefault(content.site, Site(content.site)).take(content)
                        has_exceptions |= content.kind == "rejected"
            except ValueError as error:
                raise HistoryError(f"{path}, {place}: {error}") from None
    if not sites:
        raise HistoryError(f"{paths[0]}: no line has a row of a site")
    records = [
        state
        for site in sites.values()
        for state in site.states(has_exceptions=has_exceptions, is_at_rest=declared.is_at_rest)
    ]
    if declared.rule is not None:
        records.append(State(0, next(iter(sites)), "conflict-rule", None, _plain(declared.rule)))
    into.mkdir(parents=True, exist_ok=True)
    write_history(records, into / HISTORY)
    promises = tuple(
        Promise(id=name, text=text, source=form.name, forbids=(name,), is_purpose=False, check=check)
        for check, anomalies in (
            (convergence.CHECKER, convergence.ANOMALIES),
            (conflicts.CHECKER, conflicts.ANOMALIES if declared.rule is not None else {}),
        )
        for name, text in anomalies.items()
    )
    return Loaded(history=into / HISTORY, format=form.name, is_foreign=True), Promised(promises=promises)


def _plain(value: object) -> Json:
    """The value as JSON has it."""
    plain: Json = msgspec.json.decode(msgspec.json.encode(value))
    return plain
