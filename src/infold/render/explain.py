"""One model or one cell, explained on a screen."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.interval import MIN, Granularity, Interval, show_instant
from infold.core.plan import Action
from infold.core.report import Explanation
from infold.core.trace import Trace
from infold.render import formatting


def explain_screen(value: Explanation) -> str:
    """Definition, inputs, trace, what a run would do and why, arrivals, and who built it."""
    cells = Granularity(value.granularity) if value.granularity else None
    title = value.model
    if value.cell is not None:
        title += f", {value.granularity} {formatting.cell_text(value.cell, cells)}"
    parts = [
        f"{title}\n\n" + "\n".join(formatting.columns(_fact_rows(value, cells))),
        _inputs_block(value),
        _definition_block(value) if value.cell is None else "",
        _staleness(value, cells),
        _arrivals_block(value, cells),
        _builders_block(value),
    ]
    return "\n\n".join(part for part in parts if part)


def _fact_rows(value: Explanation, cells: Granularity | None) -> list[tuple[str, str]]:
    materialization = value.kind.materialization.value
    if value.kind.is_by_cell:
        materialization += ", incremental"
    if cells is not None:
        materialization += f", one {cells.value} a cell"
    facts = [
        ("materialization", materialization),
        ("file", value.place),
        ("fingerprint", value.fingerprint[:16]),
    ]
    if value.applied is not None:
        differs = "" if value.applied.same else ", differs from the files"
        facts.append(("applied", formatting.clock(value.applied.at) + differs))
    if value.kind.is_view:
        return [*facts, ("stored", "nothing: its readers evaluate it")]
    if not value.version:
        return [*facts, ("stored", "nothing yet"), *value.notes]
    if value.cell is not None:
        facts.append(("cell", _cell_text(value)))
    stored = f"version {value.version}, {formatting.count(value.rows, 'row')}"
    if cells is not None:
        stored += f" in {formatting.count(value.cells, 'cell')}"
    facts.append(("stored", stored))
    if value.layout:
        facts.append(("layout", value.layout))
    return [*facts, *value.notes]


def _cell_text(value: Explanation) -> str:
    """The rows of the cell in question and their checksum."""
    if value.state is None:
        return "no rows"
    checksum = value.state.content & (2**64 - 1)
    return f"{formatting.count(value.state.rows, 'row')}, checksum {checksum:016x}"


def _inputs_block(value: Explanation) -> str:
    rows = []
    for entry in value.inputs:
        versions = ""
        if entry.now is not None:
            versions = f"version {entry.now}"
            if entry.built is not None and entry.built != entry.now:
                versions = f"built from version {entry.built}, now {entry.now}"
        rows.append((entry.name, entry.mapping, versions))
        if entry.columns is not None and len(entry.columns) < entry.width:
            columns = f"{len(entry.columns)} of {entry.width} columns: {', '.join(entry.columns)}"
            rows.append(("", columns, ""))
    return "\n".join(["Reads", *formatting.columns(rows)]) if rows else ""


def _definition_block(value: Explanation) -> str:
    lines = value.sql.strip("\n").splitlines()
    return "\n".join(["Definition", *(f"  {line}".rstrip() for line in lines)])


def _staleness(value: Explanation, cells: Granularity | None) -> str:
    """Why it is stale, or why not."""
    if value.kind.is_view:
        return ""
    lines = []
    if value.step is None:
        lines.append(f"Not stale: {value.why_left}." if value.why_left else "Not stale.")
    else:
        about = (
            f", about {formatting.count(value.step.rows_to_read, 'row')} to read"
            if value.step.rows_to_read
            else ""
        )
        lines.append(f"Stale: a run would {_action_text(value.step.action)}{about}, because of")
        rows = []
        for reason in value.step.reasons:
            if value.cell is not None and reason.cells and not reason.cells.overlaps(value.cell):
                continue
            where = formatting.ranges_text(reason.cells, cells) if reason.cells else ""
            rows.append((reason.cause.value, reason.detail, where))
        lines.extend(formatting.columns(rows))
    if value.trace is None:
        lines.append("It was never built, so it has no trace.")
    else:
        is_same = value.trace.fingerprint == value.fingerprint
        built = "its present definition" if is_same else "another definition"
        if value.cell is not None and value.trace.earlier_ranges.overlaps(value.cell):
            built = "an earlier definition, the one in force here,"
        read = ", ".join(f"{name} {number}" for name, number in value.trace.inputs.items())
        lines.append(f"Its trace: built by {built}" + (f" from {read}." if read else "."))
        lines.extend(
            f"  left unbuilt ({part.cause.value}): {formatting.ranges_text(part.ranges, cells)}"
            for part in value.trace.pending
        )
        lines.extend(_retention_lines(value.trace, value.cell))
    return "\n".join(lines)


def _retention_lines(trace: Trace, cell: Interval | None) -> Iterator[str]:
    """What it lacks as rows are kept for a time, and what it keeps for longer."""
    kept = trace.retention
    if kept.start > MIN:
        yield f"Rows before {show_instant(kept.start)} are no longer kept."
    if kept.frozen_until > max(kept.start, MIN) and (
        cell is None or cell.start < kept.frozen_until
    ):
        until = show_instant(kept.frozen_until)
        yield f"Frozen until {until}: rows that its cells were made from are no longer kept."


def _action_text(action: Action) -> str:
    return {
        Action.INGEST: "ingest files",
        Action.BUILD: "build the whole table",
        Action.FOLD: "fold changed rows in",
        Action.RECOMPUTE: "recompute its stale cells",
        Action.DERIVE: "derive its rows from the stored ones",
        Action.REBUCKET: "divide its rows into other cells",
        Action.EVOLVE: "give its columns other names or wider types",
        Action.REFOLD: "change the sessions that end elsewhere now",
        Action.EXPIRE: "take out cells that are older than it keeps them",
    }[action]


def _arrivals_block(value: Explanation, cells: Granularity | None) -> str:
    del cells
    rows = [
        (
            formatting.clock(entry.received.start),
            f"{entry.rows:,}",
            f"rows in {entry.model}, its version {entry.version}",
        )
        for entry in value.arrivals
    ]
    return "\n".join(["Arrived for it", *formatting.columns(rows, right=(1,))]) if rows else ""


def _builders_block(value: Explanation) -> str:
    rows = []
    for at, record in value.built_by:
        receipt = record.outcome.receipt if record.outcome else None
        did = ""
        if receipt is not None and value.cell is not None:
            did = f"{receipt.written:,} written, {receipt.removed:,} removed in it"
        elif receipt is not None:
            did = f"{receipt.read:,} read, {receipt.written:,} written"
        rows.append((formatting.clock(at), record.run, record.action, did))
    what = "Built by" if value.cell is None else "Changed by"
    return "\n".join([what, *formatting.columns(rows)]) if rows else ""
