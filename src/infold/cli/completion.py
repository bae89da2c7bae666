"""What a shell completes: names of models and tables of the project in the folder."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from infold.core.project import Project


def models(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of models; of a term as ``+daily`` or ``clicks,daily`` its last name."""
    before, comma, last = typed.rpartition(",")
    start = f"{before}{comma}"
    plus = "+" if last.startswith("+") else ""
    return [
        CompletionItem(f"{start}{plus}{name}")
        for name in _names(ctx)
        if name.startswith(last.removeprefix("+"))
    ]


def tables(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of models and of the other tables that ``infold show`` has."""
    from infold.inspecting.audits import AUDIT_FAILURES
    from infold.inspecting.manifest import TABLES

    every = (*_names(ctx), "set_aside", AUDIT_FAILURES, *TABLES)
    return [CompletionItem(name) for name in every if name.startswith(typed)]


def events(ctx: click.Context, _: click.Parameter, typed: str) -> list[CompletionItem]:
    """Names of tables of events."""
    from infold.core.model import Kind

    project = _project(ctx)
    every = () if project is None else (n.name for n in project if n.model.kind is Kind.EVENTS)
    return [CompletionItem(name) for name in every if name.startswith(typed)]


def _names(ctx: click.Context) -> Iterator[str]:
    project = _project(ctx)
    return iter(() if project is None else (node.name for node in project))


def _project(ctx: click.Context) -> Project | None:
    """The project of the words before; None if it cannot be read: a shell shows no errors."""
    from infold import api
    from infold.messages.errors import InfoldError

    given = ctx.find_root().params
    try:
        return api.open_project(given.get("root") or Path(), given.get("target"))
    except (InfoldError, OSError):
        return None
