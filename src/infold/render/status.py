"""The state of every model, and past runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from infold.core.interval import Granularity, Ranges, show_instant
from infold.core.model import Kind
from infold.core.project import Project
from infold.core.record import Receipt, RunRecord, StepRecord
from infold.core.report import ModelState, ModelStatus, State
from infold.core.trace import Cause
from infold.planning.plan_notes import unapplied_notes
from infold.planning.staleness import requests_text
from infold.render import formatting
from infold.render.definitions import apart_text, waiting_notes

_STATE_MEANINGS = {
    State.FIRST_RUN: "nothing was ever built",
    State.NEW_MODEL: "others were built, this one never",
    State.OUT_OF_SYNC: "behind what is there already",
    State.STANDARD_RUN: "where its inputs are; a run brings in what is new",
}


def status_screen(
    project: Project, models: Sequence[ModelStatus], gaps: Mapping[str, Ranges]
) -> str:
    """
    One line a model, then what needs attention.

    ``gaps`` are stretches without rows between the first and the last cell of a table.
    """
    rows = [("model", "state", "rows", "from", "to", "gaps", "stale", "last built")]
    for entry in models:
        if entry.state is State.VIEW:
            rows.append((entry.model, "view", "", "", "", "", "", ""))
            continue
        granularity = project[entry.model].model.granularity
        hull = entry.covered.span if formatting.has_ends(entry.covered) else None
        missing = formatting.cells_in(gaps.get(entry.model, Ranges()), granularity)
        rows.append(
            (
                entry.model,
                "refused" if entry.refused else entry.state.value,
                f"{entry.rows:,}",
                show_instant(hull.start) if hull else "",
                show_instant(hull.end) if hull else "",
                f"{missing:,}" if missing else "",
                _stale_text(entry, granularity),
                formatting.clock(entry.last_built_at),
            )
        )
    head = f"infold status · {project.name} · {project.target.name}"
    parts = [head, "\n".join(formatting.columns(rows, right=(2, 5)))]
    whole = (entry for entry in models if entry.refused is None)
    states = states_lines(entry.model_state for entry in whole if entry.model_state is not None)
    if states:
        parts.append("\n".join(states))
    details = [line for entry in models for line in _detail_lines(project, entry, gaps)]
    if details:
        parts.append("\n".join(details))
    parts.extend((*unapplied_notes(project), *waiting_notes(project)))
    parts.append(_closing_text(project, models))
    return "\n\n".join(parts)


def _stale_text(entry: ModelStatus, granularity: Granularity | None) -> str:
    if not entry.stale:
        return ""
    number = formatting.cells_in(entry.stale, granularity) if granularity else None
    if number is not None:
        return formatting.count(number, "cell")
    return "some of it" if entry.partly else "all of it"


def _detail_lines(project: Project, entry: ModelStatus, gaps: Mapping[str, Ranges]) -> list[str]:
    """Facts about one model that its line has no room for."""
    from infold.render.audits import failed_lines

    granularity = project[entry.model].model.granularity
    facts = [
        *([f"refused: {entry.refused.what}"] if entry.refused else ()),
        *([apart_text(entry.apart)] if entry.apart else ()),
        *([f"waits for {formatting.names(entry.waits_for)}, refused"] if entry.waits_for else ()),
    ]
    facts += [
        formatting.rebuilt_part_text(entry.covered, pending.ranges, granularity)
        if pending.cause is Cause.REDEFINED
        else f"left unbuilt ({pending.cause.value}): "
        + formatting.ranges_text(pending.ranges, granularity)
        for pending in entry.pending
    ]
    if gaps.get(entry.model):
        facts.append(f"no rows in {formatting.ranges_text(gaps[entry.model], granularity)}")
    if entry.set_aside:
        what = "in no session" if entry.kind is Kind.SESSIONS else "set aside"
        facts.append(f"{formatting.count(entry.set_aside, 'row')} {what}: `infold show set_aside`")
    if entry.erasures:
        facts.append(f"waits for a run: {requests_text(entry.erasures)}")
    facts += failed_lines(entry.audits)
    if entry.next_due is not None:
        facts.append(f"next due {show_instant(entry.next_due)}")
    if entry.waiting:
        facts.append(f"{formatting.count(entry.waiting, 'row')} waiting, dated in the future")
    return [f"  {entry.model}: {fact}" for fact in facts]


def _closing_text(project: Project, models: Sequence[ModelStatus]) -> str:
    if project.unapplied and not project.nodes:
        many = formatting.count(len(project.unapplied), "model")
        start = f"Nothing is applied in {project.target.name} yet"
        return f"{start}: `{project.target.command} apply` applies {many} and builds their tables."
    stored = [entry for entry in models if entry.state is not State.VIEW]
    states = {entry.state for entry in stored}
    plan = f"`{project.target.command} plan` shows what a run would do."
    if states & {State.FIRST_RUN, State.NEW_MODEL, State.OUT_OF_SYNC}:
        named = [f"{state.value}: {_STATE_MEANINGS[state]}" for state in State if state in states]
        return "\n".join((*named, plan))
    if any(entry.stale or (entry.model_state and entry.model_state.work) for entry in stored):
        return plan
    return f"{formatting.count(len(stored), 'model')}, all up to date."


def history_screen(runs: Sequence[RunRecord], model: str | None = None) -> str:
    """Past runs, newest first, each with its steps."""
    if not runs:
        about = f" of {model}" if model else ""
        return f"No runs{about} yet: `infold run` makes the first."
    return "\n\n".join("\n".join(_run_lines(run, model)) for run in runs)


def _run_lines(run: RunRecord, model: str | None) -> list[str]:
    length = _length_text(run.started_at, run.finished_at)
    total = run.receipt
    head = f"{run.id}  {run.state}  {formatting.clock(run.started_at)}  {length}".rstrip()
    shown = [step for step in run.steps if model is None or step.model == model]
    lines = [head]
    if run.error:
        lines.append(f"  {run.error}")
    if not run.steps and not run.error:
        lines.append("  nothing to do")
    if total != Receipt() and model is None:
        lines.append(
            f"  {formatting.count(total.arrived, 'row')} arrived, {total.read:,} read, "
            f"{total.written:,} written, {formatting.count(total.set_aside, 'row')} set aside"
        )
    lines.extend(formatting.columns([_step_row(step) for step in shown], indent=4))
    return lines


def _step_row(step: StepRecord) -> tuple[str, ...]:
    done = ""
    if step.error:
        done = formatting.clip(" ".join(step.error.split()), 60)
    elif step.outcome is not None:
        receipt = step.outcome.receipt
        done = (
            f"{formatting.count(receipt.cells_built, 'cell')}, {receipt.read:,} read, "
            f"{receipt.written:,} written"
        )
        if receipt.audits_failed:
            done += f", {formatting.count(receipt.audits_failed, 'audit')} failed (warn)"
    length = _length_text(step.started_at, step.finished_at)
    return (step.model, step.action, step.state, length, done)


def _length_text(started: int, finished: int | None) -> str:
    return formatting.seconds((finished - started) / 1e6) if finished is not None else ""


# The sentences are those of Snowplow's packages, which users know.

_STATE_MESSAGES = {
    State.FIRST_RUN: "No data in manifest. Processing data from {start}",
    State.NEW_MODEL: "New incremental model. Backfilling",
    State.OUT_OF_SYNC: "Incremental model out of sync. Syncing",
    State.STANDARD_RUN: "Standard incremental run",
    State.VIEW: "",
}


def message(entry: ModelState) -> str:
    """The state's message, with why it is behind and what is processed, in one line."""
    return ". ".join(_message_lines(entry))


