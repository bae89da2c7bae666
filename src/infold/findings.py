"""
What can be wrong with a declaration or a query, built by one function each, with its place.

Mistakes (exit code 2) are about what was written: names, types, keys. Refusals (exit code 3) are
about what it means: a query that cannot be kept up to date in the way that was asked for. Each
has a section in docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches

from infold.errors import InfoldError, Spot

REFUSED = 3


def nearest(word: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The names most like ``word``, best first, without regard to case."""
    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), by_lower, n=count, cutoff=0.5)
    return tuple(by_lower[name] for name in found)


def _near(word: str, names: Iterable[str], all_of: str) -> tuple[tuple[str, str], ...]:
    """The fact that names the nearest right ones, or all when nothing is near and few are."""
    names = tuple(dict.fromkeys(names))
    close = nearest(word, names)
    if close:
        return (("nearest", ", ".join(close)),)
    if 0 < len(names) <= 12:
        return ((all_of, ", ".join(names)),)
    return ()


# --- the files of a project


def bad_yaml(at: Spot, why: str) -> InfoldError:
    """A file that is not YAML."""
    return InfoldError("bad-yaml", "this is not valid YAML", (("why", why),), at=at)


def not_utf8(at: Spot, byte: int) -> InfoldError:
    """A file with bytes that are not UTF-8."""
    return InfoldError(
        "not-utf8",
        "this file is not UTF-8 text",
        (("byte", str(byte)),),
        "Save it as UTF-8.",
        at=at,
    )


def no_front_matter(at: Spot) -> InfoldError:
    """A model's file whose front matter does not end."""
    return InfoldError(
        "no-front-matter",
        "the front matter has no end",
        todo="Close it with a line that is just ---.",
        at=at,
    )


def bad_model_name(at: Spot, name: str) -> InfoldError:
    """A model's file whose name cannot be a table's."""
    return InfoldError(
        "bad-name",
        f"{name!r} cannot be the name of a table",
        todo="Use letters, digits and underscores, a letter first: a model is named by its file.",
        at=at,
    )


def bad_name(at: Spot, what: str, name: str, form: str) -> InfoldError:
    """A name in infold.yml that does not have the form it must have."""
    return InfoldError(
        "bad-name", f"{name!r} cannot be the name of a {what}", (("form", form),), at=at
    )


def duplicate_name(at: Spot, name: str, other: str) -> InfoldError:
    """Two declarations under one name."""
    return InfoldError(
        "duplicate-name",
        f"there is another {name}",
        (("other", other),),
        "Names are compared without regard to case, and dots count as two underscores.",
        at=at,
    )


def python_model(at: Spot) -> InfoldError:
    """A model written in Python."""
    return InfoldError(
        "not-supported-yet",
        "models in Python are not supported yet",
        todo="Write it as SQL.",
        at=at,
    )


# --- keys and their values


def unknown_key(at: Spot, key: str, where: str, known: Iterable[str]) -> InfoldError:
    """A key that nobody knows."""
    return InfoldError(
        "unknown-key", f"{where} has no key {key!r}", _near(key, known, "keys"), at=at
    )


def later_key(at: Spot, key: str, where: str) -> InfoldError:
    """A key that a later version will know."""
    return InfoldError(
        "not-supported-yet",
        f"{key!r} of {where} is not supported yet",
        todo="Leave it out.",
        at=at,
    )


def later_value(at: Spot, key: str, value: str, known: Iterable[str]) -> InfoldError:
    """A value that a later version will know."""
    return InfoldError(
        "not-supported-yet",
        f"{key}: {value} is not supported yet",
        (("supported", ", ".join(known)),),
        at=at,
    )


def duplicate_key(at: Spot, key: str, first: Spot) -> InfoldError:
    """One key written twice in one mapping."""
    return InfoldError("duplicate-key", f"{key!r} is here twice", (("first", str(first)),), at=at)


def missing_key(at: Spot, key: str, where: str, why: str = "") -> InfoldError:
    """A key that must be there."""
    return InfoldError(
        "missing-key", f"{where} needs {key!r}", (("why", why),) if why else (), at=at
    )


def needless_key(at: Spot, key: str, where: str) -> InfoldError:
    """A key that means nothing where it stands."""
    return InfoldError("needless-key", f"{key!r} means nothing for {where}", at=at)


def wrong_type(at: Spot, key: str, wanted: str, found: str) -> InfoldError:
    """A value of the wrong type."""
    return InfoldError("wrong-type", f"{key} takes {wanted}, and this is {found}", at=at)


def bad_value(at: Spot, key: str, value: str, known: Iterable[str]) -> InfoldError:
    """A value that is none of the possible ones."""
    return InfoldError(
        "bad-value", f"{key} cannot be {value!r}", _near(value, known, "one of"), at=at
    )


