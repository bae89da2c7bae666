"""Changed definitions that follow from stored rows: none of the inputs is read."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from random import Random

import pytest
from tests.spark.time_range.daily_project import DailyProject, days, model

from infold import api
from infold.core.plan import Action
from infold.messages.errors import InfoldError
from infold.spark.time_range import recompute

pytestmark = pytest.mark.spark


ROWS = "SELECT cast(ts AS date) AS day, id, who, amount FROM raw.clicks"
SUMS = """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM raw.clicks GROUP BY 1"""
GROUPED = """SELECT cast(ts AS date) AS day, float(amount - amount) AS f, count(*) AS n
FROM raw.clicks {0} GROUP BY 1, 2"""
ODD = "double(CASE id WHEN 1 THEN 'NaN' WHEN 2 THEN '-0.0' ELSE '-1.5' END)"
TOTAL = "---\nmaterialization: cumulative_aggregate\n---\nSELECT who, count(*) AS n FROM visits"


def of_type(column: str) -> str:
    """Rows with another column."""
    return model(f"SELECT cast(ts AS date) AS day, {column} FROM raw.clicks")


def odd(columns: str, condition: str = "") -> str:
    """Rows with a number that is none, or negative and nought."""
    return model(f"SELECT cast(ts AS date) AS day, id{columns} FROM raw.clicks {condition}")


CHANGES = {
    # A dropped and a computed column, another order, a condition: together one step.
    "columns": (
        model(ROWS),
        model(
            "SELECT upper(who) AS big, id * 2 AS twice, cast(ts AS date) AS day "
            "FROM raw.clicks WHERE who = 'ann'"
        ),
        "derive",
    ),
    "sums": (model(SUMS), model(f"{SUMS} HAVING count(*) > 1"), "derive"),
    # Columns have the types of the query; where the stored type is another, they are built.
    "small": (
        of_type("cast(id AS smallint) AS s"),
        of_type("cast(id AS smallint) AS s, -s AS neg"),
        "derive",
    ),
    "hex_of_small": (
        of_type("cast(id AS smallint) AS s"),
        of_type("hex(cast(id AS smallint)) AS h"),
        "build",
    ),
    "hex_of_big": (
        of_type("cast(id AS bigint) AS s"),
        of_type("hex(cast(id AS bigint)) AS h"),
        "derive",
    ),
    "array": (
        of_type("array(cast(id AS tinyint)) AS s"),
        of_type("array(cast(id AS tinyint)) AS z"),
        "derive",
    ),
    "struct": (
        of_type("struct(id, array(1)) AS s"),
        of_type("struct(id, array(1)) AS z"),
        "derive",
    ),
    # A condition on a group of such numbers is none on its rows: 0.0 and -0.0 are one group.
    "floats": (
        model(GROUPED.format("")),
        model(GROUPED.format("WHERE float(amount - amount) >= 0")),
        "build",
    ),
    # Spark decides about NaN and -0.0, and not the statistics of files.
    "above_1": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} > 1"), "derive"),
    "nought": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} = 0"), "derive"),
    "at_least_0": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} >= 0"), "derive"),
    # Where an input is built again with other types, what was derived from the old ones is not.
    "ints": (model(ROWS), model(ROWS.replace("id,", "cast(id AS bigint) AS id,")), "derive"),
    "of_ints": (
        model("SELECT day, id, who FROM ints"),
        model("SELECT day, id FROM ints"),
        "build",
    ),
    # A decimal with more digits hashes alike, so no content tells its readers; its type does.
    "money": (
        model(ROWS.replace("amount", "cast(amount AS decimal(9,2)) AS amount")),
        model(ROWS.replace("amount", "cast(amount AS decimal(12,2)) AS amount")),
        "derive",
    ),
    "of_money": (model("SELECT day, id, amount FROM money"), "", "build"),
    "beside_money": (model("SELECT day, id, who FROM money"), "", ""),
    # A reader that folds changes gets those of the derived table.
    "visits": (model(ROWS), model(f"{ROWS} WHERE id <> 3"), "derive"),
    "total": (f"{TOTAL} GROUP BY who\n", "", "fold"),
    # A later start takes rows out.
    "started": (model(ROWS), model(ROWS, "{start: 2024-03-03}"), "derive"),
}
"""Each model before and, if it changes, after; and what is done then."""


def steps(shop: DailyProject, before: int) -> list[tuple[str, str]]:
    """What was done to which model since some runs; a step that derives reads nothing."""
    runs = api.ledger_of(shop.project()).runs(100)
    found = [step for run in runs[: len(runs) - before] for step in run.steps]
    return [(step.model, str(step.action)) for step in found if step.state == "done"]


def ids(shop: DailyProject, table: str) -> list[object]:
    """The second column of a table."""
    return [row[1] for row in shop.rows(table)]


def test_rows_that_follow_from_stored_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are those of the new definitions, each derived once though a run died after a commit; the
    tables lie on disk as before. An earlier start builds the new cells alone.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*days("2024-03-01", 5))
    shop.land("2024-03-01T11:00:00Z", who="bob")
    shop.models(**{name: before for name, (before, _, _) in CHANGES.items()})
    with monkeypatch.context() as patch:
        patch.setattr(recompute, "_ROWS_FOR_PARTITIONS", 1)
        shop.go()
    shop.models(**{name: after for name, (_, after, _) in CHANGES.items() if after})

    shop.die_at("columns", "table columns: after commit")
    result = shop.go()

    assert all(r.read == 0 for step, r in result.steps if str(step.action) == "derive")
    expected = [(name, action) for name, (_, _, action) in CHANGES.items() if action]
    assert sorted(steps(shop, 1)) == sorted(expected)
    assert [row[0] for row in shop.rows("columns")] == ["ANN"] * 5
    assert len(shop.rows("sums")) == 1
    assert [ids(shop, name) for name in ("above_1", "nought", "at_least_0")] == [[1], [2], [1, 2]]
    assert shop.rows("total") == [("ann", 4), ("bob", 1)]
    assert ids(shop, "started") == [3, 4, 5]
    layout = api.lake_of(shop.project()).layout("columns")
    assert layout is not None
    assert layout.column == "day"
    assert layout.partition is not None

    for start, done, kept in (
        ("2024-03-02", ["derive", "recompute"], [2, 3, 4, 5]),
        ("2024-03-04T13:00:00", ["derive"], [5]),
    ):
        shop.models(started=model(ROWS, f"{{start: '{start}', exact_start: true}}"))
        versions = len(api.ledger_of(shop.project()).versions("started", 0))
        moved = shop.go()
        assert [(step.model, str(step.action)) for step, _ in moved.steps] == [
            ("started", action) for action in done
        ]
        assert ids(shop, "started") == kept
        # A start that only moves earlier changes no row: the ledger alone records it.
        assert len(api.ledger_of(shop.project()).versions("started", 0)) - versions == 1
    shop.verify()


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
NARROW = {
    "small": "cast(id AS smallint)",
    "round": "cast(amount AS int)",
    "cents": "cast(amount / 7 AS decimal(20,2))",
    "text": "cast(cast(id AS string) AS smallint)",
    "time": "cast(ts AS int)",
    "real": "CASE id % 5 WHEN 0 THEN double('NaN') WHEN 1 THEN double('-0.0') ELSE id / 3D END",
    "local": "cast(ts AS timestamp_ntz)",
    "bytes": "cast(who AS binary)",
}
WIDE = NARROW | {
    "small": "cast(id AS bigint)",
    "round": "cast(amount AS bigint)",
    "cents": "cast(amount / 7 AS decimal(38,2))",
    "text": "cast(cast(id AS string) AS int)",
    "time": "cast(ts AS bigint)",
}
"""The same to wider types; what is rounded, cut or read by them is still the same."""


def named(items: Mapping[str, str]) -> list[str]:
    """Items with their names."""
    return [f"{sql} AS {name}" for name, sql in items.items()]


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
    "widened": (select(named(NARROW), []), select(named(WIDE), [])),
    "sums": (
        select(["who", "cast(sum(amount) AS int) AS sum", "count(*) AS n"], [], ["1", "who"]),
        select(
            ["cast(sum(amount) AS bigint) AS sum", "concat(who, '!') AS loud"],
            ["who IS NOT NULL"],
            ["1", "who"],
            ["count(*) > 1"],
        ),
    ),
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
    shop.write(f"landing/{shop.files}.json", "\n".join(lines))


def table(shop: DailyProject, name: str) -> tuple[list[tuple[str, str]], list[str]]:
    """Names and types of a table's columns, and its rows."""
    found = api.lake_of(shop.project()).rows(name)
    columns = [(field.name, str(field.type)) for field in found.schema]
    return columns, sorted(repr(tuple(row.values())) for row in found.to_pylist())


