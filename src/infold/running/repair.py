"""
Makes a ledger and the tables beside it fit each other again, whichever was lost or put back.

Nothing is guessed. A table whose history ends with the ledger's newest version of it is as the
ledger says. One that went on without the ledger is set back to that version, if the storage still
has it: then ledger and tables are of one moment again, and the next run goes on from there. Of any
other table the ledger forgets what it knew, in a step as `forget` does it, so that readers see the
rows go and come back; the table itself stays, for who reads it, until the next run replaces it.

The order makes it safe to die anywhere. Steps that the ledger did not know are recorded last: until
then every run is refused, and the same command finds what is left to do.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace

from infold.core.environment import set_aside_of
from infold.core.interval import show_instant
from infold.core.model import ERASURES, table_name
from infold.core.ports import Lake, Ledger, TableMetadata
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import WRITTEN, CheckedTable, Repair, RepairReport
from infold.core.swap import DoneSwap, models_of_swaps
from infold.core.trace import UNKNOWN, Trace, Version, with_readers
from infold.messages import mismatches
from infold.messages.errors import InfoldError
from infold.running.damaged_tables import Damage
from infold.running.erasures import lost_requests, restore_requests
from infold.running.ledger_consistency import (
    lacks_version,
    late_step,
    refuse_other_project,
    unknown_steps,
)
from infold.running.publish import check_names, check_readers, refresh_readers
from infold.running.recovery import recover
from infold.running.run_progress import new_id
from infold.running.table_names import forget_table, table_keys

SET_BACK = "set back"
"""The action of a step that sets a table back."""

ALL_LOST = (
    "Manual entries (`infold quarantine`), environments, applied definitions, earlier definitions "
    "of forward-only changes, findings of audits, and the history of runs were in the ledger alone."
)
"""What nobody knows any more where there is no ledger."""

_RUNS = 100
"""How many of the newest runs are looked at for one that did something."""

LATER_LOST = (
    "What else the ledger recorded after {0} is not in this one: manual entries, environments, "
    "applied definitions, findings of audits, runs."
)
"""What nobody knows any more where the ledger is an older one."""

SWAPS_LOST = (
    "Of tables that a promote, a rollback or a change replaced, the ledger does not know any more "
    "what they were built from: they are forgotten, and nothing can be rolled back to them."
)
"""What nobody knows any more where replaced tables are not kept."""


@dataclass
class Repairer:
    """Repairs the ledger of one target, under its lease."""

    project: Project
    ledger: Ledger
    lake: Lake
    as_of: int
    writer_lock: Callable[[], AbstractContextManager[None]] = nullcontext
    begin: Callable[[], object] = lambda: None
    """What is done first under the lease: an empty ledger gets what is left of a damaged one."""

    def look(self, *, drop_orphans: bool = False, drop: Sequence[str] = ()) -> RepairReport:
        """
        What there is to repair, and to drop: all tables that nothing points to, or some of them.

        Nothing is written.
        """
        refuse_other_project(self.project, self.ledger)
        check_names(self.project, self.lake)
        tables = tuple(self._check_tables())
        swaps = tuple(self._swaps_to_forget(tables))
        orphans = self._orphans(forgotten=swaps)
        shared = _shared_namespace(self.project)
        if drop_orphans and orphans and shared:
            raise mismatches.orphans_of_others(namespace=shared, tables=", ".join(orphans))
        for name in drop:
            if name not in orphans:
                raise mismatches.not_an_orphan(table=name, orphans=", ".join(orphans) or "none")
        return RepairReport(
            self.project.target.ledger,
            tables,
            orphans,
            tuple(self._losses(tables, swaps)),
            swaps=swaps,
            dropped=orphans if drop_orphans else tuple(dict.fromkeys(drop)),
            shared=shared,
            misnamed=tuple(self.lake.misnamed()),
            requests=len(lost_requests(self.ledger, self.lake).requests),
        )

    def repair(
        self, *, drop_orphans: bool = False, drop: Sequence[str] = (), wait: float = 0.0
    ) -> RepairReport:
        """Repair it; see :meth:`look`."""
        run = new_id()
        refuse_other_project(self.project, self.ledger)
        self.ledger.acquire(run, wait=wait)
        try:
            with self.writer_lock():
                self.begin()
                self.ledger.begin_run(run, "repair", self.as_of, {})
                recover(self.ledger, self.lake)
                try:
                    check_readers(self.project, self.lake)
                    report = self._carry_out(run, self.look(drop_orphans=drop_orphans, drop=drop))
                    refresh_readers(self.project, self.lake)
                except BaseException as error:
                    why = f"{type(error).__name__}: {error}"
                    self.ledger.finish_run(run, "failed", Receipt(), why)
                    raise
                self.ledger.finish_run(run, "done", Receipt())
        finally:
            self.ledger.release()
        return replace(report, done=True)

    def _carry_out(self, run: str, report: RepairReport) -> RepairReport:
        if report.requests:
            restore_requests(self.ledger, lost_requests(self.ledger, self.lake))
        heads, traces = self.ledger.newest_versions(), self.ledger.traces()
        # Before anything is erased: once that is done, nothing tells why they have to go.
        for swap in report.swaps:
            self.ledger.forget_swap(swap)
        erased = [table.table for table in report.tables if table.erase]
        if erased:
            self.ledger.erase_tables(erased)
        for number, table in enumerate(report.tables, 1):
            step = f"{run}-{number}"
            if table.repair is Repair.SET_BACK and table.snapshot is not None:
                self.ledger.begin_step(run, step, number, table.table, SET_BACK, {})
                self.lake.set_back(table_name(table.table), table.snapshot)
                self.ledger.close_step(step, "done")
            elif table.forget and (table.table in traces or table.table in heads):
                forget_table(self.ledger, None, run=run, step=step, seq=number, model=table.table)
            elif table.drop:
                self.lake.drop(table_name(table.table))
        for orphan in report.dropped:
            self.lake.drop(orphan)
        # Set back, a table has none of the steps any more that the ledger did not know.
        self.ledger.know_steps(
            {
                step: table.table
                for table in report.tables
                if table.repair is not Repair.SET_BACK
                for step in table.unknown
            }
        )
        return report

    # -- looking

    def _check_tables(self) -> Iterator[CheckedTable]:
        """What is wrong with each table, and what is done about it."""
        heads, traces = self.ledger.newest_versions(), self.ledger.traces()
        wrong = self._contradictory_tables(traces)
        known = self.ledger.locations()
        moved = self.lake.moved_tables({t: known.get(t, "") for t in map(table_name, heads)})
        damaged = Damage(self.ledger, self.lake).find(self.project, heads, moved)
        swapped = models_of_swaps(self.ledger.unfinished())
        checked = []
        for name in self._names({*heads, *traces, *wrong}):
            if name in swapped:
                continue
            checked.append(
                self._check_table(name, heads.get(name), traces.get(name), wrong, name in damaged)
            )
        tables = [one for one in checked if one is not None]
        aside = [*self._check_set_aside()]
        if any(one.repair is Repair.BUILD for one in aside):
            tables = [self._without_rows_set_aside(table) for table in tables]
        yield from (*tables, *aside)

    def _names(self, known: Iterable[str]) -> Collection[str]:
        """Models of the project, then what else the ledger knows, tables of environments too."""
        stored = [node.name for node in self.project if node.model.kind.is_stored]
        return dict.fromkeys((*stored, *sorted(known)))

    def _check_table(
        self,
        name: str,
        version: Version | None,
        trace: Trace | None,
        wrong: Mapping[str, str],
        damaged: bool,
    ) -> CheckedTable | None:
        try:
            head = self.lake.metadata(table_name(name))
        except InfoldError as error:
            return CheckedTable(name, Repair.LEAVE, error.what)
        unknown = () if head is None else self._unknown_steps(head)
        if head is not None and (head.foreign is not None or not head.steps):
            # What the ledger knows of it is mended. The table stays, and stays refused.
            is_own = head.steps or (version is not None and version.snapshot is not None)
            why = WRITTEN if is_own else "infold did not make it"
            erase = name in wrong
            forget = bool(unknown) and not erase
            return CheckedTable(name, Repair.LEAVE, why, unknown, forget=forget, erase=erase)
        if name in wrong:
            return CheckedTable(name, Repair.BUILD, wrong[name], unknown, erase=True)
        if head is None:
            if trace is None or version is None or version.snapshot is None:
                return None
            return CheckedTable(name, Repair.BUILD, "its table is gone", forget=True)
        late = None if version is None else late_step(self.ledger, version, head)
        strange = frozenset((*unknown, late) if late else unknown)
        why = _difference(version, head, unknown, late)
        if why and self._can_set_back(version, trace, head, strange):
            assert version is not None
            what = f"{why}; version {version.number} is still there"
            return CheckedTable(name, Repair.SET_BACK, what, unknown, version.snapshot)
        if why or damaged:
            why = why or "files of it are missing"
            return CheckedTable(name, Repair.BUILD, why, unknown, forget=True)
        if trace is None or trace.fingerprint == UNKNOWN or version is None:
            # Without a version, a trace says that nothing was stored.
            forget = trace is not None and version is None
            return CheckedTable(name, Repair.BUILD, "the ledger has no trace of it", forget=forget)
        return CheckedTable(name, Repair.KEEP, f"version {version.number}")

    def _can_set_back(
        self,
        version: Version | None,
        trace: Trace | None,
        head: TableMetadata,
        strange: frozenset[str],
    ) -> bool:
        """
        Whether a table can be as the ledger says, and the ledger says how it is.

        The ledger does not know all of a version with ``strange`` steps below it.
        """
        if trace is None or trace.fingerprint == UNKNOWN or version is None:
            return False
        steps = [*head.steps]
        if version.step not in steps or not strange.isdisjoint(steps[: steps.index(version.step)]):
            return False
        snapshot = version.snapshot
        return snapshot is not None and self.lake.can_set_back(head.table, snapshot)

    def _unknown_steps(self, head: TableMetadata) -> tuple[str, ...]:
        known = self.ledger.step_models(head.steps)
        return tuple(step for step in head.steps if step not in known)

    def _contradictory_tables(self, traces: Mapping[str, Trace]) -> Mapping[str, str]:
        """Tables with rows in the ledger that contradict each other, and all that read those."""
        why = "it reads {}, and the ledger lost rows about that"
        return with_readers(self.ledger.contradictions(), traces, why.format)

    def _check_set_aside(self) -> Iterator[CheckedTable]:
        """The tables of rows that could not be used: they have no versions, and steps all the same.

        Each is written by steps of models, before and after the commits of those.
        """
        for name in ("", *self.ledger.environments()):
            table = set_aside_of(name)
            try:
                head = self.lake.metadata(table)
            except InfoldError as error:
                yield CheckedTable(table, Repair.LEAVE, error.what)
                continue
            unknown = () if head is None else self._unknown_steps(head)
            if head is None or not unknown:
                continue
            steps = [*head.steps]
            before = steps[: -len(unknown)]
            apart = bool(before) and {*before}.isdisjoint(unknown)
            snapshot = head.steps[before[-1]] if apart else None
            why = unknown_steps(unknown)
            if snapshot is not None and self.lake.can_set_back(table, snapshot):
                yield CheckedTable(table, Repair.SET_BACK, why, unknown, snapshot)
            else:
                # Nothing would ever remove rows of files that have other numbers from now on.
                yield CheckedTable(table, Repair.BUILD, why, unknown, drop=head.foreign is None)

    def _without_rows_set_aside(self, table: CheckedTable) -> CheckedTable:
        """A table that is built again if rows of its files were set aside: they may be gone."""
        if table.repair is Repair.BUILD:
            return table
        if not any(file.set_aside for file in self.ledger.files(table.table)):
            return table
        if table.repair is Repair.LEAVE:
            return replace(table, forget=not table.erase)
        why = "rows of its files that were set aside may be missing"
        return CheckedTable(table.table, Repair.BUILD, why, table.unknown, forget=True)

    def _orphans(self, *, forgotten: Collection[str]) -> tuple[str, ...]:
        """Tables that infold made, and that neither project nor ledger knows without some swaps."""
        environments = self.ledger.environments()
        names: set[str] = {node.name for node in self.project}
        names |= {*self.ledger.newest_versions(), *self.ledger.traces()}
        names |= table_keys(self.ledger)
        swaps = [swap for swap in self.ledger.swaps() if swap.id not in forgotten]
        names |= {key for swap in swaps for key in swap.kept.values() if key}
        tables = {ERASURES, *map(table_name, names), *map(set_aside_of, ("", *environments))}
        known = {name.lower() for name in tables}  # a catalog may know names in lower case only
        return tuple(name for name in self.lake.made_tables() if name.lower() not in known)

    def _swaps_to_forget(self, tables: Iterable[CheckedTable]) -> Iterator[str]:
        """
        The swaps with replaced tables that cannot get their names back.

        A table of which all is erased begins again at version 1. Replaced tables name versions of
        it that would come a second time, with other rows: so then none of them is kept.
        """
        erased = any(table.erase for table in tables)
        for swap in self.ledger.swaps():
            if erased or not self._is_kept(swap):
                yield swap.id

    def _is_kept(self, swap: DoneSwap) -> bool:
        """Whether the tables that a swap replaced are there as the ledger knows them."""
        for model, key in swap.kept.items():
            if key is None or model not in swap.stored:
                continue
            try:
                head = self.lake.metadata(table_name(key))
            except InfoldError:
                return False
            if head is None or self._unknown_steps(head):
                return False
        return True

    def _losses(self, tables: Iterable[CheckedTable], swaps: Collection[str]) -> Iterator[str]:
        """What nobody can know any more, in sentences."""
        if swaps:
            yield SWAPS_LOST
        unknown = any(table.unknown for table in tables)
        if not unknown:
            return
        # Runs that were refused since are not of the time that the ledger tells of.
        told = (run for run in self.ledger.runs(_RUNS) if run.state not in ("running", "refused"))
        last = next(told, None)
        if not self.ledger.newest_versions():
            yield ALL_LOST
        elif last is not None:
            yield LATER_LOST.format(show_instant(last.started_at))


def _shared_namespace(project: Project) -> str:
    """
    The namespace of a project's tables, if other projects may have theirs in it, too.

    No commit tells of which project it is. A namespace with the project's name is its own.
    """
    return "" if project.namespace == project.name else project.namespace


def _difference(
    version: Version | None, head: TableMetadata, unknown: Sequence[str], late: str | None
) -> str:
    """In what a table is not as the ledger says; empty where it is."""
    if unknown:
        return unknown_steps(unknown)
    if version is None:
        return ""
    if lacks_version(version, head):
        return f"it lacks version {version.number}"
    return "" if late is None else "a run that had been taken over wrote to it"
