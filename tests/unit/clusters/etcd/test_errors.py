"""Which errors of a member say that a request changed nothing."""

import pytest

from clusters.etcd.errors import DEFINITE, is_definite


@pytest.mark.parametrize(
    ("code", "details"),
    [
        ("INVALID_ARGUMENT", "etcdserver: duplicate key given in txn request"),
        ("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted"),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests"),
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded"),
    ],
)
def test_a_declared_error_is_definite(code: str, details: str) -> None:
    assert is_definite(code, details)


@pytest.mark.parametrize(
    ("code", "details"),
    [
        ("UNAVAILABLE", "etcdserver: request timed out"),
        ("UNAVAILABLE", "etcdserver: request timed out, possibly due to previous leader failure"),
        ("UNAVAILABLE", "etcdserver: leader changed"),
        ("UNAVAILABLE", "etcdserver: server stopped"),
        ("UNAVAILABLE", "Socket closed"),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded"),
        ("CANCELLED", ""),
        ("UNKNOWN", "etcdserver: mvcc: database space exceeded"),
        ("DATA_LOSS", "etcdserver: corrupt cluster"),
        ("RESOURCE_EXHAUSTED", "grpc: received message larger than max"),
        ("INTERNAL", ""),
    ],
)
def test_what_is_not_declared_leaves_the_outcome_open(code: str, details: str) -> None:
    assert not is_definite(code, details)


def test_no_code_that_a_lost_connection_gives_is_in_the_list() -> None:
    assert not {code for code, _ in DEFINITE} & {"UNAVAILABLE", "DEADLINE_EXCEEDED", "CANCELLED", "INTERNAL"}
