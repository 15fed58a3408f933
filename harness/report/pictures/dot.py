"""The cycle of a finding in DOT, the language of Graphviz: `dot -Tsvg cycle.dot`.

Source: https://graphviz.org/doc/info/lang.html, read on 2026-11-27: in a quoted text only the quote is escaped, but
labels interpret the backslash.
"""

from checkers.history.names import Forms
from harness.report.model import FindingRow
from harness.report.pictures.members import PLAIN, member
from harness.report.screen import visible


def dot(finding: FindingRow, forms: Forms = PLAIN) -> str:
    """The graph: a node for each member of the cycle, an edge for each step, with its relation and its reason."""
    lines = [f"digraph {_text(finding.anomaly)} {{", "  node [shape=box];"]
    lines += [f"  {_text(member(step.source, forms))};" for step in finding.cycle]
    for step in finding.cycle:
        ends = f"{_text(member(step.source, forms))} -> {_text(member(step.target, forms))}"
        lines.append(f"  {ends} [label={_text(step.relation)}, tooltip={_text(step.sentence)}];")
    return "\n".join([*lines, "}", ""])


def _text(text: str) -> str:
    escaped = visible(text).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
