"""What the log says of a table's files, and the vectors of rows that are deleted in them."""

from __future__ import annotations

import json
import struct
from collections.abc import Collection
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable
from tests.lake.delta.made import Made
from tests.lake.delta.test_folders import forget
from tests.lake.delta.vectors import PROTOCOL, mark_deleted

from infold.core.interval import Granularity, Interval, Ranges, parse_instant_text
from infold.core.own_columns import PARTITION
from infold.core.ports import StoredLayout
from infold.lake.delta.files import (
    decoded,
    files_during,
    live_files,
    read_vector,
    with_deleted,
    without_statistics_of_removed,
)
from infold.lake.delta.log import Log, layout_metadata


def log_of(made: Made) -> Log:
    """The log of the table now."""
    log = made.lake.log("daily")
    assert log is not None
    return log


def live(made: Made, version: int | None = None) -> dict[str, Any]:
    """The files of a version."""
    log = log_of(made)
    files = live_files(log, log.newest if version is None else version)
    assert files is not None
    return {**files}


def delete(made: Made, numbers: Collection[int]) -> None:
    """Delete rows by the positions of their numbers, in a commit."""
    files = live(made)
    rows = {}
    for name, file in files.items():
        stored = pa.parquet.read_table(made.folder("daily") / name, partitioning=None)["n"]
        gone = {at for at, n in enumerate(stored.to_pylist()) if n in numbers}
        if gone:
            rows[name] = pa.array(sorted(gone), pa.int64())
        assert unquote(file["path"]) == name
    removed, added = with_deleted(str(made.folder("daily")), files, rows)
    actions = [{"remove": one} for one in removed] + [{"add": one} for one in added]
    made.commit("daily", PROTOCOL, *actions)


class TestFiles:
    """A version's files, whoever committed them."""

    def test_they_are_those_that_deltalake_knows(self, made: Made) -> None:
        """After rows, deletes in the log and in files, an overwrite, and a set back."""
        snapshots = [made.write("daily", {"n": [1, 2, 3]}, "s-1")]
        first = live(made)
        snapshots.append(made.write("daily", {"n": [4, 5]}, "s-2"))
        mark_deleted(made.folder("daily"), "n", {1})
        mark_deleted(made.folder("daily"), "n", {2, 4}, in_file=True)
        delete(made, {3, 5})
        assert live(made) == {}
        made.write("daily", {"n": [9]}, "s-3", mode="overwrite")
        made.lake.set_back("daily", snapshots[1])

        for version in (*range(log_of(made).newest + 1), 0):
            stored = DeltaTable(made.folder("daily").as_uri(), version)
            names = {Path(unquote(uri)).name for uri in stored.file_uris()}
            assert {*live(made, version)} == names

        assert live(made, 0) == first
        assert made.numbers("daily") == [1, 2, 3, 4, 5]

    def test_a_table_made_anew_has_others(self, made: Made) -> None:
        """Its versions have the numbers of the one before."""
        made.write("daily", {"n": [1]}, "s-1")
        before = live(made)
        made.lake.drop("daily")
        made.write("daily", {"n": [1]}, "s-1")

        assert not {*before} & {*live(made)}

    def test_a_log_without_its_beginning(self, made: Made) -> None:
        """A checkpoint sums up what went; nothing is known without it, or with a gap after it."""
        for n in range(4):
            made.write("daily", {"n": [n]}, f"s-{n}")
        delete(made, {1})
        forget(made, "daily", 3)
        log = log_of(made)

        assert len(live(made, 3)) == 4
        assert len(live(made, 4)) == 3
        assert live_files(log, 2) is None
        Path(log.file(3)).with_suffix(".checkpoint.parquet").unlink()
        assert live_files(log_of(made), 3) is None
        for n in range(3):
            made.write("other", {"n": [n]}, f"s-{n}")
        other = made.lake.log("other")
        assert other is not None
        Path(other.file(1)).unlink()
        with_gap = made.lake.log("other")
        assert with_gap is not None
        assert live_files(with_gap, 2) is None


