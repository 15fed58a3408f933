"""Verdicts: their precedence, words and exit codes, as the design's table has them."""

import pytest

from harness.core.verdict import Verdict, worst

TABLE = [
    ("invalid", "ANOMALY", 1),
    ("error", "HARNESS ERROR", 4),
    ("vacuous", "VACUOUS", 3),
    ("unknown", "UNKNOWN", 2),
    ("valid", "PASS", 0),
]


def test_the_verdicts_are_those_of_the_table_in_its_order() -> None:
    assert [(v.value, v.word, v.exit_code) for v in Verdict] == TABLE


@pytest.mark.parametrize("higher", range(len(TABLE)))
def test_a_verdict_outranks_all_below_it(higher: int) -> None:
    verdicts = list(Verdict)
    for lower in range(higher, len(verdicts)):
        assert worst([verdicts[lower], verdicts[higher]]) is verdicts[higher]


def test_no_result_is_no_verdict() -> None:
    with pytest.raises(ValueError, match="empty"):
        worst([])
