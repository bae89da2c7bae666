"""What a step is carried out with: Spark session, tables, ledger, and its pinned inputs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from typing import Self

from pyspark.sql import DataFrame, SparkSession

from infold.analysis.sql.token_calls import has_alias
from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.ports import Announce, Ledger
from infold.core.project import Bound, Input, Node, Project, Stretch
from infold.core.queries import quoted
from infold.core.record import Outcome
from infold.core.trace import CellState
from infold.spark.content import (
    time_predicate,
    user_columns,
)
from infold.spark.jvm.session_settings import settings_of_one_plan
from infold.spark.python_functions.register import register_functions
from infold.spark.python_models import python_rows
from infold.spark.session_facts import make_active, parallelism
from infold.spark.tables.port import Stamp, Tables

_view_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class RemovedRows:
    """The rows that the commit of a snapshot removed from a table; those that moved are none."""

    snapshot: int
    rows: DataFrame


def _unchanged_outcome(outcome: Outcome) -> Outcome:
    """The outcome of a step that is alone, and that no ledger has to know of."""
    return outcome


@dataclass(frozen=True)
class Work:
    """
    What one step is carried out with. Inputs are read at the versions that the step names.

    It is a context (``with``), left when the rows are written: until then Spark resolves names.
    """

    spark: SparkSession
    tables: Tables
    ledger: Ledger
    project: Project
    run: str
    step_id: str
    earlier: tuple[Stretch, ...] = ()
    """The cells of the step's table that keep rows of earlier definitions, with these."""
    announce: Announce = _unchanged_outcome
    """Has the ledger know what a commit will do; ``step_commit`` alone calls it."""
    views: dict[str, str] = field(default_factory=dict)
    """
    Temporary views, and the table, source or view whose rows each has.

    Spark keeps what they are made from until they are dropped.
    """
    removed: dict[str, RemovedRows] = field(default_factory=dict)
    """By table, what this run's newest commit removed, where its step had these rows anyway."""

    def definitions_of(self, model: str) -> tuple[DefinitionInForce, ...]:
        """The definitions in force of the step's table, the newest first: mostly that alone."""
        stretches = Ranges.of(part for stretch in self.earlier for part in stretch.cells)
        newest = DefinitionInForce(
            Ranges.ever() - stretches, self.project[model], self, is_newest=True
        )
        return newest, *(
            DefinitionInForce(
                *(stretch.cells, stretch.node, replace(self, project=stretch.project, earlier=())),
                is_newest=False,
            )
            for stretch in self.earlier
        )

    def __post_init__(self) -> None:
        make_active(self.spark)
        register_functions(self.spark, self.project)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        # If Spark is lost, that error is to be raised, and not that the views cannot be dropped.
        with nullcontext() if kind is None else suppress(Exception):
            while self.views:
                self.spark.catalog.dropTempView(self.views.popitem()[0])

    def planned_once(self, *, few: bool) -> AbstractContextManager[None]:
        """Settings for actions that shuffle ``few`` rows; without, those of the session."""
        if not few:
            return nullcontext()
        return settings_of_one_plan(self.spark, 2 * parallelism(self.spark))

    def stamp(self, step: Step) -> Stamp:
        """What the step's commit carries."""
        inputs = {name: upto for name, (_, upto) in step.inputs.items()}
        return Stamp(run=self.run, step=self.step_id, version=step.version, inputs=inputs)

    def cells(self, model: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells of a table as the ledger knows them."""
        return self.ledger.cells(model, within)

    def snapshot(self, model: str, version: int) -> int | None:
        """The snapshot of a version of a table; None when the table was dropped with it."""
        for entry in reversed(self.ledger.versions(model, version - 1)):
            if entry.number == version:
                return entry.snapshot
        return None

    def rows_removed(self, name: str, since: int, upto: int) -> DataFrame | None:
        """The rows that one version removed from a table; None where this run has them not."""
        kept = self.removed.get(name)
        if kept is None or kept.rows.sparkSession is not self.spark:
            return None
        between = [one for one in self.ledger.versions(name, since) if one.number <= upto]
        return kept.rows if [one.snapshot for one in between] == [kept.snapshot] else None

    def frame(
        self,
        name: str,
        version: int,
        *,
        column: str | None = None,
        ranges: Ranges | None = None,
    ) -> DataFrame:
        """A stored table at a version, technical columns included; as ``Tables.read`` has it."""
        snapshot = self.snapshot(name, version)
        return self.tables.read(name, snapshot, column=column, ranges=ranges)

    def inputs(self, node: Node, step: Step, cells: Ranges | None = None) -> dict[str, DataFrame]:
        """
        Every stored input of a step at the version to read, technical columns left out.

        With ``cells``, maybe without rows that these cells of the output are not made from.
        """
        return {
            entry.name: user_columns(
                self.frame(
                    entry.name,
                    step.inputs[entry.name][1],
                    column=entry.time_column,
                    ranges=_times_read(entry, cells),
                )
            )
            for entry in node.inputs
        }

    def sql(
        self, node: Node, frames: Mapping[str, DataFrame], cells: Ranges | None = None
    ) -> DataFrame:
        """
        The model's query over ``frames``, its stored inputs by name; of one in Python its function.

        The user's text is not changed, except that names in FROM are replaced by temporary views.
        Models that are views are evaluated in place. With ``cells``, each input is limited to the
        rows that these cells of the output are made from.
        """
        needed = frames if cells is None else self._narrowed(node, frames, cells)
        if node.model.python is not None:
            tables = sorted(node.references, key=lambda entry: entry.start)
            views = (self._view(reference.name, needed) for reference in tables)
            return python_rows(node, [self.spark.table(view) for view in views])
        parts: list[str] = []
        at = 0
        view_names: dict[tuple[str, Bound | None], str] = {}
        for reference in sorted(node.references, key=lambda entry: entry.start):
            name, bound = reference.name, None if cells is None else reference.bound
            if (name, bound) not in view_names:
                if bound is not None and cells is not None and name in frames:
                    rows = _rows_during(frames[name], node.input(name), bound.times_read(cells))
                    view_names[name, bound] = self.named_view(name, rows)
                else:
                    view_names[name, bound] = self._view(name, needed)
            parts += [node.model.sql[at : reference.start], view_names[name, bound]]
            if not has_alias(node.model.sql, reference.end):
                parts.append(f" AS {quoted(reference.name.rpartition('.')[2])}")
            at = reference.end
        parts.append(node.model.sql[at:])
        return self.spark.sql("".join(parts))

    def _narrowed(
        self, node: Node, frames: Mapping[str, DataFrame], cells: Ranges
    ) -> dict[str, DataFrame]:
        """Every input, limited to the rows that the model reads for these cells in any way."""
        return {
            entry.name: _rows_during(frames[entry.name], entry, entry.times_read(cells))
            for entry in node.inputs
        }

    def _view(self, name: str, frames: Mapping[str, DataFrame]) -> str:
        frame = frames.get(name)
        return self.named_view(
            name, self.sql(self.project[name], frames) if frame is None else frame
        )

    def named_view(self, name: str, frame: DataFrame) -> str:
        """The name of a new temporary view of a frame."""
        view = f"infold_view_{next(_view_numbers)}"
        self.views[view] = name
        frame.createOrReplaceTempView(view)
        return view


@dataclass(frozen=True, slots=True)
class DefinitionInForce:
    """
    One definition of a step's table, with the cells that it holds for, and what evaluates it.

    After a forward-only change the cells before it keep the rows of the definition that built them,
    and are built by that one again. ``work`` has a project with the model by this definition.
    """

    cells: Ranges
    node: Node
    work: Work
    is_newest: bool


def _times_read(entry: Input, cells: Ranges | None) -> Ranges | None:
    """The times that an input is read of; None of one that is a lookup."""
    return None if cells is None or entry.time_column is None else entry.times_read(cells)


def _rows_during(frame: DataFrame, entry: Input, times: Ranges) -> DataFrame:
    """The rows of an input at certain times; a lookup whole."""
    name = entry.time_column
    if name is None:
        return frame
    return frame.where(time_predicate(frame, name, times))
