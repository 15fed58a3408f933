"""What etcd's and CockroachDB's validators say of their own cases, and what our rules say: a table, case by case.

The table has what we find, by our names, for each rule of theirs; a case that goes beyond its row stands in `MORE`, and
one where we differ, in `DEVIATIONS`, each with the reason. Absent files are skipped.

| of etcd | of CockroachDB | our rule |
| --- | --- | --- |
| filter | | S01 outside-filter |
| ordered | row_after_later_row | S02 order-inversion |
| unique | | S03 duplicate-event, S04 divergent-duplicate, S12 wrong-value |
| atomic | | S06 late-event-boundary: the end of a response promises its revision |
| bookmarkable | row_below_resolved | S05 late-event, S06 late-event-boundary, S07 watermark-regress |
| resumable, reliable | fingerprint | S09 missing-event, S12 wrong-value |
| iscreate, prevkv | before, after | S12 wrong-value, of what is said beside a value |
| | key_on_two_partitions | S26 moved-key |
"""

from collections.abc import Mapping
from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.streams.check import check
from harness.core.promises import StreamContract
from harness.core.record import Evidence
from harness.core.verdict import Judgement
from harness.record.formats.parquet import parquet
from harness.record.formats.parquet.parquet import write_history
from tests.corpus.cases import HISTORIES, Case, cases
from tests.corpus.watched import CONTRACTS, ETCD, crdb_records, etcd_records

GROUPS = ("etcd-watch/cases.jsonl", "crdb-cdc/cases.jsonl")
pytestmark = pytest.mark.skipif(not (HISTORIES / GROUPS[0]).is_file(), reason=f"{HISTORIES} is absent")

RULES: Mapping[str | None, frozenset[str]] = {
    None: frozenset(),
    "filter": frozenset({"outside-filter"}),
    "ordered": frozenset({"order-inversion"}),
    "unique": frozenset({"duplicate-event", "divergent-duplicate", "wrong-value"}),
    "atomic": frozenset({"late-event-boundary"}),
    "resumable": frozenset({"missing-event"}),
    "reliable": frozenset({"missing-event"}),
    "iscreate": frozenset({"wrong-value"}),
    "prevkv": frozenset({"wrong-value"}),
    "key_on_two_partitions": frozenset({"moved-key"}),
    "row_after_later_row": frozenset({"order-inversion"}),
    "row_below_resolved": frozenset({"late-event"}),
    "before": frozenset({"wrong-value"}),
    "after": frozenset({"wrong-value"}),
    "fingerprint": frozenset({"missing-event"}),
}
# What etcd calls bookmarkable is three rules of ours; and where one fault is seen by two rules, it is said by both.
MORE: Mapping[str, frozenset[str]] = {
    "Bookmarkable - event precedes progress - fail": frozenset({"watermark-regress"}),
    "Bookmarkable - progress precedes event - fail": frozenset({"late-event-boundary"}),
    "Bookmarkable - progress precedes other progress - fail": frozenset({"watermark-regress"}),
    # A watch that began with revision 3 was never to show revision 2.
    "Ordered - unordered events in separate response - fail": frozenset({"order-inversion", "outside-filter"}),
    # The key's older version comes on the second partition. CockroachDB's validator looks no further than the first.
    "order/key-on-two-partitions": frozenset({"moved-key", "order-inversion"}),
    # A row was delivered, with a value that the table never had: to us nothing is missing.
    "fingerprint/wrong-data": frozenset({"wrong-value"}),
}
DEVIATIONS: Mapping[str, tuple[frozenset[str], str]] = {
    **dict.fromkeys(
        (
            "Unique revision - duplicated revision in one response - fail",
            "Atomic - duplicated revision in one response - fail",
        ),
        (
            frozenset(),
            "The event of b bears the revision of a, and its own is 3. It does not repeat anything, and its value was "
            "written; that it is at the wrong revision shows as soon as 3 is announced: then b is missing there. Which "
            "position a value has, is told by deliveries where the source does not say, so it is no evidence against "
            "one. See test_an_event_at_a_wrong_revision_is_missing_at_its_own.",
        ),
    ),
    "fingerprint/unknown-partition": (
        frozenset(),
        "A partition that was not declared is an error of the validator's, and nothing is judged. To us it is a "
        "partition like any other, on which nothing came. Nothing was witnessed, so it is no pass either.",
    ),
    "fingerprint/resolved-unsorted": (
        frozenset({"watermark-regress"}),
        "The validator of fingerprints leaves a resolved timestamp that goes back to that of order, which fails it.",
    ),
}


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def every(group: str) -> list[Case]:
    return list(cases(group)) if (HISTORIES / group).is_file() else []


