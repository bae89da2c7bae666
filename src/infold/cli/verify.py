"""``infold verify``."""

from __future__ import annotations

import click

from infold.cli import common

_DIFFERENT = 4


@click.command("verify")
@common.select
@click.option(
    "--sample",
    type=click.IntRange(min=1),
    metavar="N",
    help="Compare only N cells of each model, drawn at random.",
)
@common.as_json
def command(select: tuple[str, ...], sample: int | None, as_json: bool) -> int:
    """
    Compare the tables with their definitions, evaluated from scratch.

    Every table is rebuilt over exactly the inputs that were processed, down to the files, and
    compared cell by cell. Exit code 4 says that one differs. Nothing is written.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.render import shapes
    from infold.render.certificate import certificate_screen
    from infold.select import selected

    project = common.opened()
    selected(project, select)  # a wrong name is said before Spark starts
    with progress(quiet=as_json) as told:
        certificate = api.verify(project, select=select, sample=sample, progress=told)
    if as_json:
        common.printed(shapes.certificate(certificate))
    else:
        click.echo(certificate_screen(certificate))
    return 0 if certificate.equal else _DIFFERENT
