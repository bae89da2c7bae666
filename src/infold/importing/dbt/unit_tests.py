"""Unit tests of dbt as tables of rows that arrive, and of rows that a model then has."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from typing import Any

from infold.importing.cases import Case, Rows, case_file
from infold.importing.dbt.folder import DbtFolder, Properties
from infold.importing.dbt.templates import NotRenderedError, Templates
from infold.importing.draft import DraftFile, project_name
from infold.importing.report import Line, left
from infold.importing.yaml_lines import Lined, as_list, as_mapping


class _NoCaseError(Exception):
    """A test that cannot be given as rows; the argument says why."""


def read_unit_tests(
    folder: DbtFolder, templates: Templates, lines: list[Line]
) -> Iterator[DraftFile]:
    """The unit tests of properties files."""
    for entry in folder.entries.get("unit_tests", ()):
        name = str(entry.found.get("name", ""))
        try:
            yield case_file(_case(name, entry, templates))
        except _NoCaseError as error:
            lines.append(left(f"test {name}", entry.at, str(error)))


def _case(name: str, entry: Properties, templates: Templates) -> Case:
    if entry.found.get("overrides"):
        raise _NoCaseError("overrides: there is nothing to override here")
    model = project_name(str(entry.found.get("model", "")))
    given: dict[str, Rows] = {}
    for table in as_list(entry.found.get("given")):
        table = as_mapping(table)
        source = str(table.get("input", ""))
        if source == "this":
            raise _NoCaseError("input this: a model of infold does not read itself")
        try:
            called = templates.render(entry.at, "{{ " + source + " }}").text
        except NotRenderedError as error:
            raise _NoCaseError(f"jinja that only dbt resolves: {error.what}") from error
        given[called] = _rows(table)
    expected = _rows(as_mapping(entry.found.get("expect")))
    return Case(name, entry.at, given, {model: expected})


def _rows(table: Lined) -> Rows:
    """Rows as mappings; a column that a row lacks is NULL, as in dbt."""
    if table.get("fixture"):
        raise _NoCaseError("rows in a fixture file")
    rows: Any = table.get("rows")
    form = str(table.get("format", "dict"))
    if form == "csv":
        found = csv.DictReader(io.StringIO(str(rows or "")), skipinitialspace=True)
        return [{str(key).strip(): _text(value) for key, value in row.items()} for row in found]
    if form != "dict":
        raise _NoCaseError(f"rows as {form}")
    return [row for row in as_list(rows) if isinstance(row, Mapping)]


def _text(value: str | None) -> str | None:
    value = (value or "").strip()
    return value or None
