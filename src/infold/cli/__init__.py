"""
The command line: one command a file, imported when it is called, and what commands share.

Rules of this package: a command reads options, calls ``infold.api`` and prints what
``infold.render`` returns; it decides nothing. Neither Spark nor anything else that is slow to
import is imported before it is needed, so that ``--help`` and ``status`` answer at once.
"""

from __future__ import annotations

from infold.system import signals

TYPE_CHECKING = False  # see stopping
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from infold.cli.main import cli as cli


def main() -> NoReturn:
    """The program ``infold``. Signals are handled before anything that takes time is imported."""
    signals.install()
    try:
        from infold.cli import process_exit
    except BaseException:
        if signals.exit_code() is None:
            raise
        signals.exit_now()
    process_exit.run(_command)


def _command() -> None:
    from infold.cli.main import cli

    cli.main()


def __getattr__(name: str) -> Any:
    if name == "cli":
        from infold.cli.main import cli

        return cli
    raise AttributeError(name)
