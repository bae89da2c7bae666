"""
Writes a test from real rows: of a session or a cell of a model, and of all that it is made from.

The rows of its inputs are given as they are stored, so the test needs no files and no other model.
It shows what is stored now; whether that is right is for a person to say.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from infold import api
from infold.analysis.names.subject import time_column
from infold.core.interval import Interval, Ranges, parse_instant_text, show_instant
from infold.core.model import Kind, table_name
from infold.core.project import Node, Project
from infold.core.sessions import NUMBERS
from infold.core.type_changes import shown
from infold.core.typed_text import instant_of, stored_value, value_text
from infold.core.unit_tests import Row
from infold.declare.unit_tests import FOLDER
from infold.messages import command_errors, unit_test_errors

MOST_ROWS = 200
"""Rows of one input in a test: more is no example."""


@dataclass
class _Masks:
    """Other values for those of some columns: a value has one mask in whichever of them it is."""

    columns: frozenset[str]
    known: dict[str, str] = field(default_factory=dict)
    masked: set[str] = field(default_factory=set)

    def row(self, row: Row) -> Row:
        """A row with its values masked."""
        return {name: self._value(name, value) for name, value in row.items()}

    def _value(self, name: str, value: Any) -> Any:
        if name.lower() not in self.columns or not isinstance(value, str):
            return value
        self.masked.add(name.lower())
        number = 1 + sum(mask.rpartition("_")[0] == name for mask in self.known.values())
        return self.known.setdefault(value, f"{name}_{number}")


def write_test(
    project: Project, model: str, start: str, mask: Sequence[str] = ()
) -> tuple[Path, str]:
    """
    Add a test of a session or a cell to ``tests/MODEL_from_rows.md``; the file, and its name.

    Raises ``unit_test_errors`` where there are no rows, or too many.
    """
    models = [node.name for node in project]
    if model not in models:
        raise command_errors.unknown_model(model, models)
    node = project[model]
    if node.model.kind is Kind.EVENTS:
        readers = [one.name for one in project if model in one.reads] or ["none does"]
        raise unit_test_errors.from_files(model=model, readers=readers)
    if node.model.kind.is_view:
        raise unit_test_errors.view_from_rows(model=model)
    masks = _Masks(frozenset(name.lower() for name in mask))
    sessions = node.model.kind is Kind.SESSIONS
    content = _of_session(project, node, start) if sessions else _of_cell(project, node, start)
    if not content.expected:
        raise unit_test_errors.not_a_start(model=model, start=start)
    text = _text(node, "" if mask else start, content, masks)
    every = (row for rows in (content.expected, *content.given.values()) for row in rows[:1])
    shown_columns = {name for row in every for name in row}
    for column in mask:
        if column.lower() not in masks.masked:
            raise unit_test_errors.not_masked(column=column, known=sorted(shown_columns))
    path = project.root / FOLDER / f"{table_name(model)}_from_rows.md"
    before = path.read_text(encoding="utf-8") if path.exists() else ""
    name = _new_name(content.name if not sessions or not mask else f"A session of {model}", before)
    path.parent.mkdir(exist_ok=True)
    document = f"{before.rstrip()}\n\n# {name}\n\n{text}" if before else f"# {name}\n\n{text}"
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(document, encoding="utf-8")
    fresh.replace(path)
    return path.relative_to(project.root), name


def _new_name(name: str, text: str) -> str:
    used = {line[2:].strip() for line in text.splitlines() if line.startswith("# ")}
    number = 2
    free_name = name
    while free_name in used:
        free_name, number = f"{name} ({number})", number + 1
    return free_name


@dataclass(frozen=True)
class _Content:
    """The rows for a test."""

    name: str
    expected: list[Row]
    given: Mapping[str, list[Row]]
    within: str = ""


def _of_session(project: Project, node: Node, id_: str) -> _Content:
    rows = _rows(project, node.name, f"session_id = '{id_.replace(chr(39), chr(39) * 2)}'")
    if not rows or node.query is None:
        raise unit_test_errors.not_a_start(model=node.name, start=id_)
    row = dict(rows[0])
    first, last = instant_of(row["session_start"]), instant_of(row["session_end"])
    column = node.query.user
    inputs = {}
    for entry in node.inputs:
        span = Interval(first, last + 1)
        every = _input_rows(project, entry.name, entry.time_column, Ranges((span,)))
        mine = every
        if entry.time_column is not None:
            mine = [one for one in every if column not in one or one[column] == row[column]]
        inputs[entry.name] = _if_few(node, id_, entry.name, mine)
    # What counts all sessions of a user, and the id, which masks would change.
    plain = {name: value for name, value in row.items() if name not in ("session_id", *NUMBERS)}
    name = f"The session of {value_text(row[column])} from {show_instant(first)}"
    return _Content(name, [plain], inputs)


def _of_cell(project: Project, node: Node, text: str) -> _Content:
    granularity, column = node.model.granularity, time_column(node)
    if granularity is None or column is None:
        inputs = {
            entry.name: _if_few(node, text, entry.name, _rows(project, entry.name))
            for entry in node.inputs
        }
        rows = _if_few(node, text, node.name, _rows(project, node.name))
        return _Content(f"All of {node.name}", rows, inputs)
    try:
        cell = granularity.cell(parse_instant_text(text))
    except ValueError:
        raise unit_test_errors.not_a_start(model=node.name, start=text) from None
    rows = [
        row
        for row in _rows(project, node.name)
        if row[column] is not None and cell.start <= instant_of(row[column]) < cell.end
    ]
    if not rows:
        raise unit_test_errors.not_a_start(model=node.name, start=text)
    inputs = {}
    for entry in node.inputs:
        times = entry.times_read(Ranges((cell,))) if entry.time_column else None
        every = _input_rows(project, entry.name, entry.time_column, times)
        inputs[entry.name] = _if_few(node, text, entry.name, every)
    start = show_instant(cell.start)
    return _Content(f"{node.name} in {start}", rows, inputs, within=start)


def _input_rows(project: Project, name: str, column: str | None, times: Ranges | None) -> list[Row]:
    """The rows of an input at some times; of a lookup all."""
    rows = _rows(project, name)
    if column is None or times is None:
        return rows
    return [
        row
        for row in rows
        if row[column] is not None
        and any(part.start <= instant_of(row[column]) < part.end for part in times)
    ]


def _if_few(node: Node, start: str, name: str, rows: list[Row]) -> list[Row]:
    if len(rows) > MOST_ROWS:
        raise unit_test_errors.too_many_rows(
            model=node.name, start=start, rows=f"{len(rows):,}", input=name, most=MOST_ROWS
        )
    return rows


def _rows(project: Project, name: str, where: str | None = None) -> list[Row]:
    """The rows of a table, in the order of their values."""
    tables = api.lake_of(project)
    types = {column: shown(of) for column, of in tables.columns(table_name(name)).items()}
    stored = tables.rows(table_name(name), where=where).to_pylist()
    typed = [{c: stored_value(value, types[c]) for c, value in row.items()} for row in stored]
    return sorted(typed, key=lambda row: [value_text(value) for value in row.values()])


def _text(node: Node, start: str, content: _Content, masks: _Masks) -> str:
    """The test below its heading; a masked one does not name the session that it is of."""
    parts = [f"As it was stored; written from {node.name} {start}".rstrip() + ".", "## Arrival"]
    for name, rows in content.given.items():
        shown_ = [masks.row(row) for row in rows]
        parts += [f"{name}:", _table(shown_)] if shown_ else [f"{name}: no rows"]
    within = f" in {content.within}" if content.within else ""
    parts += [f"expect {node.name}{within}:", _table([masks.row(row) for row in content.expected])]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Row]) -> str:
    """Rows as Markdown draws them, aligned."""
    lines = [list(rows[0]), *([_cell(value) for value in row.values()] for row in rows)]
    widths = [max(3, *(len(line[i]) for line in lines)) for i in range(len(lines[0]))]
    lines.insert(1, ["-" * width for width in widths])
    return "\n".join(
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in lines
    )


def _cell(value: Any) -> str:
    return re.sub(r"\|", r"\\|", value_text(value))
