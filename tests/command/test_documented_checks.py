"""The check and the model of docs/your-own-checks.md, as they stand there."""

import re
from pathlib import Path

import pytest

from tests.command.conftest import Seamark

PAGE = Path(__file__).resolve().parents[2] / "docs" / "your-own-checks.md"
BLOCKS = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def written(folder: Path, *ops: str) -> Path:
    path = folder / "history.edn"
    path.write_text("".join(f"{{:process 0 :type :{kind} {op}}}\n" for op in ops for kind in ("invoke", "ok")))
    return path


@pytest.mark.parametrize(
    ("block", "ops", "anomaly"),
    [
        (0, (":f :txn :value [[:append 1 2]]", ":f :txn :value [[:r 1 [2 2]]]"), "shown-twice"),
        (1, (":f :enqueue :value 1", ":f :dequeue :value 2"), "non-linearizable"),
    ],
)
def test_what_the_page_shows_judges_a_history(
    seamark: Seamark, tmp_path: Path, block: int, ops: tuple[str, ...], anomaly: str
) -> None:
    (tmp_path / "mine.py").write_text(BLOCKS[block], encoding="utf-8")
    history = written(tmp_path, *ops)
    judged = seamark("check", history, "--checks", "mine.py", "--engine", "local", "--json")
    findings = judged.json["findings"]
    assert isinstance(findings, list)
    assert anomaly in {each["anomaly"] for each in findings if isinstance(each, dict)}
    assert judged.code == 1
