"""Twenty thousand files of ten rows: taking them in, planning over them, and one file more."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pyarrow.csv
from bench import clicks, runs
from bench.by_hand import COLUMNS
from bench.generate import Shape, history
from bench.measure import Clock, Line, Size, alternately
from bench.project import DATA, lay_out
from pyarrow import parquet

from infold import api

FILES = 20_000
ROWS = 10
LISTING = "spark.sql.sources.parallelPartitionDiscovery.parallelism"


def landing(name: str, files: int) -> Path:
    """The starter's project with so many files of ten rows more, never run."""
    root = clicks.starter(name)
    shutil.rmtree(root / "landing")
    (root / "landing" / "clicks").mkdir(parents=True)
    for number in range(files):
        clicks.land(root, number, ROWS)
    return root


def twenty_thousand(size: Size) -> list[Line]:
    """20,000 JSON files of ten rows, against Spark's own read; a plan, and one file more."""
    files = size.rows(FILES)
    root = landing("many", files)
    spark = runs.large_session(api.open_project(root))
    ours, theirs, stock = Clock(), Clock(), Clock()
    listing = spark.conf.get(LISTING) or ""

    def plain_read(clock: Clock = theirs) -> None:
        with clock.timing():
            rows = spark.read.schema(COLUMNS).json(str(root / "landing" / "clicks"))
            rows.write.format("noop").mode("overwrite").save()

    def stock_read() -> None:
        spark.conf.set(LISTING, "10000")  # as Spark comes: a task for each of so many files
        plain_read(stock)
        spark.conf.set(LISTING, listing)

    def first_build() -> None:
        fresh = DATA / f"many-{len(ours.seconds)}"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(root, fresh)
        cost = runs.run(fresh, ["clicks"])
        ours.add(cost.seconds)
        shutil.rmtree(fresh)

    alternately(size.repeats, plain_read, first_build, stock_read)
    api.close()
    plan, more, one = Clock(), Clock(), Clock()
    with clicks.engine_ends(root):
        clicks.infold(root, "run")
        for number in range(clicks.WARM_CLICKS + 9):
            clicks.land(root, files + number)
            plan.add(clicks.infold(root, "plan"))
            more.add(clicks.infold(root, "run"))
    few = clicks.starter("few")
    with clicks.engine_ends(few):
        clicks.infold(few, "run")
        for number in range(clicks.WARM_CLICKS + 9):
            clicks.land(few, number)
            one.add(clicks.infold(few, "run"))
    for clock in (plan, more, one):
        clock.seconds[: clicks.WARM_CLICKS] = []
    return [
        Line(
            f"first build of events from {files:,} JSON files of ten rows, against a plain read",
            ours.median / theirs.median,
            None,
            detail=f"{ours} against {theirs}",
        ),
        Line(
            "the same, against a plain read that lists files as Spark does where nothing is set",
            ours.median / stock.median,
            1.0,
            detail=f"{ours} against {stock}",
        ),
        Line(
            f"`infold plan` over {files:,} files, one of them new", plan.median, 3, "s", str(plan)
        ),
        Line(
            f"one file more than {files:,}, against one more than a few, warm engine",
            more.median - one.median,
            1,
            "s more",
            f"{more} against {one}",
        ),
    ]


def formats(size: Size) -> list[Line]:
    """First builds of events from JSON and CSV files, against Parquet files of the same rows."""
    clocks = {}
    roots = {one: lay_out(DATA / f"format-{one}") for one in ("parquet", "json", "csv")}
    shape = Shape(size.rows(2_000_000), size.rows(60_000, 100), days=90)
    for one, root in roots.items():
        shutil.rmtree(root)
        lay_out(root)
        history(root / "landing", shape)
        if one != "parquet":
            declared = root / "infold.yml"
            as_one = declared.read_text().replace("*.parquet", f"*.{one}")
            declared.write_text(as_one.replace("format: parquet", f"format: {one}"))
            for path in (root / "landing").iterdir():
                rows = parquet.read_table(path)
                target = path.with_suffix(f".{one}")
                if one == "csv":
                    pyarrow.csv.write_csv(rows, target)
                else:
                    target.write_text("".join(map(_as_json, rows.to_pylist())))
                path.unlink()
        clocks[one] = Clock()

    def build(one: str) -> None:
        # Each in a place of its own: the session's catalogs know the tables that a place had.
        fresh = DATA / f"format-{one}-{len(clocks[one].seconds)}"
        shutil.rmtree(fresh, ignore_errors=True)
        shutil.copytree(roots[one], fresh)
        clocks[one].add(runs.run(fresh, ["events"]).seconds)
        shutil.rmtree(fresh)

    runs.large_session(api.open_project(roots["parquet"]))
    alternately(1 + size.repeats, *(lambda one=one: build(one) for one in roots))
    for clock in clocks.values():
        clock.seconds[:1] = []  # the JVM still compiled
    base = clocks.pop("parquet")
    return [
        Line(
            f"first build of events from {one.upper()}, against the same rows in Parquet",
            clock.median / base.median,
            2.0,
            detail=f"{clock} against {base}",
        )
        for one, clock in clocks.items()
    ]


def _as_json(row: dict[str, object]) -> str:
    return json.dumps(row, default=str) + "\n"
