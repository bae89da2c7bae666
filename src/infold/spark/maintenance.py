"""
Keeping tables in shape, by the program itself: compaction and expiry, within a budget.

Each run may add a few small files, and deletion vectors, to many partitions. When commits have
gathered, the partitions with the most files are rewritten, worst first, until the run's budget is
spent; the rest waits for the next run. Snapshots that are old are expired before that, but never
the newest version's, nor one that a reader's trace names or still has to compare with. Neither
changes content, and both keep ``_version``, so the thousandth run costs what the tenth did.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from infold.core.interval import HOUR, Granularity, Ranges, instant
from infold.core.model import table_name
from infold.core.ports import History, Lake, Ledger
from infold.core.project import Project
from infold.core.trace import net
from infold.spark.content import quoted, within
from infold.spark.tables.iceberg import IcebergTables
from infold.spark.tables.port import Layout

LOOK_EVERY = 8
"""Commits since the last rewrite after which a table's files are counted."""

FILES_PER_PARTITION = 6
"""Data files, or files with deletes, beyond which a partition is rewritten."""

BUDGET_BYTES = 64 * 1024 * 1024
"""How much one run rewrites of one table; one partition is always allowed."""

KEEP_SNAPSHOTS = 20
KEEP_SECONDS = 3600
MOST_SNAPSHOTS = 100


@dataclass(frozen=True)
class Maintenance:
    """Compaction and expiry of a project's tables in one Spark session."""

    spark: SparkSession
    project: Project
    ledger: Ledger
    lake: Lake

    def maintain(self, models: Sequence[str]) -> None:
        """Look after the tables of ``models``, named once a step; the content of none changes."""
        for model, steps in Counter(models).items():
            history = self.lake.history(table_name(model))
            if history.snapshots > MOST_SNAPSHOTS or (
                history.snapshots > 2 * KEEP_SNAPSHOTS
                and history.oldest_at < (time.time() - KEEP_SECONDS) * 1_000_000
            ):
                self.expire(model, history, everything=history.snapshots > MOST_SNAPSHOTS)
            if _due(history, steps):
                self.compact(model)

    def compact(self, model: str, *, budget: int = BUDGET_BYTES) -> int:
        """Rewrite the partitions with the most files, within ``budget`` bytes; how many it was."""
        identifier = self._identifier(model)
        layout = IcebergTables(self.spark, self.project.name, self.lake).layout(model)
        partitioned = layout.partition is not None
        group = "partition" if partitioned else "1"
        rows = self.spark.sql(
            f"SELECT {group} AS part, sum(if(content = 0, 1, 0)) AS data,"
            " sum(if(content = 0, 0, 1)) AS deletes,"
            " sum(if(content = 0, file_size_in_bytes, 0)) AS bytes"
            f" FROM {identifier}.files GROUP BY 1"
        ).collect()
        rows = [
            row
            for row in rows
            if row["data"] >= FILES_PER_PARTITION or row["deletes"] >= FILES_PER_PARTITION // 2
        ]
        rows.sort(key=lambda row: -(row["data"] + row["deletes"]))
        spent = done = 0
        for row in rows:
            if done and spent + row["bytes"] > budget:
                break
            where = _partition_filter(layout, row["part"][0]) if partitioned else ""
            self._rewrite(model, layout.column, where)
            spent += row["bytes"]
            done += 1
        return done

    def expire(self, model: str, history: History, *, everything: bool = False) -> None:
        """Drop old snapshots and the files that only they hold; none that a version names."""
        if self._lagging(model):
            return
        age = -1 if everything else KEEP_SECONDS  # whole seconds: this one counts as over
        keep = MOST_SNAPSHOTS // 2 if everything else KEEP_SNAPSHOTS
        keep = max(keep, self._back(model, history))
        self.spark.sql(
            "CALL infold.system.expire_snapshots("
            f"table => '{self._quoted_name(model)}',"
            f" older_than => TIMESTAMP '{_utc(time.time() - age)}', retain_last => {keep})"
        ).collect()

    def _rewrite(self, model: str, column: str | None, where: str) -> None:
        sort = f", strategy => 'sort', sort_order => '{quoted(column)} ASC'" if column else ""
        filtered = f', where => "{where}"' if where else ""
        self.spark.sql(
            f"CALL infold.system.rewrite_data_files(table => '{self._quoted_name(model)}'{sort}"
            f"{filtered}, options => map('rewrite-all', 'true'))"
        ).collect()

    def _lagging(self, model: str) -> bool:
        """Whether a reader has yet to compare with a version whose snapshot would go."""
        for trace in self.ledger.traces().values():
            since = trace.inputs.get(model)
            if since is not None and net(self.ledger.changes(model, since)):
                return True
        return False

    def _back(self, model: str, history: History) -> int:
        """
        How many snapshots back readers go: to the newest version, and to those in traces.

        Every rewritten partition is a snapshot, so a version may lie behind any number of them.
        """
        head = self.ledger.heads().get(model)
        if head is None:
            return 0
        named = {head.number}
        for trace in self.ledger.traces().values():
            named.update(number for name, number in trace.inputs.items() if name == model)
        versions = self.ledger.versions(model, min(named) - 1)
        pinned = {version.snapshot for version in versions if version.number in named}
        return max((n for n, found in enumerate(history.main, 1) if found in pinned), default=0)

    def _identifier(self, model: str) -> str:
        return f"infold.{quoted(self.project.name)}.{quoted(table_name(model))}"

    def _quoted_name(self, model: str) -> str:
        return f"{quoted(self.project.name)}.{quoted(table_name(model))}"


def _due(history: History, commits: int) -> bool:
    """Whether files are to be counted, when so many of the newest commits are a run's own."""
    if history.since_rewrite < LOOK_EVERY:
        return False
    # The run before counted them too, and since then there are no more.
    return history.steady < commits or history.since_rewrite - commits < LOOK_EVERY


def _partition_filter(layout: Layout, value: Any) -> str:
    """
    The rows of one partition, as a filter on its source column.

    ``value`` is Iceberg's partition value: hours, months or years since 1970, or a date.
    """
    assert layout.column is not None
    assert layout.partition is not None
    if layout.partition is Granularity.MONTH:
        start = instant(f"{1970 + value // 12:04}-{value % 12 + 1:02}-01")
    elif layout.partition is Granularity.YEAR:
        start = instant(f"{1970 + value:04}-01-01")
    elif layout.partition is Granularity.HOUR:
        start = value * HOUR
    else:
        start = instant(value.isoformat())
    part = Ranges((layout.partition.cell(start),))
    return within(layout.column, layout.type, part)


def _utc(seconds: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
