"""``infold teardown``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import confirm, print_json


@click.command("teardown")
@shared_options.yes
@shared_options.allow_refresh
@shared_options.wait
@shared_options.as_json
def command(yes: bool, allow_refresh: bool, wait: float, as_json: bool) -> None:
    """
    Drop all tables of a target, and its ledger.

    Manual entries for sessions (`infold quarantine`) are in the ledger and go with it. The
    project's files and its sources stay as they are: the next run is a first run.
    """
    from infold import api
    from infold.render import json_shapes
    from infold.render.repair import entries_text, torn_down_screen

    project = shared_options.opened(without_ledger=True)
    target = project.target.name
    api.forgettable(project, None, allow_refresh=allow_refresh)
    entries = sum(map(len, api.list_quarantine_entries(project).values()))
    what = f"drop all tables and the ledger of {target}"
    if entries:
        what += f", with {entries_text(entries)}"
    confirm(what, yes=yes, asks=not as_json)
    done = api.teardown(project, allow_refresh=allow_refresh, wait=wait)
    if as_json:
        print_json(json_shapes.forgotten(done))
    else:
        click.echo(torn_down_screen(target, done))
