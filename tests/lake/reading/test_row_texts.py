"""Files row by row: the texts of each row, and all of the bytes, one after the other."""

from __future__ import annotations

import gzip
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from infold.core.formats import Format
from infold.core.model import Column, Source
from infold.lake.reading.row_texts import NotReadError, count_rows, refuse_unread, row_parts
from infold.lake.reading.source_file import SourceFile

JSON = Source("raw.s", Format.JSON, (Column("who", "string"), Column("n", "bigint")), path="l/*")
CSV = replace(JSON, format=Format.CSV)
BARE = replace(CSV, positions=("n", "who"))


def parts(folder: Path, source: Source, content: bytes) -> list[tuple[bytes, object]]:
    """The parts of a file with this content."""
    (folder / "f").write_bytes(content)
    file = SourceFile(str(folder / "f"), len(content))
    return [*row_parts(file, source, ["who"])]


def whos(folder: Path, source: Source, content: bytes) -> list[str | None]:
    """The values of a column, once it is clear that all bytes are there."""
    found = parts(folder, source, content)
    assert b"".join(part for part, _ in found) == content
    return [texts[0] for _, texts in found if isinstance(texts, list)]


@pytest.mark.parametrize(
    ("line", "who"),
    [
        (b'{"who": "a\\u00e9\\"", "n": 1}', 'aé"'),
        (b'{"who": 1.50}', "1.50"),
        (b'{"who": true}', "true"),
        (b'{"who": null}', None),
        (b'{"n": 1}', None),
        (b'{"who": "a", "who": "b"}', "b"),
    ],
)
def test_a_line_of_json(tmp_path: Path, line: bytes, who: str | None) -> None:
    """Numbers are as they are written."""
    assert whos(tmp_path, JSON, line) == [who]


@pytest.mark.parametrize("line", [b"[1]", b"{", b"\xff", b"", b'{"who": "\\ud800"}', b"1"])
def test_a_line_that_is_no_row(tmp_path: Path, line: bytes) -> None:
    """It is there and has no texts."""
    assert whos(tmp_path, JSON, b'{"who": "a"}\n' + line + b"\n") == ["a"]


def test_the_ends_of_lines(tmp_path: Path) -> None:
    """LF, CR, both, and none; a mark of the encoding is no part of the first."""
    content = b'\xef\xbb\xbf{"who":"a"}\r\n{"who":"b"}\r{"who":"c"}\n\n  \n{"who":"d"}'
    assert whos(tmp_path, JSON, content) == [*"abcd"]
    assert whos(tmp_path, JSON, b"") == []
    assert whos(tmp_path, CSV, b"who,n\r\na,1\rb,2\n\nc,3") == [*"abc"]
    assert whos(tmp_path, CSV, b"\xef\xbb\xbf \nwho,n\na,1\r") == ["a"]


def test_quotes_of_csv(tmp_path: Path) -> None:
    """Fields over lines, quotes in quotes, none where the source has none, and strays."""
    content = b'n,"who"\n1,"a\n""b"""\n2,"c"\n3,5" d\n4,\n5,""\n6\n7,"e\nf"'
    assert whos(tmp_path, CSV, content) == ['a\n"b"', "c", '5" d', None, None, "e\nf"]
    unquoted = replace(CSV, quoted=False, delimiter=";")
    assert whos(tmp_path, unquoted, b'who;n\n"a;1\n') == ['"a']
    for wrong in (b'who,n\n"a"b,1\n', b'who,n\n"a,1\n', b"other,n\na,1\n"):
        with pytest.raises(ValueError, match=r"quote|column"):
            parts(tmp_path, CSV, wrong)


def test_csv_without_a_header(tmp_path: Path) -> None:
    """The fields have their columns by their places; a mark before each record is none of it."""
    assert whos(tmp_path, BARE, b"1,a\n2,b\n3\n") == ["a", "b"]
    first = replace(CSV, positions=("who", "n"))
    assert whos(tmp_path, first, b"\xef\xbb\xbfa,1\n\xef\xbb\xbfb,2\n") == ["a", "b"]


@given(st.lists(st.sampled_from([*'a,"\r\n', '"a"', "\n"]), max_size=30))
def test_no_byte_of_csv_is_lost(tmp_path_factory: pytest.TempPathFactory, texts: list[str]) -> None:
    """Whatever is in a file: its parts are the file, or it is not taken apart at all."""
    content = ("who,n\n" + "".join(texts)).encode()
    try:
        whos(tmp_path_factory.getbasetemp(), CSV, content)
    except ValueError:
        assert b'"' in content


def test_values_over_lines_are_counted(tmp_path: Path) -> None:
    """The objects of lists, and those by themselves."""
    content = b'[{"who": "a"},\n {"who":\n "b"}]\n{"who": "a"}'
    source = replace(JSON, multiline=True)
    found = [texts for _, texts in parts(tmp_path, source, content)]
    assert found == [["a"], ["b"], ["a"]]


def test_packed_files_and_parquet_are_counted(tmp_path: Path) -> None:
    """Packed text, and columns of text, of whole numbers and with a dictionary."""

    def count(name: str, source: Source, column: str, *keys: str) -> int:
        file = SourceFile(str(tmp_path / name), 1)
        return count_rows(file, source, [column], lambda texts: texts[0] in keys)

    (tmp_path / "f.csv.gz").write_bytes(gzip.compress(b"who,n\na,1\n") + gzip.compress(b"a,2\n"))
    assert count("f.csv.gz", CSV, "who", "a") == 2
    who = pa.array(["a", None, "b"]).dictionary_encode()
    columns = {"who": who, "n": [1, 2, 2], "v": [0.5, 1.0, 2.0]}
    parquet.write_table(pa.table(columns), tmp_path / "f.parquet", row_group_size=2)
    stored = replace(JSON, format=Format.PARQUET)
    assert count("f.parquet", stored, "who", "a") == 1
    assert count("f.parquet", stored, "n", "2") == 2
    for name in ("v", "x"):
        with pytest.raises(ValueError, match=r"double|no column x"):
            count("f.parquet", stored, name)


def test_sources_that_are_not_looked_at() -> None:
    """Formats that nothing here reads, and keys that are names of folders."""
    with pytest.raises(NotReadError, match="avro"):
        refuse_unread(replace(JSON, format=Format.AVRO), ["who"])
    with pytest.raises(NotReadError, match="folders"):
        refuse_unread(replace(JSON, partition_columns=("who",)), ["who"])
    refuse_unread(JSON, ["who"])
