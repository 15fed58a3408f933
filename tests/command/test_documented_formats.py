"""What docs/history-format.md shows is what Seamark reads."""

import re
from pathlib import Path

import pytest

from tests.command.conftest import Seamark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "history-format.md"


def example(language: str) -> str:
    """The one example in that language."""
    [text] = re.findall(rf"^```{language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    return str(text)


def test_the_operations_in_edn_are_judged(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.edn").write_text(example("edn"))
    outcome = seamark("check", "h.edn", "--engine", "local", "--json")
    assert outcome.code == 0, outcome
    assert outcome.json["operations"] == {"ok": 2, "fail": 1, "info": 0}


def test_the_stream_is_judged_by_the_promise_file(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "h.jsonl").write_text(example("json"))
    (tmp_path / "watch.toml").write_text(example("toml"))
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
    (tmp_path / "watch.toml").write_text(example("toml"))
    assert seamark("check", "h.jsonl", "--promises", "watch.toml", "--engine", "local").code == 1
