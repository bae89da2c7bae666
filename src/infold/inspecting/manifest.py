"""
The tables in which users of Snowplow's packages look up the progress of a project.

They are views of the ledger and of the sessions tables. Nothing stores them, so they cannot be
wrong, need no repair and cost a run nothing. pyarrow is imported where rows are made.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from typing import TYPE_CHECKING

from infold.core.interval import Ranges, show_duration
from infold.core.model import Kind, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.record import QuarantinedSession
from infold.core.sessions import IDENTIFIER, Keep, Sessions, session_id
from infold.core.trace import CellState, Trace, net_changes
from infold.planning.buildable_cells import retained_range
from infold.planning.staleness import affected_cells
from infold.running.table_names import table_locations

if TYPE_CHECKING:
    import pyarrow as pa

INCREMENTAL = "incremental_manifest"
LIFECYCLE = "sessions_lifecycle_manifest"
QUARANTINED = "quarantined_sessions"
SCHEMA = "infold"
"""The optional schema of their names: ``infold.incremental_manifest``."""


def manifest_table_of(table: str) -> str | None:
    """The manifest table of a name, with or without its schema; None for any other name."""
    bare = table.removeprefix(f"{SCHEMA}.")
    return bare if bare in TABLES else None


def last_success(project: Project, ledger: Ledger) -> Mapping[str, int | None]:
    """
    The newest event time that each built model has processed; inputs come before their readers.

    For a table of events that is its newest event. For any other it is the newest of its inputs, so
    that models in sync show the same time, whichever rows they keep. Where a model has yet to read
    a part of an input (a version, pending ranges, times before its start), the newest time of the
    cells that it has read counts.
    """
    newest: dict[str, int | None] = {}
    traces = ledger.traces()
    for node in project:
        trace = traces.get(node.name)
        if trace is None:
            continue
        if node.model.kind is Kind.EVENTS:
            newest[node.name] = _newest_event_time(ledger.cells(node.name))
        else:
            times = [
                at
                for entry in node.inputs
                for at in (_newest_processed(node, trace, entry.name, ledger, newest),)
                if at is not None
            ]
            newest[node.name] = max(times, default=None)
    return newest


def _newest_processed(
    node: Node, trace: Trace, name: str, ledger: Ledger, known: Mapping[str, int | None]
) -> int | None:
    """The newest event time of one input that a model has processed."""
    cells = ledger.cells(name)
    late = {change.cell for change in net_changes(ledger.changes(name, trace.inputs.get(name, 0)))}
    read = [cell for cell in cells if cell.cell not in late and _is_built(node, trace, name, cell)]
    return known.get(name) if len(read) == len(cells) else _newest_event_time(read)


def _is_built(node: Node, trace: Trace, name: str, cell: CellState) -> bool:
    """Whether any cell of the model that rows of this one affect was built."""
    if not trace.pending and node.start is None:
        return True
    return bool(
        (affected_cells(node, name, Ranges((cell.cell,))) & retained_range(node))
        - trace.pending_ranges
    )


def _newest_event_time(cells: Collection[CellState]) -> int | None:
    return max((cell.last for cell in cells if cell.last is not None), default=None)


# -- rows ------------------------------------------------------------------------------------------

Rows = Callable[[Project, Ledger, Lake, Collection[str]], "pa.Table"]


def manifest_rows(
    project: Project, ledger: Ledger, lake: Lake, table: str, names: Collection[str]
) -> pa.Table:
    """The rows of a manifest table, for those of these models that have a table."""
    locations = table_locations(lake, names)
    return TABLES[table](
        project, ledger, lake, [name for name in names if table_name(name) in locations]
    )


def _incremental_rows(
    project: Project, ledger: Ledger, lake: Lake, names: Collection[str]
) -> pa.Table:
    import pyarrow as pa

    del lake
    rows = [(name, at) for name, at in last_success(project, ledger).items() if name in names]
    schema = pa.schema([("model", pa.string()), ("last_success", _timestamp_type())])
    return pa.table([[name for name, _ in rows], [at for _, at in rows]], schema=schema)


def _lifecycle_rows(
    project: Project, ledger: Ledger, lake: Lake, names: Collection[str]
) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        [
            ("session_identifier", pa.string()),
            ("user_identifier", pa.string()),
            ("start_tstamp", _timestamp_type()),
            ("end_tstamp", _timestamp_type()),
        ]
    )
    traces = ledger.traces()
    parts = [
        _lifecycle_of_model(node, lake, schema)
        for node in project
        if node.model.kind is Kind.SESSIONS and node.name in names and node.name in traces
    ]
    return pa.concat_tables([schema.empty_table(), *parts])


def _lifecycle_of_model(node: Node, lake: Lake, schema: pa.Schema) -> pa.Table:
    """The sessions of one model under the names of the manifest."""
    import pyarrow as pa
    from pyarrow import compute

    sessions = node.model.sessions
    assert sessions is not None, "a sessions model says what a session is"
    ids = ["session_id", *([IDENTIFIER] if sessions.identifier else [])]
    user = sessions.user_column
    columns_read = [*ids, *([user] if user else []), "session_start", "session_end"]
    stored = lake.rows(table_name(node.name), columns=list(dict.fromkeys(columns_read)))
    identifier = stored["session_id"]
    if sessions.identifier:  # sessions of users, where their events have no identifier
        identifiers = stored[IDENTIFIER].cast(pa.string())
        identifier = compute.coalesce(identifiers, identifier.cast(pa.string()))
    users = stored[user] if user else pa.nulls(len(stored))
    columns = (identifier, users, stored["session_start"], stored["session_end"])
    return pa.table(
        [column.cast(field.type) for column, field in zip(columns, schema, strict=True)],
        schema=schema,
    )


def _quarantined_rows(
    project: Project, ledger: Ledger, lake: Lake, names: Collection[str]
) -> pa.Table:
    import pyarrow as pa

    schema = pa.schema(
        [
            ("session_identifier", pa.string()),
            ("user_identifier", pa.string()),
            ("reason", pa.string()),
            ("start_tstamp", _timestamp_type()),
            ("end_tstamp", _timestamp_type()),
            ("events", pa.int64()),
        ]
    )
    rows = [
        row
        for node in project
        if node.model.kind is Kind.SESSIONS and node.name in names
        for row in _quarantined_of_model(node, ledger, lake)
    ]
    columns = [[row[at] for row in rows] for at in range(len(schema))]
    return pa.table(columns, schema=schema)


def _quarantined_of_model(
    node: Node, ledger: Ledger, lake: Lake
) -> Iterator[tuple[str, str | None, str, int, int, int]]:
    """The sessions of one model in quarantine, by start."""
    sessions = node.model.sessions
    assert sessions is not None, "a sessions model says what a session is"
    why, entries = quarantine_reasons(node, ledger), ledger.quarantined(node.name)
    heads = _users_of_heads(node, lake, [session_id(one.owner, one.start) for one in entries])
    for entry in entries:
        id_, identifier, user = names_of_quarantined(sessions, entry)
        user = heads.get(id_, user)
        shown = id_ if identifier is None else identifier
        yield shown, user, why(entry), entry.start, entry.end, entry.events


def _users_of_heads(node: Node, lake: Lake, ids: Collection[str]) -> Mapping[str, str | None]:
    """
    The users of sessions in quarantine, by the rows of them that stay.

    Which of several users an identifier's session has depends on the events that are read. Of a
    session in quarantine those of its head are read.
    """
    from pyarrow import string

    sessions = node.model.sessions
    assert sessions is not None, "a sessions model says what a session is"
    if (
        sessions.keep is Keep.NOTHING
        or not sessions.identifier
        or not sessions.user_column
        or not ids
    ):
        return {}
    quoted = ", ".join(f"'{one}'" for one in ids)
    heads = lake.rows(
        table_name(node.name),
        columns=["session_id", sessions.user_column],
        where=f"session_id in ({quoted})",
    )
    users = heads[sessions.user_column].cast(string()).to_pylist()
    return dict(zip(heads["session_id"].to_pylist(), users, strict=True))


def quarantine_reasons(node: Node, ledger: Ledger) -> Callable[[QuarantinedSession], str]:
    """Says why a session is in quarantine: its length, or the latest manual entry about it."""
    sessions, trace = node.model.sessions, ledger.traces().get(node.name)
    limit = sessions.quarantine_after if sessions else None
    too_long = f"longer than {show_duration(limit)}" if limit else ""
    applied = trace.applied_entry if trace else 0
    last = [one for one in reversed(ledger.entries(node.name)) if one.number <= applied]

    def why(entry: QuarantinedSession) -> str:
        word = next(
            (one for one in last if one.applies_to(entry.owner, entry.start, entry.end)), None
        )
        if word is None or word.in_quarantine is None:
            return too_long
        return f"by hand: {word.reason}" if word.reason else "by hand"

    return why


def names_of_quarantined(
    sessions: Sessions, entry: QuarantinedSession
) -> tuple[str, str | None, str | None]:
    """The id of a session in quarantine, its identifier if it is of one, and its user."""
    by, of = bool(sessions.identifier), entry.owner
    if by and sessions.fallback_gap is not None:  # then what it is of says which of both it is
        by, of = of.startswith("i"), of[1:]
    id_ = session_id(entry.owner, entry.start)
    return id_, of if by else None, entry.user if by else of


def _timestamp_type() -> pa.DataType:
    import pyarrow as pa

    return pa.timestamp("us", tz="UTC")


TABLES: Mapping[str, Rows] = {
    INCREMENTAL: _incremental_rows,
    LIFECYCLE: _lifecycle_rows,
    QUARANTINED: _quarantined_rows,
}
"""Each table by its name; another one is another line here, and a section of the reference."""
