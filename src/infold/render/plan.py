"""
A plan as one screen: what arrived, which cells are built and why, what is left alone, what next.

In a strip, rows of tables that take in files show what is there (``#`` built, ``.`` missing,
``+`` rows arrived); rows of other tables show what is decided (``B`` build, ``-`` leave).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from infold.core.interval import MIN, Granularity, Interval, Ranges, show_instant
from infold.core.model import Kind, OnLoss
from infold.core.plan import (
    UP_TO_DATE,
    Action,
    FileDiff,
    ModelObservation,
    Observations,
    Plan,
    Skipped,
    Step,
)
from infold.core.project import Node, Project
from infold.core.trace import Cause
from infold.planning.buildable_cells import cells_with_rows
from infold.render import formatting
from infold.render.coverage_strip import Row, axis_of, strip_lines
from infold.render.definitions import definitions_part

if TYPE_CHECKING:
    from infold.core.report import ModelState

LEGEND = "# built   . missing   + rows arrived   B to build   - left alone"


def plan_screen(
    project: Project,
    observed: Observations,
    plan: Plan,
    covered: Mapping[str, Ranges],
    options: str = "",
    command: str = "plan",
    *,
    saved: bool = False,
) -> str:
    """
    The whole screen. ``covered`` are the cells of the stored tables; ``options`` are repeated in
    the command to go on with: `apply`, where the plan was ``saved``. Any ``command`` but ``plan``
    carries out what it shows.
    """
    if not plan:
        todo = _to_apply(project) if command == "plan" else ()
        return nothing_screen(project, observed, plan, notes=todo)
    parts = [
        _title(project, plan, command),
        definitions_part(project, plan),
        "\n".join(plan_strip(project, observed, plan, covered)),
        _arrived_block(observed),
        _steps_block(project, observed, plan),
        _left_alone_block(project, plan.skipped),
        "\n".join(dict.fromkeys(plan.notes)),
        _closing_text(project, plan, options, command, saved=saved),
    ]
    return "\n\n".join(part for part in parts if part)


def _title(project: Project, plan: Plan, command: str) -> str:
    where = f"{project.name} · {project.target.name}"
    if project.environment:
        where += f" · environment {project.environment}"
    return f"infold {command} · {where} · as of {formatting.clock(plan.as_of)}"


def nothing_screen(
    project: Project,
    observed: Observations | None,
    plan: Plan,
    model_states: Sequence[ModelState] = (),
    notes: Sequence[str] = (),
) -> str:
    """
    The screen where nothing has to be built: what was looked at, what waits, what is stale.

    After a run, also the ``model_states`` before it; ``notes`` come last.
    """
    states = ""
    if model_states:
        from infold.render.status import states_text

        states = states_text(model_states)
    current = [left for left in plan.skipped if left.why == UP_TO_DATE]
    what = (
        f"{formatting.count(len(current), 'model')} up to date"
        if current
        else "no model was asked for"
    )
    if project.environment and not current:
        what = "nothing that was asked for differs from production"
    if plan.refused and not current:
        what = "what was asked for is refused, or waits for what is"
    nothing = "Nothing can be done" if plan.refused else "Nothing to do"
    parts = [
        definitions_part(project, plan),
        f"{nothing}: {what}, as of {formatting.clock(plan.as_of)}.",
        states,
        _looked_at_block(project, observed),
        _left_alone_block(project, plan.skipped),
        "\n".join(dict.fromkeys((*plan.notes, *notes))),
    ]
    return "\n\n".join(part for part in parts if part)


def _to_apply(project: Project) -> tuple[str, ...]:
    """Where nothing has to be built, and definitions have to be applied: who does that."""
    if not project.applies:
        return ()
    infold = project.target.command
    return (f"`{infold} apply` applies these definitions; `{infold} run` goes on by earlier ones.",)


def plan_strip(
    project: Project, observed: Observations, plan: Plan, covered: Mapping[str, Ranges]
) -> list[str]:
    """The strip with its legend; nothing when no cell is known yet."""
    drawn = models_to_draw(project, plan)
    nodes = [node for node in project if node.name in drawn]
    steps = {step.model: step for step in plan.steps}
    skipped = {entry.model: entry for entry in plan.skipped}
    rows = [
        _strip_row(
            node, observed.models[node.name], steps.get(node.name), skipped.get(node.name), covered
        )
        for node in nodes
        if node.name in observed.models
    ]
    if not any(row.shown for row in rows):
        return []
    finest = finest_of(nodes)
    unit = axis_of(rows, finest).granularity
    legend = LEGEND if unit is finest else f"{LEGEND}   (each a {unit.value})"
    return [*strip_lines(rows, finest, formatting.WIDTH), "", f"  {legend}"]


def models_to_draw(project: Project, plan: Plan) -> frozenset[str]:
    """
    The models with a line in the strip: all, or of many those that have a step or are stale.

    The others are named as up to date below it.
    """
    every = frozenset(node.name for node in project if node.model.kind.is_stored)
    if len(every) <= _MOST_LINES:
        return every
    stale = (left.model for left in plan.skipped if left.stale)
    return every & {*(step.model for step in plan.steps), *stale}


_MOST_LINES = 40


def finest_of(nodes: Iterable[Node]) -> Granularity:
    """The finest granularity of any table, day when all are single cells."""
    order = list(Granularity)
    granularities = [node.model.granularity for node in nodes if node.model.granularity]
    return min(granularities, key=order.index, default=Granularity.DAY)


def _strip_row(
    node: Node,
    model: ModelObservation,
    step: Step | None,
    left: Skipped | None,
    covered: Mapping[str, Ranges],
) -> Row:
    cells = covered.get(node.name, Ranges())
    between = Ranges(() if cells.span is None else (cells.span,))  # all between its ends is built
    rest = " " if model.trace else "."
    note = _row_note(step, left)
    if node.model.granularity is None:
        mark = "B" if step else "-" if model.trace else "."
        return Row(node.name, single=mark, note=note)
    if node.model.kind is Kind.EVENTS and (
        step is None or step.previous_trace is None or not _builds_whole(step)
    ):
        arrived = Ranges.of(
            state.cell for state in (model.files.estimate if model.files else ()) or ()
        )
        if step is not None and step.action is Action.INGEST:
            arrived |= step.cells
        taken_in = (("+", arrived), ("#", between))
        return Row(node.name, taken_in, rest, note=note, shows=cells | arrived)
    stale = left.stale if left else Ranges()
    build = step.stale_cells if step else Ranges()
    if step is not None:
        build -= _kept_cells(model)
    marks = (("B", build), (".", stale), ("-", between))
    return Row(
        node.name, marks, rest, note=note, shows=cells | _cells_to_show(node, model, build, stale)
    )


def _cells_to_show(node: Node, model: ModelObservation, build: Ranges, stale: Ranges) -> Ranges:
    """Of what is built or stale the cells with rows, and few cells in any case."""
    shown = (build | stale) & Ranges.of(cells_with_rows(node, model))
    for some in (build, stale):
        number = formatting.cells_in(some, node.model.granularity)
        shown |= some if number is not None and number <= _FEW_CELLS else Ranges()
    return shown


_FEW_CELLS = 14


def _kept_cells(model: ModelObservation) -> Ranges:
    """The cells that keep their rows, as a changed definition holds from a later one on."""
    since = model.redefined.effective_from if model.redefined is not None else None
    return Ranges() if since is None else Ranges((Interval(MIN, since),))


def _builds_whole(step: Step) -> bool:
    own_rows = step.action.of_own_rows and step.action is not Action.EXPIRE
    return step.action is Action.BUILD or own_rows


def _row_note(step: Step | None, left: Skipped | None) -> str:
    if step is None:
        return left.why if left else ""
    if len(step.reasons) == 1:
        return step.reasons[0].detail
    return ", ".join(dict.fromkeys(reason.cause.value for reason in step.reasons))


# -- the parts below the strip ---------------------------------------------------------------------


def _arrived_block(observed: Observations) -> str:
    """What the listings show, a line for each source with new, changed or deleted files."""
    lines = []
    for files in _file_diffs(observed):
        if not files and not files.settling:
            continue
        lines.append((files.source, files_text(files)))
        cells = files.estimate or ()
        if len(cells) > _MOST_CELLS:  # those with most rows, in the order of time
            cells = tuple(sorted(cells, key=lambda state: -state.rows))
        lines.extend(
            ("", f"{formatting.count(state.rows, 'row')} at {_day_text(state.cell.start)}")
            for state in sorted(cells[:_MOST_CELLS], key=lambda state: state.cell)
        )
        more = cells[_MOST_CELLS:]
        if more:
            rows = formatting.count(sum(state.rows for state in more), "row")
            lines.append(("", f"{rows} in {formatting.count(len(more), 'other cell')}"))
        if files.future_rows:
            lines.append(
                ("", f"{formatting.count(files.future_rows, 'row')} waiting, dated in the future")
            )
        if files.new and files.estimate is None:
            lines.append(("", "which cells they touch is known once they are read"))
    return "\n".join(["Arrived", *formatting.columns(lines)]) if lines else ""


_MOST_CELLS = 5


def _day_text(at: int) -> str:
    return formatting.cell_text(Granularity.DAY.cell(at), Granularity.DAY)


def _file_diffs(observed: Observations) -> list[FileDiff]:
    by_source = {
        model.files.source: model.files
        for model in observed.models.values()
        if model.files is not None  # a difference without files counts as false
    }
    return list(by_source.values())


def files_text(files: FileDiff) -> str:
    """What is new about the files of one source, in words."""
    replaced = files.replaced
    deleted = len(files.removed) - replaced
    parts = [
        formatting.count(len(files.new) - replaced, "new file")
        if len(files.new) > replaced
        else "",
        f"{replaced:,} replaced" if replaced else "",
        f"{deleted:,} gone" if deleted else "",
        f"{len(files.come_due):,} with rows come due" if files.come_due else "",
        f"{files.settling:,} still settling" if files.settling else "",
    ]
    changed = ", ".join(part for part in parts if part) or "nothing new"
    if files.unchanged:
        changed += f"; {formatting.count(files.unchanged, 'file')} as before"
    return changed + formatting.folders(files.folders, files.folders_left_out, before="; ")


def _steps_block(project: Project, observed: Observations, plan: Plan) -> str:
    lines = ["Steps"]
    heads = []
    for i, step in enumerate(plan.steps, 1):
        about = f"about {formatting.count(step.rows_to_read, 'row')}" if step.rows_to_read else ""
        expected = "expected" if step.expected else ""
        cells = _cells_text(project[step.model], observed, step)
        heads.append((f"{i}. {step.model}", step.action.value, cells, about, expected))
    for head, step in zip(formatting.columns(heads), plan.steps, strict=True):
        lines.append(head)
        granularity = project[step.model].model.granularity
        for reason in step.reasons:
            where = ""
            if reason.cells and not _builds_whole(step) and granularity is not None:
                where = f": {formatting.ranges_text(reason.cells, granularity)}"
            lines.append(f"       {reason.cause.value:<10}  {reason.detail}{where}")
    if any(step.expected for step in plan.steps):
        lines.append("  Expected steps are planned again, exactly, once their inputs are built.")
    return "\n".join(lines)


def _cells_text(node: Node, observed: Observations, step: Step) -> str:
    """How many cells a step builds, as far as that is known."""
    granularity = node.model.granularity
    if step.action is Action.FOLD and granularity is None:
        return "changed keys"
    if step.action is Action.REFOLD:
        return "sessions that may end elsewhere"
    model = observed.models.get(step.model)
    if model is not None and (kept_cells := _kept_cells(model)):
        return f"cells from {show_instant(kept_cells.parts[-1].end)} on"
    redefined = any(reason.cause is Cause.REDEFINED for reason in step.reasons)
    if _builds_whole(step) and not redefined:
        return "the whole table"
    stale = step.stale_cells
    if not formatting.has_ends(stale):  # all but what a window left out, say: those that hold rows
        stale &= Ranges.of(cells_with_rows(node, model) if model is not None else ())
        if not stale or not node.model.kind.is_by_cell:
            return "the whole table"
    number = formatting.cells_in(stale, granularity)
    if not number:
        return "cells not known yet"
    batches = f" in {step.batches:,} batches" if step.batches > 1 else ""
    return ("up to " if step.expected else "") + formatting.count(number, "cell") + batches


def _left_alone_block(project: Project, left: Iterable[Skipped]) -> str:
    """What is not built, and why; models that need nothing share a line."""
    every = list(left)
    current = [entry.model for entry in every if entry.why == UP_TO_DATE]
    rows = []
    for entry in every:
        if entry.why != UP_TO_DATE:
            stale = ""
            if entry.stale:
                granularity = project[entry.model].model.granularity
                stale = f"stale: {formatting.ranges_text(entry.stale, granularity)}"
            rows.append((entry.model, entry.why, stale))
    if current:
        rows.append((formatting.names(current), UP_TO_DATE, ""))
    return "\n".join(["Left alone", *formatting.columns(rows)]) if rows else ""


def _looked_at_block(project: Project, observed: Observations | None) -> str:
    """What was looked at, when nothing was found."""
    if observed is None:
        return ""
    rows = [(files.source, files_text(files)) for files in _file_diffs(observed)]
    tables = [
        diff.name
        for model in observed.models.values()
        for diff in model.inputs
        if diff.newest_version > 0
    ]
    read = formatting.names(dict.fromkeys(tables))
    if read:
        rows.append((read, "as their readers last saw them"))
    del project
    return "\n".join(["Looked at", *formatting.columns(rows)]) if rows else ""


def _closing_text(project: Project, plan: Plan, options: str, command: str, *, saved: bool) -> str:
    costs: dict[Cause, int] = {}
    for step in plan.steps:
        for reason in step.reasons:
            costs[reason.cause] = costs.get(reason.cause, 0) + reason.rows
    by_cause = ", ".join(f"{rows:,} {cause.value}" for cause, rows in costs.items() if rows)
    total = (
        f", about {formatting.count(plan.rows_to_read, 'row')} to read ({by_cause})"
        if plan.rows_to_read
        else ""
    )
    head = f"{formatting.count(len(plan.steps), 'step')}{total}."
    if command != "plan":
        return head
    steps = [step for step in plan.steps if step.model not in project.apart] or plan.steps
    example = next((step for step in steps if step.cells and not _builds_whole(step)), steps[0])
    cell = ""
    granularity = project[example.model].model.granularity
    if granularity is not None and formatting.has_ends(example.cells) and example.cells:
        cell = " " + formatting.cell_text(
            granularity.cell(example.cells.parts[0].start), granularity
        )
        cell = cell if granularity is not Granularity.HOUR else f" '{cell.strip()}'"
    infold = project.target.command
    verb = "apply" if project.applies or saved else "run"
    lost = dict.fromkeys(one.model for one in plan.destroyed if one.on is OnLoss.ERROR)
    if lost:
        allow = "".join(f" --allow-destructive {model}" for model in lost)
        if saved:
            return f"{head}\nSaved, and it will be refused: save it again with{allow}."
        run = f"`{infold} {verb}{options}"
        return f"{head}\nNothing was written: {run}` refuses this, {run}{allow}` carries it out."
    head += "\nSaved: " if saved else "\nNothing was written: "
    rest = f"; `{infold} run` leaves these changes alone." if project.applies else ","
    run = f"`{infold} {verb}{options}` carries this out{rest}"
    why = f"`{infold} explain {example.model}{cell}` says why."
    # `explain` goes by what is applied, and by tables that are there.
    if project.environment or project.applies or example.model in project.apart:
        return f"{head}{run.rstrip(',.')}."
    between = " " if len(head.splitlines()[-1]) + len(run) + len(why) < formatting.WIDTH else "\n"
    return f"{head}{run}{between}{why}"
