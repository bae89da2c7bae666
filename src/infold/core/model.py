"""
What a project declares, as frozen values: sources, models and their materializations.

These values are what the user wrote, checked and with defaults filled in. They know nothing of
files, tables or Spark. ``declare`` makes them, ``analysis`` adds what follows from a model's SQL.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum

from infold.core.audits import Audit
from infold.core.formats import FORMATS, Format
from infold.core.functions import CalledFunction, PythonCode
from infold.core.interval import DAY, HOUR, MAX, MIN, Granularity
from infold.core.queries import VersionRules
from infold.core.sessions import Sessions
from infold.core.storages import Catalog


class Drift(StrEnum):
    """What happens to a new file that does not have the declared columns, or cannot be read."""

    ERROR = "error"
    SET_ASIDE = "set_aside"
    EVOLVE = "evolve"
    """As ``error``, but columns that are not declared wait in the files until they are."""


ON_UNREADABLE = (Drift.ERROR, Drift.SET_ASIDE)
"""What may happen to a file that cannot be read."""


class NewColumns(StrEnum):
    """What happens to a new file that has columns which are not declared."""

    ERROR = "error"
    SET_ASIDE = "set_aside"
    IGNORE = "ignore"
    """They are not read."""


@dataclass(frozen=True, slots=True)
class Place:
    """The position of a declaration: file (relative to the project), 1-based line and column."""

    file: str
    line: int = 1
    column: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True)
class Column:
    """
    A declared column: its name as written and its Spark SQL type (``decimal(18,2)``).

    A file may lack an ``optional`` one; its value is ``default`` then (as text; None: NULL).
    """

    name: str
    type: str
    optional: bool = False
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """
    Rows from outside: a folder of files, a table of another catalog, or one in a database.

    Either ``path`` (a glob, relative to the project; of a Delta table its folder) or ``table`` is
    set. That is ``namespace.name`` in ``catalog``, by default the target's own (of Iceberg), or a
    name in the database ``url``. Lengths of time are microseconds. A source without
    ``event_time_column`` is a lookup.
    """

    name: str
    format: Format
    columns: tuple[Column, ...]
    path: str | None = None
    table: str | None = None
    catalog: Catalog | None = None
    event_time_column: str | None = None
    received_column: str | None = None
    file_time_column: str | None = None
    """One of ``columns`` that is in no file: the modification time of the row's file."""
    partition_columns: tuple[str, ...] = ()
    """Those of ``columns`` that are in no file: folders have their values (``folder_values``)."""
    future_tolerance: int = HOUR
    """How much later than received an event may be dated; with ``received_column`` only."""
    timestamp_format: str = "iso"
    """``iso``, ``epoch_seconds``, ``epoch_millis``, ``epoch_micros`` or a Spark pattern (UTC)."""
    settle: int = 0
    """A file younger than this (by its modification time) waits."""
    on_drift: Drift = Drift.ERROR
    removal_limit: float | None = None
    """How many percent of its rows or files may go in one run; None: see ``destructive``."""
    delimiter: str = ","
    multiline: bool = False
    """Of JSON: a file is objects and lists of them, over any lines, and not one object a line."""
    positions: tuple[str, ...] = ()
    """
    Of CSV files without a header: all declared columns that files have, in the order of the fields.
    """
    quoted: bool = True
    """Of CSV: whether a field may be in quotes. If not, a quote is a letter like any other."""
    place: Place = field(default=Place("infold.yml"), compare=False)
    on_new_columns: NewColumns | None = None
    """What happens to files with columns that are not declared; None: as ``on_drift`` says."""
    on_unreadable: Drift = Drift.ERROR
    may_be_empty: bool = False
    """Whether a table is built first where no file is there."""
    full_listing: str | None = None
    """
    When all dated folders are listed: ``daily``, ``weekly`` or after a length of time, as written.

    None: whenever files are.
    """
    listing_window: int = 3 * DAY
    """How long after its day a dated folder is listed anyway."""
    url: str | None = None
    """Of a table in a database: where that is, with references in place of secrets."""
    key: str | None = None
    """The column by which new rows are found; None: all of them are read each time."""
    reread: int | None = None
    """How long before the greatest key rows are read again; None: none is."""
    retain: int | None = None
    """How long after their event time events models keep its rows; microseconds, None: for good."""
    unread_columns: tuple[str, ...] = ()
    """Declared columns that a model does not read; set for a reader, never as declared."""

    @property
    def is_table(self) -> bool:
        """Whether it is a table, and no folder of files."""
        return FORMATS[self.format].is_table

    @property
    def new_columns(self) -> NewColumns:
        """What happens to a new file with columns that are not declared."""
        if self.on_new_columns is not None:
            return self.on_new_columns
        ignored = self.on_drift is Drift.EVOLVE
        return NewColumns.IGNORE if ignored else NewColumns(self.on_drift.value)

    @property
    def read_positions(self) -> list[int]:
        """Of files without a header: which fields the columns are; the first one is 0."""
        return [
            self.positions.index(one.name) for one in self.columns if one.name in self.positions
        ]

    @property
    def of_files(self) -> Source:
        """The source with the columns alone that are in its files."""
        columns = tuple(one for one in self.columns if one.name not in self.names_of_no_file)
        return replace(self, columns=columns, file_time_column=None, partition_columns=())

    @property
    def names_of_no_file(self) -> Collection[str | None]:
        """The columns that are not in its files."""
        return (self.file_time_column, *self.partition_columns)

    def without_columns(self, names: Collection[str]) -> Source:
        """The source for a reader that does not name some of its columns."""
        if not names:
            return self
        columns = tuple(column for column in self.columns if column.name not in names)
        return replace(self, columns=columns, unread_columns=(*self.unread_columns, *names))


