"""
The message of each model's state, as ``plan``, ``run`` and ``status`` print it.

The sentences are those of Snowplow's packages, which users know.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infold.core.interval import show_instant
from infold.core.report import ModelState, State
from infold.render import formatting

_SAYS = {
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
    text = _SAYS[entry.state].format(start=start)
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
