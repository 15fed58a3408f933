"""The table of checks, and the names of all anomalies. A new check is a module with `CHECKS`, and a row here."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from typing import Final

from checkers.engine.protocol import Check
from checkers.words.anomalies import SHARED

# The modules with checks, in the order of the report.
MODULES: Final = (
    "transactions.check",
    "streams.check",
    "watermarks.check",
    "state.freshness",
    "state.replay",
    "state.timestamps",
    "state.durability",
    "state.survival",
    "state.liveness",
    "state.aborts",
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


def names_of(checks: Iterable[Check]) -> Mapping[str, str]:
    """The anomalies that promises may forbid and these checks may report, each with a one-line meaning."""
    return dict(SHARED) | {name: meaning for check in checks for name, meaning in check.anomalies.items()}


CHECKS: Final = checks_of(MODULES)
NAMES: Final = names_of(CHECKS)
