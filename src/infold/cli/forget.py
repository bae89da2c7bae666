"""``infold forget``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import confirm, print_json


@click.command("forget")
@click.argument(
    "models", nargs=-1, required=True, metavar="MODEL...", shell_complete=completing.models
)
@shared_options.yes
@shared_options.allow_refresh
@shared_options.wait
@shared_options.as_json
def command(
    models: tuple[str, ...], yes: bool, allow_refresh: bool, wait: float, as_json: bool
) -> None:
    """
    Forget models and drop their tables; the next run builds them again.

    Other models go on as they are. A name, a glob or tag:NAME; also a model that has left the
    project. Unknown names are reported.
    """
    from infold import api
    from infold.render import json_shapes
    from infold.render.formatting import names
    from infold.render.repair import forgotten_screen

    project = shared_options.opened(without_ledger=True)
    found_models, missing = api.forgettable(project, models, allow_refresh=allow_refresh)
    if found_models:
        confirm(f"forget {names(found_models)} and drop what is stored", yes=yes, asks=not as_json)
        done = api.forget(project, models, allow_refresh=allow_refresh, wait=wait)
    else:
        from infold.core.report import Forgotten

        done = Forgotten((), missing)
    if as_json:
        print_json(json_shapes.forgotten(done))
    else:
        click.echo(forgotten_screen(done))
