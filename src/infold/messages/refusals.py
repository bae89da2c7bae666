"""
What is refused because of what a query means, with its place.

Such a query may be good SQL; its table could not be kept up to date in the way that was asked for,
or not be verified. As with a mistake the exit code is 2, from every command: `check` finds both,
and nothing runs before both are mended. Mistakes about columns that follow from a query are here
too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from infold.messages.errors import Finding, InfoldError, Spot

_ANEW = "or use `materialization: table`, which is built again when an input changes."
_WHOLE = "or build it whole (remove `incremental`)."

# --- a query's meaning

unnamed_column = Finding("unnamed-column", "this column has no name", todo="Name it: AS something.")


def not_stored(at: Spot, column: str, what: str, type_: str) -> InfoldError:
    """An output of a type that no table has."""
    instead = "timestampdiff(SECOND, a, b), or unix_micros(b) - unix_micros(a) for all of it"
    return InfoldError(
        "not-stored",
        f"{column} is {what}, and a table has no such columns",
        todo=f"Make it a number: {instead}."
        if type_ == "interval"
        else "Name the type: CAST(NULL AS string), for example.",
        at=at,
    )


# What is not an aggregate over the session's events.
not_one_row_per_session = Finding(
    "not-session-wise",
    "a sessions model is one SELECT of aggregates with FROM and WHERE, without {what}",
    todo="Leave it out, or do it in a model that reads the sessions.",
)

column_outside_aggregate = Finding(
    "column-outside-aggregate",
    "{column} differs from event to event, and there is one row for each session",
    todo="Say which one is meant: first, last, min, max of it, for example.",
)

nested_aggregate = Finding("nested-aggregate", "{call} is inside another aggregate")

# The name of a column that every sessions model has.
session_column_given = Finding(
    "session-column",
    "a sessions model has a column {column} already",
    todo="Leave it out, or give yours another name.",
)

session_column_inside = Finding(
    "session-column",
    "{column} is of the session, and an aggregate ranges over its events",
    todo="Use it outside of the aggregate.",
)

no_event_time = Finding(
    "no-event-time",
    "sessions need an input with event times, and {name} has none",
    {"why": "{why}"},
    "Read an events model, or a source with event_time_column.",
)

# A view between a sessions model and its events.
view_hides = Finding(
    "no-event-time",
    "{view} does not pass on the column {column} of {table}",
    todo="Add {column} to the view under that name: sessions put events in order by it.",
)

# A UNION ALL view before sessions; its sides have their event times in different columns.
view_mixes_times = Finding(
    "no-event-time",
    "the sides of {view} have their event times in different columns: {times}",
    todo="Put the event times of all sides into one column: the same place in each SELECT.",
)

duplicate_column = Finding(
    "duplicate-column", "there are two columns {column}", todo="Give one of them another name."
)

# What looks at more than one row.
not_row_wise = Finding(
    "not-row-wise",
    "an events model is one SELECT with FROM and WHERE over one source, without {what}",
    todo="Leave it out, or do it in a model that reads the events.",
)

# A join that needs more than equal keys in a lookup.
joined_events = Finding(
    "not-row-wise",
    "an events model joins lookups by equality with columns of its source, and {why}",
    {"lookup": "a source or model without a time column"},
    "Write `FROM source LEFT JOIN lookup ON lookup.key = source.column`, or join it in a model "
    "that reads the events.",
)

events_of_model = Finding(
    "not-row-wise",
    "an events model reads a source, and {name} is a model",
    todo="Read the source, or make this a view.",
)

# What looks beyond the rows of one key.
not_by_key = Finding(
    "not-by-key",
    "a cumulative aggregate is one SELECT with GROUP BY over one table, without {what}",
    {"why": "a row has to follow from the rows of its own key"},
    "Leave it out, " + _ANEW,
)

no_group_by = Finding(
    "not-by-key",
    "a cumulative aggregate has one row for each key of GROUP BY, and there is no GROUP BY",
    todo="Add GROUP BY, " + _ANEW,
)

key_not_selected = Finding(
    "not-by-key",
    "this key is no column of the table, which could not tell its rows apart",
    todo="Select it as well, " + _ANEW,
)

# What makes more or less of a row than a version.
not_versions = Finding(
    "not-by-key",
    "an scd_type_2 model is one SELECT over one table, row by row, without {what}",
    {"why": "each row of the table is a version of a key"},
    "Leave it out, or do it in a view or table before this model.",
)

column_of_versions = Finding(
    "duplicate-column",
    "an scd_type_2 model gives its table a column {column}, and this is another one",
    todo="Give it another name.",
)

clock = Finding(
    "clock",
    "{call} is another value at every run, so the table could not be verified",
    todo="Compare with a column instead. (A run's as-of time in SQL is not supported yet.)",
)

collation = Finding(
    "collation",
    "by the collation {name} texts are equal that differ, and one of them would be shown by chance",
    todo="Make equal texts the same first: lower(x) in place of x COLLATE UTF8_LCASE. In a "
    "comparison, as in WHERE x COLLATE UTF8_LCASE = 'a', a collation may stay.",
)

not_deterministic = Finding(
    "not-deterministic",
    "with {call} the table could not be verified",
    {"why": "{why}"},
    "Make it from the row's own columns: xxhash64(key) in place of rand() or uuid(), "
    "percentile_disc(p) WITHIN GROUP (ORDER BY x) in place of percentile_approx(x, p), "
    "approx_count_distinct or count(DISTINCT x) in place of hll_sketch_agg.",
)

random_vector = Finding(
    "not-deterministic",
    "aes_encrypt draws another initialization vector at every run",
    todo="Give it one, made from the row (its fifth argument), or use the mode 'ECB'.",
)

any_value = Finding(
    "not-deterministic",
    "any_value may be another value at every run",
    todo="Say which one: min, max, min_by, or in sessions first or last.",
)

mode = Finding(
    "not-deterministic",
    "mode takes any of the equally frequent values",
    todo=(
        "Say which one: mode(x, true) takes the least of them, mode() WITHIN GROUP (ORDER BY x "
        "DESC) the greatest."
    ),
)

order_dependent = Finding(
    "order-dependent",
    "{call} depends on the order of rows, and they have none here",
    {"instead": "{instead}"},
)


def order_not_total(at: Spot, what: str, missing: Sequence[str]) -> InfoldError:
    """An order that decides, and in which rows can tie."""
    add = ", ".join(missing) or "columns that tell rows apart (a unique_key, keys of GROUP BY)"
    return InfoldError(
        "order-not-total",
        f"{what} depends on which of several rows comes first that tie in its order",
        todo=f"Add {add} to ORDER BY.",
        at=at,
    )


# The first or last value of a frame by time, whose ORDER BY can have no second column.
ties_in_range = Finding(
    "order-not-total",
    "{what} depends on which of several rows comes first that tie in its order",
    todo="Say which: {instead} OVER the same window.",
)


# min_by or max_by by something in which rows can tie.
ties_in_choice = Finding(
    "order-not-total",
    "{call} takes any of several rows that tie in {order}",
    todo="Say which: {instead}.",
)


limit_without_order = Finding(
    "limit-without-order",
    "{word} without ORDER BY takes any rows",
    todo="Add ORDER BY over columns that tell rows apart.",
)


# --- queries that are built cell by cell


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell as messages call it: its length and the model's name."""

    length: str
    model: str

    def __str__(self) -> str:
        return f"{'an' if self.length == 'hour' else 'a'} {self.length} of {self.model}"


