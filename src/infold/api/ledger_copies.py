"""Takes a target's ledger to another place, to a file, or from one."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from infold.api.opening import ledger_of
from infold.core.project import Project
from infold.core.report import LedgerCopy
from infold.declare.targets import LEDGERS, ledger_fault
from infold.ledger import SqlLedger, ledger_schema, open_ledger
from infold.messages import ledger_errors
from infold.running.ledger_consistency import refuse_other_project, warehouse_of
from infold.running.run_progress import new_id


def open_target(root: Path, target: str | None) -> Project:
    """The project of which only name and targets are used: mistakes in its models do not matter."""
    from infold.declare.load import load_with_mistakes

    return load_with_mistakes(root, target)[0]


def copy_ledger(project: Project, url: str, *, schema: str = "", wait: float = 0.0) -> LedgerCopy:
    """
    Copy the target's ledger to a URL as infold.yml may have it, and close the one that is there.

    ``schema`` is where it is on a server, if not where the target says or has it by itself.
    """
    from infold.ledger.copying import copy_ledger as copied

    key, target = "TO", project.target
    if why := ledger_fault(url):
        raise ledger_errors.bad_url(key=key, why=why)
    named = replace(target, ledger_schema=schema or target.ledger_schema)
    name = ledger_schema(replace(project, target=named))
    to = open_ledger(url, project.root, key=key, schema=name)
    original = ledger_of(project)
    refuse_other_project(project, original)
    _require(project, original)
    at, place = (shown(target.ledger, ledger_schema(project)), shown(url, name))
    return copied(original, to, at=at, place=place, run=new_id(), wait=wait)


def export_ledger(project: Project, path: Path) -> LedgerCopy:
    """Write the target's ledger to a file, packed if its name ends with .gz."""
    from infold.ledger.copying import export_ledger as exported

    original = ledger_of(project)
    _require(project, original)
    return exported(
        original,
        path,
        at=shown(project.target.ledger, ledger_schema(project)),
        project=project.name,
        warehouse=warehouse_of(project),
    )


def import_ledger(project: Project, path: Path) -> LedgerCopy:
    """Make the target's ledger, which must not be there yet, of an exported file."""
    from infold.ledger.copying import import_ledger as imported

    target = project.target
    return imported(
        ledger_of(project),
        path,
        place=shown(target.ledger, ledger_schema(project)),
        project=project.name,
        warehouse=warehouse_of(project),
        run=new_id(),
    )


def shown(url: str, schema: str) -> str:
    """A ledger's place as people may see it: the URL has references in place of secrets."""
    return url if url.startswith(LEDGERS[0]) else f"{url}, schema {schema}"


def _require(project: Project, original: SqlLedger) -> None:
    if not original.exists():
        target = project.target
        raise ledger_errors.nothing_to_copy(target=target.name, ledger=target.ledger)
