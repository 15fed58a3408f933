"""The texts that come with a shrunk run: its operations for people, and a pytest file for the user's own repository."""

import re
from collections.abc import Iterable
from hashlib import blake2b
from os.path import relpath
from pathlib import Path
from textwrap import wrap

import msgspec

from harness.core.errors import ScenarioError
from harness.core.record import MicroOp
from harness.core.trace import SECOND
from harness.core.wording import counted
from harness.record.store import write_atomically
from harness.report.model import FindingRow
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario
from harness.shrink.case import Case
from harness.shrink.dependable import MISSED, Shown

_TEST = '''\
"""{title}

{sentence}

Shrunk to {size}. Run this file with pytest: {promise}.
"""

import seamark

CLUSTER = {cluster!r}{cluster_comment}
BUGS = {bugs!r}{bugs_comment}
SYMPTOM = {symptom!r}
CASE = """
{case}
"""


def {name}(tmp_path):
{body}
'''
_ONCE = """\
    report = seamark.repeat(CASE, cluster=CLUSTER, bugs=BUGS, store=tmp_path)
    assert report.verdict != "error", report.reason
    assert SYMPTOM not in report.symptoms, report.explain(SYMPTOM)"""
_REPEATED = """\
    for _ in range({repetitions}):
        report = seamark.repeat(CASE, cluster=CLUSTER, bugs=BUGS, store=tmp_path)
        assert report.verdict != "error", report.reason
        assert SYMPTOM not in report.symptoms, report.explain(SYMPTOM)"""


def test_name(finding: FindingRow) -> str:
    """The name of the test for that finding: "test_late_event_tut_2"."""
    return "test_" + re.sub(r"[^a-z0-9]+", "_", f"{finding.anomaly} {finding.promise or ''}".lower()).strip("_")


def regression_test(case: Case, finding: FindingRow, code: Code, shown: Shown | None = None) -> str:
    """A pytest file that carries out the case, and fails as long as the case shows the finding's symptom.

    In containers, where `shown` says how often that is, it carries the case out several times.
    """
    size = case.size()
    bugs = case.scenario.bugs
    return _TEST.format(
        title=f"{finding.symptom}, from seed {case.scenario.seed}.",
        sentence="\n".join(wrap(_quoted(finding.sentence), 112)),
        size=f"{counted(size.steps, 'fault step')}, {counted(size.operations, 'operation')} and {size.seconds:g} s",
        promise=_promise(shown),
        name=test_name(finding),
        body=_ONCE if shown is None else _REPEATED.format(repetitions=shown.repetitions()),
        cluster=code.name if code.place is None else f"{relpath(code.place.path)}:{code.place.name}",
        cluster_comment="" if code.place is None else "  # From the folder in which pytest starts.",
        bugs=bugs,
        bugs_comment="  # Planted; () is the cluster without them." if bugs else "",
        symptom=finding.symptom,
        case=_escaped(_json(case)),
    )


def _promise(shown: Shown | None) -> str:
    if shown is None:
        return "it fails until the bug is gone"
    repetitions, rate = counted(shown.repetitions(), "run"), f"{shown.hits} of {shown.runs}"
    return (
        f"it makes up to {repetitions} in containers.\nOf such runs {rate} showed the bug, so a pass is no proof that "
        f"the bug is gone: {MISSED:.0%} of tests pass by chance"
    )


def into_bank(test: Path, bank: Path) -> Path:
    """Copy the test into the bank, a folder of such tests, under a unique name. Returns the path of the copy.

    Raises ScenarioError if the folder cannot be written.
    """
    content = test.read_bytes()
    place = bank / f"{test.stem}_{blake2b(content, digest_size=4).hexdigest()}.py"
    try:
        bank.mkdir(parents=True, exist_ok=True)
        write_atomically(place, content)
    except OSError as error:
        raise ScenarioError(f"{bank}: cannot be written ({error.strerror}); choose another with --bank") from None
    return place


def script_text(case: Case) -> str:
    """The faults and operations in order of time, one line each, for people."""
    rows = [(due.at_ns, f"client {due.thread}  {_operation(due.f, due.value, due.mops)}") for due in case.script.load]
    for step in case.plan.steps:
        args = "".join(f"  {name}={value}" for name, value in step.args.items())
        rows.append((step.at_ns, f"nemesis   {step.fault} {', '.join(step.targets)}{args}"))
        rows.append((step.until_ns, f"nemesis   end of {step.fault} {', '.join(step.targets)}"))
    lines = [f"{at_ns / SECOND:9.3f} s  {text}" for at_ns, text in sorted(rows, key=lambda row: row[0])]
    final = [f"at the end   {_operation(each.f, each.value, each.mops)}" for each in case.script.final]
    return "\n".join([*lines, *final, ""])


def _operation(f: str, value: object, mops: tuple[MicroOp, ...] | None) -> str:
    if mops is None:
        return f"{f} {value}"
    return ", ".join(f"{mop.f} {mop.key}" + ("" if mop.value is None else f" {mop.value}") for mop in mops)


def _json(case: Case) -> str:
    """The case as JSON, with a line for each operation and each step."""
    bare = msgspec.structs.replace(case.scenario, cluster=Scenario().cluster, bugs=(), script=None)
    scenario, script = _text(_without_defaults(bare))[:-1], case.script
    return (
        f'{{"scenario": {scenario}{"," if len(scenario) > 1 else ""}"script": {{"load": {_listed(script.load)}, '
        f'"final": {_listed(script.final)}}}}},\n"plan": {{"steps": {_listed(case.plan.steps)}}}}}'
    )


def _listed(values: Iterable[object]) -> str:
    lines = ",\n".join(f"  {_text(value)}" for value in values)
    return f"[\n{lines}\n]" if lines else "[]"


def _text(value: object) -> str:
    return msgspec.json.encode(value).decode()


def _without_defaults(scenario: Scenario) -> dict[str, object]:
    """The fields whose values differ from their defaults: those that a reader must know."""
    usual = msgspec.structs.asdict(Scenario())
    return {name: value for name, value in msgspec.structs.asdict(scenario).items() if value != usual[name]}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"""', "'''").rstrip('"')


def _escaped(json: str) -> str:
    return json.replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
