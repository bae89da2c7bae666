"""
Source columns that are declared with wider types: stored tables follow by one commit of metadata.

After each change the tables, their types and the contents of cells in the ledger are compared with
those of a project that never had the earlier declaration.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.crash.scenario import living
from tests.spark.events.clicks_project import AllBut

from infold import api
from infold.core.model import table_name
from infold.core.plan import Action
from infold.core.report import RunResult

pytestmark = pytest.mark.spark

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


def declare(root: Path, types: dict[str, str], x: str, models: Iterable[str] = MODELS) -> None:
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
    for name in models:
        (root / "models" / f"{name}.sql").write_text(f"{MODELS[name]}\n", encoding="utf-8")


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


def state(root: Path, models: Iterable[str] = MODELS) -> dict[str, Any]:
    """Of each model: types, rows, and the contents of its cells by the ledger."""
    project = api.open_project(root)
    found = {}
    for name in models if "of_long" not in models else (*models, "raw.landed"):
        rows = api.lake(project).rows(table_name(name))
        types = [(field.name, str(field.type)) for field in rows.schema]
        cells = [(one.cell, one.rows, one.content) for one in api.ledger(project).cells(name)]
        found[name] = types, sorted(map(repr, rows.to_pylist())), cells
    return found


def fresh(root: Path, at: Path, models: Iterable[str] = MODELS) -> dict[str, Any]:
    """The state of a project with the same files that is built for the first time."""
    shutil.copytree(root, at, ignore=shutil.ignore_patterns(".infold", "warehouse*"))
    api.run(api.open_project(at))
    return state(at, models)


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
    assert state(root) == fresh(root, tmp_path / "fresh")


def test_columns_widened_before_any_row(tmp_path: Path) -> None:
    """Files arrive together with the wider types: the tables of readers, which were empty, have
    them too.
    """
    root, some = tmp_path / "shop", ("kept", "of_kept")
    declare(root, NARROW, "float", some)
    for source in ("clicks", "landed", "typed"):
        (root / source).mkdir()
    api.run(api.open_project(root))

    declare(root, WIDE, "double", some)
    land(root, "clicks", "1", row(1, 5, "1.50"), row(2, 1, "999.99", 2))
    result = api.run(api.open_project(root))

    assert "of_kept" in actions(result, Action.BUILD)
    assert state(root, some) == fresh(root, tmp_path / "fresh", some)
