"""``infold promote``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import carry_out_swap


@click.command("promote")
@click.argument("name", shell_complete=completing.environments)
@shared_options.yes
@shared_options.allow_destructive
@shared_options.wait
@shared_options.as_json
def command(
    name: str, yes: bool, allow_destructive: tuple[str, ...], wait: float, as_json: bool
) -> None:
    """
    Make the tables of the environment NAME production's.

    Shows which names will point to other tables, and whether they change at one instant or one
    after the other, and asks. Nothing is computed. The definitions of the environment are the
    applied ones from then on. `infold rollback` goes back.
    """
    from infold.api import environments

    project = shared_options.opened()
    allow = allow_destructive
    shown = environments.find_promotion(project, name, allow_destructive=allow)
    carry_out_swap(
        project.target,
        shown,
        lambda: environments.promote(project, shown, allow_destructive=allow, wait=wait),
        yes=yes,
        as_json=as_json,
    )
