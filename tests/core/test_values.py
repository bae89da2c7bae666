"""Values and their types: in Arrow, as text, by format, and in files."""

from __future__ import annotations

import json
import string
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from infold.cli import export
from infold.core.arrow_values import FarTime, rows_of, values_of
from infold.core.files import (
    IngestedFile,
    ListedFile,
    is_as_listed,
    set_aside_whole,
    with_file_policy,
    written_at,
)
from infold.core.formats import FORMATS, Format, complete, format_of_path
from infold.core.interval import DAY, datetime_of
from infold.core.type_changes import Type, holds_all_values, type_losses
from infold.core.typed_text import instant_of, read_value, stored_value, value_text
from infold.render.table import cell

FAR = 1_710_000_000_000_000_000
"""The year 56157: milliseconds that were taken for seconds."""


def times(*at: int | None) -> pa.Array:
    """Instants as Spark stores them."""
    return pa.array(at, pa.int64()).cast(pa.timestamp("us", "UTC"))


@given(st.integers(-62_135_596_800_000_000, 253_402_300_799_999_999))
def test_far_times_are_written_as_near_ones(at: int) -> None:
    """Where Python has the instant, both write the same text."""
    assert FarTime(at, "+00:00").isoformat() == datetime_of(at).isoformat()
    assert FarTime(at).isoformat(" ") == datetime_of(at).replace(tzinfo=None).isoformat(" ")
    assert str(FarTime(at - at % DAY, is_day=True)) == str(datetime_of(at).date())


@pytest.mark.parametrize(
    ("at", "text"),
    [
        (FAR, "+56157-09-28T16:00:00+00:00"),
        (253_402_300_800_000_000, "+10000-01-01T00:00:00+00:00"),
        (2**63 - 1, "+294247-01-10T04:00:54.775807+00:00"),
        (-(2**63), "-290308-12-21T19:59:05.224192+00:00"),
        (-62_167_219_200_000_000, "0000-01-01T00:00:00+00:00"),
        (-62_167_219_200_000_001, "-0001-12-31T23:59:59.999999+00:00"),
    ],
)
def test_times_that_python_has_not(at: int, text: str) -> None:
    """A year has a sign and as many digits as it needs; the fields are those that Java shows."""
    assert values_of(times(at))[0].isoformat() == text


def test_far_times_in_values_with_parts() -> None:
    """In structs, lists and maps; what is beside them stays as it is."""
    far = FarTime(FAR, "+00:00")
    near, both = datetime_of(0), times(0, FAR)
    table = pa.table(
        {
            "list": pa.ListArray.from_arrays([0, 2], both),
            "map": pa.MapArray.from_arrays([0, 2], pa.array(["a", "b"]), both),
            "struct": pa.StructArray.from_arrays([times(FAR), pa.array([7])], ["at", "v"]),
            "none": times(None),
        }
    )

    [row] = rows_of(table)

    assert row == {
        "list": [near, far],
        "map": [("a", near), ("b", far)],
        "struct": {"at": far, "v": 7},
        "none": None,
    }


EXTREMES: dict[str, tuple[pa.Array, list[str], list[Any], list[str]]] = {
    "instant": (times(FAR, -(2**63)), ["+56157-09-28 16:00:00Z", "-290308-12-21 19:59:05.224192Z"],
        ["+56157-09-28T16:00:00Z", "-290308-12-21T19:59:05.224192Z"],
        ["+56157-09-28 16:00:00", "-290308-12-21 19:59:05.224192"]),
    "clock": (times(FAR).cast(pa.timestamp("us")), ["+56157-09-28 16:00:00"],
        ["+56157-09-28T16:00:00"], ["+56157-09-28 16:00:00"]),
    "day": (pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32()),
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"],
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"],
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"]),
    "no number": (pa.array([float("nan"), float("-inf"), -0.0]), ["nan", "-inf", "-0"],
        ["NaN", "-Infinity", -0.0], ["nan", "-inf", "-0.0"]),
    "nested": (pa.array([[float("inf"), None]]), ['"[""Infinity"", null]"'], [["Infinity", None]],
        ["[inf, None]"]),
    "decimal": (pa.array(["9" * 38]).cast(pa.decimal128(38, 0)), ["9" * 38], ["9" * 38],
        ["9" * 38]),
    "bytes": (pa.array([b"\x00\xff"]), ["00ff"], ["00ff"], [r"b'\x00\xff'"]),
}  # fmt: skip
"""Of a type, values and their texts: in CSV, in JSON, and on the screen."""


