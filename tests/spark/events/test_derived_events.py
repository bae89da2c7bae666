"""Changed definitions and declarations of events: what follows from stored rows is not read again.

Tables are compared with those of another project, which has the same files and never had the
earlier definition.
"""

from __future__ import annotations

import json
import os
import re
import shutil
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from decimal import Decimal
from io import StringIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyarrow import parquet
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut, ClicksProject

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.model import table_name
from infold.core.plan import Action, PlanOptions
from infold.core.report import RunResult
from infold.lake.reading import listing
from infold.spark import derivations
from infold.spark.reading import source_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark


COLUMNS = """    event_time_column: at
    on_drift: set_aside
    columns:
      id: string
      at: timestamp
      v: int
      url: string
      real: double
      extra: {type: int, optional: true}
"""
SOURCE = f"{COLUMNS}  raw.copies:\n    path: copies/*.csv\n    may_be_empty: true\n{COLUMNS}"
HEAD = """---
materialization: events
unique_key: [id]
{}timeseries: {{event_time_column: at, granularity: day}}
---
"""
FROM = "FROM raw.clicks"


@dataclass(frozen=True)
class Change:
    """A changed query."""

    old: str
    new: str
    head: str = ""


MIXED = Change(f"id, at, v {FROM}", f"concat(url, '!') AS x, v + 1L AS w, v, id, at {FROM}")
OPTIONAL = Change(f"id, at, v {FROM}", f"id, at, v, extra {FROM}")
OF_ROWS = {
    "narrowed": Change(f"id, at, v {FROM} WHERE v > 0", f"id, at, v {FROM} WHERE v > 0 AND v < 7"),
    "everywhere": Change(
        f"id, at, v, url {FROM}", f"id, at, v, extra {FROM}", "deduplicate: everywhere\n"
    ),
}
"""Changes that follow where all rows are events of their own."""
OF_COPIES = {
    "mixed": MIXED,
    "preferred": Change(f"id, at, v {FROM}", f"id, at, v, real {FROM}", "prefer: [v desc]\n"),
}
"""Changes that follow where some events have copies too, and some rows cannot be used."""


def query(one: Change, sql: str) -> str:
    """A model's file."""
    return HEAD.format(one.head) + f"SELECT {sql}"


def queries(*, new: bool) -> dict[str, str]:
    """The models of all changes, each over the source that it is of."""
    found = {}
    for name, one in (OF_ROWS | OF_COPIES).items():
        sql = one.new if new else one.old
        found[name] = query(one, sql if name in OF_ROWS else sql.replace(FROM, "FROM raw.copies"))
    return found


def lines(rng: Random, ids: Iterable[int], *, days: Iterable[int], odd: bool) -> list[str]:
    """Rows with these ids on drawn days; ``odd`` ones cannot be used, or wait for their time."""
    found = []
    for id_ in ids:
        at = f"2024-03-{rng.choice([*days]):02}T{rng.randint(10, 12)}:00:00Z"
        key = str(id_)
        if odd and rng.random() < 0.2:
            key, at = rng.choice([("", at), (key, ""), (key, "no time"), (key, "2024-03-11")])
        v = rng.choice(["", *range(9)])
        found.append(f"{key},{at},{v},{rng.choice(['/a', '/pay', ''])},{rng.random():.3}")
    return found


HEADER = "id,at,v,url,real"


def put(shop: ClicksProject, name: str, rows: list[str], *, extra: bool = False) -> None:
    """A file of rows, with the optional column or without it."""
    rows = [f"{row},{at % 3}" for at, row in enumerate(rows)] if extra else rows
    shop.write(name, "\n".join([HEADER + (",extra" if extra else ""), *rows]) + "\n")


def project(root: Path, warehouse: Path, definitions: dict[str, str]) -> ClicksProject:
    """A project of these models."""
    shop = ClicksProject(root, warehouse, "", SOURCE)
    shop.models(**definitions)
    return shop


