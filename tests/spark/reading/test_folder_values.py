"""Columns whose values the names of folders have, as Spark itself finds them there."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from tests.spark.reading.folder import Folder

from infold.core.files import folder_values
from infold.core.model import Column, Drift
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

COUNTRY, HOUR, DAY = Column("country", "string"), Column("hour", "int"), Column("dt", "date")


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("in/country=DE/hour=01/a.json", {"country": "DE", "hour": "01"}),
        ("s3://b/in/hour=1/country=a%3Db%2F%20c/x=1/a.json", {"country": "a=b/ c", "hour": "1"}),
        ("country=__HIVE_DEFAULT_PARTITION__/country=/a", {"country": ""}),
        ("country=/country=__HIVE_DEFAULT_PARTITION__/a", {"country": None}),
        ("Country=DE/hour/country=DE.json", {}),
    ],
)
def test_values_in_a_path(path: str, found: dict[str, str | None]) -> None:
    """The file's own name has none, and names are compared letter by letter."""
    assert folder_values(path, ["country", "hour"]) == found


def of_folders(*columns: Column) -> dict[str, Any]:
    """What a source has besides the columns of its files."""
    return {"of_folders": columns, "partition_columns": tuple(one.name for one in columns)}


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Folder:
    """An empty folder."""
    return Folder(tmp_path, spark)


@pytest.mark.spark
@pytest.mark.parametrize("format_", ["json", "csv", "parquet"])
def test_rows_are_those_that_spark_finds(folder: Folder, format_: str) -> None:
    """Escaped values and NULL are read as Spark writes them."""
    spark = folder.spark
    rows = [("a", "DE", 1), ("b", "a=b/c: %", 23), ("c", None, 7), ("d", "é", None)]
    frame = spark.createDataFrame(rows, "id string, country string, hour int")
    written = frame.coalesce(1).write.partitionBy("country", "hour").format(format_)
    written.option("header", "true").save(str(folder.root / "in"))
    for file in sorted((folder.root / "in").rglob(f"*.{format_}")):
        folder.listed(str(file.relative_to(folder.root)))

    found = folder.frame({"id": "string"}, **of_folders(COUNTRY, HOUR)).toArrow().to_pylist()

    assert {(row["id"], row["country"], row["hour"]) for row in found} == set(rows)
    assert {row["_problem"] for row in found} == {None}


@pytest.mark.spark
def test_folders_that_do_not_fit(folder: Folder) -> None:
    """Rows of a value that is none of its type are set aside, and files in no such folder drift;
    these go by `on_drift`.
    """
    for name in ("dt=2024-03-01/a.json", "dt=yesterday/b.json"):
        folder.put(name, '{"id":1}\n{"id":1.5}\n')
    found = folder.frame({"id": "int"}, **of_folders(DAY)).toArrow().to_pylist()
    assert {(row["id"], row["dt"], row["_problem"]) for row in found} == {
        (1, date(2024, 3, 1), None),
        (None, None, "unparsable: id is not int"),
        (None, None, "unparsable: dt is not date"),
    }

    folder.put("c.json", '{"id":7}\n')
    with pytest.raises(InfoldError) as raised:
        folder.frame({"id": "int"}, **of_folders(DAY))
    assert raised.value.slug == "drift"
    assert raised.value.facts == (("c.json", "missing folder dt="),)
    aside = folder.frame({"id": "int"}, on_drift=Drift.SET_ASIDE, **of_folders(DAY))
    assert (None, None, "drift: missing folder dt=") in {
        (row["id"], row["dt"], row["_problem"]) for row in aside.toArrow().to_pylist()
    }


@pytest.mark.spark
def test_values_of_each_row_are_those_of_its_file(folder: Folder) -> None:
    """With the time of the file beside them, in the order that is declared."""
    for day in (1, 2):
        folder.put(f"dt=2024-03-0{day}/a.parquet", pa.table({"id": [day, day + 10]}))
    frame = folder.frame({"id": "bigint"}, **of_folders(DAY))

    assert frame.columns[:2] == ["id", "dt"]
    assert {(row["id"], row["dt"]) for row in frame.collect()} == {
        (id_, date(2024, 3, id_ % 10)) for id_ in (1, 2, 11, 12)
    }
