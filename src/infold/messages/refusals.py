"""
What is refused because of what a query means, by one function each, with its place.

Such a query may be good SQL; its table could not be kept up to date in the way that was asked for,
or not be verified. As with a mistake the exit code is 2, from every command: `check` finds both,
and nothing runs before both are mended. Mistakes about columns that follow from a query stand here
too.
Each has a section in docs/errors.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from infold.messages.errors import InfoldError, Spot

REFUSED = 2
"""A project that is refused is wrong for the shell, as one with a mistake is."""

# --- a query's meaning


def unnamed_column(at: Spot) -> InfoldError:
    """An output column that is an expression without a name."""
    return InfoldError(
        "unnamed-column", "this column has no name", todo="Name it: AS something.", at=at
    )


def not_stored(at: Spot, column: str, what: str, type_: str) -> InfoldError:
    """An output of a type that no table has."""
    instead = "timestampdiff(SECOND, a, b), or unix_micros(b) - unix_micros(a) for all of it"
    return InfoldError(
        "not-stored",
        f"{column} is {what}, and a table has no such columns",
        todo=f"Make it a number: {instead}."
        if type_ == "interval"
        else "Say of which type: CAST(NULL AS string), for example.",
        at=at,
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


def view_mixes_times(at: Spot, view: str, times: Iterable[str]) -> InfoldError:
    """A UNION ALL view before sessions whose sides have their event times in different columns."""
    return InfoldError(
        "no-event-time",
        f"the sides of {view} have their event times in different columns: {', '.join(times)}",
        todo="Put the event times of all sides into one column: the same place in each SELECT.",
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


def joined_events(at: Spot, why: str) -> InfoldError:
    """A join in an events model that says of a row more than its keys find in a lookup."""
    return InfoldError(
        "not-row-wise",
        f"an events model joins lookups by equality with columns of its source, and {why}",
        (("lookup", "a source or model without a time column"),),
        "Write `FROM source LEFT JOIN lookup ON lookup.key = source.column`, or join it in a model "
        "that reads the events.",
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


_ANEW = "or use `materialization: table`, which is built anew when what it reads changes."


def not_by_key(at: Spot, what: str) -> InfoldError:
    """Something in a cumulative aggregate that looks beyond the rows of one key."""
    return InfoldError(
        "not-by-key",
        f"a cumulative aggregate is one SELECT with GROUP BY over one table, without {what}",
        (("why", "a row has to follow from the rows of its own key"),),
        f"Leave it out, {_ANEW}",
        exit_code=REFUSED,
        at=at,
    )


def no_group_by(at: Spot) -> InfoldError:
    """A cumulative aggregate without keys."""
    return InfoldError(
        "not-by-key",
        "a cumulative aggregate has one row for each key of GROUP BY, and there is no GROUP BY",
        todo=f"Add GROUP BY, {_ANEW}",
        exit_code=REFUSED,
        at=at,
    )


def key_not_selected(at: Spot) -> InfoldError:
    """A key of GROUP BY that is no column of the table."""
    return InfoldError(
        "not-by-key",
        "this key is no column of the table, which could not tell its rows apart",
        todo=f"Select it as well, {_ANEW}",
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


def random_vector(at: Spot) -> InfoldError:
    """``aes_encrypt`` in a mode that draws an initialization vector."""
    return InfoldError(
        "not-deterministic",
        "aes_encrypt draws another initialization vector at every run",
        todo="Give it one, made from the row (its fifth argument), or use the mode 'ECB'.",
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


def mode(at: Spot) -> InfoldError:
    """``mode`` without a word on values that stand equally often."""
    return InfoldError(
        "not-deterministic",
        "mode takes any of the values that stand equally often",
        todo="Say which one: mode(x, true) takes the least of them, "
        "mode() WITHIN GROUP (ORDER BY x DESC) the greatest.",
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


def order_not_total(at: Spot, what: str, missing: Sequence[str], *, vouchable: bool) -> InfoldError:
    """An order that decides, and in which rows can tie."""
    add = ", ".join(missing) or "columns that tell rows apart (a unique_key, keys of GROUP BY)"
    return InfoldError(
        "order-not-total",
        f"{what} depends on which of several rows comes first that tie in its order",
        todo=f"Add {add} to ORDER BY{_OR_ANY if vouchable else '.'}",
        exit_code=REFUSED,
        at=at,
    )


def ties_in_choice(
    at: Spot, call: str, value: str, order: str, missing: Sequence[str], *, vouchable: bool
) -> InfoldError:
    """``min_by`` or ``max_by`` by something in which rows can tie."""
    by = order.removeprefix("STRUCT(").removesuffix(")") if order.startswith("STRUCT(") else order
    add = ", ".join(missing) or value
    return InfoldError(
        "order-not-total",
        f"{call} takes any of several rows that tie in {order}",
        todo=f"Say which: {call}({value}, struct({by}, {add})){_OR_ANY if vouchable else '.'}",
        exit_code=REFUSED,
        at=at,
    )


_OR_ANY = ", or say that any will do: `safety_overrides: {allow_nondeterministic: true}`."


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
        "Partition by the cell as well (PARTITION BY …, cast(… AS date)); or bound it: aggregates "
        "by RANGE BETWEEN INTERVAL … PRECEDING over the time, LAG and LEAD of the time by asking "
        f"whether they are near (<= INTERVAL …); {_WHOLE}",
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
    """A join of two inputs with time columns that does not say how far these are apart."""
    return InfoldError(
        "join-over-cells",
        f"this joins rows of any two times, so {cell} cannot be rebuilt alone",
        (("inputs", f"{left}, {right}"),),
        "Say how far they are apart (AND b.ts BETWEEN a.ts - INTERVAL … AND a.ts, or equal days), "
        f"{_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def full_join_of_times(at: Spot, cell: Cell) -> InfoldError:
    """FULL JOIN of two inputs with time columns."""
    return InfoldError(
        "join-over-cells",
        f"a row of this FULL join has the time of one side or of the other, "
        f"so {cell} cannot be rebuilt alone",
        todo=f"Put both beside each other (UNION ALL) and aggregate, {_WHOLE}",
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
        todo="Select the cell on both sides as well (cast(… AS date), date_trunc), or use "
        f"UNION ALL, {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def subquery_over_cells(at: Spot, cell: Cell) -> InfoldError:
    """A subquery in an expression over an input with a time column."""
    return InfoldError(
        "subquery-over-cells",
        f"this subquery looks at all time, so {cell} cannot be rebuilt alone",
        todo="Say in its WHERE how far its rows are from the row around it (b.ts BETWEEN a.ts - "
        f"INTERVAL … AND a.ts, or equal days), {_WHOLE}",
        exit_code=REFUSED,
        at=at,
    )


def values_over_cells(at: Spot, cell: Cell) -> InfoldError:
    """IN over the values of an input with a time column."""
    return InfoldError(
        "subquery-over-cells",
        f"IN looks at values of all time, so {cell} cannot be rebuilt alone",
        todo="Write EXISTS or NOT EXISTS, and in its WHERE how far its rows are from the row "
        f"around it (b.ts BETWEEN a.ts - INTERVAL … AND a.ts, or equal days), {_WHOLE}",
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


def null_cell(at: Spot, cell: Cell, column: str) -> InfoldError:
    """A partition column that is NULL in rows that the query yields."""
    return InfoldError(
        "null-cell",
        f"{column} is NULL where an outer join finds no row, and {cell} holds no such rows",
        todo=f"Say that they are not wanted: SELECT * FROM (…) WHERE {column} IS NOT NULL; or take "
        "the time of the side that keeps its rows.",
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
