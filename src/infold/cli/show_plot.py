"""``infold show --plot`` and ``--lines``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from infold.cli import output

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.core.project import Project

MOST_ROWS = 5_000_000
"""How many rows with a time are drawn."""

MOST_OF_VIEW = 100_000
"""How many rows of a view are drawn: all of its columns pass through Spark's driver."""

BARS = 20
"""How many rows have a bar, if they have no time."""


def draw(
    project: Project,
    names: tuple[str, str],
    columns: Sequence[str] | None,
    where: str | None,
    select: Sequence[str],
    limit: int | None,
    *,
    as_lines: bool,
) -> None:
    """Print pictures of a table, by its name for people and that of the project."""
    from infold.core.report import RowByRow
    from infold.inspecting.plot import picture_of
    from infold.messages import command_errors
    from infold.render import formatting
    from infold.render.pictures.plot import plot_screen
    from infold.render.table import table_screen

    table, stored = names
    model = project[stored].model if stored in project else None
    is_view = model is not None and model.kind.is_view
    most = limit or (MOST_OF_VIEW if is_view else MOST_ROWS)
    rows = _rows(project, stored, columns, where, select, most)
    drawn = picture_of(rows.slice(0, most), model)
    shown = ", ".join(rows.column_names)
    if drawn is None:
        raise command_errors.nothing_to_plot(table=table, columns=shown)
    if isinstance(drawn, RowByRow):
        if as_lines:
            raise command_errors.no_time_for_lines(table=table, columns=shown)
        most = most if limit is not None else BARS
        drawn = picture_of(rows.slice(0, most), model)
    if not rows.num_rows or drawn is None:
        note = f"where {where}" if where else ""
        click.echo(table_screen(table, rows.column_names, [], note=note))
        return
    has_more = rows.num_rows > most
    note = f"{formatting.count(min(most, rows.num_rows), 'row')} drawn"
    note += ", there are more (--limit)." if has_more else "."
    click.echo(plot_screen(table, drawn, output.terminal_look(), note, as_lines=as_lines))


def _rows(
    project: Project,
    stored: str,
    columns: Sequence[str] | None,
    where: str | None,
    select: Sequence[str],
    most: int,
) -> pa.Table:
    """The rows to draw, and one more; of a stored table only the columns that are drawn."""
    from infold import api
    from infold.inspecting.plot import drawn_columns

    def read(names: Sequence[str] | None, limit: int) -> pa.Table:
        return api.show(
            project,
            stored,
            columns=names,
            where=where,
            select=select,
            limit=limit,
            note=lambda text: click.echo(text, err=True),
        )

    model = project[stored].model if stored in project else None
    if model is None or model.kind.is_view:
        return read(columns, most + 1)
    head = read(columns, 1)
    wanted = drawn_columns(head.schema, model)
    return read(wanted, most + 1) if wanted else head
