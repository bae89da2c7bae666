"""Makes a target's ledger and its tables fit each other again, and takes a ledger elsewhere."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from infold.api.opening import dropper, lake_of, ledger_of, open_project
from infold.api.sole_writer import sole_writer
from infold.core.interval import now
from infold.core.project import Project
from infold.core.report import LedgerCopy, RepairReport
from infold.core.target import Apply
from infold.ledger import SqlLedger, ledger_schema, open_ledger
from infold.messages import ledger_errors
from infold.running.ledger_consistency import refuse_other_project, warehouse_of
from infold.running.run_progress import new_id
from infold.running.table_names import moves_names
from infold.system.process_lock import writer_lock

if TYPE_CHECKING:
    from infold.running.repair import Repairer


def look_at_ledger(
    project: Project, *, drop_orphans: bool = False, drop: Sequence[str] = ()
) -> RepairReport:
    """What there is to repair, and to drop; nothing is written."""
    from infold.ledger.damage import damage_of, damaged_file, entries_in, entries_left

    ledger = ledger_of(project)
    if why := damage_of(ledger):
        # What cannot be read tells nothing: as if there was none.
        none = SqlLedger(Path(f"{ledger.place}.none"))
        entries = _number(entries_in(Path(ledger.place)))
        report = _repairer(project, none).look(drop_orphans=drop_orphans, drop=drop)
        return replace(report, damage=why, entries=entries)
    report = _repairer(project, ledger).look(drop_orphans=drop_orphans, drop=drop)
    if (path := damaged_file(ledger)) is None:
        return report
    return replace(report, aside=str(path), entries=_number(entries_left(ledger, path)))


def repair_ledger(
    project: Project,
    *,
    drop_orphans: bool = False,
    drop: Sequence[str] = (),
    wait: float = 0.0,
) -> RepairReport:
    """Repair it; see :mod:`infold.running.repair`. What cannot be read is put aside, and kept."""
    from infold.ledger.damage import damage_of, damaged_file, take_entries

    ledger, aside = ledger_of(project), ""
    if why := damage_of(ledger):
        with writer_lock(project.root, project.target.name):
            aside = ledger.database.put_aside()
    path = damaged_file(ledger)  # also one that was put aside by a command that died
    taken = None

    def take() -> None:
        nonlocal taken
        if path is not None:
            taken = _number(take_entries(ledger, path))

    repairer = replace(_repairer(project, ledger), begin=take)
    done = repairer.repair(drop_orphans=drop_orphans, drop=drop, wait=wait)
    return replace(done, damage=why, aside=aside or str(path or ""), entries=taken)


def _number(entries: Sequence[object] | None) -> int | None:
    return None if entries is None else len(entries)


def _repairer(project: Project, ledger: SqlLedger) -> Repairer:
    from infold.running.repair import Repairer

    return Repairer(
        project,
        ledger,
        lake_of(project),
        now(),
        lambda: sole_writer(project, ledger),
    )


def after_swaps(project: Project, wait: float) -> Project:
    """
    The project by the definitions that are applied once such a swap is finished or forgotten.

    Mostly there is none, and it is ``project`` itself. So it is where definitions are to be
    applied: they were chosen by what was applied before, and the run refuses them.
    """
    if project.target.apply is not Apply.MANUAL or project.applies:
        return project
    if not finish_swaps(project, wait):
        return project
    return open_project(project.root, project.target.name)


def finish_swaps(project: Project, wait: float = 0.0) -> bool:
    """Finish or forget a swap of tables that a dead command began; whether there was one."""
    is_unfinished = any(moves_names(step) for step in ledger_of(project).unfinished())
    if is_unfinished:
        dropper(project).recover(wait)
    return is_unfinished


def finish_steps(project: Project, wait: float = 0.0) -> None:
    """Finish or forget whatever a dead command left: what an environment shares follows from it."""
    if ledger_of(project).unfinished():
        dropper(project).recover(wait)


def open_target(root: Path, target: str | None) -> Project:
    """The project of which only name and targets are used: mistakes in its models do not matter."""
    from infold.declare.load import load_with_mistakes

    return load_with_mistakes(root, target)[0]


def copy_ledger(project: Project, url: str, *, schema: str = "", wait: float = 0.0) -> LedgerCopy:
    """
    Copy the target's ledger to a URL as infold.yml may have it, and close the one that is there.

    ``schema`` is where it is on a server, if not where the target says or has it by itself.
    """
    from infold.declare.targets import ledger_fault
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
    from infold.declare.targets import LEDGERS

    return url if url.startswith(LEDGERS[0]) else f"{url}, schema {schema}"


def _require(project: Project, original: SqlLedger) -> None:
    if not original.exists():
        target = project.target
        raise ledger_errors.nothing_to_copy(target=target.name, ledger=target.ledger)
