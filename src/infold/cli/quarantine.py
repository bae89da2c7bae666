"""``infold quarantine``."""

from __future__ import annotations

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json

_MODEL = click.argument("model", shell_complete=completing.models)
_SESSIONS = click.argument("sessions", nargs=-1, metavar="[SESSION]...")
_USER = click.option(
    "--user",
    "users",
    multiple=True,
    metavar="USER",
    help="All sessions of this user, those to come too; in sessions by user and gap.",
)

_FORCE = click.option(
    "--force",
    is_flag=True,
    help="Also of users and identifiers without any session, for those to come.",
)


@click.group("quarantine")
def command() -> None:
    """
    Put sessions into quarantine by hand, release them, list them; `auto` takes entries back.

    SESSION is a session's id, or in sessions by identifier an identifier, which means all of its
    sessions. The latest entry of a session wins, and overrides quarantine_after.
    """


@command.command("add")
@_MODEL
@_SESSIONS
@_USER
@_FORCE
@click.option("--reason", default="", metavar="TEXT", help="Why; shown in quarantined_sessions.")
@shared_options.as_json
def add(
    model: str,
    sessions: tuple[str, ...],
    users: tuple[str, ...],
    force: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Put sessions into quarantine: the next run takes them out of MODEL's table."""
    _add_entries(
        model, sessions, users, in_quarantine=True, reason=reason, force=force, as_json=as_json
    )


@command.command("release")
@_MODEL
@_SESSIONS
@_USER
@_FORCE
@click.option("--reason", default="", metavar="TEXT", help="Why.")
@shared_options.as_json
def release(
    model: str,
    sessions: tuple[str, ...],
    users: tuple[str, ...],
    force: bool,
    reason: str,
    as_json: bool,
) -> None:
    """Release sessions from quarantine, whatever their length: they come back with the next run."""
    _add_entries(
        model, sessions, users, in_quarantine=False, reason=reason, force=force, as_json=as_json
    )


@command.command("auto")
@_MODEL
@_SESSIONS
@_USER
@click.option(
    "--entry",
    "entries",
    type=int,
    multiple=True,
    metavar="NUMBER",
    help="The sessions that an entry of `infold quarantine list` is about. Repeatable.",
)
@_FORCE
@shared_options.as_json
def auto(
    model: str,
    sessions: tuple[str, ...],
    users: tuple[str, ...],
    entries: tuple[int, ...],
    force: bool,
    as_json: bool,
) -> None:
    """Take entries back: the sessions are in quarantine if they are too long."""
    _add_entries(model, sessions, users, entries, in_quarantine=None, force=force, as_json=as_json)


@command.command("list")
@shared_options.select
@shared_options.as_json
def list_(select: tuple[str, ...], as_json: bool) -> None:
    """List the sessions that are in quarantine, and the entries made by hand."""
    from infold import api
    from infold.planning.selection import select_models
    from infold.render.session_history import quarantine_json, quarantine_screen

    project = shared_options.opened()
    quarantined = api.manifest(project, "quarantined_sessions", select).to_pylist()
    names = select_models(project, select)
    manual = {
        model: entries
        for model, entries in api.list_quarantine_entries(project).items()
        if model in names
    }
    if as_json:
        print_json(quarantine_json(quarantined, manual))
    else:
        click.echo(quarantine_screen(quarantined, manual))


def _add_entries(
    model: str,
    sessions: tuple[str, ...],
    users: tuple[str, ...],
    entries: tuple[int, ...] = (),
    *,
    in_quarantine: bool | None,
    reason: str = "",
    force: bool,
    as_json: bool,
) -> None:
    from infold import api
    from infold.render.session_history import entries_screen, quarantine_json

    if not sessions and not users and not entries:
        raise click.UsageError("Name a SESSION, or a user with --user.")
    project = shared_options.opened()
    added = api.add_quarantine_entries(
        project,
        model,
        terms=sessions,
        users=users,
        numbers=entries,
        in_quarantine=in_quarantine,
        reason=reason,
        force=force,
    )
    if as_json:
        print_json(quarantine_json([], {model: [(entry, False) for entry in added]}))
    else:
        click.echo(entries_screen(model, added))
