"""Changed definitions: what a plan costs that shows them, and what carrying them out costs."""

from __future__ import annotations

import shutil
import time
from pathlib import Path

from bench import runs
from bench.cells import all_built, many
from bench.first_builds import forget, year_of_events
from bench.generate import history
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.processes import infold
from bench.project import DATA, SESSIONS, lay_out, with_history
from bench.sqlmesh_plan import ManyModels

from infold import api
from infold.declare.definitions import definitions_of
from infold.running.keep_definitions import keep_definitions

LINKS = 10
CHANGED = 5
DAYS = 90
LINK = """\
---
materialization: table
timeseries: {{event_time_column: day, partition_column: day, granularity: day}}
incremental: {{}}
---
SELECT day, user_id, amount{0} FROM {1}
"""


def plan_of_a_change(size: Size) -> list[Line]:
    """
    `infold plan` over 500 models, after a column was added to one of them: whole process.

    And `sqlmesh plan` over as many of the same shape.
    """
    root = DATA / "r"
    shutil.rmtree(root, ignore_errors=True)
    count = size.rows(500, 20)
    many(root, count)
    all_built(root, DAYS)
    project = api.open_project(root)
    book = api.ledger_of(project)
    book.acquire("definitions")
    keep_definitions(project, book, definitions_of(project))
    book.close()
    infold(root, "plan")
    nothing, change = Clock(), Clock()
    sqlmesh = ManyModels(count)
    file = root / "models" / f"m{count // 2}.sql"
    written = file.read_text()

    def unchanged() -> None:
        file.write_text(written)
        infold(root, "plan")  # reads the project and keeps what it read
        nothing.add(infold(root, "plan")[0])

    def changed() -> None:
        file.write_text(written.replace(", n ", f", n, n + {time.time_ns()} AS more "))
        change.add(infold(root, "plan")[0])

    alternately(max(3, size.repeats), unchanged, changed, lambda: sqlmesh.change(count // 2))
    what = f"`infold plan`, {count:,} models of {DAYS * 24:,} hourly cells, a column added to one"
    return [
        Line(what, change.least, 1.0, "s", f"{change}; without a change {nothing}"),
        Line(
            "the same, against `sqlmesh plan` on DuckDB",
            ratio(change, sqlmesh.clock),
            None,
            detail=f"{change} against {sqlmesh.clock}",
        ),
    ]


def column_in_a_chain(size: Size) -> list[Line]:
    """A column added to the fifth of ten tables in a chain, against building it and its readers."""
    root = lay_out(DATA / "s")
    shutil.rmtree(root, ignore_errors=True)
    lay_out(root)
    for name in ("sessions", "daily"):
        (root / "models" / f"{name}.sql").unlink()
    history(root / "landing", year_of_events(Size(size.scale * 0.1, size.repeats)))
    first = LINK.replace("SELECT day", "SELECT cast(event_ts AS date) AS day").replace(
        "event_time_column: day", "event_time_column: event_ts"
    )
    for number in range(1, LINKS + 1):
        text = first.format("", "events") if number == 1 else LINK.format("", f"c{number - 1}")
        _model(root, number).write_text(text)
    runs.run(root)
    ours, theirs = Clock(), Clock()
    built: list[int] = []

    def one_more_column() -> None:
        more = f", length(user_id) + {len(built)} AS more"
        _model(root, CHANGED).write_text(LINK.format(more, f"c{CHANGED - 1}"))
        cost = runs.run(root)
        ours.add(cost.seconds)
        built.append(len(cost.result.steps))

    def everything_behind() -> None:
        project = api.open_project(root)
        names = [f"c{number}" for number in range(CHANGED, LINKS + 1)]
        started = time.perf_counter()
        api.restate(project, names)
        theirs.add(time.perf_counter() - started)

    alternately(size.repeats, one_more_column, everything_behind)
    return [
        Line("tables built for a column in a chain of ten", float(max(built)), 1.0, "tables"),
        Line(
            "the same, against building the table and those behind it",
            ratio(ours, theirs),
            0.35,
            detail=f"{ours} against {theirs}",
        ),
    ]


def other_gap(size: Size) -> list[Line]:
    """A gap of 20 minutes instead of 30, and back, against a first build of the same sessions."""
    shape = year_of_events(size)
    root, _ = with_history(f"t-{size.scale}", shape)
    forget(root)
    file = root / "models" / "sessions.sql"
    file.write_text(SESSIONS)
    runs.run(root, ["events", "sessions"])  # both warm
    project = api.open_project(root)
    runs.large_session(project)
    smaller, larger, first = Clock(), Clock(), Clock()
    read: list[str] = []

    def change(gap: str, clock: Clock) -> None:
        file.write_text(SESSIONS.replace("30 minutes", gap))
        cost = runs.run(root, ["sessions"])
        assert [str(step.action) for step, _ in cost.result.steps] == ["refold"]
        clock.add(cost.step("sessions"))
        read.append(f"{cost.receipt('sessions').read:,}")

    def build() -> None:
        file.write_text(SESSIONS)
        api.forget(api.open_project(root), ["sessions"])
        first.add(runs.run(root, ["sessions"]).step("sessions"))

    alternately(
        size.repeats,
        build,
        lambda: change("20 minutes", smaller),
        lambda: change("30 minutes", larger),
    )
    return [
        Line(
            f"sessions with a gap of {what}, against their first build",
            ratio(clock, first),
            0.25,
            detail=f"{clock} against {first}; {rows} of {shape.events:,} rows read",
        )
        for what, clock, rows in (
            ("20 minutes instead of 30", smaller, read[0]),
            ("30 minutes instead of 20", larger, read[1]),
        )
    ]


def _model(root: Path, number: int) -> Path:
    return root / "models" / f"c{number}.sql"