def bad_duration(at: Spot, key: str, value: str) -> InfoldError:
    """A length of time that cannot be read."""
    return InfoldError(
        "bad-duration",
        f"{key} takes a length of time, and {value!r} is none",
        (("such as", "30 minutes, 1 hour 30 minutes, 2 days"),),
        at=at,
    )


def bad_instant(at: Spot, key: str, value: str) -> InfoldError:
    """A date or time that cannot be read."""
    return InfoldError(
        "bad-date",
        f"{key} takes a date or a time, and {value!r} is none",
        (("such as", "2024-01-31, 2024-01-31T09:00"),),
        at=at,
    )


def bad_column_type(
    at: Spot, column: str, type_: str, alike: str | None, known: Iterable[str]
) -> InfoldError:
    """A column type that Spark SQL does not have."""
    return InfoldError(
        "bad-type",
        f"{type_!r} (of {column}) is not a type of Spark SQL",
        (("nearest", alike),) if alike else _near(type_, known, "such as"),
        at=at,
    )


def not_a_time(at: Spot, key: str, column: str, type_: str) -> InfoldError:
    """A time column that holds something else."""
    return InfoldError(
        "not-a-time",
        f"{key} has to be a timestamp or a date, and {column} is {type_}",
        todo="Declare it as timestamp; timestamp_format says how it is written.",
        at=at,
    )


def no_such_column(at: Spot, key: str, column: str, known: Iterable[str]) -> InfoldError:
    """A key that names a column which is not there."""
    return InfoldError(
        "unknown-column",
        f"{key} names {column!r}, and there is no such column",
        _near(column, known, "columns"),
        at=at,
    )


def reserved_column(at: Spot, column: str) -> InfoldError:
    """A column whose name infold keeps for itself."""
    return InfoldError(
        "reserved-column",
        f"{column!r} starts with an underscore, and such columns are infold's own",
        todo="Give it another name.",
        at=at,
    )


# --- a query's names


def bad_sql(at: Spot, why: str) -> InfoldError:
    """A query that cannot be parsed."""
    return InfoldError("bad-sql", "this SQL cannot be read", (("why", why),), at=at)


def not_one_select(at: Spot, what: str) -> InfoldError:
    """A file with no SELECT, with another statement, or with several."""
    return InfoldError(
        "not-one-select", f"a model is one SELECT, and this is {what}", todo="", at=at
    )


def unsupported_sql(at: Spot, what: str) -> InfoldError:
    """SQL that Spark knows and that cannot be analysed here."""
    return InfoldError(
        "unsupported-sql", f"{what} cannot be analysed", todo="Write it another way.", at=at
    )


def unknown_table(at: Spot, name: str, known: Iterable[str]) -> InfoldError:
    """A table in FROM that is neither a model nor a source."""
    return InfoldError(
        "unknown-table",
        f"there is no model or source {name!r}",
        _near(name, known, "there are"),
        at=at,
    )


def unknown_column(at: Spot, name: str, known: Iterable[str], tables: Iterable[str]) -> InfoldError:
    """A column that none of the tables in FROM has."""
    where = " or ".join(dict.fromkeys(tables))
    return InfoldError(
        "unknown-column",
        f"there is no column {name!r}" + (f" in {where}" if where else " here"),
        _near(name.rpartition(".")[2], known, "columns"),
        at=at,
    )


def dependency_cycle(at: Spot, names: Iterable[str]) -> InfoldError:
    """Models that read each other in a circle."""
    return InfoldError(
        "cycle",
        "these models depend on each other in a circle",
        (("cycle", " -> ".join(names)),),
        "One of them has to read something else.",
        at=at,
    )


# --- a query's meaning


def unnamed_column(at: Spot) -> InfoldError:
    """An output column that is an expression without a name."""
    return InfoldError(
        "unnamed-column", "this column has no name", todo="Name it: AS something.", at=at
    )


def not_one_row_per_session(at: Spot, what: str) -> InfoldError:
    """Something in a sessions query that is not an aggregate over the session's events."""
    return InfoldError(
        "not-session-wise",
        f"a sessions model is one SELECT of aggregates with FROM and WHERE, without {what}",
        todo="Leave it out, or do it in a model that reads the sessions.",
        exit_code=REFUSED,
        at=at,
    )


def column_outside_aggregate(at: Spot, column: str) -> InfoldError:
    """A column of single events in a row that stands for a whole session."""
    return InfoldError(
        "column-outside-aggregate",
        f"{column} differs from event to event, and there is one row for each session",
        todo="Say which one is meant: first, last, min, max of it, for example.",
        exit_code=REFUSED,
        at=at,
    )


def nested_aggregate(at: Spot, call: str) -> InfoldError:
    """An aggregate inside another."""
    return InfoldError(
        "nested-aggregate", f"{call} stands inside another aggregate", exit_code=REFUSED, at=at
    )


