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
    process_exit.run(_command, lambda code: _leave_spark(began, code))


def _leave_spark(began: Began, code: int) -> None:
    """Leave the Spark that the command started, or start one, for the next commands."""
    if "infold.spark.jvm.lasting" in sys.modules:
        from infold.cli.warm_engine.leaving import leave

        line = leave(began)
    elif os.isatty(2):
        from infold.cli.warm_engine.early import start

        options = sys.modules.get("infold.cli.shared_options")
        line = start(began, getattr(options, "last_opened", None), code)
    else:
        return
    if line:
        from infold.cli import process_exit

        process_exit.say(line)


def _command() -> None:
    from infold.cli.main import cli

    cli.main()


def __getattr__(name: str) -> Any:
    if name == "cli":
        from infold.cli.main import cli

        return cli
    raise AttributeError(name)
