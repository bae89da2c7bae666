"""The engine on Spark: carries out each step by its model's kind, and maintains the tables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.analysis.names.subject import time_column
from infold.core.interval import MIN, Interval, Ranges
from infold.core.model import Kind
from infold.core.plan import Action, ChangedKeyRows, Step
from infold.core.ports import Announce, Lake, Ledger
from infold.core.project import Node, Project, Stretch, starting
from infold.core.record import Outcome
from infold.core.trace import CellState, Unchanged, was_dropped
from infold.core.type_changes import Type
from infold.inspecting.as_built import Stretches
from infold.messages import errors, run_errors
from infold.spark import derivations
from infold.spark.analyser import DefinitionAnalyser
from infold.spark.content import cell_states, column, rows_in_cells
from infold.spark.cumulative import fold, fold_versions
from infold.spark.damaged_tables import damaged_table
from infold.spark.events import build as events_build
from infold.spark.inputs import changed_keys
from infold.spark.maintenance import Maintenance
from infold.spark.python_models import as_python_failure
from infold.spark.sessions import in_force as sessions_in_force
from infold.spark.step_commit import without_trace
from infold.spark.step_context import RemovedRows, Work
from infold.spark.storages import storage_of
from infold.spark.stored_types import as_stored
from infold.spark.tables.port import MaintainedTables
from infold.spark.time_range import recompute
from infold.system import failures

CarryOut = Callable[[Work, Step], Outcome]

_KINDS: dict[Kind, CarryOut] = {
    Kind.EVENTS: events_build.carry_out,
    Kind.SESSIONS: sessions_in_force.carry_out,
    Kind.CUMULATIVE_AGGREGATE: fold.carry_out,
    Kind.SCD_TYPE_2: fold_versions.carry_out,
    Kind.TABLE: recompute.carry_out,
    Kind.INCREMENTAL_TABLE: recompute.carry_out,
}


_BY_CELLS = (Action.RECOMPUTE, Action.INGEST)
"""Actions that compute each cell by the definition in force there, an earlier one maybe."""


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
    removed: dict[str, RemovedRows] = field(default_factory=dict)
    """As ``Work.removed``: one step's commit is what the next ones read."""

    @property
    def tables(self) -> MaintainedTables:
        """The project's stored tables."""
        return storage_of(self.project).tables(self.spark, self.project, self.lake)

    def work(self, step_id: str, earlier: tuple[Stretch, ...] = ()) -> Work:
        """What one step is carried out with."""
        arguments = self.spark, self.tables, self.ledger, self.project, self.run, step_id
        return Work(*arguments, earlier=earlier, removed=self.removed)

    def carry_out(self, step: Step, step_id: str, announce: Announce) -> Outcome:
        """One step, by its model's kind; what Spark refuses becomes ``run_errors.step_failed``."""
        node = self.project[step.model]
        start = step.trace.retention.start if step.trace is not None else MIN
        earlier = starting(self._earlier_stretches(step), start)
        project = self.project.starting(step.model, start)
        work = replace(self.work(step_id, earlier), announce=announce, project=project)
        try:
            with work:
                keeps_cells = step.previous_trace is not None and step.previous_trace.keeps_cells
                if not keeps_cells and _has_retyped_inputs(work, step):
                    return without_trace(work, step)
                own_rows = step.action.of_own_rows
                carry_out = derivations.carry_out if own_rows else _KINDS[node.model.kind]
                return self._with_unchanged(work, step, carry_out(work, step))
        except (PySparkException, Py4JError) as error:
            if known := failures.known_failure(error):
                raise known from error
            if damaged := damaged_table(self.lake, self.tables, self._tables_read(step), error):
                raise damaged[1] from error
            if failed := as_python_failure(node, error):
                raise failed from error
            message = words_and_condition(error)
            if message is None:
                raise
            what, condition = message
            failed = run_errors.step_failed(model=step.model, what=what, condition=condition)
            raise failed from error

    def _with_unchanged(self, work: Work, step: Step, outcome: Outcome) -> Outcome:
        """The outcome, with what a replaced table has left unchanged for its readers."""
        try:
            return with_unchanged_columns(work, step, outcome)
        except Exception:  # noqa: BLE001 (the table is committed; all its readers are built)
            return outcome

    def _earlier_stretches(self, step: Step) -> tuple[Stretch, ...]:
        """The cells that are computed by earlier definitions, with these compiled."""
        if step.trace is None or not step.trace.earlier:
            return ()
        folds = self.project[step.model].model.kind is Kind.SESSIONS
        if not folds and step.action not in _BY_CELLS:
            return ()
        return Stretches(self.project, self.ledger, declared=True)(step.trace)

    def _tables_read(self, step: Step) -> list[str]:
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
            return derivations.derives_exactly(work, step)

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