def state(shop: ClicksProject, models: Iterable[str]) -> dict[str, object]:
    """All that is known of each model: columns, rows, what the ledger counts, rows set aside."""
    opened = shop.project()
    book, found = api.ledger_of(opened), {}
    for name in models:
        rows = api.lake_of(opened).rows(table_name(name))
        files = {
            (file.path, file.rows, file.dropped, file.waiting, file.set_aside, file.next_due)
            for file in book.files(name)
        }
        cells = sorted((c.cell, c.rows, c.content, c.last) for c in book.cells(name))
        paths = {file.id: file.path for file in book.files(name)}
        parts = sorted(
            (paths[one.file_id], one.cell, one.rows) for one in book.file_cells(name) if one.rows
        )
        found[name] = (
            [(field.name, str(field.type)) for field in rows.schema],
            sorted(repr(tuple(row.values())) for row in rows.to_pylist()),
            sorted((p, r, w, a, n or 0) for p, r, _, w, a, n in files),
            sum(dropped for _, _, dropped, *_ in files),
            cells,
            parts,
        )
    return {**found, "aside": shop.aside()}


def test_derived_events_are_those_ingested_afresh(tmp_path: Path, warehouse: Path) -> None:
    """
    Whatever follows from stored rows is what a first ingest gives, with late, replaced and deleted
    files; of one source with copies within and across files, and rows that cannot be used before
    and after the change.
    """
    rng, changes = Random(1), queries(new=True)
    shop = project(tmp_path / "shop", warehouse, queries(new=False))
    for folder in ("landing", "copies"):
        for at in range(5):
            ids = range(20 * at, 20 * at + 20)
            rows = lines(rng, ids, days=range(1, 6), odd=folder == "copies")
            put(shop, f"{folder}/{at}.csv", rows, extra=at % 2 == 1)
    # of events of one day, in two files
    twice = lines(rng, range(200, 206), days=[7], odd=False)
    others = [row.replace("/", "/b") for row in twice[:4]]
    put(shop, "copies/5.csv", [*twice, twice[0]])
    more = lines(rng, range(300, 304), days=[7, 8], odd=False)
    put(shop, "copies/6.csv", [*others, *more])
    shop.actions()
    for folder in ("landing", "copies"):
        rows = lines(rng, range(400, 408), days=range(1, 9), odd=folder == "copies")
        put(shop, f"{folder}/late.csv", rows)
    shop.models(**changes)

    assert shop.actions() == {name: ["derive", "ingest"] for name in changes}

    for folder in ("landing", "copies"):
        rows = lines(rng, range(20, 50), days=range(1, 9), odd=folder == "copies")
        put(shop, f"{folder}/1.csv", rows)
        (shop.root / folder / "2.csv").unlink()
    assert {action for (action,) in shop.actions(now="2024-03-12").values()} == {"ingest"}

    fresh = project(tmp_path / "fresh", warehouse, changes)
    for folder in ("landing", "copies"):
        shutil.copytree(shop.root / folder, fresh.root / folder, dirs_exist_ok=True)
    fresh.run("2024-03-12")
    mine, other = state(shop, changes), state(fresh, changes)
    for name in mine:
        assert mine[name] == other[name], name


