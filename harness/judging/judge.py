"""Judges a history: binds promises to checks, limits the time of each check, composes the verdict, builds the report.

No cluster is imported: the promises of a run are data in its run.json. Each check runs in a thread of its own; a check
that exceeds its budget is `unknown`, and the others still report.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from functools import partial
from itertools import chain
from pathlib import Path

import msgspec

from checkers.columns.origins import Origins
from checkers.engine.datasets import Engine
from checkers.engine.protocol import Check, Context
from checkers.history.names import Dictionary, Forms, Names, forms_of
from checkers.history.registers import ORDER, Register, declared_initial, initial_name, initial_state
from checkers.verdict.compose import Composition, PromiseState, PromiseVerdict, RunFacts, compose
from checkers.verdict.groups import groups
from checkers.words import models
from checkers.words.anomalies import Anomaly
from checkers.words.checks import TRANSACTIONS
from checkers.words.transactional import TRANSACTIONAL
from harness.core.errors import HistoryError
from harness.core.promises import Bounds, Excuses, Naming, Promise
from harness.core.record import BUSY, Json
from harness.core.verdict import Finding, Judgement, Verdict, fingerprint
from harness.judging.at_work import AtWork, of_all
from harness.judging.checks import judgement_of, longest_first, second_opinions
from harness.judging.engines import EngineFailed, is_starting
from harness.judging.facts import facts_of, final_successes
from harness.judging.generations import generations
from harness.judging.promised import named_models, promises_of, seen
from harness.judging.table import Table, table_of
from harness.judging.unjudged import nothing_judged, operations_beside
from harness.record.exposure import Exposure, read_exposure
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import footer_of, hash_of
from harness.record.formats.parquet.tables import has_transactions, row_count
from harness.record.formats.promise_file import Promised
from harness.record.store import RunFile
from harness.report.model import FindingRow, PromiseRow, Report
from harness.report.trouble import ERROR_LOG, in_one_line

SECOND = 1_000_000_000
SETTLED = Promise(
    id="SETTLE",
    text="After healing, within the declared bound, every operation succeeds and every subscriber is up to date.",
    source="the bound that the cluster declares, settle_ns",
    forbids=("stall",),
    is_purpose=False,
    check="settling",
)


class Outlet(msgspec.Struct, frozen=True, kw_only=True):
    """Outputs of a judgement besides the report: `log` gets tracebacks, `tell` gets the name of the check at work."""

    log: Path = ERROR_LOG
    tell: Callable[[str], None] | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of a judgement. `check_s` is seconds per check; None: no limit."""

    check_s: float | None = None


def judge(  # noqa: PLR0913  Each argument is an option of the command.
    loaded: Loaded,
    engine: Engine,
    *,
    run_file: RunFile | None = None,
    promised: Promised | None = None,
    model: str | None = None,
    budget: Budget | None = None,
    initial: str | None = None,
    failure: str | None = None,
    outlet: Outlet | None = None,
    table: Table | None = None,
) -> Report:
    """The report on a history: on a run if there is a `run_file`, else on a foreign history.

    `promised` holds the promises that the user declares for a foreign history, and `initial` the initial value of
    registers: "first" or JSON. `failure` is the harness's own error during the run; findings count all the same. A
    check that raises is such a failure too: its traceback goes to the log of `outlet`, and the others still report.
    `table` has the checks. Raises HistoryError if the history cannot be read, ScenarioError if there is no such model.
    """
    table = table_of(run_file) if table is None else table
    started = time.monotonic()
    exposure = read_exposure(loaded.history)
    promises, shown = _promises(loaded, run_file, promised, model, table)
    loaded = _noted(loaded, run_file or promised, exposure)
    context = _context(loaded.history, engine, run_file or promised, promises, initial)
    judgements, failures = _judgements(loaded.history, context, exposure, table, budget or Budget(), outlet or Outlet())
    failure = "; ".join([failure, *failures] if failure else failures) or None
    judgements += [] if run_file is None else [_settling(exposure)]
    facts = facts_of(loaded, exposure, judgements, declared=run_file or promised, failure=failure)
    composition, own = _composition(promises, judgements, facts, table, is_run=run_file is not None), table.declared()
    report = Report(
        verdict=composition.verdict.value,
        exit_code=composition.verdict.exit_code,
        reason=_reason(composition, facts, loaded, promises),
        clause=composition.clause,
        incomplete=not loaded.is_complete,
        model=next(iter(named_models(promises)), shown),
        findings=(rows := _finding_rows(composition, own)),
        declared={row.anomaly: own[row.anomaly] for row in rows if row.anomaly in own},
        promises=tuple(map(_promise_row, composition.promises)),
        excused=composition.excused,
        operations=exposure.operations.counts(),
        duration_s=exposure.duration_ns / SECOND,
        engine=engine.name,
        facts=_facts(judgements, loaded.notes, failure, has_question=any(context.prohibited.get(TRANSACTIONS, ()))),
        seconds={"check": round(time.monotonic() - started, 3)},
    )
    return report if run_file is None else _as_run(report, run_file, exposure, facts, loaded.history)


