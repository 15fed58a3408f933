"""Whatever way a history takes, through the journal, Parquet or JSON Lines, it stays the same, and so does its hash."""

from pathlib import Path

import msgspec
from hypothesis import HealthCheck, given, settings

from checkers.chunks import chunks, load
from harness.core.record import SCHEMA, Complete, Evidence, Footer, Header, Invoke, Record
from harness.formats.exchange import read_edn_history, write_edn_history
from harness.formats.jsonl import read_jsonl, write_jsonl
from harness.formats.parquet import records_of, write_history
from harness.journal import JournalWriter, history_sha256, read_journal
from tests.formats_strategies import histories, list_append_histories

# The folder is one for all examples: each writes its files anew.
MANY = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
HEADER, FOOTER = Header(SCHEMA, "2026-11-21T08:00:00Z"), Footer(9, "completed", "ab")


def same(records: list[Evidence], others: list[Evidence]) -> bool:
    """Are they the same, types included? To Python, 1 equals 1.0 and true."""
    encode = msgspec.msgpack.Encoder(order="sorted").encode
    return [encode(each) for each in records] == [encode(each) for each in others]


@MANY
@given(records=histories())
def test_a_history_comes_back_from_its_journal(records: list[Evidence], tmp_path: Path) -> None:
    path = tmp_path / "journal.log"
    path.unlink(missing_ok=True)
    everything: list[Record] = [HEADER, *records, FOOTER]
    with JournalWriter(path) as writer:
        for record in everything:
            writer.append(record)
    found = list(read_journal(path))
    assert found == everything
    assert history_sha256(found) == history_sha256(records)


@MANY
@given(records=histories())
def test_a_history_comes_back_from_parquet_with_its_hash(records: list[Evidence], tmp_path: Path) -> None:
    write_history([HEADER, *records, FOOTER], tmp_path / "history")
    found = list(records_of(tmp_path / "history"))
    assert same(found, records)
    assert history_sha256(found) == history_sha256(records)


@MANY
@given(records=histories())
def test_a_history_comes_back_from_json_lines_with_its_hash(records: list[Evidence], tmp_path: Path) -> None:
    path = tmp_path / "history.jsonl"
    # A file that does not begin with a record of ours could be anybody's.
    write_jsonl([HEADER, *records, FOOTER], path)
    found = list(read_jsonl(path))
    assert same(found, records)
    assert history_sha256(found) == history_sha256(records)


@MANY
@given(records=list_append_histories())
def test_a_list_append_history_comes_back_from_edn(records: list[Evidence], tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    write_edn_history(records, path)
    found = list(read_edn_history(path))
    assert same(found, records)
    assert history_sha256(found) == history_sha256(records)


@MANY
@given(records=histories())
def test_checkers_read_the_transactions_that_were_written(records: list[Evidence], tmp_path: Path) -> None:
    write_history(records, tmp_path / "history")
    loaded = [load(chunk) for chunk in chunks(tmp_path / "history")]
    asked = {each.index: each for each in records if isinstance(each, Invoke)}
    ended = {each.index: each.outcome for each in records if isinstance(each, Complete)}
    transactions = {index: invoke for index, invoke in asked.items() if invoke.mops is not None}
    found = {int(index): row for part in loaded for row, index in enumerate(part.index)}
    assert set(found) == set(transactions)
    assert sum(len(part.f) for part in loaded) == sum(len(each.mops or ()) for each in transactions.values())
    for part in loaded:
        for index, outcome in zip(part.index.tolist(), part.outcome.tolist(), strict=True):
            assert ("ok", "fail", "info")[outcome] == ended.get(index, "info")