def session_column_given(at: Spot, column: str) -> InfoldError:
    """An output with the name of a column that every sessions model has."""
    return InfoldError(
        "session-column",
        f"a sessions model has a column {column} already",
        todo="Leave it out, or give yours another name.",
        at=at,
    )


def session_column_inside(at: Spot, column: str) -> InfoldError:
    """A column of the session inside an aggregate over its events."""
    return InfoldError(
        "session-column",
        f"{column} is of the session, and an aggregate ranges over its events",
        todo="Use it outside of the aggregate.",
        at=at,
    )


def no_event_time(at: Spot, name: str, why: str) -> InfoldError:
    """A sessions model over something without event times."""
    return InfoldError(
        "no-event-time",
        f"sessions need an input with event times, and {name} has none",
        (("why", why),),
        "Read an events model, or a source with event_time_column.",
        exit_code=REFUSED,
        at=at,
    )


def view_hides(at: Spot, view: str, column: str, table: str) -> InfoldError:
    """A view between a sessions model and its events that does not pass a needed column on."""
    return InfoldError(
        "no-event-time",
        f"{view} does not pass on the column {column} of {table}",
        todo=f"Add {column} to the view under that name: sessions put events in order by it.",
        exit_code=REFUSED,
        at=at,
    )


def duplicate_column(at: Spot, column: str) -> InfoldError:
    """Two output columns of one name."""
    return InfoldError(
        "duplicate-column",
        f"there are two columns {column}",
        todo="Give one of them another name.",
        at=at,
    )


def not_row_wise(at: Spot, what: str) -> InfoldError:
    """Something in an events model that looks at more than one row."""
    return InfoldError(
        "not-row-wise",
        f"an events model is one SELECT with FROM and WHERE over one source, without {what}",
        todo="Leave it out, or do it in a model that reads the events.",
        exit_code=REFUSED,
        at=at,
    )


def events_of_model(at: Spot, name: str) -> InfoldError:
    """An events model that reads another model."""
    return InfoldError(
        "not-row-wise",
        f"an events model takes in a source, and {name} is a model",
        todo="Read the source, or make this a view.",
        exit_code=REFUSED,
        at=at,
    )


def clock(at: Spot, call: str) -> InfoldError:
    """A call of a clock."""
    return InfoldError(
        "clock",
        f"{call} is another value at every run, so the table could not be verified",
        todo="Compare with a column instead. (A run's as-of time in SQL is not supported yet.)",
        exit_code=REFUSED,
        at=at,
    )


def not_deterministic(at: Spot, call: str, why: str) -> InfoldError:
    """A call whose value is not a function of its arguments."""
    return InfoldError(
        "not-deterministic",
        f"with {call} the table could not be verified",
        (("why", why),),
        "Make it from the row's own columns: xxhash64(key) in place of rand() or uuid(), "
        "percentile in place of percentile_approx.",
        exit_code=REFUSED,
        at=at,
    )


def any_value(at: Spot) -> InfoldError:
    """``any_value``, which may be any."""
    return InfoldError(
        "not-deterministic",
        "any_value may be another value at every run",
        todo="Say which one: min, max, min_by, or in sessions first or last.",
        exit_code=REFUSED,
        at=at,
    )


def order_dependent(at: Spot, call: str, instead: str) -> InfoldError:
    """An aggregate that depends on an order that rows do not have."""
    return InfoldError(
        "order-dependent",
        f"{call} depends on the order of rows, and they have none here",
        (("instead", instead),),
        exit_code=REFUSED,
        at=at,
    )


def limit_without_order(at: Spot, word: str) -> InfoldError:
    """LIMIT or OFFSET without ORDER BY."""
    return InfoldError(
        "limit-without-order",
        f"{word} without ORDER BY takes any rows",
        todo="Add ORDER BY over columns that tell rows apart.",
        exit_code=REFUSED,
        at=at,
    )


# --- queries that are built cell by cell

_WHOLE = "or build it whole (remove `incremental`)."


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as messages call it: its length and the model's name."""

    length: str
    model: str

    def __str__(self) -> str:
        return f"{'an' if self.length == 'hour' else 'a'} {self.length} of {self.model}"


def _keeping(columns: Iterable[str]) -> tuple[tuple[str, str], ...]:
    """The fact that says by which columns cells are told apart."""
    names = ", ".join(dict.fromkeys(columns))
    return (("cells by", names),) if names else ()


