"""The engine on Spark: carries out each step by its model's kind, and maintains the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from infold.core.model import Kind
from infold.core.plan import Action, ChangedKeyRows, Step
from infold.core.ports import Lake, Ledger, Prepared
from infold.core.project import Project, Stretch
from infold.core.record import Outcome
from infold.core.type_changes import Type
from infold.inspecting.as_built import Stretches
from infold.messages import errors, run_errors
from infold.spark import evolved_columns
from infold.spark.analyser import DefinitionAnalyser
from infold.spark.audits.tables import with_audits
from infold.spark.cumulative import fold, fold_versions
from infold.spark.damaged_tables import damaged_table
from infold.spark.events import build as events_build
from infold.spark.events import derived as events_derived
from infold.spark.inputs import changed_keys
from infold.spark.maintenance import Maintenance
from infold.spark.python_models import as_python_failure
from infold.spark.retyped_inputs import has_retyped_inputs, without_trace
from infold.spark.sessions import build as sessions_build
from infold.spark.sessions import derived as derived_sessions
from infold.spark.sessions import in_force as sessions_in_force
from infold.spark.step_context import Work
from infold.spark.storages import storage_of
from infold.spark.stored_types import as_stored
from infold.spark.tables.port import MaintainedTables
from infold.spark.time_range import derived, recompute
from infold.spark.unchanged_columns import with_unchanged_columns
from infold.system import failures

_KINDS: dict[Kind, Callable[[Work, Step, Prepared], Outcome]] = {
    Kind.EVENTS: events_build.carry_out,
    Kind.SESSIONS: sessions_in_force.carry_out,
    Kind.CUMULATIVE_AGGREGATE: fold.carry_out,
    Kind.SCD_TYPE_2: fold_versions.carry_out,
    Kind.TABLE: recompute.carry_out,
    Kind.INCREMENTAL_TABLE: recompute.carry_out,
}


def _derive(work: Work, step: Step, prepared: Prepared) -> Outcome:
    """The rows of a table follow from its stored rows."""
    return _derived(work.project, step).carry_out(work, step, prepared)


class _Derived(Protocol):
    """A module that makes rows of a changed definition from stored ones."""

    def derives_exactly(self, work: Work, step: Step) -> bool:
        """As ``ports.Engine.derives_exactly``."""

    def carry_out(self, work: Work, step: Step, prepared: Prepared) -> Outcome:
        """Replace the table by these rows, in one commit."""


def _derived(project: Project, step: Step) -> _Derived:
    """The module that carries out a step whose rows follow from stored ones."""
    kind = project[step.model].model.kind
    if kind is Kind.SESSIONS:
        return derived_sessions
    # After a forward-only change, stored events stay as they are.
    forward = step.trace is not None and bool(step.trace.earlier)
    return events_derived if kind is Kind.EVENTS and not forward else derived


_ACTIONS: dict[Action, Callable[[Work, Step, Prepared], Outcome]] = {
    Action.DERIVE: _derive,
    Action.REBUCKET: evolved_columns.carry_out_rebucketed,
    Action.EVOLVE: evolved_columns.carry_out_evolved,
}
"""What a step of any kind of table does by itself."""

_BY_CELLS = (Action.RECOMPUTE, Action.INGEST)
"""The actions that compute each cell by the definition in force there."""


@dataclass(frozen=True)
class SparkEngine:
    """Carries out the steps of one run in one Spark session."""

    spark: SparkSession
    project: Project
    ledger: Ledger
    lake: Lake
    run: str
    another: Callable[[int], SparkSession] | None = None
    """Further sessions of the same Spark, by number, for steps at the same time."""
    models_at_once: int = 1
    siblings: list[SparkEngine] = field(default_factory=list)

    @property
    def tables(self) -> MaintainedTables:
        """The project's stored tables."""
        return storage_of(self.project).tables(self.spark, self.project, self.lake)

    def work(self, step_id: str, earlier: tuple[Stretch, ...] = ()) -> Work:
        """What one step is carried out with."""
        of = self.spark, self.tables, self.ledger, self.project, self.run, step_id
        return Work(*of, earlier=earlier)

    def carry_out(self, step: Step, step_id: str, prepared: Prepared) -> Outcome:
        """One step, by its model's kind; what Spark refuses becomes ``run_errors.step_failed``."""
        node = self.project[step.model]
        earlier = self._earlier(step)
        try:
            with self.work(step_id, earlier) as work:
                if not earlier and has_retyped_inputs(work, step):
                    return without_trace(step, prepared)
                carry_out = _ACTIONS.get(step.action) or _KINDS[node.model.kind]
                if node.model.audits:
                    carry_out = with_audits(carry_out)
                return self._compared(work, step, carry_out(work, step, prepared))
        except (PySparkException, Py4JError) as error:
            if known := failures.known_failure(error):
                raise known from error
            if damaged := damaged_table(self.lake, self.tables, self._read(step), error):
                raise damaged[1] from error
            if failed := as_python_failure(node, error):
                raise failed from error
            said = words_and_condition(error)
            if said is None:
                raise
            what, condition = said
            failed = run_errors.step_failed(model=step.model, what=what, condition=condition)
            raise failed from error

    def _compared(self, work: Work, step: Step, outcome: Outcome) -> Outcome:
        """The outcome, with what a replaced table has left unchanged for its readers."""
        try:
            return with_unchanged_columns(work, step, outcome)
        except Exception:  # noqa: BLE001 (the table is committed; all its readers are built)
            return outcome

    def _earlier(self, step: Step) -> tuple[Stretch, ...]:
        """The cells that are computed by earlier definitions, with these compiled."""
        if step.trace is None or not step.trace.earlier:
            return ()
        folds = self.project[step.model].model.kind is Kind.SESSIONS
        if not folds and step.action not in _BY_CELLS:
            return ()
        return Stretches(self.project, self.ledger, declared=True)(step.trace)

    def _read(self, step: Step) -> list[str]:
        """The stored tables that a step reads; its own too if it was built before."""
        node = self.project[step.model]
        inputs = [entry.name for entry in node.stored_inputs]
        return [*inputs, *([step.model] if step.previous_trace is not None else [])]

    def find_changed_keys(self, model: str, lookup: str, since: int, upto: int) -> ChangedKeyRows:
        """As ``ports.Engine.find``."""
        try:
            with self.work("") as work:
                return changed_keys.locate_changed_keys(
                    work, self.project[model], lookup, since, upto
                )
        except Exception:  # noqa: BLE001 (the step that reads all rows reports it)
            return ChangedKeyRows(everywhere=True)

    def analyse(self, models: Sequence[str]) -> Mapping[str, errors.InfoldError]:
        """
        What is wrong with the definitions of some models; nothing is executed.

        A model that reads one with a wrong definition is not judged.
        """
        return DefinitionAnalyser(self.project, lambda: self.work("")).judge(models)

    def column_types(self, models: Sequence[str]) -> Mapping[str, Mapping[str, Type]]:
        """As ``ports.Engine.column_types``; definitions that are wrong have none."""
        analyser = DefinitionAnalyser(self.project, lambda: self.work(""))
        analyser.judge(models)
        return {
            name: {
                field.name: as_stored(field.dataType).jsonValue()
                for field in analyser.schemas[name]
            }
            for name in models
            if name in analyser.schemas
        }

    def derives_exactly(self, step: Step) -> bool:
        """As ``ports.Engine.derives_exactly``."""
        with self.work("") as work:
            if step.action is Action.REFOLD:
                return sessions_build.refolds_exactly(work, step)
            return _derived(self.project, step).derives_exactly(work, step)

    def concurrent(self, number: int) -> SparkEngine:
        """An engine with a session of its own, made once for each number."""
        while self.another is not None and len(self.siblings) <= number:
            self.siblings.append(
                replace(self, spark=self.another(len(self.siblings)), another=None, siblings=[])
            )
        return self.siblings[number] if self.siblings else self

    def maintain(self, models: Sequence[str]) -> Sequence[str]:
        """As ``ports.Engine.maintain``; the table of rows that are set aside as well."""
        care = Maintenance(self.tables, self.ledger, self.lake)
        return care.maintain([*models, *(self.project.set_aside for _ in models)])


_MOST = 500
_HIDDEN = re.compile(r"\bSpark\w*Exception: (\[([A-Z][A-Z0-9_.]*)\].*)")
"""
An error with a condition in the text of another: what is computed to be broadcast fails with a
``java.util.concurrent.ExecutionException``, which PySpark does not know.
"""


def words_and_condition(error: PySparkException | Py4JError) -> tuple[str, str] | None:
    """Spark's message without its stack trace, and its condition; None: it is not Spark's."""
    if isinstance(error, PySparkException):
        lines = [line for line in str(error).splitlines() if line.strip()]
        what = lines[0] if lines else type(error).__name__
        return what[:_MOST], error.getCondition() or type(error).__name__
    hidden = _HIDDEN.search(str(error))
    return (hidden[1].strip()[:_MOST], hidden[2]) if hidden else None
