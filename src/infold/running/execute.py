"""
Executes a plan: the order of writing, and what happens after a crash.

For each step: intent in the ledger → expected outcome in the ledger → one commit of the table, with
the step's id → done in the ledger. A run that finds an unfinished step of an earlier run looks for
its id in the table's history. If it is there and the outcome was recorded, the step is finished
(``recover`` says how where only its cells were recorded); else it never happened. Steps that
replace a whole table are simply done again. Nothing here decides what to build; that is
``planning``. A failure belongs to one model, and stops only its readers; ``run_progress`` keeps
count of it.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property

from infold.core.audits import audits_of
from infold.core.definition import Definition, Redefinition
from infold.core.environment import PRODUCTION
from infold.core.model import table_name
from infold.core.plan import (
    Action,
    ChangedKeyRows,
    Destroyed,
    InputDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Step,
)
from infold.core.ports import Engine, Lake, Ledger, Progress
from infold.core.project import Node, Project
from infold.core.record import Outcome, Receipt
from infold.core.report import RunFailed, RunResult
from infold.core.target import Apply
from infold.core.type_changes import Type
from infold.messages import apply_errors, errors, run_errors
from infold.messages.errors import InfoldError
from infold.planning.destructive import (
    destroyed,
    loss_notes,
    lost_types,
    policy,
    refuse_destructive,
    refuse_removals,
    refused_rebuilds,
    unrecorded_table,
)
from infold.planning.model_states import model_states
from infold.planning.plan_notes import definition_notes, refuse_nothing_applied
from infold.planning.planner import plan as make_plan
from infold.running.concurrent_batches import CommitTurn, side_by_side
from infold.running.damaged_tables import give_up_damaged
from infold.running.keep_definitions import (
    keep_definitions,
    refuse_not_forward_only,
    with_definitions,
)
from infold.running.ledger_consistency import refuse_other_project, warehouse_of
from infold.running.observe import Observer
from infold.running.publish import hold_back, publish, refresh_after_run
from infold.running.recovery import committed_snapshot, recover
from infold.running.run_progress import (
    Request,
    RunProgress,
    changed_cells,
    ends_run,
    is_selected,
    new_id,
    request_detail,
    step_detail,
    still_asked,
)
from infold.running.table_names import forget_table, remember_locations, table_keys
from infold.system import signals


@dataclass
class Runner:
    """One run of a project, from lease to receipt."""

    project: Project
    ledger: Ledger
    lake: Lake
    observer: Observer
    engine: Callable[[str, Plan], Engine]
    progress: Progress
    definitions: Callable[[], Mapping[str, Definition]] = dict
    """The definitions of the project's models, which the ledger keeps."""
    changes: Callable[[], Sequence[Redefinition]] = tuple
    """All definitions that changed since they were applied."""
    at_begin: Callable[[], Iterable[str]] = tuple
    """What is done before anything is observed, with the lease; yields notes, or raises."""
    record: Callable[[], Mapping[str, str]] | None = None
    """Records an environment, in place of definitions of the target; their digests by model."""
    at_end: Callable[[str], Iterable[str]] = lambda _: ()
    """What is done last, still with the lease, if nothing failed; yields notes. Gets the run."""
    writer_lock: Callable[[], AbstractContextManager[None]] = nullcontext
    """Excludes processes of a dead run that may still write; entered once the lease is held."""

    def run(self, request: Request) -> RunResult:
        """
        Observe, plan and execute until nothing that was asked for is stale.

        Raises InfoldError: ``locked``, ``over_budget`` and the like before anything is written.
        Raises RunFailed when a model could not be brought up to date, after all others were: its
        ``result`` says what was done nevertheless.
        """
        progress = RunProgress(new_id(), self.project, request.options, fail_fast=request.fail_fast)
        started = time.monotonic()
        refuse_other_project(self.project, self.ledger)
        refuse_nothing_applied(self.project)
        self.ledger.acquire(progress.run, wait=request.wait)
        try:
            with self.writer_lock():
                self._begin_run(progress, request, started)
                with self._record_failures(progress, started):
                    self._plan_and_execute(progress, request)
                    if not progress.failures:
                        progress.notes = (*progress.notes, *self.at_end(progress.run))
                    refresh_after_run(progress, self.ledger, self.lake)
                    result = progress.result(changed_cells(self.ledger, progress.done))
                self.ledger.finish_run(
                    progress.run, result.state, result.receipt, result.error or None
                )
        finally:
            self.ledger.release()
        result = replace(result, seconds=time.monotonic() - started)
        if result.failures:
            raise RunFailed(result) from result.failures[0].error
        return result

    def _begin_run(self, progress: RunProgress, request: Request, started: float) -> None:
        """Record that the run begins, and finish or undo what earlier runs left."""
        self.ledger.begin_run(
            progress.run, request.command, self.observer.as_of, request_detail(request)
        )
        with self._record_failures(progress, started):
            self.observer.check_ledger()
        if self.ledger.owner() is None:
            self.ledger.set_owner(self.project.name, warehouse_of(self.project))
        with self._record_failures(progress, started):
            recovered = recover(self.ledger, self.lake)
        self.observer.unrecovered = recovered.open
        with self._record_failures(progress, started):
            hold_back(self.project, self.ledger, self.lake)
        with self._record_failures(progress, started):
            begun = tuple(self.at_begin())
        lost = tuple(forget_lost(self.observer, progress.run))
        with self._record_failures(progress, started):
            changes = self.observer.redefinitions(self.ledger.traces())
            refuse_not_forward_only(self.project, changes, request.options)
            self._refuse_changes(progress, request)
            progress.digests = (
                self.record() if self.record else self._keep_definitions(request, changes)
            )
        # Whoever is killed before the definitions are kept has applied nothing: a removed model
        # of theirs is still to be built.
        removed = tuple(forget_removed_models(self.project, self.ledger))
        notes = (*recovered.notes, *begun, *removed, *lost, *definition_notes(self.project))
        progress.notes = (*notes, *progress.notes)

    def _keep_definitions(
        self, request: Request, changes: Mapping[str, Redefinition]
    ) -> Mapping[str, str]:
        return keep_definitions(
            *(self.project, self.ledger, self.definitions()),
            changes=changes,
            rebuilds_allowed=request.allow_refresh,
            forward_only=request.options.forward_only,
        )

    @cached_property
    def _destructive(self) -> DestructiveChanges:
        return DestructiveChanges(self.project, self.lake, self.changes)

    def _refuse_changes(self, progress: RunProgress, request: Request) -> None:
        """Raise what changed definitions destroy, or what is wrong with them: before they apply."""
        if not (self.project.applies or self._destructive.are_declared):
            return
        self.observer.removals_allowed = request.allow_removals
        observed = self.observer.observe_all()
        plan = make_plan(self.project, observed, request.options)
        self._destructive.refuse(plan, request.options)
        definitions = DefinitionsToAnalyse(self.project, progress.analysed)
        if self.project.applies and (new := definitions.not_analysed(observed, plan)):
            engine = self.engine(progress.run, plan)
            if mistakes := definitions.analyse(engine, new):
                raise errors.InfoldErrors(mistakes.values())
            progress.notes = self._destructive.refuse_types(engine, new, request.options)

    def _plan_and_execute(self, progress: RunProgress, request: Request) -> None:
        """Carry out what is ready and plan again, until nothing is ready any more."""
        answers = _Answers(self.project, progress, self.engine)
        while ready := self._next_steps(progress, request, answers):
            newest = progress.plans[-1]
            total = len(progress.done) + max(len(newest.steps), len(ready))
            self._execute_steps(progress, total, ready, answers.engine_for(newest))
        published = publish(progress, self.lake)
        if answers.engine is not None and progress.done and published:
            built = tuple(step.model for step, _ in progress.done)
            progress.notes = (*progress.notes, *answers.engine.maintain(built))
        self._remember_locations(progress)

    def _next_steps(
        self, progress: RunProgress, request: Request, answers: _Answers
    ) -> list[tuple[Step, CommitTurn]]:
        """The steps of a new plan that can be carried out together; none at the end."""
        known, allowed = unrecorded_table(self.ledger, self.lake), request.allow_refresh
        while True:
            options, observed, plan = self._observe_and_plan(progress, request, answers)
            if self._ask_for_keys(progress, answers, observed, plan):
                continue
            refused = refused_rebuilds(self.project, plan, options, known, allowed=allowed)
            if not self._refuse_inexact(progress, answers, plan, refused):
                break
        if not progress.plans:
            self._begin_work(progress, request, observed, plan)
        progress.plans.append(plan)
        progress.note_refused(observed.refused, plan)
        progress.note_refused(refused, plan)
        if not self._steps_ready(progress, plan, options):
            return []
        engine = answers.engine_for(plan)
        if new := answers.definitions.not_analysed(observed, progress.runnable(plan)):
            self._analyse(progress, answers.definitions, engine, new)
        return self._steps_ready(progress, plan, options, engine.models_at_once)

    def _observe_and_plan(
        self, progress: RunProgress, request: Request, answers: _Answers
    ) -> tuple[PlanOptions, Observations, Plan]:
        """What is still asked for, what is there, and what to do."""
        options = answers.derivations.limit(still_asked(request.options, progress.done))
        self.observer.restated = frozenset(options.restated)
        self.observer.removals_allowed = request.allow_removals
        observed = answers.key_locations.add_to(self.observer.observe_all())
        advance_traces(self.ledger, observed, self.project.shared)
        plan = make_plan(self.project, observed, options)
        return options, observed, with_definitions(plan, progress.digests)

    def _ask_for_keys(
        self, progress: RunProgress, answers: _Answers, observed: Observations, plan: Plan
    ) -> bool:
        """Ask Spark where changed keys are, if a plan depends on that; it has to be made again."""
        missing = answers.key_locations.unanswered(observed, progress.runnable(plan))
        if missing:
            self._locate_keys(progress, answers.key_locations, answers.engine_for(plan), missing)
        return bool(missing)

    def _refuse_inexact(
        self, progress: RunProgress, answers: _Answers, plan: Plan, refused: Container[str]
    ) -> bool:
        """Let Spark check derivations; whether one is not exact, so that the plan is another."""
        unchecked = answers.derivations.unchecked(
            step for step in progress.runnable(plan).steps if step.model not in refused
        )
        inexact = unchecked and answers.derivations.refuse(answers.engine_for(plan), unchecked)
        if inexact:
            progress.note_failed_models(not_forward_only(plan, inexact))
        return bool(inexact)

    def _analyse(
        self,
        progress: RunProgress,
        definitions: DefinitionsToAnalyse,
        engine: Engine,
        models: frozenset[str],
    ) -> None:
        """Analyse definitions, and their types before anything is written."""
        errors_by_model = definitions.analyse(engine, models)
        progress.note_failed_models(errors_by_model)
        if not progress.done:
            lost = self._destructive.refuse_types(engine, models, progress.options)
            progress.notes = (*progress.notes, *lost)

    def _begin_work(
        self, progress: RunProgress, request: Request, observed: Observations, plan: Plan
    ) -> None:
        """Refuse a first plan that does more than was allowed; note the states before it."""
        if request.max_rows is not None and plan.rows_to_read > request.max_rows:
            raise run_errors.over_budget(rows=plan.rows_to_read, max_rows=request.max_rows)
        refuse_removals(self.project, plan, allowed=request.allow_removals)
        lost = self._destructive.refuse(plan, request.options)
        progress.notes = (*progress.notes, *self.observer.empty.values(), *lost)
        progress.model_states = tuple(
            entry
            for entry in model_states(self.project, observed, plan)
            if is_selected(request, entry)
        )

    def _locate_keys(
        self,
        progress: RunProgress,
        key_locations: KeyLocations,
        engine: Engine,
        missing: Sequence[KeyQuestion],
    ) -> None:
        """
        Find where changed keys of lookups are; a failure belongs to the model that
        reads them.
        """
        for question in missing:
            try:
                key_locations.locate(engine, question)
            except Exception as error:  # noqa: BLE001 - one model's failure, whatever it is
                progress.note_failed_models({question[0]: self._as_model_error(error, question[0])})

    def _steps_ready(
        self, progress: RunProgress, plan: Plan, options: PlanOptions, at_once: int = 1
    ) -> list[tuple[Step, CommitTurn]]:
        """The steps that can be executed now; a model that stays stale again and again fails."""
        runnable = progress.runnable(plan)
        ready = side_by_side(self.project, self.lake, runnable, options.jobs, at_once)
        stale = [step for step, _ in ready if progress.repeats(step)]
        for step in stale:
            progress.note_failed(step, run_errors.still_stale(model=step.model))
        return self._steps_ready(progress, plan, options, at_once) if stale else ready

    def _execute_steps(
        self,
        progress: RunProgress,
        total: int,
        ready: Sequence[tuple[Step, CommitTurn]],
        engine: Engine,
    ) -> None:
        """
        Execute steps, at most so many at a time as the run or the engine says, or all batches of
        one model. What was begun ends, even if others fail. Ends are reported in order.
        """
        if len(ready) == 1:
            [(step, turn)] = ready
            seq = self._announce_step(progress, total, step)
            self._report_end(progress, step, self._try_step(progress.run, seq, step, engine, turn))
            return
        batches = sum(turn.lock is not None for _, turn in ready)
        at_once = min(progress.options.jobs or max(engine.models_at_once, batches), len(ready))
        idle = [engine, *(engine.concurrent(at) for at in range(at_once - 1))]
        waiting, unreported = deque(ready), deque[tuple[int, Step, Future[Receipt | InfoldError]]]()
        running: dict[Future[Receipt | InfoldError], Engine] = {}
        ended_by: BaseException | None = None
        # No `with`: it would wait for what runs, also after Ctrl-C.
        pool = ThreadPoolExecutor(at_once)
        try:
            while running or waiting:
                while waiting and idle:
                    step, turn = waiting.popleft()
                    seq, own = self._announce_step(progress, total, step), idle.pop()
                    future = pool.submit(self._try_step, progress.run, seq, step, own, turn)
                    unreported.append((seq, step, future))
                    running[future] = own
                for future in wait(running, return_when=FIRST_COMPLETED).done:
                    idle.append(running.pop(future))
                    if future.exception() is not None or (
                        progress.fail_fast and isinstance(future.result(), InfoldError)
                    ):
                        waiting.clear()
                while unreported and unreported[0][2].done():
                    seq, step, future = unreported.popleft()
                    if future.exception() is None:
                        self.progress.step(seq, total, step)
                        self._report_end(progress, step, future.result())
                    ended_by = ended_by or future.exception()
        finally:
            pool.shutdown(wait=False)
        if ended_by is not None:
            raise ended_by

    def _announce_step(self, progress: RunProgress, total: int, step: Step) -> int:
        """Say that a step begins; returns its number in the run, from 1."""
        progress.steps_begun += 1
        self.progress.step(progress.steps_begun, total, step)
        return progress.steps_begun

    def _report_end(
        self, progress: RunProgress, step: Step, result: Receipt | errors.InfoldError
    ) -> None:
        """Report the end of a step, and record it."""
        if isinstance(result, Receipt):
            self.progress.done(step, result)
            progress.done.append((step, result))
        else:
            self.progress.failed(step, result)
            if not give_up_damaged(self.project, self.ledger, progress, step, result):
                progress.note_failed(step, result)

    def _try_step(
        self, run: str, seq: int, step: Step, engine: Engine, turn: CommitTurn
    ) -> Receipt | errors.InfoldError:
        """Execute a step; returns its model's error. Raises errors that end the run."""
        try:
            with signals.before_errors():
                return self._execute_step(run, seq, step, engine, turn)
        except Exception as error:  # noqa: BLE001 - one model's failure, whatever it is
            return self._as_model_error(error, step.model)

    def _as_model_error(self, error: Exception, model: str) -> errors.InfoldError:
        """An error under its name, as its model's. Raises errors that end the run."""
        from infold.system import failures

        known = failures.as_user_error(error, self.project.root)
        if known.slug in failures.NAMELESS:
            known = known.with_facts(("model", model))
        if known is not error:
            known.__cause__ = error
        if ends_run(known):
            raise known from known.__cause__
        return known

    def _execute_step(
        self, run: str, seq: int, step: Step, engine: Engine, turn: CommitTurn
    ) -> Receipt:
        step_id = f"{run}-{seq}"
        self.ledger.begin_step(run, step_id, seq, step.model, step.action.value, step_detail(step))
        started = time.monotonic()

        def announce(early: Outcome) -> Outcome:
            expected = turn.take(early)
            self.ledger.prepare_step(step_id, expected)
            return expected

        with turn.released_after_error():
            try:
                outcome = engine.carry_out(step, step_id, announce)
            except Exception as error:
                from infold.system import failures

                # A commit without an answer may come yet: the next run finds the step open.
                if not (
                    failures.is_answer_lost(error)
                    or committed_snapshot(self.lake, step.model, step_id)
                ):
                    self.ledger.close_step(step_id, "failed", str(error), audits_of(error))
                    turn.release(None)
                raise
            receipt = replace(outcome.receipt, seconds=time.monotonic() - started)
            self.ledger.finish_step(step_id, replace(outcome, receipt=receipt))
            turn.release(outcome)
        return receipt

    def _remember_locations(self, progress: RunProgress) -> None:
        if self.observer.compared:
            self.ledger.remember_locations(self.observer.compared)
        if progress.done or self.observer.damage.checked_closely:
            remember_locations(self.project, self.ledger, self.lake, self.observer.damage.tables)

    @contextmanager
    def _record_failures(self, progress: RunProgress, started: float) -> Iterator[None]:
        """When something ends the run, record it as failed, with all that it did before."""
        try:
            with signals.before_errors():
                yield
        except Exception as error:
            from infold.system import failures

            known = failures.as_user_error(error, self.project.root)
            result = progress.result_after_error(known)
            result = replace(result, seconds=time.monotonic() - started)
            with suppress(errors.InfoldError):  # the ledger itself may be what failed
                self.ledger.finish_run(progress.run, result.state, result.receipt, known.what)
            if progress.done or len(result.failures) > 1:
                raise RunFailed(result) from error
            if known is error:
                raise
            raise known from error
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt | signals.Stopped):
                # Before the lease is given back: a JVM left alone would go on to commit.
                signals.end_children()
            with suppress(errors.InfoldError):
                why = f"stopped by {signals.stopped_by(error)}"
                self.ledger.finish_run(progress.run, "failed", progress.receipt, why)
            raise


