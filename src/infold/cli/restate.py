"""``infold restate``."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import click

from infold.cli import completing, shared_options
from infold.cli.output import end_if_refused, print_json, summarized
from infold.cli.shared_options import Rebuild, cells_at_once
from infold.cli.shared_options import sinks as with_sinks

if TYPE_CHECKING:
    from infold.core.hooks import Sinks
    from infold.core.project import Project
    from infold.planning.selection import RestateRequest


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
    from infold.planning import selection
    from infold.planning.selection import select_models

    project = shared_options.opened_to_build()
    chosen = selection.parse_window(
        project, select_models(project, terms), options.start, options.end
    )
    request = selection.restate(project, terms, chosen)
    return build_again("restate", project, request, options, sinks)


def build_again(
    command: str, project: Project, again: RestateRequest, options: Rebuild, sinks: Sinks
) -> int:
    """Show what the command will build, and build it unless it is a dry run."""
    from infold import api
    from infold.cli.progress import progress
    from infold.planning import selection
    from infold.render import json_shapes
    from infold.render.plan import plan_screen

    size = cells_at_once(options.batch_size, per_partition=options.per_partition)
    allowed = frozenset(options.allow_destructive)
    plan_options = replace(again.options, batch_size=size, allow_destructive=allowed)
    clock = selection.parse_as_of(options.as_of)
    observed = api.observe_all(project, as_of=clock, asked=plan_options)
    plan = api.make_plan(project, observed, plan_options)
    plan = replace(plan, notes=(*plan.notes, *(f"{name}: {why}" for name, why in again.skipped)))
    nothing = options.dry_run or not (plan or plan.refused)
    if not options.as_json:
        covered = api.coverage(project, plan) if plan else {}
        click.echo(plan_screen(project, observed, plan, covered, command=command))
    elif nothing:
        print_json(json_shapes.plan(plan))
    if nothing:
        end_if_refused(plan.refused, part=bool(plan), as_json=options.as_json)
        return 0
    with summarized(project, as_json=options.as_json) as print_summary:
        with progress(project, quiet=options.as_json) as shown:
            result = api.run(
                project,
                asked=plan_options,
                as_of=clock,
                wait=options.wait,
                command=command,
                allow_refresh=options.allow_refresh,
                allow_removals=options.allow_removals,
                fail_fast=options.fail_fast,
                progress=shown,
                sinks=sinks,
            )
        if options.as_json:
            print_json(json_shapes.run(result))
        else:
            print_summary(result)
    return 0
