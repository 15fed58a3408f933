"""Reasons why an anomaly is unknown: a search or solver that ended early, keys that were left out, reads of garbage."""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from checkers.axioms.ladder import Answers
from checkers.graph.residual import Search
from checkers.graph.sightings import Report, Sighting
from checkers.history.names import Names
from checkers.transactions.options import Options
from checkers.words import models
from checkers.words.transactional import OWN, TIMED_CYCLES, TRANSACTIONAL
from harness.core.columns import NOTHING
from harness.core.record import Json

# The anomalies that some models forbid and no check looks for, each with one that it is a case of.
COVERS: Final = {
    "G-cursor": "G-single",
    "G-monotonic": "G-single",
    "G-MSR": "G-nonadjacent",
    "G-SIb": "G-nonadjacent",
    "G-update": "G2-item",
}
_NOT_SOUGHT: Final = "not-sought: it is a case of {}, which occurs, and no check distinguishes these cases"
_UNNAMED: Final = "unnamed-cycle: the reads have a cycle with known versions or time, which no search named"
_UNTIMED: Final = (
    "no-real-time: the times of the file do not show which operation ended before which began; give each map the time "
    "of one clock, or choose a model without real time, such as strong-session-serializable"
)
_CONTRADICTED: Final = "contradicted-order: reads of a list disagree on its order, so it proves nothing"
_ANYWAY: Final = frozenset({"internal", OWN})  # Found within one transaction, even if its keys are left out.
_UNWRITTEN: Final = frozenset({"garbage-read", "unwritten-read"})
_LEFT_OUT: Final = {
    "duplicate-appends": "{element} was appended to {key} more than once (T{op})",
    "duplicate-writes": "{element} was written to {key} more than once (T{op})",
    "written-again": "{element} was read in {key} before T{op} wrote it, so {key} held it at first, unless you declare "
    "with --initial what registers held (null for nothing)",
    "equal-commits": "too many writes of {key} share a position (T{op} among them) to be ordered",
    "mixed-key": "{key} is used as a list (T{op}) and as a register",
}
_WRITTEN_AGAIN: Final = "{key} held {element} at first, and that was written again (T{op})"


class Cycles(Struct, frozen=True):
    """The outcome of the search for cycles. `truncated` is the number of residual edges if only a part was searched."""

    search: Search
    window_count: int
    residual_edges: int
    truncated: int | None


def unknown(
    report: Report, left_out: Sequence[Sighting], cycles: Cycles, answers: Answers, options: Options
) -> dict[str, str]:
    """For each anomaly that counts and is neither found nor excluded, the reason why it is unknown."""
    tally, forbidden = report.tally, options.forbidden()
    reasons: dict[str, str] = {}
    if cycles.truncated is not None:
        size = f"residual-too-large: {cycles.truncated} edges, of which {cycles.residual_edges} were searched"
        reasons |= dict.fromkeys(TIMED_CYCLES, size)
    for name in cycles.search.undecided:
        reasons[name] = f"search-too-long: a component of the residual graph has too many edges to decide on {name}"
    reasons = {name: why for name, why in reasons.items() if name not in answers.absent} | answers.unknown
    if options.is_empty_unknown and not tally["ww"] + tally["wr"] + tally["rw"] and not _has_order(report, forbidden):
        reasons |= dict.fromkeys(TRANSACTIONAL, "empty-transaction-graph: no transaction depends on another")
    if left_out:
        reason = "; ".join(_reason(one, options.name) for one in left_out)
        reasons |= dict.fromkeys(set(TRANSACTIONAL) - _ANYWAY, reason)
    garbage = open_by_garbage(report, options)
    if garbage:
        affected = options.undecided(_UNWRITTEN & {one.anomaly for one in report.sightings}) & {
            *garbage,
            *answers.unknown,
        }
        reasons |= dict.fromkeys(affected, "; ".join(unwritten(report, options)))
    found = {sighting.anomaly for sighting in report.sightings} | {named.anomaly for named in cycles.search.named}
    found |= {anomaly for anomaly, _ in answers.broken}
    reasons |= dict.fromkeys(answers.unnamed(forbidden, found), _UNNAMED)
    reasons |= {name: reasons[cover] for name, cover in COVERS.items() if cover in reasons}
    present = models.implied(found)
    unsettled = options.undecided(found)
    reasons |= {n: _NOT_SOUGHT.format(cover) for n, cover in COVERS.items() if cover in present and n in unsettled}
    names = (*TRANSACTIONAL, *COVERS)
    judged = {name: reasons[name] for name in names if name in reasons and name in forbidden - found}
    return judged | dict.fromkeys(sorted(options.undecided(found, in_sight=False)), _UNTIMED)


