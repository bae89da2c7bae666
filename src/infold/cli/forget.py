"""``infold forget``."""

from __future__ import annotations

import click

from infold.cli import common


@click.command("forget")
@click.argument("models", nargs=-1, required=True, metavar="MODEL...")
@common.yes
@common.allow_refresh
@common.wait
@common.as_json
def command(
    models: tuple[str, ...], yes: bool, allow_refresh: bool, wait: float, as_json: bool
) -> None:
    """
    Forget models and drop their tables; the next run builds them anew.

    Other models go on as they are. A name, a glob or tag:NAME; also a model that has left the
    project. What is not known is said.
    """
    from infold import api
    from infold.render import shapes
    from infold.render.forgotten import forgotten_screen
    from infold.render.words import names

    project = common.opened()
    found, missing = api.forgettable(project, models, allow_refresh=allow_refresh)
    if found:
        common.confirmed(
            f"forget {names(found)} and drop what is stored", yes=yes, asks=not as_json
        )
        done = api.forget(project, models, allow_refresh=allow_refresh, wait=wait)
    else:
        from infold.report import Forgotten

        done = Forgotten((), missing)
    if as_json:
        common.printed(shapes.forgotten(done))
    else:
        click.echo(forgotten_screen(done))
