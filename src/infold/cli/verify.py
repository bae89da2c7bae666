"""``infold verify``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import print_json
from infold.messages.errors import ExitCode


@click.command("verify")
@shared_options.select
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compare only N cells of each model, drawn at random.",
)
@shared_options.env
@shared_options.as_json
def command(select: tuple[str, ...], sample: int | None, env: str | None, as_json: bool) -> int:
    """
    Compare the tables with a full rebuild of them.

    Every table is rebuilt over exactly the inputs that were processed, down to the files, and
    compared cell by cell. Exit code 4 says that one differs, 3 that runs changed one whenever it
    was compared. Nothing is written.

    With --env, these are the tables that the environment has of its own.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.planning.selection import select_models
    from infold.render import json_shapes
    from infold.render.verification import verification_screen

    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    select_models(project, select)  # a wrong name is reported before Spark starts
    with progress(quiet=as_json) as shown:
        if name is None:
            report = api.verify(project, select=select, sample=sample, progress=shown)
        else:
            from infold.api.environments import verify_environment

            report = verify_environment(project, name, select=select, sample=sample, progress=shown)
    if as_json:
        print_json(json_shapes.verification(report))
    else:
        click.echo(verification_screen(report))
    if report.different:
        return ExitCode.DIFFERENT
    return 0 if report.equal else ExitCode.REFUSED
