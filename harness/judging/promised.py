"""The promises to judge by: those of a run, of a promise file, of a model, or inferred from the operations."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from checkers.words import models
from checkers.words.checks import TRANSACTIONS
from checkers.words.meanings import meaning
from harness.core.errors import ScenarioError
from harness.core.promises import Promise
from harness.judging.checks import require_known
from harness.judging.table import Table
from harness.record.formats.parquet.tables import has_transactions
from harness.record.formats.promise_file import Promised
from harness.record.store import RUN_FILE, RunFile

LINEARIZABLE: Final = models.REGISTERS
MISSING: Final = "missing-event"


def seen(history: Path, model: str | None, source: str) -> tuple[Promise, ...]:
    """The promises inferred from the operations of a foreign history, `source` by name.

    `model` restricts them to transactions or single registers. Raises ScenarioError if that model is about single
    registers alone, and the history is not.
    """
    if model not in {None, LINEARIZABLE} or (model is None and has_transactions(history)):
        return ()
    from harness.record.formats.sight import registers, sighted  # noqa: PLC0415  It loads the checks of all workloads.

    found = sighted(history) if model is None else registers(history)
    if model == LINEARIZABLE and not found and has_transactions(history):
        stronger = models.NEAREST[model]
        raise ScenarioError(f"{model} is a model of single registers, and {source} holds transactions: use {stronger}")
    return found


def promises_of(
    run_file: RunFile | None, promised: Promised | None, model: str | None, table: Table
) -> tuple[Promise, ...]:
    """The promises to judge by. A `model`, if given, replaces every promised consistency model.

    `table` has all checks that may judge.
    """
    if promised is not None:
        return _replaced(promised.promises, model)
    if run_file is None:
        name = model or models.DEFAULT
        text = meaning(name)
        source = "--model" if model else f"the default of --model: {name}"
        return (Promise(id="MODEL", text=text, source=source, forbids=(name,), check=TRANSACTIONS),)
    require_known(run_file.promises, RUN_FILE, table.checks)
    return _replaced(run_file.promises, model)


def _replaced(promises: Sequence[Promise], model: str | None) -> tuple[Promise, ...]:
    """The promises, with every consistency model replaced by `model` if that is given; one promise for each check."""
    if model is None:
        return tuple(map(_bound, promises))
    replaced = (_of_model(promise, model) if named_models((promise,)) else promise for promise in promises)
    return tuple({promise.id: promise for promise in replaced}.values())


def _of_model(promise: Promise, model: str) -> Promise:
    """The promise with `model` as its only forbidden model."""
    text, check = meaning(model), promise.check or TRANSACTIONS
    name = "MODEL" if check == TRANSACTIONS else f"MODEL ({check})"
    return msgspec.structs.replace(promise, id=name, text=text, source="--model", forbids=(model,), check=check)


def _bound(promise: Promise) -> Promise:
    """The promise; bound to the check of all transactions if it forbids only models and names no check."""
    named = named_models((promise,))
    if not named:
        return promise
    is_mixed = len(named) < len(promise.forbids)
    check = promise.check if is_mixed else promise.check or TRANSACTIONS
    return msgspec.structs.replace(promise, check=check)


def named_models(promises: Sequence[Promise]) -> list[str]:
    """The consistency models that the promises name, each once."""
    named = dict.fromkeys(name for promise in promises for name in promise.forbids)
    return [name for name in named if models.ALIASES.get(name, name) in models.MODELS]


def closes_writes(run_file: RunFile) -> bool:
    """True if watermarks of the run's stream promise that what they close has come. There are streams without any."""
    return run_file.stream is not None and any(MISSING in promise.forbids for promise in run_file.promises)
