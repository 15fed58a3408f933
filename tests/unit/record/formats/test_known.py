"""Each format that is known: a legal stream, one without a row, one with a late row, a damaged file, a wrong kind."""

import gzip
import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from harness.core.errors import HistoryError, ScenarioError
from harness.judging.engines import EngineStart
from harness.record.formats.streams.lines import first_lines
from harness.record.formats.streams.mappings.known import likeness
from harness.record.formats.streams.mappings.names import names
from harness.run.checking import Question, answer, answerable
from seamark import check
from tests.worlds.streams.known import SAMPLES, moved, table, without

DOCS = Path("docs/streams.md")
UPDATE = SAMPLES["mongodb"].lines[1].replace('"replace"', '"update", "updateDescription": {"updatedFields": {"v": 2}}')


def written(folder: Path, lines: list[str]) -> Path:
    path = folder / "s.jsonl"
    path.write_text("\n".join(lines) + "\n")
    return path


def anomalies(folder: Path, name: str, lines: list[str]) -> set[str]:
    sample = SAMPLES[name]
    once = folder / "once.toml"
    once.write_text(f'format = "{name}"\n[stream]\ndelivery = "exactly-once"\n')
    report = check(written(folder, lines), stream=str(once) if sample.is_once else name, key=sample.key)
    assert report.verdict in {"valid", "invalid"}, report.reason
    return {finding.anomaly for finding in report.findings}


def test_each_known_format_has_a_sample_and_a_row_in_the_docs() -> None:
    assert set(SAMPLES) == set(names())
    assert "\n".join(table()) in DOCS.read_text()


@pytest.mark.parametrize("name", SAMPLES)
def test_a_legal_stream_passes_and_is_recognised(name: str, tmp_path: Path) -> None:
    assert anomalies(tmp_path, name, list(SAMPLES[name].lines)) == set()
    assert likeness(first_lines(tmp_path / "s.jsonl"))[0].name == name
    with pytest.raises(ScenarioError, match=f"looks like a change stream in the format {name}: write --stream {name}"):
        check(tmp_path / "s.jsonl")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_lost_row_is_found_where_rows_show_what_was_before(name: str, tmp_path: Path) -> None:
    sample = SAMPLES[name]
    assert anomalies(tmp_path, name, without(sample)) == ({sample.lost_is} if sample.lost_is else set())


@pytest.mark.parametrize("name", SAMPLES)
def test_a_late_row_is_found(name: str, tmp_path: Path) -> None:
    assert SAMPLES[name].late_is in anomalies(tmp_path, name, moved(SAMPLES[name]))


@pytest.mark.parametrize("name", SAMPLES)
def test_a_truncated_file_is_refused_with_its_line(name: str, tmp_path: Path) -> None:
    path = written(tmp_path, list(SAMPLES[name].lines))
    path.write_bytes(path.read_bytes()[:-4])
    with pytest.raises(HistoryError, match=r"s\.jsonl, (line|element) \d+: "):
        check(path, stream=name, key=SAMPLES[name].key)
    whole = "\n".join(SAMPLES[name].lines).encode()
    for packed in (gzip.compress(whole), pa.compress(whole, codec="zstd", asbytes=True)):
        path.write_bytes(packed[:-12])
        with pytest.raises(HistoryError, match=r"s\.jsonl: its compressed content is damaged or ends too early"):
            check(path, stream=name, key=SAMPLES[name].key)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_file_of_another_kind_is_refused_with_its_format(name: str, tmp_path: Path) -> None:
    other = "etcd" if name in {"canal", "ticdc", "maxwell"} else "canal"
    path = written(tmp_path, list(SAMPLES[other].lines))
    with pytest.raises(HistoryError, match=f"line 1: .*it looks like a change stream in the format {other}"):
        check(path, stream=name)


def enriched(at: int) -> str:
    source = {"changefeed_sink": "kafka", "table_name": "t", "primary_keys": ["id"], "ts_hlc": f"{at}.0000000000"}
    payload = {"after": {"id": 1, "v": at}, "before": None, "op": "u", "source": source, "ts_ns": at}
    value = {"payload": payload, "schema": {"type": "struct", "name": "cockroachdb.envelope"}}
    return json.dumps({"topic": "t", "partition": 0, "key": {"id": 1}, "value": value})


def sinkless(at: int) -> str:
    return f't,[1],"{{""after"": {{""id"": 1, ""v"": {at}}}, ""updated"": ""{at}.0000000000""}}"'


