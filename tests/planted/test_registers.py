"""What a planted bug loses is missed in registers, too, and nothing is missed without it."""

from pathlib import Path

import pytest

from harness.core.record import Complete, Footer, Invoke
from harness.judging.engines import in_threads
from harness.record.formats.parquet.parquet import write_history
from harness.record.store import HISTORY
from harness.report.model import Report
from harness.run.running import prepare
from harness.run.single import judge_run
from harness.scenario.consent import installed
from harness.scenario.scenario import Scenario
from tests.scenario.simulated import Simulated

SEED = 1


def judged(store: Path, seed: int, *bugs: str) -> tuple[Simulated, Report]:
    scenario = Scenario(
        cluster="tutorial", workload="cas-register", seed=seed, time_s=12, nemesis=("partition",), bugs=bugs
    )
    run, _ = prepare(scenario, installed(scenario.cluster), store)
    simulated = Simulated(scenario)
    write_history([*simulated.evidence, Footer(0, simulated.reason, simulated.unseed)], run / HISTORY)
    return simulated, judge_run(run, in_threads)


def test_an_acknowledged_write_that_a_promotion_lost_is_missed_by_a_read(tmp_path: Path) -> None:
    print(f"seed {SEED}")
    simulated, report = judged(tmp_path, SEED, "lost-ack")
    assert report.verdict == "invalid"
    finding = next(each for each in report.findings if each.anomaly == "non-linearizable")
    assert finding.promise == "CAS-REGISTER"
    asked = {record.index: record for record in simulated.evidence if isinstance(record, Invoke)}
    about = {str(value[0]) for op in finding.ops if isinstance(value := asked[op].value, list)}
    assert len(about) == 1  # Everything that is told is about one register, which the sentence names.
    assert finding.sentence.startswith(f'Key "{about.pop()}": T')


@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_the_same_run_without_the_bug_passes(tmp_path: Path, seed: int) -> None:
    simulated, report = judged(tmp_path, seed)
    assert (report.verdict, report.findings) == ("valid", ())
    promise = next(row for row in report.promises if row.id == "CAS-REGISTER")
    assert (promise.verdict, promise.witnesses > 100) == ("holds", True)
    done = [record for record in simulated.evidence if isinstance(record, Complete)]
    assert sum("the register held" in (each.error or "") for each in done) > 50  # A cas that found something else.
