"""The models of a project as a scheduler sees them: what ``infold dag --json`` prints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

SOURCE, VIEW = "source", "view"


@dataclass(frozen=True, slots=True)
class GraphModel:
    """
    A source, a view or a table of the project.

    ``granularity`` is the length of a table's cells; of an ``incremental`` one a window chooses
    which are built. ``audits`` are name and severity.
    """

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    description: str = ""
    tags: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    incremental: bool = False
    granularity: str | None = None
    start: str | None = None
    audits: tuple[tuple[str, str], ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether a run builds it."""
        return self.kind not in (SOURCE, VIEW)


@dataclass(frozen=True)
class ProjectGraph:
    """A project's sources and models, each after all that it reads."""

    project: str
    nodes: tuple[GraphModel, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ProjectGraph:
        """What the JSON says; keys that it lacks have defaults."""
        return cls(document["project"], tuple(map(_model_of, document["nodes"])))

    @property
    def tables(self) -> tuple[GraphModel, ...]:
        """The models that runs build."""
        return tuple(node for node in self.nodes if node.is_table)

    @property
    def sources(self) -> tuple[GraphModel, ...]:
        """What they are built from."""
        return tuple(node for node in self.nodes if node.kind == SOURCE)

    def reads(self, name: str) -> tuple[str, ...]:
        """The tables and sources that a model reads, also through views."""
        by_name = {node.name: node for node in self.nodes}

        def found(one: str) -> Iterator[str]:
            for read in by_name[one].reads:
                if read not in by_name:
                    continue
                if by_name[read].kind == VIEW:
                    yield from found(read)
                else:
                    yield read

        return tuple(dict.fromkeys(found(name)))


def _model_of(node: Mapping[str, Any]) -> GraphModel:
    return GraphModel(
        node["name"],
        node["kind"],
        tuple(node["reads"]),
        node.get("description") or "",
        tuple(node.get("tags") or ()),
        tuple(node.get("columns") or ()),
        bool(node.get("incremental")),
        node.get("granularity"),
        node.get("start"),
        tuple((audit["name"], audit["severity"]) for audit in node.get("audits") or ()),
    )


# A table has partitions if a window limits which of its cells a run builds. Files that arrived, and
# sessions over them, are taken in whole, whatever the window, so these tables have none.

CRONS = {
    "hour": "0 * * * *",
    "day": "0 0 * * *",
    "week": "0 0 * * 1",
    "week (sunday)": "0 0 * * 0",
    "month": "0 0 1 * *",
    "quarter": "0 0 1 1,4,7,10 *",
    "year": "0 0 1 1 *",
}
"""When a cell of each granularity begins, on the calendar of UTC."""

HOURS, DAYS = "%Y-%m-%d-%H:%M", "%Y-%m-%d"

Stretch = Sequence[str | None]
"""Start and end of some cells as infold prints them; None is an open end."""


@dataclass(frozen=True, slots=True)
class Partitions:
    """The partitions of a table: the start of the first one, when each begins, and its key."""

    start: datetime
    cron: str
    key_format: str


def partitions_of(model: GraphModel) -> Partitions | None:
    """The partitions of a model's table; None if it has none, or none that is the first."""
    if not model.incremental or model.granularity not in CRONS or model.start is None:
        return None
    first = _floor(instant(model.start), model.granularity)
    return Partitions(
        first, CRONS[model.granularity], HOURS if model.granularity == "hour" else DAYS
    )


def instant(text: str) -> datetime:
    """An instant as infold prints it."""
    return datetime.fromisoformat(text).astimezone(UTC)


def window_words(start: datetime, end: datetime) -> tuple[str, str]:
    """A window as infold reads it."""
    return start.astimezone(UTC).isoformat(), end.astimezone(UTC).isoformat()


def overlap(some: Iterable[Stretch], others: Iterable[Stretch]) -> list[tuple[datetime, datetime]]:
    """What is in both; stretches of one list do not overlap each other."""
    theirs = [_bounds(other) for other in others]
    found = []
    for start, end in map(_bounds, some):
        for first, last in theirs:
            begin, stop = max(start, first), min(end, last)
            if begin < stop:
                found.append((begin, stop))
    return found


_FIRST, _LAST = datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC)


def _bounds(stretch: Stretch) -> tuple[datetime, datetime]:
    start, end = stretch
    return instant(start) if start else _FIRST, instant(end) if end else _LAST


def _floor(at: datetime, granularity: str) -> datetime:
    """The start of the cell that an instant is in."""
    if granularity == "hour":
        return at.replace(minute=0, second=0, microsecond=0)
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    if granularity == "week":
        return day - timedelta(days=day.weekday())
    if granularity == "week (sunday)":
        return day - timedelta(days=(day.weekday() + 1) % 7)
    if granularity == "month":
        return day.replace(day=1)
    if granularity == "quarter":
        return day.replace(day=1, month=(day.month - 1) // 3 * 3 + 1)
    if granularity == "year":
        return day.replace(day=1, month=1)
    return day
