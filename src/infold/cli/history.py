"""``infold history``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json


@click.command("history")
@click.argument("model", required=False, shell_complete=completing.models)
@click.option(
    "--limit",
    "-n",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="How many runs.",
)
@shared_options.env
@shared_options.as_json
def command(model: str | None, limit: int, env: str | None, as_json: bool) -> None:
    """
    Show past runs and their steps, newest first, failed ones too.

    With MODEL only the runs that built it. With --env, the runs of that environment.
    """
    from infold import api
    from infold.planning.selection import unknown_model
    from infold.render import json_shapes
    from infold.render.status import history_screen

    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    if name is not None:
        from infold.api.environments import environment_history, stored

        project = stored(project, name).declared
    if model is not None and model not in project:
        raise unknown_model(project, model)
    if name is None:
        runs = api.history(project, limit, model)
    else:
        runs = environment_history(project, name, limit, model)
    if as_json:
        print_json(json_shapes.history(runs))
    else:
        click.echo(history_screen(runs, model))
