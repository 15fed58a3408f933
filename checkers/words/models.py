"""Implications between anomalies and between consistency models, and the anomalies that each model prohibits: as data.

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

In the literature the short names G-single and G-nonadjacent mean cycles whose rw may be about predicates. No checker
here derives an edge from a predicate: every rw is about an item, so each short name and its -item name imply each
other. Reports use the short name; G2-item keeps its own.
"""

from collections.abc import Iterable, Mapping
from difflib import SequenceMatcher
from functools import cache
from types import MappingProxyType
from typing import Final

from checkers.words.anomalies import RECORDS
from harness.core.errors import ScenarioError

DEFAULT: Final = "strict-serializable"
_LIKE_MIN: Final = 0.6  # From here on a name is like what was written: 1 if they are the same.
_STEM_LIKE_MIN: Final = 0.75  # The same for the beginning of a name,
_STEM_LETTERS_MIN: Final = 3  # if as many letters were written.

# A cycle -> the anomalies that are present whenever it is; others declare theirs (`RECORDS`). G-SIb and GSIb are
# two names, as in the source.
_IMPLIES: Final = {
    "G0": "G1c G0-process",
    "G0-process": "G1c-process G0-realtime",
    "G0-realtime": "G1c-realtime",
    "G1c": "G1 G1c-process",
    "G1c-process": "G1c-realtime G1-process",
    "G1c-realtime": "G1-realtime",
    "G1": "G1-process",
    "G1-process": "G1-realtime",
    "G-single-item": "G-single G-single-item-process G-nonadjacent-item",
    "G-single-item-process": "G-single-process G-single-item-realtime G-nonadjacent-item-process",
    "G-single-item-realtime": "G-single-realtime G-nonadjacent-item-realtime",
    "G-single": "G-nonadjacent GSIb G-single-process G-single-item",
    "G-single-process": "G-nonadjacent-process G-single-realtime G-single-item-process",
    "G-single-realtime": "G-nonadjacent-realtime G-single-item-realtime",
    "G-nonadjacent-item": "G-nonadjacent G2-item G-nonadjacent-item-process",
    "G-nonadjacent-item-process": "G-nonadjacent-process G2-item-process G-nonadjacent-item-realtime",
    "G-nonadjacent-item-realtime": "G2-item-realtime G-nonadjacent-realtime",
    "G-nonadjacent": "G2 G-nonadjacent-process G-nonadjacent-item",
    "G-nonadjacent-process": "G2-process G-nonadjacent-realtime G-nonadjacent-item-process",
    "G-nonadjacent-realtime": "G2-realtime G-nonadjacent-item-realtime",
    "G2": "G2-process",
    "G2-item": "G2 G2-item-process",
    "G2-item-process": "G2-process G2-item-realtime",
    "G2-item-realtime": "G2-realtime",
    "G2-process": "G2-realtime",
    "GSIa": "GSI",
    "GSIb": "GSI",
    "non-monotonic-view": "fractured-read non-monotonic-view-process",
    "non-monotonic-view-process": "fractured-read-process non-monotonic-view-realtime",
    "non-monotonic-view-realtime": "fractured-read-realtime",
    "fractured-read": "G-UA causal-violation fractured-read-process",
    "fractured-read-process": "causal-violation-process fractured-read-realtime",
    "fractured-read-realtime": "causal-violation-realtime",
    "causal-violation": "prefix-violation G-single causal-violation-process",
    "causal-violation-process": "prefix-violation-process G-single-process causal-violation-realtime",
    "causal-violation-realtime": "prefix-violation-realtime G-single-realtime",
    "prefix-violation": "G-nonadjacent prefix-violation-process",
    "prefix-violation-process": "G-nonadjacent-process prefix-violation-realtime",
    "prefix-violation-realtime": "G-nonadjacent-realtime",
    "write-skew": "G2",
    "G0-watermark": "G1c-watermark G0-watermark-process",
    "G0-watermark-process": "G1c-watermark-process G0-watermark-realtime",
    "G0-watermark-realtime": "G1c-watermark-realtime",
    "G1c-watermark": "G1c-watermark-process",
    "G1c-watermark-process": "G1c-watermark-realtime",
    "G-single-watermark": "G-nonadjacent-watermark G-single-watermark-process",
    "G-single-watermark-process": "G-nonadjacent-watermark-process G-single-watermark-realtime",
    "G-single-watermark-realtime": "G-nonadjacent-watermark-realtime",
    "G-nonadjacent-watermark": "G2-item-watermark G-nonadjacent-watermark-process",
    "G-nonadjacent-watermark-process": "G2-item-watermark-process G-nonadjacent-watermark-realtime",
    "G-nonadjacent-watermark-realtime": "G2-item-watermark-realtime",
    "G2-item-watermark": "G2-item-watermark-process",
    "G2-item-watermark-process": "G2-item-watermark-realtime",
}