class Materialization(StrEnum):
    """The field's word for how a model is kept."""

    VIEW = "view"
    TABLE = "table"
    EVENTS = "events"
    SESSIONS = "sessions"
    CUMULATIVE_AGGREGATE = "cumulative_aggregate"
    SCD_TYPE_2 = "scd_type_2"


class Kind(StrEnum):
    """How a model is brought up to date: its materialization and its rebuilder in one word."""

    VIEW = "view"
    """Nothing stored; readers evaluate its query."""
    TABLE = "table"
    """One cell, recomputed when anything it reads changes."""
    INCREMENTAL_TABLE = "incremental table"
    """Cells of event time, recomputed one by one."""
    EVENTS = "events"
    """Rows of a source, deduplicated, folded in file by file."""
    SESSIONS = "sessions"
    """Islands of a user's events, folded in or reread."""
    CUMULATIVE_AGGREGATE = "cumulative_aggregate"
    """One cell, one row for each key of GROUP BY; changed rows are folded in key by key."""
    SCD_TYPE_2 = "scd_type_2"
    """One cell, one row for each version of a key; changed rows are folded in key by key."""

    @property
    def is_view(self) -> bool:
        """Whether nothing of it is stored."""
        return self is Kind.VIEW

    @property
    def is_stored(self) -> bool:
        """Whether it has a table."""
        return self is not Kind.VIEW

    @property
    def is_by_cell(self) -> bool:
        """Whether cells are recomputed one by one, each from a bounded part of its inputs."""
        return self is Kind.INCREMENTAL_TABLE

    @property
    def is_by_key(self) -> bool:
        """Whether it is one cell, into which changed rows are folded key by key."""
        return self in (Kind.CUMULATIVE_AGGREGATE, Kind.SCD_TYPE_2)

    @property
    def is_folded(self) -> bool:
        """Whether changed rows of its input are folded into the rows that are stored."""
        return self is Kind.EVENTS or self is Kind.SESSIONS or self.is_by_key

    @property
    def materialization(self) -> Materialization:
        """What a model of this kind declares."""
        if self is Kind.INCREMENTAL_TABLE:
            return Materialization.TABLE
        return Materialization(self.value)


@dataclass(frozen=True, slots=True)
class Timeseries:
    """The time dimension: event time, the column that places a row in a cell, and cell length."""

    event_time_column: str
    partition_column: str
    granularity: Granularity = Granularity.DAY


class Deduplicate(StrEnum):
    """Among which rows an events model looks for copies of an event."""

    SAME_TIME = "same_time"
    """Rows of one key and one event time are copies; the same key at another time is another."""
    EVERYWHERE = "everywhere"
    """Rows of one key are copies at any time: one row for each key."""


class Override(StrEnum):
    """A construct that a person vouches for: every cell by itself is what they mean."""

    WINDOW_FUNCTIONS = "allow_window_functions"
    HAVING = "allow_having"
    LIMIT = "allow_limit"
    SUBQUERIES = "allow_subqueries"
    NONDETERMINISTIC = "allow_nondeterministic"
    DISTINCT = "allow_distinct"


class Strategy(StrEnum):
    """How the rows of built cells get into the table."""

    DELETE_INSERT = "delete_insert"
    """What is in the cells is replaced, as one commit."""
    INSERT_OVERWRITE = "insert_overwrite"
    """The same, by the storage's overwrite of a range."""
    APPEND = "append"
    """Rows are added; only empty cells can be built."""


class DefinitionChange(StrEnum):
    """What readers see of a table while a changed definition is being built."""

    COMPLETE = "complete"
    """
    The old table, until the new one takes its place. One that takes more than a run is built apart.
    """
    IN_PLACE = "in_place"
    """The old table, until one commit replaces its rows: all in one run, whatever the limit."""
    REBUILT_CELLS = "rebuilt_cells"
    """The cells that are built already, and nothing of the old definition."""


class OnLoss(StrEnum):
    """What happens to a change that takes a column, a type or a key from a stored table."""

    ERROR = "error"
    """It is refused."""
    WARN = "warn"
    """It is carried out, with a note."""
    ALLOW = "allow"


class Late(StrEnum):
    """By which definition late rows are computed where cells keep the rows of an earlier one."""

    EARLIER = "earlier"
    """By the one in force there."""
    NEW = "new"
    """By the newest; it is in force there from then on."""


