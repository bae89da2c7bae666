"""
Events in no session: they name neither a user nor an identifier.

They stay where they are, in the table that the model reads. A step counts those that arrived, for
its receipt, and all there are by then, for the ledger; ``left_out`` lists them.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from infold.core.model import Kind
from infold.core.plan import Step
from infold.core.project import Node
from infold.core.queries import SessionsQuery, left_out_reason
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