# No GROUP BY.
total_over_cells = Finding(
    "group-over-cells",
    "this total is over all time, so {cell} cannot be rebuilt alone",
    {"cells by": "{columns}"},
    "Group by the cell as well (cast(… AS date), date_trunc), " + _WHOLE,
)

# A GROUP BY in which nothing keeps the cell.
group_over_cells = Finding(
    "group-over-cells",
    "these groups reach over all time, so {cell} cannot be rebuilt alone",
    {"cells by": "{columns}", "or by key": "{by_key}"},
    "Group by the cell as well (cast(… AS date), date_trunc), " + _WHOLE,
)

# ROLLUP, CUBE, GROUPING SETS: some of their groups have no time.
grouping_sets = Finding(
    "group-over-cells",
    "subtotals reach over all time, so {cell} cannot be rebuilt alone",
    todo="Group by plain expressions, " + _WHOLE,
)

distinct_over_cells = Finding(
    "distinct-over-cells",
    "DISTINCT compares rows of all time, so {cell} cannot be rebuilt alone",
    {"cells by": "{columns}"},
    "Select the cell as well (cast(… AS date), date_trunc), " + _WHOLE,
)

window_over_cells = Finding(
    "window-over-cells",
    "this window reaches over all time, so {cell} cannot be rebuilt alone",
    {"cells by": "{columns}"},
    "Partition by the cell as well (PARTITION BY …, cast(… AS date)); or bound it: aggregates "
    "by RANGE BETWEEN INTERVAL … PRECEDING over the time, LAG and LEAD by asking whether their row "
    "is near (CASE WHEN ts - lag(ts) OVER w <= INTERVAL … THEN lag(x) OVER w END); " + _WHOLE,
)

