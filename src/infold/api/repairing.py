"""Makes a target's ledger and its tables fit each other again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from infold.api.opening import dropper, lake_of, ledger_of, open_project
from infold.api.sole_writer import sole_writer
from infold.core.interval import now
from infold.core.project import Project
from infold.core.report import RepairReport
from infold.core.target import Apply
from infold.ledger import SqlLedger
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
