"""
What a model that folds reads: stored tables, maybe through views, at two versions of each.

A view that is folded makes each of its rows of one row of one table, and of the lookup rows that
this row matches. So the view over added rows gives the rows added to the view, and the same for
removed rows. Where keys of a lookup changed, all rows with one of them count as removed, seen with
the lookup as it was, and as added, seen with it as it is.

Frames have the columns of the view; without a view those of the stored table, technical ones
included (see ``changed_rows``).
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from infold.core.interval import Ranges
from infold.core.plan import Step
from infold.core.project import Input, Match, Node
from infold.core.trace import CellState
from infold.spark.content import rows_in_cells, time_predicate, user_columns
from infold.spark.inputs.changed_keys import rows_with_changed_key, rows_without_changed_key
from infold.spark.inputs.changed_rows import ChangedRows, changed_table, traceable_table
from infold.spark.step_context import Work


def foldable(work: Work, node: Node, step: Step) -> bool:
    """Whether a table exists to fold into, and all its inputs still have the columns they had."""
    return work.tables.exists(step.model) and all(
        traceable_table(work, name, since, upto, compared=node.is_lookup(name))
        for name, (since, upto) in step.inputs.items()
        if since != upto
    )


class Feed:
    """The tables that feed a model under the name in its FROM, and what changed in them."""

    def __init__(self, work: Work, node: Node, step: Step, name: str) -> None:
        self.work, self.node, self.step, self.name = work, node, step, name
        self.names = [entry.name for entry in node.folded_inputs]
        self.beside = [entry.name for entry in node.inputs if entry.name not in self.names]

    @cached_property
    def changed(self) -> Mapping[str, ChangedRows]:
        """What changed in each of the tables."""
        return {entry.name: self._changes_of(entry) for entry in self.node.folded_inputs}

    @cached_property
    def lookups(self) -> Mapping[str, ChangedRows]:
        """What changed in those lookups that changed."""
        changed_by_name = {name: self._changes_of(self.node.input(name)) for name in self.beside}
        return {name: changed for name, changed in changed_by_name.items() if changed.changes}

    def _changes_of(self, entry: Input) -> ChangedRows:
        key = self.work.project[entry.name].model.unique_key
        since, upto = self.step.inputs[entry.name]
        return changed_table(self.work, entry.name, since, upto, time=entry.time_column, key=key)

    # -- what it costs, and where it is

    @property
    def rows(self) -> int:
        """About how many rows were added or removed."""
        of_keys = 2 * sum(rows for _, _, rows in self.step.changed_key_rows)
        return sum(changed.rows for changed in self.changed.values()) + of_keys

    @property
    def rows_to_scan(self) -> int:
        """How many rows have to be scanned to find them."""
        all_changes = (*self.changed.values(), *self.lookups.values())
        scanned = sum(changed.rows_to_scan for changed in all_changes)
        for name, times, _ in self.step.changed_key_rows:
            scanned += 2 * sum(state.rows for state in self.work.cells(name, times))
        return scanned + self.step.scanned

    @property
    def times(self) -> Ranges:
        """The cells with changed rows, and with rows of changed lookup keys."""
        cells = (c.cell for changed in self.changed.values() for c in changed.changes)
        key_times = (part for _, times, _ in self.step.changed_key_rows for part in times)
        return Ranges.of((*cells, *key_times))

    @property
    def cells(self) -> list[CellState]:
        """The cells of all tables that feed the model."""
        return [state for name in self.names for state in self.work.cells(name)]

    # -- rows, as the view shows them

    @cached_property
    def current(self) -> DataFrame:
        """All rows, at the versions that the step reads."""
        return self._through_view({name: self._frame(name) for name in self.names})

    def during(self, times: Ranges) -> DataFrame:
        """All rows of certain times."""
        frames = {}
        for entry in self.node.folded_inputs:
            rows = self._frame(entry.name)
            assert entry.time_column is not None, "what is read by time has times"
            frames[entry.name] = rows.where(time_predicate(rows, entry.time_column, times))
        return self._through_view(frames)

    def arrived(self) -> DataFrame:
        """The rows that were added to the tables."""
        return self._through_view({name: changed.added() for name, changed in self.changed.items()})

    def added(self) -> DataFrame:
        """The rows that were not there before, with all rows of changed lookup keys."""
        frames = {}
        for name, changed in self.changed.items():
            frames[name] = self._with_keys(name, changed, changed.added(), changed.current)
        return self._through_view(frames)

    def removed(self) -> DataFrame | None:
        """The rows that are no longer there, the same way; None when nothing was removed."""
        frames = {}
        for name, changed in self.changed.items():
            rows = changed.removed()
            if changed.before is not None and self._changed_matches(name):
                nothing = changed.before.where(F.lit(False))
                rows = self._with_keys(
                    name, changed, nothing if rows is None else rows, changed.before
                )
            if rows is not None:
                frames[name] = rows
        if not frames:
            return None
        empty = {
            n: c.current.where(F.lit(False)) for n, c in self.changed.items() if n not in frames
        }
        return self._through_view({**empty, **frames}, before=True)

    def _changed_matches(self, name: str) -> list[Match]:
        matches = (match for match in self.node.matches if match.lookup in self.lookups)
        return [match for match in matches if match.input == name]

    def _with_keys(
        self, name: str, changed: ChangedRows, rows: DataFrame, all_rows: DataFrame
    ) -> DataFrame:
        """Some rows of a table; rows with changed lookup keys are replaced by all that have one."""
        matches = self._changed_matches(name)
        if not matches:
            return rows
        candidates = all_rows
        if changed.time is not None:
            key_times = (
                part
                for table, times, _ in self.step.changed_key_rows
                if table == name
                for part in times
            )
            cells = [*key_times, *(change.cell for change in changed.changes)]
            candidates = rows_in_cells(all_rows, changed.time, cells, None)
        rows_of_keys = rows_with_changed_key(candidates, matches, self.lookups)
        return rows_without_changed_key(user_columns(rows), matches, self.lookups).unionByName(
            user_columns(rows_of_keys)
        )

    def _through_view(self, frames: Mapping[str, DataFrame], *, before: bool = False) -> DataFrame:
        """Rows of the tables as the view shows them, with lookups as they are, or as they were."""
        if self.name in frames:
            return frames[self.name]
        lookups = {name: self._lookup(name, before=before) for name in self.beside}
        several = len(frames) > 1 or bool(lookups)
        inputs = {name: user_columns(frame) if several else frame for name, frame in frames.items()}
        return self.work.sql(self.work.project[self.name], {**inputs, **lookups})

    def _frame(self, name: str) -> DataFrame:
        return self.work.frame(name, self.step.inputs[name][1])

    def _lookup(self, name: str, *, before: bool) -> DataFrame:
        changed = self.lookups.get(name) if before else None
        if changed is None:
            return user_columns(self._frame(name))
        if changed.before is None:
            return user_columns(changed.current).where(F.lit(False))
        return user_columns(changed.before)
