"""What commands share: options, the project, how results are printed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from infold.core.project import Project
    from infold.messages.errors import InfoldError
    from infold.planning.restating import RestateRequest

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
select = click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="TERM",
    help="Only these models: a name, a glob, tag:NAME; +m with all it reads, m+ with all that "
    "read it. Repeatable.",
)
exclude = click.option(
    "--exclude", "-x", multiple=True, metavar="TERM", help="Not these models; terms as above."
)
as_of = click.option(
    "--as-of",
    metavar="TIME",
    help="Take rows dated up to this instant for come due; now by default.",
)


start = click.option(
    "--start", "--event-time-start", "start", metavar="TIME", help="Only cells from here on."
)
end = click.option(
    "--end",
    "--event-time-end",
    "end",
    metavar="TIME",
    help="Only cells before this (it is not included).",
)
batch_size = click.option(
    "--batch-size",
    type=click.IntRange(min=1),
    metavar="N",
    help="Build at most N cells in one commit; goes before the models' own batch_size.",
)
per_partition = click.option(
    "--per-partition", is_flag=True, help="Build each cell by itself: --batch-size 1."
)


wait = click.option(
    "--wait",
    type=click.FloatRange(min=0),
    default=0.0,
    metavar="SECONDS",
    help="How long to wait for another run of this target to end; by default not at all.",
)


yes = click.option("--yes", "-y", is_flag=True, help="Do not ask; it is meant.")
fail_fast = click.option(
    "--fail-fast",
    is_flag=True,
    help="End with the first failure; by default all models are built that do not read it.",
)
allow_refresh = click.option(
    "--allow-refresh",
    is_flag=True,
    help="Let tables of a protected target be dropped or built anew, for this once.",
)

allow_removals = click.option(
    "--allow-removals",
    is_flag=True,
    help="Take out all rows of files that are gone, however much of a source that is.",
)


def confirmed(what: str, *, yes: bool, asks: bool) -> None:
    """Ask whether it is meant; refused where nobody is there to ask, stopped where it is not."""
    from infold.messages import run_errors

    if yes:
        return
    if not asks or not sys.stdin.isatty():
        raise run_errors.unconfirmed(what=what)
    click.confirm(f"This will {what}. Go on?", abort=True)


def scope(function: F) -> F:
    """The models and options that say what is brought up to date."""
    options = (
        click.argument("terms", nargs=-1, metavar="[TERM...]"),
        start,
        end,
        click.option("--auto", is_flag=True, help="Everything that is stale; the default."),
        select,
        exclude,
        batch_size,
        per_partition,
        click.option(
            "--ignore-cron",
            is_flag=True,
            help="Ignore cron: build every model, incomplete intervals too.",
        ),
        click.option(
            "--allow-downgrade",
            is_flag=True,
            help="Build models that cannot be built cell by cell whole, for this once.",
        ),
        as_of,
    )
    for option in reversed(options):
        function = option(function)
    return function


def again(function: F) -> F:
    """The options of what builds tables again."""
    options = (
        start,
        end,
        batch_size,
        per_partition,
        click.option("--dry-run", is_flag=True, help="Show what would be built, and stop."),
        allow_refresh,
        allow_removals,
        fail_fast,
        as_of,
        wait,
        as_json,
    )
    for option in reversed(options):
        function = option(function)
    return function


def build_again(
    command: str,
    project: Project,
    again: RestateRequest,
    batch_size: int | None,
    per_partition: bool,
    dry_run: bool,
    allow_refresh: bool,
    allow_removals: bool,
    fail_fast: bool,
    as_of: str | None,
    wait: float,
    as_json: bool,
) -> int:
    """Show what ``restate`` or ``backbuild`` means, and carry it out unless it is a dry run."""
    from dataclasses import replace

    from infold import api
    from infold.cli.progress import progress
    from infold.planning import window
    from infold.render import json_shapes
    from infold.render.plan import plan_screen
    from infold.render.run import receipt_screen

    asked = replace(again.asked, batch_size=batches(batch_size, per_partition))
    clock = window.as_of(as_of)
    observed = api.look(project, as_of=clock, asked=asked)
    plan = api.make_plan(project, observed, asked)
    plan = replace(plan, notes=(*plan.notes, *(f"{name}: {why}" for name, why in again.left)))
    if not as_json:
        covered = api.coverage(project) if plan else {}
        click.echo(plan_screen(project, observed, plan, covered, command=command))
    elif dry_run or not (plan or plan.refused):
        printed(json_shapes.plan(plan))
    if dry_run or not (plan or plan.refused):
        refused(plan.refused, part=bool(plan), as_json=as_json)
        return 0
    with reporting(as_json=as_json):
        with progress(quiet=as_json, verbose=False) as told:
            result = api.run(
                project,
                asked=asked,
                as_of=clock,
                wait=wait,
                command=command,
                allow_refresh=allow_refresh,
                allow_removals=allow_removals,
                fail_fast=fail_fast,
                progress=told,
            )
        if as_json:
            printed(json_shapes.run(result))
        else:
            click.echo(f"\n{receipt_screen(result)}")
    return 0


def refused(found: Mapping[str, InfoldError], *, part: bool, as_json: bool = False) -> None:
    """
    Say each error as a whole and end with its code, where models are refused.

    ``part``: there are others, of which something was said; then it is 1, as after such a run. In
    JSON the errors stand already.
    """
    if not found:
        return
    if not as_json:
        for error in found.values():
            click.echo(f"\n{error}", err=True)
    code = 1 if part else min(error.exit_code for error in found.values())
    click.get_current_context().exit(code)


@contextmanager
def reporting(*, as_json: bool) -> Iterator[None]:
    """Where a run fails in a part, its receipt comes first, then every error; then its code."""
    from infold.core.report import RunFailed

    try:
        yield
    except RunFailed as failed:
        from infold.render import json_shapes
        from infold.render.run import receipt_screen

        if as_json:
            printed(json_shapes.failed(failed))
        else:
            click.echo(f"\n{receipt_screen(failed.result)}")
            click.echo(f"\n{failed}", err=True)
        click.get_current_context().exit(failed.exit_code)


def opened(*, downgrade: bool = False) -> Project:
    """The project that the command was given, read and checked."""
    from infold import api

    root, target = click.get_current_context().obj
    return api.open_project(root, target, downgrade=downgrade)


def batches(batch_size: int | None, per_partition: bool) -> int | None:
    """How many cells are built at once, if it was said. Refuses to be told twice."""
    if per_partition and batch_size not in (None, 1):
        raise click.UsageError("--per-partition means --batch-size 1; leave one of them out.")
    return 1 if per_partition else batch_size


def conflicting(auto: bool, start: str | None, end: str | None) -> None:
    """Refuse ``--auto`` beside a window: they say different things."""
    if auto and (start or end):
        raise click.UsageError("--auto means everything that is stale; leave it out with a window.")


def repeated(options: Mapping[str, Any]) -> str:
    """Options as they would be typed again, each after a space."""
    text = ""
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is True:
                text += f" --{name}"
            elif one is not None and one is not False:
                text += f" --{name} {shlex.quote(str(one))}"
    return text


def printed(value: Mapping[str, Any]) -> None:
    """A result for programs."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
