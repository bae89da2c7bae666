"""
What changed in a stored table between two versions: the rows that were added and removed.

Rows that infold inserts carry the version that inserted them (`_version`). Added rows are found by
that number in the changed cells, without opening files of other versions. Removed rows are found by
comparing the two snapshots, in cells that lost rows only. Tables that are recomputed, by cell or
whole, carry no such number, or a useless one: all rows of a table that was replaced have
the same. There both snapshots of the changed cells are compared, row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_

from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.analysis.definitions.column_sources import columns_passed
from infold.core.interval import Granularity, Interval, Ranges
from infold.core.model import Kind
from infold.core.own_columns import FILE, ID, KEY, VERSION
from infold.core.project import Node, Project
from infold.core.trace import CellChange, net_changes
from infold.spark.content import (
    cell_of,
    cell_start,
    column,
    row_hash,
    rows_in_cells,
    rows_without,
    user_columns,
)
from infold.spark.frame_schema import FrameColumn, FrameSchema, returns
from infold.spark.step_context import Work

TABLE_ROWS = FrameSchema(
    "a row that a stored table has in only one of two versions",
    (
        FrameColumn(VERSION, "bigint", "the version that inserted it", "tables that are folded"),
        FrameColumn(FILE, "bigint", "the id of the file's version", "events"),
        FrameColumn(KEY, "string", "the hash of the row's key", "cumulative aggregates"),
    ),
    "the table's columns; technical ones are left out where two snapshots were compared",
)


@dataclass(frozen=True)
class ChangedRows:
    """
    A stored table at two versions, ``before`` (None: it was empty) and ``current``.

    ``changes`` are net, from version ``since`` on. ``time`` is the column of its cells, None for
    one cell. ``identity`` are the columns that differ in rows inserted by one version at one time.
    """

    before: DataFrame | None
    current: DataFrame
    changes: Sequence[CellChange]
    since: int
    time: str | None
    identity: Sequence[str] = ()
    granularity: Granularity | None = None
    other_cells: bool = False
    """Whether it was divided into other cells since: then one may add what another removes."""
    replaced: bool = False
    """Whether the table was replaced since, which inserts rows again that it had before."""

    current_in: Callable[[Ranges], DataFrame] | None = None
    """``current``, maybe without rows at other times; None where there are no times."""
    before_in: Callable[[Ranges], DataFrame] | None = None
    known_removed: DataFrame | None = None
    """All rows that were removed, where the run that removed them still has them."""

    @property
    def rows(self) -> int:
        """How many rows were added or removed, as cells count them."""
        return sum(change.added + change.removed for change in self.changes)

    @property
    def rows_to_scan(self) -> int:
        """How many rows have to be scanned to find them."""
        return sum(
            change.rows_after + (change.rows_before if change.removed or not self.numbered else 0)
            for change in self.changes
        )

    @property
    def numbered(self) -> bool:
        """Whether added rows can be found by the version that inserted them."""
        return VERSION in self.current.columns and not self.replaced

    @returns(TABLE_ROWS)
    def added(self) -> DataFrame:
        """Rows that were not there before."""
        cells = [c.cell for c in self.changes if c.added or self.other_cells]
        rows = self._current_rows(cells)
        if self.numbered:
            return rows.where(F.col(VERSION) > self.since)
        if self.before is not None:
            rows = _rows_not_in(rows, self._rows_before(self.before, cells))
        return rows

    @returns(TABLE_ROWS)
    def removed(self) -> DataFrame | None:
        """Rows that are no longer there; None when nothing was removed."""
        cells = [c.cell for c in self.changes if c.removed or self.other_cells]
        if self.before is None or not cells:
            return None
        if self.known_removed is not None:
            return self._rows_in(self.known_removed, cells)
        before, current = self._rows_before(self.before, cells), self._current_rows(cells)
        if not self.numbered:
            return _rows_not_in(before, current)
        names = list(dict.fromkeys((*self.identity, *([self.time] if self.time else ()), VERSION)))
        others = current.select(*(column(name).alias(f"__{at}") for at, name in enumerate(names)))
        same = [column(name).eqNullSafe(F.col(f"__{at}")) for at, name in enumerate(names)]
        return before.join(others, reduce(and_, same), "left_anti")

    def _current_rows(self, cells: Sequence[Interval]) -> DataFrame:
        rows = self.current if self.current_in is None else self.current_in(Ranges.of(cells))
        return self._rows_in(rows, cells)

    def _rows_before(self, before: DataFrame, cells: Sequence[Interval]) -> DataFrame:
        rows = before if self.before_in is None else self.before_in(Ranges.of(cells))
        return self._rows_in(rows, cells)

    def _rows_in(self, frame: DataFrame, cells: Sequence[Interval]) -> DataFrame:
        """The rows of exactly these cells."""
        if self.time is None:
            return frame
        return rows_in_cells(frame, self.time, cells, self.granularity)


def _rows_not_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The rows without the others, as multisets; technical columns are left out of both."""
    rows = user_columns(rows)
    return rows_without(rows, others)


def changed_table(
    work: Work,
    name: str,
    since: int,
    upto: int,
    *,
    time: str | None = None,
    key: Sequence[str] = (),
) -> ChangedRows:
    """What changed in a stored table between two versions."""
    current = work.frame(name, upto)

    def during(version: int) -> Callable[[Ranges], DataFrame] | None:
        if time is None:
            return None
        return lambda ranges: work.frame(name, version, column=time, ranges=ranges)

    changes, granularity = work.ledger.changes(name, since), work.project[name].model.granularity
    return ChangedRows(
        before=work.frame(name, since) if work.snapshot(name, since) is not None else None,
        current=current,
        changes=[change for change in net_changes(changes) if change.changes_rows],
        since=since,
        time=time,
        identity=key or _identity(work, name, current.columns),
        granularity=granularity,
        other_cells=granularity is not None
        and any(change.cell != granularity.cell(change.cell.start) for change in changes),
        replaced=_was_replaced(work, name, since, upto),
        current_in=during(upto),
        before_in=during(since),
        known_removed=work.rows_removed(name, since, upto),
    )


