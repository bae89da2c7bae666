"""Notes on the models of a plan, besides their steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from infold.core.definition import Redefinition
from infold.core.formats import FORMATS
from infold.core.interval import show_duration, show_instant
from infold.core.model import Kind, Override, Source
from infold.core.plan import (
    Action,
    FileDiff,
    ModelObservation,
    Observations,
    Plan,
    PlanOptions,
    Step,
)
from infold.core.project import ALL_COLUMNS, Node, Project
from infold.core.queries import GroupedQuery
from infold.core.trace import Cause
from infold.messages import apply_errors
from infold.planning.staleness import count_of, other_files


def plan_notes(node: Node, model: ModelObservation, steps: Mapping[str, Step]) -> Iterator[str]:
    """The notes on one model that a plan has a step for."""
    yield from _unproven(node)
    yield from _unlocated_keys(node, model, steps)
    yield from _part_notes(node, steps[node.name])
    yield from _states_notes(node, model, steps[node.name])
    yield from _after_derivation(node, model, steps)
    if model.files is not None:
        yield from _moved_rows(node, model.files)


def unused_forward_only(observed: Observations, options: PlanOptions) -> Iterator[str]:
    """That --forward-only names models of which none has a changed definition, as in a slip."""
    if options.forward_only and not any(
        redefinition.model in options.forward_only for redefinition in observed.redefinitions
    ):
        yield f"--forward-only: no definition changed of {', '.join(options.forward_only)}"


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


def _part_notes(node: Node, step: Step) -> Iterator[str]:
    """What readers should know of a table that is replaced by a part of its rows."""
    pending = step.trace.pending if step.trace is not None else ()
    if step.action is Action.BUILD and any(entry.cause is Cause.REDEFINED for entry in pending):
        yield (
            f"{node.name}: nothing of its old definition stays; its table has the cells that are "
            "built, and gets the others once they are built"
        )


def _states_notes(node: Node, model: ModelObservation, step: Step) -> Iterator[str]:
    """That a fold reads no row of its input besides those that changed."""
    if step.action is Action.FOLD and model.has_states and node.grouped is not None:
        yield f"{node.name}: {follows_from_states(node.grouped)}"


def follows_from_states(query: GroupedQuery) -> str:
    """What a fold by states reads, in words."""
    calls = {aggregate.call for aggregate in query.followed.aggregates} if query.followed else set()
    but = []
    if calls & {"min", "max", "min_by", "max_by"}:
        but.append("keys that lose a least or greatest value")
    if query.having:
        but.append("keys that HAVING left out")
    left = f", but for {' and '.join(but)}" if but else ""
    return f"follows from stored states: 0 unchanged rows of {query.input} read{left}"


_DONE_BY_ACTION = {
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
    if step.action not in _DONE_BY_ACTION or step.trace is None:
        return
    behind = any(diff.newest_version > diff.read_version for diff in model.inputs)
    if model.files is not None and other_files(model.files):
        yield (
            f"{node.name}: files that came, changed or went since are ingested in a step after "
            f"that, by the new definition; it is planned once the {_DONE_BY_ACTION[step.action]}"
        )
    if behind or step.trace.pending or any(entry.name in steps for entry in node.stored_inputs):
        yield (
            f"{node.name}: cells that are missing, or that its inputs have changed since, are "
            f"built in a step after that; it is planned once the {_DONE_BY_ACTION[step.action]}"
        )


def tables_of_audits(project: Project, node: Node) -> frozenset[str]:
    """The other tables that audits of a model read, views expanded."""
    named = {name for audit in node.model.audits for name in audit.reads(node.name)}
    views = {n for n in named if n in project and project[n].model.kind.is_view}
    below = (entry.name for name in views for entry in project[name].stored_inputs)
    return frozenset({*(named - views), *below})


def audit_notes(project: Project, plan: Plan, changes: Sequence[Redefinition]) -> Iterator[str]:
    """
    Notes on stored rows that audits are not asked about: those of changed audits, and of audits
    that read tables which are built.
    """
    built = {step.model for step in plan.steps}
    for change in changes:
        if change.before is None or change.after is None or change.after.model.kind.is_view:
            continue
        if any(difference.part == "audits" for difference in change.differences):
            yield (
                f"{change.model}: its audits changed; a run judges what it writes, and "
                f"`infold audit {change.model}` all that is stored"
            )
    for node in project:
        read = tables_of_audits(project, node) & built
        if read and node.model.kind.is_stored:
            yield (
                f"{node.name}: its audits read {', '.join(sorted(read))}, which changes; a run "
                f"judges what it writes, and `infold audit {node.name}` all that is stored"
            )


def definition_notes(project: Project) -> Iterator[str]:
    """What a run applies, and which changes in the files it leaves alone."""
    if project.applies:
        yield f"applied: {', '.join(project.applies)}"
    yield from unapplied_notes(project)


def unapplied_notes(project: Project) -> Iterator[str]:
    """Which changes in the files are not applied, and who applies them."""
    applied = project.applied
    if applied is None:
        return
    if applied.unapplied:
        models, infold = _unapplied_models_text(applied.unapplied), project.target.command
        yield f"{models}; `{infold} plan` shows them, `{infold} apply` carries them out"
    if applied.mistakes:
        many = applied.mistakes > 1
        mistakes = f"{applied.mistakes:,} mistakes" if many else "a mistake"
        yield (
            f"the files have {mistakes}, which `infold check` shows: this goes on by the applied "
            "definitions"
        )


def not_yet_applied(project: Project) -> tuple[str, ...]:
    """The models with changes that runs leave alone until they are applied."""
    return (*project.applies, *project.unapplied)


def refuse_nothing_applied(project: Project) -> None:
    """Raise ``nothing_applied`` where the files have models, and none of them was ever applied."""
    if project.unapplied and not project.nodes:
        target = project.target
        raise apply_errors.nothing_applied(
            target=target.name, models=project.unapplied, infold=target.command
        )


def _unapplied_models_text(names: Sequence[str]) -> str:
    """How many models have changes that are not applied, and which these are."""
    many = f"{len(names):,} models have" if len(names) > 1 else "1 model has"
    return f"{many} changes that are not applied: {', '.join(names)}"


def extracted_sources(project: Project, selected: frozenset[str] | None) -> Iterator[Source]:
    """The sources in databases that chosen models take in; of all models for None."""
    named = {
        node.source
        for node in project
        if node.name not in project.shared and (selected is None or node.name in selected)
    }
    for name, source in project.sources.items():
        if name in named and FORMATS[source.format].is_extracted:
            yield source


def extraction_notes(project: Project, selected: frozenset[str] | None) -> Iterator[str]:
    """What a run of chosen models reads before it plans: a plan knows what was extracted before."""
    for source in extracted_sources(project, selected):
        read, unseen = _extraction_extent(source)
        yield f"{source.name}: a run first reads {read}; not seen are {unseen}"


def _extraction_extent(source: Source) -> tuple[str, str]:
    """What is read of a table, and what stays unseen by that."""
    if source.key is None:
        return f"all of {source.table}", "rows that come and go between two runs"
    if source.reread is None:
        return (
            f"the rows of {source.table} with a greater {source.key} than any before",
            "rows that are committed later with a smaller or equal one, changes and deletions",
        )
    length = show_duration(source.reread)
    return (
        f"the rows of {source.table} from {length} before the greatest {source.key} on",
        "changes, deletions and new rows before that",
    )


def extracted_note(source: Source, *, rows: int, whole: bool, changed: int) -> str:
    """What a run read of a table; empty where that changed nothing."""
    if not changed:
        return ""
    read = f"{source.name}: {rows:,} rows of {source.table} were read"
    if source.reread is None or whole:
        return read
    return f"{read}; {changed:,} days of {source.key} have other rows than before"


def project_advice(project: Project) -> tuple[str, ...]:
    """A sentence or two for each thing worth knowing, models in their order."""
    return tuple(
        sentence
        for node in project
        for sentence in (
            *_unmatched_lookups(node),
            *_start_inside_cell(node, project.start),
            *_rows_before_start(node),
        )
    )


def _unmatched_lookups(node: Node) -> Iterator[str]:
    """The lookups that make a whole model stale with every change."""
    for name in node.unmatched_lookups:
        yield (
            f"{node.name}: every change of {name} builds all of it: {name} is not only "
            "joined by equality with columns of a row that has a time"
        )


def _rows_before_start(node: Node) -> Iterator[str]:
    """What a model leaves out because of its own start, besides cells."""
    at = node.model.start
    if at is None:
        return
    if node.model.kind is Kind.SESSIONS:
        yield (
            f"{node.name}: it leaves out events from before its start, {show_instant(at)}: a "
            "session that goes on over that instant begins with its first event after it"
        )
    elif node.source is not None:
        yield (
            f"{node.name}: it leaves out rows of {node.source} from before its start, "
            f"{show_instant(at)}, and so does all that reads it"
        )


def _start_inside_cell(node: Node, start: int | None) -> Iterator[str]:
    """Which beginning is taken where a start, its own or the project's, is inside a cell."""
    granularity, series, own = node.model.granularity, node.model.timeseries, node.model.incremental
    if not node.model.kind.is_by_cell or own is None or series is None:
        return
    start = start if own.start is None else own.start
    if start is None or granularity is None or granularity.aligned(start):
        return
    cell, length = granularity.cell(start), granularity.value.removesuffix(" (sunday)")
    inside = f"{node.name}: its start, {show_instant(start)}, lies inside a {length}. "
    if own.exact_start:
        yield (
            f"{inside}Of the {length} from {show_instant(cell.start)} to {show_instant(cell.end)} "
            f"it leaves out the rows whose {series.partition_column} is before "
            f"{show_instant(start)} (exact_start): all of them, where {series.partition_column} is "
            f"the beginning of the {length}"
        )
    else:
        yield (
            f"{inside}The table begins with the whole {length}, on {show_instant(cell.start)}; "
            f"`incremental.exact_start: true` leaves out the rows of it whose "
            f"{series.partition_column} is before {show_instant(start)}"
        )
