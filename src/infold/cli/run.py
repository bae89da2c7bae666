"""``infold run``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

import click

from infold.cli import shared_options
from infold.cli.output import print_json, summarized
from infold.cli.shared_options import sinks as with_sinks

if TYPE_CHECKING:
    from infold.core.hooks import Sinks
    from infold.core.project import Project
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
@click.option(
    "--watch", is_flag=True, help="Go on: take files in as they land, until Ctrl-C or a failure."
)
@click.option(
    "-v",
    "--verbose",
    is_flag=True,
    help="Say why each step is done, the states of models, and all counts.",
)
@with_sinks
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
    watch: bool,
    verbose: bool,
    sinks: Sinks,
    env: str | None,
    as_json: bool,
) -> int:
    """
    Bring the tables up to date: all, or those of some terms.

    Carries out what `infold plan` shows, with the same options. A line is printed for each step
    as it ends, and at the end what arrived and changed. A model that fails, or is refused, keeps
    waiting only those that read it: the summary says which, and the exit code is 1.

    With --env, the files' definitions are built in that environment, beside production's tables.

    With --watch it goes on: it runs whenever there is something to do, in one Spark, and prints a
    line for each step. It ends with the first failure, or by Ctrl-C. Another run of the target is
    waited for, for a minute.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.render.plan import nothing_screen

    name = shared_options.environment(env)
    if watch:
        if as_json or name is not None:
            why = "--watch goes on and on, for people and production: not with --json or --env."
            raise click.UsageError(why)
        _watch(
            options,
            verbose=verbose,
            max_rows=max_rows,
            wait=wait or WATCH_WAIT,
            jobs=jobs,
            allow_refresh=allow_refresh,
            fail_fast=fail_fast,
            allow_removals=allow_removals,
            sinks=sinks,
        )
    project = options.project() if name is None else options.project_for_environment()
    plan_options = options.plan_options(project)
    with summarized(project, as_json=as_json, verbose=verbose) as print_summary:
        with progress(project, quiet=as_json, verbose=verbose) as shown:
            run = api.run if name is None else _run_in(name)
            result = run(
                project,
                asked=plan_options,
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
                sinks=sinks,
            )
        if result.steps and not as_json:
            print_summary(result)
        elif not as_json:
            last = result.plans[-1]
            of = project if name is None else replace(project, environment=name)
            said = result.model_states if verbose or project.target.state_messages else ()
            click.echo(nothing_screen(of, None, last, said, result.notes))
    purged, code = _purge_if_due(project, wait, as_json=as_json) if name is None else ({}, 0)
    if as_json:
        from infold.render import json_shapes

        print_json({**json_shapes.run(result), **purged})
    return code


def _purge_if_due(project: Project, wait: float, *, as_json: bool) -> tuple[dict[str, Any], int]:
    """What the target says of rows of erased persons, at the end of a run of production."""
    if project.target.erasure_purge is None:
        return {}, 0
    from infold.cli.erase import purge_if_due

    return purge_if_due(project, wait, as_json=as_json)


WATCH_WAIT = 60.0
"""How long another run is waited for by one that goes on, in seconds."""


def _watch(options: shared_options.BuildOptions, *, verbose: bool, **asked: Any) -> NoReturn:
    """Run whenever there is something to do; the project is read again before each look."""
    from infold import api
    from infold.cli.progress import progress

    def chosen(project: Project) -> dict[str, Any]:
        return {
            "asked": options.plan_options(project),
            "select": options.selected,
            "exclude": options.exclude,
            "as_of": options.instant,
        }

    def look() -> bool:
        project = options.project()
        return bool(api.plan(project, **chosen(project)).steps)

    def run() -> bool:
        project = options.project()
        with (
            summarized(project, verbose=verbose),
            progress(project, verbose=verbose) as shown,
        ):
            result = api.run(project, **chosen(project), **asked, progress=shown)
            for note in result.notes:
                shown.note(note)
            return bool(result.steps)

    click.echo("Files are taken in as they land; Ctrl-C ends this.", err=True)
    watch(look, run)


def _run_in(name: str) -> Callable[..., RunResult]:
    """The function that runs the environment ``name``, with the arguments of ``api.run``."""
    from functools import partial

    from infold.api.environments import run_environment

    return partial(run_environment, name=name)


# A look is a plan: it reads the ledger, the listing of the files, and what is new. After a run it
# is repeated at once, soon while files keep coming, and ever more rarely while none do.

SOONEST, LATEST = 0.25, 5.0
"""The shortest and the longest pause between two looks, in seconds."""
PART = 20
"""A pause is this part of the time since something came."""


def watch(
    look: Callable[[], bool],
    run: Callable[[], bool],
    *,
    now: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], object] = time.sleep,
) -> NoReturn:
    """
    Run whenever ``look`` finds something to do, until one of both raises.

    ``run`` says whether it did something; if not, there is a pause before it is tried again.
    """
    worked_at = now()
    while True:
        if look() and run():
            worked_at = now()
        else:
            sleep(pause(now() - worked_at))


def pause(idle: float) -> float:
    """How long to wait before the next look, if nothing came for so many seconds."""
    return min(LATEST, max(SOONEST, idle / PART))
