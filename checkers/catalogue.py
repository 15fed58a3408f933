"""The table of checks, and the records of all anomalies. A new check is a module with `CHECKS`, and a row here.

A module is loaded when a history may get one of its checks: all of them take longer than the check of a small history.
Whoever asks for `CHECKS` or `RECORDS` loads all modules.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from checkers.engine.protocol import Check, Context
from checkers.words.anomalies import Anomaly, records

if TYPE_CHECKING:
    CHECKS: tuple[Check, ...]
    RECORDS: Mapping[str, Anomaly]

# The modules with checks, in the order of the report, and the names of their checks.
MODULES: Final[Mapping[str, tuple[str, ...]]] = MappingProxyType(
    {
        "transactions.check": ("serializability", "serializability-locked"),
        "streams.check": ("streams",),
        "watermarks.check": ("watermark-graph", "watermark-graph-locked"),
        "lineage.check": ("log-lineage",),
        "state.freshness": ("freshness",),
        "state.replay": ("replay",),
        "state.timestamps": ("timestamps",),
        "state.realtime": ("realtime",),
        "state.views": ("views",),
        "state.durability": ("durability", "survival"),
        "state.liveness": ("liveness",),
        "state.aborts": ("aborts",),
        "replication.framing": ("framing",),
        "replication.prefixes": ("prefixes",),
        "replication.positions": ("positions",),
        "replication.convergence": ("convergence",),
        "replication.conflicts": ("conflicts",),
        "linearizability.check": ("linearizability",),
        "invariants.bank": ("bank",),
        "invariants.counter": ("counter",),
        "invariants.sets": ("set-full", "set"),
        "invariants.queues": ("queue", "total-queue"),
        "invariants.logs": ("log",),
        "invariants.ids": ("unique-ids",),
        "invariants.forks": ("long-fork", "write-skew"),
        "invariants.monotonic": ("monotonic",),
        "invariants.causal": ("causal-reverse", "sequential"),
    }
)
ALWAYS: Final = "transactions.check"  # Its check judges every history.
NAMES: Final = frozenset(chain.from_iterable(MODULES.values()))


def checks_of(modules: Iterable[str]) -> tuple[Check, ...]:
    """The checks of those modules of `checkers`, in order."""
    return tuple(check for name in modules for check in import_module(f"checkers.{name}").CHECKS)


def wanted(context: Context) -> tuple[Check, ...]:
    """The checks that a history gets, given the promises and the stream contract of `context`, in order."""
    return tuple(check for check in checks_of(_eligible(context)) if check.is_wanted(context))


def _eligible(context: Context) -> Sequence[str]:
    """The modules whose checks may be wanted: all, unless each promise names its check."""
    named = {promise.check for promise in context.promises}
    if context.contract is not None or None in named:
        return tuple(MODULES)
    return [module for module, names in MODULES.items() if module == ALWAYS or not named.isdisjoint(names)]


def records_of(checks: Iterable[Check]) -> Mapping[str, Anomaly]:
    """The records of the anomalies that these checks may report, and of those that compare two of them."""
    second_opinion = import_module("checkers.watermarks.second_opinion")
    found = dict[str, Anomaly]()
    for declared in (*(check.anomalies for check in checks), second_opinion.ANOMALIES):
        for name, record in records(declared).items():
            if found.setdefault(name, record) != record:
                raise AssertionError(f"two checks declare the anomaly {name}, and their records differ")
    return found


@cache
def _all() -> tuple[tuple[Check, ...], Mapping[str, Anomaly]]:
    checks = checks_of(MODULES)
    return checks, records_of(checks)


def __getattr__(name: str) -> object:
    """`CHECKS` and `RECORDS`, whose modules are loaded by the first who asks for them."""
    if name not in ("CHECKS", "RECORDS"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return _all()[name == "RECORDS"]
