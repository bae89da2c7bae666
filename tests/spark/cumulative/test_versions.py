"""Versions of keys: random changes that are late, repeated, contradicting, replaced and deleted."""

from __future__ import annotations

import os
import random
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.crash.scenario import Life, living
from tests.reference.tables import versions
from tests.spark.events.clicks_project import NOW, ClicksProject, shop_with

from infold import api
from infold.core.interval import parse_instant_text, show_instant
from infold.core.plan import Action
from infold.core.record import Receipt
from infold.spark import key_filter

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

SOURCE = """    event_time_column: at
    columns: {id: string, who: string, at: timestamp, plan: string, seats: int, note: string}
"""
CHANGES = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.clicks"""
BY_TIME = """---
materialization: scd_type_2
unique_key: [who]
scd_type_2: {updated_at: at}
---
SELECT who, at, plan, seats, note FROM changes"""
BY_COLUMNS = """---
materialization: scd_type_2
unique_key: [who, big]
scd_type_2: {updated_at: since, columns: [plan, seats]}
---
SELECT who, c.seats > 1 AS big, date_trunc('hour', at) AS since, plan, seats, note
FROM changes c WHERE plan <> 'x'"""
SNAPSHOTS = """---
materialization: scd_type_2
unique_key: [who]
scd_type_2: {updated_at: at, columns: "*", invalidate_hard_deletes: true}
---
SELECT who, at, plan, seats FROM changes WHERE who NOT LIKE 'crowd%'"""
AS_OF = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(c.at AS date) AS day, c.id, v.plan, v.seats
FROM changes c LEFT JOIN by_columns v ON v.who = c.who AND v.big
  AND c.at >= v.valid_from AND (c.at < v.valid_to OR v.valid_to IS NULL)"""
COLUMNS = ("id", "who", "at", "plan", "seats", "note")
CROWD = tuple(f"c{n},crowd{n},2024-02-{n % 2 + 20} 10:00:00,a,1," for n in range(60))


def drawn(draw: random.Random, number: int) -> str:
    """A change of one of few users at one of few times."""
    at = f"2024-02-{draw.randint(1, 3):02} {draw.randint(0, 2):02}:{draw.choice(['00', '30'])}:00"
    who, plan = draw.choice(["ann", "bob", ""]), draw.choice(["a", "b", "x", ""])
    return f"e{number},{who},{at},{plan},{draw.choice(['1', '2', ''])},{draw.choice('pq')}"


def parsed(line: str) -> dict[str, Any]:
    """A line of a file as a row."""
    row: dict[str, Any] = dict(
        zip(COLUMNS, (value or None for value in line.split(",")), strict=True)
    )
    row["at"] = parse_instant_text(row["at"])
    row["seats"] = None if row["seats"] is None else int(row["seats"])
    return row


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows in an order, with times as people write them."""
    times = ("at", "since", "valid_from", "valid_to")
    found = [
        tuple(
            show_instant(value) if name in times and value is not None else value
            for name, value in row.items()
        )
        for row in rows
    ]
    return sorted(found, key=repr)


def as_of(lines: list[str], held: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Each change with the plan that its user had then, by the rows of ``by_columns``."""
    found = []
    for row in map(parsed, lines):
        at = show_instant(row["at"])
        then = [
            (plan, seats)
            for who, big, _, plan, seats, _, start, end in held
            if who == row["who"] and who is not None and big and start <= at
            if end is None or at < end
        ]
        found += [(date.fromisoformat(at[:10]), row["id"], *one) for one in then or [(None, None)]]
    return sorted(found, key=repr)


