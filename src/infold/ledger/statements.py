"""
Every statement that the ledger runs, by name, in SQLAlchemy Core.

Only ``generate_sql`` and the tests import this file; the program runs the texts in
``generated_sql``. Nothing here is particular to SQLite: an upsert is a delete and an insert in one
transaction, and a list of keys is one statement run many times (a prepared one costs microseconds).
Where rows are changed, parameters named ``of_…`` find them and ``new_…`` are what they become.
"""

from __future__ import annotations

from sqlalchemy import (
    ClauseElement,
    Column,
    ColumnElement,
    Delete,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    insert,
    literal_column,
    null,
    or_,
    select,
    update,
)

from infold.ledger import schema as s
from infold.ledger.audit_statements import audit_statements
from infold.ledger.file_statements import file_statements
from infold.ledger.swap_statements import swap_statements

RUNNING: ColumnElement[str] = literal_column("'running'")
DIED: ColumnElement[str] = literal_column("'died'")
INTENT: ColumnElement[str] = literal_column("'intent'")
PREPARED: ColumnElement[str] = literal_column("'prepared'")
DONE: ColumnElement[str] = literal_column("'done'")
NONE: ColumnElement[int] = literal_column("0")
"""No offset, written as text: SQLite's dialect would make a parameter of it."""
OPEN = or_(s.steps.c.state == INTENT, s.steps.c.state == PREPARED)
"""An unfinished step."""


def all_statements() -> dict[str, ClauseElement]:
    """The statements by name; parameters are named like their columns."""
    return {
        **_meta(),
        **_runs(),
        **_steps(),
        **file_statements(),
        **_tables(),
        **_traces(),
        **_definitions(),
        **_environments(),
        **swap_statements(),
        **audit_statements(),
        **_pruning(),
    }


def _where(table: Table, *names: str) -> Select[tuple[object, ...]]:
    return select(table).where(*(table.c[name] == bindparam(name) for name in names))


def _delete(table: Table, *names: str) -> Delete:
    return delete(table).where(*(table.c[name] == bindparam(name) for name in names))


def _meta() -> dict[str, ClauseElement]:
    lease = s.leases.c
    holder = [column.name for column in s.leases.columns if column.nullable]
    held = [lease[name] == bindparam(f"of_{name}") for name in ("name", "token", "run")]
    return {
        "meta": select(s.meta.c.value).where(s.meta.c.name == bindparam("name")),
        "add_meta": insert(s.meta),
        "drop_meta": _delete(s.meta, "name"),
        "lease": _where(s.leases, "name"),
        "add_lease": insert(s.leases),
        "take_lease": update(s.leases)
        .where(lease.name == bindparam("of_name"), lease.token == bindparam("of_token"))
        .values(
            token=bindparam("new_token"),
            run=bindparam("new_run"),
            host=bindparam("new_host"),
            place=bindparam("new_place"),
            pid=bindparam("new_pid"),
            process=bindparam("new_process"),
            since=bindparam("new_since"),
            heartbeat_at=bindparam("new_heartbeat_at"),
        ),
        # Also the fence: it finds no row once the token has grown, and it locks the row that it
        # finds until the transaction ends, so that nobody can take over in the middle of a write.
        # The run too, since a ledger that was made in the place of another counts from 1 again.
        "beat": update(s.leases).where(*held).values(heartbeat_at=bindparam("new_heartbeat_at")),
        "free_lease": update(s.leases).where(*held).values(dict.fromkeys(holder, null())),
    }


def _runs() -> dict[str, ClauseElement]:
    run = s.runs.c
    newest = select(s.runs).order_by(run.number.desc()).limit(bindparam("limit")).offset(NONE)
    with_model = exists().where(s.steps.c.run == run.id, s.steps.c.model == bindparam("model"))
    return {
        "last_run_number": select(func.max(run.number)),
        "add_run": insert(s.runs),
        "bury_runs": update(s.runs)
        .where(run.state == RUNNING, run.id != bindparam("of_run"))
        .values(state=DIED, finished_at=bindparam("new_finished_at")),
        "close_run": update(s.runs)
        .where(run.id == bindparam("of_run"))
        .values(
            state=bindparam("new_state"),
            finished_at=bindparam("new_finished_at"),
            receipt=bindparam("new_receipt"),
            error=bindparam("new_error"),
        ),
        "run": _where(s.runs, "id"),
        "runs": newest,
        "runs_of_model": newest.where(with_model),
        "runs_of_command": newest.where(s.runs.c.command == bindparam("command")),
    }


