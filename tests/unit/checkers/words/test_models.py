"""The tables of anomalies and models: Elle's, and stricter where the axioms of a model forbid more."""

import pytest

from checkers.words import models
from checkers.words.anomalies import TRANSACTIONAL
from harness.core.errors import ScenarioError

# How many models each anomaly rules out, and which of them are weakest. Cycles of items go by their short names.
RULED_OUT = {
    "internal": ({"read-atomic", "repeatable-read"}, 16),
    "future-read": ({"read-committed"}, 27),
    "duplicate-elements": ({"read-uncommitted"}, 30),
    "incompatible-order": ({"read-committed"}, 27),
    "cyclic-versions": ({"read-uncommitted"}, 30),
    "garbage-read": (set[str](), 0),  # Of what was there before the history began no model speaks.
    "G1a": ({"read-committed"}, 27),
    "G1b": ({"read-committed"}, 27),
    "dirty-update": ({"read-committed"}, 27),
    "lost-update": ({"cursor-stability", "update-atomic"}, 14),
    "non-monotonic-view": ({"consistent-view", "monotonic-atomic-view"}, 21),
    "fractured-read": ({"consistent-view", "read-atomic", "repeatable-read"}, 19),
    "causal-violation": ({"causal-cerone", "consistent-view", "repeatable-read"}, 16),
    "prefix-violation": ({"prefix", "repeatable-read"}, 9),
    "non-monotonic-view-process": ({"strong-session-monotonic-atomic-view"}, 9),
    "fractured-read-process": ({"strong-session-read-atomic"}, 8),
    "causal-violation-process": ({"strong-session-causal"}, 7),
    "prefix-violation-process": ({"strong-session-prefix"}, 5),
    "G0": ({"read-uncommitted"}, 30),
    "G1c": ({"read-committed"}, 27),
    "G-single": ({"consistent-view", "repeatable-read"}, 12),
    "G-nonadjacent": ({"repeatable-read", "snapshot-isolation"}, 7),
    "G2-item": ({"repeatable-read"}, 4),
    "G0-process": ({"strong-session-read-uncommitted"}, 13),
    "G1c-process": ({"strong-session-read-committed"}, 11),
    "G-single-process": ({"strong-session-parallel-snapshot-isolation"}, 5),
    "G-nonadjacent-process": ({"strong-session-snapshot-isolation"}, 4),
    "G2-item-process": ({"strong-session-serializable"}, 2),
    "G0-realtime": ({"strong-read-uncommitted"}, 4),
    "G1c-realtime": ({"strong-read-committed"}, 3),
    "G-single-realtime": ({"strong-snapshot-isolation"}, 2),
    "G-nonadjacent-realtime": ({"strong-snapshot-isolation"}, 2),
    "G2-item-realtime": ({"strict-serializable"}, 1),
}


def test_the_table_speaks_of_every_anomaly_that_is_sought() -> None:
    assert set(RULED_OUT) == set(TRANSACTIONAL)


@pytest.mark.parametrize("anomaly", RULED_OUT)
def test_an_anomaly_rules_out_the_models_of_the_table(anomaly: str) -> None:
    weakest, count = RULED_OUT[anomaly]
    ruled_out = models.ruled_out([anomaly])
    assert set(models.weakest(ruled_out)) == weakest
    assert len(ruled_out) == count


def test_every_name_in_the_table_of_models_is_a_model() -> None:
    for model in models.MODELS:
        assert models.canonical(model) == model
        assert models.prohibited((model,)) >= frozenset()
    assert {models.canonical(alias) for alias in models.ALIASES} <= set(models.MODELS)


@pytest.mark.parametrize(
    ("written", "model"),
    [
        ("SI", "snapshot-isolation"),
        ("si", "snapshot-isolation"),
        ("Snapshot Isolation", "snapshot-isolation"),
        ("READ_COMMITTED", "read-committed"),
        ("pl-2+", "consistent-view"),
        ("strict-1SR", "strict-serializable"),
        ("pram", "PRAM"),
    ],
)
def test_a_model_is_understood_however_it_is_written(written: str, model: str) -> None:
    assert models.canonical(written) == model


def test_an_unknown_model_is_answered_with_the_nearest_names() -> None:
    with pytest.raises(ScenarioError, match="did you mean serializable"):
        models.canonical("Serialisable")


def test_the_stronger_model_prohibits_what_the_weaker_does() -> None:
    strict, serializable = models.prohibited(), models.prohibited(("serializable",))
    assert serializable < strict
    assert "G-single-realtime" in strict - serializable


def test_an_unknown_model_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(ScenarioError, match="did you mean serializable"):
        models.prohibited(("serialisable",))


def test_what_implies_a_prohibited_anomaly_is_prohibited() -> None:
    assert models.prohibited((), ["G1"]) == {
        "G0",
        "G1",
        "G1a",
        "G1b",
        "G1c",
        "incompatible-order",
        "dirty-update",
        "future-read",
    }


def test_strongest_and_weakest_are_the_ends_of_a_chain() -> None:
    chain = ("serializable", "snapshot-isolation", "read-committed")
    assert models.strongest(chain) == ("serializable",)
    assert models.weakest(chain) == ("read-committed",)
