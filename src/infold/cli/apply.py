"""``infold apply``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from infold.cli import shared_options
from infold.cli.output import confirm_apply, failures_after_summary, print_json

if TYPE_CHECKING:
    from infold.core.plan import Plan
    from infold.core.project import Project


@click.command("apply")
@shared_options.build_options
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="Refuse before applying when about more rows than this would be read.",
)
@shared_options.allow_refresh
@shared_options.fail_fast
@shared_options.allow_removals
@shared_options.wait
@shared_options.jobs
@shared_options.yes
@shared_options.as_json
def command(
    options: shared_options.BuildOptions,
    max_rows: int | None,
    allow_refresh: bool,
    fail_fast: bool,
    allow_removals: bool,
    wait: float,
    jobs: int | None,
    yes: bool,
    as_json: bool,
) -> None:
    """
    Apply changed definitions to a target, and build what follows from them.

    Shows what `infold plan` shows, and asks. Then the definitions in the files, or those of some
    models, are the applied ones of a target with `apply: manual`, and a run is carried out by them,
    as `infold run` does. A later run goes on where this one was stopped.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.render import json_shapes
    from infold.render.plan import nothing_screen, plan_screen
    from infold.render.run import summary_screen

    project = options.project_to_apply()
    asked = options.plan_options(project)
    observed = api.observe_all(project, as_of=options.instant)
    plan = api.make_plan(project, observed, asked, select=options.selected, exclude=options.exclude)
    nothing = not (plan or plan.refused or _applies(project))
    if not as_json:
        covered = api.coverage(project) if plan else {}
        click.echo(plan_screen(project, observed, plan, covered, command="apply"))
    elif nothing:
        print_json(json_shapes.plan(plan))
    if nothing:
        return
    _refuse_too_much(project, plan, max_rows, allow_removals=allow_removals)
    confirm_apply(project.target.name, yes=yes, asks=not as_json)
    with failures_after_summary(as_json=as_json):
        with progress(quiet=as_json, verbose=False) as shown:
            result = api.run(
                project,
                asked=asked,
                select=options.selected,
                exclude=options.exclude,
                as_of=options.instant,
                max_rows=max_rows,
                wait=wait,
                command="apply",
                jobs=jobs,
                allow_refresh=allow_refresh,
                fail_fast=fail_fast,
                allow_removals=allow_removals,
                progress=shown,
            )
        if as_json:
            print_json(json_shapes.run(result))
        elif result.steps:
            click.echo(f"\n{summary_screen(result)}")
        else:
            last = result.plans[-1]
            click.echo(nothing_screen(project, None, last, result.model_states, result.notes))


def _applies(project: Project) -> bool:
    return project.applied is not None and bool(project.applied.applies)


def _refuse_too_much(
    project: Project, plan: Plan, max_rows: int | None, *, allow_removals: bool
) -> None:
    """Refuse what a run would refuse, before anything is applied."""
    from infold.messages import run_errors
    from infold.planning.removals import refuse_removals

    if max_rows is not None and plan.rows_to_read > max_rows:
        raise run_errors.over_budget(rows=plan.rows_to_read, max_rows=max_rows)
    refuse_removals(project, plan, allowed=allow_removals)
