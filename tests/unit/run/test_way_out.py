"""What to run after many runs that found nothing, or tested too little."""

from pathlib import Path

import msgspec

from harness.campaign.document import Sweep
from harness.campaign.way_out import way_out
from harness.core.verdict import Verdict
from harness.report.batch_page import Summary, batch_page
from harness.report.model import Report, WayOut, next_steps
from harness.run.batch import Batch, Orders, _composed
from harness.scenario.consent import Code
from harness.scenario.scenario import Scenario


def batch(verdict: Verdict, *, min_runs: int = 1) -> Batch:
    """Two runs of that verdict, of three that were asked for."""
    report = Report(verdict=verdict.value, exit_code=verdict.exit_code, reason="because", clause="c", run="store/c/1")
    scenario = Scenario(cluster="tutorial", seed=7, time_s=5.0)
    code = Code("tutorial", None)
    orders = Orders(scenario=scenario, code=code, count=3, jobs=1, store=Path("store"), min_runs=min_runs)
    return _composed(orders, [report, report], "the time is up", 1.0)


def test_a_vacuous_batch_names_the_longer_one_with_other_seeds() -> None:
    found = batch(Verdict.VACUOUS).way_out
    assert found is not None
    assert found.command == "seamark run --cluster tutorial --seed 10 --time 20 --count 3"
    assert found.sentence.startswith("Run longer")


def test_a_batch_with_too_few_runs_needs_more_time() -> None:
    found = batch(Verdict.VALID, min_runs=3)
    assert (found.verdict, found.way_out) == (
        "vacuous",
        WayOut(sentence="Give it more time with --time-budget, or ask for fewer runs than 3."),
    )


def test_a_green_batch_leads_to_other_seeds_and_a_red_one_to_its_findings() -> None:
    found = batch(Verdict.VALID).way_out
    assert found is not None
    assert found.command == "seamark run --cluster tutorial --seed 10 --time 5 --count 3"
    assert batch(Verdict.INVALID).way_out is None


def test_the_page_of_a_vacuous_batch_has_its_way_out_in_the_first_card(tmp_path: Path) -> None:
    found = batch(Verdict.VACUOUS)
    summary: Summary = found.summary()
    card = batch_page(summary, found.runs, tmp_path).partition("</section>")[0]
    assert "Run longer" in card
    assert "--seed 10 --time 20 --count 3" in card


def test_a_green_run_leads_to_more_of_them() -> None:
    fields = {"verdict": "valid", "exit_code": 0, "reason": "held"}
    plain = msgspec.convert(fields | {"anywhere": "seamark run --seed 3"}, Report)
    assert next_steps(plain) == [("test more", "seamark run --seed 3 --count 20")]
    in_file = msgspec.convert(fields | {"anywhere": "seamark run --cluster YOUR_FILE.py:X  # its sha256"}, Report)
    assert next_steps(in_file) == [("test more", "seamark run --cluster YOUR_FILE.py:X --count 20  # its sha256")]


def test_a_vacuous_sweep_names_what_to_change_in_its_file() -> None:
    fields = {"name": "n", "verdict": "vacuous", "exit_code": 3, "reason": "r", "clause": "b", "started_utc": "",
              "finished_utc": "", "versions": {}, "config": {"path": "n.toml", "text": "", "sha256": ""},
              "planned": 8, "runs": 8, "min_runs": 4, "counts": {}, "operations": {}, "hours": 0.0, "seconds": 0.0,
              "history_sha256": "", "cells": [], "findings": [], "promises": [], "faults": []}  # fmt: skip
    sweep = msgspec.convert(fields, Sweep)
    found = way_out(sweep)
    assert found is not None
    assert found.sentence.endswith("so that each kind of fault takes effect and meets operations, in n.toml.")
    assert found.command == "seamark sweep n.toml"
    short = way_out(msgspec.structs.replace(sweep, runs=3, clause="d"))
    assert short is not None
    assert short.sentence == "Raise `time_budget`, or lower `min_runs`, which is 4, in n.toml."
    assert way_out(msgspec.structs.replace(sweep, verdict="valid")) is None
