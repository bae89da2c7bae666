"""Gives the cells of written tests their meaning: which column, which value."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infold.analysis.names.subject import time_column
from infold.core.interval import DAY, MIN, parse_instant_text
from infold.core.model import Deduplicate, Kind
from infold.core.project import Node, Project
from infold.core.queries import VALID_FROM
from infold.core.session_rules import IDENTIFIER
from infold.core.typed_text import Unusable, file_value, instant_of, read_value
from infold.core.unit_tests import (
    Change,
    Delivery,
    Expectation,
    Row,
    UnitTest,
    WrittenTable,
)
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, Spot
from infold.testing import set_aside
from infold.testing.names import spelled
from infold.testing.project import Tables

_NO_CLOCK = parse_instant_text("2000-01-01")
"""The clock of a test without any event time."""


@dataclass
class Values:
    """The values of tests by the types of their columns; all that is wrong is in ``errors``."""

    project: Project
    tables: Tables
    errors: list[InfoldError] = field(default_factory=list)

    def test(self, test: UnitTest) -> UnitTest:
        """A test with rows, and with a clock in each arrival."""
        arrivals = tuple(
            replace(
                arrival,
                deliveries=tuple(self._delivery(each) for each in arrival.deliveries),
                expected=tuple(self._expectation(each) for each in arrival.expected),
            )
            for arrival in test.arrivals
        )
        found = replace(test, arrivals=arrivals)
        if not self.errors:
            self.errors += dict.fromkeys(impossible_rows(self.project, found))
        return found.with_clocks(self._default_clock(found))

    def _delivery(self, each: Delivery) -> Delivery:
        if not self.tables.columns(each.of):
            self.errors.append(unit_test_errors.no_columns(each.at, name=each.of))
            return each
        in_file = each.of in self.project.sources
        columns = self.tables.columns(each.of)
        rows = self._rows(each.of, columns, each.written, in_file=in_file)
        source = self.project.sources.get(each.of)
        absent = {
            column: None
            for column in self.tables.columns(each.of)
            if source is None or not any(c.name == column and c.optional for c in source.columns)
        }
        return replace(each, rows=tuple({**absent, **row} for row in rows))

    def _expectation(self, each: Expectation) -> Expectation:
        columns = self.tables.models.get(each.model, {})
        if each.aside:
            columns = set_aside.aside_columns(self.project[each.model], self.tables)
        rows = self._rows(each.model, columns, each.written, in_file=each.aside)
        return replace(each, rows=rows)

    def _rows(
        self, name: str, columns: Mapping[str, str], written: WrittenTable, *, in_file: bool
    ) -> tuple[Row, ...]:
        names = []
        for cell in written.columns:
            declared = spelled(cell.text, list(columns))
            if declared is None:
                self.errors.append(
                    unit_test_errors.unknown_column(
                        cell.at, name=name, column=cell.text, known=columns
                    )
                )
            names.append(declared)
        rows = []
        for cells in written.rows:
            row = {}
            for column, cell in zip(names, cells, strict=True):
                if column is None:
                    continue
                try:
                    read = file_value if in_file else read_value
                    row[column] = read(cell.text, columns[column])
                except (ValueError, KeyError, ArithmeticError, AttributeError, TypeError):
                    self.errors.append(
                        unit_test_errors.bad_value(
                            cell.at,
                            text=cell.text or "an empty cell",
                            type=columns[column],
                            column=column,
                        )
                    )
            rows.append(row)
        return tuple(rows)

    def _default_clock(self, test: UnitTest) -> int:
        """The end of the day of the last event time that is given: nothing is in the future."""
        last = MIN
        for arrival in test.arrivals:
            for each in arrival.deliveries:
                columns = self._time_columns(each.of)
                for value in (row.get(column) for row in each.rows for column in columns):
                    if value is not None and not isinstance(value, Unusable):
                        last = max(last, instant_of(value))
        return _NO_CLOCK if last == MIN else last - last % DAY + DAY

    def _time_columns(self, name: str) -> Sequence[str]:
        """What may be the event time: of a view any time."""
        source = self.project.sources.get(name)
        if source is None and self.project[name].model.kind is Kind.VIEW:
            types = self.tables.models[name]
            return [column for column, of in types.items() if of.startswith(("timestamp", "date"))]
        column = source.event_time_column if source else time_column(self.project[name])
        return [column] if column else []


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
