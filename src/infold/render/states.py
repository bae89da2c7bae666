"""The four states in the words that users of Snowplow's packages know, model by model."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from infold.interval import show
from infold.render import words
from infold.report import Standing, State

_SAYS = {
    State.FIRST_RUN: "No data in manifest. Processing data from {start}",
    State.NEW_MODEL: "New incremental model. Backfilling",
    State.OUT_OF_SYNC: "Incremental model out of sync. Syncing",
    State.STANDARD_RUN: "Standard incremental run",
    State.VIEW: "",
}


def message(entry: Standing) -> str:
    """The state's message, with why it is behind and what is processed, in one line."""
    return ". ".join(_lines(entry))


def _lines(entry: Standing) -> tuple[str, ...]:
    start = "the first row" if entry.lower is None else show(entry.lower)
    text = _SAYS[entry.state].format(start=start)
    if entry.why:
        text += f": {entry.why}"
    return tuple(part for part in (text, _processed(entry)) if part)


def _processed(entry: Standing) -> str:
    """Between which event times data is processed, or that there is none."""
    if not entry.work:
        return "Nothing to process"
    window = _window(entry)
    if entry.empty:
        return f"No data in {words.names(entry.reads)}{window}; covered without rows"
    return f"Processing data{window}" if window else ""


_FEW = 3


def _window(entry: Standing) -> str:
    """The cells; of many their number and the first and last limit, of one stretch its ends."""
    cells, between = entry.cells, ""
    if 1 < len(cells) <= _FEW:
        return f" of {words.ranges_text(cells, entry.granularity)}"
    if entry.lower is not None and entry.upper is not None:
        between = f" between {show(entry.lower)} and {show(entry.upper)}"
    elif entry.lower is not None:
        between = f" from {show(entry.lower)} on"
    elif entry.upper is not None:
        between = f" until {show(entry.upper)}"
    number = words.cells_in(cells, entry.granularity) if len(cells) > _FEW else None
    return between if number is None else f" of {words.count(number, 'cell')}{between}"


def states_text(standings: Sequence[Standing]) -> str:
    """A block for the models of a run; those of which the same is said share a line."""
    if standings and all(_quiet(entry) for entry in standings):
        return f"{message(standings[0])}."
    lines = _blocks(standings)
    return "\n".join(["States", *lines]) if lines else ""


def states_lines(entries: Iterable[Standing]) -> list[str]:
    """The same of models that are not simply up to date, for a status."""
    return _blocks([entry for entry in entries if not _quiet(entry)])


def _quiet(entry: Standing) -> bool:
    return entry.state is State.STANDARD_RUN and not entry.work


def _blocks(entries: Sequence[Standing]) -> list[str]:
    groups: dict[tuple[str, ...], list[str]] = {}
    for entry in entries:
        groups.setdefault(_lines(entry), []).append(entry.model)
    rows = [
        (words.names(models) if number == 0 else "", line)
        for lines, models in groups.items()
        for number, line in enumerate(lines)
    ]
    return words.columns(rows)
