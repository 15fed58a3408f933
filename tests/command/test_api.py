"""The public package: every example on docs/api.md runs, its tables name what there is, and errors are ours."""

import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import msgspec
import pytest

import seamark
from harness.core.errors import SeamarkError
from harness.report.model import FindingRow
from harness.scenario.installation import PACKAGES_OF_OURS
from tests.command.conftest import SEED
from tests.repo.test_docs import DOCS, ROOT, blocks

PAGE = DOCS / "api.md"
TINY = [
    {"process": 0, "type": "invoke", "f": "txn", "value": [["append", "x", 1]]},
    {"process": 0, "type": "ok", "f": "txn", "value": [["append", "x", 1]]},
    {"process": 1, "type": "invoke", "f": "txn", "value": [["r", "x", None]]},
    {"process": 1, "type": "ok", "f": "txn", "value": [["r", "x", [1]]]},
]


def first_cells(section: str) -> set[str]:
    """The names in the first column of a section's table."""
    text = PAGE.read_text(encoding="utf-8").split(section)[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.+?) \|", text, re.MULTILINE)
    return {name for row in rows for name in re.findall(r"`(\w+)`", row)}


def done(program: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_examples_on_the_page_run_as_they_stand(tmp_path: Path) -> None:
    ended = done("\n".join(blocks(PAGE, "python")), tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "G-single-realtime\n" in ended.stdout
    assert "ANOMALY  " in ended.stdout
    assert (tmp_path / "history.html").read_text().startswith("<!")


def test_the_examples_on_the_page_pass_the_type_checker(tmp_path: Path) -> None:
    (tmp_path / "page.py").write_text("\n".join(blocks(PAGE, "python")), encoding="utf-8")
    mypy = [str(ROOT / ".venv" / "bin" / "mypy"), "--strict", "--no-error-summary", str(tmp_path / "page.py")]
    ended = subprocess.run(mypy, cwd=ROOT, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("", 0)


def test_the_tables_on_the_page_have_every_field() -> None:
    assert first_cells("| field of `Scenario`") == set(seamark.Scenario.__struct_fields__)
    assert first_cells("| field of `Report`") == {*seamark.Report.__struct_fields__, "is_pass", "symptoms", "explain"}


def test_what_is_public_is_on_the_page() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert [name for name in seamark.__all__ if name not in text] == []


def test_a_stored_report_is_read_and_judged_alike(run_copy: Path) -> None:
    stored = seamark.read(run_copy)
    assert (stored.seed, stored.is_pass) == (SEED, True)
    assert str(stored) == f"PASS  {stored.reason} (exit 0)"
    assert stored.to_json().encode() + b"\n" == (run_copy / "report.json").read_bytes()
    again = seamark.check(run_copy)
    assert msgspec.structs.replace(again, seconds={}, run=None) == msgspec.structs.replace(stored, seconds={}, run=None)


def test_initial_values_are_declared_and_named() -> None:
    read = [{**TINY[2], "value": [["r", "x", None]]}, {**TINY[3], "value": [["r", "x", 5]]}]
    write = [{**each, "value": [["w", "x", 6]]} for each in TINY[:2]]
    assert seamark.check([*write, *read]).verdict == "unknown"
    assert seamark.check([*read, *write], initial="5").is_pass
    [finding] = seamark.check([*write, *read], initial="5").findings
    assert "T1 read x as 5, and T0 wrote 6, which counts as later (x held 5 at first)" in finding.sentence


def test_a_notebook_shows_the_promises_of_a_report() -> None:
    shown = seamark.check(TINY)._repr_markdown_()
    assert shown.startswith("## PASS")
    assert "| holds | 1 |" in shown


def test_a_scenario_in_a_file_is_run_with_another_plan(tmp_path: Path) -> None:
    (tmp_path / "nightly.toml").write_text(f'cluster = "tutorial"\nseed = {SEED}\ntime = 6\n')
    (tmp_path / "plan.json").write_text('{"steps": []}')
    report = seamark.run(tmp_path / "nightly.toml", plan=tmp_path / "plan.json", store=tmp_path / "store")
    assert (report.seed, report.faults) == (SEED, ())
    assert seamark.runs(tmp_path / "store") == [Path(report.run or "")]


@pytest.mark.parametrize(
    ("program", "kind", "message"),
    [
        ("seamark.check('nowhere.edn')", "ScenarioError", "nowhere.edn"),
        ("seamark.check([{'f': object()}])", "ScenarioError", "JSON"),
        ("seamark.check([3])", "HistoryError", "element 1"),
        ("seamark.check([], html='page.html')", "ScenarioError", "html"),
        ("seamark.check('.', model='serialisable')", "ScenarioError", "serializable"),
        ("seamark.run(seamark.Scenario(cluster='tutoriel'))", "ScenarioError", "did you mean tutorial"),
        ("seamark.run('nowhere.toml')", "ScenarioError", "nowhere.toml"),
        ("seamark.run('three.toml')", "ScenarioError", "3 runs"),
        ("seamark.read('.')", "ScenarioError", "run.json"),
    ],
)
def test_what_cannot_be_done_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: str, kind: str, message: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "three.toml").write_text("count = 3\n")
    with pytest.raises(SeamarkError, match=message) as raised:
        eval(program, {"seamark": seamark})  # noqa: S307  One of those above.
    assert type(raised.value).__name__ == kind


def test_a_lost_write_of_a_register_is_found_as_the_page_on_own_systems_says(tmp_path: Path) -> None:
    lost = [
        {"process": number, "type": kind, "f": "txn", "value": [[f, "x", value]]}
        for number, f, value in ((0, "w", 1), (0, "w", 2), (1, "r", 1))
        for kind in ("invoke", "ok")
    ]
    for forbidden, verdict in (("stale-acknowledged", "not-exercised"), ("strict-serializable", "violated")):
        line = f'[[promise]]\nid = "P"\ntext = "t"\nsource = "s"\nforbids = ["{forbidden}"]\n'
        (tmp_path / "promises.toml").write_text(line)
        [promise] = seamark.check(lost, promises=tmp_path / "promises.toml").promises
        assert promise.verdict == verdict
    [row] = [
        line for line in (DOCS / "your-own-system.md").read_text().splitlines() if "`rw-register` | `strict" in line
    ]
    assert "G-single-realtime" in row


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The content of the wheel of this checkout, in a folder."""
    folder = tmp_path_factory.mktemp("wheel")
    checkout = folder / "checkout"  # Building leaves files beside what is built.
    for package in PACKAGES_OF_OURS:
        shutil.copytree(ROOT / package, checkout / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, checkout / name)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", str(folder)]
    subprocess.run([*command, str(checkout)], check=True, capture_output=True)
    [built] = folder.glob("*.whl")
    zipfile.ZipFile(built).extractall(folder / "content")
    return folder / "content"


def test_the_wheel_has_the_public_package_and_judges(wheel: Path, tmp_path: Path) -> None:
    folders = {path.name for path in wheel.iterdir() if path.suffix != ".dist-info"}
    assert folders == set(PACKAGES_OF_OURS)
    assert all((wheel / folder / "py.typed").is_file() for folder in folders)
    program = f"import harness, seamark; print(harness.__path__, seamark.__file__); print(seamark.check({TINY}))"
    ended = done(program, tmp_path, PYTHONPATH=str(wheel))
    assert ended.returncode == 0, ended.stderr
    assert f"{wheel}/seamark/__init__.py" in ended.stdout
    assert f"{wheel}/harness" in ended.stdout
    assert "PASS" in ended.stdout


def test_an_explanation_has_a_line_for_each_sentence(run_copy: Path) -> None:
    finding = FindingRow(fingerprint="1", anomaly="G0", checker="graph", sentence="It \x1bbroke.", promise=None)
    report = msgspec.structs.replace(seamark.read(run_copy), findings=(finding,))
    assert report.explain(*report.symptoms).split("\n") == ["It \\x1bbroke.", f"run: {report.run}"]