def _was_replaced(work: Work, name: str, since: int, upto: int) -> bool:
    """Whether a table was replaced as a whole between two versions."""
    return any(entry.whole for entry in work.ledger.versions(name, since) if entry.number <= upto)


def _identity(work: Work, name: str, columns: Sequence[str]) -> Sequence[str]:
    """
    The identity of rows without a key: a key of infold's, or the file, which they leave with.

    And the columns with persons, by which they are erased out of a file.
    """
    identity = [each for each in (FILE, KEY, ID) if each in columns][:1]
    node = work.project[name]
    source = work.project.sources.get(node.source or name)
    if source is None or not work.project.erased_columns.get(source.name):
        return identity
    passed = columns_passed(work.project, node, source)
    erased = {entry.column.lower() for entry in work.project.erased_columns[source.name]}
    names = {passed[each].lower() for each in erased & passed.keys()}
    return [*identity, *(each for each in columns if each.lower() in names)]


def traceable_table(
    work: Work, name: str, since: int, upto: int, *, compared: bool = False
) -> bool:
    """
    Whether a table still has the columns it had, so that changes between versions can be found.

    Not if the earlier snapshot is gone, as somebody expired it. With ``compared``, rows are to be
    compared whatever they carry.
    """
    frame = work.frame(name, upto)
    numbered = VERSION in frame.columns
    if compared and not _comparable(user_columns(frame)):
        return False
    if work.snapshot(name, since) is None:
        return numbered
    try:
        before = work.frame(name, since).schema
    except PySparkException:
        return False
    if numbered and not _was_replaced(work, name, since, upto):
        return before.names == frame.columns  # they may have got other names
    return before == frame.schema and _comparable(user_columns(frame))


def _comparable(frame: DataFrame) -> bool:
    return not any("map<" in type_ or "variant" in type_ for _, type_ in frame.dtypes)


# A cell is replaced as a whole, and mostly has the rows that it had before, with few exceptions.
# What folds a table's changes (sessions, cumulative aggregates) needs these exceptions alone. Rows
# are compared as multisets, by the hash that the content of a cell is made of.

FOLDS = (Kind.SESSIONS, Kind.CUMULATIVE_AGGREGATE, Kind.SCD_TYPE_2)
"""The kinds that fold the changes of their inputs."""

ROW_HASHES = FrameSchema(
    "a row of a table",
    (
        FrameColumn("cell", "bigint", "the start of the row's cell, microseconds since 1970 UTC"),
        FrameColumn("hash", "bigint", "the hash of the row"),
        FrameColumn("n", "int", "1 for a row as it is now, -1 for one as it was before"),
    ),
)


def _is_folded(project: Project, name: str) -> bool:
    """Whether some model folds the changes of a table, so that its rows have to be compared."""
    return any(
        node.model.kind in FOLDS and any(entry.name == name for entry in node.inputs)
        for node in project
    )


def count_row_changes(
    project: Project,
    node: Node,
    changes: tuple[CellChange, ...],
    before_and_now: Callable[[], tuple[DataFrame, DataFrame]],
) -> tuple[CellChange, ...]:
    """
    The changes, with the rows really added and removed in cells that had rows and have some.

    As they are where no model folds them. The rows of the table before and now may have other cells
    too.
    """
    both = [c for c in changes if c.changes_rows and c.rows_before and c.rows_after]
    if not both or not _is_folded(project, node.name):
        return changes
    before, current = map(user_columns, before_and_now())
    if dict(before.dtypes) != dict(current.dtypes):
        return changes
    counts = _rows_in_one_alone(
        node, [change.cell for change in both], before.select(_all_columns(current)), current
    )
    return tuple(
        replace(change, added=counts[change.cell][0], removed=counts[change.cell][1])
        if change.cell in counts
        else change
        for change in changes
    )


def _all_columns(rows: DataFrame) -> list[Column]:
    return [column(name) for name in rows.columns]


def _rows_in_one_alone(
    node: Node, cells: Sequence[Interval], before: DataFrame, current: DataFrame
) -> Mapping[Interval, tuple[int, int]]:
    """How many rows of each cell only ``current`` has, and how many only ``before`` has."""
    hashes = _row_hashes(node, cells, current, 1).unionAll(_row_hashes(node, cells, before, -1))
    rows = hashes.groupBy("cell", "hash").agg(F.sum("n").alias("n"))
    sums = rows.groupBy("cell").agg(
        F.sum(F.greatest("n", F.lit(0))).alias("added"),
        F.sum(F.greatest(-F.col("n"), F.lit(0))).alias("removed"),
    )
    granularity = node.model.granularity
    return {
        # At most a row for each cell.
        cell_of(row["cell"], granularity): (row["added"], row["removed"])
        for row in sums.collect()
    }


@returns(ROW_HASHES)
def _row_hashes(node: Node, cells: Sequence[Interval], rows: DataFrame, count: int) -> DataFrame:
    """The row hashes of some cells."""
    series, granularity = node.model.timeseries, node.model.granularity
    time = F.lit(None).cast("timestamp")
    if series is not None and granularity is not None:
        rows = rows_in_cells(rows, series.partition_column, cells, granularity)
        time = column(series.partition_column)
    return rows.select(
        cell_start(time, granularity).alias("cell"),
        row_hash(rows.schema).alias("hash"),
        F.lit(count).alias("n"),
    )
