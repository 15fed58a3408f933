"""Seamark reads what the pages about histories, streams and promise files show."""

import re
from pathlib import Path

import pytest

from harness.core.errors import HistoryError, ScenarioError
from seamark import check
from tests.command.conftest import Seamark

DOCS = Path(__file__).resolve().parents[2] / "docs"
PAGES = [DOCS / name for name in ("history-format.md", "streams.md", "promise-file.md", "views.md")]
TEXT = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)


def example(language: str, begins: str = "") -> str:
    """The one example in that language that begins so."""
    found = re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.DOTALL | re.MULTILINE)
    [text] = [text for text in found if text.startswith(begins)]
    return str(text)


def test_the_operations_in_edn_are_judged(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(example("edn", "{:type :invoke"))
    outcome = seamark("check", "h.edn", "--engine", "local", "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["operations"] == {"ok": 2, "fail": 1, "info": 0}


WORKLOADS = re.findall(r"^; ([A-Z-]+): .*\n((?:\{.*\n)+)", example("edn", "; "), re.MULTILINE)


@pytest.mark.parametrize(("promise", "operations"), WORKLOADS, ids=[name for name, _ in WORKLOADS])
def test_a_workload_is_recognised_and_its_broken_history_found(
    seamark: Seamark, tmp_path: Path, promise: str, operations: str
) -> None:
    (tmp_path / "h.edn").write_text(operations)
    outcome = seamark("check", "h.edn", "--engine", "local", "--json")
    promises = outcome.json["promises"]
    assert isinstance(promises, list)
    assert [(each["id"], each["verdict"]) for each in promises if isinstance(each, dict)] == [(promise, "violated")]


def test_every_workload_of_the_page_is_read() -> None:
    assert len(WORKLOADS) == example("edn", "; ").count("\n; ") + 1 == 7


@pytest.mark.parametrize(
    ("history", "records", "promise"),
    [
        ("replicas", '{"type": "invoke", "index": 0, "time_ns": 10, "process": 0, "f": "r', "WHOLE"),
        ("sites", '{"type": "state"', "CONFLICTS"),
    ],
)
def test_logs_and_sites_are_judged_by_the_command_below_them(
    seamark: Seamark, tmp_path: Path, history: str, records: str, promise: str
) -> None:
    (command,) = re.findall(rf"`seamark (check {history}[^`]*)`", TEXT)
    (tmp_path / f"{history}.jsonl").write_text(example("jsonl", records))
    (tmp_path / f"{history}.toml").write_text(example("toml", f'[[promise]]\nid = "{promise}"'))
    outcome = seamark(*command.split(), "--engine", "local", "--json")
    promises = outcome.json["promises"]
    assert isinstance(promises, list)
    assert [(each["id"], each["verdict"]) for each in promises if isinstance(each, dict)] == [(promise, "violated")]


def test_the_stream_is_judged_by_the_promise_file(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(example("json"))
    (tmp_path / "watch.toml").write_text(example("toml", "model"))
    outcome = seamark("check", "h.jsonl", "--promises", "watch.toml", "--engine", "local", "--json")
    promises = outcome.json["promises"]
    assert isinstance(promises, list)
    states = {each["id"]: each["verdict"] for each in promises if isinstance(each, dict)}
    assert states == {"MODEL": "holds", "WATCH-1": "holds", "P2": "holds"}, promises
    assert outcome.code == 0


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('"position": 5, "ordinal"', '"position": 6, "ordinal"'),  # Nothing comes at 5, below the watermark.
        ('"kind": "watermark", "position": 5', '"kind": "watermark", "position": 9'),  # A row at 9 is late.
    ],
)
def test_an_example_that_is_spoiled_breaks_a_promise(seamark: Seamark, tmp_path: Path, before: str, after: str) -> None:
    """The examples pass because they are right, not because nothing is looked at."""
    text = example("json")
    assert before in text
    (tmp_path / "h.jsonl").write_text(text.replace(before, after))
    (tmp_path / "watch.toml").write_text(example("toml", "model"))
    assert seamark("check", "h.jsonl", "--promises", "watch.toml", "--engine", "local").code == 1


@pytest.mark.parametrize(
    ("before", "after", "code"),
    [
        ("", "", 0),
        ('"value": ["spent", [[7, 25]]]', '"value": ["spent", [[7, 20]]]', 1),
        ('"value": 25, "position": 4}', '"value": 24, "position": 4}', 1),
        (
            '"key": 2, "value": [7, 5], "position": 6, "ordinal": -1',
            '"key": 2, "value": [7, 5], "position": 7, "ordinal": -1',
            1,
        ),
    ],
)
def test_a_view_of_another_system_is_computed_again(
    seamark: Seamark, tmp_path: Path, before: str, after: str, code: int
) -> None:
    """The history is legal; with one wrong row in the answer, in the view's log, or in its input's, it is not."""
    text = example("jsonl", '{"type": "event"')
    assert before in text
    (tmp_path / "h.jsonl").write_text(text.replace(before, after))
    (tmp_path / "views.toml").write_text(example("toml", "[[view]]"))
    outcome = seamark("check", "h.jsonl", "--promises", "views.toml", "--engine", "local", "--json")
    assert outcome.code == code, outcome
    if code:
        assert "of view spent at" in outcome.out


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('operator = "sum" ', 'operator = "total" ', "total"),
        ('inputs = ["orders"]', 'inputs = ["orders", "items"]', "sum has 1 input, not 2"),
        ("[[view]]", "[view]", "write [[view]], with two brackets"),
        ('name = "spent"', "", "it has no name"),
    ],
)
def test_a_view_that_makes_no_sense_gets_one_line(
    seamark: Seamark, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    (tmp_path / "h.jsonl").write_text(example("jsonl", '{"type": "event"'))
    text = example("toml", "[[view]]")
    assert before in text
    (tmp_path / "views.toml").write_text(text.replace(before, after))
    outcome = seamark("check", "h.jsonl", "--promises", "views.toml", "--engine", "local")
    assert outcome.code == 64
    assert problem in outcome.line


def test_the_stream_from_elsewhere_is_judged_by_its_mapping_file(seamark: Seamark, tmp_path: Path) -> None:
    (command,) = re.findall(r"`seamark (check changes[^`]*)`", TEXT)
    (tmp_path / "changes.toml").write_text(example("toml", "time_unit"))
    lines = example("jsonl", '{"type": "insert"')
    (tmp_path / "changes.jsonl").write_text(lines)
    outcome = seamark(*command.split(), "--engine", "local", "--json")
    promises = outcome.json["promises"]
    assert isinstance(promises, list)
    held = {each["id"] for each in promises if isinstance(each, dict) and each["verdict"] == "holds"}
    assert (outcome.code, held >= {"S02", "S05", "S07"}) == (0, True), outcome
    assert lines.count('"0/1F"') == 2
    (tmp_path / "changes.jsonl").write_text(lines.replace('"0/1F"', '"0/15"'))
    assert seamark(*command.split(), "--engine", "local").code == 1


def test_a_lost_successor_of_the_documented_shards_is_found_and_so_is_an_inversion(tmp_path: Path) -> None:
    mapping, shards = tmp_path / "shards.toml", tmp_path / "shards.jsonl"
    mapping.write_text(example("toml", "one_session"))
    lines = example("jsonl", '{"type": "shard"').splitlines(keepends=True)

    def found(*kept: str) -> set[str]:
        shards.write_text("".join(kept))
        return {finding.anomaly for finding in check(shards, stream=str(mapping)).findings}

    first, x, end, b, c, left, right = lines
    assert found(*lines) == set()
    assert found(first, x, end, c, b, right, left) == set()  # The order of those that begin together is free.
    assert found(first, x, end, b, left) == {"lost-successor"}
    assert found(first, x, b, c, left, end, right) == {"order-inversion"}
    assert "order-inversion" in found(*lines, x.replace('"seq": 1', '"seq": 2'))
    assert found(first, x, end, b, c.replace("4611686018427387904", "4611686018427387903"), left, right) == {
        "key-space-overlap"
    }


def test_a_line_that_declares_no_shard_is_named(tmp_path: Path) -> None:
    mapping, shards = tmp_path / "shards.toml", tmp_path / "shards.jsonl"
    mapping.write_text(example("toml", "one_session"))
    lines = example("jsonl", '{"type": "shard"')
    for before, after, problem in (
        ("[0, 9223372036854775808]", "[5, 5]", "line 1: its range is no range"),
        ('"shard": "a", "parents"', '"name": "a", "parents"', "line 1: a line of kind successors without a log"),
        ('"hash": 5', '"hash": -5', "line 2: its hash must be a hash"),
    ):
        shards.write_text(lines.replace(before, after, 1))
        with pytest.raises(HistoryError, match=problem):
            check(shards, stream=str(mapping))
    mapping.write_text(example("toml", "one_session").replace('shard = "successors"\n', 'shard = "skip"\n'))
    with pytest.raises(ScenarioError, match="only lines of kind successors have parents and ranges"):
        check(shards, stream=str(mapping))
