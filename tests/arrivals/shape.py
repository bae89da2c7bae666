"""
What a tested project is: sources, and models each with its SQL and the same in plain Python.

A :class:`Shape` is a small project in both languages. The play (see ``play``) writes the files,
runs the program and compares; the shapes themselves stand in ``shapes``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any

from tests.reference.aggregates import Aggregate
from tests.reference.tables import Deduplicated, Ends, Entry, sessions
from tests.reference.world import Row, Rules

from infold.core import interval
from infold.core.interval import Granularity, Interval
from infold.core.sessions import ManualEntry
from infold.core.storages import DEFAULT_STORAGE, Storage

Rows = list[Row]

PERSON = "person"
"""What can be asked to be erased in every project with users."""

os.environ["INFOLD_TEST_ERASURES"] = "a secret of the tests"


@dataclass(frozen=True)
class SourceSpec:
    """A source: its folder below ``landing``, its format, its rules, its columns in order."""

    name: str
    folder: str
    format: str
    rules: Rules
    columns: Mapping[str, str]
    yaml: str
    """Its entry in infold.yml, below its name, without the columns."""
    times: str = "iso"
    """How timestamps are written: ``iso``, ``epoch_seconds``, ``epoch_millis``, or ``native``."""

    @property
    def suffix(self) -> str:
        """What its files' names end with."""
        return {"json": ".json", "csv": ".csv.gz", "parquet": ".parquet"}[self.format]


@dataclass(frozen=True)
class TableSpec:
    """
    One table: its model's file and the same by brute force.

    Tables of files (``source`` set) are given the source's usable rows and say which copies are
    best; others are given the rows of what they read. ``cell`` names the partition column of a
    time-range table. A landed source has no model file.
    """

    name: str
    text: str
    reads: tuple[str, ...]
    rows: Callable[[Mapping[str, Rows]], Rows] | None = None
    source: str | None = None
    best: Callable[[Rows], Deduplicated] | None = None
    key: tuple[str, ...] = ()
    keeps: Callable[[Row], bool] = lambda row: True
    """What WHERE says of a row that is read: one that it drops is neither set aside nor waits."""
    makes: Callable[[Row], Rows] = lambda row: [row]
    """The rows that a row which is kept becomes."""
    cell: str | None = None
    granularity: Granularity | None = None
    view: bool = False
    sessions: bool = False
    whose: Callable[[Row], Any] = lambda row: row["user_id"]
    """What an event's session is of, and how people name that."""
    said_as: Callable[[Any], str] = str
    time: str = "event_ts"


@dataclass(frozen=True)
class Shape:
    """A project: sources, and tables in dependency order, each in some versions of its query."""

    name: str
    sources: tuple[SourceSpec, ...]
    tables: Mapping[str, tuple[TableSpec, ...]]
    tick: int = 1
    """The finest difference between two times, in microseconds, that the format can hold."""
    lookup: str | None = None
    """The source that the operation "change a lookup" writes."""
    windows: bool = False
    """Whether all its cells line up with days, so that a window of days can be asked for."""
    versions: Mapping[str, int] = field(default_factory=dict)
    storage: Storage = DEFAULT_STORAGE
    """How its tables are stored."""

    def source(self, name: str) -> SourceSpec:
        """The source of that name."""
        return next(entry for entry in self.sources if entry.name == name)

    def by_query(self, name: str, sql: str) -> TableSpec:
        """The version of a table with this query."""
        text = f"---\n{sql.strip()}\n"
        found = (spec for spec in self.tables[name] if spec.text.endswith(text))
        return next(found, None) or next(
            spec for spec in self.tables[name] if model_path(name, spec.text).endswith(".py")
        )

    def changeable(self) -> Sequence[str]:
        """The tables that have more than one version of their query."""
        return [name for name, versions in self.tables.items() if len(versions) > 1]

    def landed(self, names: Iterable[str]) -> set[str]:
        """The landed sources that these tables read, directly or through views."""
        found: set[str] = set()
        for name in names:
            for read in self.tables[name][0].reads:
                spec = self.tables[read][0] if read in self.tables else None
                if spec is not None and spec.view:
                    found |= self.landed([read])
                elif spec is not None and spec.source == spec.name:
                    found.add(read)
        return found

    def upstream(self, names: Iterable[str]) -> set[str]:
        """Everything that these tables read, directly or not."""
        found: set[str] = set()
        todo = list(names)
        while todo:
            spec = self.tables[todo.pop()][0]
            # a source that is landed as well has one name for both
            for name in (*spec.reads, spec.source):
                if name and name in self.tables and name != spec.name and name not in found:
                    found.add(name)
                    todo.append(name)
        return found

    def downstream(self, names: Iterable[str]) -> set[str]:
        """Everything that reads these tables, directly or not."""
        wanted = set(names)
        return {name for name in self.tables if self.upstream([name]) & wanted}


def entries_key(name: str) -> str:
    """The name of a table's manual entries among the rows of tables."""
    return f"entries of {name}"