def test_files_are_chosen_by_partitions_and_statistics(made: Made) -> None:
    """Bounds are cut off to milliseconds; rows without a time are in no range."""
    at = [datetime(2024, 1, 5, 1, 2, 3, 4999, UTC), datetime(2024, 2, 1, tzinfo=UTC), None]
    rows = {
        "n": [1, 2, 3],
        "t": pa.array(at, pa.timestamp("us", "UTC")),
        "d": [date(2024, 1, 5), date(2024, 2, 1), None],
        PARTITION: [date(2024, 1, 1), date(2024, 2, 1), None],
    }
    made.write("daily", pa.table(rows), "s-1", partition_by=[PARTITION])

    def chosen(column: str, start: str, end: str, layout: StoredLayout) -> list[str]:
        ranges = Ranges((Interval(parse_instant_text(start), parse_instant_text(end)),))
        files = files_during(log_of(made), live(made).values(), column, ranges, layout)
        return sorted(str(file["partitionValues"][PARTITION]) for file in files)

    months, none = StoredLayout("", "t", Granularity.MONTH), StoredLayout("")
    january = "2024-01-05T01:02:03.004999", "2024-01-05T01:02:03.005"
    assert chosen("t", *january, months) == ["2024-01-01"]
    assert chosen("T", *january, none) == ["2024-01-01", "None"]
    assert chosen("t", "2024-01-06", "2024-02-01", months) == []
    assert chosen("t", "2024-01-06", "2024-02-02", months) == ["2024-02-01"]
    assert chosen("d", "2024-01-05", "2024-01-06", months) == ["2024-01-01", "None"]
    assert chosen("d", "2024-01-06T01:00", "2024-01-07", months) == ["None"]
    assert len(chosen("t", "0001-01-01", "9999-12-31", months)) == 3
    assert len(chosen("n", "2024-01-05", "2024-01-06", months)) == 3


def test_sizes_of_files(made: Made) -> None:
    """Of partitions that some times are in; without partitions of all files, if there are times."""
    starts = [date(2024, 1, 1), date(2024, 2, 1), None]
    month = layout_metadata("t", Granularity.MONTH, "timestamp")
    schema = pa.schema([("n", pa.int64()), pa.field(PARTITION, pa.date32(), metadata=month)])
    rows = pa.table({"n": [1, 2, 3], PARTITION: starts}, schema)
    made.write("daily", rows, "s-1", partition_by=[PARTITION])
    made.write("whole", {"n": [1]}, "s-2")
    day = Ranges((Granularity.DAY.cell(parse_instant_text("2024-02-29")),))

    [february] = made.folder("daily").glob(f"{PARTITION}=2024-02-01/*.parquet")
    [whole] = made.folder("whole").glob("*.parquet")
    assert made.lake.file_sizes("daily", day) == [february.stat().st_size]
    assert made.lake.file_sizes("whole", day) == [whole.stat().st_size]
    assert not made.lake.file_sizes("whole", Ranges())
    assert not made.lake.file_sizes("nothing", day)


class TestVectors:
    """Bitmaps of positions, in the portable form of Roaring."""

    def test_another_form_is_refused(self) -> None:
        """As an engine's own, which no log names."""
        with pytest.raises(ValueError, match="begins with 01"):
            [*decoded(struct.pack("<iq", 1, 0))]

    def test_deltalake_reads_them(self, made: Made) -> None:
        """Rows that were deleted before stay so; statistics are no longer exact."""
        made.write("daily", {"n": [*range(70_000)]}, "s-1")
        mark_deleted(made.folder("daily"), "n", {7}, in_file=True)
        delete(made, {0, 69_999})
        delete(made, range(100, 60_000))

        assert made.numbers("daily") == [*range(1, 7), *range(8, 100), *range(60_000, 69_999)]
        (file,) = live(made).values()
        assert file["deletionVector"]["cardinality"] == 3 + 59_900
        assert json.loads(file["stats"])["tightBounds"] is False
        vector = read_vector(str(made.folder("daily")), file["deletionVector"])
        assert [*vector] == sorted({0, 7, 69_999, *range(100, 60_000)})


def test_a_checkpoint_without_values_of_removed_rows() -> None:
    """Statistics of files that the table has no longer go; all else of the checkpoint stays."""
    values = '{"maxValues": {"who": "mallory"}}'
    gone = {"path": "old.parquet", "size": 7, "stats": values, "tags": [("a", "b")]}
    kept = {"path": "new.parquet", "partitionValues": [], "stats": '{"numRecords": 1}'}
    tags = pa.map_(pa.string(), pa.string())
    removed = pa.struct(
        [("path", pa.string()), ("size", pa.int64()), ("stats", pa.string()), ("tags", tags)]
    )
    added = pa.struct([("path", pa.string()), ("partitionValues", tags), ("stats", pa.string())])
    table = pa.table(
        {"add": pa.array([kept, None], added), "remove": pa.array([None, gone], removed)}
    )
    file = pa.BufferOutputStream()
    pq.write_table(table, file)

    plain = pq.read_table(pa.BufferReader(without_statistics_of_removed(bytes(file.getvalue()))))

    assert plain.schema == table.schema
    assert plain["add"].to_pylist() == [kept, None]
    assert plain["remove"].to_pylist() == [None, {**gone, "stats": None}]
