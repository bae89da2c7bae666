"""What a day costs in each storage: the same deliveries into the same history, taking turns."""

from __future__ import annotations

from pathlib import Path

from bench import runs
from bench.first_builds import forget, year_of_events
from bench.generate import Deliveries
from bench.measure import Clock, Line, Size, alternately, ratio
from bench.one_more_day import DAY_EVENTS, WARM
from bench.project import with_history

from infold import api
from infold.core.storages import Storage


def delta_against_iceberg(size: Size) -> list[Line]:
    """The day of case b, with rows late by up to a year, in Delta Lake against Iceberg."""
    # Delta first: the process has one JVM, and Iceberg is in each.
    made = {storage: _project(size, storage) for storage in (Storage.DELTA, Storage.ICEBERG)}
    first, day = {}, {storage: Clock() for storage in made}
    costs: dict[Storage, runs.Cost] = {}

    def deliver(storage: Storage) -> float:
        root, deliveries = made[storage]
        deliveries.deliver(size.rows(DAY_EVENTS))
        costs[storage] = runs.run(root)
        return costs[storage].seconds

    for storage, (root, _) in made.items():
        forget(root)
        runs.large_session(api.open_project(root))
        first[storage] = runs.run(root).seconds
    for _ in range(WARM):
        for storage in made:
            deliver(storage)
    alternately(size.repeats, *(lambda one=one: day[one].add(deliver(one)) for one in made))
    return [
        Line(
            "one more day, `spread`, in Delta Lake against Iceberg",
            ratio(day[Storage.DELTA], day[Storage.ICEBERG]),
            2.5,
            detail=f"{day[Storage.DELTA]} against {day[Storage.ICEBERG]}; "
            + "; ".join(f"{one}: {cost.by_step}, {cost.jobs} jobs" for one, cost in costs.items())
            + f"; first builds {first[Storage.DELTA]:.1f} s and {first[Storage.ICEBERG]:.1f} s",
        )
    ]


def _project(size: Size, storage: Storage) -> tuple[Path, Deliveries]:
    root, deliveries = with_history(f"storage-{storage}", year_of_events(size, "spread"))
    with (root / "infold.yml").open("a") as file:
        file.write(f"targets:\n  dev: {{storage: {storage}}}\n")
    return root, deliveries
