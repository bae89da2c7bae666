"""Values as they are written in tables: one text has one meaning, and each value can be written."""

from __future__ import annotations

import string
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.core.typed_text import instant_of, read_value, stored_value, value_text


@pytest.mark.parametrize(
    ("text", "type_", "value"),
    [
        ("NULL", "string", None),
        ("NULL", "bigint", None),
        ('"NULL"', "string", "NULL"),
        ('""', "string", ""),
        ('" a"', "string", " a"),
        ("null", "string", "null"),
        ("12", "string", "12"),
        ("12", "bigint", 12),
        ("-128", "tinyint", -128),
        ("1.50", "decimal(18,2)", Decimal("1.5")),
        ("1e2", "decimal(18,2)", Decimal(100)),
        ("NaN", "double", pytest.approx(float("nan"), nan_ok=True)),
        ("true", "boolean", True),
        ("2024-03-09", "date", date(2024, 3, 9)),
        ("2024-03-09", "timestamp", datetime(2024, 3, 9, tzinfo=UTC)),
        ("2024-03-09 12:30", "timestamp", datetime(2024, 3, 9, 12, 30, tzinfo=UTC)),
        ("2024-03-09T12:30:00+01:00", "timestamp", datetime(2024, 3, 9, 11, 30, tzinfo=UTC)),
        ("2024-03-09 12:30", "timestamp_ntz", datetime(2024, 3, 9, 12, 30)),  # noqa: DTZ001
        ("ff00", "binary", b"\xff\x00"),
        ('["a", null]', "array<string>", ["a", None]),
        ('{"a": 1.5}', "struct<a: decimal(3,1), b: int>", {"a": Decimal("1.5"), "b": None}),
        ('{"1": true}', "map<int, boolean>", {1: True}),
    ],
)
def test_a_text_has_the_value_of_its_type(text: str, type_: str, value: Any) -> None:
    """What is written is read in the type of the column."""
    assert read_value(text, type_) == value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("", "string"),
        ("", "bigint"),
        ("1.5", "bigint"),
        ("128", "tinyint"),
        ("1.505", "decimal(18,2)"),
        ("100", "decimal(3,1)"),
        ("one", "double"),
        ("1", "boolean"),
        ("2024-3-9", "date"),
        ("09:21", "timestamp"),
        ("2024-03-09T12:30Z", "timestamp_ntz"),
        ("abcd", "varchar(3)"),
        ('"a', "array<string>"),
        ("[1]", "map<string, int>"),
        ('{"c": 1}', "struct<a: int>"),
        ("[[1]]", "array<int>"),
    ],
)
def test_what_is_no_value_of_the_type_is_refused(text: str, type_: str) -> None:
    """Nothing is rounded, cut or guessed."""
    with pytest.raises((ValueError, KeyError)):
        read_value(text, type_)


VALUES = {
    "string": st.text(st.characters(blacklist_categories=["Cs"])),
    "bigint": st.integers(-(2**63), 2**63 - 1),
    "decimal(18,2)": st.decimals(-(10**15), 10**15, places=2),
    "double": st.floats(allow_nan=False),
    "boolean": st.booleans(),
    "date": st.dates(date(1000, 1, 1)),
    "timestamp": st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC)),  # noqa: DTZ001
    "binary": st.binary(min_size=1),
    "array<decimal(5,2)>": st.lists(st.none() | st.decimals(-999, 999, places=2)),
    "struct<a: string, b: array<timestamp>>": st.fixed_dictionaries(
        {
            "a": st.none() | st.text(string.printable),
            "b": st.lists(st.datetimes(datetime(1000, 1, 1), timezones=st.just(UTC))),  # noqa: DTZ001
        }
    ),
    "map<int,double>": st.dictionaries(st.integers(0, 99), st.floats(allow_nan=False)),
}


@given(st.data(), st.sampled_from(sorted(VALUES)))
def test_what_is_written_is_read_again(data: st.DataObject, type_: str) -> None:
    """Every value can be written, NULL too, and is the same when it is read."""
    value = data.draw(st.none() | VALUES[type_])

    assert read_value(value_text(value), type_) == value
    assert stored_value(value, type_) == value


@pytest.mark.parametrize("value", [float("inf"), float("-inf")])
def test_what_is_endless_is_read_again(value: float) -> None:
    """In a column of numbers, and inside of arrays and maps."""
    for whole, type_ in (
        (value, "double"), ([value], "array<float>"), ({1: value}, "map<int,double>"),
    ):  # fmt: skip
        assert read_value(value_text(whole), type_) == whole


def test_what_arrow_and_python_give() -> None:
    """Arrow gives a map as pairs. A date is its start, and a time without a zone is UTC."""
    assert stored_value([("a", [(1, 2.0)])], "map<string,map<int,double>>") == {"a": {1: 2.0}}
    assert instant_of(date(1970, 1, 2)) == 86_400_000_000
    assert instant_of(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000  # noqa: DTZ001
