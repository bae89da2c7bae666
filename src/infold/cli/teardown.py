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

    What was said of sessions by hand (`infold quarantine`) is in the ledger and goes with it. The
    project's files and its sources stay as they are: the next run is a first run.
    """
    from infold import api
    from infold.render import shapes
    from infold.render.forgotten import entries_text, torn_down_screen

    project = common.opened()
    target = project.target.name
    api.forgettable(project, None, allow_refresh=allow_refresh)
    said = sum(map(len, api.spoken(project).values()))
    what = f"drop all tables and the ledger of {target}"
    if said:
        what += f", with {entries_text(said)}"
    common.confirmed(what, yes=yes, asks=not as_json)
    done = api.teardown(project, allow_refresh=allow_refresh, wait=wait)
    if as_json:
        common.printed(shapes.forgotten(done))
    else:
        click.echo(torn_down_screen(target, done))
