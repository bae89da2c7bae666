"""``infold plan``."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from infold.cli import shared_options
from infold.cli.output import end_if_refused, print_json, write_text


@click.command("plan")
@shared_options.build_options
@click.option(
    "--save",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write the plan to a file too: `infold apply FILE` carries out exactly this.",
)
@shared_options.env
@shared_options.as_json
def command(
    options: shared_options.BuildOptions, save: Path | None, env: str | None, as_json: bool
) -> None:
    """
    Show what a run would do, and why; write nothing.

    In a target with `apply: manual` and changed definitions, it is what `infold apply` would do.

    Without options it is everything that is stale; TERM is a model's name, a glob or tag:NAME, as
    for --select. A window is half-open, [start, end), and made
    of whole cells.

    With --env, it is what `infold run --env` would do.
    """
    from infold import api
    from infold.render.plan import plan_screen

    name = shared_options.environment(env)
    if name is not None:
        _plan_environment(name, options, saves=save is not None, as_json=as_json)
        return
    project = options.project_to_apply()
    plan_options = options.plan_options(project)
    chosen = {"select": options.selected, "exclude": options.exclude}
    project = api.project_to_run(project, plan_options, as_of=options.instant, **chosen)
    observed = api.observe_all(project, as_of=options.instant, asked=plan_options)
    plan = api.make_plan(project, observed, plan_options, **chosen)
    if save is not None and not plan.refused:
        from infold.core.saved_plan import text_of

        saved = api.plan_to_save(project, observed, plan, plan_options, **chosen)
        write_text(save, text_of(saved))
    if as_json:
        from infold.render import json_shapes

        print_json(json_shapes.plan(plan))
        end_if_refused(plan.refused, part=bool(plan), as_json=True)
        return
    covered = api.coverage(project, plan) if plan else {}
    typed = options.as_typed if save is None else f" {shlex.quote(str(save))}"
    click.echo(plan_screen(project, observed, plan, covered, typed, saved=save is not None))
    end_if_refused(plan.refused, part=bool(plan))


def _plan_environment(
    name: str, options: shared_options.BuildOptions, *, saves: bool, as_json: bool
) -> None:
    """The same for an environment."""
    from infold.api.environments import plan_environment
    from infold.render import json_shapes
    from infold.render.plan import plan_screen

    if saves:
        raise click.UsageError("--save is for `infold apply FILE`, which is about production.")
    project = options.project_for_environment()
    result = plan_environment(
        project,
        name,
        asked=options.plan_options(project),
        select=options.selected,
        exclude=options.exclude,
        as_of=options.instant,
    )
    if as_json:
        print_json({"environment": name, **json_shapes.plan(result.plan)})
    else:
        typed = f" --env {name}{options.as_typed}"
        screen = plan_screen(result.project, result.observed, result.plan, result.covered, typed)
        click.echo(screen)
    end_if_refused(result.plan.refused, part=bool(result.plan), as_json=as_json)