@dataclass(frozen=True, slots=True)
class DeclaredBound:
    """How far around its cell a model reads an input, as its author says; microseconds."""

    input: str
    before: int = 0
    after: int = 0


@dataclass(frozen=True, slots=True)
class Incremental:
    """
    How a table is built cell by cell.

    ``batch_size`` counts cells; ``batch_concurrency`` is how many batches may be built at the same
    time (None: as many as the run lets). ``start`` is the instant from which cells are kept,
    and the whole cell that it lies in unless ``exact_start``.
    ``cron`` says when a run builds the model (in ``cron_tz``), and that only cells that have ended
    by then are built unless ``allow_partials``.
    """

    unique_key: tuple[str, ...] = ()
    overrides: tuple[Override, ...] = ()
    bounds: tuple[DeclaredBound, ...] = ()
    batch_size: int | None = None
    batch_concurrency: int | None = None
    start: int | None = None
    exact_start: bool = False
    cron: str | None = None
    cron_tz: str = "UTC"
    allow_partials: bool = False
    strategy: Strategy = Strategy.DELETE_INSERT
    backfill_limit: int | None = None
    """How much event time of a first build or rebuild one run takes on; microseconds."""
    on_definition_change: DefinitionChange = DefinitionChange.COMPLETE
    forward_only: bool = False
    """Whether a changed definition leaves the cells that are built already as they are."""
    late: Late = Late.EARLIER


FOREVER = MAX - MIN
"""A ``retain`` that no row is older than."""


@dataclass(frozen=True, slots=True)
class Model:
    """
    One declared table.

    ``sql`` is the SELECT, with functions expanded; it starts on line ``sql_line`` of the file, from
    1. With ``python``, ``sql`` only says what the function reads and yields.
    """

    name: str
    materialization: Materialization
    sql: str
    timeseries: Timeseries | None = None
    incremental: Incremental | None = None
    sessions: Sessions | None = None
    versions: VersionRules | None = None
    unique_key: tuple[str, ...] = ()
    prefer: tuple[str, ...] = ()
    """Which copy of an event wins, before the row hash decides: ``column`` or ``column desc``."""
    deduplicate: Deduplicate = Deduplicate.SAME_TIME
    start: int | None = None
    """Of events and sessions: the instant before which there are no events."""
    retain: int | None = None
    """
    Of events, and of tables built cell by cell: how long rows are kept after their time, in
    microseconds. None: events for good, a table built cell by cell as long as what it reads.
    """
    overrides: tuple[Override, ...] = ()
    """The safety checks that its author overrides, for tables built cell by cell or whole."""
    on_destructive_change: OnLoss | None = None
    """None: as the target decides."""
    renamed_from: tuple[tuple[str, str], ...] = ()
    """Columns that had another name before: the new name and that."""
    forward_only: bool = False
    """Whether its changed definitions hold from some cell on; of tables ``incremental`` says it."""
    tags: tuple[str, ...] = ()
    description: str = ""
    audits: tuple[Audit, ...] = ()
    functions: tuple[CalledFunction, ...] = ()
    sql_line: int = 1
    place: Place = field(default=Place("models"), compare=False)
    python: PythonCode | None = None

    @property
    def kind(self) -> Kind:
        """How the model is brought up to date."""
        if self.materialization is Materialization.TABLE:
            return Kind.INCREMENTAL_TABLE if self.incremental else Kind.TABLE
        return Kind(self.materialization.value)

    @property
    def written(self) -> str:
        """What its author wrote: a SELECT, or the file with its function."""
        return self.sql if self.python is None else self.python.modules[0].source

    @property
    def changes_forward_only(self) -> bool:
        """Whether a changed definition leaves the cells before it as they are."""
        incremental = self.incremental is not None and self.incremental.forward_only
        return self.forward_only or incremental

    @property
    def granularity(self) -> Granularity | None:
        """The length of the model's cells; None for one cell."""
        if self.kind is Kind.SESSIONS:
            return self.timeseries.granularity if self.timeseries else Granularity.DAY
        if self.kind in (Kind.EVENTS, Kind.INCREMENTAL_TABLE) and self.timeseries:
            return self.timeseries.granularity
        return None


ERASURES = "infold__erasures"
"""The storage name of the table with the requests to erase, for whoever loses the ledger."""

SET_ASIDE = "infold__set_aside"
"""The storage name of the table of rows that could not be used; it goes with the target."""

UNPUBLISHED = "__unpublished"
"""The end of the storage names of tables that infold writes and that readers do not read yet."""


def table_name(model: str) -> str:
    """The storage name of a model's or landed source's table: dots become two underscores."""
    return model.replace(".", "__")


def any_result_will_do(model: Model) -> bool:
    """Whether ``allow_nondeterministic`` is among a model's overrides, or its `incremental`'s."""
    incremental = model.incremental
    own = incremental.overrides if incremental is not None else ()
    return Override.NONDETERMINISTIC in (*model.overrides, *own)
