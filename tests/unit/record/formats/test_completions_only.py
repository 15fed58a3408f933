"""A history of completions only has registers and texts with keys as well, each operation invoked just before."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from harness.core.errors import HistoryError
from harness.judging.judge import judge
from harness.record.formats.load import load

KEYED = ("write [1 5]", "read [1 5]", "cas [1 [5 6]]", "read [1 6]")
TEXTS = ('put ["k" "a"]', 'append ["k" "b"]', 'get ["k" "ab"]')


def verdict(folder: Path, *operations: str) -> str:
    lines = [f"{{:type :ok, :process 0, :f :{one.replace(' ', ', :value ', 1)}}}" for one in operations]
    (folder / "history.edn").write_text("\n".join(lines))
    return judge(load(folder / "history.edn", folder), engine=LocalEngine(1)).verdict


@pytest.mark.parametrize(
    ("operations", "expected"),
    [
        (KEYED, "valid"),
        ((*KEYED, "read [1 5]"), "invalid"),
        (("write [1 5]", "write [2 7]", "read [1 5]", "read [2 7]"), "valid"),
        (("write [1 5]", "cas [1 5 6]", "read [1 6]"), "valid"),
        (("write [1 5]", "cas [1 5 6]", "read [1 5]"), "invalid"),
        (TEXTS, "valid"),
        ((*TEXTS, 'get ["k" "b"]'), "invalid"),
        (("write 5", "read 5"), "valid"),
        (("write 5", "read 6"), "invalid"),
    ],
)
def test_registers_of_completions_alone_are_judged(operations: tuple[str, ...], expected: str, tmp_path: Path) -> None:
    assert verdict(tmp_path, *operations) == expected


def test_an_empty_log_is_called_empty(tmp_path: Path) -> None:
    (tmp_path / "history.log").write_text("")
    with pytest.raises(HistoryError, match="is empty: there is no history in it"):
        load(tmp_path / "history.log", tmp_path / "into")
