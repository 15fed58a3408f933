"""Commands that we suggest: copied into a shell, each runs what it says and nothing else."""

import html
import shlex
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from harness.core.errors import SeamarkError
from harness.report.console.terminal import show
from harness.report.github import annotations
from harness.report.junit import junit
from harness.report.markdown import summary
from harness.report.model import FindingRow, PromiseRow, Report, read_report, repetition, smaller
from harness.report.page import page
from harness.report.screen import commands
from harness.run.running import RunFailed

HOSTILE = ("a.py:C; touch OWNED #", "$(touch OWNED)", "`touch OWNED`", "it's", "a b", "--trace", "|touch OWNED")
FINDING = FindingRow(fingerprint="0", anomaly="G0", checker="streams", sentence="It is so.", promise="P-1")


def report(text: str, runtime: str) -> Report:
    row = PromiseRow(id="P-1", verdict="violated", witnesses=1, text="", source="")
    known = Report(verdict="invalid", exit_code=1, reason="", findings=(FINDING,), promises=(row,))
    return msgspec.structs.replace(known, run=f"store/{text}/1-1", code=text, cluster="c", runtime=runtime, seed=1)


def shown(report: Report) -> str:
    console = Console(width=400)
    with console.capture() as captured:
        show(console, report)
    return captured.get()


RENDERINGS: dict[str, Callable[[Report], str]] = {
    "screen": shown,
    "page": lambda report: html.unescape(page(report)),
    "junit": lambda report: html.unescape(junit([report], suite="s").decode()),
    "summary": summary,
    "annotations": lambda report: "\n".join(annotations([report])),
}


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("runtime", ["sim", "docker"])
def test_each_word_of_a_command_is_one_word_of_a_shell(text: str, runtime: str) -> None:
    subject = report(text, runtime)
    result = repetition(subject)
    assert result is not None
    run = f"store/{text}/1-1"
    words = ["replay", run] if runtime == "sim" else ["run", f"{run}/run.json"]
    assert shlex.split(result) == ["seamark", *words, "--cluster", text]
    labelled = dict(commands(subject))
    assert shlex.split(labelled["open"]) == [f"{run}/report.html"]
    assert shlex.split(labelled["judge"]) == ["seamark", "check", run]
    small = shlex.split(labelled.get("smaller", ""))
    assert small == (["seamark", "shrink", run, "--cluster", text] if runtime == "sim" else [])


def test_the_command_that_makes_a_run_small_names_the_finding_unless_it_is_the_first() -> None:
    other = msgspec.structs.replace(FINDING, anomaly="G1c")
    legal = msgspec.structs.replace(FINDING, anomaly="lag", promise=None)
    subject = msgspec.structs.replace(report("a.py:C", "sim"), findings=(legal, FINDING, other), code=None)
    assert smaller(subject, FINDING) == "seamark shrink store/a.py:C/1-1"
    assert smaller(subject, other) == "seamark shrink store/a.py:C/1-1 --finding G1c"
    assert smaller(subject, legal) is None
    contained = msgspec.structs.replace(subject, runtime="docker", anywhere="seamark run")
    assert smaller(contained, FINDING) == "seamark shrink store/a.py:C/1-1 --tries 20"
    assert smaller(msgspec.structs.replace(contained, anywhere=None), FINDING) is None


# Markdown has no code with a backtick, nor a table with a bar in it.
@pytest.mark.parametrize("text", [text for text in HOSTILE if not {"`", "|"} & set(text)])
@pytest.mark.parametrize("rendering", RENDERINGS)
def test_every_place_that_shows_a_command_shows_it_quoted(text: str, rendering: str) -> None:
    subject = report(text, "sim")
    result = repetition(subject)
    assert result is not None
    assert result in RENDERINGS[rendering](subject)


def test_errors_suggest_commands_that_are_quoted(tmp_path: Path) -> None:
    run = tmp_path / "a b; touch OWNED"
    run.mkdir()
    (run / "report.json").write_text("{", encoding="utf-8")
    with pytest.raises(SeamarkError) as damaged:
        read_report(run)
    for text in (str(damaged.value), str(RunFailed(run, "it failed"))):
        assert f"seamark check {shlex.quote(str(run))}" in text
