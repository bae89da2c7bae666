"""``infold check``."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

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
@click.option("--watch", is_flag=True, help="Go on: check again when a file changes, until Ctrl-C.")
@shared_options.as_json
def command(deep: bool, watch: bool, as_json: bool) -> None:
    """
    Read the project and report all mistakes in it.

    Every mistake is named at once, with file, line and the nearest right name; nothing is read
    but the project's own files.
    """
    if watch:
        if as_json:
            raise click.UsageError("--watch goes on and on, for people: not with --json.")
        _watch(deep=deep)
    _check(deep=deep, as_json=as_json)


def _check(*, deep: bool, as_json: bool = False, begin: str = "") -> None:
    """Print what a check finds; mistakes are raised."""
    from infold.planning.plan_notes import project_advice

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

        counts = f"{count(models, 'model')}, {count(sources, 'source')}"
        click.echo(f"{begin}{counts}, no findings in {spent:.0f} ms.")
        for note in notes:
            click.echo(f"note: {note}")


def _watch(*, deep: bool) -> NoReturn:
    """Check at once, and whenever a file has changed; mistakes in files are printed."""
    from infold.declare.folder import each_change
    from infold.messages.errors import InfoldError
    from infold.render.formatting import count
    from infold.system.failures import as_user_error

    root, _ = click.get_current_context().obj
    first = True
    for _ in each_change(root):
        clock = time.strftime("%H:%M:%S  ")
        try:
            _check(deep=deep, begin=clock)
        except (InfoldError, OSError) as raised:  # a file may be gone while it is written anew
            error = as_user_error(raised, root)
            if first and all(one.at is None for one in error.each):
                raise  # no project, no such target: nothing that is mended in a file
            click.echo(f"{clock}{count(len(error.each), 'finding')}\n\n{error}\n", err=True)
        first = False
    raise AssertionError("files of a project change for ever")


def _raise_misdefined(project: Project) -> None:
    """Raise all that Spark finds wrong; what reads a wrong model is not analysed yet."""
    from infold import api
    from infold.messages.errors import InfoldErrors

    if by_model := api.definition_errors(project):
        raise InfoldErrors(by_model.values())