# Without this a table would keep the version that it read last, for as long as it is not built. The
# ledger could not drop what changed since, and a fold would compare with a table of other columns.


def advance_traces(
    ledger: Ledger, observed: Observations, shared: Container[str] = frozenset()
) -> None:
    """
    Record the versions up to which nothing changed that a model reads; mostly there is none.

    Traces of some models are left alone.
    """
    versions_read: dict[str, dict[str, int]] = {}
    for name, model in observed.models.items():
        for diff in model.inputs:
            known = model.trace is not None and model.trace.inputs.get(diff.name)
            if known and known < diff.read_version and name not in shared:
                versions_read.setdefault(name, {})[diff.name] = diff.read_version
    if versions_read:
        ledger.advance(versions_read)


# Only the rows themselves show which cells have rows of changed keys. So a plan that was made
# before this search has all cells that may have some. A run searches, and plans again.

KeyQuestion = tuple[str, str, int, int, tuple[int, ...]]
"""A model, a lookup of it, which versions of that are compared, and those of all inputs."""


def unlocated_lookups(node: Node, model: ModelObservation) -> Iterator[InputDiff]:
    """The changed lookups of a model with keys that can be searched, and were not yet."""
    for diff in model.inputs:
        if diff.changes and diff.changed_keys is None and node.matches_of(diff.name):
            yield diff


