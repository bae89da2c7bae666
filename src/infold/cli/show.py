"""``infold show``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli import shared_options

if TYPE_CHECKING:
    from infold.core.project import Project


@click.command("show")
@click.argument("table")
@click.option(
    "--where", metavar="TEXT", help="Only rows for which this holds: day >= '2024-03-09'."
)
@click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="TERM",
    help="Of a manifest table, only the rows of these models: a name, a glob, tag:NAME.",
)
@click.option("--columns", metavar="NAMES", help="Only these columns, in this order: day,sessions.")
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=0),
    default=20,
    show_default=True,
    metavar="N",
    help="At most so many rows; 0 is all.",
)
@click.option("--csv", "csv", metavar="FILE", help="Write CSV; - is the standard output.")
@click.option("--json", "json_", metavar="FILE", help="Write JSON, a line a row; - as above.")
@click.option("--parquet", metavar="FILE", help="Write a Parquet file.")
def command(
    table: str,
    where: str | None,
    select: tuple[str, ...],
    columns: str | None,
    limit: int,
    csv: str | None,
    json_: str | None,
    parquet: str | None,
) -> None:
    """
    Print or export the rows of TABLE: a model, a landed source, `set_aside`, or a manifest table.

    Rows are read in-process, without a JVM; only a view needs Spark, and `set_aside` where sessions
    leave out rows of a view, or by an expression.
    """
    from infold import api
    from infold.cli import export
    from infold.core.model import Kind
    from infold.inspecting.manifest import named
    from infold.render.table import table_screen

    project = shared_options.opened()
    wanted = [name.strip() for name in columns.split(",")] if columns else None
    if select and named(table) is None:
        raise click.UsageError(
            "--select is for manifest tables, which have rows of several models."
        )
    if table in project and project[table].model.kind is Kind.VIEW and where is None:
        click.echo(f"{table} is a view: starting Spark to evaluate it.", err=True)
    # Of stored tables one row more tells that there are more; a manifest table is small.
    most = limit + 1 if limit and named(table) is None else None
    found = api.show(
        project,
        table,
        columns=wanted,
        where=where,
        select=select,
        limit=most,
        note=lambda text: click.echo(text, err=True),
    )
    shown = found.slice(0, limit) if limit else found
    written = False
    for target, write in ((csv, export.csv), (json_, export.json), (parquet, export.parquet)):
        if target is not None:
            written = True
            write(shown, None if target == "-" else Path(target))
            if target != "-":
                click.echo(f"{shown.num_rows:,} rows of {table} written to {target}.", err=True)
    if written:
        return
    left: int | None = found.num_rows - shown.num_rows
    if left and named(table) is None:  # of stored tables no more rows were read than are shown
        left = _left(project, table, where, shown.num_rows)
    rows = [list(row.values()) for row in shown.to_pylist()]
    note = f"where {where}" if where else ""
    click.echo(table_screen(table, shown.column_names, rows, more=left, note=note))


def _left(project: Project, table: str, where: str | None, shown: int) -> int | None:
    """How many rows are not shown; None when that is not known without reading them."""
    from infold import api

    if where is not None:
        return None
    head = api.ledger(project).heads().get(table)
    return head.rows - shown if head is not None and head.rows > shown else None
