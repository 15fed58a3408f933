"""Names of anomalies for people."""

import pytest

from checkers.catalogue import NAMES
from checkers.words.titles import title


@pytest.mark.parametrize(
    ("anomaly", "name"),
    [
        ("G-single", "Read skew (G-single)"),
        ("G2-item", "Write skew (G2-item)"),
        ("G-single-realtime", "Read skew in real time (G-single-realtime)"),
        ("G-single-watermark", "Read skew through watermarks (G-single-watermark)"),
        (
            "G1c-watermark-process",
            "Circular information flow through watermarks within a session (G1c-watermark-process)",
        ),
        ("fractured-read", "Fractured read"),
        ("non-monotonic-view", "Non-monotonic view"),
        ("non-monotonic-view-realtime", "Non-monotonic view in real time (non-monotonic-view-realtime)"),
        ("G-UA", "Fractured update (G-UA)"),
        ("stall", "Stall"),
        ("fractured-read-process", "Fractured read within a session (fractured-read-process)"),
        ("torn-watermark", "Torn watermark"),
        ("missing-event", "Missing event"),
        ("stale-acknowledged", "Stale read (stale-acknowledged)"),
    ],
)
def test_an_anomaly_has_a_name_for_people(anomaly: str, name: str) -> None:
    assert title(anomaly) == name


def test_no_two_anomalies_have_one_name() -> None:
    assert len({title(name) for name in NAMES}) == len(NAMES)
