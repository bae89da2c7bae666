"""``infold restate``."""

from __future__ import annotations

from typing import Any

import click

from infold.cli import common


@click.command("restate")
@click.argument("terms", nargs=-1, required=True, metavar="TERM...")
@common.again
def command(terms: tuple[str, ...], start: str | None, end: str | None, **options: Any) -> int:
    """
    Build models again, although nothing that they read changed.

    Shows what will be built and builds it; then whatever reads a cell that came out different.
    Late rows and changed definitions need none of this: `infold run` finds them.
    """
    from infold import restating, window
    from infold.select import selected

    project = common.opened()
    chosen = window.window(project, selected(project, terms), start, end)
    again = restating.restate(project, terms, chosen)
    return common.build_again("restate", project, again, **options)
