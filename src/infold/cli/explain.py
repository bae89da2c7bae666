"""``infold explain``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from infold.cli import completing, shared_options
from infold.cli.output import print_json

if TYPE_CHECKING:
    from infold.core.project import Project

SESSION = "session"
"""Written in place of a model, to look a session up in all of them."""


@click.command("explain")
@click.argument("model", shell_complete=completing.models)
@click.argument("cell", required=False, metavar="[CELL|ID]")
@click.option(
    "--deep",
    is_flag=True,
    help="List a session's events with Spark where nothing else can; it starts Spark.",
)
@shared_options.as_of
@shared_options.env
@shared_options.as_json
def command(
    model: str,
    cell: str | None,
    deep: bool,
    as_of: str | None,
    env: str | None,
    as_json: bool,
) -> None:
    """
    Explain MODEL, the CELL of it with a date or time, or the session ID.

    Of a model: its definition, what it reads and how cells map, its trace, why it is stale or not,
    how it lies on disk; of a cell also what arrived for it and which runs changed it.

    `infold explain session ID` shows a session's history: what brought its events, and which run
    created, extended, merged or split it. A sessions model in place of `session` looks only there.

    With --env, a model is explained as that environment has it: its own table, or production's.
    """
    from infold import api
    from infold.messages import command_errors
    from infold.planning import selection
    from infold.planning.selection import unknown_model
    from infold.render import json_shapes
    from infold.render.explain import explain_screen

    name = shared_options.existing_environment(env)
    project = shared_options.opened(declared=name is not None)
    if name is not None:
        from infold.api.environments import explain_environment, stored

        project = stored(project, name).declared
    id_, only = _session_asked_for(project, model, cell)
    if id_ is not None:
        if name is not None:
            raise click.UsageError("--env is for models and their cells, not for sessions.")
        _print_history(project, id_, only, deep, as_json)
        return
    if deep:
        raise click.UsageError("`--deep` is for sessions: `infold explain session ID --deep`.")
    if model not in project:
        raise unknown_model(project, model)
    at = selection.parse_instant("CELL", cell)
    granularity = project[model].model.granularity
    chosen = granularity.cell(at) if granularity is not None and at is not None else None
    if cell is not None and chosen is None:
        raise command_errors.not_a_cell(model=model, text=cell)
    instant = selection.parse_as_of(as_of)
    if name is None:
        explained = api.explain(project, model, chosen, instant)
    else:
        explained = explain_environment(project, name, model, chosen, instant)
    if as_json:
        print_json(json_shapes.explanation(explained))
    else:
        click.echo(explain_screen(explained))


def _session_asked_for(
    project: Project, model: str, cell: str | None
) -> tuple[str | None, str | None]:
    """The id of a session, if one is meant, and the model to look in (None: all of them)."""
    from infold.core.model import Kind
    from infold.planning import selection

    if model in project and (cell is None or selection.is_instant(cell)):
        return None, None
    if model == SESSION:
        if cell is None:
            raise click.UsageError("`infold explain session` needs the id of a session.")
        return cell, None
    if cell is not None and model in project and project[model].model.kind is Kind.SESSIONS:
        return cell, model
    return None, None


def _print_history(
    project: Project, id_: str, model: str | None, deep: bool, as_json: bool
) -> None:
    from infold import api
    from infold.render.session_history import session_history_screen, session_history_shape

    histories = api.session_history(project, id_, model, deep=deep)
    if as_json:
        print_json(session_history_shape(histories))
    else:
        click.echo(session_history_screen(histories))
