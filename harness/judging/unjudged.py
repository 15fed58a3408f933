"""The parts of a history that no check could judge, and why a history as a whole left nothing to judge."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from checkers.words import models
from checkers.words.checks import REGISTERS, TRANSACTIONS
from harness.core.columns import OK, READ
from harness.core.promises import Promise
from harness.core.wording import counted
from harness.judging.promised import LINEARIZABLE, named_models
from harness.record.formats.parquet.tables import groups_of, has_transactions, read_table, row_count
from harness.record.formats.promise_file import Promised
from harness.record.store import RunFile

READS: Final = ("read", "get")  # Of registers.
NAMES_MAX: Final = 8  # The most names of operations in a sentence.


def events_without_contract(history: Path, declared: RunFile | Promised | None) -> str | None:
    """The sentence about stream events that no contract covers; None if there are none.

    No contract is safe by default, so such events are never judged. Logs of collections need none: views declare them.
    Raises HistoryError if the file is damaged.
    """
    count = row_count(history, "events")
    if not count or (declared is not None and (declared.stream is not None or declared.bounds.views)):
        return None
    remedy = "give --promises or --stream"
    if isinstance(declared, Promised):
        remedy = "the promise file needs a [stream] with its contract"
    elif declared is not None:
        remedy = "the cluster declares no stream contract"
    return f"{counted(count, 'stream event')} {'was' if count == 1 else 'were'} not judged: {remedy}"


def operations_beside(history: Path) -> Iterator[str]:
    """The sentence about operations that are no transactions in a history of transactions; nothing if there are none.

    Without a promise file only the transactions are judged. Raises HistoryError if the file is damaged.
    """
    counts, has_transactions = Counter[str](), False
    for group in groups_of(history, "ops", ["f", "is_txn"], coded=["f"]):
        others = group.filter(pc.invert(group["is_txn"]))["f"]
        has_transactions |= len(others) < len(group)
        counts.update({row["values"].as_py(): row["counts"].as_py() for row in pc.value_counts(others)})
    if counts and has_transactions:
        names = ", ".join(sorted(counts)[:NAMES_MAX])
        yield f"only transactions were judged: {counted(counts.total(), 'other operation')} ({names}) had no promise"


def nothing_judged(history: Path, source: str, promises: tuple[Promise, ...]) -> str | None:
    """The reason why nothing in a foreign history could break its promises; None if the cause is none of these.

    `source` is the history's name. Raises HistoryError if a file is damaged.
    """
    operations = read_table(history, "ops", ["f", "is_txn", "outcome", "value"])
    if not len(operations) and (count := row_count(history, "events")):
        events = f"the {counted(count, 'event')} of {source} exercise no promise"
        return f"{events}: record more, at least two rows of a key, or a watermark behind rows"
    if not len(operations):
        return f"{source} holds no completed operation: there is nothing to judge"
    answered = operations.filter(pc.equal(operations["outcome"], OK))
    if not len(answered):
        return f"no operation in {source} succeeded: there is nothing to judge"
    named = [models.canonical(name) for name in named_models(promises)]
    names = frozenset(operations["f"].unique().to_pylist())
    has_transactions = pc.any(operations["is_txn"]).as_py()
    if has_transactions and LINEARIZABLE in named:
        advice = f"use --model {models.DEFAULT}"
        return f"{source} holds transactions, and {LINEARIZABLE} is a model of single registers: {advice}"
    if has_transactions:
        is_read = pc.any(pc.equal(read_table(history, "mops", ["f"])["f"], int(READ))).as_py()
        return None if is_read else f"no transaction in {source} reads, and only reads can show an anomaly"
    about = next((each for each in promises if each.check == TRANSACTIONS), None)
    if about is not None:
        return _no_transactions(
            source, names, model=next(iter(named), models.DEFAULT), is_given=about.source == "--model"
        )
    return _no_answers(answered, source) if any(each.check == REGISTERS for each in promises) else None


def other_model(history: Path, promises: tuple[Promise, ...]) -> str | None:
    """The advice for a promise about single registers over a history of transactions; None if there is none.

    Raises HistoryError if a file is damaged.
    """
    if LINEARIZABLE not in {models.canonical(name) for name in named_models(promises)}:
        return None
    if not has_transactions(history):
        return None
    why = f"the workload runs transactions, and {LINEARIZABLE} is a model of single registers"
    return f"Promise {models.DEFAULT} instead, or use a workload of registers: {why}."


def _no_transactions(source: str, names: frozenset[str], *, model: str, is_given: bool) -> str:
    """The sentence about a history without transactions. `is_given`: the user named the model."""
    from harness.record.formats.sight import KNOWN, nearest  # noqa: PLC0415  It loads the checks of all workloads.

    found = ", ".join(sorted(names)[:NAMES_MAX])
    near = nearest(names)
    if is_given and names <= frozenset(near.names):
        return f"{model} is a model of transactions, and {source} holds none (found {found}): leave out --model"
    close, known = f"{near.check} ({', '.join(near.names)})", ", ".join(KNOWN)
    return f"{source} fits no workload that a check knows: found {found}; the nearest is {close}; known are {known}"


def _no_answers(answered: pa.Table, source: str) -> str | None:
    """The sentence about registers whose reads show nothing; None if one of them shows a value."""
    values = answered.filter(pc.is_in(answered["f"], pa.array(READS)))["value"]
    if not len(values):
        return f"no operation in {source} reads, and only reads can show an anomaly"
    if values.null_count < len(values):
        return None
    remedy = 'if nil means that nothing is there, write nil = "absent" under [register] of a promise file'
    return f"every read in {source} answered nil, which may mean anything: {remedy}"
