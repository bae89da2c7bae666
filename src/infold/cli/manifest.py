"""``infold manifest``."""

from __future__ import annotations

from pathlib import Path

import click

from infold.cli import shared_options
from infold.cli.output import print_json


@click.command("manifest")
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path, file_okay=False))
@shared_options.select
@shared_options.as_json
def command(directory: Path, select: tuple[str, ...], as_json: bool) -> None:
    """
    Write the manifest tables as Parquet files into DIR, for other engines.

    A folder for each table, with one file, replaced as a whole. `infold show` prints them.
    """
    from infold import api
    from infold.cli import export
    from infold.inspecting.manifest import TABLES
    from infold.render.formatting import count

    project = shared_options.opened()
    written = {}
    for table in TABLES:
        rows = api.manifest(project, table, select)
        folder = directory / table
        folder.mkdir(parents=True, exist_ok=True)
        new = folder / "_new.parquet"
        export.parquet(rows, new)
        new.replace(folder / "rows.parquet")
        written[table] = rows.num_rows
    if as_json:
        print_json({"directory": str(directory), "rows": written})
    else:
        for table, number in written.items():
            click.echo(f"{directory / table}: {count(number, 'row')}")
