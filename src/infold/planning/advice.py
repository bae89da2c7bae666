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
            *_start_inside_cell(node),
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


def _start_inside_cell(node: Node) -> Iterator[str]:
    """What is left out when a start is inside a cell."""
    granularity, series = node.model.granularity, node.model.timeseries
    if node.start is None or node.model.kind is not Kind.INCREMENTAL_TABLE:
        return
    if granularity is None or series is None or granularity.aligned(node.start):
        return
    cell, length = granularity.cell(node.start), granularity.value.removesuffix(" (sunday)")
    yield (
        f"{node.name}: its start, {show_instant(node.start)}, lies inside a {length}. Of the "
        f"{length} from {show_instant(cell.start)} to {show_instant(cell.end)} it leaves out the "
        f"rows whose {series.partition_column} is before {show_instant(node.start)}: all of them, "
        f"where {series.partition_column} is the beginning of the {length}. Whole {length}s begin "
        f"on {show_instant(cell.start)} or {show_instant(cell.end)}."
    )
