"""Which checks a history gets, and what they judge."""

import sys
from pathlib import Path
from random import Random

import pytest

import checkers
from checkers import catalogue
from checkers.catalogue import CHECKS, RECORDS
from checkers.engine.protocol import When
from checkers.transactions.check import LOCKED
from clusters.ndb import checks as ndb
from harness.cli.texts import promises_page
from harness.core.promises import Promise, StreamContract
from harness.core.record import Evidence, Outcome
from harness.core.verdict import Judgement
from harness.judging.checks import LONGEST, chosen, longest_first
from harness.judging.judge import judge
from harness.record.formats.load import Loaded
from harness.record.formats.parquet.parquet import write_history
from harness.record.formats.promise_file import read_promise_file
from harness.report.findings import shown
from harness.scenario.consent import installed
from harness.scenario.registry import load_cluster
from tests.worlds.contexts import ENGINE, EPOCHS, by_check, context
from tests.worlds.epoch_cases import Story
from tests.worlds.epoch_histories import BITS, EpochStore, records

TABLE = (*CHECKS, *ndb.CHECKS)
CONTRACT = StreamContract(closed="<=", cut="position", position="epoch")


def judged(folder: Path, told: list[Evidence], *, bits: int | None = BITS) -> dict[str, Judgement]:
    write_history(told, folder / "history")
    return by_check(folder / "history", context(*EPOCHS, bits=bits))


def found(judgements: dict[str, Judgement]) -> set[tuple[str, str]]:
    return {(name, finding.anomaly) for name, judgement in judgements.items() for finding in judgement.findings}


def test_the_longest_checks_begin_first_and_the_others_in_order() -> None:
    begun = [check.name for check in longest_first(CHECKS)]
    assert begun[: len(LONGEST)] == list(LONGEST)
    assert begun[len(LONGEST) :] == [check.name for check in CHECKS if check.name not in LONGEST]


def test_while_the_engine_starts_the_checks_without_kernels_come_second() -> None:
    begun = longest_first(CHECKS, is_starting=True)
    assert begun[0].name == LONGEST[0]
    assert [check.has_kernels for check in begun[1:]] == sorted(check.has_kernels for check in begun[1:])
    assert {check.name for check in begun} == {check.name for check in CHECKS}


def test_a_history_from_elsewhere_gets_the_transactional_check_alone() -> None:
    plain = Promise(id="MODEL", text="", source="", forbids=("serializable",), check="serializability")
    assert [check.name for check in chosen(context(plain))] == ["serializability"]
    streamed = [check.name for check in chosen(context(contract=CONTRACT))]
    assert streamed == ["serializability", "streams", "watermark-graph"]


FRESH = '''
"""Ends: some operation certainly happened."""

from pathlib import Path

from checkers.engine.protocol import Check, Context
from checkers.history.tables import rows
from checkers.history.troubles import Trouble, judgement
from harness.core.columns import OK
from harness.core.verdict import Judgement


def check(history: Path, context: Context) -> Judgement:
    done = rows(history, "ops", ["index"], outcome=[OK])
    troubles = [] if done else [Trouble("never-ends", "Nothing ever succeeded.", ())]
    return judgement("ends", ANOMALIES, troubles, {"never-ends": len(done)})


ANOMALIES = {"never-ends": "No operation ever succeeded."}
CHECKS = (Check(name="ends", anomalies=ANOMALIES, judge=check, by_generation=True),)
'''


@pytest.mark.parametrize(("kind", "verdict"), [("ok", "holds"), ("fail", "violated")])
def test_a_check_is_one_file_and_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Outcome, verdict: str
) -> None:
    """It is judged, known to promise files, and listed with its anomaly where promises are documented."""
    (tmp_path / "ends.py").write_text(FRESH, encoding="utf-8")
    monkeypatch.setattr(checkers, "__path__", [*checkers.__path__, str(tmp_path)])
    monkeypatch.setattr(catalogue, "MODULES", {**catalogue.MODULES, "ends": ("ends",)})
    table = catalogue.checks_of(catalogue.MODULES)
    for module in (catalogue, promises_page):
        monkeypatch.setattr(module, "CHECKS", table, raising=False)
        monkeypatch.setattr(module, "RECORDS", catalogue.records_of(table), raising=False)
    del sys.modules["checkers.ends"]

    promise_file = tmp_path / "promises.toml"
    promise_file.write_text(
        '[[promise]]\nid = "P"\ntext = "All ends."\nforbids = ["never-ends"]\ncheck = "ends"\n', encoding="utf-8"
    )
    promised = read_promise_file(promise_file, table)
    story = Story()
    story.op("ax1", (7, 0), kind)
    loaded = Loaded(history=story.write(tmp_path), format="parquet", is_foreign=True)
    report = judge(loaded, ENGINE, promised=promised)
    assert [(row.id, row.verdict) for row in report.promises] == [("P", verdict)]
    assert [finding.checker for finding in report.findings] == ["ends"] * (kind == "fail")

    cluster = load_cluster(installed("tutorial"))
    cluster.promises = promised.promises
    page = promises_page.promises_pages([cluster])["promises/tutorial.md"]
    assert "`never-ends`: No operation ever succeeded. Checked by `ends`." in page
    assert shown.glossary(report) == [("Never ends", "No operation ever succeeded.")] * (kind == "fail")