def expected(lines: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """Both tables by brute force."""
    rows = [parsed(line) for line in lines]
    names = ("who", "at", "plan", "seats", "note")
    by_time = [{name: row[name] for name in names} for row in rows]
    by_columns = [
        {
            "who": row["who"],
            "big": None if row["seats"] is None else row["seats"] > 1,
            "since": row["at"] - row["at"] % 3_600_000_000,
            "plan": row["plan"],
            "seats": row["seats"],
            "note": row["note"],
        }
        for row in rows
        if row["plan"] is not None and row["plan"] != "x"
    ]
    both = versions(by_columns, key=["who", "big"], time="since", compared=["plan", "seats"])
    return {
        "by_time": shown(versions(by_time, key=["who"], time="at")),
        "by_columns": shown(both),
        "snapshots": shown(
            versions(
                [
                    {name: row[name] for name in ("who", "at", "plan", "seats")}
                    for row in rows
                    if row["who"] is not None and not row["who"].startswith("crowd")
                ],
                key=["who"],
                time="at",
                compared=["plan", "seats"],
                snapshots=True,
            )
        ),
    }


POINTS = (
    ("by_columns", "table by_columns: before commit"),
    ("by_columns", "table by_columns: after commit"),
    ("by_columns", "ledger prepare_step: after commit"),
)
"""Where a run dies, one after the other."""


class _AllBut(list[tuple[str, str]]):
    """The points met; those where no run is to die count as met."""

    def __contains__(self, point: object) -> bool:
        return point not in POINTS or super().__contains__(point)


def run(shop: ClicksProject, life: Life | None = None) -> dict[str, tuple[Action, Receipt]]:
    """What a run did, by model."""
    found = api.run(
        api.open_project(shop.root),
        as_of=parse_instant_text(NOW),
        allow_removals=True,
        progress=life,
        jobs=1 if life else None,  # a life passes the points of one model after the other
    )
    assert not found.failures, [str(one.error) for one in found.failures]
    return {step.model: (step.action, receipt) for step, receipt in found.steps}


def test_random_changes(
    tmp_path: Path, warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    After every run both tables are those of the reference, folded, and in the end verified.

    From the second run on, rows to remove are found by a filter, as in a large table.
    """
    draw = random.Random(7)
    shop = shop_with(tmp_path, warehouse, "SELECT 1", SOURCE)
    (tmp_path / "models" / "clicks.sql").unlink()
    for name, text in (
        ("changes", CHANGES),
        ("by_time", BY_TIME),
        ("by_columns", BY_COLUMNS),
        ("snapshots", SNAPSHOTS),
        ("as_of", AS_OF),
    ):
        shop.model(name, text)
    files = {"crowd.csv": list(CROWD)}
    number = 0
    for turn in range(3):
        if turn == 1:
            monkeypatch.setattr(key_filter, "pays", lambda *_: True)
        for _ in range(draw.randint(1, 2)):
            old = [name for name in files if name != "crowd.csv"]
            if turn > 1 and draw.random() < 0.5:
                files.pop(draw.choice(old), None)
            lines = [drawn(draw, number + n) for n in range(draw.randint(1, 5))]
            number += len(lines)
            files[f"f{draw.randint(0, 4)}.csv"] = lines
        for path in (tmp_path / "landing").glob("*.csv"):
            if path.name not in files:
                path.unlink()
        for name, lines in files.items():
            text = "\n".join([",".join(COLUMNS), *lines]) + "\n"
            if not (path := tmp_path / "landing" / name).exists() or path.read_text() != text:
                path.write_text(text)
        steps = run(shop)
        every = [line for lines in files.values() for line in lines]
        wanted = expected(every)
        wanted["as_of"] = as_of(every, wanted["by_columns"])
        for name, rows in wanted.items():
            assert shop.rows(name) == rows, name
            if turn and name in steps and name.startswith("by_"):
                assert steps[name][0] is Action.FOLD
                assert steps[name][1].written < 30
    # A version from the third day on ends one that began before: no cell before it is looked at.
    files["last.csv"] = ["last,ann,2024-02-03 05:00:00,z,2,p"]
    (tmp_path / "landing" / "last.csv").write_text(
        "\n".join([",".join(COLUMNS), *files["last.csv"]]) + "\n"
    )
    before, after = shop.rows("by_columns"), expected([*every, *files["last.csv"]])["by_columns"]
    met = _AllBut()
    for _ in range(len(POINTS)):
        with living(met=met) as life:
            run(shop, life)
        met.append(life.passed[-1])
        assert shop.rows("by_columns") in (before, after)
    assert set(met) == set(POINTS)
    action, receipt = run(shop)["as_of"]
    assert (action, receipt.cells_built) == (Action.RECOMPUTE, 1)
    assert shop.proven()


def test_snapshots_by_the_times_of_their_files(
    tmp_path: Path, warehouse: Path, spark: SparkSession
) -> None:
    """Files of a lookup are snapshots by their times: a late one enters, a deleted one goes."""
    source = """    file_time_column: taken_at
    columns: {who: string, plan: string}
"""
    shop = shop_with(tmp_path, warehouse, "SELECT 1", source)
    (tmp_path / "models" / "clicks.sql").unlink()
    shop.model(
        "plans",
        """---
materialization: scd_type_2
unique_key: [who]
scd_type_2: {updated_at: taken_at, columns: [plan], invalidate_hard_deletes: true}
---
SELECT * FROM raw.clicks""",
    )

    def put(day: int, *rows: str) -> None:
        shop.put(f"{day}.csv", *rows, header="who,plan")
        at = parse_instant_text(f"2024-02-{day:02}") // 1_000_000
        os.utime(tmp_path / "landing" / f"{day}.csv", (at, at))

    def held() -> list[str]:
        run(shop)
        return [
            f"{who} {plan} {start[8:]}-{end[8:] if end else ''}"
            for who, plan, _, start, end in shop.rows("plans")
        ]

    put(1, "ann,a", "bob,a")
    put(5, "ann,a")
    assert held() == ["ann a 01-", "bob a 01-05"]
    put(3, "ann,b")
    assert held() == ["ann a 01-03", "ann a 05-", "ann b 03-05", "bob a 01-03"]
    shop.drop("1.csv")
    assert held() == ["ann a 05-", "ann b 03-05"]
    assert shop.proven()