def _composition(
    promises: Sequence[Promise], judgements: Sequence[Judgement], facts: RunFacts, table: Table, *, is_run: bool
) -> Composition:
    """The verdict on all judgements; a run must also have settled."""
    bound = {name: models.prohibited((name,)) for name in named_models(promises)}
    settled = (SETTLED,) if is_run else ()
    return compose(promises, judgements, facts, of_harness=settled, models=bound, records=table.declared())


def _noted(loaded: Loaded, declared: RunFile | Promised | None, exposure: Exposure) -> Loaded:
    """The history with a note about a run's load; or, if nothing is declared, about operations that are not judged."""
    notes = () if declared is not None else operations_beside(loaded.history)
    more = _missing_load(declared, exposure) if isinstance(declared, RunFile) else ()
    return msgspec.structs.replace(loaded, notes=(*loaded.notes, *notes, *more))


def _missing_load(run_file: RunFile, exposure: Exposure) -> Iterator[str]:
    """A note if less than half of the operations were begun that were due before the load ended."""
    rate = run_file.options.get("rate")
    begin_ns, end_ns = (exposure.phases.get(phase) for phase in ("load", "healing"))
    if not isinstance(rate, int | float) or begin_ns is None or end_ns is None:
        return
    invoke_ns = exposure.operations.invoke_ns
    due = int(rate * (end_ns - begin_ns) / SECOND)
    begun = int(((invoke_ns >= begin_ns) & (invoke_ns < end_ns)).sum())
    if 2 * begun < due:
        yield f"{begun:,} of {due:,} operations were begun, as each client has one at a time; more of them: --clients"


def _promises(
    loaded: Loaded, run_file: RunFile | None, promised: Promised | None, model: str | None, table: Table
) -> tuple[tuple[Promise, ...], str | None]:
    """The promises to judge by; and the model, if the promises were inferred for it.

    The default model is not asked of a history without transactions that the command line's checks can judge.
    """
    model = None if model is None else models.canonical(model)
    inferred = seen(loaded.history, model, loaded.source) if run_file is None and promised is None else ()
    is_by_checks = not (run_file or promised or model) and table.given and not has_transactions(loaded.history)
    promises = inferred or (() if is_by_checks else promises_of(run_file, promised, model, table))
    return table.with_given(promises), model if inferred else None


def _reason(composition: Composition, facts: RunFacts, loaded: Loaded, promises: tuple[Promise, ...]) -> str:
    """The reason of the verdict; for a foreign history that left nothing to judge, its cause."""
    is_empty = all(each.state is PromiseState.NOT_EXERCISED for each in composition.promises)
    if not (facts.is_foreign and is_empty and facts.unjudged is None and facts.incomplete is None):
        return composition.reason
    if composition.verdict is not Verdict.VACUOUS:
        return composition.reason
    return nothing_judged(loaded.history, loaded.source, promises) or composition.reason