def entry_row(one: ManualEntry) -> Row:
    """A manual entry among the rows of tables."""
    return {"of": one.owner, "held": one.in_quarantine, "start": one.start, "end": one.end}


def during(given: Mapping[str, Rows], name: str, times: Interval) -> Mapping[str, Rows]:
    """What tables hold, of one of them the events of a stretch of time alone."""
    rows = [row for row in given[name] if row["event_ts"] in times]
    return {**given, name: rows}


def with_entries(name: str, given: Mapping[str, Rows], ends: Ends | None = None) -> Ends:
    """Where sessions end, with the manual entries on them."""
    entries = tuple(Entry(**row) for row in given.get(entries_key(name), ()))
    return replace(ends or Ends(), entries=entries)


def model_path(name: str, text: str) -> str:
    """Where in its project a model's file is: one in Python begins with its imports."""
    return f"models/{name}.{'sql' if text.startswith('---') else 'py'}"


def model_file(front: str, sql: str) -> str:
    """A model's file: front matter and one SELECT."""
    return f"---\n{front.strip()}\n---\n{sql.strip()}\n"


def by_cells(
    name: str,
    sql: str,
    reads: tuple[str, ...],
    rows: Callable[[Mapping[str, Rows]], Rows],
    *,
    time: str = "event_ts",
    cell: str = "day",
    granularity: Granularity = Granularity.DAY,
    keys: str = "",
    more: str = "",
) -> TableSpec:
    """A table that is built by cells; ``keys`` are those of ``incremental``."""
    series = f"event_time_column: {time}, partition_column: {cell}, granularity: {granularity}"
    front = f"materialization: table\ntimeseries: {{{series}}}\nincremental: {{{keys}}}{more}"
    return TableSpec(
        name, model_file(front, sql), reads=reads, rows=rows, cell=cell, granularity=granularity
    )


def calls(aggregates: Mapping[str, Aggregate]) -> str:
    """The columns of a SELECT."""
    return ",\n  ".join(f"{each.sql} AS {name}" for name, each in aggregates.items())


def sessions_table(
    name: str,
    read: str,
    own: str,
    aggregates: Mapping[str, Aggregate],
    gap: int | None,
    *,
    keys: str = "",
    where: tuple[str, Callable[[Row], bool | None]] = ("", lambda row: True),
    user: str = "user_id",
    time: str = "event_ts",
    key: Sequence[str] = ("event_id",),
    more: Mapping[str, Aggregate] | None = None,
    ends: Ends | None = None,
    granularity: Granularity | None = Granularity.DAY,
    **spec: Any,
) -> TableSpec:
    """Sessions by ``own`` mapping; ``keys`` are lines of front matter, ``more`` further columns."""
    return TableSpec(
        name,
        model_file(
            f"materialization: sessions\n{keys}sessions: {{{own}}}",
            f"SELECT {calls(aggregates)}\nFROM {read}{where[0]}",
        ),
        reads=(read,),
        rows=lambda given: sessions(
            given[read],
            user=user,
            time=time,
            key=key,
            gap=gap,
            aggregates={**(more or {}), **aggregates},
            where=where[1],
            ends=with_entries(name, given, ends),
        ),
        sessions=True,
        time=time,
        granularity=granularity,
        **spec,
    )


def project_file(name: str, warehouse: str, shape: Shape) -> str:
    """The project's ``infold.yml``."""
    lines = [f"name: {name}", "sources:"]
    for source in shape.sources:
        lines.append(f"  {source.name}:")
        lines += [f"    {line}" for line in source.yaml.strip().splitlines()]
        lines.append("    columns:")
        lines += [f'      {column}: "{type_}"' for column, type_ in source.columns.items()]
    persons = [source.name for source in shape.sources if "user_id" in source.columns]
    columns = ", ".join(f"{name}: user_id" for name in persons)
    lines += [f"erasures: {{{PERSON}: {{{columns}}}}}"] if persons else []
    lines += ["targets:", "  dev:", f"    storage: {shape.storage}", f"    warehouse: {warehouse}"]
    lines.append('    ledger: "sqlite:///.infold/ledger.db"')
    lines.append('    erasure_secret: "${env:INFOLD_TEST_ERASURES}"')
    return "\n".join(lines) + "\n"


# -- the same in Python ----------------------------------------------------------------------------


def day_of(at: int | None) -> date | None:
    """``cast(at AS date)``."""
    return None if at is None else interval.datetime_of(at).date()


def truncated(granularity: Granularity, at: int | None) -> int | None:
    """``date_trunc(granularity, at)``."""
    return None if at is None else granularity.floor(at)


def date_of_cell(granularity: Granularity, at: int | None) -> date | None:
    """``cast(date_trunc(granularity, at) AS date)``."""
    return day_of(truncated(granularity, at))


def cell_start(value: Any) -> int:
    """The instant of a partition value, date or timestamp."""
    if isinstance(value, date):
        return (value - date(1970, 1, 1)).days * interval.DAY
    return int(value)


def only(row: Row, *columns: str) -> Row:
    """A row with some of its columns."""
    return {column: row[column] for column in columns}
