"""
Changes of definitions over drawn rows of all types: derived tables equal those built afresh.

Some changes are drawn, and some are of fields of structs: added, taken away, in another order, also
inside arrays and maps. Each model is compared with another one of the new definition, which was
never built by the earlier one: rows, values to the last bit, names and types of the columns.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.time_range.daily_project import DailyProject, model

from infold import api
from infold.core.plan import Action
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.spark

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    event_time_column: ts
    columns:
      id: int
      who: string
      ts: timestamp
      amount: "decimal(18,2)"
      at: "struct<x:int,y:struct<z:string,w:double>>"
      tags: "array<struct<k:string,n:int>>"
      by: "map<string,struct<n:int,m:decimal(9,2)>>"
"""
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


STRUCTS = {
    "made": (
        "struct(id, who AS name)",
        "struct(who AS name, id, id + 1 AS next, CAST(NULL AS int) AS none)",
    ),
    "into": ("ts", "struct(ts, struct(upper(who) AS big, id) AS both)"),
    "out": ("struct(id AS i, struct(who) AS w, at)", "struct(id * 2 AS twice, at.y)"),
    "at": ("at", "struct(at.y.w, at.x AS x, struct(at.y.z) AS y)"),
    "tags": ("tags", "transform(tags, t -> struct(t.n AS m, t.k, who))"),
    "by": ("by", "transform_values(by, (k, v) -> struct(v.m, v.n, k AS key))"),
    "loop": (
        "transform(tags, t -> struct(t.k, t.n + 1 AS n, upper(t.k) AS big))",
        "transform(tags, t -> struct(upper(t.k) AS big, 'x' AS new, t.k))",
    ),
    "loop_of_map": (
        "transform_values(by, (k, v) -> struct(k, v.n, v.m))",
        "transform_values(by, (k, v) -> struct(v.m, k))",
    ),
    "wider": (
        "struct(cast(at.y.w AS int) AS n, who)",
        "named_struct('who', who, 'n', cast(at.y.w AS bigint))",
    ),
}
"""Columns before and after."""


def struct_items(at: int) -> str:
    """All of these columns, before (0) or after (1)."""
    return ", ".join(f"{pair[at]} AS {name}" for name, pair in STRUCTS.items())


DERIVED = {
    "rows": (
        select(["id", "who", struct_items(0)], []),
        select([struct_items(1)], ["at.x > 1"]),
    ),
    "passed": (select(["at", "id"], []), select(["struct(at.y.w, at.x) AS at"], [])),
    "grouped": (
        select(["struct(count(*) AS n, max(id) AS last) AS s"], [], ["1"]),
        select(["struct(max(id) AS last, count(*) AS n, count(*) * 2 AS m) AS s"], [], ["1"]),
    ),
}
BUILT = {
    "lost": (select(["struct(id) AS s"], []), select(["struct(id, who) AS s"], [])),
    "small": (
        select(["struct(tinyint(id) AS t, who) AS s"], []),
        select(["struct(tinyint(id) AS t) AS s"], []),
    ),
    "narrow": (
        select(["array(tinyint(id)) AS s"], []),
        select(["transform(array(tinyint(id)), x -> hex(x)) AS h"], []),
    ),
}


def land(shop: DailyProject, rng: Random, rows: int) -> None:
    """A file of clicks over four days, in which each value may be NULL, also within others."""

    def maybe(value: object) -> object:
        return None if rng.random() < 0.2 else value

    lines = []
    for _ in range(rows):
        time = f"2024-03-0{rng.randint(1, 4)}T{rng.randint(10, 14)}:{rng.randint(10, 59)}:00"
        tags = [maybe({"k": maybe("a"), "n": maybe(rng.randint(0, 3))}) for _ in range(3)]
        values = {key: maybe({"n": maybe(1), "m": maybe(1.25)}) for key in "ab"}
        row = {
            "id": maybe(rng.randint(1, 11)),
            "who": maybe(rng.choice(["ann", "Ann", "bob", "zoë"])),
            "ts": f"{time}.{rng.randint(1, 999999):06}Z",
            "amount": maybe(rng.choice([0, 1.55, 2.5, -3.2, 100.01])),
            "at": maybe({"x": maybe(rng.randint(0, 4)), "y": maybe({"z": maybe("z"), "w": 2.5})}),
            "tags": maybe(tags[: rng.randint(0, 3)]),
            "by": maybe(values),
        }
        lines.append(json.dumps(row))
    shop.files += 1
    (shop.root / "landing" / f"{shop.files}.json").write_text("\n".join(lines), encoding="utf-8")


def table(shop: DailyProject, name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and types of a table's columns, and its rows."""
    found = api.lake(shop.project()).rows(name)
    columns = [(field.name, str(field.type)) for field in found.schema]
    return columns, sorted(repr(tuple(row.values())) for row in found.to_pylist())


def test_derived_tables_are_those_built_afresh(tmp_path: Path) -> None:
    """Whatever is derived is what a first build gives, late rows included; a dropped field is
    refused where losses are.
    """
    rng = Random(1)
    drawn = [of_rows(rng) for _ in range(5)] + [of_groups(rng) for _ in range(4)]
    changes = {f"drawn{at}": pair for at, pair in enumerate(drawn)} | DERIVED | BUILT
    shop = DailyProject(tmp_path / "shop")
    (shop.root / "infold.yml").write_text(PROJECT, encoding="utf-8")
    land(shop, rng, 40)
    shop.models(**{name: model(old) for name, (old, _) in changes.items()})
    shop.go()
    land(shop, rng, 5)
    shop.models(**{name: model(new) for name, (_, new) in changes.items()})
    shop.models(**{f"fresh_{name}": model(new) for name, (_, new) in changes.items()})

    result = shop.go()

    done = {step.model for step, _ in result.steps if step.action is Action.DERIVE}
    assert done & (DERIVED | BUILT).keys() == DERIVED.keys()
    assert len(done - DERIVED.keys()) >= 4, "too few changes are derived"
    for name, (old, new) in changes.items():
        how = "derived" if name in done else "built"
        assert table(shop, name) == table(shop, f"fresh_{name}"), f"{how}\n{old}\n{new}"

    passed = model(select(["struct(at.x) AS at"], []))
    refusing = passed.replace("incremental:", "on_destructive_change: error\nincremental:")
    shop.models(passed=refusing)
    with pytest.raises(InfoldError, match=r"field at\.w is dropped"):
        shop.go()
