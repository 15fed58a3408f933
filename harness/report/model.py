"""report.json as a value: the only source for the screen, the page and other tools.

The schema has a version, and names are never reused. Null means that a fact is unknown; an empty list is a fact.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import msgspec

from checkers.verdict.groups import groups
from checkers.words.anomalies import Anomaly
from harness.core.command import seamark
from harness.core.promises import MODEL
from harness.core.record import Json
from harness.core.trace import Window
from harness.core.verdict import Finding, Relation, Verdict
from harness.record.bounded import Amount, Count, PromiseCode, VerdictCode
from harness.record.documents import read_document
from harness.record.store import RUN_FILE
from harness.report.shrunk import is_shrunk
from harness.scenario.hand import at_hand

REPORT_SCHEMA = 1
STEP_NS = 10_000_000  # Windows of traces begin and end at multiples of this.
REPORT_FILE = "report.json"
MORE_RUNS = 20
TRIES_IN_CONTAINERS = 20  # Each takes a minute or less.


class PromiseRow(msgspec.Struct, frozen=True, kw_only=True):
    """A promise and its result. `verdict`: holds, violated, unknown or not-exercised."""

    id: str
    verdict: PromiseCode
    witnesses: Count
    text: str
    source: str
    reason: str | None = None


class FaultRow(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of fault over the whole run.

    `ok`, `fail` and `info` count operations that completed while it was in force.
    """

    kind: str
    planned: Count
    begun: Count
    effective: Count
    ok: Count
    fail: Count
    info: Count


class FindingRow(Finding, frozen=True, kw_only=True):
    """A finding, with the promise that it breaks; None: no promise forbids it."""

    promise: str | None = None

    @property
    def symptom(self) -> str:
        """The part of a finding that the same bug has in every run: anomaly, promise, and the relations of its cycle.

        Repeated relations in a row count once, as a longer cycle is no other bug: "G-single NDB-G1 rw-wr".
        """
        return " ".join(filter(None, (self.anomaly, self.promise, "-".join(self.shape))))

    @property
    def shape(self) -> list[Relation]:
        """The relations of its cycle: equal neighbours once, from where they come first in the alphabet."""
        relations = [step.relation for step in self.cycle]
        once = [each for each, before in zip(relations, relations[-1:] + relations, strict=False) if each != before]
        return min((once[place:] + once[:place] for place in range(len(once))), default=relations[:1])


class Exposed(msgspec.Struct, frozen=True, kw_only=True):
    """The exposure that a run adds to its sweep, besides its promises and faults.

    `purposes` are the ids of the promises for which the test exists. `has_end`: the run came to its end, with final
    reads, and every subscriber caught up. Of `all_versions` writes whose version order matters it is known for
    `known_versions`.
    """

    ok_by_type: dict[str, Count] = {}
    met: dict[str, Count] = {}  # By kind of fault: operations that were open during a step with effect.
    long: tuple[str, ...] = ()  # The kinds with a step long enough that operations should complete in it.
    purposes: tuple[str, ...] = ()
    has_end: bool = True
    known_versions: Count = 0
    all_versions: Count = 0
    watermarks_with_writes: Count | None = None  # None: no stream is under test.
    recovery_s: Amount | None = None  # The longest time from the end of a fault to the next success.
    watermark_gap_s: Amount | None = None  # The longest time between two watermarks of a subscriber under load.


