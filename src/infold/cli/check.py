"""``infold check``."""

from __future__ import annotations

import time

import click

from infold.cli import common


@click.command("check")
@common.as_json
def command(as_json: bool) -> None:
    """
    Read the project and report all mistakes in it.

    Every mistake is named at once, with file, line and the nearest right name; nothing is read
    but the project's own files.
    """
    from infold.advice import advice

    started = time.perf_counter()
    project = common.opened()
    spent = (time.perf_counter() - started) * 1000
    sources = len(project.sources)
    models = sum(not node.landed for node in project)  # a landed source is a source
    notes = advice(project)
    if as_json:
        common.printed({"models": models, "sources": sources, "findings": [], "notes": notes})
    else:
        from infold.render.words import count

        click.echo(
            f"{count(models, 'model')}, {count(sources, 'source')}, no findings in {spent:.0f} ms."
        )
        for note in notes:
            click.echo(f"note: {note}")