def _context(
    history: Path,
    engine: Engine,
    declared: RunFile | Promised | None,
    promises: Sequence[Promise],
    initial: str | None,
) -> Context:
    """The context of all checks: the engine and the declarations."""
    prohibited: dict[str, tuple[frozenset[str], ...]] = {}
    for promise in promises:
        check = promise.check or TRANSACTIONS
        named = models.prohibited(named_models((promise,)), [name for name in promise.forbids if name in TRANSACTIONAL])
        prohibited[check] = (*prohibited.get(check, ()), named)
    register, order = _register(declared), declared.versions if isinstance(declared, Promised) else ORDER
    if initial is not None:
        order = declared_initial(order, initial)
        is_known = not order.initial_by_first_transaction
        register = msgspec.structs.replace(register, initial=order.initial, is_initial_known=is_known)
    return Context(
        engine=engine,
        name=Names(Dictionary(history).text, forms_declared(declared, history), initial_name(order), Origins(history)),
        promises=promises,
        prohibited=prohibited,
        bounds=declared.bounds if declared is not None else Bounds(),
        contract=declared.stream if declared is not None else None,
        register=register,
        order=order,
        initial=initial_state(history, order, is_known=register.is_initial_known),
        excuses=_excuses(history),
        apt=_apt(history, declared),
    )


def _excuses(history: Path) -> Excuses:
    """What each kind of fault excuses; empty for a history without faults."""
    if not row_count(history, "faults"):
        return {}
    from nemesis.registry import EXCUSES  # noqa: PLC0415  It loads all kinds of faults.

    return EXCUSES


def _apt(history: Path, declared: RunFile | Promised | None) -> frozenset[str]:
    """The checks of the workload that a foreign history resembles, for promises that name no check."""
    if not isinstance(declared, Promised) or all(promise.check is not None for promise in declared.promises):
        return frozenset()
    from harness.record.formats.sight import sighted  # noqa: PLC0415  It loads the checks of all workloads.

    return frozenset(promise.check for promise in sighted(history) if promise.check is not None)


def forms_declared(declared: RunFile | Promised | None, history: Path) -> Forms:
    """The forms of names in sentences: the declared ones, else those that the contract suggests."""
    if declared is None:
        return forms_of(Naming(), None, Bounds())
    return forms_of(declared.naming, declared.stream, declared.bounds, Origins(history))


def _register(declared: RunFile | Promised | None) -> Register:
    """The options for reading registers: those of our workloads start empty, and reading an empty one returns nil."""
    if isinstance(declared, RunFile):
        return Register(is_initial_known=True, nil="absent")
    return Register() if declared is None or declared.register is None else declared.register


def _judgements(
    history: Path, context: Context, exposure: Exposure, table: Table, budget: Budget | None, outlet: Outlet | None
) -> tuple[list[Judgement], list[str]]:
    """The judgement of each check, and the reasons of those that failed.

    The anomalies of a failed check are unknown.
    """
    budget, outlet = budget or Budget(), outlet or Outlet()
    history = history.absolute()  # Spark's processes may have been started in another folder.
    at_work = AtWork(outlet.tell)

    def judged(check: Check) -> tuple[Judgement, str | None]:
        name = check.name
        try:
            with at_work.on(name):
                return _within(check, partial(judgement_of, check, known), budget.check_s, exposure), None
        except (HistoryError, MemoryError, EngineFailed):
            raise  # Damaged evidence supports no finding, and without its engine no check has judged anything.
        except Exception as error:  # noqa: BLE001  A bug in one check must not hide the findings of others.
            failure = f"the check {name} failed: {in_one_line(error, outlet.log)}"
            return _undecided(check, failure), failure

    checks = table.chosen(context)
    for files in table.files_for(checks):
        context.engine.carry(files)
    begun = longest_first(checks, is_starting=is_starting(context.engine, is_awaited=budget.check_s is not None))
    with generations(history, context) as known:
        results = of_all(judged, begun, context.engine.checks_at_once)
    by_name = dict(zip((check.name for check in begun), results, strict=True))
    found = [by_name[check.name] for check in checks]  # In the order of the report, whatever ended first.
    judgements, failures = [judgement for judgement, _ in found], [failure for _, failure in found if failure]
    return [*judgements, *second_opinions(history, context, judgements)], failures


def _within(check: Check, judged: Callable[[], Judgement], limit_s: float | None, exposure: Exposure) -> Judgement:
    """The judgement of one check; unknown if it takes too long. Its exceptions are raised here."""
    if limit_s is None:
        return judged()
    future: Future[Judgement] = Future()

    def work() -> None:
        try:
            future.set_result(judged())
        except BaseException as error:  # noqa: BLE001  Handed to the thread that waits.
            future.set_exception(error)

    threading.Thread(target=work, name=f"check {check.name}", daemon=True).start()
    try:
        return future.result(limit_s)
    except TimeoutError:
        count = len(exposure.operations.outcome)
        reason = f"check-timeout: {check.name} took longer than {limit_s:g} s over {count:,} operations"
        return _undecided(check, reason)