def _message_lines(entry: ModelState) -> tuple[str, ...]:
    start = "the first row" if entry.lower is None else show_instant(entry.lower)
    text = _STATE_MESSAGES[entry.state].format(start=start)
    if entry.why:
        text += f": {entry.why}"
    return tuple(part for part in (text, _processed_text(entry)) if part)


def _processed_text(entry: ModelState) -> str:
    """Between which event times data is processed, or that there is none."""
    if not entry.work:
        return "Nothing to process"
    window = _window_text(entry)
    if entry.empty:
        where = f" in {formatting.names(entry.reads)}" if entry.reads else ""
        return f"No data{where}{window}; covered without rows"
    return f"Processing data{window}" if window else ""


_FEW = 3


def _window_text(entry: ModelState) -> str:
    """The cells; of many their number and the first and last limit, of one stretch its ends."""
    cells, between = entry.cells, ""
    if 1 < len(cells) <= _FEW:
        return f" of {formatting.ranges_text(cells, entry.granularity)}"
    if entry.lower is not None and entry.upper is not None:
        between = f" between {show_instant(entry.lower)} and {show_instant(entry.upper)}"
    elif entry.lower is not None:
        between = f" from {show_instant(entry.lower)} on"
    elif entry.upper is not None:
        between = f" until {show_instant(entry.upper)}"
    number = formatting.cells_in(cells, entry.granularity) if len(cells) > _FEW else None
    return between if number is None else f" of {formatting.count(number, 'cell')}{between}"


def states_text(model_states: Sequence[ModelState]) -> str:
    """A block for the models of a run; models with the same message share a line."""
    if model_states and all(_has_nothing_to_do(entry) for entry in model_states):
        return f"{message(model_states[0])}."
    lines = _grouped_rows(model_states)
    return "\n".join(["States", *lines]) if lines else ""


def states_lines(entries: Iterable[ModelState]) -> list[str]:
    """The same of models that are not simply up to date, for a status."""
    return _grouped_rows([entry for entry in entries if not _has_nothing_to_do(entry)])


def _has_nothing_to_do(entry: ModelState) -> bool:
    return entry.state is State.STANDARD_RUN and not entry.work


def _grouped_rows(entries: Sequence[ModelState]) -> list[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in entries:
        groups.setdefault(_message_lines(entry), []).append(entry.model)
    rows = [
        (formatting.names(models) if number == 0 else "", line)
        for lines, models in groups.items()
        for number, line in enumerate(lines)
    ]
    return formatting.columns(rows)
