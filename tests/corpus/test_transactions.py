"""Whole files of transactions, judged as `seamark check` judges them: our own always, Elle's where they are.

Ours lie in the folder `own`. Elle's elle-cli rw-register is called soft by whoever collected it, as it reads a value
that nobody wrote; we call it valid, since what a history does not tell of proves nothing.
"""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.words.models import DEFAULT
from harness.core.errors import ScenarioError
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.record.formats.parquet import parquet
from harness.report.model import Report
from harness.run.checking import promises_in
from tests.corpus.cases import HISTORIES

OWN = Path(__file__).parent / "own"
ENGINE = LocalEngine(2)
SNAPSHOT, STRONG_SNAPSHOT = "snapshot-isolation", "strong-snapshot-isolation"
# File, model, and the anomaly that breaks it; None if it holds.
VERDICTS = [
    (OWN / "list-append-fractured.edn", DEFAULT, "G-single"),
    (OWN / "list-append-fractured.edn", "read-committed", None),
    (OWN / "list-append-unclear.edn", DEFAULT, None),
    (OWN / "rw-register-stale.edn", DEFAULT, "G-single-realtime"),
    (OWN / "rw-register-stale.edn", "serializable", None),
    (OWN / "rw-register-skew.edn", DEFAULT, "G2-item"),
    (OWN / "rw-register-skew.edn", SNAPSHOT, None),
    (OWN / "rw-register-unclear.edn", DEFAULT, None),
    (OWN / "list-append-postgres-serializable.edn", "serializable", "G2-item"),
    (OWN / "list-append-postgres-serializable.edn", SNAPSHOT, None),
    (OWN / "list-append-postgres-three.edn", "serializable", "G2-item"),
    (OWN / "list-append-postgres-three.edn", SNAPSHOT, None),
    (HISTORIES / "elle/paper-example.edn", DEFAULT, "G-single"),
    (HISTORIES / "elle/si-without-g-single.edn", "repeatable-read", "G2-item"),
    (HISTORIES / "elle/si-without-g-single.edn", SNAPSHOT, None),
    (HISTORIES / "elle/huge-scc.edn", STRONG_SNAPSHOT, "G-single-realtime"),
    (HISTORIES / "elle/huge-scc.edn", "serializable", None),
    (HISTORIES / "elle/huge-scc.edn", "strong-read-committed", None),
    (HISTORIES / "elle-cli/elle/paper-example.edn", DEFAULT, "G-single"),
    (HISTORIES / "elle-cli/elle/paper-example.json", DEFAULT, "G-single"),
    (HISTORIES / "elle-cli/elle/list-append-gh-30.edn", "serializable", "G2-item"),
    (HISTORIES / "elle-cli/elle/rw-register.edn", "serializable", None),
    (HISTORIES / "elle-cli/elle/rw-register.json", "serializable", None),
]


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


def judged(path: Path, folder: Path, model: str) -> Report:
    if not path.is_file():
        pytest.skip(f"{path} is absent")
    return judge(load(path, folder), ENGINE, model=model)


@pytest.mark.parametrize(
    ("path", "model", "anomaly"), VERDICTS, ids=lambda each: each.name if isinstance(each, Path) else str(each)
)
def test_the_verdict_on_a_file(path: Path, model: str, anomaly: str | None, tmp_path: Path) -> None:
    report = judged(path, tmp_path, model)
    names = [finding.anomaly for finding in report.findings if finding.promise is not None]
    assert report.verdict == ("valid" if anomaly is None else "invalid")
    assert anomaly in names if anomaly else names == []


@pytest.mark.parametrize("ending", ["edn", "json"])
def test_a_value_that_nobody_wrote_between_two_reads_of_another_leaves_strict_serializability_open(
    ending: str, tmp_path: Path
) -> None:
    report = judged(HISTORIES / f"elle-cli/elle/rw-register.{ending}", tmp_path, DEFAULT)
    assert (report.verdict, report.findings) == ("unknown", ())
    assert "a value that no operation wrote was read" in report.reason


def test_a_write_without_a_clear_answer_that_shows_in_one_register_has_happened_in_the_other(tmp_path: Path) -> None:
    text = (OWN / "rw-register-unclear.edn").read_text(encoding="utf-8")
    spoiled = tmp_path / "spoiled.edn"
    asked = text.replace('[[:r "b" nil] [:w "a" 2]]', '[[:r "b" nil] [:r "a" nil]]')
    spoiled.write_text(asked.replace('[[:r "b" 1] [:w "a" 2]]', '[[:r "b" 1] [:r "a" nil]]'), encoding="utf-8")
    (finding,) = judged(spoiled, tmp_path / "history", DEFAULT).findings
    assert (finding.anomaly, finding.ops) == ("G-single", (0, 2))


def test_a_promise_file_says_what_orders_versions(tmp_path: Path) -> None:
    stale = load(OWN / "rw-register-stale.edn", tmp_path / "history")
    path = tmp_path / "promises.toml"
    verdicts = {}
    for trust in ("given", "timed", "not used"):
        path.write_text(f'model = "serializable"\n[versions]\nreal_time = "{trust}"\nprocess = "{trust}"\n')
        report = judge(stale, ENGINE, promised=promises_in(path))
        verdicts[trust] = (report.verdict, [finding.anomaly for finding in report.findings])
    assert verdicts == {"given": ("invalid", ["cyclic-versions"]), "timed": ("valid", []), "not used": ("valid", [])}
    path.write_text('model = "serializable"\n[versions]\nreal_time = "sometimes"\n')
    with pytest.raises(ScenarioError, match="sometimes"):
        promises_in(path)
