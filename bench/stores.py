"""What a day costs in an object store: seconds, jobs, requests of each commit, and bytes."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

from bench import runs
from bench.first_builds import forget, year_of_events
from bench.generate import Deliveries
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.one_more_day import DAY_EVENTS
from bench.project import with_history
from tests.servers.object_store import ENVIRONMENT, ObjectStore, running
from tests.servers.store_server import move_to_store

from infold import api
from infold.core.storages import Storage

WARM = 2
"""Days that are not counted."""


@dataclass
class InStore:
    """A project whose files and tables are in a bucket, with what the last run asked for."""

    root: Path
    deliveries: Deliveries
    store: ObjectStore
    bucket: str
    day: Clock = field(default_factory=Clock)
    said: str = ""
    _sent: set[str] = field(default_factory=set)

    def send(self) -> None:
        """Have in the bucket what has landed since."""
        for file in sorted((self.root / "landing").iterdir()):
            if file.name not in self._sent:
                self._sent.add(file.name)
                self.store.put(f"s3://{self.bucket}/landing/{file.name}", file.read_bytes())

    def run(self) -> float:
        """A run; how long it took."""
        self.send()
        self.store.seen.clear()
        self.store.sent = self.store.received = 0
        cost = runs.run(self.root)
        asked, commits = self.store.seen, cost.result.receipt.commits
        each = ", ".join(f"{number} {method}" for method, number in asked.most_common())
        self.said = (
            f"{cost.by_step}; {cost.jobs} jobs, {commits} commits, {asked.total()} requests "
            f"({each}), {asked.total() / max(1, commits):.0f} a commit; "
            f"{self.store.sent / 1e6:.1f} MB read, {self.store.received / 1e6:.1f} MB written"
        )
        return cost.seconds


def in_store_against_disk(size: Size) -> list[Line]:
    """
    The day of case b, with its files and tables on s3proxy, against both on the disk.

    Each request goes through a gate of the tests, which counts it and takes time of its own.
    """
    os.environ.update(ENVIRONMENT)
    with tempfile.TemporaryDirectory() as scratch, running(Path(scratch)) as store:
        # Delta first: the process has one JVM, with the jars that its first session needs.
        stored = {one: _in_store(size, store, one) for one in (Storage.DELTA, Storage.ICEBERG)}
        root, deliveries = with_history("store-disk", year_of_events(size, "spread"))
        forget(root)
        disk, jobs = Clock(), 0

        def on_disk() -> float:
            nonlocal jobs
            cost = runs.run(root)
            jobs = cost.jobs
            return cost.seconds

        def day_on_disk() -> None:
            deliveries.deliver(size.rows(DAY_EVENTS))
            disk.add(on_disk())

        def day_in_store(one: InStore) -> None:
            one.deliveries.deliver(size.rows(DAY_EVENTS))
            one.day.add(one.run())

        for one in stored.values():
            runs.large_session(api.open_project(one.root))
            one.run()
        on_disk()
        for _ in range(WARM):
            for one in stored.values():
                day_in_store(one)
            day_on_disk()
        for clock in (disk, *(one.day for one in stored.values())):
            clock.seconds.clear()
        alternately(
            size.repeats,
            day_on_disk,
            *(lambda one=one: day_in_store(one) for one in stored.values()),
        )
        before = store.seen.total()
        api.plan(api.open_project(stored[Storage.ICEBERG].root))
        idle = store.seen.total() - before
        api.close()
    return [
        Line(
            f"one more day, `spread`, in a store with {storage}, against the disk with iceberg",
            ratio(one.day, disk),
            None,
            detail=f"{one.day} against {disk} ({jobs} jobs); {one.said}",
        )
        for storage, one in stored.items()
    ] + [Line("requests of a plan with nothing new, with iceberg", idle, None, unit="")]


def _in_store(size: Size, store: ObjectStore, storage: Storage) -> InStore:
    root, deliveries = with_history(f"store-{storage}", year_of_events(size, "spread"))
    forget(root)
    bucket = store.new_bucket()
    with (root / "infold.yml").open("a") as file:
        file.write(f"targets:\n  dev: {{storage: {storage}}}\n")
    move_to_store(root, store, bucket)
    return InStore(root, deliveries, store, bucket)
