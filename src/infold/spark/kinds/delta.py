"""
What changed in a sessions model's input between two versions, as islands of its own.

Rows that infold stores carry the version that inserted them, so what was added is found by that
number in the changed cells, and files of other versions are not even opened. What is gone is found
by comparing the two snapshots, in cells that lost rows only. Tables that are recomputed cell by
cell carry no such number; there both snapshots of the changed cells are compared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import reduce
from operator import and_

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.interval import Ranges
from infold.project import SessionsQuery
from infold.spark.content import column, in_time
from infold.spark.kinds.aggregates import Measures
from infold.spark.kinds.islands import islands, prepared, wanted, who
from infold.spark.kinds.pieces import COUNT, NAMED, NAMED_AT
from infold.spark.kinds.stored import VERSION
from infold.trace import CellChange

GONE = "__gone"
"""Whether an island of the delta is of events that are no longer there."""


def bare(over: Measures) -> Measures:
    """Nothing of the aggregates: islands with their first and last times alone."""
    return replace(over, arguments=(), parts=(), picks=(), raw=False)


def counted(over: Measures) -> Measures:
    """Of the aggregates only those that say what is known of a session in quarantine."""
    parts = tuple(part for part in over.parts if part.name in (COUNT, NAMED, NAMED_AT))
    picks = tuple(pick for pick in over.picks if pick.value == NAMED)
    return replace(over, parts=parts, picks=picks, raw=False)


def merges(query: SessionsQuery, over: Measures) -> bool:
    """Whether what arrived can be merged into stored sessions without reading their events."""
    return over.mergeable and not (query.cuts.campaign or query.cuts.start)


View = Callable[[DataFrame], DataFrame]
"""What a sessions model sees of its stored input: all of it, or a view over some of its rows."""


class Delta:
    """
    A stored input at two versions, ``before`` (None: it was empty) and ``now``.

    ``view`` is applied to changed rows, which is right because such views are row-wise.
    """

    def __init__(
        self,
        query: SessionsQuery,
        over: Measures,
        view: View,
        before: DataFrame | None,
        now: DataFrame,
        changes: Sequence[CellChange],
        since: int,
    ) -> None:
        self.query, self.since, self.view = query, since, view
        self.over = over if merges(query, over) else bare(over)
        if query.limited and not merges(query, over):
            self.over = counted(over)
        self.before, self.now = before, now
        self.added_in = Ranges.of(change.cell for change in changes if change.added)
        self.gone_from = Ranges.of(change.cell for change in changes if change.removed)
        self.rows = sum(change.added + change.removed for change in changes)
        self.looked_through = sum(
            change.rows_after + (change.rows_before if change.removed or not self._numbered else 0)
            for change in changes
        )

    @property
    def _numbered(self) -> bool:
        return VERSION in self.now.columns

    def nobody(self) -> DataFrame:
        """The added events without a user or an identifier, which are in no session."""
        return wanted(self._added(), self.query).where(who(self.query).isNull())

    def islands(self) -> DataFrame:
        """The islands of what was added and of what is gone, marked by ``__gone``."""
        query = self.query
        added = islands(prepared(self._added(), query, self.over), query, self.over)
        found = added.withColumn(GONE, F.lit(False))
        gone = self._gone()
        if gone is None:
            return found
        nothing = bare(self.over)
        lost = islands(prepared(self.view(gone), query, nothing), query, nothing)
        return found.unionByName(lost.withColumn(GONE, F.lit(True)), allowMissingColumns=True)

    def _added(self) -> DataFrame:
        now = self._in(self.now, self.added_in)
        if self._numbered:
            return self.view(now.where(F.col(VERSION) > self.since))
        if self.before is not None:
            now = _minus(now, self._in(self.before, self.added_in))
        return self.view(now)

    def _gone(self) -> DataFrame | None:
        """Stored rows that are no longer there."""
        if self.before is None or not self.gone_from:
            return None
        before, now = (self._in(frame, self.gone_from) for frame in (self.before, self.now))
        if not self._numbered:
            return _minus(before, now)
        names = list(dict.fromkeys((*self._identity(), self.query.time_column, VERSION)))
        others = now.select(*(column(name).alias(f"__{at}") for at, name in enumerate(names)))
        same = [column(name).eqNullSafe(F.col(f"__{at}")) for at, name in enumerate(names)]
        return before.join(others, reduce(and_, same), "left_anti")

    def _identity(self) -> Iterable[str]:
        """What tells rows apart; without a key, a row leaves only with all rows of its file."""
        if self.query.key:
            return self.query.key
        return [name for name in ("_source_file",) if name in self.now.columns]

    def _in(self, frame: DataFrame, ranges: Ranges) -> DataFrame:
        return frame.where(in_time(frame, self.query.time_column, ranges))


def _minus(rows: DataFrame, others: DataFrame) -> DataFrame:
    return rows.exceptAll(others.select(*map(column, rows.columns)))
