"""Minimal histories that tell neighbouring models apart: the verdict at each model, ours and that of brute force."""

from pathlib import Path

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.history.transactions import chunks, read_chunk, to_operations
from harness.judging.judge import judge
from harness.record.formats.load import load
from harness.record.formats.parquet import parquet
from tests.corpus.test_transactions import OWN
from tests.oracles import axioms

# Of each model the axiom that brute force tries, weakest first.
MODELS = {
    "monotonic-atomic-view": "non-monotonic-view",
    "read-atomic": "fractured-read",
    "causal-cerone": "causal-violation",
    "prefix": "prefix",
    "parallel-snapshot-isolation": "parallel",
    "snapshot-isolation": "snapshot",
    "serializable": "serial",
}
STRONGEST = {
    "list-append-fractured-read.edn": (),
    "list-append-fractured-own.edn": (),
    "list-append-fractured-late.edn": ("monotonic-atomic-view",),
    "list-append-causal-violation.edn": ("monotonic-atomic-view", "read-atomic"),
    "list-append-long-fork.edn": (
        "monotonic-atomic-view",
        "read-atomic",
        "causal-cerone",
        "parallel-snapshot-isolation",
    ),
    "rw-register-fractured-read.edn": (),
    "rw-register-long-fork.edn": (
        "monotonic-atomic-view",
        "read-atomic",
        "causal-cerone",
        "parallel-snapshot-isolation",
    ),
    "rw-register-inferred-skew.edn": tuple(model for model in MODELS if model != "serializable"),
}


@pytest.fixture(autouse=True)
def _no_sync(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small histories need not survive the machine."""
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)


@pytest.mark.parametrize("name", STRONGEST)
def test_each_model_judges_as_brute_force_does(name: str, tmp_path: Path) -> None:
    loaded = load(OWN / name, tmp_path)
    operations = [operation for chunk in chunks(loaded.history) for operation in to_operations(read_chunk(chunk))]
    explained = [model for model, axiom in MODELS.items() if axioms.holds(operations, axiom)]
    assert tuple(explained) == STRONGEST[name]
    engine = LocalEngine(2)
    verdicts = {model: judge(loaded, engine, model=model).verdict for model in MODELS}
    assert verdicts == {model: "valid" if model in explained else "invalid" for model in MODELS}


def test_two_versions_in_one_transaction_are_forbidden_from_repeatable_read_on(tmp_path: Path) -> None:
    history = load(OWN / "rw-register-non-repeatable.edn", tmp_path)
    engine = LocalEngine(2)
    models = ("read-committed", "monotonic-atomic-view", "repeatable-read", "read-atomic")
    verdicts = [judge(history, engine, model=model).verdict for model in models]
    assert verdicts == ["valid", "valid", "invalid", "invalid"]
