"""``infold lateness``."""

from __future__ import annotations

import click

from infold.cli import completing, output, shared_options
from infold.cli.output import print_json


@click.command("lateness")
@click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.events)
@shared_options.env
@shared_options.as_json
def command(terms: tuple[str, ...], env: str | None, as_json: bool) -> None:
    """
    Show how late rows came, and what a lookback would have missed.

    Of all tables of events, or of those that are named: what a job that processes the last 1, 3, 7
    or 30 days again would have missed, ages of rows when they were received, and a picture of when
    rows happened against when they were received. Read in-process, without a JVM. With --env, of
    the tables as that environment has them.
    """
    from infold import api
    from infold.render.lateness import bins, lateness_json, lateness_screen

    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    look = output.terminal_look()
    room = None if as_json else bins(look)
    if name is None:
        measured = api.lateness(project, terms, room)
    else:
        from infold.api.environments import environment_lateness

        measured = environment_lateness(project, name, terms, room)
    if as_json:
        print_json(lateness_json(project, measured))
    else:
        click.echo(lateness_screen(project, measured, look))
