"""
Fields of structs added, taken away, in another order, also inside arrays and maps.

What follows from the stored rows is compared with the definition over all files, as are changes
that do not follow; names, types and values.
"""

from __future__ import annotations

import json
from pathlib import Path
from random import Random

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
      at: "struct<x:int,y:struct<z:string,w:double>>"
      tags: "array<struct<k:string,n:int>>"
      by: "map<string,struct<n:int,m:decimal(9,2)>>"
"""
ROWS = {
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


def items(at: int) -> str:
    """All of these columns, before (0) or after (1)."""
    return ", ".join(f"{pair[at]} AS {name}" for name, pair in ROWS.items())


DERIVED = {
    "rows": (f"id, who, {items(0)}", f"{items(1)} FROM_AND at.x > 1"),
    "passed": ("at, id", "struct(at.y.w, at.x) AS at"),
    "grouped": (
        "struct(count(*) AS n, max(id) AS last) AS s GROUPED",
        "struct(max(id) AS last, count(*) AS n, count(*) * 2 AS m) AS s GROUPED",
    ),
}
BUILT = {
    "lost": ("struct(id) AS s", "struct(id, who) AS s"),
    "small": ("struct(tinyint(id) AS t, who) AS s", "struct(tinyint(id) AS t) AS s"),
    "narrow": ("array(tinyint(id)) AS s", "transform(array(tinyint(id)), x -> hex(x)) AS h"),
}


def query(columns: str) -> str:
    """The items as a model; words in capital letters stand for clauses."""
    columns, _, where = columns.partition(" FROM_AND ")
    columns, _, _ = columns.partition(" GROUPED")
    text = f"SELECT cast(ts AS date) AS day, {columns} FROM raw.clicks"
    text += f" WHERE {where}" if where else ""
    return model(text + (" GROUP BY 1" if "count(*)" in columns else ""))


def land(shop: DailyProject, rng: Random, rows: int) -> None:
    """A file of clicks in which each value may be NULL, also within others."""

    def maybe(value: object) -> object:
        return None if rng.random() < 0.2 else value

    lines = []
    for _ in range(rows):
        tags = [maybe({"k": maybe("a"), "n": maybe(rng.randint(0, 3))}) for _ in range(3)]
        values = {key: maybe({"n": maybe(1), "m": maybe(1.25)}) for key in "ab"}
        row = {
            "id": maybe(rng.randint(1, 9)),
            "who": maybe(rng.choice(["ann", "bob"])),
            "ts": f"2024-03-0{rng.randint(1, 3)}T10:00:00Z",
            "at": maybe({"x": maybe(rng.randint(0, 4)), "y": maybe({"z": maybe("z"), "w": 2.5})}),
            "tags": maybe(tags[: rng.randint(0, 3)]),
            "by": maybe(values),
        }
        lines.append(json.dumps(row))
    shop.files += 1
    (shop.root / "landing" / f"{shop.files}.json").write_text("\n".join(lines), encoding="utf-8")


def project(root: Path) -> DailyProject:
    """A project without models."""
    made = DailyProject(root)
    (root / "infold.yml").write_text(PROJECT, encoding="utf-8")
    return made


def test_fields_of_structs(tmp_path: Path) -> None:
    """Fields follow from stored fields; where they do not, the table is built; both are right. A
    dropped field is refused in production before anything is written.
    """
    rng, every = Random(5), DERIVED | BUILT
    shop = project(tmp_path / "shop")
    land(shop, rng, 30)
    shop.models(**{name: query(old) for name, (old, _) in every.items()})
    api.run(shop.project())
    shop.models(**{name: query(new) for name, (_, new) in every.items()})
    land(shop, rng, 4)

    result = api.run(shop.project())

    done = {step.model for step, _ in result.steps if step.action is Action.DERIVE}
    assert done == DERIVED.keys()
    shop.verify()

    passed = query("struct(at.x) AS at").replace(
        "incremental:", "on_destructive_change: error\nincremental:"
    )
    shop.models(passed=passed)
    with pytest.raises(InfoldError, match=r"field at\.w is dropped"):
        api.run(shop.project())
