"""``infold check``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from infold.cli import shared_options
from infold.cli.output import print_json

if TYPE_CHECKING:
    from infold.core.project import Project


@click.command("check")
@click.option(
    "--deep",
    is_flag=True,
    help="Have Spark's analyser type every model, too; it starts Spark and reads no rows.",
)
@shared_options.as_json
def command(deep: bool, as_json: bool) -> None:
    """
    Read the project and report all mistakes in it.

    Every mistake is named at once, with file, line and the nearest right name; nothing is read
    but the project's own files.
    """
    from infold.planning.advice import project_advice

    started = time.perf_counter()
    project = shared_options.opened(declared=True)
    if deep:
        _raise_misdefined(project)
    spent = (time.perf_counter() - started) * 1000
    sources = len(project.sources)
    models = sum(not node.landed for node in project)  # a landed source is a source
    notes: Sequence[str] = project_advice(project)
    if as_json:
        print_json({"models": models, "sources": sources, "findings": [], "notes": notes})
    else:
        from infold.render.formatting import count

        click.echo(
            f"{count(models, 'model')}, {count(sources, 'source')}, no findings in {spent:.0f} ms."
        )
        for note in notes:
            click.echo(f"note: {note}")


def _raise_misdefined(project: Project) -> None:
    """Raise all that Spark finds wrong; what reads a wrong model is not analysed yet."""
    from infold import api
    from infold.messages.errors import InfoldErrors

    if found := api.definition_errors(project):
        raise InfoldErrors(found.values())