@pytest.mark.parametrize("name", EXTREMES)
def test_extremes_in_each_export(tmp_path: Path, name: str) -> None:
    """What CSV, JSON, Parquet and the screen have of the values that lie at the ends of a type."""
    values, csv, jsons, screen = EXTREMES[name]
    rows = pa.table({"v": values})
    for write, file in ((export.csv, "a.csv"), (export.json, "a.json"), (export.parquet, "a.pq")):
        write(rows, tmp_path / file)

    assert (tmp_path / "a.csv").read_text().splitlines()[1:] == csv
    lines = (tmp_path / "a.json").read_text().splitlines()
    assert [json.loads(line, parse_constant=pytest.fail)["v"] for line in lines] == jsons
    assert parquet.read_table(tmp_path / "a.pq").equals(rows) or name == "no number"
    assert [cell(value) for value in values_of(values)] == screen


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


def test_what_arrow_and_python_give() -> None:
    """What is endless is read again, inside of arrays and maps too. Arrow gives a map as pairs. A
    date is its start, and a time without a zone is UTC.
    """
    for value in (float("inf"), float("-inf")):
        for whole, type_ in (
            (value, "double"), ([value], "array<float>"), ({1: value}, "map<int,double>"),
        ):  # fmt: skip
            assert read_value(value_text(whole), type_) == whole
    assert stored_value([("a", [(1, 2.0)])], "map<string,map<int,double>>") == {"a": {1: 2.0}}
    assert instant_of(date(1970, 1, 2)) == 86_400_000_000
    assert instant_of(datetime(1970, 1, 1, 0, 0, 1)) == 1_000_000  # noqa: DTZ001


WIDER = (
    ("tinyint", "smallint", "int", "bigint"),
    ("float", "double"),
    ("decimal(5,2)", "decimal(5, 2)", "decimal(18,2)", "decimal(38,2)"),
    ("decimal", "decimal(10,0)", "DECIMAL(11)"),
)
KINDS = ("int", "float", "decimal(18,2)", "string", "boolean", "date", "timestamp", "timestamp_ntz")


@pytest.mark.parametrize("rising", WIDER, ids=lambda rising: rising[0])
def test_a_wider_type_holds_all_values(rising: tuple[str, ...]) -> None:
    """Each type holds those of all before it; a narrower one does not hold those of a wider one."""
    for old, new in pairwise(rising):
        assert holds_all_values(old, new)
        same = holds_all_values(new, old)
        assert same is (old.replace(" ", "") in (new.replace(" ", ""), "decimal"))
    assert holds_all_values(rising[0], rising[-1])
    assert not holds_all_values(rising[-1], rising[0])


def test_another_kind_of_type_is_a_loss() -> None:
    """A type of another kind is one, even if every value could be written in it. More digits after
    the point leave fewer before it; Iceberg does not widen that either.
    """
    for old, new in product(KINDS, KINDS):
        assert holds_all_values(old, new) is (old == new)
    assert not holds_all_values("decimal(10,2)", "decimal(12,4)")
    assert not holds_all_values("decimal(10,2)", "decimal(10,1)")


def struct(**fields: Type) -> Type:
    """A struct as Spark writes it in JSON."""
    return {"type": "struct", "fields": [{"name": n, "type": t} for n, t in fields.items()]}


def array(element: Type) -> Type:
    """An array as Spark writes it in JSON."""
    return {"type": "array", "elementType": element, "containsNull": True}


def by_text(value: Type) -> Type:
    """A map from texts as Spark writes it in JSON."""
    return {"type": "map", "keyType": "string", "valueType": value}


@pytest.mark.parametrize(
    ("old", "new", "lost"),
    [
        (struct(a="integer", b="string"), struct(b="string", a="long", c="date"), []),
        (struct(a="integer", b="string"), struct(A="integer"), [("x.b", "string", "")]),
        (struct(a="long"), struct(a="integer"), [("x.a", "bigint", "int")]),
        (array(struct(a="long")), array(struct(b="long")), [("x[].a", "bigint", "")]),
        (by_text("double"), by_text("float"), [("x (values)", "double", "float")]),
        (by_text("float"), by_text("double"), []),
        (array("integer"), "integer", [("x", "array<int>", "int")]),
        (struct(a="integer"), by_text("date"), [("x", "struct<a:int>", "map<string,date>")]),
        (array("long"), by_text("short"), [("x", "array<bigint>", "map<string,smallint>")]),
    ],
)
def test_types_within_types(old: Type, new: Type, lost: list[tuple[str, str, str]]) -> None:
    """Fields may be added, widened and change places; one that goes or narrows is a loss."""
    assert list(type_losses(old, new, "x")) == lost


def test_a_registry_without_a_format_is_refused() -> None:
    """A format that nothing reads is found when the program is imported, not with a user's file."""
    half: dict[Format, str] = {
        format_: format_.value for format_ in Format if format_ is not Format.JSON
    }

    with pytest.raises(TypeError, match="lacks json"):
        complete(half)
    assert complete({**half, Format.JSON: "json"})[Format.JSON] == "json"


@pytest.mark.parametrize(
    ("path", "format_"),
    [
        ("in/a.csv", Format.CSV),
        ("in/*.TSV.gz", Format.CSV),
        ("in/a.ndjson", Format.JSON),
        ("in/**/*.parquet", Format.PARQUET),
        ("in/a.avro", Format.AVRO),
        ("in/a.ORC", Format.ORC),
        ("in/a.json.zst", Format.JSON),
        ("in/a.xml", None),
        ("in/a", None),
        ("in/csv", None),
    ],
)
def test_the_ending_of_a_path_says_the_format(path: str, format_: Format | None) -> None:
    """An ending that no format has means none: it is never taken for one."""
    suffixes = [suffix for traits in FORMATS.values() for suffix in traits.suffixes]
    assert format_of_path(path) is format_
    assert len(suffixes) == len(set(suffixes))


ASIDE = IngestedFile(1, "a.csv", 10, "10:5|policy", horizon=0, set_aside=3)


@pytest.mark.parametrize(
    ("file", "whole"),
    [
        (ASIDE, True),
        (replace(ASIDE, rows=1), False),
        (replace(ASIDE, waiting=1), False),
        (replace(ASIDE, set_aside=0), False),
        (replace(ASIDE, fingerprint="10:5"), False),
    ],
    ids=["aside", "some taken in", "some waiting", "empty", "without a policy"],
)
def test_files_that_may_have_been_set_aside_as_a_whole(file: IngestedFile, whole: bool) -> None:
    """Under a policy all that a file has is set aside, and nothing of it is taken in."""
    assert set_aside_whole(file) is whole


@pytest.mark.parametrize(
    ("known", "listed", "same"),
    [
        ("10:9.4:5", "10:9.4:5", True),
        ("10:9.4:5|policy", "10:9.4:5", True),
        ("10:9.4:5", "10:9.7:5", False),
        ("10:9.4:5", "10:8.4:5", False),
        ("10:9.4:5", "10:9.4:6", False),
        ("10:5", "10:9.4:5", True),
        ("10:5|policy", "10:9.4:5", True),
        ("10:6", "10:9.4:5", False),
        ("11:5", "10:9.4:5", False),
        ("10:etag", "10:etag", True),
        ("10:etag", "10:other", False),
        ("10:etag", "10:etag:5", False),
    ],
)
def test_files_that_are_what_they_were(known: str, listed: str, *, same: bool) -> None:
    """By all that a listing shows; of older versions, that have less, by size and time, which is
    in microseconds.
    """
    assert is_as_listed(known, listed) is same
    ingested = replace(ASIDE, fingerprint=known, set_aside=0)
    found = with_file_policy(ListedFile("a.csv", 10, 0, listed), ingested, "")
    assert (found.fingerprint == known) is same
    assert written_at("10:9000.4:5000") == written_at("10:5000") == 5
