"""Unit tests of other tools as infold writes them: Markdown with tables of rows."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from typing import Any

from infold.importing.draft import DraftFile, project_name

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Case:
    """
    One test: rows of tables by their names in infold, and the rows that a model then has.

    Values are those of YAML; texts of a CSV are texts. ``clock`` is the run's, if it is given.
    """

    name: str
    at: str
    given: Mapping[str, Rows]
    expected: Mapping[str, Rows]
    clock: str = ""


def case_file(case: Case) -> DraftFile:
    """The file of a case in ``tests/``."""
    lines = [f"From {case.at.partition(':')[0]}.", "", f"# {case.name}", "", "## Arrival", ""]
    if case.clock:
        lines += [f"clock: {case.clock}", ""]
    for name, rows in case.given.items():
        lines += _table(f"{name}:", rows)
    for name, rows in case.expected.items():
        lines += _table(f"expect {name}:", rows)
    names = frozenset({*case.given, *case.expected})
    path = f"tests/{project_name(case.name)}.md"
    gives = {name: tuple(_columns(rows)) for name, rows in case.given.items()}
    return DraftFile(path, "\n".join(lines), f"test {case.name}", case.at, names, gives)


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _table(head: str, rows: Rows) -> list[str]:
    columns = _columns(rows)
    if not columns:
        return [f"{head} no rows", ""]
    cells = [columns, *([_cell(row.get(name)) for name in columns] for row in rows)]
    widths = [max(len(row[i]) for row in cells) for i in range(len(columns))]

    def line(row: Iterable[str]) -> str:
        return "| " + " | ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)) + " |"

    dashes = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return [head, "", line(cells[0]), dashes, *map(line, cells[1:]), ""]


def _cell(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, datetime | date):
        return value.isoformat(sep=" ") if isinstance(value, datetime) else value.isoformat()
    if isinstance(value, dict | list):
        text = json.dumps(value, default=str, ensure_ascii=False)
    else:
        text = str(value)
        if isinstance(value, str) and _QUOTED.search(text):
            text = json.dumps(text, ensure_ascii=False)
    return text.replace("|", "\\|")


_QUOTED = re.compile(r"\A\s*\Z|\A\s|\s\Z|\ANULL\Z|\A[\"`\[{]|\n|\t", re.IGNORECASE)
"""Texts that are not themselves without quotes."""
