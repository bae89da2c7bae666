"""
Events in no session: they name neither a user nor an identifier.

They stay where they are, in the table that the model reads. A step counts those that arrived, for
its receipt, and all there are by then, for the ledger; ``left_out`` lists them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any

import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from infold.core.model import Kind
from infold.core.own_columns import FILE
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery, left_out_reason
from infold.inspecting.left_out import BY
from infold.spark.content import column, row_hash, user_columns
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.fold_changes import count_lines
from infold.spark.sessions.islands import events_of_query, owner_of_event
from infold.spark.step_context import Work

ARRIVED, ADDED, REMOVED = "unassigned: ", "unassigned, added", "unassigned, removed"
"""
What is counted: events that arrived, with the other models that leave them out after the colon; and
all that were added or removed, those included that a changed lookup shows again.
"""

BEFORE_START = "before the start"
"""Events that arrived and are from before the model's start."""


def unassigned_events(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The events that a query leaves out of all sessions."""
    return events_of_query(events, query).where(owner_of_event(query).isNull())


def count_by_others(events: DataFrame, query: SessionsQuery, names: Column | None) -> Counter[str]:
    """How many of these events are left out, by the other models that leave them out."""
    by_names = unassigned_events(events, query).groupBy(_or_empty(names).alias("names"))
    # At most a row for each combination of models.
    return Counter({row["names"]: row["count"] for row in by_names.count().collect()})


def changed_count_lines(
    feed: Feed, query: SessionsQuery, names: Column | None
) -> Iterator[DataFrame]:
    """Counts of the events left out among those that arrived or were removed, for the totals."""
    arrived = unassigned_events(feed.arrived(), query)
    yield count_lines(arrived, F.concat(F.lit(ARRIVED), _or_empty(names)))
    if feed.lookups:  # changed lookups add events that did not arrive
        yield count_lines(unassigned_events(feed.added(), query), F.lit(ADDED))
    removed_events = feed.removed()
    if removed_events is not None:
        yield count_lines(unassigned_events(removed_events, query), F.lit(REMOVED))
    if query.before_start is not None:
        yield count_lines(feed.arrived().where(query.before_start), F.lit(BEFORE_START))


def count_before_start(events: DataFrame, query: SessionsQuery) -> int:
    """How many of these events are from before the model's start."""
    return 0 if query.before_start is None else events.where(query.before_start).count()


def arrived_counts(counts: Mapping[str, int]) -> Counter[str]:
    """Of a fold's counts the events that arrived, by the other models that leave them out."""
    return Counter(
        {what.removeprefix(ARRIVED): n for what, n in counts.items() if what.startswith(ARRIVED)}
    )


def count_after_fold(
    work: Work, step: Step, feed: Feed, query: SessionsQuery, counts: Counter[str]
) -> int:
    """How many events are left out after a fold; all events are read if nobody counted them yet."""
    before = work.ledger.left_out().get(step.model)
    if before is None:
        return unassigned_events(feed.current, query).count()
    return before + more_after_fold(feed, counts)


def more_after_fold(feed: Feed, counts: Counter[str]) -> int:
    """By how many the events left out have grown with a fold."""
    more = counts[ADDED] if feed.lookups else arrived_counts(counts).total()
    return more - counts[REMOVED]


def receipt_counts(query: SessionsQuery, counts: Counter[str]) -> dict[str, Any]:
    """The part of a receipt about events left out."""
    rows = counts.total()
    others = tuple(sorted((names, count) for names, count in counts.items() if names and count))
    counts_by_reason = ((left_out_reason(query), rows),) if rows else ()
    return {"set_aside": rows, "set_aside_by": counts_by_reason, "set_aside_also": others}


def _or_empty(names: Column | None) -> Column:
    return F.lit("") if names is None else names


def names_of_others(work: Work, step: Step) -> Column | None:
    """
    The names of the models before this one, over the same rows, that leave a row out as well.

    None where there are no such models. So a run can count a row once. A model with expressions of
    its own is asked only about rows that it has ingested: what fails in it must not fail here.
    """
    own_query = work.project[step.model].query
    names = []
    for node in work.project:
        if node.name == step.model:
            break
        query = node.query
        if node.model.kind is not Kind.SESSIONS or query is None or own_query is None:
            continue
        if query.input == own_query.input and (
            _plain_owner(node, own_query) or _is_current(work, node, step)
        ):
            out = owner_of_event(query).isNull()
            if query.where is not None:
                out = out & F.coalesce(F.expr(query.where), F.lit(False))
            names.append(F.when(out, F.lit(node.name)))
    return F.concat_ws(", ", *names) if names else None


def _plain_owner(node: Node, own_query: SessionsQuery) -> bool:
    """Whether a model names the owners of the same rows by columns alone."""
    sessions, query = node.model.sessions, node.query
    if sessions is None or query is None or query.where not in (None, own_query.where):
        return False
    owner_columns = [*sessions.identifier, *([sessions.user] if sessions.user else [])]
    return all(re.fullmatch(r"[\w.`]+", sql) for sql in owner_columns)


def _is_current(work: Work, node: Node, step: Step) -> bool:
    """Whether a model was built from all versions of the inputs that a step reads."""
    trace = work.ledger.traces().get(node.name)
    return trace is not None and all(
        trace.inputs.get(name, 0) >= upto for name, (_, upto) in step.inputs.items()
    )


# The rows of a table that models leave out, found with Spark where that takes expressions.
#
# For a model that reads the table, its own expressions decide for each row. A view hides which rows
# of the table it was made of; but it makes each of its rows of one row, and equal rows of equal
# ones. So rows that agree in all columns which the view passes on are given to it one at a time,
# and an event that the model leaves out then identifies its row.

HASH, TURN = "_infold_hash", "_infold_turn"
"""The hash of a row; its number among different rows that agree in the passed columns."""


def left_out(work: Work, table: str, nodes: Sequence[Node], limit: int | None) -> pa.Table:
    """At most ``limit`` of the rows of a table that models leave out, with the models' names."""
    stored = _newest_rows(work, table)
    hashed = stored.withColumn(HASH, row_hash(stored.schema))
    hashes_by_model = [
        _hashes_left_out(work, node, table, hashed).withColumn(BY, F.lit(node.name))
        for node in nodes
    ]
    by = reduce(DataFrame.unionAll, hashes_by_model).groupBy(HASH).agg(F.collect_set(BY).alias(BY))
    rows_left_out = hashed.join(by, HASH)
    columns = [*user_columns(stored).columns, *([FILE] if FILE in stored.columns else [])]
    shown = rows_left_out.select(*map(column, columns), BY)
    # At most the rows that somebody asks to see.
    return (shown if limit is None else shown.limit(limit)).toArrow()


def _newest_rows(work: Work, table: str) -> DataFrame:
    return work.frame(table, work.ledger.newest_versions()[table].number)


def _hashes_left_out(work: Work, node: Node, table: str, rows: DataFrame) -> DataFrame:
    """The hashes of the rows that a model leaves out."""
    query = node.query
    assert query is not None, "a sessions model has a compiled query"
    if query.input == table:
        return unassigned_events(rows, query).select(HASH)
    shown = [
        (view_column, table_column)
        for view_column, table_column in dict(query.passed_columns).get(table, ())
        if "map<" not in rows.select(column(table_column)).dtypes[0][1]
    ]
    left = unassigned_events(_through_view(work, node, table, rows), query)
    candidates = _rows_agreeing(rows, left, shown).dropDuplicates([HASH])
    turn = Window.partitionBy(*(column(name) for _, name in shown)).orderBy(HASH)
    turns = candidates.withColumn(TURN, F.row_number().over(turn)).localCheckpoint()
    # One row.
    [[most]] = turns.agg(F.max(TURN)).collect()
    parts = [rows.limit(0), *_left_out_by_turn(work, node, table, turns, shown, most or 0)]
    return reduce(DataFrame.unionAll, [part.select(HASH) for part in parts])


def _left_out_by_turn(
    work: Work,
    node: Node,
    table: str,
    turns: DataFrame,
    shown: Sequence[tuple[str, str]],
    most: int,
) -> Iterator[DataFrame]:
    """The rows that a model leaves out, for each turn."""
    assert node.query is not None
    for number in range(1, most + 1):
        turn_rows = turns.where(F.col(TURN) == number)
        yield _rows_agreeing(
            turn_rows,
            unassigned_events(_through_view(work, node, table, turn_rows), node.query),
            shown,
        )


def _rows_agreeing(rows: DataFrame, left: DataFrame, shown: Sequence[tuple[str, str]]) -> DataFrame:
    """The rows that agree with a row of the view in all columns that it passes on."""
    names = [f"__{at}" for at, _ in enumerate(shown)]
    passed = left.select(
        *(column(shown_as).alias(name) for (shown_as, _), name in zip(shown, names, strict=True))
    )
    same: list[Column] = [
        column(own).eqNullSafe(F.col(name)) for (_, own), name in zip(shown, names, strict=True)
    ]
    return rows.join(passed.distinct(), reduce(and_, same), "left_semi")


def _through_view(work: Work, node: Node, table: str, rows: DataFrame) -> DataFrame:
    """Rows of a table as a model sees them, with lookups and without its other tables."""
    assert node.query is not None
    fed = {entry.name for entry in node.folded_inputs}
    frames = {
        entry.name: user_columns(_newest_rows(work, entry.name).where(F.lit(entry.name not in fed)))
        for entry in node.inputs
    }
    table_rows = user_columns(rows).drop(HASH, TURN)
    return work.sql(work.project[node.query.input], {**frames, table: table_rows})
