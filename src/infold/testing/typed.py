"""Gives the cells of written tests their meaning: which column, which value."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from infold.analysis.names.subject import time_column
from infold.core.interval import DAY, MIN, parse_instant_text
from infold.core.model import Kind
from infold.core.project import Project
from infold.core.typed_text import Unusable, file_value, instant_of, read_value
from infold.core.unit_tests import (
    Delivery,
    Expectation,
    Row,
    UnitTest,
    WrittenTable,
)
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError
from infold.testing import set_aside
from infold.testing.given_rows import impossible_rows
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
