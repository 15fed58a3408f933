"""Small streams after public reports of users, each with its right answer: what was found, or why it was refused."""

from pathlib import Path

import pytest

from harness.core.errors import HistoryError, ScenarioError
from seamark import check
from tests.corpus.cases import HISTORIES

FIELD = HISTORIES.parent / "field"
pytestmark = pytest.mark.skipif(not FIELD.is_dir(), reason=f"{FIELD} is absent")


def found(name: str, form: str | None = None, promises: str | None = None, key: str | None = None) -> set[str]:
    """The anomalies of that file; the empty set of a pass means that something was judged."""
    form = str(FIELD / form) if form is not None and form.endswith(".toml") else form
    report = check(FIELD / name, stream=form, promises=None if promises is None else FIELD / promises, key=key)
    assert report.verdict in ("valid", "invalid"), report.reason
    return {finding.anomaly for finding in report.findings}


@pytest.mark.parametrize(
    ("name", "form", "anomalies"),
    [
        ("min-dbz-lost.jsonl", "debezium", {"torn-unit"}),
        ("min-mysql.jsonl", "debezium", set()),
        ("min-sqlserver.jsonl", "debezium", {"order-inversion"}),
        ("dbz-comp-keyed.jsonl", "debezium", set()),
        ("docs2.jsonl", "docs-mapping.toml", set()),
        ("docs2-torn.jsonl", "docs-mapping.toml", {"torn-unit"}),
        ("docs2-torn.jsonl", "docs-nopart.toml", {"torn-unit"}),
        ("min-unit.jsonl", "docs-mapping.toml", {"torn-unit"}),
        ("min-bool.jsonl", "min-bool.toml", set()),
        ("canal.jsonl", "canal.toml", set()),
        ("canal.jsonl", "canal", set()),
        ("dbz.jsonl", "debezium", set()),
        ("dbz-kcat.jsonl", "debezium", set()),
        ("etcd.jsonl", "etcd", {"order-inversion"}),  # Revision 4 comes after 5.
        ("kcons.txt", "kafka", set()),
        ("maxwell.jsonl", "maxwell", set()),
        ("maxwell.jsonl", "maxwell.toml", {"duplicate-event"}),  # Which declares that each event comes once.
        ("mongo.jsonl", "mongodb", {"order-inversion"}),  # Time 1666427677, 1 comes after 2.
        ("mongo.jsonl", "mongo3.toml", {"divergent-duplicate"}),  # Whose positions are whole seconds.
        ("ticdc.jsonl", "ticdc", {"watermark-regress", "late-event"}),
        ("ticdc.jsonl", "ticdc.toml", {"watermark-regress", "late-event"}),
        ("wal2json2.jsonl", "wal2json2.toml", set()),
    ],
)
def test_a_stream_alone_gets_its_right_answer(name: str, form: str, anomalies: set[str]) -> None:
    assert found(name, form, key="id" if form == "maxwell" else None) == anomalies


@pytest.mark.parametrize(
    ("name", "form", "key"), [("wal2json2.jsonl", "wal2json2", "id"), ("test_decoding.txt", "test_decoding", "id")]
)
def test_a_stream_with_one_row_of_each_key_is_read_and_exercises_nothing(name: str, form: str, key: str) -> None:
    report = check(FIELD / name, stream=form, key=key)
    assert (report.verdict, report.findings) == ("vacuous", ())


@pytest.mark.parametrize(
    ("name", "promises", "anomalies"),
    [
        ("min-open.jsonl", "handover.toml", {"hand-over-hole"}),
        ("min-open-nopos.jsonl", "handover.toml", {"hand-over-hole"}),
        ("etcd-mid.jsonl", "etcd-watch.toml", {"missing-event"}),
        ("buf-torn.edn", "ru4.toml", {"lost-write", "internal-poll-skip"}),
        ("buf-torn.edn", "ru6.toml", {"lost-write", "internal-poll-skip"}),
    ],
)
def test_a_stream_beside_its_source_gets_its_right_answer(name: str, promises: str, anomalies: set[str]) -> None:
    assert found(name, promises=promises) == anomalies


def test_a_key_of_which_nothing_came_is_named_or_missing(tmp_path: Path) -> None:
    report = check(FIELD / "part-keygone.jsonl", promises=FIELD / "part.toml")
    assert (report.verdict, "3 committed writes of key c could not be judged" in report.reason) == ("unknown", True)
    declared = tmp_path / "part.toml"
    declared.write_text((FIELD / "part.toml").read_text().replace("[stream]", "[stream]\npartitions = 2"))
    report = check(FIELD / "part-keygone.jsonl", promises=declared)
    assert [(each.anomaly, each.count) for each in report.findings] == [("missing-event", 3)]


