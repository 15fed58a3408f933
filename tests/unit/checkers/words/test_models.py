"""The tables of anomalies and models: against the figures that were computed from Elle's."""

import pytest

from checkers.words import models
from checkers.words.anomalies import TRANSACTIONAL
from harness.core.errors import ScenarioError

# How many models each anomaly rules out, and which of them are weakest. Cycles of items go by their short names.
RULED_OUT = {
    "G0": ({"read-uncommitted"}, 25),
    "G0-process": ({"strong-session-read-uncommitted"}, 8),
    "G0-realtime": ({"strong-read-uncommitted"}, 4),
    "G1a": ({"read-committed"}, 22),
    "G1b": ({"read-committed"}, 22),
    "G1c": ({"read-committed"}, 22),
    "G1c-process": ({"strong-session-read-committed"}, 6),
    "G1c-realtime": ({"strong-read-committed"}, 3),
    "G-single": ({"consistent-view", "repeatable-read"}, 10),
    "G-single-process": ({"strong-session-snapshot-isolation"}, 4),
    "G-single-realtime": ({"strong-snapshot-isolation"}, 2),
    "G-nonadjacent": ({"repeatable-read", "snapshot-isolation"}, 7),
    "G-nonadjacent-process": ({"strong-session-snapshot-isolation"}, 4),
    "G-nonadjacent-realtime": ({"strong-snapshot-isolation"}, 2),
    "G2-item": ({"repeatable-read"}, 4),
    "G2-item-process": ({"strong-session-serializable"}, 2),
    "G2-item-realtime": ({"strict-serializable"}, 1),
    "dirty-update": ({"read-committed"}, 22),
    "cyclic-versions": ({"read-uncommitted"}, 25),
    "duplicate-elements": ({"read-uncommitted"}, 25),
    "garbage-read": (set[str](), 0),  # Of what was there before the history began no model speaks.
    "future-read": ({"read-committed"}, 22),
    "incompatible-order": ({"read-committed"}, 22),
    "internal": ({"read-atomic"}, 11),
    "lost-update": ({"cursor-stability", "update-atomic"}, 13),
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
