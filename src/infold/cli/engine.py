"""``infold engine``."""

from __future__ import annotations

import sys

import click

from infold.cli import shared_options
from infold.cli.output import print_json


@click.group("engine")
def command() -> None:
    """
    Show, stop or restart the engine that commands leave running.

    A command that needs Spark leaves it running for the next ones, which then need not start it.
    Whatever the engine is, does or lacks, results are the same.
    """


@command.command("status")
@shared_options.as_json
def status(as_json: bool) -> None:
    """Show whether an engine is running for the target, and what it takes."""
    from infold.api.warm_engines import await_engine, engine_of
    from infold.render.checkup import warm_engine_json, warm_engine_screen

    await_engine(*click.get_current_context().obj)
    engine = engine_of(*click.get_current_context().obj)
    if as_json:
        print_json(warm_engine_json(engine))
    else:
        click.echo(warm_engine_screen(engine))


@command.command("stop")
@shared_options.as_json
def stop(as_json: bool) -> None:
    """End the engine; a command that it carries out comes to its end first."""
    from infold.api.warm_engines import await_engine, stop_engine

    await_engine(*click.get_current_context().obj)
    stopped = stop_engine(*click.get_current_context().obj)
    if as_json:
        print_json({"stopped": stopped})
    else:
        click.echo(_STOPPED[stopped])


_STOPPED = {
    None: "No engine was running.",
    True: "The engine has ended.",
    False: "The engine ends when the command has that it carries out.",
}


@command.command("restart")
def restart() -> None:
    """End the engine if there is one, and start another, for commands to come."""
    from infold.api.warm_engines import start_engine, stop_engine

    if sys.platform != "linux":  # none would stay
        click.echo(_STOPPED[None])
        return
    project = shared_options.opened(declared=True)
    stop_engine(*click.get_current_context().obj)
    start_engine(project)
