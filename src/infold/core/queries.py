"""
The parts of the queries that infold folds, and names as Spark SQL takes them.

``analysis`` splits a model's SQL into these values, and ``spark`` computes the model from them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from infold.core.interval import MAX, MIN, Interval, datetime_of
from infold.core.sessions import IDENTIFIER, NUMBERS, DeclaredCut, Keep, ManualEntry


@dataclass(frozen=True, slots=True)
class Aggregate:
    """
    One aggregate call of a query that is folded.

    ``call`` is the lower-case function (``count``, ``count_if``, ``sum``, ``min``, ``max``,
    ``avg``, ``bool_and``, ``bool_or``; ``first``, ``last`` of sessions, ``min_by``, ``max_by`` of
    cumulative aggregates) or ``other``. ``argument`` is Spark SQL over one event or row (None for
    ``count(*)``), ``filter`` that of FILTER (WHERE …). ``sql`` is the whole call as written, for
    aggregates that are evaluated over reread events.
    """

    name: str
    call: str
    argument: str | None
    filter: str | None
    ignore_nulls: bool
    sql: str
    distinct: bool = False
    order: str | None = None
    """The second argument of ``min_by`` and ``max_by``, as SQL."""


@dataclass(frozen=True, slots=True)
class Output:
    """
    One column of a model, and Spark SQL for it.

    That of a sessions model, and of a :class:`FollowedSelect`, is over its aggregates' names
    (``_a0``, ``_a1`` …).
    """

    name: str
    sql: str


@dataclass(frozen=True, slots=True)
class Fallback:
    """Sessions by user and gap, of events without an identifier; ``user`` is SQL over one event."""

    user: str
    gap: int


@dataclass(frozen=True, slots=True)
class SessionsQuery:
    """
    The parts of a sessions model's SELECT and front matter.

    ``key`` is the input's unique key, the tie-break after event time in the order of events; unless
    it is ``unique``, all other columns come after it. Each session has an owner: ``owner_sql`` over
    one event, or the column ``user`` where it is None. The table shows the owner in the column
    ``user``. ``gap`` None: no silence ends a session. In sessions by identifier, ``chosen_user`` is
    the column of the session's user and its value, an aggregate's name.
    """

    input: str
    time_column: str
    user: str
    gap: int | None
    key: tuple[str, ...]
    where: str | None
    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    before_start: str | None = None
    """The events that ``where`` leaves out as the model's start is after them; SQL over one."""
    owner_sql: str | None = None
    chosen_user: Output | None = None
    fallback: Fallback | None = None
    cuts: tuple[DeclaredCut, ...] = ()
    quarantine_after: int | None = None
    keep: Keep = Keep.NOTHING
    numbered: bool = False
    unique: bool = True
    entries: tuple[ManualEntry, ...] = ()
    """
    The manual entries about its sessions; set when a step is executed, not part of the definition.
    """
    passed_columns: tuple[tuple[str, tuple[tuple[str, str], ...]], ...] = ()
    """
    For each table behind a view, the columns that the view shows unchanged: the view's, the
    table's.
    """

    def from_start(self, start: int) -> SessionsQuery:
        """The same for events from an instant on."""
        time = quoted(self.time_column)
        at = _timestamp(start)
        condition = "" if self.where is None else f"({self.where}) AND "
        return replace(
            self, where=f"{condition}{time} >= {at}", before_start=f"{condition}{time} < {at}"
        )

    def during(self, times: Interval) -> SessionsQuery:
        """The same for the events of a stretch of time alone; sessions end with it."""
        time = quoted(self.time_column)
        tests = [f"{time} {sign} {_timestamp(at)}" for sign, at in _ends_of(times)]

        def within(condition: str | None) -> str | None:
            every = (
                tests if condition is None else [f"({condition}\n)", *tests]
            )  # it may end in a comment
            return " AND ".join(every) or None

        before = self.before_start and within(self.before_start)
        return replace(self, where=within(self.where), before_start=before)

    @property
    def may_quarantine(self) -> bool:
        """Whether sessions may be in quarantine."""
        return self.quarantine_after is not None or bool(self.entries)

    @property
    def cuts_within_islands(self) -> bool:
        """Whether sessions end within islands, at places that follow from the events before."""
        return any(not cut.pairwise for cut in self.cuts)

    @property
    def fixed_columns(self) -> tuple[str, ...]:
        """The columns of the table besides the outputs, in order."""
        chosen = (self.chosen_user.name,) if self.chosen_user else ()
        numbers = NUMBERS if self.numbered else ()
        return ("session_id", self.user, *chosen, "session_start", "session_end", *numbers)

    @property
    def owner_column(self) -> str:
        """The column of the table with a session's user or identifier."""
        return self.chosen_user.name if self.chosen_user else self.user


