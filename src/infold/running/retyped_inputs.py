"""
Inputs whose columns have other types since a model read them, though no row is another one.

Row hashes do not always tell a type from a wider one, and a table may have no rows yet. Nothing in
the contents of cells says then that a rebuild would give the model's own columns other types. The
metadata of the tables does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from infold.core.model import table_name
from infold.core.ports import Lake
from infold.core.project import Node, Project
from infold.core.trace import UNKNOWN, Trace, Version
from infold.messages.errors import InfoldError
from infold.running.read_columns import InputChanges


@dataclass(frozen=True)
class RetypedInputs:
    """What became of traces, and the inputs whose metadata cannot be read, each with the error."""

    traces: dict[str, Trace] = field(default_factory=dict)
    """Those that hold no longer, without their definition."""
    unreadable: dict[str, InfoldError] = field(default_factory=dict)


def without_retyped_inputs(
    project: Project,
    changes: InputChanges,
    lake: Lake,
    traces: Mapping[str, Trace],
    heads: Mapping[str, Version],
) -> RetypedInputs:
    """
    The traces that hold no longer, as a column that the model reads is of another type.

    A table with cells of earlier definitions is not built as a whole: where its own columns would
    be of other types, the next step is refused.
    """
    found = RetypedInputs()
    for node in project:
        trace = traces.get(node.name)
        if trace is None or trace.fingerprint != node.fingerprint or node.name in project.shared:
            continue
        if trace.earlier:
            continue
        for name in trace.inputs:
            try:
                retyped = _is_retyped(node, name, trace, heads, changes, lake)
            except InfoldError as error:
                found.unreadable[name] = error
                continue
            if retyped:
                found.traces[node.name] = replace(trace, fingerprint=UNKNOWN, definition="")
                break
    return found


def _is_retyped(
    node: Node,
    name: str,
    trace: Trace,
    heads: Mapping[str, Version],
    changes: InputChanges,
    lake: Lake,
) -> bool:
    """
    Whether only types of an input have changed, and one of a column that the model reads.

    Up to the version that a step would begin with: it compares the types from there on itself.
    """
    read, head = trace.inputs[name], heads.get(name)
    if not read or head is None or head.number <= read:
        return False
    versions = changes.ledger.versions(name, read - 1)
    whole = min((one.number for one in versions if one.whole and one.number > read), default=None)
    if whole is None:
        return False
    since, changed = changes.since(node, name, read, head.number)
    upto = since if changed else head.number
    snapshots = {one.number: one.snapshot for one in versions}
    before, after = snapshots.get(read), snapshots.get(upto)
    if before is None or after is None or upto < whole:
        return False
    old, new = (
        {column.lower(): type_ for column, type_ in columns.items()}
        for columns in (lake.columns(table_name(name), at) for at in (before, after))
    )
    other = {column for column in old.keys() & new.keys() if old[column] != new[column]}
    columns = changes.columns(node.name, name) if other else None
    return bool(other if columns is None else other & columns)
