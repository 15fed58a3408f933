"""S21 agrees with its slow twin, and accuses no subscriber that keeps what it acknowledges."""

from dataclasses import replace

import numpy as np
from hypothesis import assume, given, settings
from msgspec import structs

from checkers.history.around import NOTHING_AROUND, Crashes
from checkers.streams.rules.sessions.lost_acknowledged import lost_acknowledged
from checkers.streams.view import StreamView
from harness.core.columns import CHECKPOINT, NEVER, OPEN, WATERMARK
from harness.core.draw import Draw
from harness.core.promises import StreamContract
from tests.amount import count
from tests.oracles import acknowledged
from tests.oracles.streams import Oracle
from tests.worlds.streams.acknowledging import acknowledging
from tests.worlds.streams.cases import beside
from tests.worlds.streams.drawn import SEEDS, broken, contracts, view_of
from tests.worlds.streams.generator import correct
from tests.worlds.streams.language import Event

MANY = settings(max_examples=count(60))
FIRST_SEQ = 100  # Of the journal, in the small language.


def crashes_of(seed: int, log: list[Event]) -> dict[int, list[int]]:
    draw = Draw(seed).stream("crashes")
    subscribers = sorted({event.subscriber for event in log})
    return {who: sorted(draw.below(len(log) + 1) for _ in range(2)) for who in subscribers}


def held(view: StreamView, crashes: dict[int, list[int]]) -> StreamView:
    """The view under a contract by which subscribers hold what they acknowledged, with those crashes."""
    pairs = [(who, at + FIRST_SEQ) for who, times in crashes.items() for at in times]
    subscriber, seq = np.array(pairs, np.int64).reshape(-1, 2).T
    around = structs.replace(NOTHING_AROUND, crashes=Crashes(subscriber=subscriber, seq=seq))
    return beside(replace(view, contract=structs.replace(view.contract, acknowledged="held")), around)


@MANY
@given(SEEDS, contracts)
def test_what_is_gone_is_what_the_oracle_misses(seed: int, contract: StreamContract) -> None:
    log, source = broken(seed | 1, contract, acknowledging)
    view, oracle, crashes = view_of(log, source, contract), Oracle(log, source, contract), crashes_of(seed, log)
    found = lost_acknowledged(held(view, crashes))
    rows = zip(found.watermark.tolist(), found.write.tolist(), strict=True)
    result = {(log[opened].subscriber, oracle.source[write]): opened for opened, write in rows}
    assert result == acknowledged.lost(oracle)
    assert len(result) == len(found.watermark)
    assert all(log[row].kind == CHECKPOINT for row in found.row.tolist())
    assert found.witnesses == acknowledged.witnesses(oracle, crashes)


@MANY
@given(SEEDS, contracts)
def test_who_keeps_what_it_acknowledges_is_not_accused(seed: int, contract: StreamContract) -> None:
    log, source = correct(seed, contract)
    assume(any(event.kind == WATERMARK for event in log))
    result: list[Event] = []
    for t, event in enumerate(log):
        result.append(event)
        opens = [e.position for e in log[t:] if e.kind == OPEN and e.subscriber == event.subscriber]
        least = min(opens, default=event.position)
        if event.kind == WATERMARK and least != NEVER:
            result.append(replace(event, kind=CHECKPOINT, position=min(least, event.position)))
    view = view_of(result, source, contract)
    assert not len(lost_acknowledged(held(view, {})).watermark)
