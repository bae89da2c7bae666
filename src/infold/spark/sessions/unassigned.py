"""
Events in no session: they name neither a user nor an identifier.

They stay where they are, in the table that the model reads. A step counts those that came, for its
receipt, and how many there are by then, for the ledger; ``left_out`` lists them.
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
from infold.core.project import Node, SessionsQuery, left_out_reason
from infold.spark.inputs.feed import Feed
from infold.spark.sessions.islands import wanted, who
from infold.spark.sessions.totals import tallied
from infold.spark.step_context import Work

CAME, IN, OUT = "nobody's:", "nobody's in", "nobody's out"
"""What is counted: events that came, by the other models that leave them out; all in, all out."""

BEFORE = "before the start"
"""And those that came and are from before the model's start."""


def nobodys(events: DataFrame, query: SessionsQuery) -> DataFrame:
    """The events that a query leaves out of all sessions."""
    return wanted(events, query).where(who(query).isNull())


def counted(events: DataFrame, query: SessionsQuery, also: Column | None) -> Counter[str]:
    """How many of these events are left out, by the other models that leave them out."""
    found = nobodys(events, query).groupBy(_names(also).alias("also")).count()
    return Counter({row["also"]: row["count"] for row in found.collect()})


def came_and_went(feed: Feed, query: SessionsQuery, also: Column | None) -> Iterator[DataFrame]:
    """Counts of the events left out among those that came, and that went, for the totals."""
    yield tallied(nobodys(feed.arrived(), query), F.concat(F.lit(CAME), _names(also)))
    if feed.lookups:  # where their keys changed, more is seen anew than what arrived
        yield tallied(nobodys(feed.added(), query), F.lit(IN))
    gone = feed.gone()
    if gone is not None:
        yield tallied(nobodys(gone, query), F.lit(OUT))
    if query.before_start is not None:
        yield tallied(feed.arrived().where(query.before_start), F.lit(BEFORE))


def before(events: DataFrame, query: SessionsQuery) -> int:
    """How many of these events are from before the model's start."""
    return 0 if query.before_start is None else events.where(query.before_start).count()


def came(counts: Mapping[str, int]) -> Counter[str]:
    """Of the counts of a fold those of what came, by the other models that leave it out."""
    return Counter(
        {what.removeprefix(CAME): n for what, n in counts.items() if what.startswith(CAME)}
    )


def there(work: Work, step: Step, feed: Feed, query: SessionsQuery, counts: Counter[str]) -> int:
    """How many events are left out after a fold; all are looked through if nobody counted them."""
    before = work.ledger.left_out().get(step.model)
    if before is None:
        return nobodys(feed.now, query).count()
    more = counts[IN] if feed.lookups else came(counts).total()
    return before + more - counts[OUT]


def said(query: SessionsQuery, found: Counter[str]) -> dict[str, Any]:
    """What a receipt says of events left out."""
    rows = found.total()
    others = tuple(sorted((names, count) for names, count in found.items() if names and count))
    by = ((left_out_reason(query), rows),) if rows else ()
    return {"set_aside": rows, "set_aside_by": by, "set_aside_also": others}


def _names(also: Column | None) -> Column:
    return F.lit("") if also is None else also


def others(work: Work, step: Step) -> Column | None:
    """
    The models before this one, over the same rows, that leave a row out as well: their names.

    None where there are no such models. So a run can count it once. A model with expressions of its
    own is asked only about rows that it has taken in: what fails in it must not fail here.
    """
    own = work.project[step.model].query
    names = []
    for node in work.project:
        if node.name == step.model:
            break
        query = node.query
        if node.model.kind is not Kind.SESSIONS or query is None or own is None:
            continue
        if query.input == own.input and (_plain(node, own) or _took_in(work, node, step)):
            out = who(query).isNull()
            if query.where is not None:
                out = out & F.coalesce(F.expr(query.where), F.lit(False))
            names.append(F.when(out, F.lit(node.name)))
    return F.concat_ws(", ", *names) if names else None


def _plain(node: Node, own: SessionsQuery) -> bool:
    """Whether it says by columns alone whose its sessions are, of the same rows."""
    sessions, query = node.model.sessions, node.query
    if sessions is None or query is None or query.where not in (None, own.where):
        return False
    of = [*sessions.identifier, *([sessions.user] if sessions.user else [])]
    return all(re.fullmatch(r"[\w.`]+", sql) for sql in of)


def _took_in(work: Work, node: Node, step: Step) -> bool:
    trace = work.ledger.traces().get(node.name)
    return trace is not None and all(
        trace.inputs.get(name, 0) >= upto for name, (_, upto) in step.inputs.items()
    )
