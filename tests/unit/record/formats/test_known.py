"""Each format that is known: a legal stream, one without a row, one with a late row, a damaged file, a wrong kind."""

import gzip
import json
from collections.abc import Mapping
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


def cell(value: object, **more: object) -> dict[str, object]:
    return {"t": 3, "v": value} | more


def framed(*each: object) -> str:
    """Objects of the open protocol behind their numbers of bytes, as kcat prints them."""
    texts = [json.dumps(one, separators=(",", ":")) for one in each]
    return "".join(f"\0\0\0\0\0\0\0{chr(len(text))}{text}" for text in texts)


def batch(*events: tuple[int, Mapping[str, object]]) -> str:
    keys = [{"ts": at, "scm": "s", "tbl": "t", "t": 1 if value else 3} for at, value in events]
    values = framed(*(value for _, value in events if value))
    return json.dumps(
        {"topic": "t", "partition": 0, "offset": 0, "key": "\0\0\0\0\0\0\0\1" + framed(*keys), "payload": values}
    )


def test_the_open_protocol_may_have_several_events_in_a_message(tmp_path: Path) -> None:
    key = cell(1, h=True)
    rows = [{"u": {"id": key, "v": cell("x" * 68 + str(at))}} for at in range(3)]
    assert "{{" in framed(rows[0])  # A number of bytes may look like a brace.
    rows[1]["p"], rows[2]["p"] = rows[0]["u"], rows[1]["u"]
    gone = {"d": rows[2]["u"]}
    whole = [batch((10, rows[0]), (20, rows[1])), batch((25, {}), (30, rows[2])), batch((40, gone))]
    assert anomalies(tmp_path, "ticdc-open", whole) == set()
    assert anomalies(tmp_path, "ticdc-open", [whole[0], whole[2]]) == {"before-mismatch"}
    late = [batch((10, rows[0])), batch((25, {})), batch((20, rows[1]))]
    assert anomalies(tmp_path, "ticdc-open", late) == {"late-event"}
    for line, problem in (
        (whole[0][:-9] + '"}', "cut short, or no JSON"),
        (batch((10, {"u": {"id": cell(1)}})), "name the key's columns with --key"),
        ('{"key": {"ts": 1, "t": 1}, "value": null}', "of which its value has nothing"),
        ('{"key": {"id": 1}, "value": {}}', 'no "ts" and no "t"'),
    ):
        with pytest.raises(HistoryError, match=f"line 1: .*{problem}"):
            check(written(tmp_path, [line]), stream="ticdc-open")


@pytest.mark.parametrize(
    "lines",
    [
        ["sink:1> +I[1, a, [x, y]]", "sink:2> -U[1, a, [x, y]]", "sink:2> +U[1, b, null]", "sink:1> -D[1, b, null]"],
        [
            *("+----+----+----+", "| op | id |  v |", "+----+----+----+"),
            *("| +I |  1 |  a |", "| -U |  1 |  a |", "| +U |  1 |  b |", "| -D |  1 |  b |"),
            *("+----+----+----+", "Received a total of 4 rows"),
        ],
    ],
    ids=["print", "SQL client"],
)
def test_flink_prints_a_changelog_in_two_forms(lines: list[str], tmp_path: Path) -> None:
    assert anomalies(tmp_path, "flink", lines) == set()
    assert anomalies(tmp_path, "flink", [line for line in lines if "+U" not in line]) == {"before-mismatch"}


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
