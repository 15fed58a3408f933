"""`seamark signoff` over two real sweeps, one of them of a cluster with a planted bug."""

from datetime import date
from hashlib import sha256
from pathlib import Path

import pytest

from harness.core.verdict import Verdict
from tests.command.browser import Browser, browser
from tests.command.chromium import chromium
from tests.command.conftest import Seamark
from tests.unit.campaign.made import made
from tests.unit.campaign.reports import fault, report
from tests.unit.signoff.folders import RUNS, green, red

__all__ = ["browser"]
CONFIG = """
name = "{name}"
seed = 1
time = 8.0
clusters = ["tutorial"]
workloads = ["list-append"]
style = "swarm"
count = 1
bug = [{bug}]
"""


def test_a_planted_bug_is_a_no_go_that_names_it_as_new(seamark: Seamark, tmp_path: Path, browser: Browser) -> None:
    for name, bug in (("correct", ""), ("broken", '"torn-watermark"')):
        (tmp_path / f"{name}.toml").write_text(CONFIG.format(name=name, bug=bug), encoding="utf-8")
        assert (seamark("sweep", f"{name}.toml", "--quiet").code == 1) == bool(bug)
    correct, broken = (next((tmp_path / "store" / "sweeps" / name).iterdir()) for name in ("correct", "broken"))
    assert seamark("signoff", broken, correct).code == 3, "one run has too few faults of each kind"
    outcome = seamark("signoff", correct, broken, "--out", "out")
    assert outcome.code == 1
    decision, *rest = outcome.out.splitlines()
    assert decision.startswith("NO-GO  ")
    assert decision.endswith("(exit 1)")
    assert any(line.startswith("  NEW ") for line in rest)
    assert rest[-1] == "  open    out/signoff.html"
    page = tmp_path / "out" / "signoff.html"
    verified = seamark("signoff", "--verify", "out", "--replay", "1")
    assert verified.code == 0, verified.out + verified.err
    assert verified.out.splitlines() == [
        "FOLLOWS  NO-GO of " + date.today().isoformat() + " (exit 0)",
        "  baseline  1 run; its chain of rows is whole; no kept run to judge again",
        "  repeated  1 drawn run of the baseline: seeds 1",
        "  candidate 1 run; its chain of rows is whole; 1 kept run judged again",
        "  believed  0 of 2 runs: only their rows say what they showed",
    ]
    kept = next((tmp_path / "store" / "tutorial").iterdir()) / "run.json"
    whole = kept.read_bytes()
    kept.write_bytes(whole.replace(b'"torn-watermark"', b'"nothing"'))
    spoiled = seamark("signoff", "--verify", "out/signoff.json", correct, broken)
    assert spoiled.code == 1
    assert "  differs   candidate, cell 0, seed 1, judged again: " in spoiled.out
    kept.write_bytes(whole)
    digest = sha256((tmp_path / "out" / "signoff.json").read_bytes()).hexdigest()
    assert digest in page.read_text(encoding="utf-8")
    assert digest in (tmp_path / "out" / "signoff.md").read_text(encoding="utf-8")
    probed = browser.probe(page)
    assert probed.scroll_width <= probed.width
    assert probed.contrasts == {"light": [], "dark": []}


def idle(store: Path) -> Path:
    """A sweep whose partitions took effect once."""
    few = report(faults=(fault("pause"), fault("partition", effective=0, met=0)), verdict=Verdict.VACUOUS)
    return made(store, report(), *[few] * (RUNS - 1))


def test_each_decision_has_its_exit_code_and_json_stays_alone(seamark: Seamark, tmp_path: Path) -> None:
    before = green(tmp_path / "before")
    for name, make, code, decision in (
        ("same", green, 0, "go"),
        ("broken", red, 1, "no-go"),
        ("idle", idle, 3, "insufficient-evidence"),
    ):
        outcome = seamark("signoff", before, make(tmp_path / name), "--json")
        assert (outcome.code, outcome.json["decision"], outcome.err) == (code, decision, "")


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("before", "nowhere"), 64, "nowhere: there is no such folder, and no sweep of store"),
        (("before", "damaged"), 4, "not a sweep"),
        (("before", "after", "--waivers", "nowhere.toml"), 64, "cannot be read"),
        (("before", "after", "--waivers", "waivers.toml"), 64, "unknown fingerprint"),
        (("before", "after", "--out", "file"), 64, "choose another folder"),
        (("before",), 64, "Name two folders, BASELINE and CANDIDATE, or --verify"),
    ],
)
def test_bad_input_is_told_in_a_line(
    seamark: Seamark, tmp_path: Path, arguments: tuple[str, ...], code: int, message: str
) -> None:
    green(tmp_path / "s1").rename(tmp_path / "before")
    red(tmp_path / "s2").rename(tmp_path / "after")
    (green(tmp_path / "s3").rename(tmp_path / "damaged") / "sweep.json").write_text('{"name": 1')
    (tmp_path / "file").touch()
    (tmp_path / "waivers.toml").write_text(
        '[[waiver]]\nfingerprint = "59f48400aa5b8fb0"\nowner = "A"\nreason = "R"\nexpires = 2999-01-01\n'
    )
    outcome = seamark("signoff", *arguments)
    assert outcome.code == code
    assert message in outcome.line


def test_on_a_phone_a_number_is_beside_its_name_and_no_word_is_broken(seamark: Seamark, tmp_path: Path) -> None:
    before, after = green(tmp_path / "before"), idle(tmp_path / "idle")
    assert seamark("signoff", before, after, "--out", "out").code == 3
    with chromium() as tab:
        tab.size(390)
        tab.open((tmp_path / "out" / "signoff.html").as_uri())
        assert tab.value("document.documentElement.scrollWidth") <= 390
        heights = tab.value("[...document.querySelectorAll('td.n')].map(cell => cell.getBoundingClientRect().height)")
        assert 0 < max(heights) < 50, "a label beside a number takes two lines at most, not one for each letter"
        first = "document.querySelector('table.stack tr:nth-child(2) td.full')"
        assert tab.value(f"{first}.offsetTop <= {first}.parentElement.querySelector('td.n').offsetTop")


def test_a_release_that_is_declared_reaches_the_sweep_and_its_runs(seamark: Seamark, tmp_path: Path) -> None:
    (tmp_path / "n.toml").write_text(
        'name = "n"\nclusters = ["tutorial"]\nfaults = ["none"]\ncount = 1\ntime = 2.0\nrate = 60.0\nkeep = "all"\n'
        'sut = { name = "Shop", version = "1.0" }\n'
    )
    outcome = seamark("sweep", "n.toml", "--sut", "version=1.1", "--jobs", "1", "--json")
    assert outcome.json["sut"] == {"name": "Shop", "version": "1.1"}
    page = next((tmp_path / "store" / "tutorial").iterdir()) / "report.html"
    assert "Shop 1.1: tutorial in simulation" in page.read_text(encoding="utf-8")