def _steps() -> dict[str, ClauseElement]:
    step = s.steps.c
    return {
        "add_step": insert(s.steps),
        "step": _where(s.steps, "id"),
        "steps_of_run": _where(s.steps, "run").order_by(step.seq, step.id),
        "unfinished": select(s.steps)
        .join(s.runs, s.runs.c.id == step.run)
        .where(OPEN, step.run != bindparam("run"))
        .order_by(s.runs.c.number, step.seq, step.id),
        "prepare_step": update(s.steps)
        .where(step.id == bindparam("of_step"), OPEN)
        .values(state=PREPARED, outcome=bindparam("new_outcome")),
        "close_step": update(s.steps)
        .where(step.id == bindparam("of_step"), OPEN)
        .values(
            state=bindparam("new_state"),
            finished_at=bindparam("new_finished_at"),
            error=bindparam("new_error"),
        ),
        "finish_step": update(s.steps)
        .where(step.id == bindparam("of_step"), OPEN)
        .values(
            state=DONE,
            finished_at=bindparam("new_finished_at"),
            outcome=bindparam("new_outcome"),
        ),
    }


def _tables() -> dict[str, ClauseElement]:
    version, change, cell, arrival = s.versions.c, s.changes.c, s.cells.c, s.arrivals.c
    here = cell.table_name == bindparam("table_name")
    return {
        "heads": _heads(),
        "versions": select(s.versions)
        .where(version.table_name == bindparam("table_name"), version.number > bindparam("since"))
        .order_by(version.number),
        "add_version": insert(s.versions),
        "changes": select(*_columns(s.changes, skip=("table_name",)))
        .where(change.table_name == bindparam("table_name"), change.version > bindparam("since"))
        .order_by(change.version, change.cell_start, change.cell_end),
        "unchanged": select(*_columns(s.unchanged, skip=("table_name",)))
        .where(
            s.unchanged.c.table_name == bindparam("table_name"),
            s.unchanged.c.version > bindparam("since"),
        )
        .order_by(s.unchanged.c.version, s.unchanged.c.columns, s.unchanged.c.range_start),
        "add_unchanged": insert(s.unchanged),
        "losing": select(change.version)
        .where(
            change.table_name == bindparam("table_name"),
            change.removed > NONE,
            change.cell_start < bindparam("until"),
            change.cell_end > bindparam("since"),
        )
        .distinct()
        .order_by(change.version),
        "add_change": insert(s.changes),
        "cells": select(*_columns(s.cells, skip=("table_name",)))
        .where(here)
        .order_by(cell.cell_start, cell.cell_end),
        "cells_between": select(*_columns(s.cells, skip=("table_name",)))
        .where(here, cell.cell_start < bindparam("until"), cell.cell_end > bindparam("since"))
        .order_by(cell.cell_start, cell.cell_end),
        "rows_of_table": select(func.coalesce(func.sum(cell.rows), NONE)).where(here),
        "add_cell": insert(s.cells),
        "drop_cell": _delete(s.cells, "table_name", "cell_start", "cell_end"),
        "drop_cells": _delete(s.cells, "table_name"),
        "quarantined": select(*_columns(s.quarantined, skip=("model",)))
        .where(s.quarantined.c.model == bindparam("model"))
        .order_by(s.quarantined.c.session_start, s.quarantined.c.session_of),
        "add_quarantined": insert(s.quarantined),
        "drop_quarantined": _delete(s.quarantined, "model", "session_of", "session_start"),
        "drop_all_quarantined": _delete(s.quarantined, "model"),
        "entries": select(*_columns(s.entries, skip=("model",)))
        .where(s.entries.c.model == bindparam("model"))
        .order_by(s.entries.c.number),
        "newest_entries": select(s.entries.c.model, func.max(s.entries.c.number)).group_by(
            s.entries.c.model
        ),
        "add_entry": insert(s.entries),
        "left_out": select(s.left_out),
        "add_left_out": insert(s.left_out),
        "drop_left_out": _delete(s.left_out, "model"),
        "locations": select(s.locations).order_by(s.locations.c.name),
        "add_location": insert(s.locations),
        "drop_location": _delete(s.locations, "name"),
        "add_arrival": insert(s.arrivals),
        "arrivals": select(s.arrivals)
        .where(arrival.model == bindparam("model"))
        .order_by(arrival.version.desc(), arrival.cell_start.desc())
        .limit(bindparam("limit"))
        .offset(NONE),
    }


def _heads() -> Select[tuple[object, ...]]:
    """
    The newest version of each table.

    From name to name by the key, and to the last number of each: a GROUP BY reads all versions that
    there ever were.
    """
    version, following, own = s.versions.c, s.versions.alias("following"), s.versions.alias("own")
    names = select(func.min(version.table_name).label("name")).cte("names", recursive=True)
    after = select(func.min(following.c.table_name)).where(following.c.table_name > names.c.name)
    names = names.union_all(select(after.scalar_subquery()).where(names.c.name.is_not(None)))
    newest = select(func.max(own.c.number)).where(own.c.table_name == names.c.name)
    return (
        select(s.versions)
        .join(names, version.table_name == names.c.name)
        .where(version.number == newest.scalar_subquery())
    )


