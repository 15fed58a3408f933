"""The consistency models that a history satisfies. Each is decided only if the decision on another does not imply it.

A *rung* is a model without sessions, with them, or with real time. If it holds, so do all below it: weaker models with
no more order of time. If it is broken, so are all above it, and only the weakest broken ones are reported.
"""

from collections.abc import Iterable, Set
from functools import partial
from typing import Final

from msgspec import Struct

from checkers.axioms import weak
from checkers.axioms.accesses import Accesses, accesses, union
from checkers.axioms.execution import Execution, Pairs, execution, sure
from checkers.axioms.levels import Level, is_ordered
from checkers.axioms.orders.cycles import Contradiction
from checkers.axioms.weak import Axiom, Breach, Undecided
from checkers.engine.datasets import Dataset
from checkers.graph.edges import PROCESS, REALTIME
from checkers.history.registers import Initial
from checkers.history.transactions import Source, to_transactions

_MODELS: Final = (
    *(Axiom.VIEW, Axiom.ATOMIC, Axiom.CAUSAL),
    *(Level.PREFIX, Level.UPDATE, Level.PARALLEL, Level.SNAPSHOT, Level.SERIAL),
)
# Pairs of models of which neither implies the other; for all others the later one in _MODELS is the stronger.
_BESIDE: Final = ((Level.UPDATE, Axiom.CAUSAL), (Level.UPDATE, Level.PREFIX), (Level.PARALLEL, Level.PREFIX))
_SUFFIX: Final = {0: "", PROCESS: "-process", REALTIME: "-realtime"}
_UNTIMED: Final = ("G0", "G1c")  # The known order of versions decides them.


class Rung(Struct, frozen=True):
    """A model, and the order of time that it must agree with: 0 (none), PROCESS or REALTIME."""

    model: Axiom | Level
    order: int

    @property
    def anomaly(self) -> str:
        """The anomaly that breaks it."""
        return f"{self.model.value}{_SUFFIX[self.order]}"

    def implies(self, other: "Rung") -> bool:
        """True if each history that satisfies this rung satisfies the other."""
        is_stronger = _MODELS.index(self.model) >= _MODELS.index(other.model)
        return is_stronger and (self.model, other.model) not in _BESIDE and self.order >= other.order


# Update atomic is not defined with an order of time.
RUNGS: Final = tuple(
    Rung(model, order) for order in _SUFFIX for model in _MODELS if model is not Level.UPDATE or not order
)
ANOMALIES: Final = frozenset(rung.anomaly for rung in RUNGS)
Evidence = Breach | Contradiction
UNWRITTEN: Final = (
    "unwritten-values: a value that no operation wrote was read, and no order explains it even as an initial value"
)


class Open(Struct, frozen=True):
    """The reason why a rung is undecided. `pairs` is the number of pairs of versions whose order was in doubt.

    `is_spent` is True if the solver's budget ended.
    """

    reason: str
    pairs: int = 0
    is_spent: bool = False


class Answers(Struct, frozen=True):
    """The decisions: the absent anomalies, the weakest present ones with evidence, and the unknown ones with a reason.

    `undecided_pairs` is the number of pairs of versions whose order was in doubt when the solver's budget ended.
    `cyclic` are the orders of time of which nothing is decided, as reads and known versions alone have a cycle.
    """

    absent: frozenset[str]
    broken: tuple[tuple[str, Evidence], ...]
    unknown: dict[str, str]
    undecided_pairs: int = 0
    cyclic: frozenset[int] = frozenset()

    def unnamed(self, requested: Iterable[str], found: Set[str]) -> frozenset[str]:
        """Those of the requested anomalies that are open because a search named no G0 or G1c of such a cycle."""
        bare = (order for order in self.cyclic if not found & {n + _SUFFIX[o] for n in _UNTIMED for o in _up_to(order)})
        names = {name + _SUFFIX[order] for order in bare for name in _UNTIMED + tuple(each.value for each in _MODELS)}
        return frozenset(names.intersection(requested))


def _up_to(order: int) -> list[int]:
    return [each for each in _SUFFIX if each <= order]


NO_ANSWERS: Final = Answers(frozenset(), (), {})


def whole(
    chunks: Dataset[Source], *, initial: Initial, declared: Pairs | None = None, has_commits: bool = False
) -> Execution:
    """The execution of all chunks, with that declared order of versions. Raises HistoryError if a chunk is damaged.

    With `has_commits` the order of commits is declared, too.
    """
    return execution(
        _accesses(chunks, initial), is_declared=initial.is_declared, declared=declared, has_commits=has_commits
    )


