"""Checks that have become part of others keep their promises."""

import msgspec
import pytest

from harness.core.promises import RENAMED, Promise
from harness.judging.checks import general, require_known

OLD = b'{"id": "P", "text": "It stays.", "source": "a file", "forbids": ["%b"], "check": "%b"}'


@pytest.mark.parametrize(
    ("check", "anomaly"), [(b"acknowledgements", b"lost-acknowledged"), (b"epoch-owners", b"epoch-fork")]
)
def test_a_promise_that_names_a_check_by_its_former_name_is_judged_by_the_check_of_today(
    check: bytes, anomaly: bytes
) -> None:
    promise = msgspec.json.decode(OLD % (anomaly, check), type=Promise)
    assert promise.check == "streams"
    require_known([promise], "a file")


def test_no_former_name_is_used_again() -> None:
    assert RENAMED.keys().isdisjoint(each.name for each in general())
