"""
Inputs whose columns have another type since a model was built: then its table may have another one.

A table that is built cell by cell keeps the types of its columns. If an input was replaced by one
with other types, a rebuild would give the model's table other types too, so all of it is built: its
trace is made to hold no longer, and the run plans again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.analysis.definitions.columns_read import ColumnsRead
from infold.core.model import Kind
from infold.core.plan import Action, Step
from infold.core.ports import Prepared
from infold.core.record import Outcome
from infold.core.trace import UNKNOWN, was_dropped
from infold.spark.step_context import Work

_BY_PARTS = (Kind.INCREMENTAL_TABLE, Kind.EVENTS)
"""The kinds that add rows to a table without looking at the types of their inputs."""


def has_retyped_inputs(work: Work, step: Step) -> bool:
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
        before, now = (_types(work, name, version) for version in (since, upto))
        other = {column for column in before.keys() & now.keys() if before[column] != now[column]}
        read = ColumnsRead(work.project)(node.name, name) if other else frozenset()
        if other if read is None else other & read:
            return True
    return False


def without_trace(step: Step, prepared: Prepared) -> Outcome:
    """The outcome of a step that writes nothing, as the whole table has to be built."""
    assert step.previous_trace is not None, "a table that is built in parts was built before"
    nothing = Outcome(step.model, step.version, step.previous_trace, committed=False)
    unknown = replace(step.previous_trace, fingerprint=UNKNOWN, definition="")
    return replace(prepared(nothing), trace=unknown)


def _types(work: Work, name: str, version: int) -> Mapping[str, str]:
    return {column.lower(): type_ for column, type_ in work.frame(name, version).dtypes}
