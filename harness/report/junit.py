"""junit.xml: the outcome of a run, or of a batch of runs, for other tools.

A suite is a campaign; a case is one promise of one workload under one plan. A broken promise is a failure, and trouble
of the harness an error. A promise not exercised or not decided is skipped; in a run that is vacuous, unknown or an
error as a whole, no promise counts as passed. The exit code distinguishes such runs from passing ones.
"""

from collections.abc import Iterator, Sequence
from typing import Final
from xml.etree import ElementTree

from harness.core.verdict import Verdict
from harness.report.model import PromiseRow, Report, repetition
from harness.report.screen import visible

TEXT_MAX: Final = 2_000
NOT_PASSED: Final = (Verdict.VACUOUS.value, Verdict.UNKNOWN.value, Verdict.ERROR.value)


def junit(reports: Sequence[Report], *, suite: str) -> bytes:
    """The XML document. Its text has only characters that XML allows: control characters are shown as escapes."""
    root = ElementTree.Element("testsuites", name="seamark")
    element = ElementTree.SubElement(root, "testsuite", name=_text(suite))
    for report in reports:
        for case in _cases(report):
            element.append(case)
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


def _cases(report: Report) -> Iterator[ElementTree.Element]:
    for row in report.promises:
        yield _promise_case(report, row)
    unpromised = [each for each in report.findings if not each.promise]
    case = _case(report, "the run as a whole", sum(report.seconds.values()))
    if report.verdict == Verdict.ERROR.value:
        _add(case, "error", report.reason)
    elif report.verdict in NOT_PASSED:
        _add(case, "skipped", f"{report.verdict}: {report.reason}")
    elif report.verdict == Verdict.INVALID.value and not report.promises:
        _add(case, "failure", report.reason)
    if unpromised:
        lines = (f"{each.anomaly} ({each.count} times, no promise forbids it): {each.sentence}" for each in unpromised)
        ElementTree.SubElement(case, "system-out").text = "\n".join(map(_text, lines))
    yield case


def _promise_case(report: Report, row: PromiseRow) -> ElementTree.Element:
    case = _case(report, f"{row.id}: {row.text}", 0.0)
    found = [each for each in report.findings if each.promise == row.id]
    if row.verdict == "violated":
        lines = [f"{each.anomaly} ({each.count} times): {each.sentence}" for each in found]
        command = repetition(report)
        lines += [f"repeat it: {command}"] if command else []
        _add(case, "failure", found[0].sentence if found else report.reason, lines)
    elif row.verdict != "holds":
        _add(case, "skipped", f"{row.verdict}, {row.witnesses} witnesses" + (f": {row.reason}" if row.reason else ""))
    elif report.verdict in NOT_PASSED:
        _add(case, "skipped", f"held, but the run is {report.verdict}: {report.reason}")
    return case


def _case(report: Report, name: str, seconds: float) -> ElementTree.Element:
    plan = f"plan {report.plan_sha256[:8]}" if report.plan_sha256 else "history"
    seed = "" if report.seed is None else f", seed {report.seed}"
    where = ".".join(each for each in (report.cluster or "foreign", report.workload) if each)
    return ElementTree.Element(
        "testcase", classname=_text(where), name=_text(f"{plan}{seed} · {name}"), time=f"{seconds:.3f}"
    )


def _add(case: ElementTree.Element, kind: str, message: str, lines: Sequence[str] = ()) -> None:
    element = ElementTree.SubElement(case, kind, message=_text(message))
    if kind != "skipped":
        element.set("type", kind)
        element.text = "\n".join(map(_text, lines)) or None


def _text(text: str) -> str:
    shown = visible(text[:TEXT_MAX])
    return shown if len(text) <= TEXT_MAX else f"{shown} … ({len(text):,} characters)"
