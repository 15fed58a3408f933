"""Whatever way a history takes, through the journal, Parquet or JSON Lines, it stays the same, and so does its hash."""

from pathlib import Path
from typing import Literal

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from checkers.history.transactions import chunks, load
from harness.core.record import SCHEMA, Complete, Evidence, Footer, Header, Invoke, Json, MicroOp, Record
from harness.record.formats.edn.exchange import read_edn_history, write_edn_history
from harness.record.formats.jsonl import read_jsonl, write_jsonl
from harness.record.formats.parquet.parquet import records_of, write_history
from harness.record.formats.sessions import in_sessions
from harness.record.journal import JournalWriter, history_sha256, read_journal
from tests.amount import count
from tests.worlds.format_strategies import PLAIN, histories, list_append_histories

# The folder is one for all examples: each writes its files anew.
MANY = settings(
    max_examples=count(50), suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow]
)
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
    found, split = list(read_jsonl(path)), list(in_sessions(records))  # Operations of one process may overlap here.
    assert same(found, split)
    assert history_sha256(found) == history_sha256(split)


@MANY
@given(records=list_append_histories())
def test_a_list_append_history_comes_back_from_edn(records: list[Evidence], tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    write_edn_history(records, path)
    found = list(read_edn_history(path))
    assert same(found, records)
    assert history_sha256(found) == history_sha256(records)


REGISTERS: st.SearchStrategy[Json] = st.sampled_from([-9, 0, 7, 99, 1 << 60, "x", ":x", "", '"', True, 1.5])


@st.composite
def register_histories(draw: st.DrawFn) -> list[Evidence]:
    """Transactions over registers: a read of nothing saw nothing, and not the empty list."""
    first = (MicroOp("w", "x", 0),)  # By this it can be told that the history is about registers.
    records: list[Evidence] = [Invoke(0, 0, 0, 0, "txn", None, first), Complete(0, 1, "ok", None, first)]
    for number in range(1, draw(st.integers(1, 8))):
        keys = draw(st.lists(REGISTERS, max_size=3))
        asked = tuple(MicroOp("w", key, draw(REGISTERS)) if draw(st.booleans()) else MicroOp("r", key) for key in keys)
        records.append(Invoke(number, 2 * number, 2 * number, number, "txn", None, asked))
        match draw(st.sampled_from(["ok", "fail", "info", "open"])):
            case "ok":
                seen = st.none() | REGISTERS
                done = tuple(MicroOp("r", mop.key, draw(seen)) if mop.f == "r" else mop for mop in asked)
                records.append(Complete(number, 2 * number + 1, "ok", None, done))
            case "fail" | "info" as outcome:
                records.append(Complete(number, 2 * number + 1, outcome, error=draw(st.none() | st.just("timeout"))))
    return records


@st.composite
def plain_histories(draw: st.DrawFn) -> list[Evidence]:
    """Operations that are no transactions: their values are whatever they are."""
    values = PLAIN.filter(lambda value: value != [])
    names = st.sampled_from(["read", "write", "cas", "add", "enqueue", "transfer"])
    records: list[Evidence] = []
    for number in range(draw(st.integers(0, 8))):
        records.append(Invoke(number, 2 * number, 2 * number, number, draw(names), draw(values)))
        if draw(st.booleans()):
            outcomes: list[Literal["ok", "fail", "info"]] = ["ok", "fail", "info"]
            records.append(Complete(number, 2 * number + 1, draw(st.sampled_from(outcomes)), draw(values)))
    return records


@MANY
@given(records=register_histories() | plain_histories())
def test_registers_and_plain_operations_come_back_from_edn(records: list[Evidence], tmp_path: Path) -> None:
    path = tmp_path / "history.edn"
    write_edn_history(records, path)
    found = list(read_edn_history(path))
    assert same(found, records)


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
