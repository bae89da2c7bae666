"""
``--metrics`` and ``--log``: the files in which a command that runs says what it did.

A run tells its listeners by itself. Here they hear of what ends a command before or without one.
"""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from infold.cli.shared_options import Command, environment

if TYPE_CHECKING:
    from infold.core.sinks import Sinks


def _in_a_folder(_: click.Context, __: click.Parameter, path: Path | None) -> Path | None:
    """A file that will be written at the end: rather no run than one without it."""
    if path is not None and not path.absolute().parent.is_dir():
        why = f"{path}: there is no such folder."
        raise click.BadParameter(why)
    return path


_OF_A_FILE: Any = {
    "type": click.Path(dir_okay=False, path_type=Path),
    "callback": _in_a_folder,
    "metavar": "FILE",
}
_metrics = click.option(
    "--metrics",
    **_OF_A_FILE,
    help="Write what the run came to into a file, in Prometheus' text format.",
)
_log = click.option("--log", **_OF_A_FILE, help="Add what happens to a file, a JSON object a line.")


def sinks(command: Command) -> Command:
    """Declare both options; the command gets them as ``sinks``."""

    @wraps(command)
    def with_sinks(*, metrics: Path | None, log: Path | None, **values: Any) -> Any:
        from infold.core.sinks import Sinks

        sinks = Sinks(metrics, log)
        try:
            returned = command(sinks=sinks, **values)
        except (click.ClickException, click.exceptions.Exit):
            raise  # what was typed is no command; or it is told
        except BaseException as error:
            _tell(sinks, error, values)
            raise
        if not sinks.told:
            _tell(sinks, None, values)
        return returned

    return _metrics(_log(with_sinks))


def _tell(sinks: Sinks, error: BaseException | None, given: dict[str, Any]) -> None:
    """Tell of the end of the command that was typed, unless it only shows what it would do."""
    from infold.api.listening import tell_of_end
    from infold.messages.errors import InfoldError

    if getattr(given.get("options"), "dry_run", False):
        return
    context = click.get_current_context()
    root, target = context.obj
    try:
        name = environment(given["env"]) if "env" in given else None
    except InfoldError:
        return  # it is not known whether it was about production
    command = str(context.info_name)
    tell_of_end(root, target, command, sinks, error, environment=name or "")
