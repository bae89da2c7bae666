"""``infold status``."""

from __future__ import annotations

import click

from infold.cli import completing, output, shared_options
from infold.cli.output import end_if_refused, print_json


@click.command("status")
@click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.terms)
@click.option("--since", metavar="TIME", help="Only what is from here on; cells without rows too.")
@click.option("--until", metavar="TIME", help="Only what is before this.")
@shared_options.as_of
@shared_options.env
@click.option("--plot", is_flag=True, help="Draw the rows of each table over event time.")
@shared_options.as_json
def command(
    terms: tuple[str, ...],
    since: str | None,
    until: str | None,
    as_of: str | None,
    env: str | None,
    plot: bool,
    as_json: bool,
) -> None:
    """
    Show the state of every model.

    One of four states for each: first run, new model, out of sync, standard run; with its rows,
    the event time it covers, gaps in it, what is stale, and when it was last built. With --env,
    of the models with a table of the environment's own.
    """
    from dataclasses import replace

    from infold import api
    from infold.core.interval import MAX, MIN, Interval, Ranges
    from infold.messages import command_errors
    from infold.planning import selection
    from infold.planning.selection import select_models

    if plot and as_json:
        raise click.UsageError("--plot draws, and --json is for programs: leave one of them out.")
    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    first = selection.parse_instant("--since", since)
    last = selection.parse_instant("--until", until)
    if first is not None and last is not None and first >= last:
        raise command_errors.window_empty(str(since), str(until), ("--since", "--until"))
    project = api.with_apart(project) if name is None else project
    chosen = select_models(project, terms)
    instant = selection.parse_as_of(as_of)
    if name is None:
        statuses = api.status(project, instant, with_cells=plot)
    else:
        from infold.api.environments import environment_status

        project, statuses = environment_status(project, name, instant, with_cells=plot)
    models = [entry for entry in statuses if entry.model in chosen]
    shown = Ranges((Interval(MIN if first is None else first, MAX if last is None else last),))
    models = [
        replace(
            entry,
            covered=entry.covered & shown,
            stale=entry.stale & shown,
            cells=tuple(cell for cell in entry.cells if shown.overlaps(cell.cell)),
        )
        for entry in models
    ]
    gaps = {}
    for entry in models:
        hull = entry.covered.span
        if hull is not None:
            start = hull.start if first is None else first
            end = hull.end if last is None else last
            gaps[entry.model] = Ranges((Interval(start, end),)) - entry.covered
    if as_json:
        from infold.render import json_shapes

        print_json(json_shapes.status(project, models, gaps))
    elif plot:
        from infold.render.pictures.status import status_plot

        click.echo(status_plot(project, models, gaps, output.terminal_look()))
    else:
        from infold.render.status import status_screen

        click.echo(status_screen(project, models, gaps))
    refused = {entry.model: entry.refused for entry in models if entry.refused is not None}
    end_if_refused(refused, part=len(refused) < len(models), as_json=as_json)
