"""``infold ledger``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from infold.cli import shared_options
from infold.cli.output import print_json

if TYPE_CHECKING:
    from infold.core.report import LedgerCopy


@click.group("ledger")
def command() -> None:
    """Take a target's ledger to another place, to a file, or from one."""


@command.command("copy")
@click.argument("to")
@click.option("--schema", metavar="NAME", default="", help="Its schema there, on a server.")
@shared_options.wait
@shared_options.as_json
def copy(to: str, schema: str, wait: float, as_json: bool) -> None:
    """
    Copy the ledger to the URL TO, and close the one that was copied.

    TO is as `ledger` of a target in infold.yml, in quotes: 'sqlite:///FILE' or
    'postgresql+psycopg://USER:${env:NAME}@HOST/DATABASE'. No ledger may be there. Then name it in
    infold.yml: the one that was copied is refused from now on.
    """
    from infold.api.repairing import copy_ledger, open_target
    from infold.declare.targets import SCHEMA_FORM, SQLITE, is_schema
    from infold.render import repair

    if schema and (to.startswith(SQLITE) or not is_schema(schema)):
        raise click.UsageError(
            f"--schema: a ledger on a server has a schema. Its name is of {SCHEMA_FORM}."
        )
    project = open_target(*click.get_current_context().obj)
    done = copy_ledger(project, to, schema=schema, wait=wait)
    had = project.target.ledger_schema
    screen = repair.ledger_copied_screen(project.target.name, done, to, schema, had)
    _show(done, screen, as_json)


@command.command("export")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
@shared_options.as_json
def export(file: Path, as_json: bool) -> None:
    """Write the ledger to FILE, as it is at one moment; packed if its name ends with .gz."""
    from infold.api.repairing import export_ledger, open_target
    from infold.render import repair

    if not file.parent.is_dir():
        why = f"{file}: there is no such folder."
        raise click.UsageError(why)
    project = open_target(*click.get_current_context().obj)
    done = export_ledger(project, file)
    _show(done, repair.ledger_exported_screen(project.target.name, done), as_json)


@command.command("import")
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@shared_options.as_json
def import_(file: Path, as_json: bool) -> None:
    """Make the target's ledger of FILE, which was exported; no ledger may be there."""
    from infold.api.repairing import import_ledger, open_target
    from infold.render import repair

    project = open_target(*click.get_current_context().obj)
    done = import_ledger(project, file)
    _show(done, repair.ledger_imported_screen(project.target.name, done), as_json)


def _show(done: LedgerCopy, screen: str, as_json: bool) -> None:
    from infold.render.repair import ledger_copy_json

    if as_json:
        print_json(ledger_copy_json(done))
    else:
        click.echo(screen)
