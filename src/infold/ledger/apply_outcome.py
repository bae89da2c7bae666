"""
What an outcome does to the rows of the ledger: version, changes, cells, trace, files, arrivals.

Functions over a :class:`Query` inside one writing transaction. The work follows the cells that
changed, not the cells that a table has, unless the commit replaced the whole table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from infold.core.files import FilesOutcome
from infold.core.interval import Interval, Ranges
from infold.core.record import LISTED, Outcome
from infold.core.trace import CellChange, CellState, EarlierCells, Retention, Trace, Unchanged
from infold.ledger.codec import put_audits
from infold.ledger.database import Query


def apply_outcome(
    query: Query, outcome: Outcome, *, step: str, run: str, started: int, now: int
) -> None:
    """Record what a step did. ``started`` is when its run began."""
    if outcome.committed:
        changes = _with_vanished(query, outcome) if outcome.whole else outcome.changes
        _put_cells(query, outcome.model, changes, whole=outcome.whole)
        (rows,) = query.one("rows_of_table", table_name=outcome.model)
        query.run(
            "add_version",
            table_name=outcome.model,
            number=outcome.version,
            snapshot=outcome.snapshot,
            step=step,
            run=run,
            committed_at=now,
            rows=int(rows),
            whole=outcome.whole,
        )
        add_changes(query, outcome.model, outcome.version, changes)
        add_unchanged(query, outcome.model, outcome.version, outcome.unchanged)
        if outcome.files is not None and not outcome.files.recounted:
            _add_arrivals(query, outcome, received=Interval(started, max(started, now) + 1))
    if outcome.cells is not None:
        query.run("drop_cells", table_name=outcome.model)
        _add_cells(query, outcome.model, outcome.cells)
    _put_quarantined(query, outcome)
    put_audits(query, outcome.model, outcome.audits, now=now, run=run, step=step)
    if outcome.left_out is not None:
        query.run("drop_left_out", model=outcome.model)
        query.run("add_left_out", model=outcome.model, rows=outcome.left_out)
    put_trace(query, outcome.trace)
    if outcome.files is not None:
        _put_files(query, outcome.model, outcome.files)


def _put_quarantined(query: Query, outcome: Outcome) -> None:
    model = outcome.model
    if outcome.whole:
        query.run("drop_all_quarantined", model=model)
    keys = [*outcome.released, *(session.key for session in outcome.quarantined)]
    query.many(
        "drop_quarantined",
        [{"model": model, "session_of": of, "session_start": start} for of, start in keys],
    )
    query.many(
        "add_quarantined",
        [
            {
                "model": model,
                "session_of": session.owner,
                "session_start": session.start,
                "session_end": session.end,
                "events": session.events,
                "session_user": session.user,
                "user_at": session.user_at,
                "carried": session.carried,
                "campaign": session.campaign,
            }
            for session in outcome.quarantined
        ],
    )


def put_trace(query: Query, trace: Trace) -> None:
    """Replace a model's trace."""
    drop_trace(query, trace.model)
    query.run("add_trace", model=trace.model, fingerprint=trace.fingerprint)
    put_trace_definitions(query, trace)
    if trace.applied_entry:
        query.run("add_trace_entries", model=trace.model, newest=trace.applied_entry)
    kept = trace.retention
    if kept != Retention():
        instants = {"starts": kept.start, "lost_until": kept.lost_until}
        frozen_until = kept.frozen_until
        query.run("add_trace_retention", model=trace.model, frozen_until=frozen_until, **instants)
    query.many(
        "add_trace_input",
        [
            {"model": trace.model, "input": name, "version": version}
            for name, version in trace.inputs.items()
        ],
    )
    query.many(
        "add_trace_pending",
        [
            {
                "model": trace.model,
                "seq": seq,
                "range_start": part.start,
                "range_end": part.end,
                "cause": entry.cause.value,
            }
            for seq, entry in enumerate(trace.pending)
            for part in entry.ranges
        ],
    )


def drop_trace(query: Query, model: str) -> None:
    """Forget how a model was built."""
    for name in (
        "drop_trace",
        "drop_trace_inputs",
        "drop_trace_pending",
        "drop_trace_entries",
        "drop_trace_retention",
        "drop_trace_definitions",
    ):
        query.run(name, model=model)


def put_trace_definitions(query: Query, trace: Trace) -> None:
    """Record which definition holds where; a forward-only change to the newest is carried out."""
    query.run("drop_trace_definitions", model=trace.model)
    newest = EarlierCells(Ranges.ever() - trace.earlier_ranges, trace.definition)
    query.many(
        "add_trace_definition",
        [
            {
                "model": trace.model,
                "range_start": part.start,
                "range_end": part.end,
                "digest": entry.definition,
            }
            for entry in (*trace.earlier, newest)
            for part in entry.cells
            if entry.definition
        ],
    )
    query.run("drop_carried_out", model=trace.model, digest=trace.definition)


