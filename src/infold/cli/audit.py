"""``infold audit``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json
from infold.messages.errors import ExitCode


@click.command("audit")
@click.argument("terms", nargs=-1, metavar="[TERM...]", shell_complete=completing.terms)
@shared_options.as_of
@shared_options.env
@shared_options.as_json
def command(terms: tuple[str, ...], as_of: str | None, env: str | None, as_json: bool) -> int:
    """
    Judge stored rows by the audits of their models.

    Runs judge what they write, before they write it. This judges all rows that are stored, and the
    rows of views: after an audit was added or changed, or when a table that it reads has other
    rows. What it finds is recorded. Exit code 1 says that an audit of severity error failed.

    With --env, these are the tables that the environment has of its own.
    """
    from infold import api
    from infold.cli.progress import progress
    from infold.planning import selection
    from infold.planning.selection import select_models
    from infold.render.audits import audit_json, audit_screen

    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    select_models(project, terms)  # a wrong name is reported before Spark starts
    instant = selection.parse_as_of(as_of)
    with progress(quiet=as_json) as shown:
        if name is None:
            report = api.audit(project, select=terms, as_of=instant, progress=shown)
        else:
            from infold.api.environments import audit_environment

            report = audit_environment(project, name, terms, instant, shown)
    if as_json:
        print_json(audit_json(report))
    else:
        click.echo(audit_screen(report))
    return 0 if report.passed else ExitCode.FAILED
