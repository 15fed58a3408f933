"""Which answers to COMMIT say that nothing was committed."""

import re

import pytest

from clusters.postgres.sqlstates import DEFINITE, is_definite


@pytest.mark.parametrize("sqlstate", ["40001", "40P01", "23505", "25P02", "53100"])
def test_a_declared_error_is_definite(sqlstate: str) -> None:
    assert is_definite("ERROR", sqlstate)


@pytest.mark.parametrize("severity", ["FATAL", "PANIC", "WARNING", "NOTICE", ""])
def test_no_other_severity_is_definite_whatever_its_code(severity: str) -> None:
    assert not any(is_definite(severity, sqlstate) for sqlstate in DEFINITE)


@pytest.mark.parametrize(
    "sqlstate",
    [
        "57P01",  # admin_shutdown: in the middle of a commit, perhaps behind its record
        "57P02",  # crash_shutdown
        "08006",  # connection_failure
        "40003",  # statement_completion_unknown, in so many words
        "58030",  # io_error
        "XX000",  # internal_error
        "XX001",  # data_corrupted
        "01000",
        "00000",
        "",
    ],
)
def test_what_is_not_declared_leaves_the_outcome_open(sqlstate: str) -> None:
    assert not is_definite("ERROR", sqlstate)


def test_the_list_is_of_codes_and_says_what_each_is() -> None:
    assert all(re.fullmatch(r"[0-9A-Z]{5}", sqlstate) for sqlstate in DEFINITE)
    assert all(re.match(r"[a-z_]+", why) for why in DEFINITE.values())
