"""``infold plan``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import end_if_refused, print_json


@click.command("plan")
@shared_options.build_options
@shared_options.as_json
def command(options: shared_options.BuildOptions, as_json: bool) -> None:
    """
    Show what a run would do, and why; write nothing.

    In a target with `apply: manual` and changed definitions, it is what `infold apply` would do.

    Without options it is everything that is stale; TERM is a model's name, a glob or tag:NAME, as
    for --select. A window is half-open, [start, end), and made
    of whole cells.
    """
    from infold import api
    from infold.render import json_shapes
    from infold.render.plan import plan_screen

    project = options.project_to_apply()
    asked = options.plan_options(project)
    observed = api.observe_all(project, as_of=options.instant)
    plan = api.make_plan(project, observed, asked, select=options.selected, exclude=options.exclude)
    if as_json:
        print_json(json_shapes.plan(plan))
        end_if_refused(plan.refused, part=bool(plan), as_json=True)
        return
    covered = api.coverage(project) if plan else {}
    click.echo(plan_screen(project, observed, plan, covered, options.as_typed))
    end_if_refused(plan.refused, part=bool(plan))
