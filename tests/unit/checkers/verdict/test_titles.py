"""Names of anomalies for people."""

import pytest

from checkers.catalogue import RECORDS
from checkers.verdict.titles import meaning, title
from checkers.words.anomalies import Anomaly


@pytest.mark.parametrize(
    ("anomaly", "name"),
    [
        ("G-single", "Read skew (G-single)"),
        ("G2-item", "Write skew (G2-item)"),
        ("G-single-realtime", "Stale read (G-single-realtime)"),
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
    assert len({title(name) for name in RECORDS}) == len(RECORDS)


def test_an_anomaly_that_a_system_declares_has_the_title_of_its_record() -> None:
    own = {"cut-not-closed": Anomaly(meaning="It lacks a cause.", title="Epoch without its cause")}
    assert title("cut-not-closed", own) == "Epoch without its cause (cut-not-closed)"
    assert title("cut-not-closed") == "Cut not closed"
    assert meaning("cut-not-closed", own) == "It lacks a cause."
    assert (meaning("cut-not-closed"), bool(meaning("G0"))) == ("", True)
