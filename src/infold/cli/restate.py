"""``infold restate``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from infold.cli import completing, shared_options
from infold.cli.build_again import build_again
from infold.cli.shared_options import sinks as with_sinks

if TYPE_CHECKING:
    from infold.core.hooks import Sinks


@click.command("restate")
@click.argument(
    "terms", nargs=-1, required=True, metavar="TERM...", shell_complete=completing.terms
)
@shared_options.rebuild
@with_sinks
def command(terms: tuple[str, ...], options: shared_options.Rebuild, sinks: Sinks) -> int:
    """
    Build models again, although nothing that they read changed.

    Shows what will be built and builds it; then whatever reads a cell that came out different.
    Late rows and changed definitions need none of this: `infold run` finds them.
    """
    from infold.planning import requested_window
    from infold.planning.selection import select_models

    project = shared_options.opened_to_build()
    chosen = requested_window.parse_window(
        project, select_models(project, terms), options.start, options.end
    )
    again = requested_window.restate(project, terms, chosen)
    return build_again("restate", project, again, options, sinks)
