"""Unique ids: no two successful operations get the same id. Witnesses: all ids that were issued but the first."""

from collections.abc import Sequence
from typing import Final

from checkers.history.troubles import Trouble, judgement
from checkers.invariants.operations import Op, Token, invariant, shown, token
from harness.core.verdict import Judgement

CHECKER: Final = "unique-ids"
DUPLICATE: Final = "duplicate-id"
ANOMALIES: Final = {DUPLICATE: "Two operations got the same id, which should be unique."}


def judged(operations: Sequence[Op]) -> Judgement:
    """The judgement of the answers of an id generator."""
    owners: dict[Token, list[int]] = {}
    for op in operations:
        if op.f == "generate" and op.is_ok:
            owners.setdefault(token(op.value), []).append(op.number)
    troubles = [
        Trouble(
            DUPLICATE,
            f"T{ops[0]} and T{ops[1]} both got the id {shown(value)}; {len(ops)} operations did.",
            (str(value), *ops),
            tuple(ops),
        )
        for value, ops in owners.items()
        if len(ops) > 1
    ]
    given = sum(map(len, owners.values()))
    return judgement(CHECKER, ANOMALIES, troubles, {DUPLICATE: max(0, given - 1)})


CHECKS: Final = (invariant(CHECKER, ANOMALIES, judged),)
