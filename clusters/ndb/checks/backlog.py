"""What a slow subscriber may cost others: guarantees G26 and G29.

A node keeps epochs for its subscribers up to a bound, and one more for a moment. A subscriber acknowledges epochs even
while its user sleeps, so no node may disconnect it as lagging then, unless a fault could have delayed it.

Witnesses:
- memory-growth: probes at half of the bound or more;
- user-blocks-acknowledgements: probes in naps at least as long as a silent subscriber is tolerated, in an open session.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from checkers.engine.protocol import Check, Context
from checkers.history.faults import disturbed
from checkers.history.intervals import Interval, is_met, merged
from checkers.history.names import Dictionary
from checkers.history.tables import Sample, Session, State, samples, seconds, sessions, states, windows
from checkers.history.troubles import Trouble, judgement
from checkers.state.liveness import CHECKER as LIVENESS
from checkers.state.liveness import NAP_REACH_NS
from checkers.words.anomalies import Anomaly, Cause
from harness.core.promises import Bounds
from harness.core.verdict import Judgement

CHECKER: Final = "backlog"
GROWTH, BLOCKS = "memory-growth", "user-blocks-acknowledgements"
ANOMALIES: Final = {
    GROWTH: Anomaly(meaning="Buffers grew without the bound that is declared.", cause=Cause.REFUSED),
    BLOCKS: Anomaly(meaning="A subscriber was disconnected as lagging because its user was slow.", cause=Cause.REFUSED),
}


def check(history: Path, context: Context) -> Judgement:
    """The judgement of buffers and disconnections. Raises HistoryError if the files of the history are damaged.

    Fingerprints are those of the check `liveness`, which found both anomalies before.
    """
    probes = samples(history, "records", "user-lag")
    known = Dictionary(history)
    large, grown = _growth(probes["records"], context.bounds)
    disconnects = states(history, known, "disconnect")["disconnect"]
    faulty = disturbed(windows(history, {}), context.bounds.grace_ns)
    witnesses = {GROWTH: large, BLOCKS: _long_naps(probes["user-lag"], sessions(history, known), context.bounds)}
    troubles = [*grown, *_blocked(disconnects, probes["user-lag"], faulty)]
    return judgement(CHECKER, ANOMALIES, troubles, witnesses, scope=(LIVENESS,))


def _growth(probes: Sequence[Sample], bounds: Bounds) -> tuple[int, list[Trouble]]:
    """The number of probes that are near the bound, and the violations by those beyond it."""
    limit = bounds.records
    if limit is None:
        return 0, []
    troubles = [
        Trouble(
            GROWTH,
            f"{sample.node} kept {sample.value} epochs for subscribers at {seconds(sample.ns)}; it may keep {limit}, "
            "and one more for a moment.",
            (sample.node, sample.ns, sample.value),
            group=sample.node,
        )
        for sample in probes
        if sample.value > limit + 1
    ]
    return sum(2 * sample.value >= limit for sample in probes), troubles


def _blocked(disconnects: Sequence[State], naps: Sequence[Sample], faulty: Sequence[Interval]) -> Iterator[Trouble]:
    """Violations by subscribers that were disconnected because their user slept."""
    naps_ns: dict[str, list[int]] = {}
    for sample in sorted(naps, key=lambda sample: sample.ns):
        naps_ns.setdefault(sample.node, []).append(sample.ns)
    for state in disconnects:
        if _is_asleep(state, naps_ns, faulty):
            sentence = (
                f"{state.node} disconnected {state.key} as lagging at {seconds(state.ns)} while the user of "
                f"{state.key} was slow, and no fault was in force: acknowledgements must not wait for the user."
            )
            who = str(state.key)
            yield Trouble(BLOCKS, sentence, (who, state.node, state.position), group=who)


def _is_asleep(state: State, naps_ns: Mapping[str, Sequence[int]], faulty: Sequence[Interval]) -> bool:
    """True for a disconnection for lag, during a nap, when no fault could have delayed the acknowledgements."""
    match state.value:
        case ["lagging", _, int(silent_ns)]:
            since_ns = state.ns - silent_ns
        case _:
            return False
    naps = naps_ns.get(str(state.key), ())
    is_napping = bisect_left(naps, since_ns) < bisect_right(naps, state.ns)
    return is_napping and not is_met(since_ns, state.ns, faulty)


def _long_naps(naps: Sequence[Sample], every: Sequence[Session], bounds: Bounds) -> int:
    """The number of probes of long naps in a session that is open."""
    opened = {
        who: merged((one.marks[0].ns, one.marks[-1].ns) for one in every if one.subscriber == who)
        for who in {one.subscriber for one in every}
    }
    return sum(
        length_ns >= (bounds.disconnect_ns or 0) and is_met(sample.ns, sample.ns, opened.get(sample.node, []))
        for sample, length_ns in _with_nap_length(naps)
    )


def _with_nap_length(naps: Sequence[Sample]) -> Iterator[tuple[Sample, int]]:
    """Each probe of a nap, with a lower bound of how long the nap had lasted then."""
    begun: dict[str, tuple[int, int]] = {}
    for sample in naps:
        first_ns, last_ns = begun.get(sample.node, (sample.ns, sample.ns))
        if sample.ns - last_ns > NAP_REACH_NS:
            first_ns = sample.ns
        begun[sample.node] = first_ns, sample.ns
        yield sample, sample.ns - first_ns


CHECKS: Final = (Check(name=CHECKER, anomalies=ANOMALIES, judge=check),)
