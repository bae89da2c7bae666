"""``infold show``."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli import common

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.project import Project

SET_ASIDE = "infold__set_aside"
"""The table of rows that could not be used; ``set_aside`` on the command line."""


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

    Rows are read in-process, without a JVM; only a view needs Spark.
    """
    from infold import api
    from infold.cli import export
    from infold.manifest import named
    from infold.render.table import table_screen

    project = common.opened()
    wanted = [name.strip() for name in columns.split(",")] if columns else None
    if named(table) is not None:
        found = _picked(api.manifest(project, str(named(table)), select, where), wanted)
    elif select:
        raise click.UsageError(
            "--select is for manifest tables, which have rows of several models."
        )
    else:
        found = _rows(project, table, wanted, where, limit + 1 if limit else None)
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


def _rows(
    project: Project, table: str, columns: list[str] | None, where: str | None, limit: int | None
) -> pa.Table:
    from infold import api, errors
    from infold.manifest import TABLES
    from infold.model import Kind, table_name

    if table in {"set_aside", SET_ASIDE}:
        stored = SET_ASIDE
    elif table not in project:
        known = [*(node.name for node in project), "set_aside", *TABLES]
        raise errors.unknown_table(table, known)
    elif project[table].model.kind is Kind.VIEW:
        return _view(project, table, columns, where, limit)
    else:
        stored = table_name(table)
    try:
        return api.lake(project).rows(stored, columns=columns, where=where, limit=limit)
    except errors.InfoldError as error:
        if error.slug != "not-built":
            raise
        raise (
            errors.nothing_set_aside() if stored == SET_ASIDE else errors.not_built(table)
        ) from None


def _view(
    project: Project, view: str, columns: list[str] | None, where: str | None, limit: int | None
) -> pa.Table:
    """A view's rows: Spark evaluates it, nothing is stored of it."""
    from infold import api, errors

    if where is not None:
        raise errors.bad_filter(where, f"{view} is a view, and of views all rows are shown")
    print(f"{view} is a view: starting Spark to evaluate it.", file=sys.stderr)  # noqa: T201
    found = api.evaluate(project, view)
    found = _picked(found, columns)
    return found if limit is None else found.slice(0, limit)


def _picked(found: pa.Table, columns: list[str] | None) -> pa.Table:
    """These columns of some rows, in this order."""
    from infold import errors

    if columns is None:
        return found
    unknown = [name for name in columns if name not in found.column_names]
    if unknown:
        raise errors.unknown_columns(unknown, found.column_names)
    return found.select(columns)


def _left(project: Project, table: str, where: str | None, shown: int) -> int | None:
    """How many rows are not shown; None when that is not known without reading them."""
    from infold import api

    if where is not None:
        return None
    head = api.ledger(project).heads().get(table)
    return head.rows - shown if head is not None and head.rows > shown else None
