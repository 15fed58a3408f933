"""docs/promises.md and docs/promises/ show what the clusters and the checks declare today."""

import re
from functools import cache
from typing import Literal, get_args, get_origin, get_type_hints

import msgspec
import pytest

from checkers.catalogue import CHECKS, RECORDS, records_of
from checkers.engine.protocol import Check
from harness.cli.texts.contract_fields import BOUNDS, CONTRACT
from harness.cli.texts.promises_page import promises_pages
from harness.core.promises import Bounds, Promise, StreamContract
from harness.scenario.consent import cluster_names, installed
from harness.scenario.own_checks import checks_of
from harness.scenario.registry import load_cluster
from tests.repo.test_docs import DOCS, ROOT, clusters

PROMISES = DOCS / "promises.md"
RENEWAL = "seamark clusters --markdown docs"


@cache
def own() -> dict[str, tuple[Check, ...]]:
    """The checks that each cluster brings."""
    codes = map(installed, cluster_names())
    return {code.name: checks_of(load_cluster(code), code) for code in codes}


def test_the_pages_of_promises_are_current() -> None:
    message = f"what is promised has changed; write docs/promises.md again: {RENEWAL}"
    stored = {path.relative_to(DOCS).as_posix() for path in (PROMISES, *DOCS.glob("promises/*.md"))}
    pages = promises_pages(clusters(), own())
    assert stored == set(pages), message
    assert all((DOCS / path).read_text(encoding="utf-8") == text for path, text in pages.items()), message
    assert RENEWAL in pages["promises.md"]


def test_the_page_of_promises_says_of_each_what_would_break_it_and_who_says_so() -> None:
    for cluster in clusters():
        text = (DOCS / "promises" / f"{cluster.name}.md").read_text(encoding="utf-8")
        checks = (*CHECKS, *own()[cluster.name])
        names = records_of(checks)
        for promise in cluster.promises:
            section = text.split(f"## {promise.id}\n")[1].split("\n##")[0]
            assert promise.text in section
            assert ("**Purpose.**" in section) == promise.is_purpose
            for name in promise.forbids:
                assert (
                    f"`{name}`: {names[name].meaning}" if name in names else f"[{name}](../promises.md#{name})"
                ) in section
            judges = re.findall(r"Checked by ((?:`[\w-]+`(?:, )?)+)\.", section)
            assert len(judges) == len(promise.forbids)
            assert {name for each in judges for name in re.findall(r"`([\w-]+)`", each)} <= {c.name for c in checks}
        for bug in cluster.bugs:
            assert f"| `{bug}` |" in text


def test_a_promise_that_no_check_looks_for_is_told_so() -> None:
    cluster = load_cluster(installed("tutorial"))
    cluster.promises = (Promise(id="T-1", text="All is well.", source="docs", forbids=("lost-write",)),)
    cluster.stream, cluster.bugs = None, {}
    page = promises_pages([cluster])["promises/tutorial.md"]
    assert f"- `lost-write`: {RECORDS['lost-write'].meaning} Checked by no check of today." in page
    assert "There is no change stream." in page


@pytest.mark.parametrize(("kind", "words"), [(StreamContract, CONTRACT), (Bounds, BOUNDS)])
def test_each_field_and_each_of_its_values_has_words(
    kind: type[StreamContract | Bounds], words: dict[str, object]
) -> None:
    assert list(words) == [field.name for field in msgspec.structs.fields(kind)]
    for name, hint in get_type_hints(kind).items():
        values: tuple[object, ...] = get_args(hint) if get_origin(hint) is Literal else ()
        if kind is StreamContract and (values or hint is bool):
            assert set(CONTRACT[name].values) == set(values or ("yes", "no"))


def test_a_field_that_no_check_reads_is_marked() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "checkers").rglob("*.py"))
    read = {name for name in CONTRACT if re.search(rf"\bcontract\.{name}\b", code)}
    assert {name for name, words in CONTRACT.items() if words.is_checked} == read
