"""Views: queries whose answers are maintained while their inputs change.

A view is made per key: the rows of one key of its inputs give the rows of that key.
"""

from collections.abc import Sequence
from typing import Final, cast

from clusters.materialize.shape import BAGS
from harness.core.promises import View
from harness.core.record import Json

VIEWS: Final = {
    view.name: view
    for view in (
        View(name="sums", operator="sum", inputs=BAGS[:1]),
        View(name="pairs", operator="join", inputs=BAGS),
        View(name="kinds", operator="distinct", inputs=BAGS[1:]),
        View(name="tops", operator="top-1", inputs=BAGS[1:]),
    )
}
# As tables show their own rows, they are judged like views.
JUDGED: Final = (*VIEWS.values(), *(View(name=bag, operator="rows", inputs=(bag,)) for bag in BAGS))


def values(view: View, inputs: Sequence[list[Json]]) -> list[Json]:
    """The view's values of a key, from that key's values in each input. All can be hashed."""
    match view.operator:
        case "sum":
            return [sum(cast("list[int]", inputs[0]))] if inputs[0] else []
        case "join":
            return [cast("Json", (left, right)) for left in inputs[0] for right in inputs[1]]
        case "distinct":
            return list(dict.fromkeys(inputs[0]))
        case "top-1":
            return [max(cast("list[int]", inputs[0]))] if inputs[0] else []
        case "rows":
            return [*inputs[0]]