# A model -> (the next weaker models, the cycles that it prohibits itself); for other anomalies see `RECORDS`.
_MODELS: Final = {
    "strict-serializable": (
        "linearizable serializable session-serializable snapshot-isolation strong-session-serializable "
        "strong-snapshot-isolation",
        "G1 G1c-realtime G2-realtime",
    ),
    "strong-session-serializable": ("serializable strong-session-snapshot-isolation", "G1-process G2-process"),
    "strong-snapshot-isolation": (
        "strong-parallel-snapshot-isolation strong-prefix strong-session-snapshot-isolation",
        "G1-realtime G-nonadjacent-realtime",
    ),
    "strong-parallel-snapshot-isolation": (
        "strong-causal strong-session-parallel-snapshot-isolation",
        "G1-realtime G-single-realtime",
    ),
    "strong-prefix": ("strong-causal strong-session-prefix", "prefix-violation-realtime"),
    "strong-causal": ("strong-read-atomic strong-session-causal", "causal-violation-realtime"),
    "strong-read-atomic": ("strong-monotonic-atomic-view strong-session-read-atomic", "fractured-read-realtime"),
    "strong-monotonic-atomic-view": (
        "strong-read-committed strong-session-monotonic-atomic-view",
        "non-monotonic-view-realtime",
    ),
    "serializable": (
        "repeatable-read snapshot-isolation update-serializable view-serializable",
        "G1 G2 predicate-read-miss",
    ),
    "strong-session-snapshot-isolation": (
        "snapshot-isolation strong-session-parallel-snapshot-isolation strong-session-prefix",
        "G1-process G-nonadjacent-process",
    ),
    "strong-session-parallel-snapshot-isolation": (
        "parallel-snapshot-isolation strong-session-causal",
        "G1-process G-single-process",
    ),
    "strong-session-prefix": ("prefix strong-session-causal", "prefix-violation-process"),
    "strong-session-causal": ("causal-cerone strong-session-read-atomic", "causal-violation-process"),
    "strong-session-read-atomic": ("read-atomic strong-session-monotonic-atomic-view", "fractured-read-process"),
    "strong-session-monotonic-atomic-view": (
        "monotonic-atomic-view strong-session-read-committed",
        "non-monotonic-view-process",
    ),
    "snapshot-isolation": (
        "forward-consistent-view monotonic-atomic-view monotonic-snapshot-read parallel-snapshot-isolation prefix",
        "G1 G-SI G-nonadjacent",
    ),
    "linearizable": ("sequential", ""),
    "update-serializable": ("forward-consistent-view", "G1 G-update"),
    "parallel-snapshot-isolation": ("causal-cerone consistent-view update-atomic", "G-single"),
    "sequential": ("causal", ""),
    "forward-consistent-view": ("consistent-view", "G1 G-SIb"),
    "prefix": ("causal-cerone", "prefix-violation"),
    "strong-read-committed": ("strong-read-uncommitted strong-session-read-committed", "G1c-realtime"),
    "causal": ("PRAM writes-follow-reads", ""),
    "causal-cerone": ("read-atomic", "causal-violation"),
    "consistent-view": ("cursor-stability monotonic-view", "G1 G-single"),
    "repeatable-read": ("cursor-stability monotonic-atomic-view", "G1 G2-item"),
    "update-atomic": ("read-atomic", ""),
    "read-atomic": ("monotonic-atomic-view", "fractured-read"),
    "strong-session-read-committed": ("read-committed strong-session-read-uncommitted", "G1c-process"),
    "PRAM": ("monotonic-reads monotonic-writes read-your-writes", ""),
    "cursor-stability": ("read-committed", "G1 G-cursor"),
    "monotonic-view": ("read-committed", "G1 G-monotonic"),
    "monotonic-atomic-view": ("read-committed", "non-monotonic-view"),
    "monotonic-snapshot-read": ("read-committed", "G1 G-MSR"),
    "strong-read-uncommitted": ("strong-session-read-uncommitted", "G0-realtime"),
    "read-committed": ("read-uncommitted", "G1"),
    "session-serializable": ("one-copy-serializable", ""),
    "strong-session-read-uncommitted": ("read-uncommitted", "G0-process"),
    "view-serializable": ("", ""),
    "read-uncommitted": (
        "",
        "G0",
    ),
    "one-copy-serializable": ("", ""),
    "writes-follow-reads": ("", ""),
    "monotonic-reads": ("", ""),
    "monotonic-writes": ("", ""),
    "read-your-writes": ("", ""),
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
    return _closure(anomalies, _implies())


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
    return _closure([model], {name: below.split() for name, (below, _) in _MODELS.items()}) - {model}


@cache
def _prohibited_by(model: str) -> frozenset[str]:
    models = (model, *_below(model))
    direct = {anomaly for each in models for anomaly in _MODELS[each][1].split()}
    direct |= {name for name, record in RECORDS.items() if not set(models).isdisjoint(record.forbidden_by.split())}
    return _closure(direct, _implied_by())


@cache
def _implies() -> Mapping[str, list[str]]:
    implied = {**_IMPLIES, **{name: record.implies for name, record in RECORDS.items() if record.implies}}
    return {anomaly: names.split() for anomaly, names in implied.items()}


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
