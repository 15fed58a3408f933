import numpy as np
import pytest

from harness.core.columns import NAMED, NEVER
from harness.core.draw import Draw
from harness.core.record import Json
from harness.record.formats.parquet import bulk_names
from harness.record.formats.parquet.bulk_names import BulkNames, ends_of, texts_of, without_ends
from harness.record.formats.parquet.names import Names, json_text, plain_ids


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


@pytest.mark.parametrize("pending", [0, 100, 1 << 20])
def test_values_in_bulk_get_the_ids_of_values_one_by_one(pending: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_names, "_PENDING_MAX", pending)
    draw, many, single = Draw(7).stream("names"), BulkNames(), Names()
    values: list[Json] = ["", "é\n", 0.5, -1, [], {"b": 1, "a": [None]}, True, -1, ""]
    values += [[draw.below(50)] for _ in range(300)]
    for begin in range(0, len(values), 37):
        some = b"".join(json_text(value) + b"\n" for value in values[begin : begin + 37])
        many.add(some, ends_of(some))
        many.add(b"", ends_of(b""))
    ids = many.ids()
    assert ids.tolist() == [single.id(value) for value in values]
    assert many.ids().tolist() == ids.tolist()
    assert many.values(ids) == values
    rows = [row for table in many.tables(7) for row in table.to_pylist()]
    assert ([row["id"] for row in rows], [row["json"] for row in rows]) == single.rows()
    others = b"[7]\n77\n-1\n"
    same, beside = many.ids_beside(others)
    assert same.tolist() == ids.tolist()
    assert beside.tolist() == [single.id([7]), NEVER, single.id(-1)]
    assert without_ends(texts_of(others)).to_pylist() == ["[7]", "77", "-1"]
    more = b"77\n[7]\n"
    many.add(more, ends_of(more))
    assert many.ids()[-2:].tolist() == [NAMED + len(rows), single.id([7])]


def test_no_value_has_no_name() -> None:
    names = BulkNames()
    assert (list(map(len, names.ids_beside(b""))), list(names.tables(1))) == ([0, 0], [])
    assert names.ids_beside(b"7\n")[1].tolist() == [NEVER]
    assert list(names.tables(1)) == []
