"""The facts about one model, or one cell of it: definition, inputs, builds, present state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from infold.core.definition import Definition
from infold.core.interval import Interval, Ranges, datetime_of, show_duration, show_instant
from infold.core.model import Deduplicate, Kind, Strategy, table_name
from infold.core.project import Batches, Bound, Input, Node
from infold.core.queries import SessionsQuery
from infold.core.record import Arrival, Receipt, StepRecord
from infold.core.report import AppliedDefinition, ExplainedInput, Explanation
from infold.core.trace import CellChange, EarlierCells, Trace
from infold.planning import cron
from infold.planning.plan_notes import follows_from_states
from infold.planning.planner import plan
from infold.running.observe import Observer

_MOST_SHOWN = 20
"""How many versions and arrivals are shown."""


def explain(
    observer: Observer,
    name: str,
    cell: Interval | None = None,
    declared: Definition | None = None,
) -> Explanation:
    """
    Everything that is known about a model without a JVM; ``declared`` is its definition in
    the files.
    """
    project, ledger = observer.project, observer.ledger
    node = project[name]
    observed = observer.observe_all()
    if name in observed.refused:
        raise observed.refused[name]
    todo = plan(project, observed)
    step = next((entry for entry in todo.steps if entry.model == name), None)
    why_left = next((entry.why for entry in todo.skipped if entry.model == name), "")
    if (
        cell is not None
        and step is not None
        and step.stale_cells
        and not step.stale_cells.overlaps(cell)
    ):
        step, why_left = None, "nothing that changed reaches this cell"
    model = observed.models.get(name)
    trace = model.trace if model else None
    head = ledger.newest_versions().get(name)
    cells = [] if node.model.kind.is_view else list(ledger.cells(name))
    state = next((entry for entry in cells if entry.cell == cell), None)
    granularity = node.model.granularity
    return Explanation(
        model=name,
        kind=node.model.kind,
        place=str(node.model.place),
        sql=node.model.written,
        granularity=granularity.value if granularity else "",
        fingerprint=node.fingerprint,
        inputs=_explained_inputs(observer, node),
        trace=trace,
        layout=_layout_text(observer, node),
        version=head.number if head else 0,
        rows=sum(entry.rows for entry in cells),
        cells=len(cells),
        step=step,
        why_left=why_left,
        cell=cell,
        state=state,
        arrivals=_arrivals_at_cell(observer, name, cell) if cell else (),
        built_by=_built_by(observer, name, cell),
        applied=_applied(observer, name, declared),
        notes=(
            *_function_notes(node),
            *_deduplication_notes(node, sum(entry.rows for entry in cells)),
            *_fold_notes(node, has_states=model is not None and model.has_states),
            *_incremental_notes(node, observer.as_of),
            *_definitions_in_force(observer, trace, cell),
        ),
    )


def _applied(
    observer: Observer, name: str, declared: Definition | None
) -> AppliedDefinition | None:
    applied = observer.ledger.applied().get(name)
    if applied is None:
        return None
    # Not by digests: a newer infold writes fields that older texts lack.
    definition = observer.ledger.definitions([applied.digest]).get(applied.digest)
    state = observer.project.applied
    elsewhere = state is not None and (state.mistakes or name in state.unapplied)
    return AppliedDefinition(applied.digest, applied.at, definition == declared and not elsewhere)


def _explained_inputs(observer: Observer, node: Node) -> tuple[ExplainedInput, ...]:
    from infold.analysis.definitions.columns_read import ColumnsRead  # the SQL parser

    heads = observer.ledger.newest_versions()
    trace = observer.ledger.traces().get(node.name)
    read = ColumnsRead(observer.project)

    def explained(entry: Input) -> ExplainedInput:
        known: tuple[str, ...] = ()
        columns: frozenset[str] | None = None
        if entry in node.stored_inputs and node.model.kind.is_stored:
            known = observer.project[entry.name].columns
            columns = read(node.name, entry.name)
        return ExplainedInput(
            name=entry.name,
            mapping=_mapping_text(node, entry),
            built=trace.inputs.get(entry.name) if trace else None,
            now=heads[entry.name].number if entry.name in heads else None,
            bound=entry.bound if _by_time(node, entry) else None,
            partition_col=entry.time_column if _by_time(node, entry) else None,
            columns=tuple(c for c in known if c.lower() in columns) if known and columns else None,
            width=len(known),
        )

    return tuple(map(explained, node.inputs))


def _by_time(node: Node, entry: Input) -> bool:
    return node.model.kind.is_by_cell and entry.time_column is not None


def _function_notes(node: Node) -> tuple[tuple[str, str], ...]:
    """The functions of the project that it calls, and where their code is."""
    called = sorted({(one.file, one.name) for one in node.model.functions})
    return tuple(
        ("calls" if at == 0 else "", f"{name}, of {file}") for at, (file, name) in enumerate(called)
    )


def _deduplication_notes(node: Node, rows: int) -> tuple[tuple[str, str], ...]:
    """What makes rows copies of one event, and what the search for them costs."""
    if not node.model.unique_key or node.model.timeseries is None:
        return ()
    key, time = ", ".join(node.model.unique_key), node.model.timeseries.event_time_column
    if node.model.deduplicate is Deduplicate.EVERYWHERE:
        cost = f"a run that ingests rows searches the keys of all {rows:,} stored rows"
        return (("copies", f"one row for each {key}, whatever its {time}"), ("", cost))
    return (("copies", f"one row for each {key} and {time}, sought in the cells of new rows"),)


def _fold_notes(node: Node, *, has_states: bool) -> tuple[tuple[str, str], ...]:
    """How a model that is kept by key is folded, and what that reads."""
    query = node.versions.grouped if node.versions is not None else node.grouped
    if query is None:
        return ()
    key = ", ".join(entry.name for entry in query.keys)
    known = query.columns
    columns = "all columns" if known is None else f"{len(known)} columns"
    runs = "query runs over" if node.model.python is None else "function is called with"
    if has_states:
        return (("folds", f"by {key}: {follows_from_states(query)}"),)
    return (
        ("folds", f"by {key}: where rows come or go, the {runs} its rows"),
        ("looks at", f"{columns} of {query.input}, for the rows of keys that are there already"),
    )


def _incremental_notes(node: Node, as_of: int) -> tuple[tuple[str, str], ...]:
    """How a model is built cell by cell."""
    incremental = node.model.incremental
    if incremental is None or not node.model.kind.is_by_cell:
        return ()
    python = node.model.python is not None and node.batches is Batches.PER_PARTITION_ONLY
    notes = [("batches", _ONE_CALL_EACH if python else _BATCHES_TEXTS[node.batches])]
    if incremental.batch_size:
        notes.append(("", f"at most {incremental.batch_size:,} cells in one commit"))
    if incremental.batch_concurrency:
        at_once = f"at most {incremental.batch_concurrency:,} computed at the same time"
        notes.append(("", f"{at_once}, committed one after the other"))
    notes.append(("strategy", f"{incremental.strategy}, by {_WRITES[incremental.strategy]}"))
    if incremental.cron is not None:
        due = show_instant(cron.next_tick(incremental.cron, incremental.cron_tz, as_of))
        notes.append(("cron", f"{incremental.cron} ({incremental.cron_tz}), next due {due}"))
    if node.overrides_used:
        notes.append(("overrides", ", ".join(node.overrides_used)))
    if node.bounds_declared:
        notes.append(
            (
                "bounds",
                "declared: a cell sees nothing beyond; `infold verify` counts where it shows",
            )
        )
    if node.filters:
        names = ", ".join(node.filters)
        notes.append(("filters", f"{names} mean all time: infold filters each input itself"))
    return tuple(notes)


def _definitions_in_force(
    observer: Observer, trace: Trace | None, cell: Interval | None
) -> tuple[tuple[str, str], ...]:
    """Which definition holds in which cells, after forward-only changes; or in one of them."""
    if trace is None or not trace.earlier:
        return ()
    newest = EarlierCells(Ranges.ever() - trace.earlier_ranges, trace.definition)
    texts = []
    for entry in (*trace.earlier, newest):
        at = observer.ledger.kept_at(entry.definition)
        since = "" if at is None else f", kept since {datetime_of(at):%Y-%m-%d %H:%M}"
        which = "the newest" if entry is newest else "an earlier one"
        if cell is None or entry.cells.overlaps(cell):
            where = f"{', '.join(map(str, entry.cells))}: " if cell is None else ""
            texts.append(f"{where}{which}, {entry.definition[:12]}{since}")
    return tuple(("definition" if at == 0 else "", text) for at, text in enumerate(texts))


_BATCHES_TEXTS = {
    Batches.FULLY_BATCH_SAFE: "any number of cells in one query",
    Batches.BOUNDED_SAFE: "any number of cells in one query, which reads around them",
    Batches.PER_PARTITION_ONLY: "one cell in one query, because of an override",
}
_ONE_CALL_EACH = "one call of its function for each cell"
_WRITES = {
    Strategy.DELETE_INSERT: "an atomic overwrite of the cells' range",
    Strategy.INSERT_OVERWRITE: "an atomic overwrite of the cells' range",
    Strategy.APPEND: "an atomic append to empty cells",
}


def _mapping_text(node: Node, entry: Input) -> str:
    """The cells of the input that a cell of the model depends on, in words."""
    if node.is_lookup(entry.name):
        return _lookup_text(node, entry)
    if node.model.kind is Kind.EVENTS:
        return "its files; each row is in the cell of its own event time"
    if node.model.kind is Kind.SESSIONS and node.query is not None:
        since = "" if node.start is None else f"; of events from {show_instant(node.start)} on"
        return _sessions_text(node.query) + since
    if node.grouped is not None:
        keys = ", ".join(key.name for key in node.grouped.keys)
        return f"the rows of the same {keys}"
    if node.model.kind.is_by_cell and entry.time_column is not None:
        if entry.bounds == (Bound(),):
            return f"the same cell of {entry.time_column}"
        ranges = " and ".join(_bound_text(bound) for bound in entry.bounds)
        return f"{entry.time_column} {ranges}"
    return "all of it"


def _lookup_text(node: Node, entry: Input) -> str:
    """What depends on some rows of a lookup, in words."""
    keys = sorted(
        {own.strip("`") for match in node.matches_of(entry.name) for _, own in match.pairs}
    )
    if not keys:
        return "all of it; when it changes, everything is built"
    then = "cells with rows of their keys are built"
    if node.model.kind is Kind.EVENTS:
        then = "files with rows of their keys are ingested again"
    stretches = (match.validity for match in node.matches_of(entry.name))
    times = {f" as of [{one.start}, {one.end})" for one in stretches if one is not None}
    return f"rows by {', '.join(keys)}{''.join(sorted(times))}; when some change, {then}"


def _sessions_text(query: SessionsQuery) -> str:
    """What a session is made of, in words."""
    whose = "a user's events" if query.owner_sql is None else f"the events of one {query.user}"
    if query.gap is not None:
        whose += f", chained by silences of at most {show_duration(query.gap)}"
    if query.fallback is not None:
        gap = show_duration(query.fallback.gap)
        whose += f"; those without by user, with a gap of {gap}"
    ends = [cut.in_words for cut in query.cuts]
    return f"{whose}; cut at {', '.join(ends)}" if ends else whose


def _bound_text(bound: Bound) -> str:
    """A bound as ``from 2 hours before the cell's start to its end``; negative ends lie inside."""
    start = f"{show_duration(abs(bound.before))} {'before' if bound.before > 0 else 'after'} "
    end = f"{show_duration(abs(bound.after))} {'after' if bound.after > 0 else 'before'} "
    first = f"from {start if bound.before else ''}the cell's start"
    return f"{first} to {end if bound.after else ''}its end"