@dataclass
class KeyLocations:
    """The answers of one run; each change of a lookup is searched once for each model."""

    project: Project
    answers: dict[KeyQuestion, ChangedKeyRows] = field(default_factory=dict)

    def unanswered(self, observed: Observations, plan: Plan) -> list[KeyQuestion]:
        """What must be searched before the steps of a plan can be executed."""
        questions = []
        for step in plan.steps:
            node = self.project[step.model]
            if not step.expected:
                model = observed.models[step.model]
                questions += [
                    _key_question(step.model, model, one) for one in unlocated_lookups(node, model)
                ]
        return [key for key in questions if key not in self.answers]

    def locate(self, engine: Engine, sought: KeyQuestion) -> None:
        """Have the engine search."""
        self.answers[sought] = engine.find_changed_keys(*sought[:4])

    def add_to(self, observed: Observations) -> Observations:
        """The observations with the answers so far."""
        models = {
            name: self._model_with_answers(name, model) for name, model in observed.models.items()
        }
        return replace(observed, models=models) if self.answers else observed

    def _model_with_answers(self, name: str, model: ModelObservation) -> ModelObservation:
        inputs = tuple(
            replace(
                diff,
                changed_keys=self.answers.get(_key_question(name, model, diff), diff.changed_keys),
            )
            for diff in model.inputs
        )
        return replace(model, inputs=inputs)


