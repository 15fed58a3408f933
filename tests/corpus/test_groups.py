"""Every history of every group is read whole, and goes out and in again unchanged. Absent files: skipped, and said so.

How much there must be is counted here in the text, not by a reader.
"""

import json
import re
from pathlib import Path

import pytest

from harness.core.record import Complete, Evidence, Fault, Invoke, StreamEvent
from harness.record.formats.edn.exchange import read_edn_history, write_edn_history
from harness.record.formats.edn.times import Times
from harness.record.formats.jsonl import read_jsonl, write_jsonl
from harness.record.formats.load import FORMATS, format_of, load
from harness.record.formats.parquet import parquet
from harness.record.formats.parquet.parquet import records_of, write_history
from tests.corpus.cases import HISTORIES, READERS, cases

pytestmark = pytest.mark.skipif(not HISTORIES.is_dir(), reason=f"{HISTORIES} is absent")

FILES = {
    "elle/*.edn": 3,
    "elle-cli/elle/*": 5,
    "elle-cli/jepsen/*": 11,
    "knossos/cas-register/*/*.edn": 65,
    "knossos/multi-register/good/*.edn": 1,
    "knossos/mutex/bad/*.edn": 1,
    "porcupine/jepsen/*.log": 46,
    "porcupine/kv/*.txt": 4,
}
# Events of one file, invocations and completions and the nemesis, as whoever collected them counted.
EVENTS = {
    "elle/huge-scc.edn": 20_602,
    "elle-cli/jepsen/bank.edn": 680,
    "elle-cli/jepsen/bank.json": 680,
    "elle-cli/jepsen/bank-tidb.edn": 7_132,
    "elle-cli/jepsen/bank-neg.edn": 2,
    "elle-cli/jepsen/bank-negative-balances.json": 4,
    "elle-cli/jepsen/counter.edn": 574,
    "elle-cli/jepsen/set.edn": 8,
    "elle-cli/jepsen/set_full.edn": 588,
    "elle-cli/jepsen/set_full.json": 588,
    "elle-cli/jepsen/long-fork.edn": 4,
    "knossos/mutex/bad/etcd.edn": 1_135,
}
CASES = {
    "elle-unit/cases.jsonl": 77,
    "elle-unit/unit_functions.jsonl": 21,
    "jepsen-unit/cases.jsonl": 39,
    "jepsen-kafka/cases.jsonl": 34,
    "etcd-watch/cases.jsonl": 59,
    "crdb-cdc/cases.jsonl": 28,
}
IN_EDN = rb":type\s+:(?:invoke|ok|fail|info)\b"
EVENT = {".edn": IN_EDN, ".txt": IN_EDN, ".json": rb'"type":\s*"(?:invoke|ok|fail|info)"', ".log": rb"jepsen\.util - "}


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def read(path: Path) -> list[Evidence]:
    """All records of a file, faults of a foreign nemesis included."""
    return [each for each in format_of(path).read(path) if isinstance(each, Invoke | Complete | Fault)]


def operations(records: list[Evidence]) -> list[Invoke | Complete]:
    return [each for each in records if isinstance(each, Invoke | Complete)]


def assert_all_ways_lead_back(records: list[Evidence], folder: Path) -> None:
    """Through Parquet, through JSON Lines, and, where EDN has words for all of it, through EDN."""
    write_history(records, folder / "history")
    assert list(records_of(folder / "history")) == records
    write_jsonl(records, folder / "out.jsonl")
    assert list(read_jsonl(folder / "out.jsonl")) == records
    if all(isinstance(each, Invoke | Complete) and getattr(each, "commit_ts", None) is None for each in records):
        write_edn_history(records, folder / "out.edn")
        assert list(read_edn_history(folder / "out.edn")) == records


@pytest.mark.parametrize("pattern", FILES)
def test_every_file_of_a_group_is_read_whole_and_comes_back(pattern: str, tmp_path: Path) -> None:
    paths = sorted(HISTORIES.glob(pattern))
    assert len(paths) == FILES[pattern]
    for path in paths:
        records = read(path)
        in_text = len(re.findall(EVENT[path.suffix], path.read_bytes()))
        named = str(path.relative_to(HISTORIES))
        has_invocations = any(isinstance(each, Invoke) for each in records)
        assert len(records) == in_text == EVENTS.get(named, in_text), named
        assert has_invocations or named.endswith("rollback-.edn"), named  # That one has nothing but a nemesis.
        assert_all_ways_lead_back([*operations(records)], tmp_path)


def test_every_file_is_known_by_its_contents_and_loaded(tmp_path: Path) -> None:
    known = {".edn": "EDN", ".txt": "EDN", ".json": "JSON", ".log": "Jepsen log"}
    for pattern in FILES:
        for number, path in enumerate(sorted(HISTORIES.glob(pattern))[:2]):
            loaded = load(path, tmp_path / f"{pattern.split('/')[0]}-{number}")
            assert (loaded.format, loaded.is_foreign, loaded.is_complete) == (known[path.suffix], True, True)
            records, times = read(path), Times()
            if "times fall back" in "".join(loaded.notes):
                list(read_edn_history(path, times))
                records = list(read_edn_history(path, times))
            assert operations([*records_of(loaded.history)]) == operations(records)
    assert set(known.values()) <= {each.name for each in FORMATS}


@pytest.mark.parametrize("group", CASES)
def test_every_case_of_a_group_is_read_whole_and_comes_back(group: str, tmp_path: Path) -> None:
    every = list(cases(group))
    assert len(every) == CASES[group]
    for case in every:
        records = READERS[group](case)
        if "history" in case:
            events = [each for each in case["history"] if isinstance(each["process"], int)]
            assert sum(isinstance(each, Complete) for each in records) == sum(e["type"] != "invoke" for e in events)
        else:
            result = json.dumps(case.get("watches", case.get("events")))
            rows = result.count('"rev":') + result.count('"updated":')
            found = [each.kind for each in records if isinstance(each, StreamEvent)]
            assert found.count("row") == rows, case["name"]
            assert found.count("watermark") == result.count('"is_progress_notify": true') + result.count('"resolved":')
        assert_all_ways_lead_back(records, tmp_path)


def test_what_porcupine_s_logs_leave_open_has_no_outcome() -> None:
    """A read that timed out did not happen; a write that timed out may have, at any time."""
    found = [each for path in sorted(HISTORIES.glob("porcupine/jepsen/*.log")) for each in read(path)]
    late = [each for each in found if isinstance(each, Complete) and each.error == ":timed-out"]
    asked = {outcome: {type(each.value) for each in late if each.outcome == outcome} for outcome in ("fail", "info")}
    assert asked == {"fail": {type(None)}, "info": {int, list}}


def test_porcupine_s_key_value_histories_keep_their_keys() -> None:
    for path in sorted(HISTORIES.glob("porcupine/kv/*.txt")):
        values = [each.value for each in operations(read(path))]
        keys = {str(each[0]) for each in values if isinstance(each, list)}
        assert keys <= {str(digit) for digit in range(10)}
        assert len(keys) == len(set(re.findall(r':key "(\d)"', path.read_text(encoding="utf-8"))))