def vanished(
    before: Iterable[tuple[Interval, int, int]], changes: Iterable[CellChange]
) -> tuple[CellChange, ...]:
    """
    Changes for cells that a whole replacement emptied and that its changes do not name.

    ``before`` are cells with rows and content. Readers of the table have to see them go.
    """
    named = {change.cell for change in changes}
    return tuple(
        CellChange(cell, 0, rows, rows, 0, content, 0)
        for cell, rows, content in before
        if cell not in named
    )


def _with_vanished(query: Query, outcome: Outcome) -> tuple[CellChange, ...]:
    before = (
        (Interval(start, end), rows, content)
        for start, end, rows, content, _ in query.all("cells", table_name=outcome.model)
    )
    return outcome.changes + vanished(before, outcome.changes)


def _put_cells(query: Query, table: str, changes: Iterable[CellChange], *, whole: bool) -> None:
    changes = tuple(changes)
    if whole:
        query.run("drop_cells", table_name=table)
    else:
        query.many("drop_cell", [_cell_row(table, change.cell) for change in changes])
    after = (CellState(c.cell, c.rows_after, c.content_after, c.last) for c in changes)
    _add_cells(query, table, (state for state in after if state.rows))


def _add_cells(query: Query, table: str, states: Iterable[CellState]) -> None:
    query.many(
        "add_cell",
        [
            {
                **_cell_row(table, state.cell),
                "rows": state.rows,
                "content": state.content,
                "last": state.last,
            }
            for state in states
        ],
    )


def _cell_row(table: str, cell: Interval) -> dict[str, object]:
    return {"table_name": table, "cell_start": cell.start, "cell_end": cell.end}


def add_changes(query: Query, table: str, version: int, changes: Iterable[CellChange]) -> None:
    """Record what a version of a table changed."""
    query.many(
        "add_change",
        [
            {
                **_cell_row(table, change.cell),
                "version": version,
                "added": change.added,
                "removed": change.removed,
                "rows_before": change.rows_before,
                "rows_after": change.rows_after,
                "content_before": change.content_before,
                "content_after": change.content_after,
            }
            for change in changes
        ],
    )


def add_unchanged(query: Query, table: str, version: int, unchanged: Iterable[Unchanged]) -> None:
    """Record what a version of a table left as it was."""
    query.many(
        "add_unchanged",
        [
            {
                "table_name": table,
                "version": version,
                "columns": json.dumps(sorted(one.columns)),
                "range_start": part.start,
                "range_end": part.end,
            }
            for one in unchanged
            for part in one.cells
        ],
    )


def _add_arrivals(query: Query, outcome: Outcome, received: Interval) -> None:
    query.many(
        "add_arrival",
        [
            {
                "model": outcome.model,
                "version": outcome.version,
                "cell_start": change.cell.start,
                "cell_end": change.cell.end,
                "received_from": received.start,
                "received_to": received.end,
                "rows": change.added,
            }
            for change in outcome.changes
            if change.added
        ],
    )


def _put_files(query: Query, model: str, files: FilesOutcome) -> None:
    query.run("drop_location", name=LISTED.format(model))
    removed_files = [{"model": model, "file": file} for file in files.removed]
    taken = [{"model": model, "file": file.id} for file in files.ingested]
    query.many("drop_ingest", removed_files + taken)
    query.many("drop_cells_of_file", removed_files + taken)
    query.many(
        "add_ingest",
        [
            {
                "model": model,
                "file": file.id,
                "horizon": file.horizon,
                "next_due": file.next_due,
                "rows": file.rows,
                "waiting": file.waiting,
                "set_aside": file.set_aside,
                "dropped": file.dropped,
                "received_at": file.received_at,
            }
            for file in files.ingested
        ],
    )
    query.many(
        "add_file_cell",
        [
            {
                "model": model,
                "file": entry.file_id,
                "cell_start": entry.cell.start,
                "cell_end": entry.cell.end,
                "rows": entry.rows,
                "dropped": entry.dropped,
            }
            for entry in files.cells
        ],
    )
    lost = [
        {
            "of_model": model,
            "of_file": entry.file_id,
            "of_start": entry.cell.start,
            "of_end": entry.cell.end,
            "more": entry.dropped,
            "more_rows": entry.rows,
        }
        for entry in files.dropped
    ]
    query.many("lose_rows_in_cell", lost)
    query.many(
        "lose_rows",
        [{n: row[n] for n in ("of_model", "of_file", "more", "more_rows")} for row in lost],
    )
