"""What is worth knowing about a project without mistakes; ``check`` prints it."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.interval import show_instant
from infold.core.model import Kind
from infold.core.project import Node, Project


def project_advice(project: Project) -> tuple[str, ...]:
    """A sentence or two for each thing worth knowing, models in their order."""
    return tuple(
        sentence
        for node in project
        for sentence in (
            *_unmatched_lookups(node),
            *_start_inside_cell(node, project.start),
            *_rows_before_start(node),
        )
    )


def _unmatched_lookups(node: Node) -> Iterator[str]:
    """The lookups that make a whole model stale with every change."""
    for name in node.unmatched_lookups:
        yield (
            f"{node.name}: every change of {name} builds all of it: {name} is not only "
            "joined by equality with columns of a row that has a time"
        )


def _rows_before_start(node: Node) -> Iterator[str]:
    """What a model leaves out because of its own start, besides cells."""
    at = node.model.start
    if at is None:
        return
    if node.model.kind is Kind.SESSIONS:
        yield (
            f"{node.name}: it leaves out events from before its start, {show_instant(at)}: a "
            "session that goes on over that instant begins with its first event after it"
        )
    elif node.source is not None:
        yield (
            f"{node.name}: it leaves out rows of {node.source} from before its start, "
            f"{show_instant(at)}, and so does all that reads it"
        )


def _start_inside_cell(node: Node, start: int | None) -> Iterator[str]:
    """Which beginning is taken where a start, its own or the project's, is inside a cell."""
    granularity, series, own = node.model.granularity, node.model.timeseries, node.model.incremental
    if node.model.kind is not Kind.INCREMENTAL_TABLE or own is None or series is None:
        return
    start = start if own.start is None else own.start
    if start is None or granularity is None or granularity.aligned(start):
        return
    cell, length = granularity.cell(start), granularity.value.removesuffix(" (sunday)")
    inside = f"{node.name}: its start, {show_instant(start)}, lies inside a {length}. "
    if own.exact_start:
        yield (
            f"{inside}Of the {length} from {show_instant(cell.start)} to {show_instant(cell.end)} "
            f"it leaves out the rows whose {series.partition_column} is before "
            f"{show_instant(start)} (exact_start): all of them, where {series.partition_column} is "
            f"the beginning of the {length}"
        )
    else:
        yield (
            f"{inside}The table begins with the whole {length}, on {show_instant(cell.start)}; "
            f"`incremental.exact_start: true` leaves out the rows of it whose "
            f"{series.partition_column} is before {show_instant(start)}"
        )
