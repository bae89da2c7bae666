"""``infold lateness``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options, terminal
from infold.cli.output import print_json


@click.command("lateness")
@click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.events)
@shared_options.as_json
def command(terms: tuple[str, ...], as_json: bool) -> None:
    """
    Show how late rows came, and what a lookback would have missed.

    Of all tables of events, or of those that are named: what a job that processes the last 1, 3, 7
    or 30 days again would have missed, ages of rows when they were received, and a picture of when
    rows happened against when they were received. Read in-process, without a JVM.
    """
    from infold import api
    from infold.render.lateness import bins, lateness_json, lateness_screen

    project = shared_options.opened()
    if as_json:
        print_json(lateness_json(project, api.lateness(project, terms)))
        return
    look = terminal.look()
    found = api.lateness(project, terms, bins(look))
    click.echo(lateness_screen(project, found, look))
