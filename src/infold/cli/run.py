"""``infold run``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from infold.cli import shared_options
from infold.cli.output import failures_after_summary, print_json

if TYPE_CHECKING:
    from infold.core.report import RunResult


@click.command("run")
@shared_options.build_options
@click.option(
    "--max-rows",
    type=click.IntRange(min=0),
    metavar="N",
    help="Refuse before starting when about more rows than this would be read.",
)
@shared_options.allow_refresh
@shared_options.fail_fast
@shared_options.allow_removals
@shared_options.wait
@shared_options.jobs
@click.option("-v", "--verbose", is_flag=True, help="Say why each step is done.")
@shared_options.env
@shared_options.as_json
def command(
    options: shared_options.BuildOptions,
    max_rows: int | None,
    allow_refresh: bool,
    fail_fast: bool,
    allow_removals: bool,
    wait: float,
    jobs: int | None,
    verbose: bool,
    env: str | None,
    as_json: bool,
) -> int:
    """
    Bring the tables up to date: all, or those of some terms.

    Carries out what `infold plan` shows, with the same options. A line is printed for each step
    as it ends, and a summary at the end. A model that fails, or is refused, keeps waiting only
    those that read it: the summary says which, and the exit code is 1.

    With --env, the files' definitions are built in that environment, beside production's tables.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.render import json_shapes
    from infold.render.plan import nothing_screen
    from infold.render.run import summary_screen

    name = shared_options.environment(env)
    project = options.project() if name is None else options.project_for_environment()
    asked = options.plan_options(project)
    with failures_after_summary(as_json=as_json):
        with progress(quiet=as_json, verbose=verbose) as shown:
            run = api.run if name is None else _run_in(name)
            result = run(
                project,
                asked=asked,
                select=options.selected,
                exclude=options.exclude,
                as_of=options.instant,
                max_rows=max_rows,
                wait=wait,
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
            of = project if name is None else replace(project, environment=name)
            click.echo(nothing_screen(of, None, last, result.model_states, result.notes))
    return 0


def _run_in(name: str) -> Callable[..., RunResult]:
    """What runs an environment."""
    from functools import partial

    from infold.api.environment_runs import run_environment

    return partial(run_environment, name=name)
