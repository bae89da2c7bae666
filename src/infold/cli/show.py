"""``infold show``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli import completing, shared_options

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
        from infold.cli.show_plot import draw

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
