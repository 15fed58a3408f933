import numpy as np
import pytest

from harness.core.columns import NAMED
from harness.core.record import Json
from harness.record.formats.parquet.names import Names, plain_ids


@pytest.mark.parametrize(
    ("values", "is_plain"),
    [
        ([], True),
        ([0, 1, NAMED - 1], True),
        ([1, True], False),
        ([True], False),
        ([None], False),
        ([1 << 63], False),
        ([[1]], False),
        ([1, 2.0], False),
        ([-1, 2], False),
        ([NAMED], False),
        ([1, None], False),
        (["1"], False),
    ],
)
def test_plain_integers_are_their_own_ids_and_nothing_else_is(values: list[Json], is_plain: bool) -> None:
    assert (plain_ids(values) is not None) is is_plain
    names, one_by_one = Names(), Names()
    ids = names.ids(values)
    assert ids.tolist() == [one_by_one.id(value) for value in values]
    assert ids.dtype == np.int64
    assert names.rows() == one_by_one.rows()
