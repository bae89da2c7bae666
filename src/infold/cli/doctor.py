"""``infold doctor``."""

from __future__ import annotations

import click

from infold.cli import shared_options
from infold.cli.output import print_json
from infold.messages.errors import ExitCode


@click.command("doctor")
@shared_options.as_json
def command(as_json: bool) -> None:
    """
    Check that all a target needs is there and works.

    Python, Java, the project, its ledger and warehouse, Spark, the catalog, clocks, and each
    source: what can be tried is tried. The lease is taken and given back, a table is made, read
    and dropped, a row of each source is read. Nothing that was there is changed.
    """
    from infold.api.doctor import examine
    from infold.render import checkup

    root, target = click.get_current_context().obj
    checks = []
    for check in examine(root, target):
        checks.append(check)
        if not as_json:
            click.echo(checkup.check_line(check))
    errors = [error for check in checks for error in check.errors]
    if as_json:
        print_json(checkup.checks_json(checks))
    else:
        click.echo(f"\n{checkup.verdict_line(checks)}")
        for error in errors:
            click.echo(f"\n{error}", err=True)
    if any(check.failed for check in checks):
        click.get_current_context().exit(ExitCode.FAILED)