def _key_question(name: str, model: ModelObservation, diff: InputDiff) -> KeyQuestion:
    return (
        name,
        diff.name,
        diff.read_version,
        diff.newest_version,
        tuple(one.newest_version for one in model.inputs),
    )


# Definitions that tables were built by already are not checked again, so a daily run checks
# nothing. Readers of a model with a new definition are: that model may have other columns now.


@dataclass
class DefinitionsToAnalyse:
    """The definitions that one run has checked, so that none is checked twice."""

    project: Project
    analysed: set[str] = field(default_factory=set)

    def not_analysed(self, observed: Observations, plan: Plan) -> frozenset[str]:
        """The models of a plan that nothing was built from as they are defined now."""
        planned = {step.model for step in plan.steps} - self.analysed
        changed = {name for name in planned if self._definition_changed(observed, name)}
        return frozenset(changed | (planned & self.project.downstream(changed)))

    def _definition_changed(self, observed: Observations, name: str) -> bool:
        trace = observed.models[name].trace
        return trace is None or trace.fingerprint != self.project[name].fingerprint

    def analyse(self, engine: Engine, models: Collection[str]) -> Mapping[str, InfoldError]:
        """The errors in the definitions of some models, or of views that they read."""
        above = self.project.upstream(models)
        views = {name for name in above if self.project[name].model.kind.is_view}
        new = (views | set(models)) - self.analysed
        self.analysed.update(new)
        return engine.analyse(sorted(new))


