"""Where files are read without Spark, to find rows by their keys, the same is found."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.reading.folder import Folder

from infold.lake.reading.row_texts import row_parts, stored_texts
from infold.lake.reading.source_file import SourceFile
from infold.running.landing_files import whole_number

pytestmark = pytest.mark.spark

COLUMNS = {"who": "string", "n": "bigint"}
JSON = r"""
{"who": "a", "n": 1}
{"who": 1.50, "n": "1.0"}
{"who": true, "n": 1.00}
{"who": " a ", "n": " +7 "}
{"who": "\u00e9\"\n\ud83d\ude00", "n": "007"}
{"n": -0, "who": "\u0000"}
{"who": null, "n": null}
{"who": "a", "n": 9223372036854775807}
{"n": "\u001f8\t"}
 {"who": 1e5}
{"who": "a", "n": 1e0}
{"who": "a"} {"who": "b"}
{"who": "\ud800"}
{"who": 'a'}
{"who": NaN}
[{"who": "a"}]
"""
CSV = 'n,who\r\n1,a\r2,"a ""b""\n c"\n3, a \n007,5" d\n\n4,\n5,""\n"6",\\a\n7,\x00\n +8 ,é\n9.0,a'


def usable(folder: Folder, **keys: Any) -> list[tuple[str | None, str | None]]:
    """The rows as Spark has them."""
    rows = [row for row in folder.rows(COLUMNS, **keys) if row["_problem"] is None]
    numbers = (None if row["n"] is None else str(row["n"]) for row in rows)
    return sorted(zip((row["who"] for row in rows), numbers, strict=True), key=repr)


def here(rows: Sequence[Sequence[str | None] | None]) -> list[tuple[str | None, str | None]]:
    """The same as it is found without Spark; an empty text is no key."""
    found = [row for row in rows if row is not None]
    pairs = ((who, None if n is None else whole_number(n)) for who, n in found)
    return sorted(pairs, key=repr)


def test_lines_of_json(folder: Folder) -> None:
    """Each line that is a row to Spark has the same values here."""
    lines = JSON.strip("\n").splitlines()
    for number, line in enumerate(lines):
        folder.put(f"{number:02}.json", '{"who": "x", "n": 1}\n' + line)
    source, by_name = folder.source(COLUMNS), folder.by_name(COLUMNS)
    broken = []
    for _, file in folder.files:
        rows = by_name[file.path]
        if any(str(row[1]).startswith("unparsable") for row in rows):
            broken.append(lines[int(file.path[:2])])
            continue
        stored = SourceFile(str(folder.root / file.path), file.size)
        texts = [texts for _, texts in row_parts(stored, source, [*COLUMNS])]
        numbers = ((who, None if n is None else str(n)) for who, n in rows)
        assert here(texts) == sorted(numbers, key=repr)
    assert broken == lines[-6:]


def test_records_of_csv(folder: Folder) -> None:
    """Quotes, ends of lines, blanks; an empty text is none here, as it is no key."""
    folder.put("a.csv", CSV)
    stored = SourceFile(str(folder.root / "a.csv"), len(CSV))
    texts = [texts for _, texts in row_parts(stored, folder.source(COLUMNS), [*COLUMNS])]
    assert here(texts) == sorted(((who or None, n) for who, n in usable(folder)), key=repr)
    assert len(here(texts)) == 10


def test_columns_of_parquet(folder: Folder) -> None:
    """Texts and numbers, as they are stored."""
    columns = {"who": ["a", "", None, "é"], "n": [1, -2, None, 2**62]}
    folder.put("a.parquet", pa.table(columns))
    from pyarrow import parquet

    with parquet.ParquetFile(folder.root / "a.parquet") as file:
        assert here([*stored_texts(file, 0, [*COLUMNS])]) == usable(folder)