class WayOut(msgspec.Struct, frozen=True, kw_only=True):
    """The change that lets a run test enough. `command` is None if the change cannot be put into a command."""

    sentence: str
    command: str | None = None


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """The report on one run, or on one foreign history."""

    schema: int = REPORT_SCHEMA
    verdict: VerdictCode
    exit_code: int
    reason: str
    clause: str | None = None  # The clause that made a run vacuous: a, b, c, d or e.
    way_out: WayOut | None = None  # Only of a vacuous run of ours.
    anywhere: str | None = None  # The command that makes the run again without its folder, on any machine.
    incomplete: bool = False  # True if the run did not complete; its records were judged.
    failure: str | None = None  # The harness's own error during the run, which every later judgement keeps.
    started_utc: str | None = None
    versions: dict[str, str] = {}
    sut: dict[str, str] = {}  # The release of the system under test, as declared.
    plan_sha256: str | None = None
    run: str | None = None
    cluster: str | None = None
    code: str | None = None  # The place of the cluster, if it is in a file.
    workload: str | None = None
    runtime: str | None = None
    model: str | None = None
    seed: int | None = None
    bugs: tuple[str, ...] = ()
    is_given: bool = False  # Its plan or its operations were given, as of a shrunk or repeated run: the seed drew none.
    drawn: dict[str, Json] = {}  # The seed's choices: parameters of the cluster and of the faults.
    history_sha256: str | None = None
    unseed: str | None = None
    findings: tuple[FindingRow, ...] = ()
    declared: dict[str, Anomaly] = {}  # The records of those anomalies that the system's own checks declare, by name.
    promises: tuple[PromiseRow, ...] = ()
    faults: tuple[FaultRow, ...] = ()
    excused: tuple[str, ...] = ()  # Faults whose lack of effect was excused, by name.
    goals: dict[str, Count] = {}
    exposure: Exposed | None = None  # Only of a run of ours.
    operations: dict[str, Count] = {}
    duration_s: Amount | None = None  # The run's own time.
    engine: str | None = None  # The engine that judged: "spark", or "local", which is threads.
    facts: dict[str, Json] = {}
    seconds: dict[str, float] = {}


WHERE: Mapping[str, str] = MappingProxyType({"sim": "in simulation", "docker": "in containers"})


def repetition(report: Report) -> str | None:
    """The command that repeats a run: exactly in simulation, elsewhere its plan and workload.

    None for a history that is no run.
    """
    if report.run is None:
        return None
    words = ("replay", report.run) if report.runtime == "sim" else ("run", f"{report.run}/{RUN_FILE}")
    return seamark(*words) if report.code is None else seamark(*words, "--cluster", report.code)


def with_shrink(command: str) -> str:
    """The command that judges a history from elsewhere, with the option that makes it small in its own format."""
    return f"{command} --shrink small{'.edn' if '.edn' in command else '.jsonl'}"


def exactness(report: Report) -> str:
    """How exactly a repetition repeats the run: "exact", or only "the same plan and workload"."""
    return "exact" if report.runtime == "sim" else "the same plan and workload"