def judged(records: list[Evidence], contract: StreamContract, folder: Path) -> Judgement:
    write_history(records, folder / "history")
    return check(folder / "history", Context(engine=LocalEngine(1), contract=contract))


def found(judgement: Judgement) -> frozenset[str]:
    assert judgement.unknown == {}
    return frozenset(finding.anomaly for finding in judgement.findings)


def expected(name: str, rules: list[str | None]) -> frozenset[str]:
    """What we must find in a case of that name, in which those rules of theirs are broken."""
    if name in DEVIATIONS:
        return DEVIATIONS[name][0]
    if name in MORE:
        return MORE[name]
    return frozenset[str]().union(*(RULES[rule] for rule in rules))


@pytest.mark.parametrize("case", every(GROUPS[0]), ids=lambda case: case["name"])
def test_a_watch_is_judged_as_etcd_judges_it(case: Case, tmp_path: Path) -> None:
    judgement = judged(etcd_records(case), ETCD, tmp_path)
    assert found(judgement) == expected(case["name"], [case["expected_error"]])
    assert (found(judgement) == frozenset()) is (case["valid"] or case["name"] in DEVIATIONS)


@pytest.mark.parametrize("case", every(GROUPS[1]), ids=lambda case: case["name"])
def test_a_feed_is_judged_as_cockroachdb_judges_it(case: Case, tmp_path: Path) -> None:
    judgement = judged(crdb_records(case), CONTRACTS[case["validator"]], tmp_path)
    rules = [rule.split("@")[0] for rule in case["expected_failures"]]
    assert found(judgement) == expected(case["name"], list(rules))
    assert (found(judgement) == frozenset()) is case["valid"] or case["name"] in DEVIATIONS


def test_every_rule_of_theirs_and_every_exception_of_ours_is_used() -> None:
    known = [case for group in GROUPS for case in every(group)]
    assert {*MORE, *DEVIATIONS} <= {case["name"] for case in known}
    broken = {case["expected_error"] for case in known if "expected_error" in case}
    broken |= {rule.split("@")[0] for case in known for rule in case.get("expected_failures", [])}
    assert broken == {*RULES, "bookmarkable", "error:unknown_partition"}
    assert (len(known), sum(case["valid"] for case in known)) == (87, 31 + 10)


def test_an_event_at_a_wrong_revision_is_missing_at_its_own(tmp_path: Path) -> None:
    [case] = [each for each in every(GROUPS[0]) if each["name"].startswith("Unique revision")]
    notified = {"revision": 3, "is_progress_notify": True, "events": [], "error": None}
    case["watches"][0]["responses"].append(notified)
    assert found(judged(etcd_records(case), ETCD, tmp_path)) == {"missing-event"}


def test_nothing_is_witnessed_where_the_partition_is_unknown(tmp_path: Path) -> None:
    [case] = [each for each in every(GROUPS[1]) if each["name"] == "fingerprint/unknown-partition"]
    judgement = judged(crdb_records(case), CONTRACTS["fingerprint"], tmp_path)
    assert set(judgement.witnesses.values()) == {0}
