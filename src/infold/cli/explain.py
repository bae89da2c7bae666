"""``infold explain``."""

from __future__ import annotations

import click

from infold.cli import common


@click.command("explain")
@click.argument("model")
@click.argument("cell", required=False)
@common.as_of
@common.as_json
def command(model: str, cell: str | None, as_of: str | None, as_json: bool) -> None:
    """
    Explain MODEL, or the CELL of it that holds a date or time.

    Its definition, what it reads and how cells map, its trace, why it is stale or not, how it
    lies on disk; for a cell also what arrived for it and which runs changed it.
    """
    from infold import api, errors, window
    from infold.render import shapes
    from infold.render.explain import explain_screen

    project = common.opened()
    if model not in project:
        raise errors.unknown_model(model, [node.name for node in project])
    at = window.instant_of("CELL", cell)
    granularity = project[model].model.granularity
    chosen = granularity.cell(at) if granularity is not None and at is not None else None
    if cell is not None and chosen is None:
        raise errors.not_a_cell(model, cell)
    explained = api.explain(project, model, chosen, window.as_of(as_of))
    if as_json:
        common.printed(shapes.explanation(explained))
    else:
        click.echo(explain_screen(explained))
