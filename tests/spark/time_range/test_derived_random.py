"""
Drawn changes of definitions over drawn rows of all types: derived tables equal those built afresh.

Each model is compared with another one of the new definition, which was never built by the earlier
one: rows, values to the last bit, names and types of the columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.plan import Action

pytestmark = pytest.mark.spark

ITEMS = {
    "id": "id",
    "who": "who",
    "amount": "amount",
    "ts": "ts",
    "big": "id * 3000000000L",
    "part": "amount / 7",
    "real": "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-0.0') ELSE id / 3D END",
    "single": "float(id) / 3",
    "small": "cast(id AS smallint)",
    "upper_who": "upper(who)",
    "list": "array(id, NULL, 3)",
    "pair": "named_struct('a', id, 'b', who)",
    "bytes": "cast(who AS binary)",
    "local": "cast(ts AS timestamp_ntz)",
    "flag": "id % 2 = 0",
    "round": "cast(amount AS int)",
    "cents": "cast(amount / 7 AS decimal(20,2))",
    "text": "cast(cast(id AS string) AS smallint)",
    "time": "cast(ts AS int)",
}  # fmt: skip
WIDER = {
    "small": "cast(id AS bigint)",
    "round": "cast(amount AS bigint)",
    "cents": "cast(amount / 7 AS decimal(38,2))",
    "text": "cast(cast(id AS string) AS int)",
    "time": "cast(ts AS bigint)",
    "sum": "cast(sum(amount) AS bigint)",
}
"""The same to wider types; what is rounded, cut or read by them is still the same."""
COMPUTED = (
    "id + 1",
    "who",
    "amount * 2 - id",
    "amount / 3",
    "round(amount, 1)",
    "concat(upper(who), '-', id)",
    "coalesce(who, '?')",
    "CASE WHEN amount > 2 THEN 'big' WHEN who IS NULL THEN NULL ELSE lower(who) END",
    "ts + INTERVAL 1 DAY",
    "date_trunc('HOUR', ts)",
    "cast(amount AS double) / 3",
    "1L",
    "'x'",
    "id % 2 = 0 OR who LIKE 'b%'",
    "md5(who)",
    "amount BETWEEN 1 AND id",
    "if(id > 3, amount, NULL)",
    "float(id) * 2",
    "cast(id AS string)",
    "cast(id AS smallint)",
    "array(id, id + 1)[1]",
)
CONDITIONS = (
    "id % 2 = 0",
    "who IS NOT NULL",
    "amount > 1.5",
    "(who = 'ann' OR id > 6)",
    "ts >= TIMESTAMP '2024-03-02 11:00:00'",
    "NOT (who LIKE 'b%')",
    "id <=> 4",
    "coalesce(amount, 0) < 5",
    "upper(who) <> 'BOB'",
    "CAST(ts AS date) > DATE '2024-03-01'",
)
KEYS = {"who": "who", "name": "upper(who)", "kind": "round(amount, 0)", "real": "float(id) / 4"}
SUMS = {
    "n": "count(*)",
    "total": "sum(amount)",
    "last": "max(ts)",
    "least": "min(who)",
    "mean": "avg(amount)",
    "ids": "count(DISTINCT id)",
    "sum": "cast(sum(amount) AS int)",
}
OVER_GROUPS = (
    "sum(amount) / count(*)",
    "max(ts) - INTERVAL 1 HOUR",
    "upper(min(who))",
    "count(*) + 1",
    "avg(amount) * 2",
)
HAVING = ("count(*) > 1", "sum(amount) IS NOT NULL", "max(ts) > TIMESTAMP '2024-03-02 00:00:00'")


def some(rng: Random, names: Any, least: int = 0) -> list[Any]:
    """A few of some names, in another order."""
    found = [name for name in names if rng.random() < 0.5]
    while len(found) < least:
        found.append(rng.choice([name for name in names if name not in found]))
    rng.shuffle(found)
    return found


def of_rows(rng: Random) -> tuple[str, str]:
    """A query without groups, before and after a change."""
    plain, others = ("id", "who", "amount", "ts"), [*ITEMS][4:]
    items = [*(name for name in plain if rng.random() < 0.9), *some(rng, others)]
    where = some(rng, CONDITIONS)[:1]
    old = select([f"{ITEMS[name]} AS {name}" for name in items], where)
    new_items = [f"{perhaps_wider(rng, name, ITEMS)} AS {name}" for name in some(rng, items)]
    new_items += [f"{sql} AS z{at}" for at, sql in enumerate(some(rng, COMPUTED)[:2])]
    rng.shuffle(new_items)
    return old, select(new_items, [*where, *some(rng, CONDITIONS)[: rng.choice([0, 1, 2])]])


def perhaps_wider(rng: Random, name: str, items: Mapping[str, str]) -> str:
    """An item as it was, or half the time with a wider type."""
    return WIDER[name] if name in WIDER and rng.random() < 0.5 else items[name]


def of_groups(rng: Random) -> tuple[str, str]:
    """A query with groups, before and after a change."""
    keys = some(rng, KEYS, least=1)[:2]
    sums = some(rng, SUMS, least=2)
    by = ["1", *(KEYS[name] for name in keys)]
    old = select([f"{KEYS[k]} AS {k}" for k in keys] + [f"{SUMS[s]} AS {s}" for s in sums], [], by)
    items = [f"{KEYS[k]} AS {k}" for k in some(rng, keys)]
    items += [f"{perhaps_wider(rng, s, SUMS)} AS {s}" for s in some(rng, sums)]
    over = [*OVER_GROUPS, *(f"concat({KEYS[name]}, '!')" for name in keys)]
    items += [f"{sql} AS z{at}" for at, sql in enumerate(some(rng, over)[:2])]
    where = [f"{KEYS[name]} IS NOT NULL" for name in keys if rng.random() < 0.3]
    return old, select(items, where, by, some(rng, HAVING)[:1])


def select(
    items: list[str], where: list[str], by: list[str] | None = None, having: list[str] | None = None
) -> str:
    """A query over the clicks; the day comes first, so that groups can name it."""
    text = f"SELECT {', '.join(['cast(ts AS date) AS day', *items])} FROM raw.clicks"
    text += f" WHERE {' AND '.join(where)}" if where else ""
    text += f" GROUP BY {', '.join(by)}" if by else ""
    return text + (f" HAVING {' AND '.join(having)}" if having else "")


def land(shop: DailyProject, rng: Random, rows: int) -> None:
    """A file of clicks with many missing values, over four days."""
    lines = ["id,who,ts,day,amount"]
    for _ in range(rows):
        who = rng.choice(["ann", "Ann", "bob", "zoë", ""])
        time = f"2024-03-0{rng.randint(1, 4)}T{rng.randint(10, 14)}:{rng.randint(10, 59)}:00"
        time += f".{rng.randint(1, 999999):06}Z"
        amount = rng.choice(["", "0.00", "1.55", "2.50", "-3.20", "100.01"])
        lines.append(f"{rng.choice(['', *range(1, 12)])},{who},{time},2024-03-01,{amount}")
    shop.files += 1
    file = shop.root / "landing" / f"{shop.files}.csv"
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")


def table(shop: DailyProject, name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and types of a table's columns, and its rows."""
    found = api.lake(shop.project()).rows(name)
    columns = [(field.name, str(field.type)) for field in found.schema]
    return columns, sorted(repr(tuple(row.values())) for row in found.to_pylist())


def test_derived_tables_are_those_built_afresh(tmp_path: Path) -> None:
    """Whatever is derived is what a first build gives, late rows included."""
    rng = Random(1)
    drawn = [of_rows(rng) for _ in range(5)] + [of_groups(rng) for _ in range(4)]
    shop = DailyProject(tmp_path / "shop")
    land(shop, rng, 40)
    land(shop, rng, 3)
    shop.models(**{f"m{at}": model(old) for at, (old, _) in enumerate(drawn)})
    shop.run()
    land(shop, rng, 5)
    shop.models(**{f"m{at}": model(new) for at, (_, new) in enumerate(drawn)})
    shop.models(**{f"fresh{at}": model(new) for at, (_, new) in enumerate(drawn)})

    result = shop.run()

    done = {step.model for step, _ in result.steps if step.action is Action.DERIVE}
    assert len(done) >= 4, "too few changes are derived"
    for at, (old, new) in enumerate(drawn):
        how = "derived" if f"m{at}" in done else "built"
        assert table(shop, f"m{at}") == table(shop, f"fresh{at}"), f"{how}\n{old}\n{new}"
