"""The table of checks, and how each judges a history. A new check is a module with `CHECKS`, and a row here.

Only checks that a promise needs are run, since each costs time. The transactional
check is always made, and the stream check wherever there is a contract.
"""

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Final

import msgspec

from checkers.engine import tasks
from checkers.engine.protocol import AtOnce, Check, Context
from checkers.history.generation_files import Part, is_whole, parts, write_part
from checkers.history.generations import merged, placement_of_streams, restarts
from checkers.history.stretches import write_stretches
from checkers.streams.findings import CHECKER as STREAMS
from checkers.watermarks.disputes import why
from checkers.watermarks.second_opinion import second_opinion
from checkers.watermarks.sentences import CHECKER as WATERMARKS
from harness.core.errors import ScenarioError
from harness.core.promises import Promise
from harness.core.verdict import Judgement
from harness.record.formats.promise_file import require_breakable
from harness.record.ownership import temporary_folder

# The modules with checks, in the order of the report.
MODULES: Final = (
    "transactions.check",
    "streams.check",
    "watermarks.check",
    "streams.acknowledged",
    "streams.epoch_fork",
    "state.freshness",
    "state.cuts",
    "state.epochs",
    "state.durability",
    "state.survival",
    "state.replicas",
    "state.authority",
    "state.causes",
    "state.liveness",
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


MANY: Final = 2  # More generations than this are judged at once: until then each by itself costs less.


def checks_of(modules: Sequence[str]) -> tuple[Check, ...]:
    """The checks of those modules of `checkers`, in order."""
    return tuple(check for name in modules for check in import_module(f"checkers.{name}").CHECKS)


CHECKS: Final = checks_of(MODULES)


def require_known(promises: Sequence[Promise], where: str) -> None:
    """Raise ScenarioError, which names `where`, if a promise could never be broken, or two have one id."""
    for number, promise in enumerate(promises):
        place = f"{where}: promise {promise.id}"
        if promise.id in {each.id for each in promises[:number]}:
            raise ScenarioError(f"{place}: there is another one of that name")
        require_breakable(place, promise, CHECKS)


def chosen(context: Context) -> tuple[Check, ...]:
    """The checks to make of a history with those promises."""
    return tuple(check for check in CHECKS if check.is_wanted(context))


def anomalies_of(name: str) -> tuple[str, ...]:
    """The anomalies that the check of that name looks for."""
    return next(check.anomalies for check in CHECKS if check.name == name)


def judgement_of(check: Check, history: Path, context: Context) -> Judgement:
    """The judgement of that check. If it judges generations by themselves, those of all generations as one."""
    context = replace(context, whole=history)
    if not check.by_generation:
        return merged(_of_parts(check, [history], context))
    bits = context.bounds.saved_bits
    known = restarts(history) if bits is not None else ()
    reported = placement_of_streams(history, context.contract if known else None)
    selected = parts(known, bits, reported=reported, is_locked=check.is_locked)
    if all(map(is_whole, selected)):
        return merged(_of_parts(check, [history], context))
    # Copies of the parts are put beside the history, where remote workers can read them.
    beside = history.parent if os.access(history.parent, os.W_OK) else None
    with temporary_folder("part", beside) as folder:
        earlier = _before_last(check, history, folder, selected[-1], context) if len(selected) > MANY else None
        found = [] if earlier is None else [earlier]
        for part in selected[-1:] if found else selected:
            found += _of_parts(check, [_written(history, folder / f"generation-{part.generation}", part)], context)
        judgement = merged(found, generations=len(selected))
    return _of_locked(judgement, check.name) if check.is_locked else judgement


def _written(history: Path, place: Path, part: Part) -> Path:
    place.mkdir()
    write_part(history, place, part)
    return place


def _before_last(check: Check, history: Path, folder: Path, last: Part, context: Context) -> Judgement | None:
    """The judgement of all generations but the last, at once; None if it takes each of them by itself.

    It does if there are findings or open questions: these may mix generations. Without, no generation has any.
    """
    if check.at_once is AtOnce.NO:
        return None
    stretches = write_stretches(
        history,
        folder,
        last.restarts,
        saved_bits=last.saved_bits,
        reported=last.reported,
        is_locked=last.is_locked,
    )
    if stretches is None:
        return None
    [judgement] = _of_parts(check, [stretches.folder], replace(context, whole=stretches.folder, stretches=stretches))
    if judgement.findings or judgement.unknown:
        return None
    if check.at_once is AtOnce.BY_ITSELF:
        return judgement
    lengths, places = zip(*stretches.parts, strict=True) if stretches.parts else ((), ())
    witnesses: Counter[str] = Counter()
    for length, part in zip(lengths, _of_parts(check, places, replace(context, stretches=stretches)), strict=True):
        witnesses.update({name: length * count for name, count in part.witnesses.items()})
    return msgspec.structs.replace(judgement, witnesses=dict(witnesses))


def _of_parts(check: Check, history_parts: Sequence[Path], context: Context) -> list[Judgement]:
    if check.has_kernels:
        return tasks.judged(check.judge, history_parts, context)
    return [check.judge(part, context) for part in history_parts]


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


def second_opinions(history: Path, context: Context, judgements: Sequence[Judgement]) -> list[Judgement]:
    """The disagreements between the watermark graph and the stream rules, where both judged."""
    by_checker = {judgement.checker: judgement for judgement in judgements}
    if context.contract is None or WATERMARKS not in by_checker or STREAMS not in by_checker:
        return []
    opinion = second_opinion(by_checker[WATERMARKS], by_checker[STREAMS], why(history, context.contract))
    return [] if opinion is None else [opinion]
