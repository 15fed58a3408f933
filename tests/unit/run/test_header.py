"""The header of a run: two columns where there is room, and whole lines where a text needs one."""

from itertools import pairwise
from pathlib import Path

import pytest

from harness.run.running import prepare
from harness.run.single import header
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario


@pytest.mark.parametrize("width", [60, 80, 200])
def test_two_texts_share_a_line_only_if_both_fit_their_column(tmp_path: Path, width: int) -> None:
    _, run_file = prepare(Scenario(cluster="tutorial", seed=7), installed("tutorial"), tmp_path)
    first, *lines = header(run_file, width)
    assert "seed 7" in first
    assert all(len(line) <= width or "  " not in line.strip() for line in lines)
    texts = [text for line in lines for text in line.strip().split("  ") if text.strip()]
    assert len(texts) > len(lines)
    drawn = [f"{name} {value}" for name, value in run_file.parameters.items()]
    places = [" ".join(map(str.strip, texts)).index(text) for text in drawn]
    assert all(one < other for one, other in pairwise(places))
