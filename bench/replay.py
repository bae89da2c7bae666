"""The demo's real data day by day, and what many small runs leave behind."""

from __future__ import annotations

import csv
import gzip
import shutil
from importlib.resources import files

from bench import runs
from bench.first_builds import forget
from bench.generate import Shape
from bench.measure import Clock, Line, Size
from bench.project import DATA, with_history

from infold import api
from infold.core.record import Receipt
from infold.demo import lay_out
from infold.spark.tables.iceberg.tables import IcebergTables

DAY = 86_400


def real_data(size: Size) -> list[Line]:
    """Rows rebuilt per new row, over a replay of the demo's data by day of arrival."""
    root = DATA / "f"
    shutil.rmtree(root, ignore_errors=True)
    root.mkdir(parents=True)
    lay_out(root)
    landing = root / "landing"
    landing.mkdir()
    rows = []
    for path in (files("infold.demo") / "data").iterdir():
        if path.name.endswith(".gz"):
            with path.open("rb") as raw, gzip.open(raw, "rt", newline="") as file:
                rows += list(csv.DictReader(file))
    days = sorted({int(row["received_ts"]) // DAY for row in rows})
    count = min(len(days), size.rows(250, 10))
    totals: dict[str, Receipt] = {}
    for number in range(count):
        chosen = set(days[len(days) * number // count : len(days) * (number + 1) // count])
        part = [row for row in rows if int(row["received_ts"]) // DAY in chosen]
        with gzip.open(landing / f"{number:04}.csv.gz", "wt", newline="") as file:
            writer = csv.DictWriter(file, part[0].keys())
            writer.writeheader()
            writer.writerows(part)
        for step, receipt in runs.run(root).result.steps:
            totals[step.model] = totals.get(step.model, Receipt()) + receipt
    new = totals["events"].arrived
    per_new = {model: receipt.read / new for model, receipt in totals.items()}
    scanned = {model: receipt.scanned / new for model, receipt in totals.items()}
    written = {model: receipt.written / new for model, receipt in totals.items()}
    return [
        Line(
            f"rows rebuilt per new row, {len(rows):,} real events in {count} runs, sessions",
            per_new["sessions"],
            1.5,
            "rows",
            "; ".join(
                f"{model}: {per_new[model]:.2f} read, {scanned[model]:.2f} scanned, "
                f"{written[model]:.2f} written"
                for model in totals
            )
            + " per new row",
        )
    ]


def hundred_days(size: Size) -> list[Line]:
    """Files and scan time of every table after 100 daily runs, against the same rows rewritten."""
    shape = Shape(size.rows(1_000_000), size.rows(30_000, 100))
    root, deliveries = with_history("h", shape)
    forget(root)
    runs.run(root)
    project = api.open_project(root)
    spark = api.session(project)
    tables = IcebergTables(spark, project.name, api.lake_of(project))
    most: dict[str, int] = {}
    days = 100 if size.scale >= 0.01 else 10
    for _ in range(days):
        deliveries.deliver(size.rows(10_000, 100))
        runs.run(root)
        for model in ("events", "sessions", "daily"):
            most[model] = max(most.get(model, 0), _files(tables, model))
    lines = []
    for model in ("events", "sessions", "daily"):
        layout = tables.layout(model)
        left = _files(tables, model)
        rows = tables.read(model)
        if layout.column is not None:
            rows = rows.orderBy(layout.column)
        tables.spark.sql(f"DROP TABLE IF EXISTS {tables.identifier('compacted')}")
        rows.writeTo(tables.identifier("compacted")).using("iceberg").create()
        now, fresh = Clock(), Clock()
        for clock, table in ((now, model), (fresh, "compacted")) * 6:
            with clock.timing():
                _scan(tables, table)
        ratio = now.least / fresh.least
        lines.append(
            Line(
                f"scan of `{model}` after {days} daily runs, against the same rows compacted",
                ratio,
                1.5,
                detail=f"{now} against {fresh}; {left} files, at most {most[model]}",
            )
        )
    return lines


def _scan(tables: IcebergTables, table: str) -> None:
    rows = tables.read(table)
    names = [f"max(`{name}`)" for name in rows.columns if not name.startswith("_")]
    rows.selectExpr(*names).collect()


def _files(tables: IcebergTables, table: str) -> int:
    return int(tables.spark.table(f"{tables.identifier(table)}.files").count())
