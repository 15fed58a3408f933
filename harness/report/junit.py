"""junit.xml: the outcome of a run, or of a batch of runs, for other tools.

A suite is a campaign; a case is one promise of one cluster under one workload, over all its runs. So the names are the
same every night, and what differs, such as seeds and plans, are properties. A broken promise is a failure, and an error
of the harness an error. A promise not exercised or not decided is skipped; in a run that is vacuous, unknown or an
error as a whole, no promise counts as passed. The exit code distinguishes such runs from passing ones.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree

from checkers.verdict.titles import title
from harness.core.verdict import Verdict, worst
from harness.report.model import FindingRow, PromiseRow, Report, repetition
from harness.report.screen import visible

TEXT_MAX: Final = 2_000
LINES_MAX: Final = 20  # The most runs and findings that a case lists.
NOT_PASSED: Final = (Verdict.VACUOUS.value, Verdict.UNKNOWN.value, Verdict.ERROR.value)


def junit(reports: Sequence[Report], *, suite: str, vacuous: str | None = None) -> bytes:
    """The XML document. Its text has only characters that XML allows: control characters are shown as escapes.

    `vacuous` is the reason why all runs together tested too little, if no single run is the reason.
    """
    root = ElementTree.Element("testsuites", name="seamark")
    element = ElementTree.SubElement(root, "testsuite", name=_text(suite))
    home = next(filter(None, map(_where, reports)), suite)  # For runs that failed before they had a cluster.
    known: dict[str, list[Report]] = {}
    for report in reports:
        known.setdefault(_where(report) or home, []).append(report)
    for where, group in known.items():
        element.extend(_cases(where, group, vacuous))
    counts = {
        kind: str(sum(case.find(kind) is not None for case in element)) for kind in ("failure", "error", "skipped")
    }
    seconds = sum(sum(report.seconds.values()) for report in reports)
    for each in (root, element):
        each.set("tests", str(len(element)))
        each.set("failures", counts["failure"])
        each.set("errors", counts["error"])
        each.set("skipped", counts["skipped"])
        each.set("time", f"{seconds:.3f}")
    ElementTree.indent(root)
    xml: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _cases(where: str, reports: Sequence[Report], vacuous: str | None) -> Iterator[ElementTree.Element]:
    """A case for each promise over all runs, and one for the runs as a whole."""
    rows: dict[str, list[tuple[Report, PromiseRow]]] = {}
    for report in reports:
        for row in report.promises:
            rows.setdefault(row.id, []).append((report, row))
    for pairs in rows.values():
        yield _promise_case(where, pairs)
    verdict = worst([Verdict(report.verdict) for report in reports])
    decisive = [report for report in reports if report.verdict == verdict.value]
    case = _case(where, "the run as a whole", decisive if verdict is not Verdict.VALID else reports)
    case.set("time", f"{sum(sum(report.seconds.values()) for report in reports):.3f}")
    reason = f"{_share(decisive, reports)}{decisive[0].reason}"
    if verdict is Verdict.ERROR:
        _add(case, "error", reason)
    elif verdict.value in NOT_PASSED:
        _add(case, "skipped", f"{verdict.value}: {reason}")
    elif vacuous is not None:
        _add(case, "skipped", f"{Verdict.VACUOUS.value}: {vacuous}")
    elif verdict is Verdict.INVALID and not rows:
        _add(case, "failure", reason)
    unpromised = [(each, report.declared) for report in reports for each in report.findings if not each.promise]
    if unpromised:
        lines = [
            f"{title(each.anomaly, own)}{_times(each)}, no promise forbids it: {each.sentence}"
            for each, own in unpromised
        ]
        ElementTree.SubElement(case, "system-out").text = "\n".join(map(_text, lines[:LINES_MAX]))
    yield case


def _promise_case(where: str, pairs: Sequence[tuple[Report, PromiseRow]]) -> ElementTree.Element:
    """The case of one promise: failed if any run broke it, passed if it held in a run that counts."""
    reports = [report for report, _ in pairs]
    by_verdict: dict[str, list[tuple[Report, PromiseRow]]] = {}
    for report, row in pairs:
        by_verdict.setdefault(row.verdict, []).append((report, row))
    telling = by_verdict.get("violated") or by_verdict.get("unknown") or by_verdict.get("holds") or pairs
    report, row = telling[0]
    held = [each for each, _ in by_verdict.get("holds", ()) if each.verdict not in NOT_PASSED]
    concerned = [each for each, _ in telling]
    case = _case(where, f"{row.id}: {row.text}", concerned if row.verdict == "violated" else reports)
    share = _share(concerned, reports)
    if row.verdict == "violated":
        _add(case, "failure", f"{share}{_broken(report, row)}", list(_evidence(concerned, row)))
    elif row.verdict != "holds":
        reason = f": {row.reason}" if row.reason else ""
        _add(case, "skipped", f"{share}{row.verdict}, {row.witnesses} witnesses{reason}")
    elif not held:
        _add(case, "skipped", f"{share}held, but the run is {report.verdict}: {report.reason}")
    return case


def _broken(report: Report, row: PromiseRow) -> str:
    return next((each.sentence for each in report.findings if each.promise == row.id), report.reason)


def _evidence(reports: Sequence[Report], row: PromiseRow) -> Iterator[str]:
    """The first run's findings against the promise, and the command that repeats each run."""
    for each in reports[0].findings:
        if each.promise == row.id:
            yield f"{title(each.anomaly, reports[0].declared)}{_times(each)}: {each.sentence}"
    for report in reports[:LINES_MAX]:
        command = report.anywhere or repetition(report)
        if command is not None:
            yield f"repeat it: {command}"


def _share(some: Sequence[Report], every: Sequence[Report]) -> str:
    return f"{len(some)} of {len(every)} runs: " if len(every) > 1 else ""


def _times(finding: FindingRow) -> str:
    return f", {finding.count:,} times" if finding.count > 1 else ""


def _where(report: Report) -> str:
    """The cluster and the workload; empty for a run that has none."""
    return ".".join(each for each in (report.cluster, report.workload) if each)


def _case(where: str, name: str, reports: Sequence[Report]) -> ElementTree.Element:
    """A case whose name is the same every night. Its properties name the runs."""
    case = ElementTree.Element("testcase", classname=_text(where), name=_text(name), time="0.000")
    first = reports[0]
    found = {
        "seed": ", ".join(str(report.seed) for report in reports[:LINES_MAX] if report.seed is not None),
        "plan": first.plan_sha256[:8] if first.plan_sha256 else "",
        "run": first.run or "",
    }
    if any(found.values()):
        properties = ElementTree.SubElement(case, "properties")
        for key, value in found.items():
            if value:
                ElementTree.SubElement(properties, "property", name=key, value=_text(value))
    return case


def _add(case: ElementTree.Element, kind: str, message: str, lines: Sequence[str] = ()) -> None:
    element = ElementTree.SubElement(case, kind, message=_text(message))
    if kind != "skipped":
        element.set("type", kind)
        element.text = "\n".join(map(_text, lines)) or None


def _text(text: str) -> str:
    shown = visible(text[:TEXT_MAX])
    return shown if len(text) <= TEXT_MAX else f"{shown} … ({len(text):,} characters)"
