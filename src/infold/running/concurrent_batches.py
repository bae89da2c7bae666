"""
Concurrent batches of one model: computed at the same time, committed one after the other.

A commit of a batch replaces whole partitions with the rows of other cells in them. So two commits
at once would lose rows, and the trace of each must leave pending what the others have yet to
commit. Hence a batch waits for its turn after it has computed its rows. Then it learns its version
and what is left pending, and it ends its turn once the ledger has its commit. Batches may end in
any order. A batch that failed leaves its cells pending.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Lock

from infold.core.interval import Ranges
from infold.core.model import Kind, table_name
from infold.core.plan import Plan, Step
from infold.core.ports import Lake
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import Pending, Trace, merge_pending
from infold.planning.plan_notes import tables_of_audits


def concurrent_batches(step: Step) -> tuple[Step, ...]:
    """The step and the batches that may be built beside it, each as a step of its own."""
    later = (replace(step, cells=cells, concurrent_batches=()) for cells in step.concurrent_batches)
    return (replace(step, concurrent_batches=()), *later)


@dataclass
class CommitLock:
    """
    Lets one batch of a model commit at a time; ``trace`` is the one before any of
    them is built.
    """

    trace: Trace
    version: int
    _one: Lock = field(default_factory=Lock)
    _unknown: BaseException | None = None
    """Why the ledger does not know of a commit: then nobody may build on what it knows."""

    @classmethod
    def of(cls, step: Step) -> CommitLock:
        """The lock of a step and of those beside it, which read the same versions."""
        assert step.trace is not None, "a planned step says what will hold"
        own = (Pending(reason.cause, reason.cells & step.cells) for reason in step.reasons)
        pending = tuple(merge_pending((*step.trace.pending, *own)))
        return cls(replace(step.trace, pending=pending), step.version)

    def acquire(self) -> None:
        """Until no other batch is being committed."""
        self._one.acquire()
        if self._unknown is not None:
            self._one.release()
            raise self._unknown

    def release(self, built: Outcome | None, unknown: BaseException | None = None) -> None:
        """
        End a turn: ``built`` is committed; None: nothing was written, or (``unknown``) maybe
        something.
        """
        if built is not None:
            self.trace = built.trace
            self.version += built.committed
        self._unknown = unknown
        self._one.release()


@dataclass
class CommitTurn:
    """One batch's turn to commit; without a lock the step is alone."""

    cells: Ranges
    lock: CommitLock | None = None
    holds_lock: bool = False

    def take(self, outcome: Outcome) -> Outcome:
        """
        Wait for the turn; returns the outcome as it will be after the batches
        committed before.
        """
        if self.lock is None:
            return outcome
        self.lock.acquire()
        self.holds_lock = True
        trace = self.lock.trace.with_built(self.cells)
        return replace(outcome, trace=trace, version=self.lock.version)

    def release(self, built: Outcome | None) -> None:
        """End it, if it was taken: ``built`` is in the ledger, or nothing was written."""
        if self.holds_lock and self.lock is not None:
            self.holds_lock = False
            self.lock.release(built)

    @contextmanager
    def released_after_error(self) -> Iterator[None]:
        """
        A turn that did not end broke off between table and ledger; no other batch may
        commit then.
        """
        try:
            yield
        except BaseException as error:
            if self.holds_lock and self.lock is not None:
                self.lock.release(None, unknown=error)
            raise


def _follows_readers(project: Project, current_plan: Plan, step: Step) -> bool:
    """
    Whether a step about stored rows has to wait for such steps of readers of its model.

    A plan has them first (``derivations.in_order``): who dies in between must not have renamed what
    the stored rows of readers are known by.
    """
    if not step.action.of_own_rows:
        return False
    before = takewhile(lambda one: one is not step, current_plan.steps)
    others = (one.model for one in before if one.action.of_own_rows and not one.expected)
    return step.model in project.upstream(others)


def side_by_side(
    project: Project, lake: Lake, current_plan: Plan, jobs: int | None, models_at_once: int = 1
) -> list[tuple[Step, CommitTurn]]:
    """
    The steps that can be executed now and beside each other, with their turns.

    As many models as there are, also if ``jobs`` of them or ``models_at_once`` are built at a time:
    those that wait begin as others end, and nothing is planned in between. Where this is one, one.
    Of models that ingest files one at a time, as the rows they set aside go to one table. A model
    waits for earlier steps of tables that its audits read, and no such table is built beside it: so
    an audit finds the same as one model after the other. If there are fewer models than jobs, the
    remaining jobs go to further batches of these models. Without ``jobs`` the batches of one model
    are built at the same time, and no model beside them.
    """
    one_by_one = (jobs or models_at_once) == 1

    def ingests(step: Step) -> bool:
        return project[step.model].model.kind is Kind.EVENTS

    models: list[Step] = []
    earlier, judged_on = set[str](), set[str]()
    for step in current_plan.steps:
        read = tables_of_audits(project, project[step.model])
        waits = ingests(step) and any(map(ingests, models))
        waits |= step.model in judged_on or not read.isdisjoint(earlier)
        earlier.add(step.model)
        if jobs is None and models:
            waits |= bool(step.concurrent_batches or models[0].concurrent_batches)
        waits = waits or _follows_readers(project, current_plan, step)
        if not (step.expected or waits or (models and one_by_one)):
            models.append(step)
            judged_on |= read
    # A table that somebody dropped is made by the first batch.
    in_batches = [
        one for one in models if one.concurrent_batches and lake.metadata(table_name(one.model))
    ]
    room = None if jobs is None else max(jobs - len(models), 0)
    startable = [(step, CommitTurn(step.cells)) for step in models if step not in in_batches]
    for step in in_batches:
        lock = CommitLock.of(step)
        batches = concurrent_batches(step)[: None if room is None else room + 1]
        room = None if room is None else room + 1 - len(batches)
        startable += [(batch, CommitTurn(batch.cells, lock)) for batch in batches]
    return startable