def _traces() -> dict[str, ClauseElement]:
    pending = s.trace_pending.c
    return {
        "traces": select(s.traces),
        "trace_inputs": select(s.trace_inputs),
        "trace_pending": select(
            pending.model, pending.seq, pending.range_start, pending.range_end, pending.cause
        ).order_by(pending.model, pending.seq, pending.range_start),
        "trace_entries": select(s.trace_entries),
        "add_trace": insert(s.traces),
        "advance_trace": update(s.trace_inputs)
        .where(
            s.trace_inputs.c.model == bindparam("of_model"),
            s.trace_inputs.c.input == bindparam("of_input"),
        )
        .values(version=bindparam("new_version")),
        "restamp_trace": update(s.traces)
        .where(s.traces.c.model == bindparam("of_model"))
        .values(fingerprint=bindparam("new_fingerprint")),
        "add_trace_entries": insert(s.trace_entries),
        "add_trace_input": insert(s.trace_inputs),
        "add_trace_pending": insert(s.trace_pending),
        "drop_trace": _delete(s.traces, "model"),
        "drop_trace_inputs": _delete(s.trace_inputs, "model"),
        "drop_trace_pending": _delete(s.trace_pending, "model"),
        "drop_trace_entries": _delete(s.trace_entries, "model"),
        "trace_definitions": select(s.trace_definitions).order_by(
            s.trace_definitions.c.model, s.trace_definitions.c.range_start
        ),
        "add_trace_definition": insert(s.trace_definitions),
        "drop_trace_definitions": _delete(s.trace_definitions, "model"),
        "forward_only": select(s.forward_only).order_by(s.forward_only.c.model),
        "add_forward_only": insert(s.forward_only),
        "drop_forward_only": _delete(s.forward_only, "model"),
        "drop_carried_out": _delete(s.forward_only, "model", "digest"),
    }


def _definitions() -> dict[str, ClauseElement]:
    applied = s.applied.c
    return {
        "definition": select(s.definitions.c.body).where(
            s.definitions.c.digest == bindparam("digest")
        ),
        "definition_kept_at": select(s.definitions.c.kept_at).where(
            s.definitions.c.digest == bindparam("digest")
        ),
        "definition_history": select(
            s.definitions.c.model, s.definitions.c.digest, s.definitions.c.kept_at
        ).order_by(s.definitions.c.kept_at, s.definitions.c.model, s.definitions.c.digest),
        "add_definition": insert(s.definitions),
        "applied": select(applied.model, applied.digest, applied.applied_at)
        .where(applied.environment == bindparam("environment"))
        .order_by(applied.model),
        "add_applied": insert(s.applied),
        "drop_applied": _delete(s.applied, "environment", "model"),
    }


def _environments() -> dict[str, ClauseElement]:
    """Environments, and what erases a table of theirs from the ledger."""
    return {
        "environments": select(s.environments).order_by(s.environments.c.name),
        "environment_tables": select(s.environment_tables).order_by(
            s.environment_tables.c.environment, s.environment_tables.c.table_key
        ),
        "add_environment": insert(s.environments),
        "drop_environment": _delete(s.environments, "name"),
        "add_environment_table": insert(s.environment_tables),
        "drop_environment_tables": _delete(s.environment_tables, "environment"),
        "drop_environment_applied": _delete(s.applied, "environment"),
        "erase_versions": _delete(s.versions, "table_name"),
        "erase_changes": _delete(s.changes, "table_name"),
        "erase_unchanged": _delete(s.unchanged, "table_name"),
        "erase_arrivals": _delete(s.arrivals, "model"),
        "erase_entries": _delete(s.entries, "model"),
    }


def _pruning() -> dict[str, ClauseElement]:
    """What is no longer needed: by table and version, a bounded number of versions at a time."""
    return {
        "oldest_inputs": select(
            s.trace_inputs.c.input, func.min(s.trace_inputs.c.version)
        ).group_by(s.trace_inputs.c.input),
        "old_changes": _old(s.changes, s.changes.c.table_name),
        "drop_changes": delete(s.changes).where(
            s.changes.c.table_name == bindparam("table_name"),
            s.changes.c.version <= bindparam("upto"),
        ),
        "drop_unchanged": delete(s.unchanged).where(
            s.unchanged.c.table_name == bindparam("table_name"),
            s.unchanged.c.version <= bindparam("upto"),
        ),
        "old_arrivals": _old(s.arrivals, s.arrivals.c.model),
        "drop_arrivals": delete(s.arrivals).where(
            s.arrivals.c.model == bindparam("table_name"),
            s.arrivals.c.version <= bindparam("upto"),
        ),
    }


def _old(table: Table, key: Column[str]) -> Select[tuple[int, int]]:
    """The oldest versions up to one, with their numbers of rows."""
    return (
        select(table.c.version, func.count())
        .where(key == bindparam("table_name"), table.c.version <= bindparam("upto"))
        .group_by(table.c.version)
        .order_by(table.c.version)
        .limit(bindparam("limit"))
        .offset(NONE)
    )


def _columns(table: Table, *, skip: tuple[str, ...]) -> list[Column[object]]:
    return [column for column in table.columns if column.name not in skip]
