"""Consistency models: the weaker ones of each, and the anomalies that it prohibits by their records (transactional.py).

Sources: Adya, Weak Consistency, MIT 1999; Cerone, Bernardi and Gotsman, CONCUR 2015; Bailis et al., VLDB 2013; Biswas
and Enea, OOPSLA 2019; and the tables of Elle (jepsen-io/elle, consistency_model.clj at ccdee6f), restated. Where that
table forbids too little, the axioms decide: read atomic, causal consistency, prefix and parallel snapshot isolation.

Some anomalies break every model, read uncommitted as well, since they contradict the definition of a history in Adya's
thesis: a read shows a version that was written before it, and after a transaction's own write
of an object the version that this write left. These are missed-own-write, future-read and unwritten-read; for the last
one the initial values must be declared. Biswas and Enea demand the same of every history. A transaction that reads two
versions of a key which it did not write (internal) breaks read atomic and repeatable read, and nothing weaker.

G0 has two witnesses: a cycle of final writes, as Adya defines it; and two transactions that each read a write of a
register by the other, final or not, before they wrote it. A graph over final writes alone would not name the second.

Two schools give read committed two meanings. `read-committed` is Adya's PL-2. Biswas and Enea's read committed, where a
transaction that saw one write of another misses none of that one's writes in later reads, is
`strong-session-monotonic-atomic-view` here. Likewise their read atomic and causal consistency are the strong-session
ones: they include the order of sessions.
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache
from types import MappingProxyType
from typing import Final

from checkers.words.transactional import LITERATURE, TRANSACTIONAL, WATERMARK, WRITE_SKEW
from harness.core.errors import ScenarioError

DEFAULT: Final = "strict-serializable"
_LIKE_MIN: Final = 0.6  # From here on a name is like what was written: 1 if they are the same.
_STEM_LIKE_MIN: Final = 0.75  # The same for the beginning of a name,
_STEM_LETTERS_MIN: Final = 3  # if as many letters were written.

# A model -> the next weaker models. The records of anomalies name the models that forbid them.
_MODELS: Final = {
    "strict-serializable": "linearizable serializable session-serializable "
    "snapshot-isolation strong-session-serializable strong-snapshot-isolation",
    "strong-session-serializable": "serializable strong-session-snapshot-isolation",
    "strong-snapshot-isolation": "strong-parallel-snapshot-isolation strong-prefix strong-session-snapshot-isolation",
    "strong-parallel-snapshot-isolation": "strong-causal strong-session-parallel-snapshot-isolation",
    "strong-prefix": "strong-causal strong-session-prefix",
    "strong-causal": "strong-read-atomic strong-session-causal",
    "strong-read-atomic": "strong-monotonic-atomic-view strong-session-read-atomic",
    "strong-monotonic-atomic-view": "strong-read-committed strong-session-monotonic-atomic-view",
    "serializable": "repeatable-read snapshot-isolation update-serializable view-serializable",
    "strong-session-snapshot-isolation": "snapshot-isolation "
    "strong-session-parallel-snapshot-isolation strong-session-prefix",
    "strong-session-parallel-snapshot-isolation": "parallel-snapshot-isolation strong-session-causal",
    "strong-session-prefix": "prefix strong-session-causal",
    "strong-session-causal": "causal-cerone strong-session-read-atomic",
    "strong-session-read-atomic": "read-atomic strong-session-monotonic-atomic-view",
    "strong-session-monotonic-atomic-view": "monotonic-atomic-view strong-session-read-committed",
    "snapshot-isolation": "forward-consistent-view monotonic-atomic-view "
    "monotonic-snapshot-read parallel-snapshot-isolation prefix",
    "linearizable": "sequential",
    "update-serializable": "forward-consistent-view",
    "parallel-snapshot-isolation": "causal-cerone consistent-view update-atomic",
    "sequential": "causal",
    "forward-consistent-view": "consistent-view",
    "prefix": "causal-cerone",
    "strong-read-committed": "strong-read-uncommitted strong-session-read-committed",
    "causal": "PRAM writes-follow-reads",
    "causal-cerone": "read-atomic",
    "consistent-view": "cursor-stability monotonic-view",
    "repeatable-read": "cursor-stability monotonic-atomic-view",
    "update-atomic": "read-atomic",
    "read-atomic": "monotonic-atomic-view",
    "strong-session-read-committed": "read-committed strong-session-read-uncommitted",
    "PRAM": "monotonic-reads monotonic-writes read-your-writes",
    "cursor-stability": "read-committed",
    "monotonic-view": "read-committed",
    "monotonic-atomic-view": "read-committed",
    "monotonic-snapshot-read": "read-committed",
    "strong-read-uncommitted": "strong-session-read-uncommitted",
    "read-committed": "read-uncommitted",
    "session-serializable": "one-copy-serializable",
    "strong-session-read-uncommitted": "read-uncommitted",
    "view-serializable": "",
    "read-uncommitted": "",
    "one-copy-serializable": "",
    "writes-follow-reads": "",
    "monotonic-reads": "",
    "monotonic-writes": "",
    "read-your-writes": "",
}
MODELS: Final = tuple(_MODELS)
REGISTERS: Final = "linearizable"  # The one model of single registers, decided by the check of that name.
# The models that no check decides in a history of transactions, each with the weakest decided one that implies it.
NEAREST: Final[Mapping[str, str]] = MappingProxyType(
    {
        REGISTERS: "strict-serializable",
        "sequential": "strong-session-serializable",
        "causal": "strong-session-causal",
        "PRAM": "strong-session-causal",
        "session-serializable": "strong-session-serializable",
        "view-serializable": "serializable",
        "one-copy-serializable": "serializable",
        "writes-follow-reads": "strong-session-causal",
        "monotonic-reads": "strong-session-causal",
        "monotonic-writes": "strong-session-causal",
        "read-your-writes": "strong-session-causal",
    }
)
UNDECIDED: Final = tuple(name for name in MODELS if name in NEAREST and name != REGISTERS)

ALIASES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "strong-serializable": "strict-serializable",
        "PL-SS": "strict-serializable",
        "conflict-serializable": "serializable",
        "PL-3": "serializable",
        "PL-SI": "snapshot-isolation",
        "PL-2.99": "repeatable-read",
        "PL-2": "read-committed",
        "PL-1": "read-uncommitted",
        "PL-CS": "cursor-stability",
        "PL-2L": "monotonic-view",
        "PL-2+": "consistent-view",
        "PL-FCV": "forward-consistent-view",
        "PL-MSR": "monotonic-snapshot-read",
        "PL-3U": "update-serializable",
        "strong-PL-1": "strong-read-uncommitted",
        "strong-PL-2": "strong-read-committed",
        "strong-session-PL-1": "strong-session-read-uncommitted",
        "strong-session-PL-2": "strong-session-read-committed",
        "1SR": "one-copy-serializable",
        "causal-consistency": "strong-session-causal",
        "strong-session-causal-cerone": "strong-session-causal",
        "strong-causal-cerone": "strong-causal",
        "axiomatic-read-committed": "strong-session-monotonic-atomic-view",
        "axiomatic-read-atomic": "strong-session-read-atomic",
        "strict-1SR": "strict-serializable",
        "strong-session-1SR": "strong-session-serializable",
        "SSER": "strict-serializable",
        "SER": "serializable",
        "SSI": "serializable",
        "SI": "snapshot-isolation",
        "PSI": "parallel-snapshot-isolation",
        "PC": "prefix",
        "RR": "repeatable-read",
        "CC": "strong-session-causal",
        "UA": "update-atomic",
        "RA": "read-atomic",
        "MAV": "monotonic-atomic-view",
        "CS": "cursor-stability",
        "RC": "read-committed",
        "RU": "read-uncommitted",
    }
)


_RECORDS: Final = {**TRANSACTIONAL, **WATERMARK, **LITERATURE, "write-skew": WRITE_SKEW}


def canonical(model: str) -> str:
    """The name of that model in this module; letter case, spaces and hyphens of the argument do not matter.

    Raises ScenarioError, with the nearest names, if there is none.
    """
    written = _spellings()
    name = written.get(_spelling(model))
    if name is None:
        near = [written[each] for each in _nearest(_spelling(model), written)]
        raise ScenarioError(
            f"no consistency model {model!r}"
            + (f": did you mean {' or '.join(near)}?" if near else "; seamark check --help lists them")
        )
    return ALIASES.get(name, name)


def decided(model: str) -> str:
    """The name of that model, as `canonical`. Raises ScenarioError, with the nearest one, if no check decides it."""
    name = canonical(model)
    if name in UNDECIDED:
        registers = f", or for single registers {REGISTERS}" if REGISTERS in _above(name) else ""
        raise ScenarioError(f"no check decides the model {name}: the nearest one is {NEAREST[name]}{registers}")
    return name


def _above(model: str) -> list[str]:
    return [other for other in _MODELS if model in _below(other)]


def _nearest(spelling: str, names: Iterable[str]) -> list[str]:
    """Up to three of `names`: those that begin like `spelling`, or else those that are written like it."""
    match = SequenceMatcher(b=spelling)

    def likeness(name: str) -> float:
        match.set_seq1(name)
        whole = match.ratio()
        match.set_seq1(name[: len(spelling)])
        beginning = match.ratio() if len(spelling) >= _STEM_LETTERS_MIN else 0.0
        return max(whole if whole >= _LIKE_MIN else 0.0, beginning if beginning >= _STEM_LIKE_MIN else 0.0)

    near = sorted((-likeness(name), len(name), name) for name in names)
    return [name for unlike, _, name in near[:3] if unlike]


@cache
def _spellings() -> Mapping[str, str]:
    return {_spelling(name): name for name in (*_MODELS, *ALIASES)}


def _spelling(model: str) -> str:
    return "-".join(model.casefold().replace("_", " ").replace("-", " ").split())


def implied(anomalies: Iterable[str]) -> frozenset[str]:
    """Those anomalies, and all anomalies that they imply."""
    return frozenset[str]().union(*map(_implied_by_one, anomalies))


@cache
def _implied_by_one(anomaly: str) -> frozenset[str]:
    return _closure([anomaly], _implies())


def prohibited(models: Iterable[str] = (DEFAULT,), anomalies: Iterable[str] = ()) -> frozenset[str]:
    """All anomalies that break one of `models`, or that imply one of `anomalies`.

    Raises ScenarioError for a model that does not exist.
    """
    return _closure(anomalies, _implied_by()).union(*map(_prohibited_by, map(canonical, models)))


def ruled_out(anomalies: Iterable[str]) -> tuple[str, ...]:
    """All models that those anomalies break, strongest first."""
    found = frozenset(anomalies)
    return tuple(model for model in _MODELS if found & prohibited((model,)))


def weakest(models: Iterable[str]) -> tuple[str, ...]:
    """Those of `models` that imply no other of them."""
    given = frozenset(models)
    return tuple(model for model in _MODELS if model in given and not _below(model) & given)


def strongest(models: Iterable[str]) -> tuple[str, ...]:
    """Those of `models` that no other of them implies."""
    given = frozenset(models)
    return tuple(model for model in _MODELS if model in given and not any(model in _below(other) for other in given))


@cache
def _below(model: str) -> frozenset[str]:
    return _closure([model], {name: below.split() for name, below in _MODELS.items()}) - {model}


@cache
def _prohibited_by(model: str) -> frozenset[str]:
    models = {model, *_below(model)}
    forbidding = {
        name: {ALIASES.get(each, each) for each in record.forbidden_by.split()} for name, record in _RECORDS.items()
    }
    return _closure([name for name, by in forbidding.items() if by & models], _implied_by())


@cache
def _implies() -> Mapping[str, list[str]]:
    return {name: record.implies.split() for name, record in _RECORDS.items()}


@cache
def _implied_by() -> Mapping[str, list[str]]:
    sources: dict[str, list[str]] = {}
    for anomaly, names in _implies().items():
        for name in names:
            sources.setdefault(name, []).append(anomaly)
    return sources


def _closure(names: Iterable[str], following: Mapping[str, list[str]]) -> frozenset[str]:
    reached: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in reached:
            reached.add(name)
            waiting.extend(following.get(name, ()))
    return frozenset(reached)
