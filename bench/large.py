"""A hundred million events in three years, against a tenth of them in the same days."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench import runs
from bench.first_builds import forget
from bench.generate import Shape
from bench.measure import Clock, Line, Size, largest_child, ratio
from bench.one_more_day import DAY_EVENTS, WARM
from bench.project import with_history

from infold import api

YEARS = 3


def hundred_million(size: Size) -> list[Line]:
    """First build, a day, a year-old event and verify: 100 M events of three years, and 10 M."""
    large = Shape(size.rows(100_000_000), size.rows(3_000_000, 100), days=YEARS * 365)
    small = replace(large, events=large.events // 10, users=max(100, large.users // 10))
    made = [with_history(f"y-{size.scale:g}-{shape.events}", shape) for shape in (large, small)]
    lines = [_first_build(root) for root, _ in made]
    days, olds, steps = (Clock(), Clock()), (Clock(), Clock()), ["", ""]
    for number in range(WARM + size.repeats):
        for at, (root, deliveries) in enumerate(made):
            deliveries.deliver(size.rows(DAY_EVENTS))
            cost = runs.run(root)
            steps[at] = cost.by_step
            if number >= WARM:
                days[at].add(cost.seconds)
    for _ in range(size.repeats):
        for at, (root, deliveries) in enumerate(made):
            deliveries.deliver_one(365)
            olds[at].add(runs.run(root).seconds)
    return [
        *lines,
        Line(
            "the same day into ten times as many events",
            ratio(*days),
            1.2,
            detail=f"{days[0]} against {days[1]}; {steps[0]} against {steps[1]}",
        ),
        Line(
            "one event a year old, among ten times as many",
            ratio(*olds),
            1.2,
            detail=f"{olds[0]} against {olds[1]}",
        ),
        _verified(made[0][0]),
        *_kept(made[0][0], made[1][0]),
    ]


def _first_build(root: Path) -> Line:
    forget(root)
    cost = runs.run(root)
    rows = cost.result.receipt.arrived
    return Line(
        f"first build of {rows / 1e6:,.2f} M events, driver heap of 2 GiB",
        cost.seconds,
        None,
        "s",
        f"{rows / cost.seconds:,.0f} events a second; {cost.by_step}; {largest_child()}",
    )


def _verified(root: Path) -> Line:
    clock = Clock()
    with clock.timing():
        report = api.verify(api.open_project(root), sample=5)
    found = "no difference" if report.equal else "**a difference**"
    return Line("`infold verify --sample 5` of the larger", clock.least, None, "s", found)


def _kept(large: Path, small: Path) -> list[Line]:
    """How much ledger and metadata grow with ten times as many events in the same cells."""
    lines = []
    for what, pattern in (
        ("the ledger", ".infold/ledger.db*"),
        ("metadata of the tables", "warehouse/**/metadata/*"),
    ):
        sizes = [sum(path.stat().st_size for path in root.glob(pattern)) for root in (large, small)]
        lines.append(
            Line(
                f"{what}, ten times as many events in the same cells",
                sizes[0] / sizes[1],
                1.2,
                detail=f"{sizes[0] / 1e6:,.1f} MB against {sizes[1] / 1e6:,.1f} MB",
            )
        )
    return lines
