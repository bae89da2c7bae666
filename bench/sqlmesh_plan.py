"""How long SQLMesh needs for a plan after a column was added to one of many models."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from pathlib import Path

from bench.measure import Clock
from bench.project import DATA
from bench.versus_sqlmesh import sqlmesh_python

CONFIG = """\
gateways:
  local:
    connection: {type: duckdb, database: tables.duckdb}
default_gateway: local
model_defaults: {dialect: duckdb, start: 2020-01-01}
disable_anonymized_analytics: true
"""
MODEL = """\
MODEL (
  name shop.m{number},
  kind INCREMENTAL_BY_TIME_RANGE (time_column hour),
  cron '@hourly'
);
SELECT {what} FROM {table} WHERE {time} BETWEEN @start_ts AND @end_ts {group}
"""


class ManyModels:
    """Ten chains of models in SQLMesh, as in ``bench.cells.many``, on DuckDB: no JVM is started."""

    def __init__(self, count: int) -> None:
        """Write the models and apply them; no rows are made."""
        self.root = DATA / "r-sqlmesh"
        shutil.rmtree(self.root, ignore_errors=True)
        (self.root / "models").mkdir(parents=True)
        (self.root / "config.yaml").write_text(CONFIG)
        for number in range(count):
            self._file(number).write_text(_model(number))
        self._python = sqlmesh_python()
        subprocess.run([self._python, "-c", _TABLE, str(self.root / "tables.duckdb")], check=True)
        self._sqlmesh("--no-prompts", "--auto-apply", "--empty-backfill")
        self.clock = Clock()

    def change(self, number: int) -> None:
        """Plan after another column was added to a model, and do not apply it."""
        text = _model(number).replace(", n ", f", n, n + {time.time_ns()} AS more ")
        self._file(number).write_text(text)
        began = time.perf_counter()
        found = self._sqlmesh()
        self.clock.add(time.perf_counter() - began)
        assert f"Directly Modified: shop.m{number}" in found, found

    def _file(self, number: int) -> Path:
        return self.root / "models" / f"m{number}.sql"

    def _sqlmesh(self, *options: str) -> str:
        command = [str(self._python.parent / "sqlmesh"), "plan", "--skip-tests", *options]
        done = subprocess.run(
            command,
            cwd=self.root,
            env={**os.environ, "COLUMNS": "200"},
            input="n\n",
            capture_output=True,
            text=True,
            check=False,
        )
        return done.stdout


def _model(number: int) -> str:
    if number < 10:
        return MODEL.format(
            number=number,
            what="date_trunc('hour', event_ts) AS hour, count(*) AS n",
            table="raw.clicks",
            time="event_ts",
            group="GROUP BY 1",
        )
    table = f"shop.m{number - 10}"
    return MODEL.format(number=number, what="hour, n ", table=table, time="hour", group="")


_TABLE = """
import duckdb, sys
with duckdb.connect(sys.argv[1]) as to:
    to.execute("CREATE SCHEMA raw")
    to.execute("CREATE TABLE raw.clicks(event_ts timestamp, user_id varchar)")
"""
