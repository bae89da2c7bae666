"""``infold teardown``."""

from __future__ import annotations

import click

from infold.cli import common


@click.command("teardown")
@common.yes
@common.allow_refresh
@common.wait
@common.as_json
def command(yes: bool, allow_refresh: bool, wait: float, as_json: bool) -> None:
    """
    Drop all tables of a target, and its ledger.

    The project's files and its sources stay as they are: the next run is a first run.
    """
    from infold import api
    from infold.render import shapes
    from infold.render.forgotten import torn_down_screen

    project = common.opened()
    target = project.target.name
    api.forgettable(project, None, allow_refresh=allow_refresh)
    common.confirmed(f"drop all tables and the ledger of {target}", yes=yes, asks=not as_json)
    done = api.teardown(project, allow_refresh=allow_refresh, wait=wait)
    if as_json:
        common.printed(shapes.forgotten(done))
    else:
        click.echo(torn_down_screen(target, done))
