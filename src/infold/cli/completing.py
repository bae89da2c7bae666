"""
What a shell completes on the command line: names of models, tables, columns, targets, environments.

The project is read as every command reads it, mostly from what is cached; nothing is written, and
no server is asked. Where it cannot be read, a shell completes nothing: a Tab prints no errors.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from infold.core.project import Project

Completer = Callable[[click.Context, click.Parameter, str], list[str]]
Found = Callable[[click.Context, str], Iterable[str]]

_MANIFEST = ("set_aside", "audit_failures")


def _completer(candidates: Found) -> Completer:
    """Those ``candidates`` that begin with what is typed; none where anything goes wrong."""

    @wraps(candidates)
    def complete(ctx: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            values = [one for one in candidates(ctx, incomplete) if one.startswith(incomplete)]
        except Exception:  # noqa: BLE001 - whatever it is, it is no news for a person at a Tab
            return []
        return sorted(dict.fromkeys(values))

    return complete


def _root(ctx: click.Context) -> tuple[Path, str | None]:
    """The project's folder and the target, as typed before the command."""
    typed = ctx.find_root().params
    return Path(typed.get("root") or "."), typed.get("target")


def _project(ctx: click.Context) -> Project:
    from infold.declare.load import load

    root, target = _root(ctx)
    return load(root, target)


def _model_names(ctx: click.Context) -> list[str]:
    """The models; by their files, where a mistake in one of them is not mended yet."""
    from infold.messages.errors import InfoldError

    try:
        return [node.name for node in _project(ctx) if not node.landed]
    except InfoldError:
        files = (_root(ctx)[0] / "models").rglob("*")
        return [file.stem for file in files if file.suffix in (".sql", ".py")]


@_completer
def models(ctx: click.Context, _: str) -> Iterable[str]:
    """Names of models; a landed source is none."""
    return _model_names(ctx)


@_completer
def events(ctx: click.Context, _: str) -> Iterable[str]:
    """Names of tables of events."""
    from infold.core.model import Kind

    return [node.name for node in _project(ctx) if node.model.kind is Kind.EVENTS]


@_completer
def terms(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Terms as for --select: models and tags, after a `+` and after a comma too."""
    begun, comma, last = incomplete.rpartition(",")
    begun += comma
    if last.startswith("+"):
        begun, last = f"{begun}+", last[1:]
    if last.startswith("tag:"):
        return [f"{begun}tag:{tag}" for node in _project(ctx) for tag in node.model.tags]
    names = _model_names(ctx)
    return [begun + name for name in (*names, "tag:")] if names else []


@_completer
def tables(ctx: click.Context, _: str) -> Iterable[str]:
    """What `infold show` shows: models, sources that are stored, tables of infold's own."""
    from infold.inspecting.manifest import TABLES

    stored = [node.name for node in _project(ctx)]
    return (*stored, *TABLES, *_MANIFEST)


@_completer
def columns(ctx: click.Context, incomplete: str) -> Iterable[str]:
    """Columns of the table that is shown, after a comma too; of all, where none is named."""
    begun, comma, _ = incomplete.rpartition(",")
    # An option that lacks its value yet ends click's reading, and arguments stay where they were.
    table = ctx.params.get("table") or next(iter(ctx.args), None)
    nodes = [node for node in _project(ctx) if table in (None, node.name)]
    return [f"{begun}{comma}{name}" for node in nodes for name in node.columns]


@_completer
def targets(ctx: click.Context, _: str) -> Iterable[str]:
    """The project's targets."""
    from infold.declare.load import load_with_mistakes

    return load_with_mistakes(_root(ctx)[0])[0].targets


@_completer
def environments(ctx: click.Context, _: str) -> Iterable[str]:
    """Environments in a ledger that is a file; a server is not asked while somebody types."""
    from infold import api
    from infold.declare.targets import SQLITE

    project = _project(ctx)
    if not project.target.ledger.startswith(SQLITE):
        return ()
    return api.ledger_of(project).environments()
