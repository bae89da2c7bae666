"""
How far a run has come: its plans, what was done, what failed, and which models depend on that.

A failure belongs to one model. Its readers are not tried, as their inputs are incomplete; all other
models are built. The result of the run is made here.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from infold.core.interval import Ranges
from infold.core.plan import HELD_BACK, UP_TO_DATE, Action, Plan, PlanOptions, Step
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import Failure, ModelState, RunResult
from infold.core.storages import NOT_PERMITTED
from infold.messages.errors import InfoldError
from infold.planning.model_states import state_after_run

ENDS = frozenset(
    {
        "catalog-answer-lost",
        "catalog-database-missing",
        "catalog-driver-missing",
        "catalog-failed",
        "catalog-login-refused",
        NOT_PERMITTED,
        "catalog-unreachable",
        "catalog-url",
        "engine-died",
        "lease-lost",
        "ledger-connection-lost",
        "ledger-database-missing",
        "ledger-login-refused",
        "ledger-newer",
        "ledger-not-permitted",
        "ledger-read-only",
        "ledger-unreachable",
        "ledger-unusable",
        "not-a-ledger",
        "spark-start",
    }
)
"""Errors that concern no model: after one of them nothing more can be built."""


@dataclass
class RunProgress:
    """One run so far; ``fail_fast`` ends it with the first failure."""

    run: str
    project: Project
    options: PlanOptions
    fail_fast: bool = False
    plans: list[Plan] = field(default_factory=list)
    model_states: tuple[ModelState, ...] = ()
    done: list[tuple[Step, Receipt]] = field(default_factory=list)
    failures: dict[str, Failure] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    """The digests of the definitions that it builds by, by model."""
    analysed: set[str] = field(default_factory=set)
    """The models with a definition that Spark has analysed."""
    steps_begun: int = 0
    """How many steps were begun: the number of the newest, as several of one model may fail."""
    given_up: int = 0
    """How many damaged tables it found that are built again, as their definitions changed."""

    def note_refused(self, refused: Mapping[str, InfoldError], plan: Plan) -> None:
        """Note models that must not be built, as far as they were selected or are read."""
        needed = self.project.upstream(step.model for step in plan.steps)
        for name, error in refused.items():
            chosen = self.options.selected is None or name in self.options.selected
            if chosen or name in needed:
                self.failures.setdefault(name, Failure(name, error))

    def note_failed(self, step: Step, error: InfoldError) -> None:
        """Note a failed step; of concurrent batches the first that is reported."""
        earlier = sum(one.model == step.model for one, _ in self.done)
        self.failures.setdefault(step.model, Failure(step.model, error, earlier + step.batches))

    def note_failed_models(self, errors: Mapping[str, InfoldError]) -> None:
        """Models failed before any step of theirs was begun."""
        for model, error in errors.items():
            self.failures.setdefault(model, Failure(model, error))

    def repeats(self, step: Step) -> bool:
        """Whether a step was done so often that doing it again is of no use."""
        return sum(same_work(other, step) for other, _ in self.done) > MOST_STEPS

    def runnable(self, plan: Plan) -> Plan:
        """The steps of a plan that can be executed: not of a failed model, nor of its readers."""
        if self.failures and self.fail_fast:
            return replace(plan, steps=())
        withheld = self.failures.keys() | self.project.downstream(self.failures)
        return replace(plan, steps=tuple(step for step in plan.steps if step.model not in withheld))

    @property
    def receipt(self) -> Receipt:
        """What all steps did."""
        return run_receipt(self.done)

    def result(self, touched: Mapping[str, Ranges]) -> RunResult:
        """The result of the run; ``touched`` are the cells that its steps changed, by model."""
        failures = tuple(self._with_committed_batches(entry) for entry in self.failures.values())
        return RunResult(
            self.run,
            self._state_of_run(),
            tuple(self.plans),
            tuple(self.done),
            self.receipt,
            (*self.notes, *self._held_back(), *self._audits_failed()),
            error="; ".join(failure.reason for failure in failures),
            model_states=tuple(
                self._state_with_processed(entry, touched) for entry in self.model_states
            ),
            failures=failures,
            not_tried=tuple(self._not_tried()),
            up_to_date=self._up_to_date(),
            unapplied=self.project.unapplied,
        )

    def _held_back(self) -> Iterable[str]:
        """
        Notes on tables that a window left as they were; where nothing was done the
        plan has them.
        """
        for entry in self.plans[-1].skipped if self.plans and self.done else ():
            if entry.why == HELD_BACK:
                yield f"{entry.model}: {entry.why}"

    def _audits_failed(self) -> Iterable[str]:
        """Notes on models with rows that were written though audits of severity warn failed."""
        failed: dict[str, int] = {}
        for step, receipt in self.done:
            failed[step.model] = failed.get(step.model, 0) + receipt.audits_failed
        for model, number in failed.items():
            if number:
                audits = "1 audit" if number == 1 else f"{number:,} audits"
                yield f"{model}: {audits} of severity warn failed: `infold show audit_failures`"

    def result_after_error(self, error: InfoldError) -> RunResult:
        """The result of the run after an error that belongs to no model."""
        self.failures[""] = Failure("", error)
        return self.result({})

    def _state_of_run(self) -> str:
        if not self.failures:
            return "done"
        refused = all(failure.refused for failure in self.failures.values())
        return "refused" if refused and not self.done else "failed"

    def _with_committed_batches(self, failure: Failure) -> Failure:
        """
        A failure of one batch with the number of the model's batches that were
        committed and stay.
        """
        committed = sum(step.model == failure.model for step, _ in self.done)
        if not committed or failure.batches < 2:
            return failure
        fact = (
            "committed",
            f"{committed:,} of {failure.batches:,} batches of this run, which stay",
        )
        return replace(failure, error=failure.error.with_facts(fact))

    def _not_tried(self) -> Iterable[tuple[str, tuple[str, ...]]]:
        """The steps of the last plan that were not executed, each with the failed models."""
        for step in self.plans[-1].steps if self.plans and self.failures else ():
            if step.model not in self.failures:
                reads = self.project.upstream((step.model,))
                yield step.model, tuple(name for name in self.failures if name in reads)

    def _up_to_date(self) -> tuple[str, ...]:
        if not self.plans or "" in self.failures:
            return ()
        skipped = self.plans[-1].skipped
        return tuple(
            entry.model
            for entry in skipped
            if entry.why == UP_TO_DATE and entry.model not in self.failures
        )

    def _state_with_processed(self, entry: ModelState, touched: Mapping[str, Ranges]) -> ModelState:
        """A model's state before the run, with the event time that its steps processed."""
        steps = [(step, receipt) for step, receipt in self.done if step.model == entry.model]
        missing = entry.model in self.failures or entry.model in dict(self._not_tried())
        if missing and not steps:
            return replace(entry, lower=None, upper=None, empty=False)
        return state_after_run(
            self.project[entry.model], entry, steps, touched.get(entry.model, Ranges())
        )


