"""How many files each partition of a Delta table has, by values that Spark's literals have."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from tests.lake.delta.made import Made

from infold.lake.delta.partitions import partition_files

TEN = datetime(2024, 1, 5, 10, tzinfo=UTC)


@pytest.mark.parametrize(
    ("partition", "shown"),
    [
        (pa.array([date(2024, 1, 1)]), "2024-01-01"),
        (pa.array([TEN], pa.timestamp("us", "UTC")), "2024-01-05 10:00:00"),
        (pa.array([None], pa.date32()), None),
        (None, None),
    ],
    ids=["date", "hour", "null", "none"],
)
def test_files_of_each_partition(made: Made, partition: pa.Array | None, shown: str | None) -> None:
    """Data files and their bytes, by the start of the partition; without any, all are of one."""
    for n in range(2):
        by = {} if partition is None else {"_partition": partition}
        made.write("daily", pa.table({"n": [n], **by}), f"s-{n}", partition_by=[*by])

    ((start, data, deletes, size),) = partition_files(made.lake.folder("daily"))

    assert (start, data, deletes) == (shown, 2, 0)
    assert size == sum(file.stat().st_size for file in made.folder("daily").rglob("*.parquet"))
