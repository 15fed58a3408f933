"""Streams drawn at random: their seeds, contracts, logs that were broken, and the view of a log."""

from collections.abc import Callable

from hypothesis import assume, settings
from hypothesis import strategies as st

from checkers.streams.view import StreamView, defect, stream_view
from harness.core.promises import StreamContract
from tests.amount import count
from tests.worlds.streams.generator import damaged
from tests.worlds.streams.language import Event, Write, deliveries_of, source_of

SEEDS = st.integers(0, 2**40)


MANY = settings(max_examples=count(125))


def broken(
    seed: int, contract: StreamContract, spoiled: Callable[[int, list[Event]], list[Event]]
) -> tuple[list[Event], list[Write]]:
    """A damaged stream, every other one spoiled further, if the contract lets it be judged."""
    log, source = damaged(seed, contract)
    log = spoiled(seed, log) if seed % 2 else log
    assume(log)
    assume(defect(deliveries_of(log), contract) is None)
    return log, source


def view_of(log: list[Event], source: list[Write], contract: StreamContract) -> StreamView:
    return stream_view(deliveries_of(log), source_of(source), contract)


any_contract = st.builds(
    StreamContract,
    closed=st.sampled_from(["<", "<="]),
    cut=st.sampled_from(["delivery", "position", "unknown"]),
    position=st.sampled_from(["offset", "epoch"]),
    resume=st.sampled_from(["after", "at"]),
    atomic_unit=st.sampled_from(["none", "response", "transaction", "transaction", "epoch"]),
    unit_scope=st.sampled_from(["partition", "global"]),
    unit_rows=st.sampled_from(["final", "each"]),
    versions=st.sampled_from(["every", "every", "latest-per-epoch", "latest"]),
    is_position_unique=st.sampled_from([True, True, False]),
    identity=st.sampled_from(["position+key", "position+key+ordinal", "position+key+value"]),
    wm_scope=st.sampled_from(["session", "subscriber", "partition", "global"]),
    has_noop_events=st.sampled_from([True, True, False]),
    system_events=st.sampled_from([(), (), ("expiry",)]),
    order_key=st.sampled_from(["none", "key", "partition", "global"]),
    delivery=st.sampled_from(["exactly-once", "at-least-once", "at-most-once"]),
    replay=st.sampled_from(["resume", "session"]),
    is_position_global=st.sampled_from([True, True, False]),
    has_gap_marker=st.booleans(),
    wm_idle=st.sampled_from(["moves", "moves", "rests"]),
    realtime=st.sampled_from(["none", "follows"]),
    is_whole_least=st.sampled_from([False, False, True]),
    epochs=st.sampled_from(["units", "owners"]),
    backfill=st.sampled_from(["partial", "whole"]),
    events_at_position=st.sampled_from(["many", "many", "many", "one"]),
    tail=st.sampled_from(["open", "settled"]),
    resumes_behind_checkpoint=st.booleans(),
)


# A position and a key are an identity only where a position has one event for each key.
contracts = any_contract.filter(lambda contract: defect(deliveries_of([]), contract) is None)
