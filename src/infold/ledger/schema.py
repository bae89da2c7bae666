"""
The tables of the ledger, in SQLAlchemy Core and valid for SQLite and PostgreSQL alike.

Only ``generate_sql`` and the tests import this file; the program runs the texts in
``generated_sql``. Instants, hashes and snapshot ids are BigInteger. A cell is its half-open
interval. Tables that are read by ranges of their key are clustered by it (``WITHOUT ROWID`` in
SQLite).
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Boolean, Column, Index, Integer, MetaData, Table, Text

metadata = MetaData()
CLUSTERED: dict[str, Any] = {"sqlite_with_rowid": False}


def _text(name: str, *, key: bool = False, null: bool = False) -> Column[str]:
    return Column(name, Text, primary_key=key, nullable=null)


def _big(name: str, *, key: bool = False, null: bool = False) -> Column[int]:
    return Column(name, BigInteger, primary_key=key, nullable=null, autoincrement=False)


meta = Table("meta", metadata, _text("name", key=True), _text("value"), **CLUSTERED)

leases = Table(
    "leases",
    metadata,
    _text("name", key=True),
    _big("token"),
    _text("run", null=True),
    _text("host", null=True),
    _text("place", null=True),
    _big("pid", null=True),
    _text("process", null=True),
    _big("since", null=True),
    _big("heartbeat_at", null=True),
    **CLUSTERED,
)

runs = Table(
    "runs",
    metadata,
    _text("id", key=True),
    _big("number"),
    _text("command"),
    _text("state"),
    _big("as_of"),
    _big("started_at"),
    _big("finished_at", null=True),
    _text("detail"),
    _text("receipt"),
    _text("error", null=True),
    Index("runs_by_number", "number", unique=True),
    Index("runs_by_state", "state"),
)

steps = Table(
    "steps",
    metadata,
    _text("id", key=True),
    _text("run"),
    Column("seq", Integer, nullable=False),
    _text("model"),
    _text("action"),
    _text("state"),
    _text("detail"),
    _text("outcome", null=True),
    _big("started_at"),
    _big("finished_at", null=True),
    _text("error", null=True),
    Index("steps_by_run", "run", "seq"),
    Index("steps_by_model", "model", "run"),
    Index("steps_by_state", "state"),
)

files = Table(
    "files",
    metadata,
    _big("id", key=True),
    _text("source"),
    _text("path"),
    _text("fingerprint"),
    _big("size"),
    Index("files_by_version", "source", "path", "fingerprint", unique=True),
)

ingests = Table(
    "ingests",
    metadata,
    _text("model", key=True),
    _big("file", key=True),
    _big("horizon"),
    _big("next_due", null=True),
    _big("rows"),
    _big("waiting"),
    _big("set_aside"),
    _big("dropped"),
    _big("received_at"),
    **CLUSTERED,
)

file_cells = Table(
    "file_cells",
    metadata,
    _text("model", key=True),
    _big("file", key=True),
    _big("cell_start", key=True),
    _big("cell_end", key=True),
    _big("rows"),
    _big("dropped"),
    **CLUSTERED,
)

versions = Table(
    "versions",
    metadata,
    _text("table_name", key=True),
    _big("number", key=True),
    _big("snapshot", null=True),
    _text("step"),
    _text("run"),
    _big("committed_at"),
    _big("rows"),
    Column("whole", Boolean, nullable=False),
    **CLUSTERED,
)

changes = Table(
    "changes",
    metadata,
    _text("table_name", key=True),
    _big("version", key=True),
    _big("cell_start", key=True),
    _big("cell_end", key=True),
    _big("added"),
    _big("removed"),
    _big("rows_before"),
    _big("rows_after"),
    _big("content_before"),
    _big("content_after"),
    **CLUSTERED,
)
"""``CellChange.last`` is kept with ``cells`` only: it is of the cell as it is now."""

unchanged = Table(
    "unchanged",
    metadata,
    _text("table_name", key=True),
    _big("version", key=True),
    _text("columns", key=True),
    _big("range_start", key=True),
    _big("range_end"),
    **CLUSTERED,
)
"""``columns`` are a JSON list of lower-case names, in order."""

cells = Table(
    "cells",
    metadata,
    _text("table_name", key=True),
    _big("cell_start", key=True),
    _big("cell_end", key=True),
    _big("rows"),
    _big("content"),
    _big("last", null=True),
    **CLUSTERED,
)

traces = Table("traces", metadata, _text("model", key=True), _text("fingerprint"), **CLUSTERED)

trace_inputs = Table(
    "trace_inputs",
    metadata,
    _text("model", key=True),
    _text("input", key=True),
    _big("version"),
    **CLUSTERED,
)

trace_pending = Table(
    "trace_pending",
    metadata,
    _text("model", key=True),
    Column("seq", Integer, primary_key=True, autoincrement=False),
    _big("range_start", key=True),
    _big("range_end"),
    _text("cause"),
    **CLUSTERED,
)

arrivals = Table(
    "arrivals",
    metadata,
    _text("model", key=True),
    _big("version", key=True),
    _big("cell_start", key=True),
    _big("cell_end", key=True),
    _big("received_from"),
    _big("received_to"),
    _big("rows"),
    **CLUSTERED,
)

quarantined = Table(
    "quarantined",
    metadata,
    _text("model", key=True),
    _text("session_of", key=True),
    _big("session_start", key=True),
    _big("session_end"),
    _big("events"),
    Column("session_user", Text, nullable=True, quote=True),  # a word of PostgreSQL's own
    _big("user_at", null=True),
    _text("carried", null=True),
    _text("campaign", null=True),
    **CLUSTERED,
)

entries = Table(
    "manual_entries",
    metadata,
    _text("model", key=True),
    _big("number", key=True),
    _text("session_of"),
    Column("held", Boolean, nullable=True),
    _big("session_start", null=True),
    _big("session_end", null=True),
    _text("reason"),
    _big("made_at"),
    **CLUSTERED,
)

trace_entries = Table(
    "trace_entries", metadata, _text("model", key=True), _big("newest"), **CLUSTERED
)

definitions = Table(
    "definitions",
    metadata,
    _text("digest", key=True),
    _text("model"),
    _text("body"),
    _big("kept_at"),
)

trace_definitions = Table(
    "trace_definitions",
    metadata,
    _text("model", key=True),
    _big("range_start", key=True),
    _big("range_end"),
    _text("digest"),
    **CLUSTERED,
)

forward_only = Table(
    "forward_only",
    metadata,
    _text("model", key=True),
    _text("digest"),
    _big("effective_from", null=True),
    **CLUSTERED,
)

applied = Table(
    "applied",
    metadata,
    _text("environment", key=True),
    _text("model", key=True),
    _text("digest"),
    _big("applied_at"),
    **CLUSTERED,
)

swaps = Table(
    "swaps",
    metadata,
    _text("id", key=True),
    _big("number"),
    _text("kind"),
    _text("environment"),
    _big("made_at"),
    **CLUSTERED,
)

kept_tables = Table(
    "kept_tables",
    metadata,
    _text("swap", key=True),
    _text("model", key=True),
    _text("table_key", null=True),
    _text("fingerprint", null=True),
    _big("snapshot", null=True),
    _text("step", null=True),
    _text("run", null=True),
    **CLUSTERED,
)
"""
Tables that were replaced by others. What else describes one is under its key in other tables, but
it is in neither ``traces`` nor ``versions``, so that nothing takes it for a model's.
"""

swap_definitions = Table(
    "swap_definitions",
    metadata,
    _text("swap", key=True),
    _text("model", key=True),
    _text("before"),
    _text("after"),
    **CLUSTERED,
)
"""Digests of all definitions that were applied before a swap, and after it; empty for none."""

audits = Table(
    "audits",
    metadata,
    _text("model", key=True),
    _text("audit", key=True),
    Column("stored", Boolean, primary_key=True, nullable=False),
    _big("range_start", key=True),
    _big("range_end"),
    _text("state"),
    _text("found"),
    _text("run"),
    _text("step"),
    _big("judged_at"),
    **CLUSTERED,
)
"""What audits found of the rows that steps write, and of stored rows; ``found`` is JSON."""

left_out = Table("left_out", metadata, _text("model", key=True), _big("rows"), **CLUSTERED)

locations = Table("locations", metadata, _text("name", key=True), _text("location"), **CLUSTERED)

environments = Table(
    "environments",
    metadata,
    _text("name", key=True),
    _text("owner"),
    _big("created_at"),
    _big("expires_at", null=True),
    _big("last_run_at", null=True),
    _big("built_at", null=True),
    **CLUSTERED,
)

environment_tables = Table(
    "environment_tables",
    metadata,
    _text("environment", key=True),
    _text("table_key", key=True),
    _text("model"),
    _text("identity"),
    _text("definition"),
    _text("base"),
    Column("current", Boolean, nullable=False),
    **CLUSTERED,
)
"""``definition`` and ``base`` are digests of definitions; see ``core.environment``."""

MOVED = (
    trace_inputs,
    trace_pending,
    trace_entries,
    trace_definitions,
    cells,
    ingests,
    file_cells,
    quarantined,
    left_out,
    audits,
)
"""What describes one table as it is now, by its key: it goes where the table goes."""
