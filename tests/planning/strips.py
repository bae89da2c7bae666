"""The project that plans are tested on, and its states, changes and plans drawn as strips."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from infold.core.formats import Format
from infold.core.interval import DAY, MINUTE, Granularity, Interval, Ranges, parse_instant_text
from infold.core.model import Column, Incremental, Materialization, Model, Source, Timeseries
from infold.core.plan import InputDiff, ModelObservation, Observations, Plan, PlanOptions, Step
from infold.core.project import Input, Node, Project
from infold.core.queries import SessionsQuery
from infold.core.sessions import Sessions
from infold.core.target import Target
from infold.core.trace import CellChange, CellState, Trace
from infold.planning.planner import plan

FIRST = parse_instant_text("2019-10-21")
DAYS = 7
ALL = Ranges.ever()


def day(number: int) -> Interval:
    """The cell of the ``number``-th day of the strip, from 0."""
    return Interval(FIRST + number * DAY, FIRST + (number + 1) * DAY)


def node(model: Model, *inputs: Input, query: SessionsQuery | None = None) -> Node:
    """A compiled model with a fingerprint of its own."""
    source = inputs[0].name if model.materialization is Materialization.EVENTS else None
    return Node(model, inputs, (), f"fp-{model.name}", (), source=source, query=query)


EVENTS = node(
    Model("events", Materialization.EVENTS, "", Timeseries("ts", "ts"), unique_key=("id",)),
    Input("raw.clicks"),
)


SESSIONS = node(
    Model("sessions", Materialization.SESSIONS, "", sessions=Sessions("user", 30 * MINUTE)),
    Input("events", "ts"),
    query=SessionsQuery("events", "ts", "user", 30 * MINUTE, ("id",), None, (), ()),
)


USERS = node(Model("users", Materialization.TABLE, ""), Input("raw.users"))


DAILY = node(
    Model(
        "daily",
        Materialization.TABLE,
        "",
        Timeseries("session_start", "day"),
        incremental=Incremental(),
    ),
    Input("sessions", "session_start"),
    Input("users"),
)


MONTHLY = node(
    Model(
        "monthly",
        Materialization.TABLE,
        "",
        Timeseries("day", "month", Granularity.MONTH),
        incremental=Incremental(),
    ),
    Input("daily", "day"),
)


def project(*nodes: Node, start: int | None = None) -> Project:
    """A project of these models over one source."""
    source = Source("raw.clicks", Format.CSV, (Column("id", "string"),), path="landing/*.csv")
    return Project("shop", Path(), start, {source.name: source}, nodes, Target("dev"))


def states(strip: str) -> tuple[CellState, ...]:
    """Ten rows in each day drawn ``#`` or ``+``."""
    return tuple(CellState(day(i), 10, i) for i, mark in enumerate(strip.split()) if mark in "#+")


def changes(strip: str) -> tuple[CellChange, ...]:
    """One row added to each day drawn ``+`` (late), ``n`` (new), removed from ``x``."""
    made = []
    for i, mark in enumerate(strip.split()):
        if mark in "+nx":
            before = 0 if mark == "n" else 10
            removed = 1 if mark == "x" else 0
            after = before - removed + (0 if removed else 1)
            made.append(CellChange(day(i), 1 - removed, removed, before, after, 1, 2))
    return tuple(made)


def built(target: Node, since: int = 1, **extra: object) -> ModelObservation:
    """A model whose trace holds for version ``since`` of all its inputs."""
    inputs = {entry.name: since for entry in target.inputs if target.source is None}
    trace = Trace(target.name, target.fingerprint, inputs)
    diffs = tuple(InputDiff(name, since, since) for name in inputs)
    return replace(ModelObservation(trace=trace, version=1, inputs=diffs), **extra)  # type: ignore[arg-type]


def changed(target: Node, name: str, strip: str) -> ModelObservation:
    """A built model one of whose inputs changed as drawn."""
    seen = built(target)
    diffs = tuple(
        InputDiff(name, 1, 2, changes(strip), states(strip)) if entry.name == name else entry
        for entry in seen.inputs
    )
    return replace(seen, inputs=diffs)


def strip(made: Plan, name: str) -> str:
    """The days that a plan builds of a model, ``B`` to build, ``-`` leave."""
    cells = Ranges.of(part for step in made.steps if step.model == name for part in step.cells)
    return " ".join("B" if cells.overlaps(day(i)) else "-" for i in range(DAYS))


def with_incremental(target: Node, **keys: object) -> Node:
    """The same model with keys under ``incremental``."""
    return replace(target, model=replace(target.model, incremental=Incremental(**keys)))  # type: ignore[arg-type]


def planned(*nodes: Node, asked: Any = None, now: Any = 0, **seen: ModelObservation) -> Plan:
    """The plan of a project of these models, as they are observed, at ``now`` and as ``asked``."""
    return plan(project(*nodes), Observations(now, seen), asked or PlanOptions())


def step_of(made: Plan) -> tuple[Step, Trace]:
    """The one step of a plan, and what holds after it."""
    [step] = made.steps
    assert step.trace is not None
    return step, step.trace


def with_trace(seen: ModelObservation, **keys: object) -> ModelObservation:
    """The same model, with other values in its trace."""
    assert seen.trace is not None
    return replace(seen, trace=replace(seen.trace, **keys))  # type: ignore[arg-type]
