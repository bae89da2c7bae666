"""Rows of Delta tables without a JVM: predicates, types, earlier versions."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import pyarrow as pa
import pytest
from tests.lake.delta.made import Made

from infold.core.ports import TimeSpan
from infold.lake.delta.snapshots import DeltaSnapshotReader
from infold.messages.errors import InfoldError

NOON = datetime(2024, 3, 9, 12, tzinfo=UTC)
TYPES = pa.schema(
    [
        ("n", pa.int64()),
        ("user", pa.string()),
        ("t.s", pa.timestamp("us", "UTC")),
        ("d", pa.date32()),
        ("m", pa.decimal128(38, 6)),
        ("x", pa.float64()),
        ("b", pa.bool_()),
        ("l", pa.list_(pa.struct([("a", pa.int32())]))),
        ("p", pa.map_(pa.string(), pa.int64())),
        ("r", pa.binary()),
        ("_version", pa.int64()),
    ]
)
ROW = {
    "n": 1,
    "user": "ann",
    "t.s": NOON,
    "d": date(2024, 3, 9),
    "m": Decimal("1.500000"),
    "x": 0.5,
    "b": True,
    "l": [{"a": 1}, None],
    "p": [("k", 2)],
    "r": b"\0",
    "_version": 7,
}
NULLS = dict.fromkeys(ROW) | {"n": 2, "l": []}


@pytest.fixture
def typed(made: Made) -> Made:
    """A table with a row of values and one of NULLs."""
    made.write("daily", pa.Table.from_pylist([ROW, NULLS], TYPES), "s-1")
    return made


def test_rows_have_the_types_that_people_know(typed: Made) -> None:
    """Every type comes as it was written, without infold's own columns; at most so many rows."""
    found = typed.lake.rows("daily")

    assert found.schema == pa.schema([field for field in TYPES if field.name != "_version"])
    assert sorted(found.to_pylist(), key=lambda row: row["n"]) == [
        {name: value for name, value in row.items() if name != "_version"} for row in (ROW, NULLS)
    ]
    for limit in (0, 1):
        assert typed.lake.rows("daily", where="n >= 1", limit=limit).num_rows == limit
        assert typed.lake.rows("daily", limit=limit).num_rows == limit


@pytest.mark.parametrize(
    ("where", "rows"),
    [
        ("n >= 1 AND user = 'ann'", [1]),
        ("user IS NULL", [2]),
        ("NOT (user = 'bob')", [1]),
        ("`t.s` < '2024-03-10'", [1]),
        ("d = '2024-03-09' OR m > 2", [1]),
        ("USER IN ('ann', 'eve') AND b", [1]),
        ("x < 0.4", []),
    ],
)
def test_where_means_what_it_does_in_every_storage(
    typed: Made, where: str, rows: list[int]
) -> None:
    """A comparison chooses rows, by columns that are not shown too."""
    assert typed.lake.rows("daily", columns=["n"], where=where)["n"].to_pylist() == rows


def test_what_cannot_be_asked_is_said(typed: Made) -> None:
    """Columns that are not there, predicates for Spark and tables not built are named errors."""
    asked = [
        ({"columns": ["no"]}, "unknown-column"),
        ({"where": "l = 1"}, "bad-filter"),
        ({"where": "lower(user) = 'ann'"}, "bad-filter"),
    ]
    for words, slug in asked:
        with pytest.raises(InfoldError) as raised:
            typed.lake.rows("daily", **words)  # type: ignore[arg-type]
        assert raised.value.slug == slug
    with pytest.raises(InfoldError) as raised:
        typed.lake.rows("weekly")
    assert raised.value.slug == "not-built"


def test_rows_say_which_tests_they_match(typed: Made) -> None:
    """Each row has the names of the predicates that are true of it."""
    tests = {"ann": "user = 'ann'", "one": "n = 1", "null": "x IS NULL"}

    found = typed.lake.rows_matching("daily", tests, by="why", beside=["_version"])

    assert {row["n"]: (row["why"], row["_version"]) for row in found.to_pylist()} == {
        1: (["ann", "one"], 7),
        2: (["null"], None),
    }
    with pytest.raises(ValueError, match="only columns compared with values"):
        typed.lake.rows_matching("daily", {"a": "lower(user) = 'a'"}, by="why")


def test_times_and_texts_of_a_version(typed: Made) -> None:
    """Values of a column are those of the version that is asked for; NULL is none."""
    head = typed.lake.metadata("daily")
    assert head is not None
    assert head.snapshot is not None
    typed.write("daily", pa.Table.from_pylist([ROW | {"user": "bob"}], TYPES), "s-2")

    then, lake = head.snapshot, typed.lake
    assert lake.column_times("daily", "t.s", then) == [int(NOON.timestamp()) * 1_000_000]
    texts = lake.string_values("daily", "User", then, 10)
    assert texts is not None
    assert texts.to_pylist() == ["ann"]
    assert lake.string_values("daily", "n", then, 10) is None
    assert lake.string_values("daily", "no", then, 10) is None


class TestEarlier:
    """A few rows of one kept version, by the values of columns."""

    def test_rows_equal_to_values_near_a_time(self, typed: Made) -> None:
        """
        Names in any case, values of the columns' types, and a stretch of time. A version that is
        gone, a column to compare that is not there, or a table that is not, give no answer.
        """
        reader = DeltaSnapshotReader(typed.lake)
        (first,) = reader.kept_snapshots("daily")
        typed.write("daily", pa.Table.from_pylist([ROW | {"n": 3}], TYPES), "s-2")
        at = int(NOON.timestamp()) * 1_000_000
        near = TimeSpan("t.s", "t.s", at - 1, at)

        now = reader.rows_equal_to("daily", [{"USER": "ann"}], columns=["N", "no"], near=near)
        then = reader.rows_equal_to("daily", [{"user": "ann"}, {"n": 2}], snapshot=first)

        assert now is not None
        assert sorted(now["N"].to_pylist()) == [1, 3]
        assert then is not None
        assert sorted(then["n"].to_pylist()) == [1, 2]
        assert len(reader.kept_snapshots("daily")) == 2
        assert reader.rows_equal_to("daily", [{"n": 1}], snapshot=12345) is None
        assert reader.rows_equal_to("daily", [{"no": 1}]) is None
        assert reader.rows_equal_to("weekly", [{"n": 1}]) is None
        assert reader.kept_snapshots("weekly") == frozenset()
