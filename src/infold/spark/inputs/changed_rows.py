"""
What changed in a stored table between two versions: the rows that came, and those that are gone.

Rows that infold stores carry the version that inserted them, so what was added is found by that
number in the changed cells, and files of other versions are not even opened. What is gone is found
by comparing the two snapshots, in cells that lost rows only. Tables that are recomputed, cell by
cell or whole, carry no such number, or one that says nothing: all rows of a table that was built
anew have the same. There both snapshots of the changed cells are compared, row by row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Granularity, Interval
from infold.core.session_columns import ID, VERSION
from infold.core.trace import CellChange, net
from infold.spark.content import column, in_cells, plain
from infold.spark.step_context import Work

KEY = "_key"
"""What the rows of a cumulative aggregate are known by."""


@dataclass(frozen=True)
class ChangedRows:
    """
    A stored table at two versions, ``before`` (None: it was empty) and ``now``.

    ``changes`` are net, from version ``since`` on. ``time`` is the column of its cells, None for
    one cell. ``identity`` tells those rows apart that were inserted by one version at one time.
    """

    before: DataFrame | None
    now: DataFrame
    changes: Sequence[CellChange]
    since: int
    time: str | None
    identity: Sequence[str] = ()
    granularity: Granularity | None = None
    anew: bool = False
    """Whether the table was built anew since, which inserts rows that were there before."""

    @property
    def rows(self) -> int:
        """How many rows came or went, as cells count them."""
        return sum(change.added + change.removed for change in self.changes)

    @property
    def looked_through(self) -> int:
        """How many rows lie in what has to be read to find them."""
        return sum(
            change.rows_after + (change.rows_before if change.removed or not self.numbered else 0)
            for change in self.changes
        )

    @property
    def numbered(self) -> bool:
        """Whether rows carry the version that inserted them, and came with it."""
        return VERSION in self.now.columns and not self.anew

    def added(self) -> DataFrame:
        """Rows that were not there before."""
        cells = [change.cell for change in self.changes if change.added]
        now = self._in(self.now, cells)
        if self.numbered:
            return now.where(F.col(VERSION) > self.since)
        if self.before is not None:
            now = _rows_not_in(now, self._in(self.before, cells))
        return now

    def gone(self) -> DataFrame | None:
        """Rows that are no longer there; None when nothing was removed."""
        cells = [change.cell for change in self.changes if change.removed]
        if self.before is None or not cells:
            return None
        before, now = (self._in(frame, cells) for frame in (self.before, self.now))
        if not self.numbered:
            return _rows_not_in(before, now)
        names = list(dict.fromkeys((*self.identity, *([self.time] if self.time else ()), VERSION)))
        others = now.select(*(column(name).alias(f"__{at}") for at, name in enumerate(names)))
        same = [column(name).eqNullSafe(F.col(f"__{at}")) for at, name in enumerate(names)]
        return before.join(others, reduce(and_, same), "left_anti")

    def _in(self, frame: DataFrame, cells: Sequence[Interval]) -> DataFrame:
        """The rows of these cells and no others: what came back elsewhere is no change."""
        if self.time is None:
            return frame
        return in_cells(frame, self.time, cells, self.granularity)


def _rows_not_in(rows: DataFrame, others: DataFrame) -> DataFrame:
    """The rows that are not among the others, as users see them; each takes away one equal."""
    rows = plain(rows)
    return rows.exceptAll(others.select(*map(column, rows.columns)))


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
    now = work.frame(name, upto)
    return ChangedRows(
        before=work.frame(name, since) if work.snapshot(name, since) is not None else None,
        now=now,
        changes=[change for change in net(work.ledger.changes(name, since)) if change.real],
        since=since,
        time=time,
        identity=key or [name for name in _KNOWN_BY if name in now.columns][:1],
        granularity=work.project[name].model.granularity,
        anew=_was_replaced(work, name, since, upto),
    )


def _was_replaced(work: Work, name: str, since: int, upto: int) -> bool:
    """Whether a table was replaced as a whole between two versions."""
    return any(entry.whole for entry in work.ledger.versions(name, since) if entry.number <= upto)


_KNOWN_BY = ("_source_file", KEY, ID)
"""Without a key, a row of a file leaves with all rows of the file; others have keys of ours."""


def traceable_table(
    work: Work, name: str, since: int, upto: int, *, compared: bool = False
) -> bool:
    """
    Whether a table still has the columns it had, so that changes between versions can be found.

    With ``compared``, rows are to be compared whatever they carry.
    """
    now = work.frame(name, upto)
    numbered = VERSION in now.columns
    if compared and not _comparable(plain(now)):
        return False
    if numbered and not _was_replaced(work, name, since, upto):
        return True
    if work.snapshot(name, since) is None:
        return numbered
    return work.frame(name, since).schema == now.schema and _comparable(plain(now))


def _comparable(frame: DataFrame) -> bool:
    return not any("map<" in type_ or "variant" in type_ for _, type_ in frame.dtypes)
