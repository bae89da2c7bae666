"""
Forgetting models, and tearing a target down: the only two things that drop tables.

The ledger forgets first, in one transaction for each model that also writes an empty version of its
table. Then the table is dropped. After a crash in between, the table is unknown to the ledger: the
next run replaces it, and the same command drops it when it is given again. In the other order, the
ledger would vouch for a table that does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass

from infold.core.environment import BUILT_APART, Environment
from infold.core.model import ERASURES, SET_ASIDE, table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import Forgotten
from infold.core.swap import Swap
from infold.messages import errors, run_errors
from infold.planning.selection import select_models
from infold.running.ledger_consistency import refuse_other_project
from infold.running.publish import check_readers, refresh_readers
from infold.running.recovery import recover
from infold.running.run_progress import new_id
from infold.running.table_names import (
    FORGET,
    drop_environment,
    drop_expired,
    drop_own_tables,
    drop_replaced,
    drop_replaced_long_ago,
    expiry_note,
    forget_table,
    swap_tables,
    table_keys,
)


@dataclass
class Dropper:
    """Drops tables of one target, under its lease."""

    project: Project
    ledger: Ledger
    lake: Lake
    as_of: int
    writer_lock: Callable[[], AbstractContextManager[None]] = nullcontext

    def models_with_data(self) -> tuple[str, ...]:
        """All models with data: an entry in the ledger, or a table of the project."""
        traces = self.ledger.traces()
        stored = [node.name for node in self.project if node.model.kind.is_stored]
        keys = table_keys(self.ledger)
        known = (name for name in (*traces, *self.ledger.newest_versions()) if name not in keys)
        names = dict.fromkeys((*stored, *known))
        return tuple(name for name in names if name in traces or self._has_table(name))

    def find_models(self, terms: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The models with data that terms mean, and the terms that mean none."""
        known = self.models_with_data()
        models: dict[str, None] = {}
        missing = []
        for term in terms:
            names = [term] if term in known else self._by_term(term)
            named = [name for name in known if name in names]
            models.update(dict.fromkeys(named))
            if not named:
                missing.append(term)
        return tuple(models), tuple(missing)

    def _by_term(self, term: str) -> Sequence[str]:
        try:
            return sorted(select_models(self.project, [term]))
        except errors.InfoldError:
            return ()

    def forget(
        self, terms: Sequence[str], *, allowed: bool = False, wait: float = 0.0
    ) -> Forgotten:
        """Forget models and drop their tables; the next run rebuilds them."""
        self.refuse_protected("forget", self.find_models(terms)[0], allowed=allowed)
        with self.locked_run(FORGET, wait) as run:
            names, missing = self.find_models(terms)
            for number, name in enumerate(names, 1):
                step = f"{run}-{number}"
                forget_table(self.ledger, self.lake, run=run, step=step, seq=number, model=name)
            apart = self.ledger.own_tables().get(BUILT_APART, ())
            replacing = [one for one in apart if one.model in names]
            drop_own_tables(self.ledger, self.lake, run, BUILT_APART, replacing)
        return Forgotten(names, missing)

    def teardown(self, *, allowed: bool = False, wait: float = 0.0) -> Forgotten:
        """Drop all tables of the target, and then its ledger."""
        self.refuse_protected("tear down", self.models_with_data(), allowed=allowed)
        with self.locked_run("teardown", wait, last=True) as run:
            names, entries = self.models_with_data(), self.count_entries()
            requests = len(self.ledger.erasures())
            for number, name in enumerate(names, 1):
                step = f"{run}-{number}"
                forget_table(self.ledger, self.lake, run=run, step=step, seq=number, model=name)
            for swap in self.ledger.swaps():
                drop_replaced(self.ledger, self.lake, run, swap)
            for name in self.ledger.environments():
                drop_environment(self.ledger, self.lake, run, name)
            for owner, tables in self.ledger.own_tables().items():
                drop_own_tables(self.ledger, self.lake, run, owner, tables)
            for table in (SET_ASIDE, ERASURES):
                self.lake.drop(table)
        return Forgotten(names, entries=entries, requests=requests)

    def recover(self, wait: float = 0.0) -> None:
        """Finish or forget what a dead run left."""
        with self.locked_run("recover", wait, whole=True):
            pass

    def swap(self, find: Callable[[], Swap], *, command: str, wait: float = 0.0) -> Swap:
        """Swap tables; which ones is found once the lease is held."""
        with self.locked_run(command, wait, whole=True) as run:
            swap = find()
            if swap.tables:
                swap_tables(self.ledger, self.lake, run, swap)
            return swap

    def drop_environment(self, name: str, wait: float = 0.0) -> Environment:
        """Drop an environment, with all that is its own."""
        with self.locked_run("env drop", wait) as run:
            return drop_environment(self.ledger, self.lake, run, name)

    def drop_expired(self, now: int, wait: float = 0.0) -> tuple[str, ...]:
        """Drop the environments with a time to live that is over; their names."""
        if not any(environment.is_over(now) for environment in self.ledger.environments().values()):
            return ()
        with self.locked_run("env expire", wait) as run:
            return tuple(one.name for one in drop_expired(self.ledger, self.lake, run, now))

    def count_entries(self) -> int:
        """How many manual entries the quarantines have: they are in the ledger and nowhere else."""
        names = self.ledger.newest_entries().keys() - table_keys(self.ledger)
        return sum(len(self.ledger.entries(name)) for name in names)

    def refuse_protected(self, what: str, names: Sequence[str], *, allowed: bool) -> None:
        """Raise ``errors.protected`` where these must not be dropped."""
        if self.project.target.protected and not allowed and names:
            reasons = tuple((name, "its table would be dropped") for name in names)
            raise run_errors.protected(self.project.target.name, what, reasons)

    def _has_table(self, name: str) -> bool:
        """
        Whether there is a table that infold made: others with the name of a model stay, and those
        of which nobody can tell.
        """
        try:
            head = self.lake.metadata(table_name(name))
        except errors.InfoldError:
            return False
        return head is not None and bool(head.steps)

    @contextmanager
    def locked_run(
        self, command: str, wait: float, *, last: bool = False, whole: bool = False
    ) -> Iterator[str]:
        """
        A run in the ledger, under the lease from begin to end; the ``last`` one deletes the ledger.

        It is refused where a step stays open if it needs the ``whole`` ledger to be right.
        """
        run = new_id()
        refuse_other_project(self.project, self.ledger)
        self.ledger.acquire(run, wait=wait)
        try:
            with self.writer_lock():
                self.ledger.begin_run(run, command, self.as_of, {})
                recovered = recover(self.ledger, self.lake)
                try:
                    if whole:
                        recovered.refuse_open()
                    if last:
                        self.lake.check_names(())  # that they can be taken out is seen before
                    else:
                        check_readers(self.project, self.lake)
                    yield run
                    if last:
                        self.lake.register()
                        self.lake.refresh_views(())
                    else:
                        refresh_readers(self.project, self.lake)
                except BaseException as error:
                    self.ledger.finish_run(
                        run, "failed", Receipt(), f"{type(error).__name__}: {error}"
                    )
                    raise
                if last:
                    self.ledger.destroy()
                else:
                    self.ledger.finish_run(run, "done", Receipt())
        finally:
            self.ledger.release()


def drop_what_is_over(
    ledger: Ledger, lake: Lake, run: str, now: int, *, keep_old: int | None
) -> Iterator[str]:
    """Drop the tables that nobody can get back any more; yields notes."""
    yield from map(expiry_note, drop_expired(ledger, lake, run, now))
    yield from drop_replaced_long_ago(ledger, lake, run, now=now, keep=keep_old)
