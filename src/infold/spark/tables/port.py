"""
What an engine asks of a storage: its tables, read and written with Spark.

Every writing method makes exactly one atomic commit, which carries the stamp, and returns the
id of the snapshot that it made. ``infold.spark.storages`` chooses the adapter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from pyspark.sql import DataFrame
from pyspark.sql.types import DataType

from infold.core.interval import Granularity, Ranges

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a commit records: run, step, the version it makes, the versions it read."""

    run: str
    step: str
    version: int
    inputs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Layout:
    """
    How a table lies on disk: partitions of calendar time of one column, coarser than its cells.

    ``column`` None means one partition. Rows are written in the order given.
    """

    column: str | None = None
    partition: Granularity | None = None
    type: str = "timestamp"
    """The column's type: ``timestamp`` or ``date``."""
    dictionary: int = 32 * 1024
    """
    How many bytes of distinct values a file's writer collects for a column before it stores the
    column plain. Looking values up in a large dictionary takes longer than all the rest of writing,
    and makes a compressed file no smaller.
    """


class Tables(Protocol):
    """Reading and writing stored tables by their names in the project (not storage names)."""

    def exists(self, table: str) -> bool:
        """Whether the table is there."""

    def read(
        self,
        table: str,
        snapshot: int | None = None,
        *,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> DataFrame:
        """
        All rows with technical columns, of the current or a given snapshot.

        Who says that only rows with a ``column`` in ``ranges`` matter may not get others.
        """

    def values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """Distinct strings of a column, without NULL, maybe more; None if files list none."""

    def create(self, table: str, rows: DataFrame, layout: Layout, stamp: Stamp) -> int:
        """Replace schema, layout and content by ``rows``, or make the table."""

    def layout(self, table: str) -> Layout:
        """How the table was laid out when it was made."""

    def append(self, table: str, rows: DataFrame, stamp: Stamp) -> int:
        """Add rows; columns are matched by name."""

    def merge(
        self,
        table: str,
        *,
        insert: DataFrame,
        delete: DataFrame,
        on: Sequence[str],
        condition: str,
        stamp: Stamp,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> int:
        """
        Remove the rows that equal a row of ``delete`` on the columns ``on``, and add ``insert``.

        ``on`` columns are never NULL, and rows of ``delete`` are distinct on them. ``condition``
        is a SQL predicate over the table's columns, true for every row to remove; it prunes files.
        So do ``ranges``, in which ``column`` is of every such row.
        """

    def evolve(
        self,
        table: str,
        names: Sequence[tuple[str, str]],
        types: Sequence[tuple[Sequence[str], DataType]],
        stamp: Stamp,
    ) -> int:
        """
        Give columns other names (old, new) and wider types, in all rows.

        A type is that of a column, or of a part of it: ``("tags", "element", "n")``. Earlier
        snapshots keep the old ones.
        """

    def replace(
        self,
        table: str,
        *,
        column: str,
        ranges: Ranges,
        rows: DataFrame,
        stamp: Stamp,
        about: int = 0,
    ) -> int:
        """
        Replace exactly the rows whose ``column`` is in ``ranges`` by ``rows``.

        ``about`` is how many rows that writes, other cells of their partitions included; few are
        written by one task.
        """


@dataclass(frozen=True, slots=True)
class PartitionFiles:
    """
    The files of one partition of a table now: how many have data, how many have deletes.

    ``partition`` is the storage's own value for it (None: the table has one partition), ``bytes``
    the size of the data files.
    """

    partition: Any
    data: int
    deletes: int
    bytes: int


class MaintainedTables(Tables, Protocol):
    """Stored tables with what keeps them in shape; none of it changes content."""

    def partition_files(self, table: str) -> Sequence[PartitionFiles]:
        """How many files each partition of the current snapshot has."""

    def rewrite(self, table: str, partition: Any) -> None:
        """Put the rows of one partition into as few files as they fill, changing none of them."""

    def forget_removed_files(self, table: str) -> None:
        """Have nothing in the metadata of the current snapshot about files that it has not."""

    def expire(self, table: str, *, before: float, keep: int) -> None:
        """
        Drop snapshots made before a time (seconds since 1970), but the ``keep`` newest.

        Files that only they have go with them.
        """
