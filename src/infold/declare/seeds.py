"""
Seeds: small CSV files that are a part of the project.

A seed is a ``table`` whose query has the rows of the file in it. So its rows are its definition:
another row is another fingerprint, the ledger keeps the rows of every definition that was applied,
and readers follow a change as they follow that of any table without times. Every value is judged
here, before anything runs.

The query has the rows as one text of JSON: thousands of expressions would take seconds to parse.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from datetime import datetime

from infold.analysis.names.subject import Draft
from infold.analysis.sql.parse import parse
from infold.core.model import Materialization, Model, Place
from infold.core.queries import quoted
from infold.core.type_changes import is_type, is_value
from infold.declare.keys import Keys
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

KEYS = ("columns", "delimiter", "tags", "description")
TYPES = (
    "string", "boolean", "tinyint", "smallint", "int", "bigint", "float", "double", "date",
    "timestamp", "timestamp_ntz", "decimal(18,2)",
)  # fmt: skip
MOST_COLUMNS = 2_000
MOST_BYTES = 1_000_000
"""A larger file is no definition that a person wrote; each version of it is in the ledger."""

_FIELD = r'"(?P<quoted>(?:[^"]|"")*)"|(?P<open>")|(?P<bare>[^{delimiter}\r\n]*)'
_END = r"(?P<end>{delimiter}|\r\n|\n|\r|\Z)"
_BREAK = re.compile(r"\r\n|\n|\r")
_DOUBLE = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?\Z")
_MOST_FLOAT = float.fromhex("0x1.ffffffp127")
"""Numbers from here on are infinite as a float."""
_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d(?::\d\d(?:\.\d{1,6})?)?(?P<zone>Z|[+-]\d\d:\d\d)?\Z"
)

Record = tuple[int, list[str | None]]
"""The line that a record begins on, and its fields; None: there is nothing between delimiters."""


def read_seed(
    name: str, file: str, text: str, keys: Keys | None, errors: list[InfoldError]
) -> Draft | None:
    """The table of one file; None with the reasons in ``errors`` when it cannot be read."""
    before = len(errors)
    size = len(text.encode())
    if size > MOST_BYTES:
        shown, most = f"{size:,} bytes", f"{MOST_BYTES:,}"
        errors.append(findings.large_seed(Spot(file), size=shown, most=most))
        return None
    if keys is not None:
        keys.check(KEYS)
    lines = _BREAK.split(text)
    delimiter = _delimiter(keys)
    records = _records(file, lines, text, delimiter, errors)
    first = next(records, None)
    if first is None or len(first[1]) > MOST_COLUMNS:
        if len(errors) == before:
            errors.append(findings.bad_seed(Spot(file), what=_no_header(first)))
        return None
    header = _header(file, lines, first, errors)
    types = _types(keys, header, errors)
    rows = []
    for line, fields in records:
        at = _spot(file, lines, line)
        if len(fields) != len(header):
            problem = f"this row has {_count(len(fields))}, and the first line {len(header)}"
            errors.append(findings.bad_seed(at, what=problem))
            continue
        rows.append([_value(value, type_) for value, type_ in zip(fields, types, strict=True)])
        for column, type_, value in zip(header, types, rows[-1], strict=True):
            if value is not None and not fits(value, type_):
                errors.append(findings.bad_seed_value(at, column=column, type_=type_, value=value))
    if len(errors) > before:
        return None
    model = Model(
        name=name,
        materialization=Materialization.TABLE,
        sql=_query(header, types, rows),
        tags=keys.texts("tags") if keys is not None else (),
        description=(keys.text("description") if keys is not None else None) or "",
        place=Place(file),
    )
    return Draft(model, parse(file, model.sql)) if len(errors) == before else None


def fits(text: str, type_: str) -> bool:
    """Whether a text is exactly a value of a type, as Spark casts it."""
    lower = type_.lower()
    if lower in ("double", "float"):
        most = _MOST_FLOAT if lower == "float" else math.inf
        return bool(_DOUBLE.match(text)) and abs(float(text)) < most
    if lower not in ("timestamp", "timestamp_ntz"):
        return is_value(text, type_)
    match = _TIME.match(text)
    if match is None or (match["zone"] and lower == "timestamp_ntz"):
        return False
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _value(field: str | None, type_: str) -> str | None:
    """A field as a value: what is empty is NULL, but for an empty text in quotes."""
    return None if field == "" and type_.lower() != "string" else field


def _query(header: list[str], types: list[str], rows: list[list[str | None]]) -> str:
    """The SELECT with the rows in it."""
    text = json.dumps(rows)
    # Signs that mean something inside a literal of Spark SQL, or to what replaces variables in it.
    for sign in "'$":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    text = text.replace("\\", "\\\\")
    columns = (
        f"cast(seed[{at}] AS {type_}) AS {quoted(column)}"
        for at, (column, type_) in enumerate(zip(header, types, strict=True))
    )
    return (
        f"SELECT {', '.join(columns)}\n"
        f"FROM (SELECT explode(from_json('{text}', 'array<array<string>>')) AS seed)"
    )


def _delimiter(keys: Keys | None) -> str:
    text = keys.text("delimiter") if keys is not None and "delimiter" in keys.entries else ","
    if text is not None and (len(text) != 1 or text in '"\r\n'):
        assert keys is not None
        keys.errors.append(
            findings.wrong_type(
                keys.at("delimiter"), key="delimiter", wanted="one character", found=repr(text)
            )
        )
        return ","
    return text or ","


def _no_header(first: Record | None) -> str:
    if first is None:
        return "this file is empty"
    return f"this file has {len(first[1]):,} columns, and a seed has {MOST_COLUMNS:,} at most"


def _header(file: str, lines: list[str], first: Record, errors: list[InfoldError]) -> list[str]:
    """The names of the columns."""
    line, fields = first
    names = [field or "" for field in fields]
    at, known = _spot(file, lines, line), dict[str, str]()
    for number, name in enumerate(names, start=1):
        if not name.strip():
            errors.append(findings.bad_seed(at, what=f"column {number} has no name"))
        elif name.startswith("_"):
            errors.append(findings.reserved_column(at, column=name))
        elif name.lower() in known:
            errors.append(findings.bad_seed(at, what=f"column {name} is there twice"))
        known[name.lower()] = name
    return names


def _types(keys: Keys | None, header: list[str], errors: list[InfoldError]) -> list[str]:
    """The type of each column: string, where none is declared."""
    section = keys.section("columns", "columns") if keys is not None else None
    if keys is None or section is None:
        return ["string"] * len(header)
    types, first = dict[str, str](), dict[str, str]()
    by_lower = {name.lower(): name for name in header}
    for name in section.entries:
        other = first.setdefault(name.lower(), name)
        if other != name:
            at = section.key_at(name)
            errors.append(findings.duplicate_name(at, name=f"column {name}", other=other))
        elif name.lower() not in by_lower:
            at = section.key_at(name)
            errors.append(findings.no_such_column(at, key="columns", column=name, known=header))
        elif (type_ := section.text(name)) is None:
            continue
        elif is_type(type_) and _is_simple(type_):
            types[name.lower()] = type_
        else:
            errors.append(findings.bad_seed_type(section.at(name), type_=type_, known=TYPES))
    return [types.get(name.lower(), "string") for name in header]


def _is_simple(type_: str) -> bool:
    lower = type_.strip().lower()
    return lower in TYPES or lower == "decimal" or lower.startswith("decimal(")


def _records(
    file: str, lines: list[str], text: str, delimiter: str, errors: list[InfoldError]
) -> Iterator[Record]:
    """The records of a file that are not blank, as RFC 4180 has them."""
    sign = re.escape(delimiter)
    field, end = (
        re.compile(_FIELD.replace("{delimiter}", sign)),
        re.compile(_END.replace("{delimiter}", sign)),
    )
    at, line = 0, 1
    while at < len(text):
        begun, fields = line, list[str | None]()
        while True:
            match = field.match(text, at)
            assert match is not None, "an empty field matches anything"
            if match["open"]:
                problem = "a quote begins here that does not end"
                errors.append(findings.bad_seed(_spot(file, lines, line), what=problem))
                return
            quoted_field = match["quoted"]
            fields.append(
                (match["bare"] or None) if quoted_field is None else quoted_field.replace('""', '"')
            )
            line += len(_BREAK.findall(match[0]))
            ended = end.match(text, match.end())
            if ended is None:
                problem = "there is text behind the quote that ends a field"
                errors.append(findings.bad_seed(_spot(file, lines, line), what=problem))
                return
            at = ended.end()
            if ended["end"] != delimiter:
                break
        line += 1
        if fields != [None] and not (len(fields) == 1 and not (fields[0] or "x").strip()):
            yield begun, fields


def _spot(file: str, lines: list[str], line: int) -> Spot:
    shown = lines[line - 1] if line <= len(lines) else ""
    return Spot(file, line, 1, shown, max(1, len(shown)))


def _count(fields: int) -> str:
    return f"{fields} field" + ("" if fields == 1 else "s")
