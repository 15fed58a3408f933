"""The header of a run names what is tested; the choices of its seed have two columns where there is room."""

from itertools import pairwise
from pathlib import Path

import pytest

from harness.run.carry_out import choices, header
from harness.run.running import prepare
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario


def test_the_first_lines_name_the_seed_the_load_the_faults_and_the_folder(tmp_path: Path) -> None:
    scenario = Scenario(cluster="tutorial", seed=7, bugs=("late-row",), nemesis=("crash", "slow-subscriber"))
    run, run_file = prepare(scenario, installed("tutorial"), tmp_path)
    lines = dict(header(run, run_file))
    assert lines["seamark "].endswith("tutorial in simulation  seed 7  planted: late-row")
    assert lines["  load    "] == "list-append: 5 clients, 100 operations a second for 60 s"
    assert set(lines["  faults  "].split(", ")) == {"crash", "slow subscriber"}
    assert lines["  kept in "] == str(run)


@pytest.mark.parametrize("width", [60, 80, 200])
def test_two_texts_share_a_line_only_if_both_fit_their_column(tmp_path: Path, width: int) -> None:
    _, run_file = prepare(Scenario(cluster="tutorial", seed=7), installed("tutorial"), tmp_path)
    lines = list(choices(run_file, width))
    assert all(len(line) <= width or "  " not in line.strip() for line in lines)
    texts = [text for line in lines for text in line.strip().split("  ") if text.strip()]
    assert len(texts) > len(lines)
    drawn = [f"{name} {value}" for name, value in run_file.parameters.items()]
    places = [" ".join(map(str.strip, texts)).index(text) for text in drawn]
    assert all(one < other for one, other in pairwise(places))
