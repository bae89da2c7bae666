"""
The command line: one command a file, imported when it is called, and what commands share.

Rules of this package: a command reads options, calls ``infold.api`` and prints what
``infold.render`` returns; it decides nothing. Neither Spark nor anything else that is slow to
import is imported before it is needed, so that ``--help`` and ``status`` answer at once.
"""

from __future__ import annotations

import os
import sys

from infold.system import signals

TYPE_CHECKING = False  # see stopping
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from infold.cli.main import cli as cli
    from infold.system.circumstances import Began


def main() -> NoReturn:
    """The program ``infold``. Signals are handled before anything that takes time is imported."""
    signals.install()
    try:
        from infold.cli.warm_engine import client
        from infold.system.circumstances import Began

        began = Began()
        code = client.carry_out(sys.argv)
        if code is not None:
            os._exit(code)
        from infold.cli import process_exit
    except BaseException:
        if signals.exit_code() is None:
            raise
        signals.exit_now()
    process_exit.run(_command, lambda _: _leave_spark(began))


def _leave_spark(began: Began) -> None:
    """Leave the Spark that the command started, if it did, to the next commands."""
    if "infold.spark.jvm.lasting" in sys.modules:
        from infold.cli import process_exit
        from infold.cli.warm_engine.leaving import leave

        if line := leave(began):
            process_exit.say(line)


def _command() -> None:
    from infold.cli.main import cli

    cli.main()


def __getattr__(name: str) -> Any:
    if name == "cli":
        from infold.cli.main import cli

        return cli
    raise AttributeError(name)
