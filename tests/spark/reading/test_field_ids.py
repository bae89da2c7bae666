"""The columns of a Parquet file by their field ids."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet

from infold.lake.reading.source_file import SourceFile
from infold.spark.reading.drift import PresentFile
from infold.spark.reading.parquet_files import names_by_id, read_footer


@pytest.mark.parametrize(
    ("ids", "found"),
    [
        ({"a": 2, "b": 1}, {2: "a", 1: "b"}),
        ({"a": 0, "b": None}, {0: "a"}),
        ({"a": None, "b": None}, None),
        ({"a": 7, "b": 7}, None),
    ],
    ids=["all", "one", "none", "twice"],
)
@pytest.mark.parametrize("store_schema", [True, False])
def test_what_columns_are_called(
    tmp_path: Path,
    ids: Mapping[str, int | None],
    found: Mapping[int, str] | None,
    store_schema: bool,
) -> None:
    """By the ids of the columns themselves; of parts they do not matter."""
    part = pa.field("c", pa.int32(), metadata={"PARQUET:field_id": "2"})
    kinds = {"a": pa.struct([part]), "b": pa.string()}
    fields = [
        pa.field(
            name, kinds[name], metadata=None if id_ is None else {"PARQUET:field_id": f"{id_}"}
        )
        for name, id_ in ids.items()
    ]
    file = tmp_path / "some.parquet"
    parquet.write_table(pa.schema(fields).empty_table(), file, store_schema=store_schema)
    size = file.stat().st_size

    footer = read_footer(PresentFile(1, file.name, SourceFile(str(file), size), size))

    assert names_by_id(footer.fields) == found
