"""The pages of all clusters' promises in Markdown, generated from their declarations, so that the two always agree.

One page for each cluster, and one that explains what they share: models, contracts, bounds, rules, anomalies.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import Final

import msgspec

from checkers.catalogue import CHECKS, RECORDS, records_of
from checkers.engine.protocol import Check, When
from checkers.streams.catalogue import RULES
from checkers.streams.rule import Need, Rule
from checkers.verdict.compose import Thresholds
from checkers.words import models
from checkers.words.checks import TRANSACTIONS
from checkers.words.transactional import TRANSACTIONAL
from harness.cli.texts.contract_fields import BOUNDS, CONTRACT, Words
from harness.core.machine import Settings
from harness.core.promises import Bounds, Promise, StreamContract, View
from harness.core.seams import Cluster
from harness.core.wording import counted
from harness.judging.judge import SETTLED
from harness.report.markdown import code, table
from harness.report.screen import visible

MODELS_HEADING: Final = "Consistency models"
CONTRACT_HEADING: Final = "The fields of a stream contract"
BOUNDS_HEADING: Final = "The bounds of a cluster"
RULES_HEADING: Final = "The rules of streams"
ANOMALIES_HEADING: Final = "All anomalies"
_NONE: Final[Mapping[str, Sequence[Check]]] = MappingProxyType({})
_SECOND: Final = 1_000_000_000
_MARKUP: Final = re.compile(r"([|<*`])")
SHARED: Final = "promises.md"  # The page of what all clusters share; the others are in the folder beside it.
FOLDER: Final = "promises"
_OUR_README: Final = re.compile(r"clusters/\w+/README\.md")


def promises_pages(clusters: Sequence[Cluster], own: Mapping[str, Sequence[Check]] = _NONE) -> dict[str, str]:
    """The text of each page, by its path in the folder of documents. `own` are the checks that clusters bring."""
    promises = [promise for cluster in clusters for promise in cluster.promises]
    shared = [*_introduction(), *_contents(clusters)]
    shared += [*_models(promises), *_contract_fields(), *_bound_fields(), *_stream_rules(), *_anomalies(own)]
    pages = {SHARED: shared}
    for cluster in clusters:
        pages[f"{FOLDER}/{cluster.name}.md"] = _cluster(cluster, (*CHECKS, *own.get(cluster.name, ())))
    return {path: "\n".join(lines).rstrip() + "\n" for path, lines in pages.items()}


def _introduction() -> list[str]:
    least = Thresholds().witnesses
    return [
        "# Promises",
        "",
        "Each installed cluster has a page with its guarantees, the anomalies that break them, their checks, and the",
        "cluster's planted bugs. This page explains the shared terms. All pages are generated from declarations:",
        "",
        "```",
        "seamark clusters --markdown docs",
        "```",
        "",
        f"A promise *holds* if no event broke it and at least {least} events could have; else it was *not exercised*.",
        "If a **purpose** of the test was not exercised, the run is vacuous; other promises may stay unexercised.",
        "For a promise that holds, the report names the anomalies that no event could have shown.",
        "",
        f"One promise belongs to every run, {code(SETTLED.id)}: {_prose(SETTLED.text)} It is broken by",
        f"{', '.join(map(code, SETTLED.forbids))}.",
        "",
    ]


def _contents(clusters: Iterable[Cluster]) -> list[str]:
    lines = [
        f"- [{cluster.name}]({FOLDER}/{cluster.name}.md): {len(cluster.promises)} promises, "
        f"{counted(len(cluster.bugs), 'planted bug')}"
        for cluster in clusters
    ]
    others = (MODELS_HEADING, CONTRACT_HEADING, BOUNDS_HEADING, RULES_HEADING, ANOMALIES_HEADING)
    return [*lines, *(f"- [{each}](#{each.lower().replace(' ', '-')})" for each in others), ""]


def _cluster(cluster: Cluster, checks: Sequence[Check]) -> list[str]:
    sources = list(dict.fromkeys(promise.source for promise in cluster.promises))
    settle = f"After faults it settles within {cluster.settle_ns / _SECOND:g} s."
    shared = "[Models, contracts, rules and anomalies](../promises.md) have a page for all clusters."
    lines = [f"# {cluster.name}: promises and planted bugs", "", f"{_sentence(cluster.summary)} {settle} {shared}", ""]
    if len(sources) == 1:
        lines += [f"Source of every promise: {_linked(sources[0])}.", ""]
    for promise in cluster.promises:
        lines += _promise(cluster, checks, promise, None if len(sources) == 1 else promise.source)
    return [*lines, *_stream(cluster.stream), *_bounds(cluster), *_bugs(cluster)]


def _promise(cluster: Cluster, checks: Sequence[Check], promise: Promise, source: str | None) -> list[str]:
    purpose = " **Purpose.**" if promise.is_purpose else ""
    lines = [f"## {promise.id}", "", f"{_prose(promise.text)}{purpose}", ""]
    for name in promise.forbids:
        by = ", ".join(map(code, _checks(cluster, checks, promise, name))) or "no check of today"
        lines.append(f"- {_breach(name, checks)} Checked by {by}.")
    return [*lines, "", *([f"Source: {_linked(source)}.", ""] if source else [])]


def _breach(name: str, checks: Sequence[Check]) -> str:
    if _is_model(name):
        return f"Any anomaly that [{name}](../{SHARED}#{name.lower()}) rules out."
    return f"{code(name)}: {_prose(records_of(checks)[name].meaning)}"


def _checks(cluster: Cluster, checks: Sequence[Check], promise: Promise, name: str) -> list[str]:
    """The names of the checks that look in runs of the cluster for that anomaly, or for any that the model forbids."""
    if promise.check is not None:
        return [promise.check]
    if all(map(_is_model, promise.forbids)):
        return [TRANSACTIONS]
    named = {each.check for each in cluster.promises}
    sought = set(_ruled_out(name)) if _is_model(name) else {name}
    made = [check for check in checks if check.when is not When.NAMED or check.name in named]
    return [check.name for check in made if not sought.isdisjoint(check.anomalies)]


def _stream(contract: StreamContract | None) -> list[str]:
    if contract is None:
        return ["There is no change stream.", ""]
    rows = []
    for name, words in CONTRACT.items():
        value = _shown(getattr(contract, name))
        if words.is_checked and not (name == "replay" and contract.delivery != "at-least-once"):
            rows.append((code(name), _prose(words.about), code(value), _prose(words.values.get(value, ""))))
    return ["## The contract of its stream", "", *table(("field", "asks", "answer", "meaning"), rows), ""]


def _bounds(cluster: Cluster) -> list[str]:
    """The limits by which a run is judged, each from the smallest to the largest parameters."""
    low, high = (
        cluster.bounds(Settings(parameters={each.name: getattr(each, end) for each in cluster.parameters}))
        for end in ("low", "high")
    )
    if low == high == Bounds():
        return []
    rows = []
    for name, words in BOUNDS.items():
        values = (getattr(low, name), getattr(high, name))
        ordered = sorted(values) if all(isinstance(value, int) for value in values) else values
        texts = list(dict.fromkeys(_bound(name, value) for value in ordered))
        rows.append((code(name), " to ".join(texts), _prose(words.about)))
    text = "By these numbers a run is judged, between the smallest and the greatest parameters that a seed draws."
    return ["## Its bounds", "", text, "", *table(("bound", "value", "meaning"), rows), ""]


def _bugs(cluster: Cluster) -> list[str]:
    if not cluster.bugs:
        return []
    rows = [(code(name), _sentence(text)) for name, text in cluster.bugs.items()]
    return ["## Its planted bugs", "", *table(("bug", "effect"), rows), ""]


def _models(promises: Iterable[Promise]) -> Iterator[str]:
    names = sorted({name for promise in promises for name in promise.forbids if _is_model(name)})
    yield from (f"## {MODELS_HEADING}", "")
    for name in names:
        rows = [(code(anomaly), _prose(RECORDS[anomaly].meaning)) for anomaly in _ruled_out(name)]
        yield from (f"### {name}", "", *table(("rules out", "meaning"), rows), "")


def _contract_fields() -> Iterator[str]:
    yield from (f"## {CONTRACT_HEADING}", "")
    yield from ("The first three fields have no default: each cluster must declare them.", "")
    yield from (*table(("field", "asks", "answers"), (_field(*each) for each in CONTRACT.items())), "")


def _field(name: str, words: Words) -> tuple[str, str, str]:
    default = {field.name: field for field in msgspec.structs.fields(StreamContract)}[name]
    answers = [f"{code(value)}: {_prose(text)}" for value, text in words.values.items()]
    if not default.required:
        answers.append(f"Default: {code(_shown(default.default))}.")
    note = "" if words.is_checked else " *Kept with the run; no check uses it yet.*"
    return code(name), _prose(words.about) + note, "<br>".join(answers)


def _bound_fields() -> Iterator[str]:
    yield from (f"## {BOUNDS_HEADING}", "", "A bound that a cluster does not give is not promised.", "")
    yield from table(("bound", "meaning"), ((code(name), _prose(words.about)) for name, words in BOUNDS.items()))
    yield ""


def _stream_rules() -> Iterator[str]:
    yield from (f"## {RULES_HEADING}", "")
    yield from ("A witness is a chance to see the anomaly. A rule whose needs are not met is not exercised.", "")
    yield from table(
        ("rule", "anomaly", "meaning", "a witness is", "needs"),
        map(_stream_rule, sorted(RULES.values(), key=lambda rule: rule.id)),
    )
    yield ""


def _anomalies(own: Mapping[str, Sequence[Check]]) -> Iterator[str]:
    yield from (f"## {ANOMALIES_HEADING}", "")
    yield from ("The names that `forbids` of a promise may hold besides consistency models, with their checks.", "")
    rows = []
    checks = (*CHECKS, *chain.from_iterable(own.values()))
    known = records_of(checks)
    for name in sorted(known, key=str.lower):
        by = [check.name for check in checks if name in check.anomalies and not check.is_locked]
        rows.append((code(name), _prose(known[name].meaning), ", ".join(map(code, by)) or "a comparison of two checks"))
    yield from table(("anomaly", "meaning", "checks"), rows)


def _stream_rule(rule: Rule) -> tuple[str, ...]:
    needs = ", ".join(need.value for need in Need if need in rule.needs)
    return rule.id, code(rule.name), _prose(rule.anomaly.meaning), _prose(rule.witness), needs or "the events alone"


def _ruled_out(model: str) -> tuple[str, ...]:
    """The anomalies of transactions that break that model."""
    return tuple(name for name in TRANSACTIONAL if name in models.prohibited((model,)))


def _is_model(name: str) -> bool:
    return models.ALIASES.get(name, name) in models.MODELS


def _bound(name: str, value: object) -> str:
    if isinstance(value, int) and name.endswith("_ns"):
        return f"{value / _SECOND:g} s"
    if isinstance(value, tuple):
        return "; ".join(_part(each) for each in value) or "none"
    return _shown(value)


def _part(value: str | View | tuple[str, ...]) -> str:
    if isinstance(value, View):
        return f"{value.name}: {value.operator} of {', '.join(value.inputs)}"
    return value if isinstance(value, str) else " ".join(value)


def _shown(value: object) -> str:
    """A value as a user would write it."""
    match value:
        case None:
            return "not promised"
        case bool():
            return "yes" if value else "no"
        case tuple():
            return ", ".join(map(str, value)) or "none"
        case _:
            return str(value)


def _sentence(text: str) -> str:
    """The text with a capital at the beginning and a full stop at the end."""
    text = text[:1].upper() + text[1:]
    return _prose(text if text.endswith(".") else f"{text}.")


def _linked(source: str) -> str:
    """The source of a promise; a cluster's own page as a link relative to the folder of pages."""
    return _OUR_README.sub(r"[\g<0>](../../\g<0>)", _prose(source))


def _prose(text: str) -> str:
    """Text that Markdown shows literally."""
    return _MARKUP.sub(r"\\\1", visible(text))
