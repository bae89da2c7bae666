"""``infold show``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli import completing, output, shared_options

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.core.project import Project


FORMATS = ("csv", "json", "parquet")

_ROWS = 20
"""How many rows are printed."""


@click.command("show")
@click.argument("table", shell_complete=completing.tables)
@click.option(
    "--where", metavar="TEXT", help="Only rows for which this is true: day >= '2024-03-09'."
)
@click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="TERM",
    shell_complete=completing.terms,
    help="Of a manifest table, only the rows of these models: a name, a glob, tag:NAME.",
)
@click.option(
    "--columns",
    metavar="NAMES",
    shell_complete=completing.columns,
    help="Only these columns, in this order: day,sessions.",
)
@click.option(
    "--order",
    metavar="NAMES",
    shell_complete=completing.columns,
    help="Sort by these columns, -name downwards; by default tables are sorted by time and key.",
)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    metavar="N",
    help="At most so many rows, by default 20; 0 is all. Drawn are all with a time, by default.",
)
@click.option("--plot", is_flag=True, help="Draw the rows: over time, or a bar for each.")
@click.option("--lines", is_flag=True, help="Draw lines over time, on a scale of their own.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(FORMATS),
    help="Export the rows: CSV, JSON with an object a line, or Parquet.",
)
@click.option(
    "--output",
    "-o",
    metavar="FILE",
    help="Where to export to, with --format; - is the standard output, the default.",
)
@click.option(
    "--json", "as_json", is_flag=False, flag_value="-", metavar="", help="As --format json."
)
@shared_options.env
@click.option("--csv", "as_csv", hidden=True)
@click.option("--parquet", "as_parquet", hidden=True)
def command(
    table: str,
    where: str | None,
    select: tuple[str, ...],
    columns: str | None,
    order: str | None,
    limit: int | None,
    plot: bool,
    lines: bool,
    format_: str | None,
    output: str | None,
    env: str | None,
    **older: str | None,
) -> None:
    """
    Print or export the rows of TABLE: a model, a landed source, a manifest table, `set_aside`, or
    `audit_failures`, the rows that failed audits.

    Rows are read in-process, without a JVM; only a view needs Spark, and `set_aside` where sessions
    leave out rows of a view, or by an expression. With --env, these are the rows as that
    environment has them.
    """
    from infold import api
    from infold.core.arrow_values import rows_of
    from infold.inspecting.manifest import manifest_table_of
    from infold.render.table import table_screen

    format_, output = _destination(format_, output, older)
    project, stored = _opened(table, env)
    column_names = _names(columns)
    if select and manifest_table_of(table) is None:
        raise click.UsageError(
            "--select is for manifest tables, which have rows of several models."
        )
    if (plot or lines) and format_ is not None:
        option = "--lines" if lines else "--plot"
        raise click.UsageError(f"{option} draws, and an export is for programs: leave one out.")
    if stored in project and project[stored].model.kind.is_view and where is None:
        click.echo(f"{table} is a view: starting Spark to evaluate it.", err=True)
    if plot or lines:
        draw(project, (table, stored), column_names, where, select, limit, as_lines=lines)
        return
    limit = _ROWS if limit is None else limit
    # Of stored tables one row more tells that there are more; a manifest table is small.
    most = limit + 1 if limit and manifest_table_of(table) is None else None
    rows_read = api.show(
        project,
        stored,
        columns=column_names,
        where=where,
        select=select,
        limit=most,
        order=_names(order),
        note=lambda text: click.echo(text, err=True),
    )
    shown = rows_read.slice(0, limit) if limit else rows_read
    if format_ is not None:
        _export(project, table, shown, format_, output)
        return
    not_shown: int | None = rows_read.num_rows - shown.num_rows
    if (
        not_shown and manifest_table_of(table) is None
    ):  # of stored tables no more rows were read than are shown
        not_shown = _rows_not_shown(project, stored, where, shown.num_rows)
    rows = [list(row.values()) for row in rows_of(shown)]
    note = f"where {where}" if where else ""
    click.echo(table_screen(table, shown.column_names, rows, more=not_shown, note=note))


def _names(typed: str | None) -> list[str] | None:
    """The names that are typed with commas between them."""
    return [name.strip() for name in typed.split(",")] if typed else None


def _opened(table: str, env: str | None) -> tuple[Project, str]:
    """The project that has a table, and the table's name in it."""
    name = shared_options.existing_environment(env)
    if name is None:
        return shared_options.opened(), table
    from infold.api.environments import project_of, stored

    return project_of(stored(shared_options.opened(declared=True), name), table)


def _destination(
    format_: str | None, output: str | None, older: Mapping[str, str | None]
) -> tuple[str | None, str | None]:
    """The format and file to export to; the former options mean the same, and say so."""
    from infold.core.object_store import forms, is_url, names_object

    for name in FORMATS:
        file = older[f"as_{name}"]
        if file is None:
            continue
        if format_ is not None or output is not None:
            raise click.UsageError(f"--{name} is the older word for --format; leave it out.")
        format_, output = name, file
        if (name, file) != ("json", "-"):
            click.echo(
                f"--{name} {file} is now `--format {name} --output {file}`; it still works.",
                err=True,
            )
    if output is not None and format_ is None:
        raise click.UsageError(f"--output needs --format: {', '.join(FORMATS)}.")
    if output is not None and is_url(output) and not names_object(output):
        known = " or ".join(forms("NAME"))
        raise click.UsageError(f"--output takes a file, or an object: {known}.")
    return format_, output


def _export(project: Project, table: str, rows: pa.Table, format_: str, output: str | None) -> None:
    """Write rows to a file, to an object, or to the standard output."""
    from infold.api.rows import export_to_store
    from infold.cli import export
    from infold.core.object_store import is_url

    write = {"csv": export.csv, "json": export.json, "parquet": export.parquet}[format_]
    if output is None or output == "-":
        write(rows, None)
        return
    if is_url(output):
        export_to_store(project, output, lambda path: write(rows, path))
    else:
        write(rows, Path(output))
    click.echo(f"{rows.num_rows:,} rows of {table} written to {output}.", err=True)


def _rows_not_shown(project: Project, table: str, where: str | None, shown: int) -> int | None:
    """How many rows are not shown; None when that is not known without reading them."""
    from infold import api

    if where is not None:
        return None
    head = api.ledger_of(project).newest_versions().get(table)
    return head.rows - shown if head is not None and head.rows > shown else None


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
    from infold.inspecting.show import picture_of
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
    from infold.inspecting.show import drawn_columns

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
