"""The check of registers against its slow twin, on small random histories of every model.

SEAMARK_FUZZ_COUNT is the number of histories of each kind; without it there are some hundreds.
"""

import json
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from checkers.engine.datasets import LocalEngine
from checkers.engine.protocol import Context
from checkers.history.registers import Register
from checkers.linearizability.check import Limits, check, judged, witness_count
from checkers.linearizability.deeds import Form, RegisterHistory, RegisterOp, acts_of
from checkers.linearizability.intervals import first_misfit, is_linearizable
from checkers.linearizability.models import OneRegister, OneText, model_of
from checkers.linearizability.search import Answer, search, text_dead_end
from checkers.linearizability.sentences import problem_of
from harness.core.columns import NEVER, OK
from harness.core.record import Json
from harness.record.formats.parquet import parquet
from harness.record.formats.parquet.parquet import write_history
from tests.amount import FIRST_SEED, count
from tests.oracles import linearizability as oracle
from tests.worlds.registers.histories import INITIAL, KINDS, correct, records, spoiled

COUNT = count(150)
SEEDS = range(FIRST_SEED, FIRST_SEED + COUNT)
LIMIT = 100_000
MODELS = tuple(KINDS)


def register(model: str) -> Register:
    initial: Json = 0 if model in {"register", "cas-register"} else None
    return Register(model=model, initial=initial, is_initial_known=True, nil="absent")  # type: ignore[arg-type]  # One of its names.


def searched(model: str, deeds: list[RegisterOp]) -> Answer:
    how = register(model)
    return search(acts_of(RegisterHistory(None, tuple(deeds)), how), model_of(how, model), LIMIT)  # type: ignore[arg-type]  # One of its names.


def small(seed: int, model: str) -> list[RegisterOp]:
    draw = Random(seed)
    deeds = correct(draw, model, count=draw.randint(1, 7), processes=draw.randint(1, 5), is_unique=draw.random() < 0.4)
    return spoiled(draw, deeds) if draw.random() < 0.7 else deeds


@pytest.mark.parametrize("model", MODELS)
def test_the_search_agrees_with_all_orders(model: str) -> None:
    verdicts: Counter[bool] = Counter()
    for seed in SEEDS:
        deeds = small(seed, model)
        expected = oracle.is_linearizable(deeds, INITIAL[model])
        answer = searched(model, deeds)
        assert answer.verdict == ("linearizable" if expected else "not-linearizable"), f"seed {seed}: {deeds}"
        verdicts[expected] += 1
    print(f"{model}: {verdicts[False]} of {COUNT} histories are not linearizable")
    assert COUNT < 100 or 0.1 < verdicts[False] / COUNT < 0.9


@pytest.mark.parametrize("model", MODELS)
def test_the_dead_end_is_where_the_history_ceases_to_be_linearizable(model: str) -> None:
    for seed in SEEDS:
        deeds = small(seed, model)
        answer = searched(model, deeds)
        if answer.verdict == "linearizable":
            continue
        life = RegisterHistory(None, tuple(deeds))
        acts = acts_of(life, register(model))
        dead_end = text_dead_end(acts, OneText(""), LIMIT) if model == "key-value" else answer.dead_end
        assert dead_end is not None
        op = oracle.blocked(deeds, INITIAL[model])
        assert dead_end.blocked == op, f"seed {seed}: {deeds}"
        end = next(deed.end for deed in deeds if deed.op == op)
        before = oracle.known_at([deed for deed in deeds if deed.op != op], end)
        possible = {str(state) for state in oracle.final_states(before, INITIAL[model])}
        assert possible.issuperset(dead_end.states), f"seed {seed}: {deeds}"
        result = problem_of(life, acts, dead_end)
        assert model == "key-value" or possible.issubset(result.states), f"seed {seed}: {deeds}"


