"""How many files each partition of a Delta table has, by values that Spark's literals have."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests.lake.delta.made import Made

from infold.lake.delta.partitions import partition_files

TEN = datetime(2024, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("value", "type_", "shown"),
    [
        (date(2024, 1, 1), pa.date32(), "2024-01-01"),
        (TEN, pa.timestamp("us", "UTC"), "2024-01-05 10:00:00"),
        (None, pa.date32(), None),
    ],
    ids=["date", "hour", "none"],
)
def test_files_of_each_partition(
    made: Made, value: object, type_: pa.DataType, shown: str | None
) -> None:
    """Data files and their bytes, by the start of the partition."""
    for n in range(2):
        rows = pa.table({"n": [n], "_partition": pa.array([value], type_)})
        made.write("daily", rows, f"s-{n}", partition_by=["_partition"])

    ((partition, data, deletes, size),) = partition_files(made.lake.folder("daily"))

    assert (partition, data, deletes) == (shown, 2, 0)
    assert size == sum(file.stat().st_size for file in made.folder("daily").rglob("*.parquet"))


def test_a_table_without_partitions_is_one(made: Made) -> None:
    """All files are of the partition without a value."""
    made.write("daily", {"n": [1]}, "s-1")

    ((partition, data, _, _),) = partition_files(made.lake.folder("daily"))

    assert (partition, data) == (None, 1)