def changed_cells(ledger: Ledger, done: Iterable[tuple[Step, Receipt]]) -> Mapping[str, Ranges]:
    """The cells that the steps of a run changed, by model."""
    first: dict[str, int] = {}
    for step, _ in done:
        first[step.model] = min(step.version, first.get(step.model, step.version))
    return {
        model: Ranges.of(change.cell for change in ledger.changes(model, version - 1))
        for model, version in first.items()
    }


def ends_run(error: InfoldError) -> bool:
    """Whether nothing more can be built after an error."""
    return error.slug in ENDS


# Receipts add up, but for counts of files: rows of a file arrive once, however many models ingest
# the file, and wait once. Rows that several sessions models leave out are set aside once, too.

Done = Sequence[tuple[Step, Receipt]]


def run_receipt(done: Done) -> Receipt:
    """The receipt of a run: each file of a source counts once, and each row that is set aside."""
    ran = {step.model for step, _ in done}
    total = sum((_without_shared_rows(receipt, ran) for _, receipt in done), Receipt())
    taken = _by_source(done)
    if not taken:
        return total
    sources = [list(models.values()) for models in taken.values()]
    return replace(
        total,
        arrived=sum(
            _rows_counted_once((one.arrived, one.new_files) for one in models) for models in sources
        ),
        waiting=sum(
            _rows_counted_once((model.waiting, model.read_files) for model in models)
            for models in sources
        ),
        files_new=sum(len(set().union(*(one.new_files for one in models))) for models in sources),
        files_removed=sum(len(set().union(*(one.removed for one in models))) for models in sources),
        folders_listed=sum(max(model.folders for model in models)[0] for models in sources),
        folders_left_out=sum(max(model.folders for model in models)[1] for models in sources),
    )


def _without_shared_rows(receipt: Receipt, ran: Collection[str]) -> Receipt:
    """A receipt without the rows that other models of the run set aside and count as well."""
    shared = sum(
        rows
        for names, rows in receipt.set_aside_also
        if any(name in ran for name in names.split(", "))
    )
    if not receipt.set_aside_also:
        return receipt
    # A sessions model leaves rows out for one reason.
    by = tuple((reason, rows - shared) for reason, rows in receipt.set_aside_by if rows > shared)
    set_aside = receipt.set_aside - shared
    return replace(receipt, set_aside=set_aside, set_aside_by=by, set_aside_also=())


