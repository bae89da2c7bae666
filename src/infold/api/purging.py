"""Erased rows gone from the disk: from files, older snapshots, and the pages of the ledger."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infold.api.opening import dropper, ledger_of
from infold.core.environment import model_of_key, set_aside_of
from infold.core.erasure import KnownErasures
from infold.core.interval import now
from infold.core.ports import Lake, Ledger, Progress, SilentProgress
from infold.core.project import Project
from infold.core.report import Purged
from infold.core.trace import Trace, with_readers
from infold.running.erasures import (
    hasher_of,
    is_purge_due,
    newest_request,
    refuse_other_erasures,
)
from infold.running.landing_files import rewrite_files
from infold.running.table_names import drop_replaced, remember_locations

LOGS = ("spark.log", "engine.log", "last-error.log")
"""Files of the project in which messages, and so values of rows, may be."""


def is_due(project: Project) -> bool:
    """Whether a run that ends now is to purge, as the target says."""
    return is_purge_due(project, ledger_of(project), now())


def purge(
    project: Project,
    *,
    landing: bool = False,
    wait: float = 0.0,
    progress: Progress | None = None,
) -> Purged:
    """
    Leave no file that erased rows are in, of any table that infold made, and say where some are.

    With ``landing``, the files of sources are written again without such rows as well, as far as
    that is exact; see :mod:`infold.running.landing_files`. Texts of errors and logs go, too.

    Tables that a promote replaced are dropped, whose rows nobody erases: it cannot be rolled back
    then. Older snapshots go, whoever reads them. Killed anywhere, it is done by doing it again.
    """
    from infold.api.spark_sessions import session
    from infold.spark.maintenance import Maintenance
    from infold.spark.storages import storage_of

    shown = progress or SilentProgress()
    drops = dropper(project)
    ledger, lake = drops.ledger, drops.lake
    known = ledger.known_erasures()
    refuse_other_erasures(project, known)
    if known.newest:
        hasher_of(project, known.secret)  # before anything is done, as files are compared by it
    newest = max((one.number for one in ledger.erasures()), default=0)
    with drops.locked_run("purge", wait) as run:
        dropped = [key for swap in ledger.swaps() for key in swap.kept.values() if key]
        for swap in ledger.swaps():
            drop_replaced(ledger, lake, run, swap)
        tables = storage_of(project).tables(session(project), project, lake)
        maintenance = Maintenance(tables, ledger, lake)
        left = _left(project, ledger)
        purged = []
        for table in _tables(ledger, lake):
            shown.note(f"purging {table}")
            why = left.get(table) or maintenance.purge(table)
            if why:
                left[table] = why
            else:
                purged.append(table)
        remember_locations(project, ledger, lake, ())
        files = tuple(rewrite_files(project, ledger, landing=landing, behind=frozenset(left)))
        ledger.forget_texts()
        if not left:
            ledger.note_purged(newest)
    ledger_of(project).database.clean()
    for name in LOGS:
        (project.root / ".infold" / name).unlink(missing_ok=True)
    return Purged(tuple(purged), tuple(sorted(left.items())), tuple(dropped), files)


def _tables(ledger: Ledger, lake: Lake) -> Iterator[str]:
    """Every table with rows of models: by its key, and those of rows that were set aside."""
    for key, version in ledger.newest_versions().items():
        if version.snapshot is not None:
            yield key
    for environment in ("", *ledger.environments()):
        table = set_aside_of(environment)
        if lake.metadata(table) is not None:
            yield table


def _left(project: Project, ledger: Ledger) -> dict[str, str]:
    """Tables that may have rows of erased persons, and why: with all that follow from them."""
    known, traces = ledger.known_erasures(), ledger.traces()
    behind = dict(_behind(project, known, traces))
    return with_readers(behind, traces, "{} is not, which it follows from".format)


def _behind(
    project: Project, known: KnownErasures, traces: Mapping[str, Trace]
) -> Iterator[tuple[str, str]]:
    """Tables that a run has yet to build, and why."""
    for key, trace in traces.items():
        name = model_of_key(key)
        if trace.pending:
            yield key, "cells of it are still to be built"
        if name in project and trace.applied_entry < newest_request(project, known, project[name]):
            yield key, "no run has erased them from it"