def total_over_cells(at: Spot, cell: Cell, columns: Iterable[str]) -> InfoldError:
    """An aggregate without GROUP BY."""
    return InfoldError(
        "group-over-cells",
        f"this total is over all time, so {cell} cannot be rebuilt alone",
        _keeping(columns),
        f"Group by the cell as well (cast(… AS date), date_trunc), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def group_over_cells(at: Spot, cell: Cell, columns: Iterable[str]) -> InfoldError:
    """GROUP BY without anything that keeps the cell."""
    return InfoldError(
        "group-over-cells",
        f"these groups reach over all time, so {cell} cannot be rebuilt alone",
        _keeping(columns),
        f"Group by the cell as well (cast(… AS date), date_trunc), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def grouping_sets(at: Spot, cell: Cell) -> InfoldError:
    """ROLLUP, CUBE and GROUPING SETS: some of their groups have no time."""
    return InfoldError(
        "group-over-cells",
        f"subtotals reach over all time, so {cell} cannot be rebuilt alone",
        todo=f"Group by plain expressions, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def distinct_over_cells(at: Spot, cell: Cell, columns: Iterable[str]) -> InfoldError:
    """DISTINCT over rows of several cells."""
    return InfoldError(
        "distinct-over-cells",
        f"DISTINCT compares rows of all time, so {cell} cannot be rebuilt alone",
        _keeping(columns),
        f"Select the cell as well (cast(… AS date), date_trunc), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def window_over_cells(at: Spot, cell: Cell, columns: Iterable[str]) -> InfoldError:
    """A window over rows of several cells."""
    return InfoldError(
        "window-over-cells",
        f"this window reaches over all time, so {cell} cannot be rebuilt alone",
        _keeping(columns),
        f"Partition by the cell as well (PARTITION BY …, cast(… AS date)), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def limit_over_cells(at: Spot, word: str, cell: Cell) -> InfoldError:
    """LIMIT or OFFSET over rows of several cells."""
    return InfoldError(
        "limit-over-cells",
        f"{word} counts rows of all time, so {cell} cannot be rebuilt alone",
        todo=f"Rank rows inside the cell (row_number() OVER (PARTITION BY …)), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def join_of_times(at: Spot, cell: Cell, left: str, right: str) -> InfoldError:
    """A join of two inputs with time columns."""
    return InfoldError(
        "join-over-cells",
        f"this joins rows of any two times, so {cell} cannot be rebuilt alone",
        (("inputs", f"{left}, {right}"),),
        "Joins of two inputs with time are not supported yet: "
        f"put them beside each other (UNION ALL) and aggregate, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def join_asks_all_cells(at: Spot, cell: Cell, kind: str, right: str) -> InfoldError:
    """SEMI or ANTI join against an input with a time column."""
    return InfoldError(
        "join-over-cells",
        f"this {kind} join looks at all of {right}, so {cell} cannot be rebuilt alone",
        todo=f"Join a table without a time column, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def join_keeps_lookup(at: Spot, cell: Cell, side: str) -> InfoldError:
    """An outer join that keeps rows of a lookup without a match."""
    return InfoldError(
        "join-over-cells",
        f"this {side} join keeps rows that have no time, so they belong to no {cell.length}",
        todo=f"Keep the rows that have a time: put that side first and use LEFT JOIN, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def set_operation(at: Spot, cell: Cell, word: str) -> InfoldError:
    """UNION without ALL, EXCEPT or INTERSECT."""
    return InfoldError(
        "set-operation-over-cells",
        f"{word} compares rows of all time, so {cell} cannot be rebuilt alone",
        todo=f"Use UNION ALL, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def subquery_over_cells(at: Spot, cell: Cell) -> InfoldError:
    """A subquery in an expression over an input with a time column."""
    return InfoldError(
        "subquery-over-cells",
        f"this subquery looks at all time, so {cell} cannot be rebuilt alone",
        todo=f"Let it read a table without a time column, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def recursion(at: Spot, cell: Cell) -> InfoldError:
    """WITH RECURSIVE."""
    return InfoldError(
        "recursion-over-cells",
        f"recursion may reach any row, so {cell} cannot be rebuilt alone",
        todo=f"Do the recursion in a table of its own, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def no_time_input(at: Spot, cell: Cell) -> InfoldError:
    """A model built cell by cell that reads nothing with a time column."""
    return InfoldError(
        "no-time-input",
        f"{cell.model} is to be built {cell.length} by {cell.length}, "
        "and nothing that it reads has a time column",
        todo="Remove `incremental`, or declare event_time_column of the source.",
        exit_code=REFUSED,
        at=at,
    )


def partition_unproven(
    at: Spot, cell: Cell, column: str, why: str, columns: Iterable[str]
) -> InfoldError:
    """A partition column that is not proven to keep the cell."""
    return InfoldError(
        "partition-not-proven",
        f"{column} does not follow from the time of the rows read, "
        f"so {cell} cannot be rebuilt alone",
        (*((("why", why),) if why else ()), *_keeping(columns)),
        f"Make it a floor of the input's time column (cast(… AS date), date_trunc), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )
