"""Values of tables as Python and as texts, however far from today."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from infold.cli import export
from infold.core.arrow_values import FarTime, rows_of, values_of
from infold.core.interval import DAY, datetime_of
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
    "instant": (
        times(FAR, -(2**63)),
        ["+56157-09-28 16:00:00Z", "-290308-12-21 19:59:05.224192Z"],
        ["+56157-09-28T16:00:00Z", "-290308-12-21T19:59:05.224192Z"],
        ["+56157-09-28 16:00:00", "-290308-12-21 19:59:05.224192"],
    ),
    "clock": (
        times(FAR).cast(pa.timestamp("us")),
        ["+56157-09-28 16:00:00"],
        ["+56157-09-28T16:00:00"],
        ["+56157-09-28 16:00:00"],
    ),
    "day": (
        pa.array([2**31 - 1, -(2**31), 0], pa.int32()).cast(pa.date32()),
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"],
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"],
        ["+5881580-07-11", "-5877641-06-23", "1970-01-01"],
    ),
    "no number": (
        pa.array([float("nan"), float("-inf"), -0.0]),
        ["nan", "-inf", "-0"],
        ["NaN", "-Infinity", -0.0],
        ["nan", "-inf", "-0.0"],
    ),
    "nested": (
        pa.array([[float("inf"), None]]),
        ['"[""Infinity"", null]"'],
        [["Infinity", None]],
        ["[inf, None]"],
    ),
    "decimal": (
        pa.array(["9" * 38]).cast(pa.decimal128(38, 0)),
        ["9" * 38],
        ["9" * 38],
        ["9" * 38],
    ),
    "bytes": (pa.array([b"\x00\xff"]), ["00ff"], ["00ff"], [r"b'\x00\xff'"]),
}
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
