"""``infold import``."""

from __future__ import annotations

from pathlib import Path

import click

from infold.cli import shared_options
from infold.cli.output import print_json, refuse_used_folder

TOOLS = ("dbt", "sqlmesh", "snowplow")


@click.command("import")
@click.argument("tool", type=click.Choice(TOOLS), metavar="TOOL")
@click.argument(
    "directory", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--into",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="The folder to write, new or empty; NAME_infold by default.",
)
@click.option(
    "--dialect",
    default="",
    metavar="NAME",
    help="The SQL of the project: snowflake, bigquery, postgres, duckdb, … Spark's by default, or "
    "what SQLMesh's settings say.",
)
@shared_options.as_json
def command(tool: str, directory: Path, into: Path | None, dialect: str, as_json: bool) -> None:
    """
    Make a project of what is in DIR: one of dbt, SQLMesh or Snowplow's packages.

    TOOL is dbt, sqlmesh or snowplow.

    Nothing of it is run, and no warehouse is asked. What is written passes `infold check`; what
    cannot come over is left out. The report says of each part what became of it.
    """
    from infold.declare import check
    from infold.importing import check_folder, reader_of
    from infold.importing.dialects import DIALECTS
    from infold.importing.fit import fit, place
    from infold.render.imported import imported_screen, report_page

    if dialect and dialect not in DIALECTS:
        raise click.BadParameter(f"one of {', '.join(DIALECTS)}", param_hint="--dialect")
    check_folder(tool, directory)
    draft = reader_of(tool)(directory, dialect)
    target = into or Path(f"{draft.name}_infold")
    refuse_used_folder(target)
    fitted = fit(draft, tool, check)
    page = report_page(tool, draft.name, fitted.lines)
    place({**fitted.files, "import-report.md": page.encode()}, target)
    if as_json:
        lines = [line.record for line in fitted.lines]
        print_json({"folder": str(target), "files": sorted(fitted.files), "report": lines})
    else:
        click.echo(imported_screen(str(target), fitted.files, fitted.lines))