# Only the engine knows the types of values. If it finds that a derived value might differ from one
# that is built, the plan is made again without that derivation.

_OF_TYPES = (Action.DERIVE, Action.REFOLD)
"""The actions that are exact only if values have the types of those that are stored."""


@dataclass
class ExactDerivations:
    """The derivations that one run has checked, so that none is checked twice."""

    _checked: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    def limit(self, options: PlanOptions) -> PlanOptions:
        """What was asked for, without derivations that are not exact."""
        return replace(options, not_derived=frozenset(self._refused))

    def unchecked(self, steps: Iterable[Step]) -> list[Step]:
        """
        The derivations among some steps that were not checked yet.

        An expected one is checked once its inputs are built: they may have other types then.
        """
        derive = (s for s in steps if s.action in _OF_TYPES and not s.expected)
        return [step for step in derive if step.model not in self._checked]

    def refuse(self, engine: Engine, steps: Iterable[Step]) -> frozenset[str]:
        """Check some derivations; the models of those that are not exact."""
        inexact = set()
        for step in steps:
            self._checked.add(step.model)
            if not engine.derives_exactly(step):
                inexact.add(step.model)
        self._refused |= inexact
        return frozenset(inexact)


@dataclass
class _Answers:
    """What a run has learned from Spark so far, which starts with the first question or step."""

    project: Project
    progress: RunProgress
    start: Callable[[str, Plan], Engine]
    engine: Engine | None = None
    derivations: ExactDerivations = field(default_factory=ExactDerivations)

    @cached_property
    def key_locations(self) -> KeyLocations:
        """Where changed keys of lookups are."""
        return KeyLocations(self.project)

    @cached_property
    def definitions(self) -> DefinitionsToAnalyse:
        """The definitions that Spark has typed."""
        return DefinitionsToAnalyse(self.project, self.progress.analysed)

    def engine_for(self, plan: Plan) -> Engine:
        """The engine of the run; the plan that needs it first says how large it is."""
        self.engine = self.engine or self.start(self.progress.run, plan)
        return self.engine


