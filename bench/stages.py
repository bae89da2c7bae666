"""What the stages of Spark's jobs did, and which of them had one task for many rows."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench import runs
from bench.generate import Deliveries, Shape, history
from bench.keys import USERS
from bench.measure import Line, Size
from bench.project import DATA, lay_out

from infold import api

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROWS_OF_ONE_TASK = 1_100_000
"""
What one task may read, however large a table is: the rows of a file that is written at once.

That is a million for a first load, half a million for what is added to it, and less elsewhere.
"""
SPLIT = 128 * 1024 * 1024
"""What one task may read of files, however many rows that is: Spark divides larger ones."""

CAPPED = """\
---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes, max_length: 24 hours}
---
SELECT count(*) AS events, count(DISTINCT url) AS pages, first(url) AS entry_url FROM events
"""
USER_DAYS = """\
---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(event_ts AS date) AS day, user_id, count(*) AS events FROM events GROUP BY 1, 2
"""
PAGES = """\
---
materialization: table
---
SELECT user_id, url, count(*) AS events FROM events GROUP BY 1, 2
"""
MODELS = {"capped": CAPPED, "user_days": USER_DAYS, "pages": PAGES, "users": USERS.format(more="")}


@dataclass(frozen=True)
class Stage:
    """
    A stage that ran: its tasks, the rows that these read (from files and shuffles), and wrote.

    ``scanned`` are the bytes that were read from files. ``seconds`` are of all tasks together.
    ``what`` is the line of the program that asked for it.
    """

    id: int
    tasks: int
    read: int
    written: int
    seconds: float
    what: str
    shuffled: int = 0
    scanned: int = 0

    @property
    def counted(self) -> int:
        """The rows that were read, without those of files that are small enough for one task."""
        return self.shuffled if self.scanned <= SPLIT else self.read


def stages(spark: SparkSession, since: int = -1) -> Sequence[Stage]:
    """The stages after the one numbered ``since``; those that Spark skipped left out."""
    context: Any = spark.sparkContext
    gateway: Any = context._gateway  # noqa: SLF001 (Spark's own counts have no other way in Python)
    store = context._jsc.sc().statusStore()  # noqa: SLF001 (as above)
    none = gateway.new_array(gateway.jvm.double, 0)
    found = store.stageList(None, False, False, none, gateway.jvm.java.util.ArrayList())
    listed = (found.apply(at) for at in range(found.size()))
    return sorted(
        (
            Stage(
                id=stage.stageId(),
                tasks=stage.numTasks(),
                read=stage.inputRecords() + stage.shuffleReadRecords(),
                written=stage.outputRecords() + stage.shuffleWriteRecords(),
                seconds=stage.executorRunTime() / 1000,
                what=stage.name(),
                shuffled=stage.shuffleReadRecords(),
                scanned=stage.inputBytes(),
            )
            for stage in listed
            if stage.stageId() > since and stage.status().toString() == "COMPLETE"
        ),
        key=lambda stage: stage.id,
    )


def one_task(size: Size) -> list[Line]:
    """
    The most rows that a stage of a single task reads, in runs over 1 M and 10 M events.

    Rows of files count where the files have more than one task may read of them.
    """
    lines = []
    for events in (size.rows(1_000_000), size.rows(10_000_000)):
        for what, stage in largest_single_tasks(DATA / f"z-{events}", events).items():
            lines.append(
                Line(
                    f"{what}, {events / 1e6:,.1f} M events: most rows in a stage of one task",
                    stage.counted / 1e6,
                    ROWS_OF_ONE_TASK / 1e6,
                    "M rows",
                    f"{stage.seconds:.1f} s; {stage.read / 1e6:,.2f} M rows, "
                    f"{stage.scanned / 1e6:,.0f} MB of files; {stage.what}",
                )
            )
    return lines


def largest_single_tasks(
    root: Path, events: int, day: int = 5_000, days: int = 365
) -> dict[str, Stage]:
    """
    The stage of one task that read the most rows, of each thing that is done to a project.

    ``day`` is how many events a day has that follows ``days`` of history.
    """
    shutil.rmtree(root, ignore_errors=True)
    lay_out(root)
    for name, text in MODELS.items():
        (root / "models" / f"{name}.sql").write_text(text)
    # A day touches every month.
    shape = Shape(events, max(100, events // 30), days, profile="spread")
    history(root / "landing", shape)
    deliveries = Deliveries(shape, root / "landing")
    spark = runs.large_session(api.open_project(root))
    found: dict[str, Stage] = {}

    def during(what: str, act: Callable[[], object]) -> None:
        before = max((stage.id for stage in stages(spark)), default=-1)
        act()
        single = [stage for stage in stages(spark, before) if stage.tasks == 1]
        if single:
            found[what] = max(single, key=lambda stage: (stage.counted, stage.read))

    def another_day() -> None:
        deliveries.deliver(day)
        runs.run(root)

    def old() -> None:
        deliveries.deliver_one(300)
        runs.run(root)

    def restate() -> None:
        api.restate(api.open_project(root), [name for name in MODELS if name != "capped"])

    during("first build", lambda: runs.run(root))
    during("a day", another_day)
    during("an old event", old)
    during("restate", restate)
    during("verify", lambda: api.verify(api.open_project(root)))
    return found