def _layout_text(observer: Observer, node: Node) -> str:
    if node.model.kind.is_view:
        return "nothing stored"
    layout = observer.lake.layout(table_name(node.name))
    if layout is None:
        return "not built yet"
    if layout.partition is None:
        return f"{layout.storage}, one partition"
    return f"{layout.storage}, partitioned by {layout.partition.value} of {layout.column}"


def _arrivals_at_cell(observer: Observer, name: str, cell: Interval) -> tuple[Arrival, ...]:
    """What arrived for a cell, in the models that ingest files at or above this one."""
    names = observer.project.upstream([name]) | {name}
    arrivals = [
        entry
        for node in observer.project
        if node.name in names and node.model.kind is Kind.EVENTS
        for entry in observer.ledger.arrivals(node.name)
        if entry.cell.overlaps(cell)
    ]
    return tuple(sorted(arrivals, key=lambda entry: entry.received, reverse=True)[:_MOST_SHOWN])


def _built_by(
    observer: Observer, name: str, cell: Interval | None
) -> tuple[tuple[int, StepRecord], ...]:
    """
    The steps behind the newest versions, newest first; those that changed ``cell`` if given, with
    what they did to that.
    """
    ledger = observer.ledger
    builds: list[tuple[int, StepRecord]] = []
    versions = ledger.versions(name)[-_MOST_SHOWN:]
    changes = ledger.changes_by_version(name, versions[0].number - 1) if versions else {}
    for version in reversed(versions):
        own = [one for one in changes.get(version.number, ()) if one.cell == cell]
        if cell is not None and not own and not version.whole:
            continue
        for run in ledger.runs(1, run=version.run):
            steps = (step for step in run.steps if step.id == version.step)
            builds.extend((version.committed_at, _at_cell(step, cell, own)) for step in steps)
    return tuple(builds)


def _at_cell(step: StepRecord, cell: Interval | None, own: Sequence[CellChange]) -> StepRecord:
    """A step with the rows that it wrote and removed in one cell alone, if there is one."""
    if cell is None or step.outcome is None:
        return step
    receipt = Receipt(
        written=sum(one.added for one in own), removed=sum(one.removed for one in own)
    )
    return replace(step, outcome=replace(step.outcome, receipt=receipt))
