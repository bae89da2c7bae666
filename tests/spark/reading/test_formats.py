"""The registries of formats, and that an estimate counts the rows that Spark then reads."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest
from pyspark.sql import SparkSession

from infold.core.files import ListedFile
from infold.core.formats import FORMATS, Format
from infold.core.interval import DAY, Granularity, micros_of, parse_instant_text
from infold.core.model import Column, Source
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.event_times import estimate_cells
from infold.lake.reading.formats import FORMAT_FILES
from infold.spark.reading.formats import READERS
from infold.spark.reading.source_rows import read

FILE_FORMATS = [format_ for format_, traits in FORMATS.items() if not traits.is_table]
TIMES = ["2024-03-09 01:00:00", "2024-03-09 23:59:59.999999", "2024-03-10T00:00:00Z", "soon", None]


def write_json(rows: pa.Table, at: Path) -> None:
    """The rows as JSON lines."""
    at.write_text("\n".join(json.dumps(row) for row in rows.to_pylist()))


WRITERS: dict[Format, Callable[[pa.Table, Path], None]] = {
    Format.CSV: pyarrow.csv.write_csv,
    Format.JSON: write_json,
    Format.PARQUET: pyarrow.parquet.write_table,
}


def test_both_registries_have_every_format() -> None:
    """A format is read with Spark, and its files are listed without."""
    assert set(READERS) == set(FORMAT_FILES) == set(Format)


@pytest.mark.spark
@pytest.mark.parametrize("format_", FILE_FORMATS)
def test_the_estimate_counts_what_is_read(
    tmp_path: Path, spark: SparkSession, format_: Format
) -> None:
    """Rows by day, in every format of files; a row whose time does not parse counts in neither."""
    at = tmp_path / f"a.{format_.value}"
    WRITERS[format_](pa.table({"id": [str(i) for i in range(len(TIMES))], "t": TIMES}), at)
    columns = (Column("id", "string"), Column("t", "timestamp"))
    source = Source("raw.x", format_, columns, path="*", event_time_column="t")
    project = Project("p", tmp_path, None, {source.name: source}, (), Target("dev"))
    seen = ListedFile(at.name, at.stat().st_size, 0, "1")

    estimate = estimate_cells(
        tmp_path,
        source,
        [seen],
        Granularity.DAY,
        parse_instant_text("2100-01-01"),
        budget_bytes=1_000_000,
    )

    times = read(spark, project, source, [(1, seen)]).toArrow()["t"].to_pylist()
    days = [micros_of(time) // DAY for time in times if time is not None]
    assert estimate is not None
    assert [(state.cell.start // DAY, state.rows) for state in estimate[0]] == [
        (day, days.count(day)) for day in sorted(set(days))
    ]
    assert len(days) == 3