def not_forward_only(plan: Plan, models: Iterable[str]) -> Mapping[str, InfoldError]:
    """
    Those of some models that were to be changed forward-only, each with the refusal.

    A column that is there in all cells would have another type from some cell on.
    """
    why = "a column that it keeps would be of another type"
    since = {step.model for step in plan.steps if step.trace is not None and step.trace.earlier}
    return {
        model: apply_errors.not_forward_only(model=model, why=why)
        for model in models
        if model in since
    }


def forget_removed_models(project: Project, ledger: Ledger) -> Iterator[str]:
    """Readers no longer wait for models that were removed from the project."""
    if project.environment != PRODUCTION:
        return
    removed = ledger.traces().keys() - table_keys(ledger)
    for name in sorted(name for name in removed if name not in project):
        if project.target.protected:
            yield f"{name} is no longer in the project; what is known of it stays: protected"
        else:
            ledger.forget(name)
            yield f"{name} is no longer in the project; its table stays as it is"


def forget_lost(observer: Observer, run: str) -> Iterator[str]:
    """
    Forget models with a table that somebody dropped, or damaged where it is to be replaced anyway,
    so that readers see its rows go and come back.
    """
    for number, (name, why) in enumerate(observer.lost().items(), 1):
        step = f"{run}-gone{number}"
        forget_table(observer.ledger, None, run=run, step=step, seq=0, model=name)
        yield why


