"""The table of checks: when each is made, and what it looks for. A new check is a new row.

Only checks that a promise needs are run, since each costs time. The transactional
check is always made, and the stream check wherever there is a contract.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Final, assert_never

import msgspec

from checkers.engine import tasks
from checkers.engine.datasets import Engine
from checkers.history.generation_files import is_whole, parts, write_part
from checkers.history.generations import merged, restarts, told_of
from checkers.history.tables import Dictionary
from checkers.history.transactions import chunks
from checkers.invariants import bank, causal, counter, forks, ids, logs, monotonic, queues, sets
from checkers.invariants.operations import Op, operations
from checkers.linearizability import check as linearizability
from checkers.linearizability.models import Register
from checkers.state import authority, causes, cuts, durability, epochs, freshness, liveness, replicas, survival
from checkers.streams import check as streams
from checkers.streams.rules.logs import epoch_fork
from checkers.streams.rules.sessions import acknowledged
from checkers.streams.sentences import CHECKER as STREAMS
from checkers.streams.task import RULES
from checkers.transactions import check as serializability
from checkers.transactions.register_order import ORDER, Order
from checkers.transactions.sentences import CHECKER as TRANSACTIONS
from checkers.transactions.sentences import Name
from checkers.watermarks import check as watermark_check
from checkers.watermarks.cycles.forbidden import forbidden
from checkers.watermarks.cycles.steps import NAMES as CUTS
from checkers.watermarks.disputes import why
from checkers.watermarks.second_opinion import second_opinion
from checkers.watermarks.sentences import CHECKER as WATERMARKS
from checkers.words.anomalies import TRANSACTIONAL
from harness.core.errors import ScenarioError
from harness.core.promises import Bounds, Excuses, Promise, StreamContract
from harness.core.verdict import Judgement
from harness.record.formats.promise_file import Looked, require_breakable
from harness.record.ownership import temporary_folder

LOCKED: Final = "serializability-locked"
WATERMARKS_LOCKED: Final = "watermark-graph-locked"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """The history to judge, and against what.

    `prohibited` holds the anomalies that count, for each check whose promises name models.
    """

    history: Path
    engine: Engine
    name: Name
    promises: Sequence[Promise]
    prohibited: Mapping[str, frozenset[str]]
    bounds: Bounds
    contract: StreamContract | None
    excuses: Excuses
    register: Register = Register()  # noqa: RUF009  It is immutable.
    order: Order = ORDER  # The source of the version order of registers in transactions.


class When(Enum):
    """The condition under which a history gets a check."""

    ALWAYS = "every one"
    CONTRACT = "one with the contract of a stream"
    NAMED = "one with a promise that names the check"
    NEEDED = "one with a promise that names the check, or anything that it looks for"


@dataclass(frozen=True, slots=True)
class Check:
    """A check: its name, the anomalies it looks for, its judge function, and the condition under which it is made."""

    name: str
    anomalies: tuple[str, ...]
    judge: Callable[[Subject], Judgement]
    when: When = When.NEEDED


def looked() -> list[Looked]:
    """All checks, as far as promises are concerned."""
    return [Looked(check.name, check.anomalies, check.when is When.CONTRACT) for check in CHECKS]


def require_known(promises: Sequence[Promise], where: str) -> None:
    """Raise ScenarioError, which names `where`, if a promise could never be broken, or two have one id."""
    checks = looked()
    for number, promise in enumerate(promises):
        place = f"{where}: promise {promise.id}"
        if promise.id in {each.id for each in promises[:number]}:
            raise ScenarioError(f"{place}: there is another one of that name")
        require_breakable(place, promise, checks)


def chosen(subject: Subject) -> tuple[Check, ...]:
    """The checks to make of that history."""
    return tuple(check for check in CHECKS if _is_wanted(check, subject))


def anomalies_of(name: str) -> tuple[str, ...]:
    """The anomalies that the check of that name looks for."""
    return next(check.anomalies for check in CHECKS if check.name == name)


def _is_wanted(check: Check, subject: Subject) -> bool:
    is_named = any(promise.check == check.name for promise in subject.promises)
    match check.when:
        case When.ALWAYS:
            return True
        case When.CONTRACT:
            return subject.contract is not None
        case When.NAMED:
            return is_named and (subject.contract is not None or check.name != WATERMARKS_LOCKED)
        case When.NEEDED:
            forbidden = (name for promise in subject.promises if promise.check is None for name in promise.forbids)
            return is_named or not set(check.anomalies).isdisjoint(forbidden)
        case _:
            assert_never(check.when)


def _transactions(subject: Subject) -> Judgement:
    return _by_generation(subject, _serializability(subject, TRANSACTIONS))


def _transactions_locked(subject: Subject) -> Judgement:
    judgement = _by_generation(subject, _serializability(subject, LOCKED), is_locked=True)
    return _of_locked(judgement, LOCKED)


def _of_locked(judgement: Judgement, check: str) -> Judgement:
    """The judgement relabelled as that check's, which covers reads under lock only.

    The same cycle may also be a finding among all reads, where it breaks another promise.
    """
    findings = tuple(
        msgspec.structs.replace(
            finding,
            checker=check,
            fingerprint=sha256(f"{check} {finding.fingerprint}".encode()).hexdigest()[:16],
            sentence=f"Counting reads under lock only: {finding.sentence}",
        )
        for finding in judgement.findings
    )
    return msgspec.structs.replace(judgement, checker=check, findings=findings)


def _serializability(subject: Subject, check: str) -> "_Parts":
    options = serializability.Options(
        prohibited=subject.prohibited.get(check, frozenset()),
        name=subject.name,
        order=subject.order,
        nothing=Dictionary(subject.history).identity(None),
    )
    return _in_tasks(subject, lambda part: partial(serializability.check, chunks(part), options=options))


def _streams(subject: Subject) -> Judgement:
    if subject.contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    return _in_a_task(subject, partial(streams.check, subject.history, subject.contract, name=subject.name))


def _watermarks(subject: Subject) -> Judgement:
    if subject.contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    follows = forbidden(subject.contract, subject.prohibited.get(TRANSACTIONS, frozenset()))
    named = _classes_named(subject, (WATERMARKS, None))
    return _cuts_of_streams(subject, subject.contract, follows | named)


def _watermarks_locked(subject: Subject) -> Judgement:
    if subject.contract is None:
        raise AssertionError("without a contract there is no stream to judge")
    named = _classes_named(subject, (WATERMARKS_LOCKED,))
    judgement = _cuts_of_streams(subject, subject.contract, named, is_locked=True)
    return _of_locked(judgement, WATERMARKS_LOCKED)


def _classes_named(subject: Subject, checks: tuple[str | None, ...]) -> frozenset[str]:
    """The consistency classes forbidden by promises that name one of `checks`."""
    promises = (promise for promise in subject.promises if promise.check in checks)
    return frozenset(name for promise in promises for name in promise.forbids if name in CUTS)


def _cuts_of_streams(
    subject: Subject, contract: StreamContract, classes: frozenset[str], *, is_locked: bool = False
) -> Judgement:
    options = watermark_check.Options(
        forbidden=classes,
        name=subject.name,
        order=subject.order,
        nothing=Dictionary(subject.history).identity(None),
    )
    judge = partial(watermark_check.check, history=subject.history, contract=contract, options=options)
    return _by_generation(subject, _in_tasks(subject, lambda part: partial(judge, part)), is_locked=is_locked)


def second_opinions(subject: Subject, judgements: Sequence[Judgement]) -> list[Judgement]:
    """The disagreements between the watermark graph and the stream rules, where both judged."""
    by_checker = {judgement.checker: judgement for judgement in judgements}
    if subject.contract is None or WATERMARKS not in by_checker or STREAMS not in by_checker:
        return []
    told = second_opinion(by_checker[WATERMARKS], by_checker[STREAMS], why(subject.history, subject.contract))
    return [] if told is None else [told]


def _cuts(subject: Subject) -> Judgement:
    return _by_generation(subject, _each(lambda history: cuts.check(history, subject.bounds, subject.name)))


def _freshness(subject: Subject) -> Judgement:
    return _by_generation(subject, _each(lambda history: freshness.check(history, subject.name)))


def _liveness(subject: Subject) -> Judgement:
    return liveness.check(subject.history, subject.bounds, subject.name, subject.contract)


def _acknowledged(subject: Subject) -> Judgement:
    return _in_a_task(
        subject, partial(acknowledged.check, subject.history, subject.contract, subject.excuses, name=subject.name)
    )


def _epoch_owners(subject: Subject) -> Judgement:
    return _in_a_task(subject, partial(epoch_fork.check, subject.history, subject.contract))


def _linearizability(subject: Subject) -> Judgement:
    return linearizability.check(subject.history, subject.engine, subject.register)


def _whole(check: Callable[[Path, Bounds, Name], Judgement]) -> Callable[[Subject], Judgement]:
    """The judge function of a check that takes the whole history, restarts included."""
    return lambda subject: check(subject.history, subject.bounds, subject.name)


def _excused(check: Callable[[Path, Bounds, Excuses, Name], Judgement]) -> Callable[[Subject], Judgement]:
    """The judge function of such a check for which it matters what faults excuse."""
    return lambda subject: check(subject.history, subject.bounds, subject.excuses, subject.name)


def _invariant(check: Callable[[Sequence[Op]], Judgement]) -> Callable[[Subject], Judgement]:
    """The judge function of a check of a simple workload, which reads plain operations."""
    return lambda subject: _by_generation(subject, _each(lambda history: check(operations(history, subject.history))))


def _bank(subject: Subject) -> Judgement:
    return _invariant(partial(bank.check, total=subject.bounds.total))(subject)


_Parts = Callable[[Sequence[Path]], list[Judgement]]  # A check's judgements, one for each part of a history.


def _by_generation(subject: Subject, judge: _Parts, *, is_locked: bool = False) -> Judgement:
    """The judgements of all generations as one.

    Copies of the parts are put beside the history, where remote workers can read them.
    """
    history, bits = subject.history, subject.bounds.saved_bits
    known = restarts(history) if bits is not None else ()
    told = told_of(history, subject.contract if known else None)
    chosen = parts(known, bits, told=told, is_locked=is_locked)
    if all(map(is_whole, chosen)):
        return merged(judge([history]))
    beside = history.parent if os.access(history.parent, os.W_OK) else None
    with temporary_folder("part", beside) as folder:
        written = [folder / str(part.generation) for part in chosen]
        for place, part in zip(written, chosen, strict=True):
            place.mkdir()
            write_part(history, place, part)
        return merged(judge(written))


def _each(judge: Callable[[Path], Judgement]) -> _Parts:
    """A check of plain values, run here on one part after the other."""
    return lambda found: [judge(part) for part in found]


def _in_tasks(subject: Subject, judge: Callable[[Path], tasks.Judge]) -> _Parts:
    """A check by kernels: on the engine; for small histories, one task per part."""
    return lambda found: tasks.judged(subject.history, [judge(part) for part in found], subject.engine)


def _in_a_task(subject: Subject, judge: tasks.Judge) -> Judgement:
    (judgement,) = tasks.judged(subject.history, [judge], subject.engine)
    return judgement


CHECKS: Final = (
    Check(TRANSACTIONS, tuple(TRANSACTIONAL), _transactions, When.ALWAYS),
    Check(LOCKED, tuple(TRANSACTIONAL), _transactions_locked, When.NAMED),
    Check(STREAMS, tuple(RULES), _streams, When.CONTRACT),
    Check(WATERMARKS, CUTS, _watermarks, When.CONTRACT),
    Check(WATERMARKS_LOCKED, CUTS, _watermarks_locked, When.NAMED),
    Check(acknowledged.CHECKER, acknowledged.ANOMALIES, _acknowledged, When.NAMED),
    Check(epoch_fork.CHECKER, epoch_fork.ANOMALIES, _epoch_owners, When.NAMED),
    Check(freshness.CHECKER, freshness.ANOMALIES, _freshness),
    Check(cuts.CHECKER, cuts.ANOMALIES, _cuts),
    Check(epochs.CHECKER, epochs.ANOMALIES, _whole(epochs.check)),
    Check(durability.CHECKER, durability.ANOMALIES, _excused(durability.check)),
    Check(survival.CHECKER, survival.ANOMALIES, _excused(survival.check)),
    Check(replicas.CHECKER, (replicas.DIVERGED,), _whole(replicas.check)),
    Check(authority.CHECKER, (authority.SPLIT,), _excused(authority.check)),
    Check(causes.CHECKER, (causes.FALSE_GAP, causes.SPURIOUS), _excused(causes.check)),
    Check(liveness.CHECKER, liveness.ANOMALIES, _liveness),
    Check(linearizability.CHECKER, linearizability.ANOMALIES, _linearizability),
    Check(bank.CHECKER, bank.ANOMALIES, _bank),
    Check(counter.CHECKER, counter.ANOMALIES, _invariant(counter.check)),
    Check(sets.SET_FULL, sets.ANOMALIES, _invariant(sets.check)),
    Check(sets.SET, sets.ANOMALIES, _invariant(partial(sets.check, is_last_only=True)), When.NAMED),
    Check(queues.QUEUE, queues.QUEUE_ANOMALIES, _invariant(queues.check_queue)),
    Check(queues.TOTAL, queues.TOTAL_ANOMALIES, _invariant(queues.check_total_queue), When.NAMED),
    Check(logs.CHECKER, logs.ANOMALIES, _invariant(logs.check), When.NAMED),
    Check(ids.CHECKER, ids.ANOMALIES, _invariant(ids.check)),
    Check(forks.LONG_FORK, forks.FORK_ANOMALIES, _invariant(forks.check_long_fork)),
    Check(forks.WRITE_SKEW, forks.SKEW_ANOMALIES, _invariant(forks.check_write_skew)),
    Check(monotonic.CHECKER, monotonic.ANOMALIES, _invariant(monotonic.check)),
    Check(causal.CAUSAL, causal.CAUSAL_ANOMALIES, _invariant(causal.check_causal)),
    Check(causal.SEQUENTIAL, causal.SEQUENTIAL_ANOMALIES, _invariant(causal.check_sequential)),
)
