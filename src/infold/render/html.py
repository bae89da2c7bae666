"""Results as HTML for notebooks: screens as they are, rows as a table; every text is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from html import escape
from typing import Any

from infold.render.table import cell

_SCREEN = "white-space:pre;overflow-x:auto;line-height:1.3;text-align:left"
_RIGHT = ' style="text-align:right"'


def screen_html(text: str) -> str:
    """A screen as a terminal shows it: strips of cells keep their columns."""
    return f'<pre style="{_SCREEN}">{escape(text)}</pre>'


def rows_html(columns: Sequence[str], rows: Sequence[Sequence[Any]], note: str) -> str:
    """Rows under their names, numbers to the right; NULL differs from an empty text."""
    head = "".join(f"<th>{escape(name)}</th>" for name in columns)
    body = "".join(f"<tr>{''.join(map(_cell, row))}</tr>" for row in rows)
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f"{table}<p>{escape(note)}</p>"


def _cell(value: Any) -> str:
    if value is None:
        return '<td style="opacity:0.5">NULL</td>'
    number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return f"<td{_RIGHT if number else ''}>{escape(cell(value))}</td>"
