"""
Keeps stored tables small: many small files of a partition are rewritten, old snapshots expire.

Each run may add a few small files, of rows or of deletes, to many partitions. After some commits
the partitions with the most files are rewritten, worst first, until the run's budget is spent;
the rest waits for the next run. Old snapshots are expired before that, but never the newest
version's, nor one that a reader's trace names or still has to compare with. Neither changes
content, and both keep `_version`, so the thousandth run costs what the tenth did. Where it fails,
as somebody else compacts the same files at that time, the run has done its work all the same, and
says so.
"""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from infold.core.model import table_name
from infold.core.ports import History, Lake, Ledger
from infold.core.trace import net_changes
from infold.running.run_progress import ends_run
from infold.spark.tables.port import MaintainedTables, Stamp
from infold.system import failures

LOOK_EVERY = 8
"""Commits since the last rewrite after which a table's files are counted."""

FILES_PER_PARTITION = 6
"""Data files, or files with deletes, beyond which a partition is rewritten."""

BUDGET_BYTES = 64 * 1024 * 1024
"""How much one run rewrites of one table; one partition is always allowed."""

KEEP_SNAPSHOTS = 20
KEEP_SECONDS = 3600
MOST_SNAPSHOTS = 100

NOT_COMPACTED = "{0}: it was not compacted, and the next run tries again: {1}"
"""The note on a table that is as large as it was; its rows are right."""


@dataclass(frozen=True)
class Maintenance:
    """Compaction and expiry of stored tables."""

    tables: MaintainedTables
    ledger: Ledger
    lake: Lake

    def maintain(self, models: Sequence[str]) -> tuple[str, ...]:
        """
        Compact and expire the tables of ``models``, each named once for each of its steps.

        Returns notes on tables where that failed. Raises errors that end a run.
        """
        notes = []
        for model, steps in Counter(models).items():
            try:
                self._maintain(model, steps)
            except Exception as error:  # noqa: BLE001 - its rows are there, whatever it is
                notes.append(NOT_COMPACTED.format(model, _error_in_a_line(error)))
        return tuple(notes)

    def _maintain(self, model: str, steps: int) -> None:
        history = self.lake.history(table_name(model))
        if history.snapshots > MOST_SNAPSHOTS or (
            history.snapshots > 2 * KEEP_SNAPSHOTS
            and history.oldest_at < (time.time() - KEEP_SECONDS) * 1_000_000
        ):
            self.expire(model, history, everything=history.snapshots > MOST_SNAPSHOTS)
        if _is_due(history, steps):
            self.compact(model)

    def compact(self, model: str, *, budget: int = BUDGET_BYTES) -> int:
        """Rewrite the partitions with the most files, within ``budget`` bytes; how many it was."""
        crowded = [
            files
            for files in self.tables.partition_files(model)
            if files.data >= FILES_PER_PARTITION or files.deletes >= FILES_PER_PARTITION // 2
        ]
        crowded.sort(key=lambda files: -(files.data + files.deletes))
        spent = done = 0
        for files in crowded:
            if done and spent + files.bytes > budget:
                break
            self.tables.rewrite(model, files.partition)
            spent += files.bytes
            done += 1
        return done

    def expire(self, model: str, history: History, *, everything: bool = False) -> None:
        """Drop old snapshots and the files that only they have; none that a version names."""
        read = self._versions_read(model)
        if any(net_changes(self.ledger.changes(model, since)) for since in read):
            return  # a reader has yet to compare with a version whose snapshot would go
        age = -1 if everything else KEEP_SECONDS  # whole seconds: this one counts as over
        keep = MOST_SNAPSHOTS // 2 if everything else KEEP_SNAPSHOTS
        keep = max(keep, self._snapshots_back(model, read, history))
        self.tables.expire(model, before=time.time() - age, keep=keep)

    def purge(self, model: str) -> str:
        """
        Leave no file of a table that a row was taken out of; why not, where that cannot be.

        Files with deletes are rewritten. A commit that changes nothing has the step of the newest
        version, so that this has its rows there; then all snapshots before it go.
        """
        read = self._versions_read(model)
        if any(net_changes(self.ledger.changes(model, since)) for since in read):
            return "a table that reads it is not up to date"
        for files in self.tables.partition_files(model):
            if files.deletes:
                self.tables.rewrite(model, files.partition)
        self.tables.forget_removed_files(model)
        version = self.ledger.newest_versions().get(model)
        if version is not None and version.snapshot is not None:
            trace = self.ledger.traces().get(model)
            inputs = trace.inputs if trace is not None else {}
            stamp = Stamp(version.run, version.step, version.number, inputs)
            nothing = self.tables.read(model).limit(0)
            snapshot = self.tables.append(model, nothing, stamp)
            self.ledger.move_snapshot(model, version.number, snapshot)
        self.tables.expire(model, before=time.time() + 2, keep=1)
        return ""

    def _versions_read(self, model: str) -> set[int]:
        """The versions of a table that its readers were built from."""
        traces = self.ledger.traces().values()
        return {trace.inputs[model] for trace in traces if model in trace.inputs}

    def _snapshots_back(self, model: str, read: set[int], history: History) -> int:
        """
        How many snapshots back the newest version is, and those that were ``read``.

        Every rewritten partition is a snapshot, so a version may be behind any number of them.
        """
        head = self.ledger.newest_versions().get(model)
        if head is None:
            return 0
        named = {head.number, *read}
        versions = self.ledger.versions(model, min(named) - 1)
        pinned = {version.snapshot for version in versions if version.number in named}
        return max((n for n, at in enumerate(history.main, 1) if at in pinned), default=0)


def _error_in_a_line(error: Exception) -> str:
    """
    What an error says, in a line.

    Raises one that ends a run; and of memory, as nobody knows what a JVM is good for after that.
    """
    known = failures.known_failure(error)
    if known is None:
        java = re.search(r"[\w.$]+(?:Exception|Error): [^\n]+", str(error))
        return java[0][:300] if java else failures.in_a_line(error)
    if ends_run(known) or known.slug == "out-of-memory":
        raise known from error
    return known.what


def _is_due(history: History, commits: int) -> bool:
    """Whether files are to be counted, when so many of the newest commits are a run's own."""
    if history.since_rewrite < LOOK_EVERY:
        return False
    # The run before counted them too, and since then there are no more.
    return history.steady < commits or history.since_rewrite - commits < LOOK_EVERY