RESOLVED = '{"topic": "t", "partition": 0, "key": null, "value": {"resolved": "25.0000000000"}}'


@pytest.mark.parametrize(
    "lines",
    [
        [enriched(10), enriched(20), RESOLVED, enriched(30)],
        ["table,key,value", sinkless(10), sinkless(20), 'NULL,NULL,"{""resolved"":""25.0000000000""}"', sinkless(30)],
    ],
    ids=["enriched", "sinkless CSV"],
)
def test_other_envelopes_of_cockroachdb_are_its_format(lines: list[str], tmp_path: Path) -> None:
    assert likeness(first_lines(written(tmp_path, lines)))[0].name == "crdb"
    assert anomalies(tmp_path, "crdb", lines) == set()
    assert anomalies(tmp_path, "crdb", [*lines[:-3], lines[-2], lines[-3], lines[-1]]) == {"late-event"}


def test_several_files_are_one_stream(tmp_path: Path) -> None:
    first, *rest = SAMPLES["etcd"].lines
    text = "\n".join(rest[1:]).encode()
    packed = {"b.jsonl.gz": gzip.compress(text), "b.jsonl.zst": pa.compress(text, codec="zstd", asbytes=True)}
    for name, content in packed.items():
        a, b = tmp_path / "a.jsonl", tmp_path / name
        a.write_text(first)
        b.write_bytes(content)
        ready = answerable(Question(path=a, more=(b,), stream="etcd"))
        with EngineStart("local", first=a) as start:
            report = answer(ready, start.engine_for, print)
        [finding] = report.findings
        assert f"lines 1 of a.jsonl and 1 of {name}" in finding.sentence


@pytest.mark.parametrize("name", sorted(SAMPLES.keys() - {"debezium", "redis", "test_decoding"}))
def test_files_whose_lines_are_not_in_the_order_of_the_log_are_refused_or_clean(name: str, tmp_path: Path) -> None:
    files = tmp_path / "p0.jsonl", tmp_path / "p1.jsonl"
    for number, path in enumerate(files):
        path.write_text("\n".join(SAMPLES[name].lines[number::2]) + "\n")
    ready = answerable(Question(path=files[0], more=files[1:], stream=name, key=SAMPLES[name].key))
    with EngineStart("local", first=files[0]) as start:
        try:
            told = [finding.sentence for finding in answer(ready, start.engine_for, print).findings]
        except HistoryError as error:
            told = [str(error)]
    assert all("p1.jsonl, line" in text and "below that of an earlier file" in text for text in told)


def row(at: int, before: int | None, after: int, key: int = 1, **old: int) -> str:
    line: dict[str, Any] = {
        "database": "d",
        "table": "t",
        "type": "insert" if before is None else "update",
        "ts": 1,
        "xid": at,
    }
    line |= {"position": f"bin.000003:{at}", "primary_key_columns": ["id"], "data": {"id": key, "v": after}}
    return json.dumps(line if before is None else line | {"old": {"v": before} | old})


@pytest.mark.parametrize(
    ("name", "lines"),
    [
        (
            "maxwell",
            [row(1, None, 1), row(2, 1, 2), row(3, 2, 3), row(2, 1, 2), row(3, 2, 3), row(4, 3, 4)],
        ),  # A restart.
        # The key of a row was changed to that of a row which was deleted.
        (
            "maxwell",
            [row(1, None, 1), row(2, None, 5, 2), row(3, 1, 9).replace("update", "delete"), row(4, 5, 6, 1, id=2)],
        ),
        ("canal", [*SAMPLES["canal"].lines, *SAMPLES["canal"].lines[1:]]),  # A restart, without any position.
        ("kafka", [json.dumps({"topic": "t", "partition": p, "offset": 5, "payload": p}) for p in (0, 1)]),
        # The previous row of the key shows only what changed, so the image cannot be compared.
        ("mongodb", [SAMPLES["mongodb"].lines[0], UPDATE, SAMPLES["mongodb"].lines[2]]),
        # The full document of an update is looked up when the event is read, again after a resume.
        ("mongodb", [SAMPLES["mongodb"].lines[0], UPDATE, UPDATE.replace('"v": 2}, "n', '"v": 7}, "n')]),
        ("etcd", [SAMPLES["etcd"].lines[0].replace("false}", "true}").replace(": 2,", ": 9,"), *SAMPLES["etcd"].lines]),
    ],
)
def test_an_odd_stream_is_legal(name: str, lines: list[str], tmp_path: Path) -> None:
    report = check(written(tmp_path, lines), stream=name)
    assert report.findings == (), report.findings
