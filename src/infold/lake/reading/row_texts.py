"""
Files of a source row by row, with the texts of some columns and the bytes that each row is.

So rows are found by their keys without a JVM, and a file is written again without some of them. A
row is what ``spark/reading`` makes one: of a row that cannot be used there are no texts. Where a
reader might see another row than Spark does, ``ValueError`` is raised.
"""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any, BinaryIO, Literal

from infold.core.formats import Format
from infold.core.model import Source
from infold.lake.reading.csv_files import blanks_of, record_pattern
from infold.lake.reading.json_lines import json_values

if TYPE_CHECKING:
    import pyarrow as pa

    from infold.lake.reading.source_file import SourceFile

Texts = Sequence[str | None]
"""The values of some columns as they are written; None for no value."""
IsErased = Callable[[Texts], bool]

_FORMATS = frozenset({Format.JSON, Format.CSV, Format.PARQUET, Format.JDBC})
TEXT_FORMATS = frozenset({Format.JSON, Format.CSV})
_CHUNK = 1 << 22
_LONGEST = (1 << 31) - 1


class NotReadError(Exception):
    """A file that is not looked into here, and why."""


def refuse_unread(source: Source, columns: Sequence[str]) -> None:
    """Raise :class:`NotReadError` for a source whose files are not looked into by ``columns``."""
    if source.format not in _FORMATS:
        raise NotReadError(f"rows of {source.format} are not looked at")
    if {*columns} & {*source.names_of_no_file}:
        raise NotReadError("keys in names of folders are not looked at")


def count_rows(file: SourceFile, source: Source, columns: Sequence[str], erased: IsErased) -> int:
    """
    How many rows of a file are erased, by the texts of ``columns``.

    Raises what :func:`row_parts` and :func:`stored_texts` raise, and what opening a file does.
    """
    if source.format in TEXT_FORMATS:
        return sum(
            texts is not None and erased(texts) for _, texts in row_parts(file, source, columns)
        )
    from pyarrow import parquet

    with parquet.ParquetFile(file.arrow_file()) as opened:
        groups = range(opened.num_row_groups)
        return sum(sum(map(erased, stored_texts(opened, group, columns))) for group in groups)


# Formats of text.


def row_parts(
    file: SourceFile, source: Source, columns: Sequence[str]
) -> Iterator[tuple[bytes, Texts | None]]:
    """
    The bytes of a file, unpacked, in parts: each a row with its texts, or something else.

    All parts one after the other are the file, unless its values extend over lines (JSON).
    """
    with file.unpacked() as opened:
        if source.format is Format.CSV:
            yield from _csv_parts(opened, source, columns)
        elif source.multiline:
            yield from ((part, _json_texts(part, columns)) for part in json_values(opened.read()))
        else:
            if (mark := opened.read(len(codecs.BOM_UTF8))) == codecs.BOM_UTF8:
                yield mark, None
                mark = b""
            lines = chain([mark + opened.readline()], opened)
            for line in chain.from_iterable(one.splitlines(keepends=True) for one in lines):
                yield line, _json_texts(line, columns)


def _json_texts(line: bytes, columns: Sequence[str]) -> Texts | None:
    try:
        row = json.loads(line.decode(), parse_float=str, parse_int=str)
        texts = [_json_text(row.get(name)) for name in columns]
        "".join(filter(None, texts)).encode()  # half of a pair of surrogates is no character
    except (ValueError, AttributeError, RecursionError):
        return None
    return texts


def _json_text(value: Any) -> str | None:
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _csv_parts(
    file: BinaryIO, source: Source, columns: Sequence[str]
) -> Iterator[tuple[bytes, Texts | None]]:
    csv.field_size_limit(_LONGEST)
    blanks, names, marks = blanks_of(source).encode() + b"\r\n", source.positions, ""
    width, places = 0, [names.index(name) for name in columns] if names else []
    for record in _csv_records(file, source):
        if not width and record.startswith(codecs.BOM_UTF8):
            marks = "\ufeff"
        if not record.removeprefix(codecs.BOM_UTF8).strip(blanks) and not width:
            yield record, None
            continue
        fields = _fields(record, source, marks if names or not width else "")
        if fields is None or not record.strip(b"\r\n"):
            yield record, None
            continue
        if not width:
            width = len(fields)
            if not names:
                if missing := [name for name in columns if name not in fields]:
                    raise ValueError(f"it has no column {missing[0]}")
                places = [fields.index(name) for name in columns]
                yield record, None
                continue
        if len(fields) != width or max(places) >= width:
            yield record, None
        else:
            yield record, [fields[at] or None for at in places]


def _fields(record: bytes, source: Source, marks: str) -> list[str] | None:
    """The fields of a record; None where it is no UTF-8."""
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if source.quoted else csv.QUOTE_NONE
    try:
        text = record.decode().lstrip(marks) if marks else record.decode()
    except UnicodeDecodeError:
        return None
    text = text.removesuffix("\n").removesuffix("\r")
    try:
        # A field with more behind its quote is no text that all readers take alike.
        return next(csv.reader([text], delimiter=source.delimiter, quoting=quoting, strict=True))
    except csv.Error as error:
        raise ValueError(f"a quote is not where a field begins or ends: {error}") from error


def _csv_records(file: BinaryIO, source: Source) -> Iterator[bytes]:
    """The records of a file, each with its end."""
    if not source.quoted:
        yield from chain.from_iterable(line.splitlines(keepends=True) for line in file)
        return
    pattern, rest = record_pattern(source.delimiter), b""
    while lines := file.readlines(_CHUNK):
        text, rest = rest + b"".join(lines), b""
        for match in pattern.finditer(text):
            if match.end(1) < len(text):
                yield match[0]
            else:  # a field that goes on, or a record without an end
                rest = rest or match[0]
    whole = rest + b"\n"
    for match in pattern.finditer(whole) if rest else ():
        if match.end(1) < len(whole):
            yield match[0].removesuffix(b"\n") if match.end() == len(whole) else match[0]
        elif match[0]:
            raise ValueError("a quote does not end")


# Parquet.


def stored_texts(file: Any, group: int, columns: Sequence[str]) -> Iterator[Texts]:
    """The texts of ``columns`` of each row in a group of a ``ParquetFile``."""
    names = file.schema_arrow.names
    for name in columns:
        if names.count(name) != 1:
            raise ValueError(f"it has no column {name}")
        if not _is_key(file.schema_arrow.field(name).type):
            raise ValueError(f"keys cannot be {file.schema_arrow.field(name).type}")
    table = file.read_row_group(group, columns=[*columns])
    values = [
        [None if one is None else str(one) for one in table.column(name).to_pylist()]
        for name in columns
    ]
    return zip(*values, strict=True)


def _is_key(type_: pa.DataType) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(type_):
        return _is_key(type_.value_type)
    text = pa.types.is_string(type_) or pa.types.is_large_string(type_)
    decimal = pa.types.is_decimal(type_) and type_.scale == 0
    return bool(text or decimal or pa.types.is_integer(type_))
