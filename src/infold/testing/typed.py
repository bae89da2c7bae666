"""Gives the cells of written tests their meaning: which column, which value."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from infold import api
from infold.analysis.names.subject import time_column
from infold.core.interval import DAY, MIN, parse_instant_text
from infold.core.model import Deduplicate, Kind
from infold.core.project import Node, Project
from infold.core.queries import VALID_FROM
from infold.core.sessions import IDENTIFIER
from infold.core.typed_text import Unusable, file_value, instant_of, read_value, value_in_file
from infold.core.unit_tests import (
    Arrival,
    Change,
    Delivery,
    Entry,
    Expectation,
    Row,
    UnitTest,
    WrittenTable,
)
from infold.messages import unit_test_errors
from infold.messages.errors import InfoldError, Spot
from infold.testing.project import Tables
from infold.testing.scratch import Scratch

if TYPE_CHECKING:
    import pyarrow as pa


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
        typed = replace(test, arrivals=arrivals)
        if not self.errors:
            self.errors += dict.fromkeys(impossible_rows(self.project, typed))
        return typed.with_clocks(self._default_clock(typed))

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
            columns = aside_columns(self.project[each.model], self.tables)
        rows = self._rows(each.model, columns, each.written, in_file=each.aside)
        return replace(each, rows=rows)

    def _rows(
        self, name: str, columns: Mapping[str, str], written: WrittenTable, *, in_file: bool
    ) -> tuple[Row, ...]:
        names = []
        for cell in written.columns:
            declared = declared_name(cell.text, list(columns))
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
        if source is None and self.project[name].model.kind.is_view:
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
            if each.of in project.sources or project[each.of].model.kind.is_view:
                continue
            files[each.of, each.file] = each
            if each.change is Change.DELETE:
                del files[each.of, each.file]
            yield from _without_time(project[each.of], each)
        for name in dict.fromkeys(of for of, _ in files):
            deliveries = [each for each in files.values() if each.of == name]
            yield from _same_keys(project[name], deliveries)


def _without_time(node: Node, each: Delivery) -> Iterator[InfoldError]:
    column = time_column(node)
    for row, at in _placed(each):
        if column is not None and row.get(column) is None:
            yield unit_test_errors.no_time(at, name=node.name, column=column)


def _same_keys(node: Node, files: Sequence[Delivery]) -> Iterator[InfoldError]:
    first: dict[tuple[Any, ...], Spot] = {}
    key = _key(node)
    for each in files:
        for row, at in _placed(each):
            values = tuple(_value_of(row, column) for column in key)
            if not key or None in values:
                continue
            other = first.setdefault(values, at)
            if other is not at:
                shown = ", ".join(key)
                yield unit_test_errors.same_key(at, name=node.name, key=shown, other=other)


def _placed(each: Delivery) -> Iterator[tuple[Row, Spot]]:
    for row, cells in zip(each.rows, each.written.rows, strict=True):
        yield row, cells[0].at


def _value_of(row: Mapping[str, Any], column: str) -> Any:
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


# Those are what `infold show set_aside` shows (the file by its name in the test), and the columns
# of the row itself, as it stands in the file or in the table that sessions read.

OWN = {"reason": "string", "event_time": "timestamp", "file": "string", "raw": "string"}
"""The columns of every row that is set aside, with their types."""


def aside_columns(node: Node, tables: Tables) -> Mapping[str, str]:
    """The columns of the rows that a model sets aside, with types as Spark SQL writes them."""
    columns: dict[str, str] = {}
    if node.source is not None:
        columns |= tables.sources[node.source]
    elif node.model.kind is Kind.SESSIONS:
        for entry in node.folded_inputs:
            columns |= tables.columns(entry.name)
    return {**columns, **OWN}


def rows_set_aside(scratch: Scratch, project: Project, node: Node, tables: Tables) -> list[Row]:
    """The rows that a model sets aside, as its project in the scratch has them."""
    types = aside_columns(node, tables)
    return [_row(one, types) for one in _set_aside_rows(scratch, project, node)]


def _set_aside_rows(scratch: Scratch, project: Project, node: Node) -> Iterator[Mapping[str, Any]]:
    """The rows of ``set_aside`` that name the model."""
    from infold.inspecting.left_out import rows_left_out

    def by_spark(table: str, nodes: Sequence[Node], most: int | None) -> pa.Table:
        from infold.spark.sessions.unassigned import left_out

        with scratch.engine(project).work("") as work:
            return left_out(work, table, nodes, most)

    lake = api.lake_of(project)
    try:
        stored = [lake.rows(project.set_aside)]
    except InfoldError as error:
        if error.slug != "not-built":
            raise
        stored = []  # it is made with its first row
    left = rows_left_out(project, api.ledger_of(project), lake, None, by_spark)
    for table in [*stored, *([] if left is None else [left])]:
        yield from (row for row in table.to_pylist() if node.name in row["model"].split(", "))


def _row(listed: Mapping[str, Any], types: Mapping[str, str]) -> Row:
    try:
        inside = json.loads(listed["raw"])
    except ValueError:  # a line that is no JSON
        inside = {}
    row = {
        name: value_in_file(inside.get(name), of) for name, of in types.items() if name not in OWN
    }
    file = listed["file"] and PurePosixPath(listed["file"]).stem
    return {**row, **{name: listed[name] for name in OWN}, "file": file}


SET_ASIDE_KINDS = (Kind.EVENTS, Kind.SESSIONS)
"""The kinds of models that set rows aside."""


@dataclass
class Names:
    """Whether what tests name is there; all that is wrong is noted in ``errors``."""

    project: Project
    errors: list[InfoldError] = field(default_factory=list)

    def test(self, test: UnitTest) -> UnitTest:
        """A test with the names as they are declared."""
        before = len(self.errors)
        files: dict[str, set[str]] = {}
        arrivals = [self._arrival(arrival, files) for arrival in test.arrivals]
        spelled_test = replace(test, arrivals=tuple(arrivals))
        if len(self.errors) == before:
            self._check_expected(spelled_test)
        return spelled_test

    def _arrival(self, arrival: Arrival, files: dict[str, set[str]]) -> Arrival:
        deliveries = [one for each in arrival.deliveries for one in self._delivery(each, files)]
        entries = [one for each in arrival.entries for one in self._entry(each)]
        expected = [one for each in arrival.expected for one in self._expectation(each)]
        return replace(
            arrival,
            deliveries=tuple(deliveries),
            entries=tuple(entries),
            expected=tuple(expected),
        )

    def _delivery(self, each: Delivery, files: dict[str, set[str]]) -> Iterator[Delivery]:
        every = [*self.project.sources, *(node.name for node in self.project)]
        name = declared_name(each.of, every)
        if name is None:
            error = unit_test_errors.unknown_given(each.at, name=each.of, known=every)
            self.errors.append(error)
            return
        known = files.setdefault(name, set())
        if each.change is Change.ADD and each.file in known:
            error = unit_test_errors.file_there(each.at, name=name, file=each.file)
            self.errors.append(error)
        elif each.change is not Change.ADD and each.file not in known:
            error = unit_test_errors.no_such_file(
                each.at, name=name, file=each.file, files=sorted(known) or "none"
            )
            self.errors.append(error)
        known.add(each.file)
        if each.change is Change.DELETE:
            known.discard(each.file)
        yield replace(each, of=name)

    def _expectation(self, each: Expectation) -> Iterator[Expectation]:
        models = [node.name for node in self.project]
        name = declared_name(each.model, models)
        if name is None and each.model.lower() == "set_aside":
            self.errors.append(unit_test_errors.aside_alone(each.at))
            return
        if name is None:
            error = unit_test_errors.unknown_expected(each.at, name=each.model, known=models)
            self.errors.append(error)
            return
        node = self.project[name].model
        if each.aside and node.kind not in SET_ASIDE_KINDS:
            self.errors.append(unit_test_errors.none_aside(each.at, name=name))
        if each.within is not None:
            if node.granularity is None:
                self.errors.append(unit_test_errors.no_cells(each.at, model=name))
            elif instant(each.within.text) is None:
                error = unit_test_errors.bad_cell(each.at, text=each.within.text, model=name)
                self.errors.append(error)
        yield replace(each, model=name)

    def _entry(self, each: Entry) -> Iterator[Entry]:
        models = [node.name for node in self.project if node.model.kind is Kind.SESSIONS]
        name = declared_name(each.of, models)
        sessions = None if name is None else self.project[name].model.sessions
        if name is None or sessions is None:
            error = unit_test_errors.not_sessions(each.at, name=each.of, models=models or "none")
            self.errors.append(error)
            return
        owner = each.owner
        if sessions.fallback_gap is not None:
            if not each.kind:
                self.errors.append(unit_test_errors.unclear_owner(each.at, owner=owner))
            owner = f"{each.kind[:1]}{owner}"
        else:
            kind = "identifier" if sessions.identifier else "user"
            if each.kind not in ("", kind):
                error = unit_test_errors.other_owner(
                    each.at,
                    name=name,
                    what=f"one {kind} each",
                    kind=f"an {each.kind}" if each.kind == "identifier" else "a user",
                )
                self.errors.append(error)
        yield replace(each, of=name, owner_in_ledger=owner)

    def _check_expected(self, test: UnitTest) -> None:
        """Nothing is expected, or decided by hand, of models whose rows are given."""
        for arrival in test.arrivals:
            places = [*((each.model, each.at) for each in arrival.expected)]
            places += [(each.of, each.at) for each in arrival.entries]
            for model, at in places:
                if model in test.given:
                    self.errors.append(unit_test_errors.given_and_made(at, name=model))


def declared_name(name: str, known: list[str]) -> str | None:
    """A name as it is declared; case does not count."""
    return next((one for one in known if one.lower() == name.lower()), None)


def instant(text: str) -> int | None:
    """The instant that a text is; None for another text."""
    try:
        return parse_instant_text(text)
    except ValueError:
        return None
