"""``infold status``."""

from __future__ import annotations

import click

from infold.cli import common


@click.command("status")
@common.as_of
@common.as_json
def command(as_of: str | None, as_json: bool) -> None:
    """
    Show how every model stands.

    One of four states for each: first run, new model, out of sync, standard run; with its rows,
    the event time it covers, gaps in it, what is stale, and when it was last built.
    """
    from infold import api, window
    from infold.interval import Ranges
    from infold.render import shapes
    from infold.render.status import status_screen

    project = common.opened()
    models = api.status(project, window.as_of(as_of))
    gaps = {
        entry.model: Ranges((entry.covered.hull,)) - entry.covered
        for entry in models
        if entry.covered.hull
    }
    if as_json:
        common.printed(shapes.status(project.name, models, gaps))
    else:
        click.echo(status_screen(project, models, gaps))