def test_columns_of_parquet(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Parquet files the new column is read, with key, time and what WHERE names."""
    source = (
        "    event_time_column: at\n    columns: {id: int, at: timestamp, a: int, b: int, c: int}\n"
    )
    shop = ClicksProject(tmp_path / "shop", warehouse, "", source)
    shop.configure("*.csv", "*.parquet")
    one = Change(f"id, at, b {FROM} WHERE a < 9", f"id, at, b, c {FROM} WHERE a < 9")
    shop.model("clicks", query(one, one.old))
    numbers = pa.array(range(10), pa.int32())
    times = pa.array([at * 10**9 for at in range(10)], pa.timestamp("us", "UTC"))
    table = pa.table({"id": numbers, "at": times, "a": numbers, "b": numbers, "c": numbers})
    parquet.write_table(table, shop.root / "landing" / "a.parquet")
    assert shop.actions() == {"clicks": ["build"]}
    shop.model("clicks", query(one, one.new))
    shown = StringIO()

    def evaluated(*words: Any) -> DataFrame:
        rows = real(*words)
        with redirect_stdout(shown):
            rows.select("_state", "id", "at", "c").explain("extended")
        return rows

    real = derivations._evaluated_files
    monkeypatch.setattr(derivations, "_evaluated_files", evaluated)
    assert shop.actions() == {"clicks": ["derive"]}
    [read] = re.findall(r"ReadSchema: struct<(.*?)>", shown.getvalue())
    names = {part.partition(":")[0] for part in read.split(",")}
    assert {name for name in names if not name.startswith("_tmp")} == {"id", "at", "a", "c"}
    assert [row[3] for row in shop.rows()] == [*range(9)]


def test_a_value_that_cannot_be_used(tmp_path: Path, warehouse: Path) -> None:
    """A value of the new column that cannot be used, found only while it is read; a file that is
    gone. Readers that name other columns are built in neither case.
    """
    one = OPTIONAL
    shop = project(tmp_path / "shop", warehouse, {"clicks": query(one, one.old)})
    count = "---\nmaterialization: cumulative_aggregate\n---\nSELECT v, count(*) AS n FROM clicks"
    shop.model("counts", f"{count} GROUP BY v")
    put(shop, "landing/a.csv", ["1,2024-03-01,1,/a,0.5", "2,2024-03-02,2,/b,0.5"])
    for name, row in (("b", "3,2024-03-03,3,/c,0.5,4"), ("c", "4,2024-03-04,4,/d,0.5,x")):
        (shop.root / "landing" / f"{name}.csv").write_text(f"{HEADER},extra\n{row}\n")
    shop.actions()
    shop.model("clicks", query(one, one.new))
    assert shop.actions()["clicks"] == ["derive", "build"]
    assert [file for file, _ in shop.aside()] == ["c.csv"]
    assert [row[3] for row in shop.rows()] == [None, None, 4]

    shop.model("clicks", query(one, f"id, at, v, url, extra {FROM}"))
    shop.drop("a.csv")
    assert shop.actions()["clicks"] == ["build"]
    assert shop.proven()


def size_and_time(found: os.stat_result) -> str:
    """As of a network share that has no time of change, and no number of a file."""
    return f"{found.st_size}:0.0:{found.st_mtime_ns}"


def test_a_file_that_lost_rows(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file whose rows are others, which its disk does not show, is ingested again."""
    for module in (listing, source_rows):
        monkeypatch.setattr(module, "stat_fingerprint", size_and_time)
    one = MIXED
    shop = project(tmp_path / "shop", warehouse, {"clicks": query(one, one.old)})
    put(shop, "landing/a.csv", ["1,2024-03-01,1,/a,0.5", "2,2024-03-02,2,/b,0.5"])
    shop.actions()
    file = shop.root / "landing" / "a.csv"
    times = file.stat()
    file.write_text(file.read_text().replace("\n2,", "\n3,"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    shop.model("clicks", query(one, one.new))

    assert shop.actions() == {"clicks": ["derive", "build"]}
    assert [row[3] for row in shop.rows()] == ["1", "3"]


NARROW = {
    "n": "int",
    "s": "smallint",
    "d": "decimal(5,2)",
    "tags": "array<struct<k:string,n:int>>",
    "by": "map<string,struct<n:int,d:decimal(5,2)>>",
}
WIDE = {
    "n": "bigint",
    "s": "int",
    "d": "decimal(12,2)",
    "tags": "array<struct<k:string,n:bigint>>",
    "by": "map<string,struct<n:bigint,d:decimal(20,2)>>",
}
KEYED = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
"""
SERIES = "timeseries: {event_time_column: day, partition_column: day, granularity: day}"
BY_DAY = f"---\nmaterialization: table\n{SERIES}\nincremental: {{}}\n---\n"
MODELS = {
    "kept": KEYED + "SELECT id, at, d, tags, by, s FROM raw.clicks",
    "chosen": KEYED + "SELECT id, at, n FROM raw.clicks",
    "floats": KEYED + "SELECT id, at, x FROM raw.typed",
    "of_kept": BY_DAY + "SELECT cast(at AS date) AS day, d, id FROM kept",
    "of_long": BY_DAY + "SELECT cast(at AS date) AS day, max(n) AS n FROM raw.landed GROUP BY 1",
}
EVOLVED = {"kept", "raw.landed", "floats"}
BUILT = {"chosen", "of_kept", "of_long"}


def declare(root: Path, types: dict[str, str], x: str) -> None:
    """The project with some declared types; columns are optional, so each model has its own."""
    (root / "models").mkdir(parents=True, exist_ok=True)
    own = "".join(f', {name}: {{type: "{type_}", optional: true}}' for name, type_ in types.items())
    text = "name: shop\nsources:\n"
    for name in ("clicks", "landed"):
        text += f"  raw.{name}: {{path: '{name}/*.json', event_time_column: at, "
        text += "may_be_empty: true, columns: "
        text += f"{{id: int, at: timestamp{own}}}}}\n"
    text += "  raw.typed: {path: 'typed/*.parquet', event_time_column: at, columns: "
    text += f"{{id: int, at: timestamp, x: {x}}}}}\n"
    (root / "infold.yml").write_text(text, encoding="utf-8")
    for name, model in MODELS.items():
        (root / "models" / f"{name}.sql").write_text(f"{model}\n", encoding="utf-8")


def land(root: Path, source: str, name: str, *rows: str) -> None:
    """A file of JSON lines."""
    (root / source).mkdir(exist_ok=True)
    (root / source / f"{name}.json").write_text("\n".join(rows), encoding="utf-8")


def row(id_: int, n: int, d: str, day: int = 1) -> str:
    """An event with values of all kinds."""
    tags = f'[{{"k": "a", "n": {n}}}, null, {{"k": null, "n": null}}]'
    by = f'{{"z": {{"n": {n}, "d": {d}}}, "a": null}}'
    head = f'{{"id": {id_}, "at": "2024-03-0{day}T10:00:00Z", "n": {n}, "s": {n % 9}, "d": {d}'
    return f'{head}, "tags": {tags}, "by": {by}}}'


def land_typed(root: Path, name: str, type_: pa.DataType, id_: int, x: float) -> None:
    """A Parquet file of one event with a floating-point number."""
    (root / "typed").mkdir(exist_ok=True)
    at = pa.array([1709287200000000], pa.timestamp("us", "UTC"))
    columns = {"id": pa.array([id_], pa.int32()), "at": at, "x": pa.array([x], type_)}
    pq.write_table(pa.table(columns), root / "typed" / f"{name}.parquet")


def types_and_rows(root: Path) -> dict[str, Any]:
    """Of each model: types, rows, and the contents of its cells by the ledger."""
    project = api.open_project(root)
    found = {}
    for name in (*MODELS, "raw.landed"):
        rows = api.lake_of(project).rows(table_name(name))
        types = [(field.name, str(field.type)) for field in rows.schema]
        cells = [(one.cell, one.rows, one.content) for one in api.ledger_of(project).cells(name)]
        found[name] = types, sorted(map(repr, rows.to_pylist())), cells
    return found


def fresh(root: Path, at: Path) -> dict[str, Any]:
    """Those of a project with the same files that is built for the first time."""
    shutil.copytree(root, at, ignore=shutil.ignore_patterns(".infold", "warehouse*"))
    api.run(api.open_project(at))
    return types_and_rows(at)


def actions(result: RunResult, action: Action) -> set[str]:
    """The models with a step of some kind."""
    return {step.model for step, _ in result.steps if step.action is action}


def test_widened_columns(tmp_path: Path) -> None:
    """Tables get the wider types without a row written or a file read, copies that the hash chose
    and contents included; where rows may differ they are built.
    A run that dies after such a commit is finished by the next one.
    """
    root = tmp_path / "shop"
    declare(root, NARROW, "float")
    conflicting = [row(1, 5, "1.50"), row(1, 6, "1.75"), row(2, 1, "999.99", 2)]
    land(root, "clicks", "1", *conflicting)
    land(root, "clicks", "2", row(1, 4, "0.01"), row(3, 2**31 - 1, "-3.00"))
    land(root, "landed", "1", *conflicting)
    land_typed(root, "1", pa.float32(), 1, 0.1)
    api.run(api.open_project(root))

    declare(root, WIDE, "double")
    plan = api.make_plan(api.open_project(root), api.observe(api.open_project(root)))
    assert {step.model for step in plan.steps if step.action is Action.EVOLVE} == EVOLVED
    with living(met=AllBut([("", "table raw.landed: after commit")])) as life:
        api.run(api.open_project(root), jobs=1)
    assert life.dead
    result = api.run(api.open_project(root))

    assert not result.failures
    # The others were done before the death, and its own is finished by this run.
    assert not actions(result, Action.EVOLVE)
    assert actions(result, Action.BUILD) == BUILT

    land(root, "clicks", "3", row(4, 2**40, "1234567890.12"), row(1, 9, "0.00"), row(5, 1, "2.00"))
    land_typed(root, "2", pa.float64(), 2, float(Decimal("0.1")))
    late = api.run(api.open_project(root))
    assert "kept" in actions(late, Action.INGEST)
    assert types_and_rows(root) == fresh(root, tmp_path / "fresh")


SOURCES = """    event_time_column: ts
    columns:
      id: string
      ts: timestamp
      url: string
      amount: string
      coupon: {type: int, optional: true}
  raw.pages:
    path: pages.json
    columns: {url: string, section: string}
"""
EVENTS = """---
materialization: events
unique_key: [id]
prefer: [amount desc]
timeseries: {event_time_column: ts, granularity: day}
forward_only: true
---
"""
FIRST = "SELECT id, ts, url, cast(amount AS int) AS amount FROM raw.clicks"
"""It cannot read amounts with a currency, and never sees one."""

SECOND = """SELECT c.id, c.ts, c.url, cast(replace(c.amount, ' EUR', '') AS int) AS amount,
  c.coupon, p.section
FROM raw.clicks c LEFT JOIN raw.pages p ON c.url = p.url WHERE c.url <> '/bot'"""

THIRD = """SELECT c.url, c.id, c.ts, c.coupon, p.section,
  cast(replace(c.amount, ' EUR', '') AS int) * 2 AS amount
FROM raw.clicks c LEFT JOIN raw.pages p ON c.url = p.url"""


class Shop(ClicksProject):
    """The project with its files."""

    def __init__(self, root: Path, warehouse: Path) -> None:
        super().__init__(root, warehouse, EVENTS + FIRST, SOURCES)
        declared = root / "infold.yml"
        declared.write_text(declared.read_text().replace("*.csv", "*.json"))

    def land(self, name: str, *rows: dict[str, Any]) -> None:
        """Write a file of JSON, again if it is there."""
        text = "".join(json.dumps(row) + "\n" for row in rows)
        (self.root / name).with_suffix(".json").write_text(text)

    def pages(self, **sections: str) -> None:
        """Write the lookup."""
        self.land("pages", *({"url": f"/{at}", "section": one} for at, one in sections.items()))

    def since(self, day: int | None = None) -> RunResult:
        """Run, with a definition in force since a day if it is to be told."""
        start = parse_instant_text(f"2024-03-{day or 1:02}")
        asked = PlanOptions(forward_only={"clicks": start}) if day else PlanOptions()
        return api.run(api.open_project(self.root), asked=asked, allow_removals=True)

    def events(self) -> list[tuple[Any, ...]]:
        """Id, day, url and amount of each event, with coupon and section if it has them."""
        found = self.records()
        names = [name for name in ("url", "amount", "coupon", "section") if name in found[0]]
        return sorted((row["id"], int(row["ts"][8:10]), *map(row.get, names)) for row in found)


def click(id_: str, day: int, url: str, amount: object, **more: object) -> dict[str, Any]:
    """A row of a file."""
    return {"id": id_, "ts": f"2024-03-{day:02}T10:00Z", "url": url, "amount": str(amount)} | more


def test_each_row_follows_the_definition_in_force_at_its_time(
    tmp_path: Path, warehouse: Path
) -> None:
    """Definitions change twice, with a lookup and a column of files that are new, while rows come
    late, are corrected and go.
    """
    shop = Shop(tmp_path / "shop", warehouse)
    shop.pages(a="top", b="pay")
    shop.land(
        "landing/one", click("a", 1, "/a", 1), click("b", 2, "/bot", 2), click("c", 2, "/b", 3)
    )
    shop.land("landing/two", click("a", 1, "/b", 5), click("d", 2, "/a", 4))
    shop.since()
    assert shop.events() == [
        ("a", 1, "/b", 5),
        ("b", 2, "/bot", 2),
        ("c", 2, "/b", 3),
        ("d", 2, "/a", 4),
    ]

    # Rows on both sides come with the change; those of the first days are as they always were.
    shop.model("clicks", EVENTS + SECOND)
    kept = (
        click("c", 2, "/b", 1, coupon=2),
        click("f", 2, "/a", 7, coupon="bad"),
        click("g", 3, "/a", "8 EUR", coupon=3),
    )
    shop.land(
        "landing/three",
        *kept,
        click("e", 1, "/bot", 6, coupon=1),
        click("h", 3, "/bot", "9 EUR"),
        click("i", 4, "/a", "9 EUR", coupon="bad"),
    )
    done = shop.since()
    actions = [step.action for step, _ in done.steps if step.model == "clicks"]
    assert actions[0] is Action.DERIVE
    assert [one.read for step, one in done.steps if step.action is Action.DERIVE] == [0]
    assert shop.events() == [
        ("a", 1, "/b", 5, None, None),
        ("b", 2, "/bot", 2, None, None),
        ("c", 2, "/b", 3, None, None),
        ("d", 2, "/a", 4, None, None),
        ("e", 1, "/bot", 6, None, None),
        ("f", 2, "/a", 7, None, None),
        ("g", 3, "/a", 8, 3, "top"),
    ]
    assert len(shop.aside()) == 2, "the newest definition cannot read them; the first takes one"

    # A lookup changes, the better one of two copies goes, and a file is corrected.
    shop.pages(a="other", b="pay", bot="bots")
    shop.drop("two.json")
    shop.land("landing/three", *kept, click("j", 3, "/b", "1 EUR"))
    shop.since()
    first = [
        ("a", 1, "/a", 1, None, None),
        ("b", 2, "/bot", 2, None, None),
        ("c", 2, "/b", 3, None, None),
        ("f", 2, "/a", 7, None, None),
    ]
    second = [*first, ("g", 3, "/a", 8, 3, "other"), ("j", 3, "/b", 1, None, "pay")]
    assert shop.events() == second

    # Rows of built days that were left out come in.
    shop.model("clicks", EVENTS + THIRD)
    shop.land(
        "landing/four",
        *(click("k", 1, "/a", 1), click("h", 3, "/bot", "9 EUR"), click("l", 5, "/a", 2)),
    )
    shop.since(3)
    third = [
        *first,
        ("g", 3, "/a", 16, 3, "other"),
        ("h", 3, "/bot", 18, None, "bots"),
        ("j", 3, "/b", 2, None, "pay"),
        ("k", 1, "/a", 1, None, None),
        ("l", 5, "/a", 4, None, "other"),
    ]
    assert shop.events() == third
    explained = dict(api.explain(api.open_project(shop.root), "clicks").notes)
    assert "an earlier one" in explained["definition"]
