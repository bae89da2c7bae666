"""The group of commands, its global options, and what happens to errors."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from keyword import iskeyword
from pathlib import Path
from typing import Any, NoReturn

import click

from infold import __version__
from infold.cli import completing
from infold.cli.process_exit import OutputError, ReaderGone, report_failed_output
from infold.messages.errors import ExitCode, InfoldError
from infold.system import signals

COMMANDS = {
    "init": "Write a small project that runs as it is.",
    "import": "Make a project of one of dbt, SQLMesh or Snowplow's packages.",
    "demo": "Make a project with real late data, and play its arrivals.",
    "plan": "Show what a run would do, and why; write nothing.",
    "run": "Bring the tables up to date.",
    "apply": "Apply changed definitions to a target, and build what follows from them.",
    "promote": "Make an environment's tables production's.",
    "rollback": "Go back to the tables that the last promote replaced.",
    "restate": "Build models again, although nothing that they read changed.",
    "backbuild": "Build models over a window again, with all that they read for it.",
    "show": "Print or export the rows of a table.",
    "manifest": "Write the manifest tables as Parquet files, for other engines.",
    "status": "Show the state of every model.",
    "env": "List environments, and drop them.",
    "diff": "Compare an environment with production.",
    "lateness": "Show how late rows came, and what a lookback would have missed.",
    "dag": "Draw the graph of models.",
    "history": "Show past runs and their steps.",
    "explain": "Explain a model, or one cell of it.",
    "ui": "Show the project in a browser.",
    "quarantine": "Put sessions into quarantine by hand, release them, list them.",
    "erase": "Erase the rows of persons, now and whenever they come again.",
    "forget": "Forget models and drop their tables; the next run builds them again.",
    "teardown": "Drop all tables of a target, and its ledger.",
    "repair": "Make the ledger fit the tables again, if one of them was lost, put back or damaged.",
    "ledger": "Take a target's ledger to another place, to a file, or from one.",
    "engine": "Show, stop or restart the engine that commands leave running.",
    "check": "Read the project and report all mistakes in it.",
    "format": "Lay out the SQL of models, of all or of these.",
    "schema": "Print the JSON Schema of infold.yml, or of a model's front matter.",
    "completion": "Print what makes a shell complete infold's commands.",
    "doctor": "Check that all a target needs is there and works.",
    "test": "Run the unit tests of the project.",
    "verify": "Compare the tables with a full rebuild of them.",
    "audit": "Judge stored rows by the audits of their models.",
}
"""The commands and what each does, here so that ``--help`` need not import them."""

_INTERRUPTED = 130


class Commands(click.Group):
    """Commands found by name, each in the file of its name; errors become lines and exit codes."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Every command, in the order in which someone meets them."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command of that name, imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        # No module is called `import`.
        module = f"{cmd_name}_" if iskeyword(cmd_name) else cmd_name
        command = import_module(f"infold.cli.{module}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in ``--help``, without importing any command."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, **extra: Any) -> NoReturn:  # type: ignore[override]
        """Run, and leave with an exit code; no mistake of a user's ends in a traceback."""
        words = list(sys.argv[1:] if args is None else args)
        extra["standalone_mode"] = False
        try:
            _refuse_other_encodings(words)
            returned = super().main(words, **extra)
            code = returned if isinstance(returned, int) else 0
        except BaseException as error:  # noqa: BLE001 - the one place where everything ends
            code = _failed(error, words)
        sys.exit(code)


@click.group(
    name="infold",
    cls=Commands,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done or nothing to do, 1 a step or a test failed, 2 the project or the "
    "command is wrong, 3 refused, 4 verify found a difference, 5 diff did.",
)
@click.option(
    "-C",
    "--project",
    "root",
    type=click.Path(path_type=Path),
    default=Path(),
    metavar="DIR",
    help="The folder of the project; the present one by default.",
)
@click.option(
    "--target",
    metavar="NAME",
    shell_complete=completing.targets,
    help="One of the targets in infold.yml.",
)
@click.option(
    "--no-engine", is_flag=True, help="Use no engine that an earlier command left, and leave none."
)
@click.version_option(__version__, message="infold %(version)s")
@click.pass_context
def cli(ctx: click.Context, root: Path, target: str | None, no_engine: bool) -> None:
    """Keep tables derived from events equal to a rebuild, at a cost proportional to new data."""
    del no_engine  # read before anything else was imported: warm_engine/client.py
    ctx.obj = (root, target)


def _refuse_other_encodings(words: Sequence[str]) -> None:
    """Raise for a word that is not UTF-8: no name and no file can be meant by it."""
    for word in words:
        try:
            word.encode()
        except UnicodeEncodeError:
            raise click.UsageError(f"{word!a} is no text: its bytes are not UTF-8.") from None


def _failed(error: BaseException, words: Sequence[str]) -> int:
    """Print why a command did not succeed; its exit code."""
    from infold.system import failures

    code = signals.exit_code()
    if code is not None or isinstance(error, click.Abort | KeyboardInterrupt):
        # Whatever came after a signal came because of it: Spark is gone, for one thing.
        if code is None:
            click.echo(signals.STOPPED_LINE, err=True)
            return _INTERRUPTED
        signals.print_stopped()
        return code
    if isinstance(error, SystemExit):
        return error.code if isinstance(error.code, int) else ExitCode.FAILED
    if isinstance(error, click.ClickException):
        error.show()
        return error.exit_code
    if isinstance(error, ReaderGone):
        return 0
    if isinstance(error, OutputError):
        return report_failed_output(error, ExitCode.FAILED)
    known = failures.known_failure(error) or _damaged_ledger()
    known = known or failures.as_user_error(error, _root_of(words))
    try:
        return _print_error(known, as_json="--json" in words)
    except OutputError as failed:
        return report_failed_output(failed, known.exit_code)


def _damaged_ledger() -> InfoldError | None:
    """The error of a ledger with values that are none, which is known to nobody who reads them."""
    if "infold.ledger.database" not in sys.modules:
        return None
    from infold.ledger.damage import damaged_ledger

    return damaged_ledger()


def _print_error(error: InfoldError, *, as_json: bool) -> int:
    """Print an error, for programs as JSON on stdout; its exit code."""
    if as_json:
        import json

        click.echo(json.dumps({"error": error.record}, indent=2))
    else:
        click.echo(str(error), err=True)
    return error.exit_code


def _root_of(words: Sequence[str]) -> Path:
    """The project's folder as typed: click's context is gone when a crash is met here."""
    for i, word in enumerate(words):
        if word in ("-C", "--project") and i + 1 < len(words):
            return Path(words[i + 1])
        if word.startswith("--project="):
            return Path(word.partition("=")[2])
    return Path()
