"""Cycles through watermarks as findings: a sentence for each step, with the operations and events that show it."""

from collections.abc import Sequence

from msgspec.structs import replace

from checkers.graph.edges import CHAIN, IN, OUT, REALTIME
from checkers.graph.reasons import cycle_finding, shown, told
from checkers.history.names import Names
from checkers.transactions.sentences import Explainer
from checkers.watermarks.components import ShownCycle
from checkers.watermarks.cycles.steps import THROUGH, Step
from checkers.watermarks.numbering import Watermarks
from checkers.words.checks import WATERMARKS
from harness.core.columns import NEVER
from harness.core.verdict import Finding
from harness.core.verdict import Step as Shown


def _folded(cycle: ShownCycle) -> ShownCycle:
    """The cycle with successive steps along one chain folded into one step.

    A subscriber that never gets a row has a chain of hundreds of watermarks from the first that lacks it to the last.
    """
    steps, kept = list[Step](), list[int]()
    for at, step in enumerate(cycle.loop.steps):
        before = steps[-1] if steps else None
        is_on = before is not None and before.kind == step.kind == CHAIN and before.chain == step.chain
        if before is not None and is_on and before.marks[-1] == step.marks[0]:
            steps[-1] = replace(before, target=step.target, marks=(before.marks[0], step.marks[-1]))
        else:
            steps.append(step)
            kept.append(at)
    return replace(
        cycle,
        loop=replace(cycle.loop, steps=tuple(steps)),
        nodes=tuple(cycle.nodes[at] for at in kept),
        is_mark=tuple(cycle.is_mark[at] for at in kept),
    )


class CycleExplainer:
    """Findings for cycles, with an explanation of each step and the evidence for clients' operations."""

    def __init__(self, explainer: Explainer, marks: Watermarks, subscribers: Sequence[str], name: Names) -> None:
        self._explainer, self._marks, self._subscribers, self._name = explainer, marks, subscribers, name

    def finding(self, cycle: ShownCycle) -> Finding:
        """The finding of a cycle."""
        whole, cycle = cycle, _folded(cycle)
        steps = cycle.loop.steps
        following = [*cycle.nodes[1:], cycle.nodes[0]]
        before = [steps[-1], *steps[:-1]]
        explained = []
        for at, step in enumerate(steps):
            labels = self._label(step, steps[at - 1], cycle, at), self._label_after(step, cycle, at, following[at])
            explained.append(self._shown(step, before[at], labels, (cycle.nodes[at], following[at])))
        ops = tuple(dict.fromkeys(op for op, is_mark in zip(cycle.nodes, cycle.is_mark, strict=True) if not is_mark))
        marks = list(dict.fromkeys(mark for step in steps for mark in step.marks))
        events = {int(self._marks.seq[mark]) for mark in marks} | {step.row for step in steps if step.row >= 0}
        passed = dict.fromkeys(mark for step in whole.loop.steps for mark in step.marks)
        return cycle_finding(
            cycle.loop.anomaly,
            WATERMARKS,
            explained,
            told(explained, self._conclusion(cycle)),
            facts=(ops, list(map(self.mark, passed)), [step.kind for step in whole.loop.steps]),
            ops=ops,
            events=tuple(sorted(events)),
            count=cycle.count,
        )

    def mark(self, mark: int) -> str:
        """The name of a watermark: its subscriber and position, or its place in the journal."""
        position, who = int(self._marks.position[mark]), self._subscribers[int(self._marks.subscriber[mark])]
        return f"W {who}/{position if position != NEVER else f'#{self._marks.seq[mark]}'}"

    def _label(self, step: Step, before: Step, cycle: ShownCycle, at: int) -> str:
        if not cycle.is_mark[at]:
            return f"T{cycle.nodes[at]}"
        return self._of_node(step.marks[:1] or before.marks[-1:])

    def _label_after(self, step: Step, cycle: ShownCycle, at: int, node: int) -> str:
        following = (at + 1) % len(cycle.nodes)
        if not cycle.is_mark[following]:
            return f"T{node}"
        after = cycle.loop.steps[following]
        return self._of_node(after.marks[:1] or step.marks[-1:])

    def _of_node(self, marks: tuple[int, ...]) -> str:
        return self.mark(marks[0]) if marks else "a read as of one position"

    def _shown(self, step: Step, before: Step, labels: tuple[str, str], ends: tuple[int, int]) -> Shown:
        if step.kind & THROUGH:
            sentence = self._merged(step, before) + self._through(step, ends)
            return shown(*labels, step.kind, sentence)
        if not labels[0].startswith("T"):
            reached = self._shown_mark(before.marks[-1]) if before.marks else self._of_node(())
            sentence = f"{labels[1]} began after {reached} had been received"
            return shown(*labels, REALTIME, sentence)
        return self._explainer.step(*ends, step.kind)[0]

    def _through(self, step: Step, ends: tuple[int, int]) -> str:
        if not step.marks:
            did = f"shows what T{ends[0]} wrote" if step.kind == IN else f"does not show what T{ends[1]} wrote"
            return f"a read as of the same position {did}"
        what = self._name.pair(step.key, step.version) if step.version != NEVER else self._deleted(step)
        mark = step.marks[0]
        who = self._subscribers[int(self._marks.subscriber[mark])]
        where = self._place(mark)
        if step.kind == CHAIN:
            return f"{who} received {where} before {self._place(step.marks[1])}"
        if step.kind == IN and step.row >= 0:
            return f"T{ends[0]} wrote {what}, which {who} had received before {where}"
        if step.kind == IN:
            return f"T{ends[0]} wrote {what}, with which {who} had begun, so that {where} contains it"
        if step.row > int(self._marks.seq[mark]):
            return f"{who} received {what}, which T{ends[1]} wrote, only after {where}"
        return f"{who} did not have {what}, which T{ends[1]} wrote, at {where}"

    def _merged(self, step: Step, before: Step) -> str:
        """The reason why two watermarks are one node, if the path changes from one to the other; else empty."""
        if (
            step.kind == IN
            or not before.marks
            or not step.marks
            or before.kind == OUT
            or before.marks[-1] == step.marks[0]
        ):
            return ""
        one, other = self._shown_mark(before.marks[-1]), self._shown_mark(step.marks[0])
        return "" if one == other else f"{one} and {other} are of one position, so of one state; "

    def _shown_mark(self, mark: int) -> str:
        return f"{self._subscribers[int(self._marks.subscriber[mark])]}'s {self._place(mark).removeprefix('the ')}"

    def _place(self, mark: int) -> str:
        position = int(self._marks.position[mark])
        if position == NEVER:
            return f"the watermark at journal position {self._marks.seq[mark]}"
        return self._name.forms.watermark(position)

    def _deleted(self, step: Step) -> str:
        return f"a delete of key {self._name.key(step.key)}"

    def _conclusion(self, cycle: ShownCycle) -> str:
        chains = cycle.loop.chains()
        whose = (
            "the cut of one subscriber is inconsistent" if chains <= 1 else f"{chains} chains of watermarks disagree"
        )
        aside = " The operations alone have a cycle there." if cycle.is_secondary else ""
        return f"So each of these comes before itself: {whose}.{aside}"
