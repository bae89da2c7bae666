"""``--metrics`` and ``--log``: the files in which a command that runs says what it did."""

from __future__ import annotations

from functools import wraps
from pathlib import Path
from typing import Any

import click

from infold.cli.shared_options import Command


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

        return command(sinks=Sinks(metrics, log), **values)

    return _metrics(_log(with_sinks))
