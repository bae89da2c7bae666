"""A source column that is declared with a wider type: old and new files are read exactly."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from infold import api

pytestmark = pytest.mark.spark

NARROW = {"n": "int", "x": "float", "d": "decimal(5,2)"}
WIDE = {"n": "bigint", "x": "double", "d": "decimal(20,2)"}
OLD = {"id": 1, "n": 2**31 - 1, "x": 0.5, "d": Decimal("999.99")}
NEW = {"id": 2, "n": 2**31, "x": 0.1, "d": Decimal("12345678901234567.89")}
ARROW = {
    "int": pa.int32(),
    "float": pa.float32(),
    "decimal(5,2)": pa.decimal128(5, 2),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(20,2)": pa.decimal128(20, 2),
}
FORMATS = ("csv", "json", "parquet")


def declare(root: Path, types: dict[str, str], **more: str) -> None:
    """A source of each format with these types, and a table of each."""
    (root / "models").mkdir(parents=True, exist_ok=True)
    columns = ", ".join(f'{name}: "{type_}"' for name, type_ in {"id": "int", **types}.items())
    columns += "".join(f", {name}: {{{how}}}" for name, how in more.items())
    sources = "".join(
        f"  raw.{kind}: {{path: '{kind}/*.{kind}', format: {kind}, columns: {{{columns}}}}}\n"
        for kind in FORMATS
    )
    (root / "infold.yml").write_text(f"name: shop\nsources:\n{sources}")
    for kind in FORMATS:
        sql = f"SELECT id, n, x, d FROM raw.{kind}"
        (root / "models" / f"of_{kind}.sql").write_text(
            f"---\nmaterialization: table\n---\n{sql}\n"
        )


def land(root: Path, row: dict[str, Any], types: dict[str, str]) -> None:
    """One row in a file of each format; typed where the format has types."""
    for kind in FORMATS:
        folder = root / kind
        folder.mkdir(exist_ok=True)
        path = folder / f"{row['id']}.{kind}"
        if kind == "csv":
            path.write_text(",".join(row) + "\n" + ",".join(map(str, row.values())) + "\n")
        elif kind == "json":
            path.write_text(_exact(row))
        else:
            schema = pa.schema([("id", pa.int32()), *((k, ARROW[t]) for k, t in types.items())])
            pq.write_table(pa.Table.from_pylist([row], schema), path)


def _exact(row: dict[str, Any]) -> str:
    """JSON with all digits of decimals."""
    return "{" + ", ".join(f'"{name}": {value}' for name, value in row.items()) + "}"


def test_old_narrow_and_new_wide_files_are_read_exactly(tmp_path: Path) -> None:
    """In each format values of files from before and after a declaration became wider are the ones
    in the files; the tables have the wider types and equal a rebuild. A column that is declared as
    optional besides builds nothing.
    """
    declare(tmp_path, NARROW)
    land(tmp_path, OLD, NARROW)
    api.run(api.open_project(tmp_path))

    declare(tmp_path, WIDE)
    land(tmp_path, NEW, WIDE)
    project = api.open_project(tmp_path)
    api.run(project)

    for kind in FORMATS:
        rows = api.lake(project).rows(f"of_{kind}").sort_by("id")
        assert rows.to_pylist() == [OLD, NEW], kind
        assert [str(type_) for type_ in rows.schema.types[1:]] == [
            "int64",
            "double",
            "decimal128(20, 2)",
        ]
    assert api.verify(project).equal

    declare(tmp_path, WIDE, note="type: string, optional: true, default: none")
    done = api.run(api.open_project(tmp_path))
    assert done.steps == ()
