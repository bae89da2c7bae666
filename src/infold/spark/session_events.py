"""
The events of one user or identifier, found with Spark: through views, by any SQL expression.

A view hides which rows of its tables it was made of. But each of its rows is made of one row
(``feed``). So the view is evaluated over the rows of each run and file by themselves. If there are
many of these groups, several are evaluated together first, and only those with events one by one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Any, NamedTuple

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.interval import DAY, Interval, Ranges
from infold.core.own_columns import FILE, VERSION
from infold.core.project import Node
from infold.core.queries import SessionsQuery
from infold.inspecting.session_events import UserEvents
from infold.inspecting.session_history import Event
from infold.spark.content import column, micros, time_predicate, user_columns
from infold.spark.sessions.islands import events_of_query
from infold.spark.step_context import Work

GROUPS_AT_ONCE = 16
"""How many groups of rows a query evaluates a view over."""


class Group(NamedTuple):
    """Rows of one table that one version of it inserted, from one file."""

    table: str
    version: int | None
    file: int | None


def events_of(
    work: Work,
    node: Node,
    match: Mapping[str, Any],
    snapshots: Mapping[str, int | None],
    start: int,
    end: int,
) -> UserEvents:
    """The events from ``start`` to ``end`` of the user or identifier with the values ``match``."""
    days = Ranges.of([Interval(start // DAY * DAY, (end // DAY + 1) * DAY)])
    frames = {}
    for entry in node.folded_inputs:
        rows = work.tables.read(entry.name, snapshots[entry.name])
        assert entry.time_column is not None, "an input that feeds a model has a time column"
        frames[entry.name] = rows.where(
            time_predicate(rows, entry.time_column, days)
        ).localCheckpoint()
    beside = {
        entry.name: user_columns(work.tables.read(entry.name, snapshots[entry.name]))
        for entry in node.inputs
        if entry.name not in frames
    }
    search = _Search(work, node, match, frames, beside, start, end)
    events = [
        Event(at, group.version, group.file, group.table)
        for group, times in search.times_by_group(search.groups())
        for at in times
    ]
    return UserEvents(
        events=tuple(sorted(events, key=lambda event: event.at)),
        undated=tuple(name for name, rows in frames.items() if VERSION not in rows.columns),
    )


class _Search(NamedTuple):
    """Rows of some tables, and the user or identifier to find among them."""

    work: Work
    node: Node
    match: Mapping[str, Any]
    frames: Mapping[str, DataFrame]
    beside: Mapping[str, DataFrame]
    start: int
    end: int

    def groups(self) -> list[Group]:
        """The versions and files of the rows."""
        groups = []
        for name, rows in self.frames.items():
            known = [F.col(own) if own in rows.columns else F.lit(None) for own in (VERSION, FILE)]
            # At most a row for each version and file with rows of one owner.
            groups += [Group(name, *row) for row in rows.select(*known).distinct().collect()]
        return sorted(groups, key=str)

    def times_by_group(self, groups: Sequence[Group]) -> Iterator[tuple[Group, list[int]]]:
        """The times of the events that are made of rows of each group with events."""
        size = max(1, -(-len(groups) // GROUPS_AT_ONCE))
        parts = [groups[at : at + size] for at in range(0, len(groups), size)]
        for part, times in self._times_by_part(parts):
            if len(part) == 1:
                yield part[0], times
            else:
                yield from self.times_by_group(part)

    def _times_by_part(
        self, parts: Sequence[Sequence[Group]]
    ) -> Iterator[tuple[Sequence[Group], list[int]]]:
        if not parts:
            return
        query = self.node.query
        assert query is not None, "a sessions model has a compiled query"
        frames = [
            self._events(query, part).select(F.lit(number).alias("part"), "at")
            for number, part in enumerate(parts)
        ]
        times: dict[int, list[int]] = {}
        # At most a row for each event of one owner.
        for row in reduce(DataFrame.unionAll, frames).collect():
            times.setdefault(row["part"], []).append(row["at"])
        for number in sorted(times):
            yield parts[number], times[number]

    def _events(self, query: SessionsQuery, part: Sequence[Group]) -> DataFrame:
        """The times of the events that are made of rows of some groups."""
        given = {}
        for name, rows in self.frames.items():
            tests = [_in_group(rows, group) for group in part if group.table == name]
            given[name] = user_columns(rows.where(reduce(Column.__or__, tests, F.lit(False))))
        if query.input in given:
            events = given[query.input]
        else:
            view = self.work.project[query.input]
            events = self.work.sql(view, {**given, **self.beside})
        at = micros(column(query.time_column)).alias("at")
        owned = events_of_query(events, query).where(_is_of(query, self.match)).select(at)
        return owned.where(F.col("at").between(self.start, self.end))


def _in_group(rows: DataFrame, group: Group) -> Column:
    """Whether a row is of a group."""
    marks = ((VERSION, group.version), (FILE, group.file))
    tests = [F.col(name).eqNullSafe(F.lit(value)) for name, value in marks if name in rows.columns]
    return reduce(Column.__and__, tests, F.lit(True))


def _is_of(query: SessionsQuery, match: Mapping[str, Any]) -> Column:
    """Whether an event is of the user or identifier with these values in the sessions table."""
    identifier = F.expr(query.owner_sql) if query.owner_sql else column(query.user)
    value = match[query.user]
    if value is not None or query.fallback is None:
        return _has_value(identifier, value)
    [user] = [given for name, given in match.items() if name != query.user]
    return identifier.isNull() & _has_value(F.expr(query.fallback.user), user)


def _has_value(owner: Column, value: object) -> Column:
    """Whether a column has a value; text is compared as text, as the ledger stores it."""
    return (
        owner.cast("string") == value if isinstance(value, str) else owner.eqNullSafe(F.lit(value))
    )
