"""The tables of anomalies and models: Elle's, and stricter where the axioms of a model forbid more."""

import pytest

from checkers.words import models
from checkers.words.transactional import AXIOMS, CYCLES, LITERATURE, ORDERS, TRANSACTIONAL
from harness.core.errors import ScenarioError

# How many models each anomaly rules out, and which of them are weakest. Cycles of items go by their short names.
RULED_OUT = {
    "internal": ({"read-atomic", "repeatable-read"}, 20),
    "missed-own-write": ({"read-uncommitted"}, 35),
    "future-read": ({"read-uncommitted"}, 35),
    "duplicate-elements": ({"read-uncommitted"}, 35),
    "incompatible-order": ({"read-committed"}, 32),
    "cyclic-versions": ({"read-uncommitted"}, 35),
    "garbage-read": (set[str](), 0),  # Of what was there before the history began no model speaks,
    "unwritten-read": ({"read-uncommitted"}, 35),  # unless it is declared.
    "G1a": ({"read-committed"}, 32),
    "G1b": ({"read-committed"}, 32),
    "dirty-update": ({"read-committed"}, 32),
    "lost-update": ({"cursor-stability", "update-atomic"}, 15),
    "G-UA": ({"consistent-view", "repeatable-read", "update-atomic"}, 14),
    "non-monotonic-view": ({"consistent-view", "monotonic-atomic-view"}, 26),
    "fractured-read": ({"consistent-view", "read-atomic", "repeatable-read"}, 23),
    "causal-violation": ({"causal-cerone", "consistent-view", "repeatable-read"}, 19),
    "prefix-violation": ({"prefix", "repeatable-read"}, 10),
    "non-monotonic-view-process": ({"strong-session-monotonic-atomic-view"}, 14),
    "fractured-read-process": ({"strong-session-read-atomic"}, 12),
    "causal-violation-process": ({"strong-session-causal"}, 10),
    "prefix-violation-process": ({"strong-session-prefix"}, 6),
    "non-monotonic-view-realtime": ({"strong-monotonic-atomic-view"}, 7),
    "fractured-read-realtime": ({"strong-read-atomic"}, 6),
    "causal-violation-realtime": ({"strong-causal"}, 5),
    "prefix-violation-realtime": ({"strong-prefix"}, 3),
    "G0": ({"read-uncommitted"}, 35),
    "G1c": ({"read-committed"}, 32),
    "G-single": ({"consistent-view", "repeatable-read"}, 13),
    "G-nonadjacent": ({"repeatable-read", "snapshot-isolation"}, 7),
    "G2-item": ({"repeatable-read"}, 4),
    "G0-process": ({"strong-session-read-uncommitted"}, 18),
    "G1c-process": ({"strong-session-read-committed"}, 16),
    "G-single-process": ({"strong-session-parallel-snapshot-isolation"}, 6),
    "G-nonadjacent-process": ({"strong-session-snapshot-isolation"}, 4),
    "G2-item-process": ({"strong-session-serializable"}, 2),
    "G0-realtime": ({"strong-read-uncommitted"}, 9),
    "G1c-realtime": ({"strong-read-committed"}, 8),
    "G-single-realtime": ({"strong-parallel-snapshot-isolation"}, 3),
    "G-nonadjacent-realtime": ({"strong-snapshot-isolation"}, 2),
    "G2-item-realtime": ({"strict-serializable"}, 1),
}


def test_the_table_speaks_of_every_cycle_and_broken_axiom() -> None:
    assert {name + order for name in (*CYCLES, *AXIOMS) for order in ORDERS} <= set(RULED_OUT) <= set(TRANSACTIONAL)


def test_every_model_that_a_record_names_exists_and_without_an_order_of_time_by_that_name() -> None:
    for name, record in {**TRANSACTIONAL, **LITERATURE}.items():
        named = record.forbidden_by.split()
        assert name.endswith(("-process", "-realtime")) or set(named) <= set(models.MODELS), name


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


@pytest.mark.parametrize(
    ("written", "nearest"),
    [
        ("snapshoot", "snapshot-isolation"),
        ("seri", "serializable"),
        ("lin", "linearizable"),
        ("repeatable", "repeatable-read"),
        ("PL2", "PL-2"),
    ],
)
def test_the_beginning_of_a_name_is_answered_with_that_name(written: str, nearest: str) -> None:
    with pytest.raises(ScenarioError, match=f"did you mean {nearest}"):
        models.canonical(written)


@pytest.mark.parametrize("written", ["", "nonsense", "ACID"])
def test_what_is_like_no_model_is_answered_with_where_they_are_listed(written: str) -> None:
    with pytest.raises(ScenarioError, match="; seamark check --help lists them"):
        models.canonical(written)


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


def test_a_model_that_no_check_decides_is_refused_with_the_nearest_that_one_does() -> None:
    assert {name for name in models.MODELS if not models.prohibited((name,))} == set(models.NEAREST)
    for name, nearest in models.NEAREST.items():
        assert models.decided(nearest) == nearest
        if name in models.UNDECIDED:
            with pytest.raises(ScenarioError, match=f"no check decides the model {name}: the nearest one is {nearest}"):
                models.decided(name)
    with pytest.raises(ScenarioError, match="or for single registers linearizable"):
        models.decided("sequential")
    assert models.decided("Linearizable") == "linearizable"
