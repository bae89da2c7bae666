"""``infold backbuild``."""

from __future__ import annotations

from typing import Any

import click

from infold.cli import common


@click.command("backbuild")
@click.argument("terms", nargs=-1, required=True, metavar="TERM...")
@common.again
def command(terms: tuple[str, ...], start: str | None, end: str | None, **options: Any) -> int:
    """
    Build models over a window again, with all that they read for it.

    Models upstream come first, each over the stretches that its readers read; the named ones last.
    """
    from infold import restating, window
    from infold.select import selected

    if start is None or end is None:
        raise click.UsageError("backbuild takes --start and --end; `infold restate` takes neither.")
    project = common.opened()
    names = selected(project, [term.removeprefix("+") for term in terms])
    chosen = window.window(project, names, start, end)
    assert chosen is not None, "both ends were given"
    again = restating.backbuild(project, terms, chosen)
    return common.build_again("backbuild", project, again, **options)