def _timestamp(at: int) -> str:
    """An instant as a literal of Spark SQL."""
    return f"TIMESTAMP '{datetime_of(at).isoformat(sep=' ')}'"


def _ends_of(times: Interval) -> Iterator[tuple[str, int]]:
    """The ends that a stretch has, each with how times compare with it."""
    if times.start > MIN:
        yield ">=", times.start
    if times.end < MAX:
        yield "<", times.end


def left_out_reason(query: SessionsQuery) -> str:
    """Why an event without an owner is in no session."""
    return "null identifier" if query.user == IDENTIFIER else "null user"


@dataclass(frozen=True, slots=True)
class FollowedSelect:
    """
    The SELECT of a cumulative aggregate all of whose aggregates have states.

    ``outputs`` are its columns in order; those of keys have no SQL. ``having`` is over the names of
    aggregates and of outputs. The items of the SELECT end before the character ``items_end`` of the
    model's text, where FROM begins.
    """

    aggregates: tuple[Aggregate, ...]
    outputs: tuple[Output, ...]
    items_end: int
    having: str | None = None


@dataclass(frozen=True, slots=True)
class GroupedQuery:
    """
    The parts of a cumulative aggregate's SELECT.

    ``input`` is the name in FROM. ``keys`` are those of GROUP BY, as columns of the table and as
    Spark SQL over one row of the input; ``where`` filters these rows. ``columns`` are those of the
    input that the query names; None when that is not known. With ``having``, a key may have rows
    there and none here.
    """

    input: str
    keys: tuple[Output, ...]
    where: str | None = None
    columns: tuple[str, ...] | None = None
    having: bool = False
    followed: FollowedSelect | None = None
    """How each aggregate goes on from its state; None: a key's rows are all read again."""


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """
    The files of a landed source, each a snapshot of all that there was.

    ``time`` is SQL for its instant, over the ``column`` with the time of a file.
    """

    source: str
    column: str
    time: str


@dataclass(frozen=True, slots=True)
class VersionedQuery:
    """
    The parts of the SELECT of an ``scd_type_2`` model, which gives a row for each row of its input.

    ``grouped`` has the input, its WHERE and the keys. ``updated_at`` is the column with the instant
    of a version. ``compared`` are the columns that differ from one version to the next; None where
    every instant is a version.
    """

    grouped: GroupedQuery
    updated_at: str
    compared: tuple[str, ...] | None = None
    snapshots: bool = False
    """Whether a key ends at the first instant of others at which it has no row."""
    snapshot_files: SnapshotFiles | None = None
    """The files that are snapshots even without rows, where the instant of rows is their file's."""

    @property
    def keys(self) -> tuple[str, ...]:
        """The names of the columns that say what a row is a version of."""
        return tuple(key.name for key in self.grouped.keys)


VALID_FROM, VALID_TO = "valid_from", "valid_to"
"""
The columns that such a table has besides those of its query: the half-open stretch of time in which
a version was the one in force. The second is NULL in the newest.
"""

ALL_COLUMNS = "*"
"""In place of columns: all but the key and the time."""


@dataclass(frozen=True, slots=True)
class VersionRules:
    """
    ``updated_at`` is the column with the instant that a row is a version of.

    With ``columns`` a version is one with other values in these than the one before it; ``*`` alone
    means all columns but the key and ``updated_at``. Without, every instant is a version.
    """

    updated_at: str
    columns: tuple[str, ...] = ()
    invalidate_hard_deletes: bool = False
    """
    Whether the rows of an instant are all that there was then: a key that has no row at the next
    instant of any key ends there.
    """


def quoted(name: str) -> str:
    """A name as a quoted Spark SQL identifier, whatever its characters."""
    return "`" + name.replace("`", "``") + "`"


def text_literal(text: str) -> str:
    """A string literal of exactly that text."""
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"
