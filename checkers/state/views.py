"""Views against their inputs: each row of a view, at the timestamp that an answer or a progress message names.

`wrong-view-row`: the view shows for a key what its inputs do not give at that timestamp. A contract names the views
(`[[view]]`). One sweep in the order of timestamps takes up each update once, and compares what has changed; an answer
with the whole view is compared key by key. So the cost grows with the number of updates and with the rows of answers,
not with their product.

A key is judged only if all writes are placed that may affect it: a write of unknown outcome leaves its keys undecided,
and at a timestamp that the log of an input has not reached all keys are undecided.

Witnesses: keys that were compared, in answers and after changes, and that had rows.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.names import Forms
from checkers.history.troubles import Trouble, judgement
from checkers.state.view_groups import Group, Row, column, group
from checkers.state.view_inputs import Answer, Log, Material, Update, material
from harness.core.promises import View
from harness.core.verdict import Judgement

CHECKER: Final = "views"
WRONG: Final = "wrong-view-row"
ANOMALIES: Final = {WRONG: "A view shows rows that its inputs do not give at that timestamp."}
PROOF_MAX: Final = 6  # The most updates that a sentence quotes.


def check(history: Path, context: Context) -> Judgement:
    """The judgement of all views that are declared. Raises HistoryError if the history is damaged."""
    views = context.bounds.views
    judged = context.engine.over(views).map(partial(_of_view, history=history, forms=context.name.forms)).collect()
    troubles, compared, undecided = [], 0, 0
    for found, count, left in sorted(judged, key=lambda each: [trouble.facts[0] for trouble in each[0]][:1]):
        troubles += found
        compared += count
        undecided += left
    return judgement(CHECKER, ANOMALIES, troubles, {WRONG: compared}, facts={"undecided-view-rows": undecided})


def _of_view(view: View, *, history: Path, forms: Forms) -> tuple[list[Trouble], int, int]:
    """The violations of one view, and the numbers of its keys that were compared and that are undecided."""
    sweep = Sweep(view, material(history, view), forms)
    return sweep.judged(), sweep.compared, sweep.undecided


class Sweep:
    """One pass over all updates and claims of a view, by timestamp."""

    def __init__(self, view: View, held: Material, forms: Forms) -> None:
        self.compared = self.undecided = 0
        self._view, self._held, self._forms = view, held, forms
        self._groups: dict[Row, Group] = {}
        self._proof: dict[Row, list[tuple[str, Update]]] = {}
        self._is_grouped = view.key is not None

    def judged(self) -> list[Trouble]:
        """The violations, by timestamp: the first for each answer and each log, with their number."""
        found: list[Trouble] = []
        claims = [_Shown(log) for log in self._held.logs]
        answers = iter(self._held.answers)
        answer = next(answers, None)
        for ts, updates in self._steps(claims):
            for claim in claims:
                claim.resume(ts, self._groups)
            changed = self._take(updates)
            for claim in claims:
                found += self._of_log(claim, ts, changed)
            while answer is not None and answer.ts == ts:
                found += self._of_answer(answer)
                answer = next(answers, None)
        return found

    def _steps(self, claims: Sequence["_Shown"]) -> Iterator[tuple[int, list[tuple[int, Update]]]]:
        """Each timestamp at which something changes or is claimed, with the updates of the inputs there."""
        events: list[tuple[int, int, Update | None]] = [
            (update.ts, place, update) for place, updates in enumerate(self._held.inputs) for update in updates
        ]
        events += [(answer.ts, -1, None) for answer in self._held.answers]
        events += [(ts, -1, None) for claim in claims for ts in claim.times()]
        events.sort(key=lambda event: event[0])
        for ts, same in groupby(events, key=lambda event: event[0]):
            yield ts, [(place, update) for _, place, update in same if update is not None]

    def _take(self, updates: Sequence[tuple[int, Update]]) -> dict[Row, None]:
        """Take up updates, and return the keys of the view that they may have changed."""
        changed: dict[Row, None] = {}
        for place, update in updates:
            key = column(update.row, self._view.key) if self._is_grouped else update.key
            held = self._groups.get(key)
            if held is None:
                held = self._groups[key] = group(self._view)
            held.add(place, update.row, update.diff)
            changed[key] = None
            proof = self._proof.setdefault(key, [])
            proof.append((self._view.inputs[place], update))
            del proof[:-PROOF_MAX]
        return changed

    def _is_undecided(self, key: Row, ts: int) -> bool:
        vague = self._held.vague
        is_vague = bool(vague) if self._is_grouped else key in vague
        return is_vague or (self._held.end is not None and ts >= self._held.end)

    def _is_right(self, key: Row, shown: Counter[Row]) -> bool:
        held = self._groups.get(key)
        return held.is_right(shown) if held is not None else not shown

    def _of_answer(self, answer: Answer) -> Iterator[Trouble]:
        """Compare an answer with the whole view."""
        shown: dict[Row, Counter[Row]] = {}
        for key, row in answer.rows:
            shown.setdefault(key, Counter())[row] += 1
        wrong = []
        for key in dict.fromkeys((*self._groups, *shown)):
            if self._is_undecided(key, answer.ts):
                self.undecided += 1
                continue
            rows = shown.get(key, Counter())
            self.compared += bool(rows)
            if not self._is_right(key, rows):
                wrong.append((key, rows))
        if wrong:
            key, rows = wrong[0]
            yield self._trouble(f"T{answer.op} read", answer.ts, key, rows, len(wrong), (answer.op,))

    def _of_log(self, claim: "_Shown", ts: int, changed: dict[Row, None]) -> Iterator[Trouble]:
        """Compare a log with the view, where either has changed."""
        keys = claim.take(ts) | changed
        if not claim.is_claimed(ts):
            return
        if not claim.is_begun:
            claim.is_begun = True
            if claim.log.is_resumed:
                claim.rows |= {key: Counter(held.due()) for key, held in self._groups.items() if key not in claim.rows}
                return
            keys = dict.fromkeys((*self._groups, *claim.rows))
        wrong = []
        for key in keys:
            if self._is_undecided(key, ts):
                self.undecided += 1
                continue
            rows = claim.rows.get(key, Counter())
            self.compared += bool(rows)
            if not self._is_right(key, rows):
                wrong.append((key, rows))
        if wrong:
            key, rows = wrong[0]
            yield self._trouble(f"{claim.log.subscriber} was shown", ts, key, rows, len(wrong), ())

    def _trouble(self, who: str, ts: int, key: Row, rows: Counter[Row], count: int, ops: tuple[int, ...]) -> Trouble:
        """The violation at one key, with the updates that prove it."""
        view, place = self._view, self._forms.position(ts)
        held = self._groups.get(key)
        due = _listed(held.due() if held is not None else Counter())
        proof = self._proof.get(key, [])
        why = ", ".join(f"{name} {update.row} ({update.diff:+d}) at {update.ts}" for name, update in proof)
        sentence = (
            f"{who} {_listed(rows)} for key {key} of view {view.name} at {place}, where its inputs give {due}"
            f"{f': {why}' if why else ''}."
        )
        origins = tuple(update.origin for _, update in proof if update.origin >= 0)
        events = tuple(-2 - update.origin for _, update in proof if update.origin < -1)
        return Trouble(WRONG, sentence, (view.name, ts, str(key)), (*origins, *ops), events, view.name, count)


class _Shown:
    """The rows of a log up to the present timestamp."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.rows: dict[Row, Counter[Row]] = {}
        self.is_begun = False
        self._next = 0

    def resume(self, ts: int, groups: Mapping[Row, Group]) -> None:
        """If it resumes at `ts` with updates there, these come after what the view, in `groups`, was before."""
        if self.log.is_resumed and ts == self.log.begin:
            for update in self.log.updates[self._next :]:
                if update.ts == ts and update.key in groups:
                    self.rows[update.key] = Counter(groups[update.key].due())

    def times(self) -> Iterator[int]:
        """The timestamps at which it claims something new."""
        yield self.log.begin
        yield from (update.ts for update in self.log.updates if update.ts < self.log.end)

    def is_claimed(self, ts: int) -> bool:
        """True if the log shows what the view is at `ts`."""
        return self.log.begin <= ts < self.log.end

    def take(self, ts: int) -> dict[Row, None]:
        """Take up its updates up to `ts`, and return their keys."""
        changed: dict[Row, None] = {}
        updates = self.log.updates
        while self._next < len(updates) and updates[self._next].ts <= ts:
            _, key, row, diff, _ = updates[self._next]
            rows = self.rows.setdefault(key, Counter())
            rows[row] += diff
            if not rows[row]:
                del rows[row]
            changed[key] = None
            self._next += 1
        return changed


def _listed(rows: Counter[Row]) -> str:
    """Rows for people."""
    if not rows:
        return "nothing"
    return ", ".join(str(row) if count == 1 else f"{row} {count} times" for row, count in rows.items())


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check, has_kernels=True),)