def open_by_garbage(report: Report, options: Options) -> frozenset[str]:
    """The anomaly that a read may be of a value that nobody wrote and that was not there at first."""
    tally = report.tally
    is_garbage = tally["unwritten-twice"] or (tally["values-without-writer"] and options.initial.is_declared)
    return frozenset({"G1a"} if is_garbage else ())


def undisputed(answers: Answers, report: Report) -> Answers:
    """The answers, but open where they may come from the order of a list on which reads disagree: axioms know one."""
    if not report.tally["keys-contradicted"]:
        return answers
    names = (name for name, _ in answers.broken)
    return replace(answers, broken=(), unknown=answers.unknown | dict.fromkeys(names, _CONTRADICTED))


def _has_order(report: Report, forbidden: frozenset[str]) -> bool:
    """True if some operations are ordered by time alone, and an anomaly with an order of time counts."""
    return report.tally["ok"] > 1 and any(name.endswith(("-process", "-realtime")) for name in forbidden)


def _reason(left_out: Sighting, name: Names) -> str:
    """The reason why keys were left out, with one such key."""
    example = left_out.example
    is_initial = example.element == NOTHING and left_out.anomaly == "duplicate-writes"
    form = _WRITTEN_AGAIN if is_initial else _LEFT_OUT[left_out.anomaly]
    element = name.initial if example.element < 0 else name(example.element)
    reported = form.format(element=element, key=name.key(example.key), op=example.op)
    keys = "1 such key" if left_out.count == 1 else f"{left_out.count} such keys"
    return f"{left_out.anomaly}: {reported}; nothing follows for {keys}"


def _garbage(report: Report) -> Sighting | None:
    return next((one for one in report.sightings if one.anomaly in _UNWRITTEN), None)


def unwritten_reads(report: Report, name: Names) -> dict[str, Json]:
    """The number of reads of values that no transaction wrote, and the first LISTED of them; empty without any."""
    sighting = _garbage(report)
    if sighting is None:
        return {}
    reads: list[Json] = [
        {"op": one.op, "key": name.key(one.key), "value": name(one.element)} for one in sighting.listed
    ]
    return {"unwritten_reads": {"count": sighting.count, "first": reads}}


def unwritten(report: Report, options: Options) -> list[str]:
    """A list with one sentence about reads of values that no transaction wrote; empty if there are none."""
    sighting = _garbage(report)
    if sighting is None:
        return []
    example, twice = sighting.example, report.tally["unwritten-twice"]
    reads = "" if sighting.count == 1 else f", one of {sighting.count} such reads"
    remark = "if keys held it at first, declare that with --initial"
    if not report.tally["values-without-writer"]:
        remark = "the list may have held it at first"  # --initial is for registers.
    elif options.initial.is_declared:
        remark = "nor was it declared as the initial value"
    elif twice:
        remark = f"{twice} key(s) had two such values, of which only one can have been there at first"
    read = f"T{example.op} read {options.name(example.element)} in {options.name.key(example.key)}"
    return [f"garbage-read: {read}, which no operation wrote{reads}; {remark}"]
