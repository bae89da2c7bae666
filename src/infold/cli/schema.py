"""``infold schema``."""

from __future__ import annotations

import click

SCHEMAS = ("project", "model")
"""What there is a schema of, by the names of the files in ``infold/declare/schemas``."""


@click.command("schema")
@click.argument("of", type=click.Choice(SCHEMAS), default="project", metavar="[project|model]")
def command(of: str) -> None:
    """
    Print the JSON Schema of infold.yml, or of a model's front matter.

    An editor that knows it completes and explains keys, and marks misspelt ones.
    """
    from importlib.resources import files

    click.echo(files("infold.declare").joinpath(f"schemas/{of}.json").read_bytes(), nl=False)