def test_derived_tables_are_those_built_afresh(tmp_path: Path) -> None:
    """Whatever is derived is what a first build gives, late rows included; a dropped field is
    refused where losses are.
    """
    rng = Random(1)
    changes = DERIVED | BUILT
    shop = DailyProject(tmp_path / "shop", PROJECT)
    land(shop, rng, 40)
    shop.models(**{name: model(old) for name, (old, _) in changes.items()})
    shop.go()
    land(shop, rng, 5)
    shop.models(**{name: model(new) for name, (_, new) in changes.items()})
    shop.models(**{f"fresh_{name}": model(new) for name, (_, new) in changes.items()})

    result = shop.go()

    done = {step.model for step, _ in result.steps if step.action is Action.DERIVE}
    assert done == DERIVED.keys()
    for name, (old, new) in changes.items():
        how = "derived" if name in done else "built"
        assert table(shop, name) == table(shop, f"fresh_{name}"), f"{how}\n{old}\n{new}"

    passed = model(select(["struct(at.x) AS at"], []))
    refusing = passed.replace("incremental:", "on_destructive_change: error\nincremental:")
    shop.models(passed=refusing)
    with pytest.raises(InfoldError, match=r"field at\.w is dropped"):
        shop.go()


CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {{event_time_column: ts, granularity: {0}}}
---
SELECT id, who, ts, amount FROM raw.clicks"""
SESSIONS = """---
materialization: sessions
timeseries: {{event_time_column: session_start, granularity: {0}}}
sessions: {{user: who, gap: 12 hours}}
---
SELECT count(*) AS n, sum(amount) AS amount FROM {1}"""
BY_USER = """---
materialization: cumulative_aggregate
---
SELECT who, count(*) AS n, sum(amount) AS amount FROM {0} GROUP BY who"""
VISITS = "SELECT cast(ts AS date) AS day, id, who, amount FROM clicks"
TIMES = "SELECT ts AS at, id, who, amount FROM raw.clicks"
TABLES = ("clicks", "visits", "times", "sessions")


def written(shop: DailyProject, by: str) -> None:
    """The models, with this granularity."""
    shop.models(
        clicks=CLICKS.format(by),
        visits=model(VISITS, granularity=by),
        times=model(TIMES, column="at", granularity=by),
        sessions=SESSIONS.format(by, "times"),
        calls=SESSIONS.format("day", "clicks"),
        by_visitor=BY_USER.format("visits"),
    )


def land_csv(shop: DailyProject, rng: Random, name: str) -> None:
    """A file of clicks over three months, or another in its place; few ids, so some are copies."""
    lines = ["id,who,ts,day,amount"]
    for _ in range(rng.randint(1, 6)):
        time = f"2024-0{rng.randint(1, 3)}-{rng.randint(1, 28):02}T{rng.randint(0, 23):02}:30:00Z"
        lines.append(f"{rng.randint(1, 60)},{rng.choice(['ann', 'bob'])},{time},,1.50")
    shop.write(f"landing/{name}", "\n".join(lines) + "\n")


def run(shop: DailyProject, *models: str) -> set[tuple[str, Action]]:
    """A run, of some models or all. What was done to which."""
    result = shop.go(select=models)
    for step, receipt in result.steps:
        if step.action is Action.REBUCKET:
            assert (receipt.read, receipt.written, receipt.commits) == (0, 0, 0)
    return {(step.model, step.action) for step, _ in result.steps}


def states(shop: DailyProject) -> dict[str, list[tuple[object, ...]]]:
    """The states of the cells of all tables, and of the files by cell, in the ledger."""
    book = api.ledger_of(shop.project())
    found: dict[str, list[tuple[object, ...]]] = {
        name: [(state.cell, state.rows, state.content) for state in book.cells(name)]
        for name in TABLES
    }
    paths = {file.id: file.path for file in book.files("clicks")}
    entries = book.file_cells("clicks")
    rows = [(paths[one.file_id], one.cell, one.rows, one.dropped) for one in entries if one.rows]
    return found | {"files": sorted(rows)}


def test_tables_in_other_cells_are_those_built_afresh(tmp_path: Path) -> None:
    """
    A change of cells alone builds no reader. A row that its month lost and got again is none that
    its day, which got another, has more.
    """
    rng = Random(1)
    shop = DailyProject(tmp_path / "shop")
    for at in range(5):
        land_csv(shop, rng, f"{at}.csv")
    rows = "id,who,ts,day,amount\n{0},zoe,2024-02-02T10:00:00Z,,1.00\n"
    shop.write("landing/old.csv", rows.format(90))
    written(shop, "day")
    run(shop)
    shop.write("landing/new.csv", rows.format(91))
    run(shop, "clicks", "visits", "times")
    written(shop, "month")
    shop.drop("old.csv")
    done = run(shop, "clicks", "visits", "times")
    assert {name for name, done in done if done is Action.REBUCKET} == {"clicks", "visits", "times"}
    shop.write("landing/old.csv", rows.format(90))
    done = run(shop)
    assert ("sessions", Action.REBUCKET) in done
    assert ("calls", Action.FOLD) in done
    assert [row[-2] for row in shop.rows("calls") if "zoe" in row] == [2]

    fresh = DailyProject(tmp_path / "fresh")
    shutil.copytree(shop.root / "landing", fresh.root / "landing", dirs_exist_ok=True)
    written(fresh, "month")
    run(fresh)
    assert states(shop) == states(fresh)
    for name in (*TABLES, "calls", "by_visitor"):
        assert shop.rows(name) == fresh.rows(name), name