def _undecided(check: Check, reason: str) -> Judgement:
    return Judgement(checker=check.name, findings=(), witnesses={}, unknown=dict.fromkeys(check.anomalies, reason))


def _settling(exposure: Exposure) -> Judgement:
    """The judgement on whether the system came to rest after healing; unknown if the machine was too busy."""
    is_stall = exposure.note is not None and exposure.note.startswith("stall")
    findings: tuple[Finding, ...] = ()
    healed_ns = exposure.phases.get("healing", 0)
    busy = [each.note for each in exposure.windows if each.kind == BUSY and each.end_ns >= healed_ns]
    if is_stall and busy:
        reason = f"{exposure.note}; but the machine was too busy to run the nodes in time: {busy[-1]}"
        return Judgement(checker="settling", findings=(), witnesses={}, unknown={"stall": reason})
    if is_stall and exposure.note is not None:
        sentence = exposure.note.removeprefix("stall: ")
        facts = fingerprint("stall")
        findings = (Finding(fingerprint=facts, anomaly="stall", checker="settling", sentence=f"{sentence}."),)
    return Judgement(checker="settling", findings=findings, witnesses={"stall": final_successes(exposure)})


def _finding_rows(composition: Composition, own: Mapping[str, Anomaly]) -> tuple[FindingRow, ...]:
    """All findings, each once: those that break a promise first, root causes before their consequences."""
    rows: dict[str, FindingRow] = {}
    for each in composition.promises:
        for finding in each.findings:
            row = FindingRow(**msgspec.structs.asdict(finding), promise=each.promise.id)
            rows.setdefault(finding.fingerprint, row)
    broken = tuple(chain.from_iterable(groups(tuple(rows.values()), own)))
    others = (finding for finding in composition.observations if finding.fingerprint not in rows)
    return (*broken, *(FindingRow(**msgspec.structs.asdict(finding)) for finding in others))


def _promise_row(each: PromiseVerdict) -> PromiseRow:
    promise = each.promise
    return PromiseRow(
        id=promise.id,
        verdict=each.state.value,
        witnesses=each.witnesses,
        text=promise.text,
        source=promise.source,
        reason=each.reason,
    )


def _facts(
    judgements: Sequence[Judgement], notes: Sequence[str], failure: str | None, *, has_question: bool
) -> dict[str, Json]:
    """The facts of all checks. `has_question`: a promise forbids something that transactions can show."""
    facts: dict[str, Json] = {judgement.checker: judgement.facts for judgement in judgements if judgement.facts}
    for judgement in judgements:
        noted = judgement.facts.get("notes")
        notes = [*notes, *(map(str, noted) if isinstance(noted, list) else ())]
        if judgement.checker == TRANSACTIONS:
            facts[TRANSACTIONS] = judgement.facts | ({"decided": _decided(judgement)} if has_question else {})
    said = [*notes, *([failure] if failure else [])]
    return facts | ({"notes": list[Json](said)} if said else {})


def _decided(judgement: Judgement) -> str:
    """The certainty of that judgement as a phrase: a counterexample, a proof, or neither."""
    pairs = judgement.facts.get("undecided_pairs")
    if judgement.findings:
        return "a counterexample was found"
    if not judgement.unknown:
        return "proved"
    return "no counterexample found" + (f", {pairs:,} pairs of versions undecided" if isinstance(pairs, int) else "")


def _as_run(report: Report, run_file: RunFile, exposure: Exposure, facts: RunFacts, history: Path) -> Report:
    from harness.judging.of_run import as_run  # noqa: PLC0415  It loads scenarios, which a history from elsewhere lacks.

    return as_run(report, run_file, exposure, facts, history)


def history_identity(history: Path) -> tuple[str | None, str | None]:
    """The history's hash, if Seamark wrote its files; and the run's unseed, if the run completed."""
    footer = footer_of(history)
    return hash_of(history), footer.unseed if footer is not None else None