def moment_window(ns: int) -> Window:
    """The window around the moment at which a finding became visible."""
    return Window(from_ns=max(0, ns // STEP_NS - 4) * STEP_NS, to_ns=(ns // STEP_NS + 4) * STEP_NS)


def closer(report: Report, around: Window) -> str | None:
    """The command that traces the messages in that window; None unless the run was simulated."""
    command = repetition(report)
    return None if command is None or report.runtime != "sim" else f"{command} --trace {around}"


def smaller(report: Report, finding: FindingRow) -> str | None:
    """The command that makes a run as small as that finding allows; in containers with few tries, as each takes long.

    None if it breaks no promise, if this is such a smallest run, or if its containers are its author's.
    """
    if report.run is None or finding.promise is None or is_shrunk(report.run):
        return None
    if report.runtime != "sim" and report.anywhere is None:
        return None
    place = () if report.code is None else ("--cluster", report.code)
    first = next(each for each in report.findings if each.promise is not None)
    which = () if finding.anomaly == first.anomaly else ("--finding", finding.anomaly)
    tries = () if report.runtime == "sim" else ("--tries", TRIES_IN_CONTAINERS)
    return seamark("shrink", report.run, *place, *which, *tries)


def next_steps(report: Report, trace: str | None = None) -> list[tuple[str, str]]:
    """The commands to run after reading the verdict, as (label, command). `trace` shows the messages of the finding."""
    if report.verdict == Verdict.INVALID.value:
        small = next(filter(None, (smaller(report, each) for each in report.findings)), None)
        again = repetition(report) if report.runtime != "sim" else None
        steps = [("make it small", small), ("see its messages", trace), ("run it again", again)]
    elif report.way_out is not None:
        steps = [("test more", report.way_out.command)]
    else:
        steps = [("test more", more_runs(report))]
    here = () if report.code is None else (report.code,)
    return [(label, at_hand(command, here)) for label, command in steps if command is not None]


def more_runs(report: Report) -> str | None:
    """The command for MORE_RUNS runs like a green one, from its seed on; None if it is no such run."""
    if report.verdict != Verdict.VALID.value or report.anywhere is None:
        return None
    command, *comment = report.anywhere.split("  #", 1)
    return "  #".join([f"{command} --count {MORE_RUNS}", *comment])


def called(report: Report, promise: str | None) -> str:
    """The name of a promise for people: its id, or the model's name if the user named only a model."""
    if promise is None:
        return "none"
    return report.model if promise.startswith(MODEL) and report.model else promise


def grouped_findings(report: Report) -> list[list[FindingRow]]:
    """The findings, grouped by the event that they show: those that break a promise first, then observations."""
    broken = [finding for finding in report.findings if finding.promise]
    others = [finding for finding in report.findings if not finding.promise]
    return [*groups(broken, report.declared), *groups(others, report.declared)]


def model_ends(report: Report) -> tuple[list[str], list[str]]:
    """The weakest consistency models that the transactions rule out, and the strongest ones that they do not.

    Both are empty if no transaction depends on another: such a history is no evidence about any model.
    """
    facts = report.facts.get("serializability")
    if not isinstance(facts, dict):
        return [], []
    ends = [facts.get(name) for name in ("ruled_out_weakest", "not_ruled_out_strongest")]
    out, left = ([str(name) for name in end] if isinstance(end, list) else [] for end in ends)
    edges = facts.get("edges")
    return (out, left) if out or (isinstance(edges, dict) and any(edges.values())) else ([], [])


def allowed_anomalies(report: Report) -> list[str]:
    """The allowed anomalies found among transactions, each with its count."""
    facts = report.facts.get("serializability")
    counts = facts.get("allowed_anomalies") if isinstance(facts, dict) else None
    return [f"{name} ({count})" for name, count in counts.items()] if isinstance(counts, dict) else []


def how_decided(report: Report) -> str | None:
    """How the verdict on transactions was reached: "decided exactly", "decided by a counterexample", or neither.

    None if no transaction depends on another. A check that ended early has counted no dependencies.
    """
    facts = report.facts.get("serializability")
    if not isinstance(facts, dict) or not facts.get("decided"):
        return None
    if "edges" in facts and not any(model_ends(report)):
        return None
    decided = str(facts["decided"])
    words = {"proved": "decided exactly", "a counterexample was found": "decided by a counterexample"}
    return words.get(decided, f"not decided: {decided}")


def models_in_words(report: Report) -> list[str]:
    """The parts of a sentence about consistency models: the weakest ruled out, and the strongest that are consistent.

    None if the history is no evidence about any model.
    """
    out, left = model_ends(report)
    parts = [f"not {_listed(out, 'or')}, nor anything stronger"] if out else []
    return [*parts, *([f"consistent with {_listed(left, 'and')}"] if left else [])]


def _listed(names: list[str], last: str) -> str:
    return f" {last} ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def error_report(reason: str, **known: Json) -> Report:
    """The report of a run in which the harness itself failed."""
    verdict = Verdict.ERROR
    fields: dict[str, object] = {"verdict": verdict.value, "exit_code": verdict.exit_code, "reason": reason, **known}
    return msgspec.convert(fields, Report)


def to_json(report: Report) -> bytes:
    """report.json as indented text."""
    return msgspec.json.format(msgspec.json.encode(report, order="sorted"), indent=1) + b"\n"


def read_report(run: Path) -> Report | None:
    """The report in a run's folder; None if the run has not been judged. Raises HistoryError if it cannot be read."""
    path = run / REPORT_FILE
    if not path.exists() and not path.is_symlink():
        return None
    again = f"; make it again with {seamark('check', run)}"
    return read_document(path, Report, "a report", REPORT_SCHEMA, again=again)
