"""Which checks a history gets, and how each judges it. `checkers/catalogue.py` has the table of checks.

A check runs only if some promise needs it, since each costs time. The transactional check always runs, and the stream
check wherever there is a contract.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace

from checkers import catalogue
from checkers.engine import tasks
from checkers.engine.protocol import Check, Context, Judge
from checkers.history.generations import merged
from checkers.words.checks import STREAMS, TRANSACTIONS, WATERMARKS
from harness.core.errors import ScenarioError
from harness.core.promises import Promise
from harness.core.verdict import Judgement, fingerprint
from harness.judging.generations import Generations
from harness.record.formats.promise_file import require_breakable

# What takes most of the time of a long run, the longest first. Streams are second, as they need no generations, which
# the first check of these writes.
LONGEST: Final = (WATERMARKS, STREAMS, TRANSACTIONS)


def general() -> tuple[Check, ...]:
    """The checks of `checkers`, which every history can get. Their modules are loaded."""
    return catalogue.CHECKS


def require_known(promises: Sequence[Promise], where: str, table: Sequence[Check] | None = None) -> None:
    """Raise ScenarioError, naming `where`, if a promise could never be broken, or two promises have one id.

    `table` has all checks; None: those of `checkers`.
    """
    for number, promise in enumerate(promises):
        place = f"{where}: promise {promise.id}"
        if promise.id in {each.id for each in promises[:number]}:
            raise ScenarioError(f"{place}: there is another one of that name")
        require_breakable(place, promise, general() if table is None else table)


def chosen(context: Context, table: Sequence[Check] | None = None) -> tuple[Check, ...]:
    """The checks to run on a history with those promises, out of `table`; None: of those of `checkers`."""
    return catalogue.wanted(context) if table is None else tuple(each for each in table if each.is_wanted(context))


def longest_first(checks: Sequence[Check], *, is_starting: bool = False) -> list[Check]:
    """The checks in the order in which they should begin, so that few wait for the last one.

    While the engine is starting, those that do not need it come right after the first one, which writes generations.
    """
    begun = sorted(checks, key=lambda check: LONGEST.index(check.name) if check.name in LONGEST else len(LONGEST))
    return [*begun[:1], *sorted(begun[1:], key=lambda check: is_starting and check.has_kernels)]


def judgement_of(check: Check, known: Generations) -> Judgement:
    """The judgement of that check. If it judges generations separately, their judgements are merged into one."""
    judged = partial(_of_parts, of_all=known.context)
    if not check.by_generation:
        return merged(judged(check, [(known.history, known.context)]))
    judgement = known.judgement(check, judged)
    return _of_locked(judgement, check.name) if check.is_locked else judgement


def _of_parts(check: Check, parts: Sequence[tuple[Path, Context]], *, of_all: Context) -> list[Judgement]:
    """The judgement of each part. Where tasks share no facts, a check of a family judges for all of that family."""
    if not check.has_kernels:
        return [check.judge(part, context) for part, context in parts]
    family = {each.name: (each.judge, each.is_locked) for each in chosen(of_all) if each.family == check.family}
    if check.family is None or len(family) == 1 or of_all.engine.name == "local":
        return tasks.judged(check.judge, parts)
    name = (*(part for part, _ in parts), check.family)
    found = of_all.facts.of(name, partial(tasks.judged, partial(_of_family, family=family), parts))
    return [judgements[check.name] for judgements in found]


def _of_family(history: Path, context: Context, *, family: Mapping[str, tuple[Judge, bool]]) -> dict[str, Judgement]:
    return {name: judge(history, replace(context, is_locked=is_locked)) for name, (judge, is_locked) in family.items()}


def _of_locked(judgement: Judgement, check: str) -> Judgement:
    """The judgement, relabelled as one by `check`, which covers only reads under lock.

    The same cycle may also be a finding among all reads, where it breaks another promise.
    """
    findings = tuple(
        msgspec.structs.replace(
            finding,
            checker=check,
            fingerprint=fingerprint(check, finding.fingerprint),
            sentence=f"Counting reads under lock only: {finding.sentence}",
        )
        for finding in judgement.findings
    )
    return msgspec.structs.replace(judgement, checker=check, findings=findings)


def second_opinions(history: Path, context: Context, judgements: Sequence[Judgement]) -> list[Judgement]:
    """The disagreements between the watermark graph and the stream rules, if both have judged."""
    by_checker = {judgement.checker: judgement for judgement in judgements}
    if context.contract is None or WATERMARKS not in by_checker or STREAMS not in by_checker:
        return []
    from checkers.watermarks.disputes import why  # noqa: PLC0415  Loaded where watermarks were judged, and only there.
    from checkers.watermarks.second_opinion import second_opinion  # noqa: PLC0415

    opinion = second_opinion(
        by_checker[WATERMARKS], by_checker[STREAMS], why(history, context.contract, context.bounds.views)
    )
    return [] if opinion is None else [opinion]
