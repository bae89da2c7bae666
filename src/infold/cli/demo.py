"""``infold demo``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli.output import refuse_used_folder, summarized
from infold.messages.errors import ExitCode

if TYPE_CHECKING:
    from infold.core.project import Project


@click.command("demo")
@click.argument(
    "directory",
    metavar="[DIR]",
    type=click.Path(path_type=Path),
    default=Path("demo"),
    required=False,
)
def command(directory: Path) -> int:
    """
    Make a project with real late data in DIR (default: demo), and play its arrivals.

    Each arrival is shown with its plan and summary; at the end every table is compared with a
    rebuild. The folder stays, to go on with by hand. Takes one to two minutes.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.demo import acts
    from infold.render.verification import verification_screen
    from infold.spark.jvm.java import find_java

    refuse_used_folder(directory)
    find_java()  # a missing Java is reported before anything is written
    directory.mkdir(parents=True, exist_ok=True)
    for number, act in enumerate(acts(directory), 1):
        title = f"{number}. {act.title}"
        click.echo(f"\n{title}\n{'=' * len(title)}\n\n{act.text}\n")
        act.apply()
        _plan_and_run(api.open_project(directory, None))
    title = "Is it right?"
    click.echo(
        f"\n{title}\n{'=' * len(title)}\n\n"
        "Every table is computed again from the files that are there now, and compared.\n"
    )
    with progress() as shown:
        report = api.verify(api.open_project(directory, None), progress=shown)
    click.echo(verification_screen(report))
    click.echo(_next_commands(directory))
    return 0 if report.equal else ExitCode.DIFFERENT


def _plan_and_run(project: Project) -> None:
    """Plan and run once, as someone would by hand."""
    from infold import api
    from infold.cli.progress import progress
    from infold.render.plan import nothing_screen, plan_strip

    observed = api.observe(project, as_of=None)
    plan = api.make_plan(project, observed)
    if not plan:
        click.echo(nothing_screen(project, observed, plan))
        return
    lines = plan_strip(project, observed, plan, api.coverage(project))
    if lines:
        click.echo("\n".join(lines) + "\n")
    with summarized(project) as print_summary:
        with progress(project) as shown:
            result = api.run(project, progress=shown)
        print_summary(result)


def _next_commands(directory: Path) -> str:
    return f"""
Go on by hand

  cd {directory}
  infold status
  infold history
  infold show daily --limit 10
  infold explain sessions 2026-05-04
  mv withdrawn/* landing/            # what was withdrawn comes back
  infold plan                        # what that would do
  infold run
  infold verify
  infold ui --open                   # all of it in a browser"""