def test_gets_to_come_change_neither_the_verdict_nor_the_dead_end_of_a_text() -> None:
    """Texts that begin or repeat each other, the empty one, and ones that differ; from the empty text or another."""
    ambiguous = 0
    for seed in SEEDS:
        draw = Random(seed)
        words = draw.sample(["", "0.", "1.", "0.1.", "0", ".", "<"], draw.randint(1, 6))
        deeds = [
            deed._replace(argument=json.dumps(draw.choice(words))) if deed.f in {"put", "append"} else deed
            for deed in correct(draw, "key-value", count=6, processes=draw.randint(1, 5), is_unique=True)
        ]
        initial = draw.choice(["", "0.", "<"])
        texts = _texts(draw, deeds, initial)
        acts = acts_of(RegisterHistory(None, tuple(texts)), register("key-value"))
        answer = search(acts, OneText(initial), LIMIT)
        expected = oracle.is_linearizable(texts, initial)
        assert answer.verdict == ("linearizable" if expected else "not-linearizable"), f"seed {seed}: {texts}"
        ambiguous += not expected
        if not expected:
            dead_end = text_dead_end(acts, OneText(initial), LIMIT)
            assert dead_end is not None
            assert dead_end.blocked == oracle.blocked(texts, initial), f"seed {seed}: {texts}"
            end = next(act.end for act in acts if act.op == dead_end.blocked)
            assert text_dead_end(acts, OneText(initial), LIMIT, before=end) is None, f"seed {seed}: {texts}"
            assert text_dead_end(acts, OneText(initial), LIMIT, before=end + 1) == dead_end, f"seed {seed}: {texts}"
    assert COUNT < 100 or 0.1 < ambiguous / COUNT < 0.9


def _texts(draw: Random, deeds: list[RegisterOp], initial: str) -> list[RegisterOp]:
    """The same operations, where each answered get saw what some of the changes before its answer left."""
    found = []
    for deed in deeds:
        if deed.f == "get" and deed.end != NEVER:
            state = initial
            for other in deeds:
                if other.f != "get" and other.call < deed.end and draw.random() < 0.9:
                    asked = json.loads(other.argument)
                    state = asked if other.f == "put" else state + asked
            deed = deed._replace(result=json.dumps(state))  # noqa: PLW2901
        found.append(deed)
    return found


def test_a_text_to_which_nothing_is_appended_is_a_register() -> None:
    verdicts: Counter[str] = Counter()
    for seed in SEEDS:
        deeds = [deed for deed in small(seed, "key-value") if deed.f != "append"]
        acts = acts_of(RegisterHistory(None, tuple(deeds)), register("key-value"))
        text, plain = (search(acts, model, LIMIT) for model in (OneText(""), OneRegister("")))
        assert plain.verdict == text.verdict, f"seed {seed}: {deeds}"
        assert is_linearizable(acts, "") in {None, plain.verdict == "linearizable"}, f"seed {seed}: {deeds}"
        if plain.dead_end is not None:
            assert text_dead_end(acts, OneText(""), LIMIT) == plain.dead_end, f"seed {seed}: {deeds}"
        verdicts[plain.verdict] += 1
    assert COUNT < 100 or len(verdicts) > 1


