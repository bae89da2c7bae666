"""Whether rows that are given of a model are such as it could have stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from infold.analysis.names.subject import time_column
from infold.core.model import Deduplicate, Kind
from infold.core.project import Node, Project
from infold.core.session_rules import IDENTIFIER
from infold.core.unit_tests import Change, Delivery, Row, UnitTest
from infold.core.version_rules import VALID_FROM
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, Spot


def impossible_rows(project: Project, test: UnitTest) -> Iterator[InfoldError]:
    """
    The rows without a time, and those with the key of another row that is there with them.

    Keys are compared where a test gives all of their columns.
    """
    files: dict[tuple[str, str], Delivery] = {}
    for arrival in test.arrivals:
        for each in arrival.deliveries:
            if each.of in project.sources or project[each.of].model.kind is Kind.VIEW:
                continue
            files[each.of, each.file] = each
            if each.change is Change.DELETE:
                del files[each.of, each.file]
            yield from _without_time(project[each.of], each)
        for name in dict.fromkeys(of for of, _ in files):
            here = [each for each in files.values() if each.of == name]
            yield from _same_keys(project[name], here)


def _without_time(node: Node, each: Delivery) -> Iterator[InfoldError]:
    column = time_column(node)
    for row, at in _placed(each):
        if column is not None and row.get(column) is None:
            yield unit_test_errors.no_time(at, name=node.name, column=column)


def _same_keys(node: Node, files: Sequence[Delivery]) -> Iterator[InfoldError]:
    seen: dict[tuple[Any, ...], Spot] = {}
    key = _key(node)
    for each in files:
        for row, at in _placed(each):
            values = tuple(_of(row, column) for column in key)
            if not key or None in values:
                continue
            other = seen.setdefault(values, at)
            if other is not at:
                shown = ", ".join(key)
                yield unit_test_errors.same_key(at, name=node.name, key=shown, other=other)


def _placed(each: Delivery) -> Iterator[tuple[Row, Spot]]:
    for row, cells in zip(each.rows, each.written.rows, strict=True):
        yield row, cells[0].at


def _of(row: Mapping[str, Any], column: str) -> Any:
    return next((value for name, value in row.items() if name.lower() == column.lower()), None)


def _key(node: Node) -> tuple[str, ...]:
    """The columns that tell stored rows of a model apart; none where that is not declared."""
    model = node.model
    if model.kind is Kind.EVENTS and model.unique_key and model.timeseries is not None:
        everywhere = model.deduplicate is Deduplicate.EVERYWHERE
        return (*model.unique_key, *(() if everywhere else (model.timeseries.event_time_column,)))
    if model.sessions is not None and model.sessions.fallback_gap is None:
        owner = IDENTIFIER if model.sessions.identifier else model.sessions.user_column
        return (owner, "session_start") if owner else ()
    if model.versions is not None:
        return (*model.unique_key, VALID_FROM)
    return tuple(one.name for one in node.grouped.keys) if node.grouped is not None else ()
