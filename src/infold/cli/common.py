"""What commands share: options, the project, how results are printed."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from infold.project import Project

F = TypeVar("F", bound=Callable[..., Any])

as_json = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
select = click.option(
    "--select",
    "-s",
    multiple=True,
    metavar="TERM",
    help="Only these models: a name, a glob, tag:NAME; +m with all it reads, m+ with all that "
    "read it. Repeatable.",
)
exclude = click.option(
    "--exclude", "-x", multiple=True, metavar="TERM", help="Not these models; terms as above."
)
as_of = click.option(
    "--as-of",
    metavar="TIME",
    help="Take rows dated up to this instant for come due; now by default.",
)


def scope(function: F) -> F:
    """The options that say what is brought up to date."""
    options = (
        click.option("--start", metavar="TIME", help="Only cells from here on."),
        click.option("--end", metavar="TIME", help="Only cells before this (it is not included)."),
        click.option("--auto", is_flag=True, help="Everything that is stale; the default."),
        select,
        exclude,
        as_of,
    )
    for option in reversed(options):
        function = option(function)
    return function


def opened() -> Project:
    """The project that the command was given, read and checked."""
    from infold import api

    root, target = click.get_current_context().obj
    return api.open_project(root, target)


def conflicting(auto: bool, start: str | None, end: str | None) -> None:
    """Refuse ``--auto`` beside a window: they say different things."""
    if auto and (start or end):
        raise click.UsageError("--auto means everything that is stale; leave it out with a window.")


def repeated(options: Mapping[str, Any]) -> str:
    """Options as they would be typed again, each after a space."""
    text = ""
    for name, value in options.items():
        for one in value if isinstance(value, tuple) else (value,):
            if one is not None:
                text += f" --{name} {shlex.quote(str(one))}"
    return text


def printed(value: Mapping[str, Any]) -> None:
    """A result for programs."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))
