"""``infold diff``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json
from infold.messages.errors import ExitCode


@click.command("diff")
@click.argument("name", shell_complete=completing.environments)
@click.argument("models", nargs=-1, metavar="[MODEL...]", shell_complete=completing.models)
@shared_options.as_json
def command(name: str, models: tuple[str, ...], as_json: bool) -> int:
    """
    Compare the environment NAME with production: definitions, columns, rows.

    Cells with equal contents are not read. Exit code 5 says that something differs. Nothing is
    written.
    """
    from infold.api.environments import diff_environment
    from infold.render.environments import diff_json, diff_screen

    diff = diff_environment(shared_options.opened(declared=True), name, models)
    if as_json:
        print_json(diff_json(diff))
    else:
        click.echo(diff_screen(diff))
    return 0 if diff.equal else ExitCode.CHANGED
