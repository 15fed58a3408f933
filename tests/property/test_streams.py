"""The stream rules agree with their slow twins on random small streams, and accuse no correct one."""

from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.delivery import missing_events, torn_units
from checkers.stream_view import StreamView, stream_view
from checkers.watermark import late_events, regressions
from harness.core.columns import BACKFILL, CLOSE, COMMIT, FAIL, GAP, INFO, NEVER, OK, OPEN, ROW, WATERMARK
from harness.core.promises import StreamContract
from tests.oracles.streams import Oracle
from tests.stream_language import Event, Write, deliveries_of, source_of

TOP = 6  # Positions are few, so that they often meet.
KINDS = (ROW,) * 10 + (WATERMARK,) * 5 + (OPEN, GAP, CLOSE, BACKFILL, COMMIT)

contracts = st.builds(
    StreamContract,
    closed=st.sampled_from(["<", "<="]),
    cut=st.sampled_from(["delivery", "position", "unknown"]),
    position=st.sampled_from(["offset", "epoch"]),
    resume=st.sampled_from(["after", "at"]),
    atomic_unit=st.sampled_from(["none", "response", "transaction", "transaction", "epoch"]),
    unit_scope=st.sampled_from(["partition", "global"]),
    unit_rows=st.sampled_from(["final", "each"]),
    versions=st.sampled_from(["every", "every", "latest-per-epoch", "latest"]),
    is_position_unique=st.booleans(),
    identity=st.sampled_from(["position+key", "position+key+ordinal", "position+key+value"]),
    wm_scope=st.sampled_from(["session", "subscriber", "partition", "global"]),
    has_noop_events=st.sampled_from([True, True, False]),
    system_events=st.sampled_from([(), (), ("expiry",)]),
)


@st.composite
def sources(draw: st.DrawFn) -> list[Write]:
    """Operations of one to three writes; some failed, some without position, some sharing one."""
    result = []
    for op in range(draw(st.integers(0, 4))):
        outcome = draw(st.sampled_from([OK, OK, OK, INFO, FAIL]))
        position = draw(st.sampled_from([*range(1, TOP + 1), NEVER]))
        for ordinal in range(draw(st.integers(1, 3))):
            key = draw(st.integers(0, 2))
            value = draw(st.sampled_from([10 * op + ordinal] * 9 + [0]))
            epoch, span = draw(st.integers(1, 2)), draw(st.sampled_from([-1, key % 2]))
            result.append(
                Write(
                    op=op,
                    outcome=outcome,
                    key=key,
                    value=value,
                    position=position,
                    ordinal=ordinal,
                    epoch=epoch,
                    span=span,
                )
            )
    return result


@st.composite
def logs(draw: st.DrawFn, source: list[Write]) -> list[Event]:
    """Events of one or two subscribers with up to two sessions each, mostly rows of the source."""
    log = []
    for _ in range(draw(st.integers(0, 14))):
        kind = draw(st.sampled_from(KINDS))
        event = Event(
            subscriber=draw(st.sampled_from([0, 0, 0, 1])),
            session=draw(st.sampled_from([1, 1, 1, 2])),
            kind=kind,
            span=draw(st.sampled_from([-1, -1, 0, 1])),
            epoch=draw(st.integers(1, 2)),
            position=draw(st.integers(0, TOP)),
        )
        log.append(_completed(draw, event, source))
    return log


def _completed(draw: st.DrawFn, event: Event, source: list[Write]) -> Event:
    if event.kind in (ROW, BACKFILL):
        if source and draw(st.sampled_from([True] * 9 + [False])):
            write = draw(st.sampled_from(source))
            position = write.position if write.position != NEVER else event.position
            return _event(event, key=write.key, value=write.value, position=position, ordinal=write.ordinal)
        key, value, ordinal = draw(st.integers(0, 2)), draw(st.sampled_from([0, 1, 11, NEVER])), draw(st.integers(0, 1))
        return _event(event, key=key, value=value, position=event.position, ordinal=ordinal)
    if event.kind in (OPEN, GAP, CLOSE):
        key = draw(st.sampled_from([NEVER, NEVER, 0, 1]))
        position = draw(st.sampled_from([0, 0, 1, 3, NEVER])) if event.kind == OPEN else NEVER
        return _event(event, key=key, value=NEVER, position=position, ordinal=NEVER)
    return event


def _event(event: Event, *, key: int, value: int, position: int, ordinal: int) -> Event:
    return Event(
        subscriber=event.subscriber,
        session=event.session,
        kind=event.kind,
        span=event.span,
        epoch=event.epoch,
        key=key,
        value=value,
        position=position,
        ordinal=ordinal,
    )


@st.composite
def streams(draw: st.DrawFn) -> tuple[list[Event], list[Write]]:
    source = draw(sources())
    return draw(logs(source)), source


def view_of(log: list[Event], source: list[Write], contract: StreamContract) -> StreamView:
    return stream_view(deliveries_of(log), source_of(source), contract)


@settings(deadline=None, max_examples=1500)
@given(streams(), contracts)
def test_late_events_and_regressions_are_those_of_the_oracle(
    stream: tuple[list[Event], list[Write]], contract: StreamContract
) -> None:
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    below, equal = oracle.late()
    late, boundary = late_events(view)
    assert dict(zip(late.row.tolist(), late.watermark.tolist(), strict=True)) == below
    if contract.closed == "<":
        assert (len(boundary.row), boundary.legal) == (0, len(equal))
    else:
        assert dict(zip(boundary.row.tolist(), boundary.watermark.tolist(), strict=True)) == equal
    assert late.witnesses >= len(late.row)
    assert boundary.witnesses >= len(boundary.row)
    backward = regressions(view)
    assert set(backward.watermark.tolist()) == oracle.regressions()
    assert all(earlier < later for earlier, later in zip(backward.row, backward.watermark, strict=True))
    assert backward.witnesses >= len(backward.watermark)


@settings(deadline=None, max_examples=1500)
@given(streams(), contracts)
def test_missing_events_are_those_of_the_oracle(
    stream: tuple[list[Event], list[Write]], contract: StreamContract
) -> None:
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = missing_events(view)
    found = {
        (oracle.scope(oracle.log[mark]), oracle.source[write]): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert found == oracle.missing()
    assert ruling.witnesses >= len(set(ruling.watermark.tolist()))


@settings(deadline=None, max_examples=1500)
@given(streams(), contracts)
def test_torn_units_are_those_of_the_oracle(
    stream: tuple[list[Event], list[Write]], contract: StreamContract
) -> None:
    view, oracle = view_of(*stream, contract), Oracle(*stream, contract)
    ruling = torn_units(view)
    found = {
        (oracle.scope(oracle.log[mark]), oracle.unit(oracle.source[write])): mark
        for mark, write in zip(ruling.watermark.tolist(), ruling.write.tolist(), strict=True)
    }
    assert len(found) == len(ruling.watermark)
    assert found == oracle.torn()
    assert all(row < mark for row, mark in zip(ruling.row.tolist(), ruling.watermark.tolist(), strict=True))
