"""``infold repair``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import confirm, print_json


@click.command("repair")
@click.option("--dry-run", is_flag=True, help="Only show what is wrong; write nothing.")
@click.option(
    "--drop-orphans",
    is_flag=True,
    help="Drop the tables of infold's that neither the project nor the ledger knows.",
)
@click.option(
    "--drop", "drop", metavar="TABLE", multiple=True, help="Drop this one of them; repeatable."
)
@shared_options.yes
@shared_options.wait
@shared_options.as_json
def command(
    dry_run: bool, drop_orphans: bool, drop: tuple[str, ...], yes: bool, wait: float, as_json: bool
) -> None:
    """
    Make the ledger fit the tables again, if one of them was lost, put back or damaged.

    What the ledger is right about stays. A table that went on without it is set back to what it
    knows, or built again by the next run. A damaged ledger file is put aside.
    """
    from infold import api
    from infold.api.repairing import look_at_ledger, repair_ledger
    from infold.render.repair import (
        question,
        repair_json,
        repair_screen,
        repaired_screen,
    )

    root, target = click.get_current_context().obj
    project = api.open_project(root, target, declared=True)
    report = look_at_ledger(project, drop_orphans=drop_orphans, drop=drop)
    nothing = not (report.changes or report.unrecorded or report.dropped or report.misnamed)
    if not as_json:
        click.echo(repair_screen(report))
    if dry_run or nothing:
        if as_json:
            print_json(repair_json(report))
        return
    confirm(question(report), yes=yes, asks=not as_json)
    done = repair_ledger(project, drop_orphans=drop_orphans, drop=drop, wait=wait)
    if as_json:
        print_json(repair_json(done))
    else:
        click.echo(repaired_screen(done, project.target.command))
