"""``infold completion``."""

from __future__ import annotations

import click

SHELLS = ("bash", "zsh", "fish")


@click.command("completion")
@click.argument("shell", type=click.Choice(SHELLS), metavar="SHELL")
def command(shell: str) -> None:
    """
    Print what makes a SHELL complete infold's commands: bash, zsh or fish.

    It completes options, and names of models, tags, tables, columns, targets and environments.
    """
    from click.shell_completion import get_completion_class

    from infold.cli.main import cli

    completion = get_completion_class(shell)
    assert completion is not None, "click knows these shells"
    variable = f"_{cli.name}_complete".upper()  # as click calls it for the program
    click.echo(completion(cli, {}, "infold", variable).source(), nl=False)
