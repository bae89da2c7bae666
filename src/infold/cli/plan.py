"""``infold plan``."""

from __future__ import annotations

import click

from infold.cli import shared_options


@click.command("plan")
@shared_options.scope
@shared_options.as_json
def command(
    terms: tuple[str, ...],
    start: str | None,
    end: str | None,
    auto: bool,
    select: tuple[str, ...],
    exclude: tuple[str, ...],
    batch_size: int | None,
    per_partition: bool,
    ignore_cron: bool,
    allow_downgrade: bool,
    as_of: str | None,
    as_json: bool,
) -> None:
    """
    Show what a run would do, and why; write nothing.

    Without options it is everything that is stale; TERM is a model's name, a glob or tag:NAME, as
    for --select. A window is half-open, [start, end), and made
    of whole cells.
    """
    from infold import api
    from infold.core.plan import PlanOptions
    from infold.planning import window
    from infold.planning.selection import selected
    from infold.render import json_shapes
    from infold.render.plan import plan_screen

    shared_options.conflicting(auto, start, end)
    select += terms
    project = shared_options.opened(downgrade=allow_downgrade)
    asked = PlanOptions(
        window=window.window(project, selected(project, select, exclude), start, end),
        batch_size=shared_options.batches(batch_size, per_partition),
        ignore_cron=ignore_cron,
    )
    observed = api.look(project, as_of=window.as_of(as_of))
    plan = api.make_plan(project, observed, asked, select=select, exclude=exclude)
    if as_json:
        shared_options.printed(json_shapes.plan(plan))
        shared_options.refused(plan.refused, part=bool(plan), as_json=True)
        return
    options = shared_options.repeated(
        {
            "start": start,
            "end": end,
            "select": select,
            "exclude": exclude,
            "batch-size": asked.batch_size,
            "ignore-cron": ignore_cron,
            "allow-downgrade": allow_downgrade,
            "as-of": as_of,
        }
    )
    covered = api.coverage(project) if plan else {}
    click.echo(plan_screen(project, observed, plan, covered, options))
    shared_options.refused(plan.refused, part=bool(plan))
