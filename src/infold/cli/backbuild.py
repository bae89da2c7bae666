"""``infold backbuild``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from infold.cli import completing, shared_options
from infold.cli.restate import build_again
from infold.cli.shared_options import sinks as with_sinks

if TYPE_CHECKING:
    from infold.core.hooks import Sinks


@click.command("backbuild")
@click.argument(
    "terms", nargs=-1, required=True, metavar="TERM...", shell_complete=completing.terms
)
@shared_options.rebuild
@with_sinks
def command(terms: tuple[str, ...], options: shared_options.Rebuild, sinks: Sinks) -> int:
    """
    Build models over a window again, with all that they read for it.

    Models upstream come first, each over the stretches that its readers read; the named ones last.
    """
    from infold.planning import selection
    from infold.planning.selection import select_models

    if options.start is None or options.end is None:
        raise click.UsageError("backbuild takes --start and --end; `infold restate` needs neither.")
    project = shared_options.opened_to_build()
    names = select_models(project, [term.removeprefix("+") for term in terms])
    chosen = selection.parse_window(project, names, options.start, options.end)
    assert chosen is not None, "both ends were given"
    request = selection.backbuild(project, terms, chosen)
    return build_again("backbuild", project, request, options, sinks)