@dataclass
class DestructiveChanges:
    """
    The changes of one run that destroy something; all of them are refused together.

    ``changes`` gives all definitions that changed since they were applied, removed models too.
    """

    project: Project
    lake: Lake
    changes: Callable[[], Sequence[Redefinition]] = tuple

    @cached_property
    def _changes(self) -> Sequence[Redefinition]:
        """Those that there were when the run began: it applies them."""
        return self.changes()

    @property
    def are_declared(self) -> bool:
        """Whether a changed definition destroys something, so that a plan has to be looked at."""
        return any(change.destroys for change in self._changes)

    def refuse(self, plan: Plan, options: PlanOptions) -> tuple[str, ...]:
        """Raise what a plan may not destroy; what is said of the rest."""
        destroyed_tables = destroyed(self.project, plan, self._changes, self._columns, options)
        refuse_destructive(self.project, destroyed_tables)
        return tuple(loss_notes(destroyed_tables))

    def refuse_types(
        self, engine: Engine, models: Collection[str], options: PlanOptions
    ) -> tuple[str, ...]:
        """
        Raise where stored columns would lose values of their types, as only the engine can tell.

        What was applied was permitted: a run that goes on with it does not ask again.
        """
        if self.project.target.apply is Apply.MANUAL and not self.project.applies:
            return ()
        stored = {name: columns for name in sorted(models) if (columns := self._columns(name))}
        if not stored:
            return ()  # as in a first run: the engine analyses nothing for an answer without use
        destroyed_tables = [
            Destroyed(model, losses, policy(self.project, model, options))
            for name, types in engine.column_types(list(stored)).items()
            for model in (self._model_that_readers_have(name),)
            if (losses := lost_types(self.project[name], stored[name], types))
        ]
        refuse_destructive(self.project, destroyed_tables)
        return tuple(loss_notes(destroyed_tables))

    def _columns(self, model: str) -> Mapping[str, Type]:
        return self.lake.columns(table_name(self._model_that_readers_have(model)))

    def _model_that_readers_have(self, model: str) -> str:
        """The model with the table that readers have, where one is built apart."""
        return self.project.apart.get(model, model)
