"""``infold apply``."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infold.cli import shared_options
from infold.cli.output import confirm_apply, print_json, summarized
from infold.cli.shared_options import sinks as with_sinks

if TYPE_CHECKING:
    from infold.core.project import Project
    from infold.core.saved_plan import SavedPlan


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
@with_sinks
@shared_options.yes
@shared_options.as_json
def command(
    options: shared_options.BuildOptions,
    max_rows: int | None,
    allow_removals: bool,
    yes: bool,
    as_json: bool,
    **run_options: Any,
) -> None:
    """
    Apply changed definitions to a target, and build what follows from them.

    Shows what `infold plan` shows, and asks. Then the definitions in the files, or those of some
    models, are the applied ones of a target with `apply: manual`, and a run is carried out by them,
    as `infold run` does. A later run goes on where this one was stopped.

    A file that `infold plan --save` wrote, in place of TERM, is carried out as it is, or refused.
    """
    from infold import api
    from infold.render import json_shapes
    from infold.render.plan import plan_screen

    given = run_options | {"max_rows": max_rows, "allow_removals": allow_removals}
    saved = _saved_plan(options)
    if saved is not None:
        declared = shared_options.opened(declared=True)
        project = api.project_of_saved(declared, saved)
        allowed = saved.asked.allow_destructive | set(options.allow_destructive)
        plan_options = replace(saved.asked, allow_destructive=allowed)
        given |= {"asked": plan_options, "as_of": saved.as_of, "saved": saved}
        _carry_out(project, given, as_json=as_json, shown=False)
        return
    project = options.project_to_apply()
    plan_options = options.plan_options(project)
    chosen = {"select": options.selected, "exclude": options.exclude}
    project = api.project_to_run(project, plan_options, as_of=options.instant, **chosen)
    observed = api.observe_all(project, as_of=options.instant, asked=plan_options)
    plan = api.make_plan(project, observed, plan_options, **chosen)
    nothing = not (plan or plan.refused or project.applies)
    if not as_json:
        covered = api.coverage(project, plan) if plan else {}
        click.echo(plan_screen(project, observed, plan, covered, command="apply"))
    elif nothing:
        print_json(json_shapes.plan(plan))
    if nothing:
        return
    api.refuse_too_much(project, plan, max_rows=max_rows, allow_removals=allow_removals)
    confirm_apply(project.target.name, yes=yes, asks=not as_json)
    given |= {"asked": plan_options, "as_of": options.instant} | chosen
    _carry_out(project, given, as_json=as_json, shown=True)


def _carry_out(project: Project, given: dict[str, Any], *, as_json: bool, shown: bool) -> None:
    """Apply, run, and print what was done; without a step no more than that, if the plan was."""
    from infold import api
    from infold.cli.progress import progress
    from infold.render import json_shapes
    from infold.render.plan import nothing_screen

    with summarized(project, as_json=as_json) as print_summary:
        with progress(project, quiet=as_json) as steps:
            result = api.run(project, command="apply", progress=steps, **given)
        if as_json:
            print_json(json_shapes.run(result))
        elif result.steps:
            print_summary(result)
        elif shown:
            click.echo("\n".join(("", *result.notes)))
        else:
            last = result.plans[-1]
            click.echo(nothing_screen(project, None, last, notes=result.notes))


def _saved_plan(options: shared_options.BuildOptions) -> SavedPlan | None:
    """The saved plan that is named in place of models, if one is: no model's name ends so."""
    from infold import api
    from infold.core.saved_plan import MARK

    def is_one(term: str) -> bool:
        path = Path(term)
        if path.suffix == ".json":
            return True
        if not path.is_file():
            return False
        with path.open(encoding="utf-8", errors="replace") as file:
            return f'"{MARK}"' in file.read(200)

    files = [term for term in options.terms if is_one(term)]
    if not files:
        return None
    if replace(options, terms=(), allow_destructive=()) != _NO_OPTIONS or len(options.terms) > 1:
        why = "A saved plan has its own models, window and clock: leave these options out."
        raise click.UsageError(why)
    return api.read_saved(Path(files[0]))


_NO_OPTIONS = shared_options.BuildOptions(
    terms=(),
    start=None,
    end=None,
    auto=False,
    select=(),
    exclude=(),
    batch_size=None,
    per_partition=False,
    ignore_cron=False,
    full_listing=False,
    allow_downgrade=False,
    allow_destructive=(),
    as_of=None,
    forward_only=(),
    effective_from=None,
)
