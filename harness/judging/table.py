"""The checks that may judge one history: those of `checkers`, and those that its system brings.

A brought check that may not be loaded, or cannot, keeps its row: it leaves all that it looks for unknown, with the
reason, so that no promise holds because its check is missing.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct, field

from checkers.catalogue import NAMES
from checkers.engine.protocol import Check, Context
from checkers.words.anomalies import Anomaly, records
from harness.core.errors import ScenarioError
from harness.core.promises import Promise
from harness.core.verdict import Judgement
from harness.judging.checks import chosen, general
from harness.record.store import RUN_FILE, Brought, RunFile
from harness.scenario.consent import Code
from harness.scenario.own_checks import Files, Loadable, Source, admitted, named_by, ours
from harness.scenario.registry import load_cluster

NOT_LOADED: Final = "check-not-loaded"


class Table(Struct, frozen=True, kw_only=True):
    """The rows of checks, in the order of the report: those of `checkers`, and the brought ones.

    `given` are those that the command line names, `sources` the modules of the brought ones that were loaded, by the
    names of their checks.
    """

    brought: tuple[Check, ...] = ()
    given: tuple[Check, ...] = ()
    sources: Mapping[str, Loadable] = field(default_factory=dict)
    is_only: bool = False

    @property
    def checks(self) -> tuple[Check, ...]:
        """All rows."""
        return (*general(), *self.brought)

    def chosen(self, context: Context) -> tuple[Check, ...]:
        """The rows that a history gets, with those promises."""
        return (*chosen(context), *chosen(context, self.brought))

    def declared(self) -> dict[str, Anomaly]:
        """The records of the anomalies that brought checks declare."""
        brought = (records(each.anomalies) for each in self.brought if each.name in self.sources)
        return {name: record for declared in brought for name, record in declared.items()}

    def files_for(self, chosen: Sequence[Check]) -> list[Files]:
        """The files of the modules with those checks, for the engine to carry."""
        named = (self.sources.get(check.name) for check in chosen)
        return [source.files() for source in dict.fromkeys(each for each in named if isinstance(each, Source))]

    def with_given(self, promises: Sequence[Promise]) -> tuple[Promise, ...]:
        """The promises, and one for each check of the command line that none of them needs, so that it judges."""
        asked = () if self.is_only else promises
        return (*asked, *(_promise(check) for check in self.given if not _needs(asked, check)))


def table_of(
    run_file: RunFile | None, given: Sequence[Loadable] = (), code: Code | None = None, *, is_only: bool = False
) -> Table:
    """The table for a run, or for a history from elsewhere. `given` are the modules that the command line names; with
    `is_only` nothing else is asked.

    `code` is that of the run's cluster, if it may be loaded. Raises ScenarioError if a given module cannot be loaded,
    or brings a check by a name that is taken.
    """
    sources = dict[str, Loadable]()
    rows = list[Check]()
    for source in given:
        rows += _rows(source, sources)
    given_rows = tuple(rows)
    for each in _brought(run_file):
        if each.checks and sources.keys() >= each.checks.keys():
            continue  # The command line names a module with these checks.
        own, why = admitted(each, partial(_named, code))
        if own is not None:
            try:
                rows += _rows(own, sources)
                continue
            except ScenarioError as error:
                why = str(error)
        rows += _missing(each, why)
    _require_distinct(rows)
    return Table(brought=tuple(rows), given=given_rows, sources=sources, is_only=is_only)


def _rows(source: Loadable, sources: dict[str, Loadable]) -> tuple[Check, ...]:
    rows = source.checks()
    sources |= {row.name: source for row in rows}
    return rows


def _brought(run_file: RunFile | None) -> tuple[Brought, ...]:
    """The modules that a run names. One that was recorded before there were any has those of our cluster."""
    if run_file is None:
        return ()
    if run_file.brought is not None:
        return run_file.brought
    module = f"clusters.{run_file.cluster}.checks"
    return (Brought(module=module, sha256="", checks={}),) if module in ours() else ()


def _named(code: Code | None) -> tuple[Source, ...]:
    return () if code is None else named_by(load_cluster(code, is_checked=True), code)


def _missing(each: Brought, why: str) -> list[Check]:
    reason = f"{NOT_LOADED}: {why}"
    return [
        Check(name=name, anomalies=dict.fromkeys(anomalies, ""), judge=_Missing(name, anomalies, reason))
        for name, anomalies in each.checks.items()
    ]


class _Missing(Struct, frozen=True):
    """The judge of a check that was not loaded, whatever the history."""

    name: str
    anomalies: Sequence[str]
    reason: str

    def __call__(self, history: Path, context: Context) -> Judgement:
        unknown = dict.fromkeys(self.anomalies, self.reason)
        return Judgement(checker=self.name, findings=(), witnesses={}, unknown=unknown)


def _require_distinct(rows: Sequence[Check]) -> None:
    taken = set(NAMES)
    for row in rows:
        if row.name in taken:
            raise ScenarioError(f"{RUN_FILE} or --checks: there are two checks of the name {row.name!r}: rename one")
        taken.add(row.name)


def _needs(promises: Sequence[Promise], check: Check) -> bool:
    forbidden = {name for promise in promises if promise.check in {None, check.name} for name in promise.forbids}
    return any(promise.check == check.name for promise in promises) or not forbidden.isdisjoint(check.anomalies)


def _promise(check: Check) -> Promise:
    text = " ".join(f"Never: {record.meaning}" for record in records(check.anomalies).values())
    return Promise(id=check.name, text=text, source="--checks", forbids=tuple(check.anomalies), check=check.name)
