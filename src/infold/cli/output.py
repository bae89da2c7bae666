"""How commands print their results, ask, and end where something was refused or failed."""

from __future__ import annotations

import codecs
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from infold.messages.errors import ExitCode
from infold.render.formatting import WIDTH

if TYPE_CHECKING:
    from pathlib import Path

    from infold.core.project import Project
    from infold.core.report import RunResult, SwapPreview
    from infold.core.target import Target
    from infold.messages.errors import InfoldError
    from infold.render.pictures.look import Look


def print_json(value: Mapping[str, Any]) -> None:
    """Print a result for programs: one JSON object."""
    click.echo(json.dumps(value, indent=2, default=str, ensure_ascii=False))


def refuse_used_folder(folder: Path) -> None:
    """Raise ``command_errors.folder_in_use`` if a folder for a new project has anything in it."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        from infold.messages import command_errors

        raise command_errors.folder_in_use(folder=str(folder))


def write_text(path: Path, text: str) -> None:
    """Write a file that the command was told to; it is whole, or as it was."""
    if not path.parent.is_dir():
        why = f"{path}: there is no such folder."
        raise click.UsageError(why)
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text, encoding="utf-8")
    fresh.replace(path)


def confirm(what: str, *, yes: bool, asks: bool) -> None:
    """Ask whether to go on; refused where nobody is there to ask, or the answer is no."""
    from infold.messages import run_errors

    if not yes:
        _ask(f"This will {what}. Go on?", run_errors.unconfirmed(what=what), asks=asks)


def confirm_apply(target: str, *, yes: bool, asks: bool) -> None:
    """Ask whether what was shown is to be applied; as :func:`confirm`."""
    from infold.messages import apply_errors

    if not yes:
        _ask("\nApply?", apply_errors.apply_not_confirmed(target=target), asks=asks)


def carry_out_swap(
    target: Target, shown: SwapPreview, do: Callable[[], None], *, yes: bool, as_json: bool
) -> None:
    """Show what a promote or a rollback would do, ask whether to, do it, and say so."""
    from infold.messages import environment_errors
    from infold.render import environments

    if not as_json:
        click.echo(environments.swap_screen(target.name, shown))
    if shown.changes:
        if not yes:
            refused = environment_errors.promote_not_confirmed(target=target.name)
            _ask("\nSwap them?", refused, asks=not as_json)
        do()
    if as_json:
        print_json(environments.swap_json(shown, done=shown.changes))
    elif shown.changes:
        click.echo(f"\n{environments.swapped_text(target, shown)}")


def _ask(question: str, refused: InfoldError, *, asks: bool) -> None:
    """Raise the error where nobody is there to ask, or the answer is no, as Ctrl-D is one."""
    if not asks or not sys.stdin.isatty():
        raise refused
    try:
        answer = click.confirm(question)
    except click.Abort:
        click.echo()
        answer = False
    if not answer:
        raise refused


def end_if_refused(
    refused: Mapping[str, InfoldError], *, part: bool, as_json: bool = False
) -> None:
    """
    Print the error of each refused model, and end with its exit code.

    With ``part`` there are other models, which were not refused: then the code is 1, as after a
    run that built only those. In JSON the errors are printed already.
    """
    if not refused:
        return
    if not as_json:
        for error in refused.values():
            click.echo(f"\n{error}", err=True)
    code = ExitCode.FAILED if part else min(error.exit_code for error in refused.values())
    click.get_current_context().exit(code)


@contextmanager
def summarized(
    project: Project, *, as_json: bool = False, verbose: bool = False
) -> Iterator[Callable[[RunResult], None]]:
    """
    A run whose summary is printed by the function that the block gets.

    Where a part of it fails, print its summary, then every error, and end with its exit code.
    """
    from infold.api.spark_sessions import has_started_spark
    from infold.core.report import RunFailed

    had_spark = has_started_spark()

    def print_summary(result: RunResult) -> None:
        from infold.render.run import summary_screen

        states, spark = project.target.state_messages, has_started_spark() and not had_spark
        click.echo(f"\n{summary_screen(result, verbose=verbose, states=states, spark=spark)}")

    try:
        yield print_summary
    except RunFailed as failed:
        from infold.render import json_shapes

        if as_json:
            print_json(json_shapes.failed(failed))
        else:
            print_summary(failed.result)
            click.echo(f"\n{failed}", err=True)
        click.get_current_context().exit(failed.exit_code)


_NO_COLOUR = "NO_COLOR"


def terminal_look() -> Look:
    """
    How a picture may look where standard output goes.

    It is plain, which is ASCII without colours, without a terminal, with ``NO_COLOR``, in a
    terminal that can do nothing, and where the encoding is not UTF-8.
    """
    from infold.render.pictures.look import NARROWEST, Look

    terminal = sys.stdout.isatty()
    capable = os.environ.get("TERM") != "dumb" and _is_utf8(sys.stdout.encoding)
    coloured = terminal and capable and not os.environ.get(_NO_COLOUR)
    width = shutil.get_terminal_size((WIDTH, 24)).columns
    return Look(width=max(NARROWEST, min(width, _WIDEST)), plain=not coloured)


_WIDEST = 160
"""Nobody reads a wider picture."""


def _is_utf8(encoding: str | None) -> bool:
    try:
        return codecs.lookup(encoding or "ascii").name == "utf-8"
    except LookupError:
        return False
