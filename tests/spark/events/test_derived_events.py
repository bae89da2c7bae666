"""
Changed definitions of events that follow from the stored rows, and from as few files as will do.

Tables are compared with those of another project, which has the same files and never had the
earlier definition.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.crash.scenario import living
from tests.spark.events.clicks_project import NOW, AllBut, ClicksProject

from infold import api
from infold.core import interval
from infold.core.model import table_name
from infold.lake.reading import listing
from infold.spark.events import derived
from infold.spark.reading import source_rows

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

pytestmark = pytest.mark.spark

SOURCE = """    event_time_column: at
    on_drift: set_aside
    columns:
      id: string
      at: timestamp
      v: int
      url: string
      real: double
      extra: {type: int, optional: true}
"""
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


def put(shop: ClicksProject, name: str, rows: list[str], extra: str = "") -> None:
    """A file of rows, with the optional column or without it."""
    rows = [f"{row},{at % 3}" for at, row in enumerate(rows)] if extra else rows
    text = "\n".join([HEADER + (",extra" if extra else ""), *rows])
    (shop.root / "landing" / name).write_text(text + "\n")


def project(root: Path, warehouse: Path, definitions: dict[str, str]) -> ClicksProject:
    """A project of these models."""
    shop = ClicksProject(root, warehouse, "", SOURCE)
    (root / "models" / "clicks.sql").unlink()
    for name, text in definitions.items():
        shop.model(name, text)
    return shop


def run(shop: ClicksProject, now: str = NOW) -> dict[str, list[str]]:
    """The actions of a run, by model."""
    result = api.run(
        api.open_project(shop.root), as_of=interval.parse_instant_text(now), allow_removals=True
    )
    assert not result.failures
    found: dict[str, list[str]] = {}
    for step, _ in result.steps:
        found.setdefault(step.model, []).append(str(step.action))
    return found


def state(shop: ClicksProject, models: Iterable[str]) -> dict[str, object]:
    """All that is known of each model: columns, rows, what the ledger counts, rows set aside."""
    opened = api.open_project(shop.root)
    book, found = api.ledger(opened), {}
    for name in models:
        rows = api.lake(opened).rows(table_name(name))
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


@pytest.mark.parametrize("copies", [False, True], ids=["clean", "copies"])
def test_derived_events_are_those_ingested_afresh(
    tmp_path: Path, warehouse: Path, copies: bool
) -> None:
    """
    Whatever follows from stored rows is what a first ingest gives, with late, replaced and deleted
    files, copies within and across files, and rows that cannot be used before and after the change.
    """
    rng, changes = Random(int(copies)), OF_COPIES if copies else OF_ROWS
    old = {name: query(one, one.old) for name, one in changes.items()}
    shop = project(tmp_path / "shop", warehouse, old)
    for at in range(5):
        ids = range(20 * at, 20 * at + 20)
        put(shop, f"{at}.csv", lines(rng, ids, days=range(1, 6), odd=copies), "x" if at % 2 else "")
    if copies:  # of events of one day, in two files
        twice = lines(rng, range(200, 206), days=[7], odd=False)
        others = [row.replace("/", "/b") for row in twice[:4]]
        put(shop, "5.csv", [*twice, twice[0]])
        put(shop, "6.csv", [*others, *lines(rng, range(300, 304), days=[7, 8], odd=False)])
    run(shop)
    put(shop, "late.csv", lines(rng, range(400, 408), days=range(1, 9), odd=copies))
    for name, one in changes.items():
        shop.model(name, query(one, one.new))

    assert run(shop) == {name: ["derive", "ingest"] for name in changes}

    put(shop, "1.csv", lines(rng, range(20, 50), days=range(1, 9), odd=copies))
    shop.drop("2.csv")
    assert {action for (action,) in run(shop, "2024-03-12").values()} == {"ingest"}

    new = {name: query(one, one.new) for name, one in changes.items()}
    fresh = project(tmp_path / "fresh", warehouse, new)
    shutil.copytree(shop.root / "landing", fresh.root / "landing", dirs_exist_ok=True)
    run(fresh, "2024-03-12")
    mine, other = state(shop, changes), state(fresh, changes)
    for name in mine:
        assert mine[name] == other[name], name


def test_a_run_that_dies(tmp_path: Path, warehouse: Path) -> None:
    """What the dead run had committed is finished first, also if the file to read is gone."""
    one = MIXED
    shop = project(tmp_path / "shop", warehouse, {"clicks": query(one, one.old)})
    put(shop, "a.csv", ["1,2024-03-01,1,/a,0.5", "2,2024-03-02,2,/b,0.5", "3,2024-03-03,3,/c,0.5"])
    put(shop, "b.csv", ["1,2024-03-01,2,/z,0.5"])
    put(shop, "c.csv", [f"{at},2024-03-0{at},{at},/{at},0.5" for at in range(4, 10)])
    assert run(shop) == {"clicks": ["build"]}
    shop.model("clicks", query(one, one.new))
    with living(met=AllBut([("", "table clicks: after commit")])) as life:
        run(shop)
    assert life.dead
    shop.drop("c.csv")

    assert run(shop) == {"clicks": ["ingest"]}
    assert shop.proven()
    runs = api.ledger(api.open_project(shop.root)).runs(100)
    done = [step.action for one in runs for step in one.steps if step.state == "done"]
    assert done.count("derive") == 1
    assert done.count("build") == 1  # the first


def test_columns_of_parquet(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of Parquet files the new column is read, with key, time and what WHERE names."""
    source = (
        "    event_time_column: at\n    columns: {id: int, at: timestamp, a: int, b: int, c: int}\n"
    )
    shop = ClicksProject(tmp_path / "shop", warehouse, "", source)
    config = shop.root / "infold.yml"
    config.write_text(config.read_text().replace("*.csv", "*.parquet"))
    one = Change(f"id, at, b {FROM} WHERE a < 9", f"id, at, b, c {FROM} WHERE a < 9")
    shop.model("clicks", query(one, one.old))
    numbers = pa.array(range(10), pa.int32())
    times = pa.array([at * 10**9 for at in range(10)], pa.timestamp("us", "UTC"))
    table = pa.table({"id": numbers, "at": times, "a": numbers, "b": numbers, "c": numbers})
    parquet.write_table(table, shop.root / "landing" / "a.parquet")
    assert run(shop) == {"clicks": ["build"]}
    shop.model("clicks", query(one, one.new))
    shown = StringIO()

    def evaluated(*words: Any) -> DataFrame:
        rows = real(*words)
        with redirect_stdout(shown):
            rows.select("_state", "id", "at", "c").explain("extended")
        return rows

    real = derived._evaluated
    monkeypatch.setattr(derived, "_evaluated", evaluated)
    assert run(shop) == {"clicks": ["derive"]}
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
    put(shop, "a.csv", ["1,2024-03-01,1,/a,0.5", "2,2024-03-02,2,/b,0.5"])
    for name, row in (("b", "3,2024-03-03,3,/c,0.5,4"), ("c", "4,2024-03-04,4,/d,0.5,x")):
        (shop.root / "landing" / f"{name}.csv").write_text(f"{HEADER},extra\n{row}\n")
    run(shop)
    shop.model("clicks", query(one, one.new))
    assert run(shop)["clicks"] == ["derive", "build"]
    assert [file for file, _ in shop.aside()] == ["c.csv"]
    assert [row[3] for row in shop.rows()] == [None, None, 4]

    shop.model("clicks", query(one, f"id, at, v, url, extra {FROM}"))
    shop.drop("a.csv")
    assert run(shop)["clicks"] == ["build"]
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
    put(shop, "a.csv", ["1,2024-03-01,1,/a,0.5", "2,2024-03-02,2,/b,0.5"])
    run(shop)
    file = shop.root / "landing" / "a.csv"
    times = file.stat()
    file.write_text(file.read_text().replace("\n2,", "\n3,"))
    os.utime(file, ns=(times.st_atime_ns, times.st_mtime_ns))
    shop.model("clicks", query(one, one.new))

    assert run(shop) == {"clicks": ["derive", "build"]}
    assert [row[3] for row in shop.rows()] == ["1", "3"]
