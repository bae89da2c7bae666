"""What may have been overlooked where a test fails: rows that their time leaves out."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.interval import show_instant
from infold.core.project import Project
from infold.core.typed_text import Unusable, instant_of
from infold.core.unit_tests import Arrival, Change, Delivery, UnitTest


def left_out_notes(project: Project, test: UnitTest, upto: Arrival) -> tuple[str, ...]:
    """A line for each source with rows from before its reader's start, or from after the clock."""
    files: dict[tuple[str, str], Delivery] = {}
    for arrival in test.arrivals[: upto.number]:
        for each in arrival.deliveries:
            files[each.of, each.file] = each
            if each.change is Change.DELETE:
                del files[each.of, each.file]
    found: list[str] = []
    for node in project:
        source = project.sources.get(node.source or "")
        if source is None or source.event_time_column is None:
            continue
        given = [each for each in files.values() if each.of == source.name]
        times = list(_times(given, source.event_time_column))
        early = sum(at < node.start for at in times) if node.start is not None else 0
        late = sum(at > upto.clock for at in times) if upto.clock is not None else 0
        if early and node.start is not None:
            start = show_instant(node.start)
            found.append(f"{node.name} leaves out {_rows(early)} from before its start, {start}")
        if late and upto.clock is not None:
            clock = show_instant(upto.clock)
            found.append(f"{_rows(late)} of {source.name} wait, as the clock is at {clock}")
    return tuple(found)


def _rows(number: int) -> str:
    return f"{number} given {'row' if number == 1 else 'rows'}"


def _times(given: list[Delivery], column: str) -> Iterator[int]:
    for each in given:
        for row in each.rows:
            if row.get(column) is not None and not isinstance(row[column], Unusable):
                yield instant_of(row[column])
