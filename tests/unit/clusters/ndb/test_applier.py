"""An applier gives an epoch as one transaction, once; and a table has it once, even if it comes again."""

import pytest

from clusters.ndb.binlog.messages import SCHEMA, Applied, BinlogDdl, BinlogEpoch, BinlogIncident, BinlogRow
from clusters.ndb.replica.applier import Applier
from clusters.ndb.replica.tables import Tables, every, unknown

ROWS = tuple(BinlogRow(key, value, value) for value in range(6) for key in (1, 2, "three"))


def test_an_epoch_is_one_transaction_with_its_position_and_the_order_of_each_key() -> None:
    given = Applier(0, frozenset(), is_idempotent=False).transactions(BinlogEpoch(1, 9, ROWS))
    assert given is not None
    (transaction,) = given
    assert (transaction.server, transaction.epoch) == (1, 9)
    assert Tables([transaction]).lists == {key: [*range(6)] for key in (1, 2, "three")}


def test_an_epoch_that_is_there_is_passed_over_whichever_server_gave_it() -> None:
    applier = Applier(9, frozenset(), is_idempotent=False)
    assert applier.transactions(BinlogEpoch(2, 9, ROWS)) == ()
    assert applier.transactions(BinlogEpoch(2, 10, ROWS)) != ()


def test_legal_an_idempotent_replica_applies_an_epoch_twice_and_has_it_once() -> None:
    applier = Applier(0, frozenset(), is_idempotent=True)
    tables = Tables((), unknown)
    for server in (1, 2):
        for transaction in applier.transactions(BinlogEpoch(server, 9, ROWS)) or ():
            tables.commit(transaction)
    assert tables.lists == {key: [*range(6)] for key in (1, 2, "three")}
    assert (tables.status, tables.latest) == ({1: 9, 2: 9}, 9)


@pytest.mark.parametrize(("until", "expected"), [(8, ()), (9, ()), (10, None)])
def test_an_incident_stops_the_channel_if_it_reaches_beyond_the_position(
    until: int, expected: tuple[Applied, ...] | None
) -> None:
    applier = Applier(9, frozenset(), is_idempotent=False)
    assert applier.transactions(BinlogIncident("disconnected", until)) == expected


def test_a_schema_change_may_come_again_and_has_no_position() -> None:
    given = Applier(9, frozenset(), is_idempotent=False).transactions(BinlogDdl(7, "a column")) or ()
    tables = Tables([*given, *given])
    assert (tables.schema, tables.lists, tables.latest) == (["a column"], {}, 0)
    assert [row.key for each in given for row in each.rows] == [SCHEMA]


def test_a_conflict_function_refuses_single_rows_of_a_transaction() -> None:
    whole = Applied((BinlogRow(1, 5, 1), BinlogRow(2, 6, 1)), 1, 9)
    assert Tables([whole], every).lists == {1: [5], 2: [6]}
    assert Tables([whole], lambda row, _held: row.key != 2).lists == {1: [5]}
