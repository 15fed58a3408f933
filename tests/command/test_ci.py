"""docs/ci.md: the steps of both workflows run one by one as they stand, and what they leave is what the page says."""

import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.repo.test_docs import DOCS, blocks

PAGE = DOCS / "ci.md"
SMALLER = {"cluster": '"tutorial"', "count": "3", "time": "6.0", "min_runs": "2"}
PREPARED = ("pip install", "apt-get")  # Steps that prepare a machine; this one is prepared.
SECTIONS = {"GitHub": 0, "GitLab": 1}


def steps(workflow: str) -> list[str]:
    """The commands of a workflow, in order, without those that prepare the machine."""
    found = re.findall(r"^ +(?:- )?run: (.+)$", workflow, re.MULTILINE)
    script = re.search(r"^  script:\n((?:    - .+\n)+)", workflow, re.MULTILINE)
    found += [line.removeprefix("    - ") for line in script[1].splitlines()] if script else []
    return [step for step in found if not step.startswith(PREPARED)]


def scenario(folder: Path, **values: str) -> None:
    """The page's nightly.toml with other values."""
    [text] = blocks(PAGE, "toml")
    for name, value in (SMALLER | values).items():
        text, count = re.subn(rf"^{name} = \S+", f"{name} = {value}", text, flags=re.MULTILINE)
        assert count == 1, name
    (folder / "nightly.toml").write_text(text + 'engine = "local"\n', encoding="utf-8")


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


@pytest.mark.parametrize("host", SECTIONS)
def test_the_steps_of_a_workflow_run_as_they_stand(tmp_path: Path, host: str) -> None:
    scenario(tmp_path)
    commands = steps(blocks(PAGE, "yaml")[SECTIONS[host]])
    assert sum(step.startswith("seamark run nightly.toml ") for step in commands) == 1
    for step in commands:
        code, output = carried_out(tmp_path, step)
        assert code == 0, output
    (junit,) = tmp_path.glob("store/batches/*/junit.xml")
    (suite,) = ElementTree.fromstring(junit.read_bytes())  # noqa: S314  Our own.
    assert {case.attrib["classname"] for case in suite} == {"tutorial.list-append"}
    assert suite[0].attrib["name"].startswith("TUT-1: ")
    assert "4000, 4001, 4002" in {each.attrib["value"] for each in suite.iter("property")}


def test_a_step_of_github_s_has_annotations_and_a_summary_that_begins_with_what_is_violated(tmp_path: Path) -> None:
    scenario(tmp_path, time="12.0")
    (step,) = (each for each in steps(blocks(PAGE, "yaml")[0]) if " run " in each)
    summary = tmp_path / "summary.md"
    on_github = {"GITHUB_ACTIONS": "true", "GITHUB_STEP_SUMMARY": str(summary)}
    code, output = carried_out(tmp_path, f"{step} --bug lost-ack", **on_github)
    assert code == 1, output
    assert re.search(r"^::error title=\S.*::.* Repeat it: seamark replay store/tutorial/", output, re.MULTILINE)
    verdict, _, first, *_ = summary.read_text(encoding="utf-8").splitlines()
    assert verdict.startswith("## ANOMALY: 3 runs: ")
    assert first.startswith("| anomaly | breaks ")
    rows = re.findall(r"^\| (TUT-\d) .*\| (violated|holds|not-exercised) \d", summary.read_text(), re.MULTILINE)
    assert [word for _, word in rows] == sorted((word for _, word in rows), key=lambda word: word != "violated")


def test_a_night_in_which_hardly_anything_ran_is_red(tmp_path: Path) -> None:
    scenario(tmp_path, time_budget="0.001", min_runs="3")
    (step,) = (each for each in steps(blocks(PAGE, "yaml")[0]) if " run " in each)
    code, output = carried_out(tmp_path, step)
    assert code == 3, output
    assert "of 3 runs: " in output
    assert "fewer than --min-runs 3" in output