def test_a_key_is_named_or_the_stream_is_refused() -> None:
    with pytest.raises(HistoryError, match=r"its rows have no key.*--key"):
        check(FIELD / "dbz-comp-bare.jsonl", stream="debezium")
    assert found("dbz-comp-bare.jsonl", "debezium", key="tenant,id") == set()
    assert found("dbz-comp-bare.jsonl", "debezium", key="id") == {"order-inversion", "before-mismatch"}
    with pytest.raises(HistoryError, match="line 1: its row has no name, which --key names"):
        check(FIELD / "dbz-comp-bare.jsonl", stream="debezium", key="name")
    with pytest.raises(ScenarioError, match="columns of a stream: write --stream"):
        check(FIELD / "dbz-comp-bare.jsonl", key="id")


def test_a_mapping_that_lacks_what_its_contract_needs_is_a_mistake(tmp_path: Path) -> None:
    mapping = FIELD / "ticdc-default-identity.toml"
    with pytest.raises(ScenarioError, match=r'\[fields\]: it has no ordinal.*identity = "position\+key"'):
        check(FIELD / "ticdc-flat.jsonl", stream=str(mapping))
    mended = tmp_path / "mended.toml"
    mended.write_text(mapping.read_text().replace("[stream]", '[stream]\nidentity = "position+key"'))
    report = check(FIELD / "ticdc-flat.jsonl", stream=str(mended))
    assert {finding.anomaly for finding in report.findings} >= {"watermark-regress"}


def test_positions_are_shown_as_the_source_writes_them() -> None:
    report = check(FIELD / "min-sqlserver.jsonl", stream="debezium")
    [finding] = report.findings
    assert "LSN 00000027:00000800:0005 change 00000027:00000800:0003 is below" in finding.sentence
    assert finding.sentence.endswith("(lines 2 and 3).")
    assert "reached stream some time after value" in finding.sentence  # The file has no times.


def test_a_watermark_that_went_back_names_its_partition(tmp_path: Path) -> None:
    resolved = '{"topic": "t", "partition": 3, "key": null, "value": {"resolved": "%d.0"}}\n'
    (tmp_path / "s.jsonl").write_text(resolved % 6 + resolved % 5)
    [finding] = check(tmp_path / "s.jsonl", stream="crdb").findings
    assert "stream on partition t/3 some time after" in finding.sentence
    assert finding.sentence.endswith("(lines 1 and 2).")


def test_sessions_that_do_not_join_are_noted_or_a_hole(tmp_path: Path) -> None:
    report = check(FIELD / "mongo-skip.jsonl", promises=FIELD / "mongo-own.toml")
    assert report.verdict == "valid"
    assert "4 committed writes of keys a, b and c fell between two sessions" in str(report.facts["notes"])
    declared = tmp_path / "mongo.toml"
    declared.write_text((FIELD / "mongo-own.toml").read_text().replace("[stream]", '[stream]\nsessions = "joined"'))
    report = check(FIELD / "mongo-skip.jsonl", promises=declared)
    assert [(each.anomaly, each.count) for each in report.findings] == [("resume-hole", 4)]
    assert "above value 600 of key a at timestamp 6 (operation 5)" in report.findings[0].sentence


def test_a_file_without_times_has_no_instants() -> None:
    [finding] = check(FIELD / "maxwell.jsonl", stream=str(FIELD / "maxwell.toml")).findings
    place = "binary log position mysql-bin-changelog.035446:687107"
    assert f"at {place} reached stream again, some time after" in finding.sentence


def test_a_position_is_called_what_its_source_calls_it(tmp_path: Path) -> None:
    [finding] = check(FIELD / "mongo.jsonl", stream="mongodb").findings
    assert "but its resume token 826353AB1D000000012B022C... is below" in finding.sentence
    lines = (FIELD / "min-mysql.jsonl").read_text().splitlines()
    (tmp_path / "s.jsonl").write_text("\n".join(reversed(lines)))
    assert "but its binary log position " in check(tmp_path / "s.jsonl", stream="debezium").findings[0].sentence


def test_a_note_on_several_subscribers_is_there_once(tmp_path: Path) -> None:
    lines = (FIELD / "mongo-skip.jsonl").read_text().splitlines()
    both = [line for each in lines for line in dict.fromkeys((each, each.replace('"fq"', '"second"')))]
    (tmp_path / "both.jsonl").write_text("\n".join(both) + "\n")
    report = check(tmp_path / "both.jsonl", promises=FIELD / "mongo-own.toml")
    assert report.verdict == "valid"
    assert str(report.facts["notes"]).count("4 committed writes of keys a, b and c fell between two sessions") == 1
