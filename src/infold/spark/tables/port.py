"""
What an engine asks of storage. Iceberg is the first adapter; another one changes nothing above.

Every writing method makes exactly one atomic commit, which carries the stamp, and returns the
id of the snapshot that it made.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from pyspark.sql import DataFrame

from infold.core.interval import Granularity, Ranges

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(frozen=True, slots=True)
class Stamp:
    """What a commit says of itself: run, step, the version it makes, the versions it read."""

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
    How many bytes of distinct values the writer of a file collects for a column before it stores
    the column plain. Looking each value up among many takes longer than all the rest of writing,
    and a compressed file becomes no smaller for it.
    """


class Tables(Protocol):
    """Reading and writing stored tables by their names in the project (not storage names)."""

    def exists(self, table: str) -> bool:
        """Whether the table is there."""

    def read(self, table: str, snapshot: int | None = None) -> DataFrame:
        """All rows with technical columns, of the current or a given snapshot."""

    def values(self, table: str, column: str, snapshot: int, limit: int) -> pa.Array | None:
        """As ``ports.Lake.values``."""

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
        within: str,
        stamp: Stamp,
    ) -> int:
        """
        Remove the rows that equal a row of ``delete`` on the columns ``on``, and add ``insert``.

        ``on`` columns are never NULL, and rows of ``delete`` are distinct on them. ``within`` is a
        SQL predicate over the table's columns that holds for every row to remove; it prunes.
        """

    def replace(
        self, table: str, *, column: str, ranges: Ranges, rows: DataFrame, stamp: Stamp
    ) -> int:
        """Replace exactly the rows whose ``column`` is in ``ranges`` by ``rows``."""