filter_in_window = Finding(
    "unsupported-sql",
    "Spark has no FILTER in a window",
    todo="Put the condition into the value: sum(CASE WHEN … THEN x END) OVER (…), "
    "count(CASE WHEN … THEN 1 END) OVER (…).",
)

limit_over_cells = Finding(
    "limit-over-cells",
    "{word} counts rows of all time, so {cell} cannot be rebuilt alone",
    todo="Rank rows inside the cell (row_number() OVER (PARTITION BY …)), " + _WHOLE,
)

# Two inputs with time columns, and no condition on how far these are apart.
join_of_times = Finding(
    "join-over-cells",
    "this joins rows of any two times, so {cell} cannot be rebuilt alone",
    {"inputs": "{left}, {right}"},
    "Say how far they are apart (AND b.ts BETWEEN a.ts - INTERVAL … AND a.ts, or equal days), "
    + _WHOLE,
)

# SEMI and ANTI joins against an input with a time column.
join_asks_all_cells = Finding(
    "join-over-cells",
    "this {kind} join looks at all of {right}, so {cell} cannot be rebuilt alone",
    todo="Join a table without a time column, " + _WHOLE,
)

join_keeps_lookup = Finding(
    "join-over-cells",
    "this {side} join keeps rows that have no time, so they belong to no {cell.length}",
    todo="Keep the rows that have a time: put that side first and use LEFT JOIN, " + _WHOLE,
)

# UNION without ALL, EXCEPT, INTERSECT.
set_operation = Finding(
    "set-operation-over-cells",
    "{word} compares rows of all time, so {cell} cannot be rebuilt alone",
    todo="Select the cell on both sides as well (cast(… AS date), date_trunc), or use UNION ALL, "
    + _WHOLE,
)

subquery_over_cells = Finding(
    "subquery-over-cells",
    "this subquery looks at all time, so {cell} cannot be rebuilt alone",
    todo=(
        "Say in its WHERE how far its rows are from the row around it (b.ts BETWEEN a.ts - "
        "INTERVAL … AND a.ts, or equal days), " + _WHOLE
    ),
)

# IN (SELECT …) over an input with a time column.
values_over_cells = Finding(
    "subquery-over-cells",
    "IN looks at values of all time, so {cell} cannot be rebuilt alone",
    todo=(
        "For IN write EXISTS (… WHERE b.x = a.x), for NOT IN write NOT EXISTS (… WHERE "
        "coalesce(b.x = a.x, true)), and there how far its rows are from the row around it "
        "(AND b.ts BETWEEN a.ts - INTERVAL … AND a.ts, or equal days), " + _WHOLE
    ),
)

recursion = Finding(
    "recursion-over-cells",
    "recursion may reach any row, so {cell} cannot be rebuilt alone",
    todo="Do the recursion in a table of its own, " + _WHOLE,
)

no_time_input = Finding(
    "no-time-input",
    "{cell.model} is to be built {cell.length} by {cell.length}, and nothing that it reads has "
    "a time column",
    {"reads": "{reads}", "write": "{rewrite}"},
    "{todo}, or build it whole (remove `incremental`).",
)

# The partition column comes from the side of an outer join that can be missing.
null_cell = Finding(
    "null-cell",
    "{column} is NULL where an outer join finds no row, and {cell} has no such rows",
    todo=(
        "Say that they are not wanted: SELECT * FROM (…) WHERE {column} IS NOT NULL; or take the "
        "time of the side that keeps its rows, of a FULL JOIN coalesce(a.ts, b.ts)."
    ),
)

# The partition column is not proven to keep the cell.
partition_unproven = Finding(
    "partition-not-proven",
    "{column} does not follow from the time of the rows read, so {cell} cannot be rebuilt alone",
    {"why": "{why}", "cells by": "{columns}", "write": "{rewrite}"},
    "Make it a floor of the input's time column (cast(… AS date), date_trunc), " + _WHOLE,
)
