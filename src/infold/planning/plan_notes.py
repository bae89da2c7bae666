"""Notes on the models of a plan, besides their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from infold.core.model import Override
from infold.core.plan import Action, FileDiff, ModelObservation, Observations, PlanOptions, Step
from infold.core.project import ALL_COLUMNS, Node
from infold.core.queries import GroupedQuery
from infold.core.trace import Cause
from infold.planning.file_reasons import count_of
from infold.planning.staleness import other_files


def plan_notes(node: Node, model: ModelObservation, steps: Mapping[str, Step]) -> Iterator[str]:
    """The notes on one model that a plan has a step for."""
    yield from _unproven(node)
    yield from _unlocated_keys(node, model, steps)
    yield from _in_parts(node, steps[node.name])
    yield from _from_states(node, model, steps[node.name])
    yield from _after_derivation(node, model, steps)
    if model.files is not None:
        yield from _moved_rows(node, model.files)


def unused_forward_only(seen: Observations, asked: PlanOptions) -> Iterator[str]:
    """That --forward-only names models of which none has a changed definition, as in a slip."""
    if asked.forward_only and not any(
        one.model in asked.forward_only for one in seen.redefinitions
    ):
        yield f"--forward-only: no definition changed of {', '.join(asked.forward_only)}"


def _unproven(node: Node) -> Iterator[str]:
    """What its definition relies on that nothing proves."""
    if node.overrides_used:
        alone = set(node.overrides_used) - {Override.NONDETERMINISTIC}
        if alone:
            lets = f"{', '.join(sorted(alone))} lets each cell be built by itself"
            yield f"{node.name}: {lets}; `infold verify` checks it"
    if node.undetermined:
        rows = node.undetermined == ALL_COLUMNS
        what = "its rows" if rows else ", ".join(node.undetermined)
        depend = "depends" if len(node.undetermined) == 1 and not rows else "depend"
        yield (
            f"{node.name}: {what} {depend} on more than the inputs, as {Override.NONDETERMINISTIC} "
            "allows; `infold verify` does not compare that"
        )
    if node.bounds_declared:
        yield (
            f"{node.name}: its bounds are declared, not proven: a cell sees nothing beyond them; "
            "`infold verify` counts the cells where that shows"
        )
    for why in node.downgraded:
        yield f"{node.name} is built whole for this run: {why.splitlines()[0]}"


def _unlocated_keys(
    node: Node, model: ModelObservation, steps: Mapping[str, Step]
) -> Iterator[str]:
    """The lookups with changed keys that a run has yet to find rows for."""
    if model.trace is None or model.trace.fingerprint != node.fingerprint:
        return
    unknown = [
        diff.name
        for diff in model.inputs
        if node.matches_of(diff.name)
        and (diff.name in steps or (diff.changes and diff.changed_keys is None))
    ]
    if unknown:
        names = " and ".join(unknown)
        yield f"{node.name}: at most this; a run finds the rows with changed keys of {names} first"


def _moved_rows(node: Node, files: FileDiff) -> Iterator[str]:
    """What it costs that the writer of a table put rows into other files, changed or not."""
    if files.of_table and files.new and files.removed:
        size = sum(file.size for file in files.new) / 1e6
        yield (
            f"{node.name}: {files.source} has rows in other files than before; all rows of these "
            f"({count_of(len(files.new), 'file')}, {size:,.1f} MB) are read and compared, and what "
            "only moved changes nothing"
        )


def _in_parts(node: Node, step: Step) -> Iterator[str]:
    """What readers should know of a table that is replaced by a part of its rows."""
    left = step.trace.pending if step.trace is not None else ()
    if step.action is Action.BUILD and any(entry.cause is Cause.REDEFINED for entry in left):
        yield (
            f"{node.name}: nothing of its old definition stays; its table has the cells that are "
            "built, and gets the others once they are built"
        )


def _from_states(node: Node, model: ModelObservation, step: Step) -> Iterator[str]:
    """That a fold reads no row of its input besides those that changed."""
    if step.action is Action.FOLD and model.has_states and node.grouped is not None:
        yield f"{node.name}: {follows_from_states(node.grouped)}"


def follows_from_states(query: GroupedQuery) -> str:
    """What a fold by states reads, in words."""
    calls = {one.call for one in query.followed.aggregates} if query.followed else set()
    but = []
    if calls & {"min", "max", "min_by", "max_by"}:
        but.append("keys that lose a least or greatest value")
    if query.having:
        but.append("keys that HAVING left out")
    left = f", but for {' and '.join(but)}" if but else ""
    return f"follows from stored states: 0 unchanged rows of {query.input} read{left}"


_DONE = {
    Action.DERIVE: "rows are derived",
    Action.REBUCKET: "rows are in their new cells",
    Action.EVOLVE: "columns have their names and types",
    Action.REFOLD: "sessions end where they should",
}


def _after_derivation(
    node: Node, model: ModelObservation, steps: Mapping[str, Step]
) -> Iterator[str]:
    """That a table has stale cells after a step that is about the rows that it has."""
    step = steps[node.name]
    if step.action not in _DONE or step.trace is None:
        return
    behind = any(diff.newest_version > diff.read_version for diff in model.inputs)
    if model.files is not None and other_files(model.files):
        yield (
            f"{node.name}: files that came, changed or went since are ingested in a step after "
            f"that, by the new definition; it is planned once the {_DONE[step.action]}"
        )
    if behind or step.trace.pending or any(entry.name in steps for entry in node.stored_inputs):
        yield (
            f"{node.name}: cells that are missing, or that its inputs have changed since, are "
            f"built in a step after that; it is planned once the {_DONE[step.action]}"
        )
