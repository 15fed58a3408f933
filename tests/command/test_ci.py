"""The examples for CI: their steps run one by one as they stand, and what they leave is what docs/ci.md says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.repo.test_docs import ROOT

EXAMPLES = ROOT / "examples"
SMALLER = {"clusters": '["tutorial"]', "time": "6.0", "min_runs": "2"}
PREPARED = ("pip install", "apt-get")  # Steps that prepare a machine; this one is prepared.
WORKFLOWS = {"GitHub": "github-nightly.yml", "GitLab": "gitlab-ci.yml"}


def steps(host: str) -> list[str]:
    """The commands of a workflow, in order, without those that prepare the machine."""
    workflow = (EXAMPLES / WORKFLOWS[host]).read_text(encoding="utf-8")
    found = re.findall(r"^ +(?:- )?run: (.+)$", workflow, re.MULTILINE)
    script = re.search(r"^  script:\n((?:    - .+\n)+)", workflow, re.MULTILINE)
    found += [line.removeprefix("    - ") for line in script[1].splitlines()] if script else []
    return [step for step in found if not step.startswith(PREPARED)]


def smaller(folder: Path, **values: str) -> None:
    """The example's nightly.toml with other values, of which each must be there."""
    text = (EXAMPLES / "nightly.toml").read_text(encoding="utf-8")
    for name, value in (SMALLER | values).items():
        text, count = re.subn(rf"^{name} = [^#\n]+", f"{name} = {value} ", text, flags=re.MULTILINE)
        assert count >= 1, name
    text, count = re.subn(r"^count = \d+", "count = 1", text, flags=re.MULTILINE)
    assert count == 2
    (folder / "nightly.toml").write_text(text, encoding="utf-8")


def carried_out(folder: Path, step: str, **variables: str) -> tuple[int, str]:
    """Exit code and output of a step, in a shell as runners start it."""
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "GITHUB_RUN_NUMBER": "4",
        "CI_PIPELINE_IID": "4",
    }
    done = subprocess.run(
        ["bash", "-e", "-c", step], cwd=folder, env=environment | variables, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


@pytest.mark.parametrize("host", WORKFLOWS)
def test_the_steps_of_a_workflow_run_as_they_stand(tmp_path: Path, host: str) -> None:
    smaller(tmp_path)
    commands = steps(host)
    assert sum(step.startswith("seamark sweep nightly.toml ") for step in commands) == 1
    for step in commands:
        code, output = carried_out(tmp_path, step)
        assert code == 0, output
    (junit,) = tmp_path.glob("store/sweeps/*/*/junit.xml")
    assert re.search(r"junit: store/sweeps/\*/\*/junit.xml", (EXAMPLES / "gitlab-ci.yml").read_text(encoding="utf-8"))
    (suite,) = ElementTree.fromstring(junit.read_bytes())  # noqa: S314  Our own.
    names = {"tutorial.any.usual.sim", "tutorial.any.none.sim"}
    assert {case.attrib["classname"] for case in suite} == names
    assert suite[0].attrib["name"].startswith("TUT-1: ")
    assert "4000" in {each.attrib["value"] for each in suite.iter("property")}


def test_a_step_of_github_s_has_annotations_and_a_summary_that_begins_with_what_is_violated(tmp_path: Path) -> None:
    smaller(tmp_path, time='8.0\nbug = ["late-row"]\nworkloads = ["list-append"]\nstyle = "swarm"')
    (step,) = (each for each in steps("GitHub") if " sweep " in each)
    summary = tmp_path / "summary.md"
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary), "GITHUB_RUN_NUMBER": "0"}
    code, output = carried_out(tmp_path, step, **on_github)
    assert code == 1, output
    assert re.search(
        r"^::error title=\S.*::.* Repeat it: seamark run --cluster tutorial .*--seed 0 ", output, re.MULTILINE
    )
    verdict, _, first, *_ = summary.read_text(encoding="utf-8").splitlines()
    assert verdict.startswith("## ANOMALY: 2 runs: ")
    assert first.startswith("| anomaly |")
    rows = re.findall(r"^\| tutorial TUT-\d .*\| (violated|holds|not-exercised) \|", summary.read_text(), re.MULTILINE)
    assert len(rows) > 3
    assert rows == sorted(rows, key=lambda word: word != "violated")


def test_a_night_in_which_hardly_anything_ran_is_red(tmp_path: Path) -> None:
    smaller(tmp_path, time_budget="0.001")
    (step,) = (each for each in steps("GitLab") if " sweep " in each)
    code, output = carried_out(tmp_path, step)
    assert code == 3, output
    assert re.search(r"^VACUOUS  [01] of 2 runs: ", output, re.MULTILINE)
    assert "ended early: the time budget of 0.001 s is used up" in output
