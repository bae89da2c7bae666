"""``infold rollback``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import carry_out_swap


@click.command("rollback")
@shared_options.yes
@shared_options.wait
@shared_options.as_json
def command(yes: bool, wait: float, as_json: bool) -> None:
    """
    Go back to the tables that the last promote replaced.

    They are kept for as long as `keep_old` of the target says. The definitions of then are applied
    again. The next run brings the tables up to date.
    """
    from infold.api import environments

    project = shared_options.opened()
    shown = environments.find_rollback(project)
    carry_out_swap(
        project.target,
        shown,
        lambda: environments.rollback(project, shown, wait=wait),
        yes=yes,
        as_json=as_json,
    )