# A table that is built cell by cell keeps the types of its columns. If an input was replaced by one
# with other types, a rebuild would give the model's table other types too, so all of it is built.

_BY_PARTS = (Kind.INCREMENTAL_TABLE, Kind.EVENTS)
"""The kinds that add rows to a table without looking at the types of their inputs."""


def _has_retyped_inputs(work: Work, step: Step) -> bool:
    """Whether a column that a step reads has another type than when its table was last built."""
    node = work.project[step.model]
    if step.action is Action.BUILD or step.action.of_own_rows or node.model.kind not in _BY_PARTS:
        return False
    for name, (since, upto) in step.inputs.items():
        versions = [v for v in work.ledger.versions(name, since) if v.number <= upto]
        if not since or not any(version.whole for version in versions):
            continue
        if was_dropped(versions) or work.snapshot(name, since) is None:
            return True  # what it was can no longer be seen
        before, after = (_column_types(work, name, version) for version in (since, upto))
        retyped = {
            column for column in before.keys() & after.keys() if before[column] != after[column]
        }
        columns_read = ColumnsRead(work.project)(node.name, name) if retyped else frozenset()
        if retyped if columns_read is None else retyped & columns_read:
            return True
    return False


def _column_types(work: Work, name: str, version: int) -> Mapping[str, str]:
    return {column.lower(): type_ for column, type_ in work.frame(name, version).dtypes}


_MOST_CHARACTERS = 500
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
        return what[:_MOST_CHARACTERS], error.getCondition() or type(error).__name__
    hidden = _HIDDEN.search(str(error))
    return (hidden[1].strip()[:_MOST_CHARACTERS], hidden[2]) if hidden else None


# Once a table is replaced, its cells have other content wherever a column was added, taken away or
# computed in another way. Readers that use none of these columns need not be built. For each set of
# columns that some reader uses, the rows before and after are compared in these columns alone, as
# the content of cells is: by sums of hashes.
#
# Only cells with as many rows as before are compared; others are different for everybody.

_MOST_SETS = 16
"""Of so many sets of columns readers profit; each costs two more passes over the table's rows."""


def with_unchanged_columns(work: Work, step: Step, outcome: Outcome) -> Outcome:
    """The outcome of a step, with what it left unchanged if it replaced a table that was there."""
    if not outcome.whole or outcome.snapshot is None:
        return outcome
    old = work.snapshot(step.model, outcome.version - 1)
    cells = [c.cell for c in outcome.changes if c.changes_rows and c.rows_before == c.rows_after]
    if old is None or not cells:
        return outcome
    before, current = (work.tables.read(step.model, at) for at in (old, outcome.snapshot))
    same, node = _same_columns(before, current), work.project[step.model]
    unchanged = []
    for columns in _columns_read(work.project, node)[:_MOST_SETS]:
        if columns <= same.keys():
            names = [same[name] for name in sorted(columns)]
            earlier, new = (
                _contents_in_columns(node, rows, names, cells) for rows in (before, current)
            )
            equal = Ranges.of(
                cell for cell in cells if cell in earlier and earlier[cell] == new.get(cell)
            )
            unchanged += [Unchanged(columns, equal)] if equal else []
    return replace(outcome, unchanged=tuple(unchanged))


def _columns_read(project: Project, table: Node) -> list[frozenset[str]]:
    """
    The sets of columns that the readers of a table use, those of all columns left out.

    The column that puts rows into cells is always one of them.
    """
    read, time = ColumnsRead(project), time_column(table)
    column_sets = {
        read(node.name, table.name)
        for node in project
        if node.model.kind.is_stored
        and any(entry.name == table.name for entry in node.stored_inputs)
    }
    of_cells = {time.lower()} if time else set[str]()
    with_time_column = {columns | of_cells for columns in column_sets if columns is not None}
    return sorted(with_time_column, key=sorted)


def _same_columns(before: DataFrame, current: DataFrame) -> Mapping[str, str]:
    """
    The columns that both have with one type: the lower-case name, and the name as it is now.

    Values of two types may hash alike, as 100 and 1.00 do.
    """
    old = {field.name.lower(): field.dataType for field in before.schema.fields}
    return {
        field.name.lower(): field.name
        for field in current.schema.fields
        if old.get(field.name.lower()) == field.dataType
    }


def _contents_in_columns(
    node: Node, rows: DataFrame, names: Sequence[str], cells: Sequence[Interval]
) -> Mapping[Interval, CellState]:
    """The states of some cells, seen in some columns."""
    granularity, time = node.model.granularity, time_column(node)
    rows_of_cells = rows if time is None else rows_in_cells(rows, time, cells, granularity)
    return cell_states(rows_of_cells.select(*map(column, names)), time, granularity)
