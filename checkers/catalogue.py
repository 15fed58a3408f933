"""The table of checks, and the records of all anomalies. A new check is a module with `CHECKS`, and a row here."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final

from checkers.engine.protocol import Check
from checkers.watermarks import second_opinion
from checkers.words.anomalies import Anomaly, records

# The modules with checks, in the order of the report.
MODULES: Final = (
    "transactions.check",
    "streams.check",
    "watermarks.check",
    "lineage.check",
    "state.freshness",
    "state.replay",
    "state.timestamps",
    "state.realtime",
    "state.views",
    "state.durability",
    "state.liveness",
    "state.aborts",
    "replication.framing",
    "replication.prefixes",
    "replication.positions",
    "linearizability.check",
    "invariants.bank",
    "invariants.counter",
    "invariants.sets",
    "invariants.queues",
    "invariants.logs",
    "invariants.ids",
    "invariants.forks",
    "invariants.monotonic",
    "invariants.causal",
)


def checks_of(modules: Sequence[str]) -> tuple[Check, ...]:
    """The checks of those modules of `checkers`, in order."""
    return tuple(check for name in modules for check in import_module(f"checkers.{name}").CHECKS)


def records_of(checks: Iterable[Check]) -> Mapping[str, Anomaly]:
    """The records of the anomalies that these checks may report, and of those that compare two of them."""
    found = dict[str, Anomaly]()
    for declared in (*(check.anomalies for check in checks), second_opinion.ANOMALIES):
        for name, record in records(declared).items():
            if found.setdefault(name, record) != record:
                raise AssertionError(f"two checks declare the anomaly {name}, and their records differ")
    return found


CHECKS: Final = checks_of(MODULES)
RECORDS: Final = records_of(CHECKS)