@pytest.mark.parametrize("share", [0, 0.02])
def test_the_search_for_a_text_grows_with_its_history_and_not_with_its_clients(share: float) -> None:
    """As many operations and clients as each of the ten keys has in porcupine's largest test."""
    for seed in SEEDS[: COUNT // 30]:
        draw = Random(seed)
        deeds = correct(draw, "key-value", count=200, processes=8, is_unique=True)
        seen = [deed.result for deed in deeds if deed.f == "get" and deed.outcome == OK]
        deeds = [
            deed._replace(result=draw.choice(seen)) if deed.f == "get" and draw.random() < share else deed
            for deed in deeds
        ]
        answer = searched("key-value", deeds)
        assert answer.verdict != "undecided", f"seed {seed}"
        assert share or answer.verdict == "linearizable", f"seed {seed}"
        assert share or answer.size < 10 * len(deeds), f"seed {seed}: {answer.size}"


def test_the_test_by_intervals_agrees_with_all_orders() -> None:
    decided = 0
    for seed in range(FIRST_SEED, FIRST_SEED + 3 * COUNT):
        deeds = small(seed, "register")
        acts = acts_of(RegisterHistory(None, tuple(deeds)), register("register"))
        fits = is_linearizable(acts, "0")
        if fits is not None:
            decided += 1
            assert fits == oracle.is_linearizable(deeds, 0), f"seed {seed}: {deeds}"
        if fits is False:
            assert first_misfit(acts, "0") == oracle.blocked(deeds, 0), f"seed {seed}: {deeds}"
    assert decided > COUNT / 2


@pytest.mark.parametrize("is_unique", [True, False])
def test_the_test_by_intervals_agrees_with_the_search_on_longer_histories(is_unique: bool) -> None:
    for seed in SEEDS:
        draw = Random(seed)
        deeds = correct(draw, "register", count=40, processes=draw.randint(2, 8), is_unique=is_unique)
        deeds = spoiled(draw, deeds) if draw.random() < 0.2 else deeds
        acts = acts_of(RegisterHistory(None, tuple(deeds)), register("register"))
        fits = is_linearizable(acts, "0")
        assert fits in {None, search(acts, OneRegister("0"), LIMIT).verdict == "linearizable"}, f"seed {seed}"


@pytest.mark.parametrize("model", MODELS)
def test_a_linearizable_history_has_no_finding_however_long(model: str) -> None:
    for seed in SEEDS[: COUNT // 3]:
        draw = Random(seed)
        deeds = correct(draw, model, count=draw.randint(1, 80), processes=draw.randint(1, 10))
        assert searched(model, deeds).verdict == "linearizable", f"seed {seed}"


@pytest.mark.parametrize("model", MODELS)
def test_witnesses_are_what_could_have_shown_something(model: str) -> None:
    total = 0
    for seed in SEEDS:
        deeds = small(seed, model)
        count = witness_count(acts_of(RegisterHistory(None, tuple(deeds)), register(model)))
        assert count == oracle.witnesses(deeds), f"seed {seed}: {deeds}"
        total += count
    assert total > COUNT / 2


@pytest.mark.parametrize("model", ["register", "cas-register"])
def test_a_value_from_before_the_history_is_assumed_only_where_it_explains_all(model: str) -> None:
    """With nothing known of the beginning: a finding only if no initial value at all makes the history linearizable."""
    kept: Counter[str] = Counter()
    form = Form(model, is_keyed=False)  # type: ignore[arg-type]  # One of its names.
    for seed in SEEDS:
        deeds = small(seed, model)
        tally = judged(
            [RegisterHistory(None, tuple(deeds))], form=form, register=Register(initial=7, nil="absent"), limit=LIMIT
        )
        started = [value for value in range(10) if oracle.is_linearizable(deeds, value)]
        if tally.problem is not None:
            assert not started, f"seed {seed}: {deeds}"
            ends = {deed.op: deed.end for deed in deeds}
            latest = max(ends[oracle.blocked(deeds, value)] for value in range(10))
            assert tally.problem.end == latest, f"seed {seed}: {deeds}"  # No initial value explains that operation.
            kept["finding"] += 1
        elif tally.open:
            assert int(tally.open[0].start or "-1") in started
            kept["open"] += 1
        else:
            assert 7 in started
    assert COUNT < 100 or (kept["finding"] > 10 and kept["open"] > 10)


@pytest.mark.parametrize("model", MODELS)
def test_a_history_on_disk_has_the_verdict_of_its_keys(
    model: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)
    engine = LocalEngine(2)
    for seed in SEEDS[: COUNT // 20]:
        lives: dict[Json, list[RegisterOp]] = {f"k{key}": small(5 * seed + key, model) for key in range(3)}
        write_history(records(lives), tmp_path / "history")
        judgement = check(tmp_path / "history", Context(engine=engine, register=register(model)))
        bad = [key for key, deeds in lives.items() if not oracle.is_linearizable(deeds, INITIAL[model])]
        result = {operation.f for deeds in lives.values() for operation in deeds}
        assert len(judgement.findings) == bool(bad), f"seed {seed}, {result}"
        assert judgement.facts.get("violated", 0) == len(bad)
        assert judgement.unknown == {}


def test_of_several_registers_the_one_that_fails_first_is_explained() -> None:
    """Whatever the order in which they are decided: `judged` leaves the dead ends of all other texts unknown."""
    form, several = Form("key-value", is_keyed=True), 0
    for seed in SEEDS[: COUNT // 3]:
        lives = [RegisterHistory(str(key), tuple(small(12 * seed + key, "key-value"))) for key in range(12)]
        blocked = {
            life.key: next(deed.end for deed in life.deeds if deed.op == oracle.blocked(life.deeds, ""))
            for life in lives
            if not oracle.is_linearizable(life.deeds, "")
        }
        tally = judged(lives, form=form, register=register("key-value"), limit=LIMIT)
        assert tally.bad == len(blocked), f"seed {seed}"
        if tally.problem is not None:
            assert tally.problem.end == blocked[tally.problem.key] == min(blocked.values()), f"seed {seed}"
        assert (tally.problem is None) == (not blocked), f"seed {seed}"
        several += len(blocked) > 1
    assert COUNT < 100 or several > COUNT / 10


def test_a_larger_share_for_what_is_left_open_changes_no_verdict(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parquet, "sync_folder", Path.exists)
    lives: dict[Json, list[RegisterOp]] = {key: small(key, "cas-register") for key in range(30)}
    write_history(records(lives), tmp_path / "history")
    whole = check(tmp_path / "history", Context(engine=LocalEngine(2), register=register("cas-register")))
    halves = check(
        tmp_path / "history",
        Context(engine=LocalEngine(1), register=register("cas-register")),
        Limits(first=1, shared=LIMIT),
    )
    assert halves.findings == whole.findings
    assert (halves.witnesses, halves.unknown) == (whole.witnesses, whole.unknown)
