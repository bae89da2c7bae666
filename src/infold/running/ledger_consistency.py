"""
Whether a ledger and the tables beside it belong together.

Each commit to a table has the id of its step, and the ledger keeps every step for good. A step in a
table's history that the ledger does not know was recorded in another ledger: a newer state of this
one (a backup was restored), that of another target, or a lost one. And a table without the step of
the ledger's newest version is an older state of it. Only tables with another metadata location than
the ledger has can be either. So where nothing moved, nothing is read.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from infold.core.model import table_name
from infold.core.project import Project
from infold.core.storages import CatalogType
from infold.core.swap import models_of_swaps
from infold.core.trace import Version
from infold.lake.stores.places import below
from infold.messages import mismatches, run_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.ports import Lake, Ledger, TableMetadata


def refuse_other_project(project: Project, ledger: Ledger) -> None:
    """Raise an error where the ledger is that of another project, or of another warehouse."""
    name, warehouse = ledger.owner() or (project.name, warehouse_of(project))
    if name != project.name:
        raise mismatches.other_project(
            ledger=_ledger_url(project), found=name, project=project.name
        )
    if warehouse != warehouse_of(project):
        target = project.target
        raise mismatches.other_warehouse(
            ledger=target.ledger,
            found=warehouse,
            target=target.name,
            warehouse=warehouse_of(project),
        )


def warehouse_of(project: Project) -> str:
    """The warehouse of a project as declared: a relative folder moves with the project."""
    if project.target.in_store:
        return project.target.warehouse
    return os.path.normpath(project.target.warehouse)


def foreign_tables(
    project: Project,
    ledger: Ledger,
    lake: Lake,
    heads: Mapping[str, Version],
    moved: Mapping[str, str | None],
) -> Mapping[str, InfoldError]:
    """
    Check the tables that moved since the ledger last saw them, and those it never saw.

    Raises ``mismatches.catalog_lost``, ``ledger_behind`` or ``tables_behind``. Returns the models
    with a table that somebody else made or wrote (also a run that had been taken over), or that
    cannot be checked, each with the error.
    """
    _refuse_lost_catalog(project, ledger, heads, moved)
    tables, refused = _tables_to_check(project, ledger, lake, heads, moved)
    known = ledger.step_models(step for head in tables.values() for step in head.steps)
    newer = [
        (name, unknown_steps([step for step in head.steps if step not in known]))
        for name, head in tables.items()
    ]
    newer = [(name, difference) for name, difference in newer if difference]
    if newer:
        raise mismatches.ledger_behind(
            _ledger_url(project), newer, project.target.command, empty=not heads
        )
    older = []
    for name, head in tables.items():
        if name not in heads and not head.steps:
            refused[name] = mismatches.table_name_taken(
                model=name, table=head.table, location=head.location
            )
        elif head.foreign is not None:
            refused[name] = run_errors.foreign_write(head.table, head.foreign)
        elif name in heads and (late := _late_commit(ledger, heads[name], head)):
            refused[name] = late
        elif name in heads and lacks_version(heads[name], head):
            last = [*head.steps][-1] if head.steps else ""
            if known.get(last) != name:
                refused[name] = run_errors.foreign_write(head.table, head.snapshot)
            # One that is no version is of a run that died, or goes on: the next one sees to it.
            elif _version_of_step(ledger, name, last) < heads[name].number:
                older.append((name, f"it lacks version {heads[name].number}"))
    if older:
        raise mismatches.tables_behind(_ledger_url(project), older, project.target.command)
    return refused


def _refuse_lost_catalog(
    project: Project,
    ledger: Ledger,
    heads: Mapping[str, Version],
    moved: Mapping[str, str | None],
) -> None:
    """
    Raise ``mismatches.catalog_lost`` where not one table is left of those that the ledger knows.

    Each by itself would count as dropped, and be built again: in another catalog than was meant,
    and beside the files of the former tables. A swap may be at work on the names of all.
    """
    stored = [name for name, head in heads.items() if head.snapshot is not None]
    if not stored or any(moved.get(table_name(name), "") is not None for name in stored):
        return
    if models_of_swaps(ledger.unfinished()):
        return
    raise mismatches.catalog_lost(
        *(_ledger_url(project), _catalog_of(project), sorted(stored), project.target.command)
    )


def _catalog_of(project: Project) -> str:
    """
    What a project's catalog is called: its file, its URL as infold.yml has it, or the folder that
    is in its place.
    """
    if project.target.by_folders:
        return below(project.warehouse_location, project.namespace)
    declared = project.target.catalog
    if declared.type is CatalogType.SQLITE:
        return str(project.catalog_db)
    from infold.system.secrets import hide_passwords

    return hide_passwords(declared.uri)


def _tables_to_check(
    project: Project,
    ledger: Ledger,
    lake: Lake,
    heads: Mapping[str, Version],
    moved: Mapping[str, str | None],
) -> tuple[dict[str, TableMetadata], dict[str, InfoldError]]:
    """The project's tables to check: those that moved, and those that the ledger never saw."""
    # Names may have changed already where the ledger does not know of it yet: that is recovered.
    swapped = models_of_swaps(ledger.unfinished())
    stored = [
        node.name for node in project if node.model.kind.is_stored and node.name not in swapped
    ]
    unrecorded = lake.moved_tables({table_name(name): "" for name in stored if name not in heads})
    tables, refused = {}, {}
    for name in stored:
        table = table_name(name)
        if not moved.get(table) and not unrecorded.get(table):
            continue
        try:
            head = lake.metadata(table)
        except InfoldError as error:
            refused[name] = error
            continue
        if head is not None:
            tables[name] = head
    return tables, refused


def unknown_steps(steps: Sequence[str]) -> str:
    """The steps of a table's history that the ledger does not know, in words; empty without any."""
    if not steps:
        return ""
    commits = "1 commit" if len(steps) == 1 else f"{len(steps):,} commits"
    return f"{commits} unknown to it, the newest by step {steps[-1]}"


def lacks_version(version: Version, head: TableMetadata) -> bool:
    """Whether the ledger's newest version is not in the history that is known of a table."""
    return version.snapshot is not None and version.step not in head.steps


def _late_commit(ledger: Ledger, version: Version, head: TableMetadata) -> InfoldError | None:
    """What to say where one of a table's last commits is of a step that was closed without it."""
    step = late_step(ledger, version, head)
    if step is None:
        return None
    return run_errors.late_commit(head.table, head.steps[step], step)


def late_step(ledger: Ledger, version: Version, head: TableMetadata) -> str | None:
    """
    The step of one of a table's last commits that the ledger closed without it, if there is one.

    A run that had been taken over made it: its machine slept, or had lost the server. It may lie
    below the newest version. Nothing is left of it where that replaced all content, and nothing
    will be where the model has no trace, since then all of the table is built again.
    """
    for step in reversed((*head.steps,)):
        if step == version.step and not version.whole:
            continue
        if step == version.step or not ledger.closed_steps([step]):
            return None
        if version.table not in ledger.traces():
            return None
        return step
    return None


def _version_of_step(ledger: Ledger, model: str, step: str) -> float:
    """The version that a step made of a table; beyond all of them where it made none."""
    versions = (version.number for version in ledger.versions(model) if version.step == step)
    return next(versions, math.inf)


def _ledger_url(project: Project) -> str:
    return project.target.ledger