@dataclass(slots=True)
class _SourceTotals:
    """What one model ingested from one source: rows, and paths with sizes."""

    arrived: int = 0
    waiting: int = 0
    new_files: dict[str, int] = field(default_factory=dict)
    read_files: dict[str, int] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    folders: tuple[int, int] = (0, 0)
    """How many folders were listed, and how many left out, in its last step."""


def _by_source(done: Done) -> dict[str, dict[str, _SourceTotals]]:
    """Source → model → what it took in."""
    by_source: dict[str, dict[str, _SourceTotals]] = {}
    for step, receipt in done:
        if step.files is None:
            continue
        totals = by_source.setdefault(step.files.source, {}).setdefault(step.model, _SourceTotals())
        totals.arrived += receipt.arrived
        totals.waiting += receipt.waiting
        totals.new_files.update((file.path, file.size) for file in step.files.new)
        totals.read_files.update((file.path, file.size) for file in step.files.new)
        totals.read_files.update((file.path, file.size) for file in step.files.come_due)
        totals.folders = (receipt.folders_listed, receipt.folders_left_out)
        if receipt.files_removed:
            totals.removed.update(file.path for file in step.files.removed)
    return by_source


def _rows_counted_once(counts: Iterable[tuple[int, Mapping[str, int]]]) -> int:
    """
    Rows of files that several models ingested, each file's once.

    Mostly models ingest the same files, or one ingests all that another does. Where they share only
    some, the rows of the others are estimated by the sizes of files.
    """
    known: set[str] = set()
    rows = 0
    for count, files in sorted(counts, key=lambda pair: -len(pair[1])):
        size = sum(files.values())
        fresh = sum(size for path, size in files.items() if path not in known)
        rows += count if fresh == size else round(count * fresh / size)
        known.update(files)
    return rows


@dataclass(frozen=True)
class Request:
    """What a run was asked for."""

    options: PlanOptions = field(default_factory=PlanOptions)
    max_rows: int | None = None
    wait: float = 0.0
    command: str = "run"
    allow_refresh: bool = False
    """Whether tables of a protected target may be rebuilt."""
    fail_fast: bool = False
    """Whether the first failure ends the run."""
    allow_removals: bool = False
    """Whether any part of a source may be removed."""


def is_selected(request: Request, entry: ModelState) -> bool:
    """Whether a run was asked for this model."""
    return request.options.selected is None or entry.model in request.options.selected


MOST_STEPS = 3  # with the same work in one run: more often, and it would never end


def new_id() -> str:
    """An id for a run: its start to the second, for people, and a random part."""
    return time.strftime("%Y%m%dT%H%M%S", time.gmtime()) + "-" + uuid.uuid4().hex[:6]


def still_asked(options: PlanOptions, done: Sequence[tuple[Step, Receipt]]) -> PlanOptions:
    """
    What is still to be done: a restated model that was begun has it in its trace now.

    A backfill that was begun ends where its first step said, however many batches that takes.
    """
    begun = {step.model for step, _ in done if step.action is not Action.DERIVE}
    restated = {name: cells for name, cells in options.restated.items() if name not in begun}
    backfill_ends = {
        step.model: step.backfill_end for step, _ in reversed(done) if step.backfill_end is not None
    }
    return replace(options, restated=restated, backfill_ends=backfill_ends)


def same_work(step: Step, other: Step) -> bool:
    """Whether two steps repeat the same work, as batches of one model do not."""
    return step.model == other.model and (step.batches, step.cells) == (other.batches, other.cells)


def request_detail(request: Request) -> dict[str, Any]:
    """A request as the ledger keeps it, in plain values."""
    options = request.options
    return {
        "window": str(options.window) if options.window else None,
        "selected": sorted(options.selected) if options.selected is not None else None,
        "max_rows": request.max_rows,
        "batch_size": options.batch_size,
        "ignore_cron": options.ignore_cron,
        "forward_only": dict(options.forward_only),
        "restated": {
            name: [[part.start, part.end] for part in cells]
            for name, cells in options.restated.items()
        },
    }


def step_detail(step: Step) -> dict[str, Any]:
    """A step as the ledger keeps it, in plain values."""
    return {
        "cells": [[part.start, part.end] for part in step.cells],
        "reasons": [
            {"cause": reason.cause.value, "detail": reason.detail, "rows": reason.rows}
            for reason in step.reasons
        ],
        "inputs": {name: list(pair) for name, pair in step.inputs.items()},
        "version": step.version,
    }
