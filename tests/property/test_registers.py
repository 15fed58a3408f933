"""The check of registers against its slow twin, and against all serial orders, on small random histories."""

from random import Random

from hypothesis import example, given, note, settings
from hypothesis import strategies as st

from checkers.engine.datasets import LocalEngine
from checkers.history.registers import Initial, Order, Trust
from checkers.history.transactions import Operation
from checkers.transactions.check import check_sources
from checkers.transactions.options import Options
from checkers.words.models import implied
from harness.core.verdict import Judgement
from tests.amount import count
from tests.oracles import registers as oracle
from tests.oracles.serial_orders import has_serial_order
from tests.oracles.serializability import occurrences, with_time
from tests.worlds.drawn_transactions import ALL, cut, randomness
from tests.worlds.registers import transactions as histories

ENGINE = LocalEngine(2)
seeds = st.integers(0, 2**48)


def drawn_order(draw: Random) -> Order:
    return Order(
        writes_follow_reads=draw.random() < 0.7,
        commits=draw.random() < 0.3,
        process=draw.choice(list(Trust)),
        real_time=draw.choice(list(Trust)),
    )


def judged(draw: Random, operations: list[Operation], options: Options) -> Judgement:
    return check_sources(cut(draw, operations), ENGINE, options)


def drawn_options(draw: Random, order: Order, prohibited: frozenset[str] = ALL) -> Options:
    return Options(
        prohibited=(prohibited,),
        order=order,
        initial=Initial(is_declared=True),
        slice_ids=draw.choice((1, 2, 3, 100)),
        partitions=draw.choice((1, 2, 5)),
    )


@settings(max_examples=count(100))
@given(seed=seeds)
@example(seed=180490261851811)  # A step without its ww makes a G-single, which implies the oracle's G-single-realtime.
@example(seed=2321910147)  # A reset that failed, of a register that was read as it was at first.
def test_spoiled_histories_have_the_anomalies_of_the_oracle(seed: int) -> None:
    draw = randomness(seed)
    make = draw.choice((histories.correct, histories.stale))
    operations = histories.spoiled(draw, make(draw, count=draw.randint(1, 7), keys=draw.randint(1, 3)))
    order = drawn_order(draw)
    note("\n".join(map(str, [order, *operations])))
    judgement = judged(draw, operations, drawn_options(draw, order))
    clean = oracle.cleaned(operations)
    pairs, circles = oracle.labels(clean, order)
    # The check leaves out a ww that others imply, and may then call a step by a weaker label of its two operations.
    least, most = (occurrences(with_time(pairs, clean), is_said_once=each) for each in (True, False))
    expected = {**oracle.others(operations), **({"cyclic-versions": circles} if circles else {})}
    restated = judgement.facts["restated_anomalies"]
    assert isinstance(restated, dict)
    found = {finding.anomaly: finding.count for finding in judgement.findings}
    found |= {name: count for name, count in restated.items() if isinstance(count, int)}
    if not expected and not least and found:  # The axioms know more orders of versions than the sources give.
        assert order.commits or not has_serial_order(operations, in_real_time=True)  # The twin knows no commits.
    else:
        cycles = {name: found.pop(name) for name in [*found] if name not in expected}
        assert found == expected
        assert least.keys() <= implied(cycles)
        assert cycles.keys() <= least.keys() | most.keys()
        assert all(least.get(name, 1) <= cycles[name] <= max(most.get(name, 0), least.get(name, 0)) for name in cycles)
    assert bool(judgement.unknown) == bool(oracle.ambiguous(operations)[0])


@settings(max_examples=count(40))
@given(seed=seeds)
def test_a_correct_history_has_no_finding_whatever_orders_the_versions(seed: int) -> None:
    draw = randomness(seed)
    operations = histories.correct(draw, count=draw.randint(1, 60), processes=draw.randint(1, 8))
    judgement = judged(draw, operations, drawn_options(draw, drawn_order(draw)))
    assert judgement.findings == ()
    assert judgement.unknown == {}


@settings(max_examples=count(30))
@given(seed=seeds)
@example(seed=497)  # A step from what a transaction read, that wrote a value which another wrote too.
def test_findings_do_not_depend_on_how_the_history_is_cut(seed: int) -> None:
    draw = randomness(seed)
    operations = histories.spoiled(draw, histories.stale(draw, count=draw.randint(2, 60), processes=draw.randint(1, 8)))
    order = drawn_order(draw)
    one, other = (judged(draw, operations, drawn_options(draw, order)) for _ in range(2))
    assert one.findings == other.findings
    assert one.witnesses == other.witnesses
    assert one.unknown == other.unknown
    assert one.facts.get("unwritten_reads") == other.facts.get("unwritten_reads")
