"""Keys of a model that mean nothing where they are, and what is meant by them."""

from __future__ import annotations

from infold.core.model import Materialization
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot


def misplaced_key_hint(kind: Materialization, key: str) -> str:
    """What is meant by a key at the wrong place."""
    if key == "start" and kind is Materialization.TABLE:
        return "A table that is built cell by cell says it in `incremental`, as `start`."
    if key == "incremental" and kind in (Materialization.EVENTS, Materialization.SESSIONS):
        return (
            f"{kind.capitalize()} fold in what comes as it is; their `start` is a key of its own."
        )
    return ""


def _no_backfill_limit(at: Spot, kind: Materialization) -> InfoldError:
    if kind is Materialization.TABLE:
        todo = "A table that is built cell by cell says it in `incremental`, as `backfill_limit`."
        return findings.needless_key(
            at, key="backfill_limit", where="a table as a whole", todo=todo
        )
    return findings.needless_key(
        at, key="backfill_limit", where=f"materialization {kind}", todo=WHOLE
    )


def _no_forward_only(at: Spot, kind: Materialization) -> InfoldError:
    table = kind is Materialization.TABLE
    inside = "A table that is built cell by cell says it in `incremental`, as `forward_only`."
    return findings.needless_key(
        at,
        key="forward_only",
        where="a table as a whole" if table else f"materialization {kind}",
        todo=inside if table else NO_CELLS,
    )


def no_cells_to_keep(at: Spot) -> InfoldError:
    """The error where a table is to keep its earlier cells, and has none."""
    key, where = "incremental.forward_only", "a table as a whole"
    todo = "A changed definition builds it again. Leave out `enabled: false`, or `forward_only`."
    return findings.needless_key(at, key=key, where=where, todo=todo)


ONLY_INCREMENTAL = {"backfill_limit": _no_backfill_limit, "forward_only": _no_forward_only}
"""Keys of ``incremental`` that people look for elsewhere, and what they are told."""

NO_CELLS = (
    "Only events, sessions, and a table that is built cell by cell, can keep earlier cells as they "
    "are. "
    "Leave the key out: a changed definition builds the table again."
)
"""Why another kind of model is never changed forward-only."""

WHOLE = (
    "New files are ingested whole, once: when the rows of a file are is not known before it is "
    "read, and sessions of a part of the events are not the sessions of all. To spread it over "
    "runs, move the files into the landing folder in portions, with `infold run` after each; or "
    "begin late, with `start`."
)
"""Why there is no limit for ingested files, and what to use instead."""
