"""Versions of keys: random changes that are late, repeated, contradicting, replaced and deleted."""

from __future__ import annotations

import os
import random
from typing import Any

import pytest
from tests.reference.tables import versions
from tests.spark.events.clicks_project import NewShop

from infold.core.interval import parse_instant_text, show_instant
from infold.core.plan import Action
from infold.spark import key_filter

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


def expected(lines: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The tables of versions by brute force."""
    rows = [parsed(line) for line in lines]
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
    snapshots = [
        {name: row[name] for name in ("who", "at", "plan", "seats")}
        for row in rows
        if row["who"] is not None and not row["who"].startswith("crowd")
    ]
    both = ["plan", "seats"]
    return {
        "by_columns": shown(versions(by_columns, key=["who", "big"], time="since", compared=both)),
        "snapshots": shown(
            versions(snapshots, key=["who"], time="at", compared=both, snapshots=True)
        ),
    }


def test_random_changes(new_shop: NewShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After every run all tables are those of the reference, folded; also where one died after a
    commit. From the second run on, rows to remove are found by a filter, as in a large table.
    """
    draw = random.Random(7)
    shop = new_shop("", SOURCE)
    shop.models(changes=CHANGES, by_columns=BY_COLUMNS, snapshots=SNAPSHOTS)
    files = {"crowd.csv": list(CROWD)}
    number = 0

    def land() -> dict[str, list[tuple[Any, ...]]]:
        for path in (shop.root / "landing").glob("*.csv"):
            if path.name not in files:
                path.unlink()
        for name, lines in files.items():
            text = "\n".join([",".join(COLUMNS), *lines]) + "\n"
            if not (path := shop.root / "landing" / name).exists() or path.read_text() != text:
                path.write_text(text)
        return expected([line for lines in files.values() for line in lines])

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
        wanted = land()
        steps = {step.model: (step.action, receipt) for step, receipt in shop.go().steps}
        for name, rows in wanted.items():
            assert shop.rows(name) == rows, name
            if turn and name in steps:
                assert steps[name][0] is Action.FOLD
                assert steps[name][1].written < 30
    files["last.csv"] = ["last,ann,2024-02-03 05:00:00,z,2,p"]
    wanted = land()
    shop.die_at("by_columns", "table by_columns: after commit")
    assert shop.rows("by_columns") == wanted["by_columns"]
    shop.run()
    assert {name: shop.rows(name) for name in wanted} == wanted


def test_snapshots_by_the_times_of_their_files(new_shop: NewShop) -> None:
    """Files of a lookup are snapshots by their times: a late one enters, a deleted one goes."""
    source = """    file_time_column: taken_at
    columns: {who: string, plan: string}
"""
    shop = new_shop("", source)
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
        os.utime(shop.root / "landing" / f"{day}.csv", (at, at))

    def held() -> list[str]:
        shop.run()
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