def _accesses(chunks: Dataset[Source], initial: Initial) -> Accesses:
    parts = chunks.map(partial(accesses, initial=initial)).collect()
    return union(parts or [accesses(to_transactions([]))])


def answers(history: Execution, anomalies: Iterable[str]) -> Answers:
    """The decisions on those anomalies, as far as they break a rung or are G0 or G1c.

    If reads, known versions and an order of time alone have a cycle, no rung with that order is decided: there is a G0
    or a G1c. If keys are left out, no anomaly is absent.
    """
    requested = frozenset(anomalies)
    looked_at = {order for order, suffix in _SUFFIX.items() if any(name.endswith(suffix) for name in requested)}
    ordered = _ordered(history, looked_at)
    wanted = [rung for rung in RUNGS if rung.anomaly in requested and rung.order in ordered]
    kept, broken, unknown = list[Rung](), dict[Rung, Evidence](), dict[Rung, Open]()
    for rung in sorted(wanted, key=lambda each: (each.order, _MODELS.index(each.model)), reverse=True):
        if any(other.implies(rung) for other in kept):
            continue
        # Once the budget of one level has ended, that of the others would too: only their guesses are tried.
        is_spent = any(why.is_spent for why in unknown.values())
        match _decided(history, rung, rounds=0 if is_spent else None):
            case None:
                kept.append(rung)
            case Open() as reason:
                unknown[rung] = reason
            case evidence:
                broken[rung] = evidence
    weakest = [rung for rung in broken if not any(rung != other and rung.implies(other) for other in broken)]
    absent = {rung.anomaly for rung in wanted if any(other.implies(rung) for other in kept)}
    cyclic = frozenset(looked_at - ordered)
    if history.left_out:
        reason = Open(f"unclear-writers: of {history.left_out} keys it is not known who wrote what was read")
        unknown |= dict.fromkeys((rung for rung in wanted if rung not in broken), reason)
        absent, ordered, cyclic = set(), set(), frozenset()
    return Answers(
        frozenset(absent | {name + _SUFFIX[order] for name in _UNTIMED for order in ordered} & requested),
        tuple((rung.anomaly, broken[rung]) for rung in sorted(weakest, key=RUNGS.index)),
        {rung.anomaly: why.reason for rung, why in unknown.items() if not any(map(rung.implies, broken))},
        max((why.pairs for why in unknown.values()), default=0),
        cyclic,
    )


def _ordered(history: Execution, looked_at: Set[int]) -> set[int]:
    """The orders of time that have no cycle with reads and known versions alone, up to the strongest looked at."""
    result = set[int]()
    for order in sorted(_SUFFIX, reverse=True):
        # What has no cycle with an order of time has none with a weaker one.
        if result or (order in looked_at and is_ordered(history, order)):
            result.add(order)
    return result


def _decided(history: Execution, rung: Rung, *, rounds: int | None) -> Evidence | Open | None:
    """The evidence that the rung is broken, or the reason why that is unknown; None if it holds.

    Evidence that needs an assumed initial value does not count: without any other the rung is undecided.
    """
    found = _explained(history, rung, rounds=rounds)
    if found is None or not history.views.is_assumed.any():
        return found
    return _explained(sure(history), rung, rounds=rounds) or (found if isinstance(found, Open) else Open(UNWRITTEN))


def _explained(history: Execution, rung: Rung, *, rounds: int | None) -> Evidence | Open | None:
    """As `_decided`, but with all reads, those of assumed initial values included."""
    if isinstance(rung.model, Axiom):
        try:
            return weak.breach(history, rung.model, rung.order)
        except Undecided:
            return Open("search-too-long: too many chains of reads to follow")
    from checkers.axioms.orders import polygraph  # noqa: PLC0415  Only an open order of versions needs the solver.

    try:
        result = polygraph.decided(history, rung.model, rung.order, rounds=rounds)
    except ImportError as error:
        return Open(f"no-solver: the order of some versions is open, and {error.name} is missing: install python-sat")
    if not isinstance(result, polygraph.Unsolved):
        return result
    doubt = f"{result.pairs} pairs of versions" if result.pairs else "some versions"
    return Open(f"search-too-long: the order of {doubt} is undecided", result.pairs, is_spent=True)