@pytest.mark.parametrize(
    ("promise", "name"),
    [
        (Promise(id="P", text="", source="", forbids=("cut-not-closed",)), "cuts"),
        (Promise(id="P", text="", source="", forbids=("double-epoch",)), "epochs"),
        (Promise(id="P", text="", source="", forbids=("serializable",), check=LOCKED), LOCKED),
        (Promise(id="P", text="", source="", forbids=("torn-unit",), check="freshness"), "freshness"),
    ],
)
def test_a_check_is_made_for_the_promise_that_needs_it(promise: Promise, name: str) -> None:
    assert [check.name for check in chosen(context(promise), TABLE)] == ["serializability", name]


def test_the_catalogue_names_each_check_with_its_module_so_that_only_wanted_ones_are_loaded() -> None:
    for module, names in catalogue.MODULES.items():
        assert tuple(check.name for check in catalogue.checks_of((module,))) == names
    always = {check.name for check in CHECKS if check.when is When.ALWAYS and not check.needs_contract}
    assert always <= set(catalogue.MODULES[catalogue.ALWAYS])
    for check in CHECKS:
        promise = Promise(id="P", text="", source="", forbids=tuple(check.anomalies), check=check.name)
        for what in (context(promise), context(promise, contract=CONTRACT)):
            assert chosen(what) == chosen(what, CHECKS)


def test_each_check_has_a_name_and_anomalies_of_its_own() -> None:
    names = [check.name for check in TABLE]
    assert len(set(names)) == len(names)
    assert all(check.anomalies for check in TABLE)
    assert {anomaly for check in CHECKS for anomaly in check.anomalies} <= set(RECORDS)


@pytest.mark.parametrize("restarts", [0, 1, 2])
def test_a_correct_store_raises_nothing_whatever_it_lost_in_restarts(tmp_path: Path, restarts: int) -> None:
    for seed in range(8):
        judgements = judged(tmp_path, records(Random(seed), restarts=restarts))
        assert found(judgements) == set()
        assert [judgement.unknown for judgement in judgements.values()] == [{}] * 5


def test_judged_as_one_generation_the_same_runs_would_raise_false_alarms(tmp_path: Path) -> None:
    alarms = {
        each for seed in range(8) for each in found(judged(tmp_path, records(Random(seed), restarts=1), bits=None))
    }
    assert {name for name, _ in alarms} >= {"serializability", LOCKED, "freshness"}


def test_no_part_of_a_history_is_left_behind(tmp_path: Path) -> None:
    judged(tmp_path, records(Random(1), restarts=1))
    assert [path.name for path in tmp_path.iterdir()] == ["history"]


def test_the_two_populations_are_judged_apart(tmp_path: Path) -> None:
    skew = Story()
    one, other = skew.begin("Rx Ry ax1"), skew.begin("Rx Ry ay2")
    skew.end(one, "Rx Ry ax1", (7, 0))
    skew.end(other, "Rx Ry ay2", (7, 0))
    skew.op("Rx1 Ry2", (7, 0))
    assert found(judged(tmp_path, skew.records)) == {(LOCKED, "G2-item")}
    committed = Story()
    one, other = committed.begin("rx ry ax1"), committed.begin("rx ry ay2")
    committed.end(one, "rx ry ax1", (7, 0))
    committed.end(other, "rx ry ay2", (7, 0))
    committed.op("rx1 ry2", (7, 0))
    assert found(judged(tmp_path, committed.records)) == set()


@pytest.mark.parametrize(("restored", "expected"), [(1, set()), (2, {("watermark-graph", "G0-watermark")})])
def test_what_a_restart_left_out_is_not_newer_than_what_came_after_it(
    tmp_path: Path, restored: int, expected: set[tuple[str, str]]
) -> None:
    """T0's client gives up; s1 has its x = 1 when the cluster fails. Lost it may be only if it was not saved."""
    story = Story()
    story.told("open", (1, 0))
    story.op("ax1", None, "info")
    story.told("row", (2, 2))
    story.marks((2, 2))
    story.restart(restored, (3, 0))
    story.op("ax2 ay3", (3, 1))
    story.op("rx2 ry3", (3, 1))
    cut = Promise(id="5", text="", source="", forbids=("G0-watermark",))
    judgements = by_check(story.write(tmp_path), context(cut, bits=32, contract=CONTRACT))
    assert {each for each in found(judgements) if each[0] == "watermark-graph"} == expected


def test_what_breaks_both_populations_is_a_finding_of_each(tmp_path: Path) -> None:
    circle = Story()
    one, other = circle.begin("ax1 Ry"), circle.begin("ay2 Rx")
    circle.end(one, "ax1 Ry2", (7, 0))
    circle.end(other, "ay2 Rx1", (7, 0))
    judgements = judged(tmp_path, circle.records)
    assert found(judgements) == {("serializability", "G1c"), (LOCKED, "G1c")}
    weak, strict = judgements["serializability"].findings[0], judgements[LOCKED].findings[0]
    assert weak.fingerprint != strict.fingerprint
    assert strict.sentence == f"Counting reads under lock only: {weak.sentence}"
    assert (strict.checker, strict.ops) == (LOCKED, weak.ops)


def test_a_locked_reader_sees_writers_that_read_without_lock(tmp_path: Path) -> None:
    story = Story()
    story.op("ax1 ry", (7, 0))
    story.op("rx1 ax2", (7, 0))
    story.op("Rx1", (7, 0))
    story.op("Rx12", (7, 0))
    assert (LOCKED, "G-single-realtime") in found(judged(tmp_path, story.records))


def test_epochs_that_are_used_again_are_found_as_such(tmp_path: Path) -> None:
    shapes = set()
    for seed in range(8):
        store = EpochStore(Random(seed), is_reusing=True)
        shapes |= found(judged(tmp_path, store.run(120, restarts=1)))
    assert ("epochs", "epoch-shape") in shapes
