"""``infold env``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import confirm, print_json


@click.group("env")
def command() -> None:
    """
    List environments, and drop them.

    `infold run --env NAME` makes one: a variant of the target, with tables of its own only where
    its definitions, or the rows that it reads, differ from production's.
    """


@command.command("list")
@shared_options.as_json
def list_(as_json: bool) -> None:
    """Show the environments: whose they are, until when, and what tables they have of their own."""
    from infold import api
    from infold.api.environments import list_environments
    from infold.render.environments import environments_json, environments_screen

    project = shared_options.opened(declared=True)
    environments = list_environments(project)
    if as_json:
        print_json(environments_json(environments))
    else:
        click.echo(environments_screen(project.target.name, environments, api.now()))


@command.command("drop")
@click.argument("name", shell_complete=completing.environments)
@shared_options.yes
@shared_options.wait
@shared_options.as_json
def drop(name: str, yes: bool, wait: float, as_json: bool) -> None:
    """Drop the environment NAME with its tables. Production stays as it is."""
    from infold.api.environments import drop_environment, find_environment
    from infold.render.environments import dropped_text, tables_text

    project = shared_options.opened(declared=True)
    size = find_environment(project, name)
    confirm(f"drop the environment {name}, {tables_text(size)}", yes=yes, asks=not as_json)
    dropped = drop_environment(project, name, wait=wait)
    if as_json:
        print_json({"dropped": [name]})
    else:
        click.echo(dropped_text(dropped))


@command.command("expire")
@shared_options.wait
@shared_options.as_json
def expire(wait: float, as_json: bool) -> None:
    """Drop the environments with a time to live that is over, as each run of production does."""
    from infold.api.environments import expire_environments

    names = expire_environments(shared_options.opened(declared=True), wait=wait)
    if as_json:
        print_json({"dropped": list(names)})
    else:
        click.echo(f"Dropped: {', '.join(names)}." if names else "No environment has expired.")
