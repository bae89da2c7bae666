"""Seeds of dbt: the files as they are, with types that dbt would have guessed."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Mapping
from datetime import date, datetime
from pathlib import PurePosixPath
from typing import Any

from infold.importing.dbt.folder import DbtFolder
from infold.importing.dialects import spark_type
from infold.importing.draft import DraftSeed, project_name
from infold.importing.report import Line, came, changed, left
from infold.importing.yaml_lines import as_mapping

_PAST_BYTES = 20_000_000
"""A larger file is no reference table; as a source it is read better."""


def read_seeds(folder: DbtFolder, dialect: str) -> tuple[list[DraftSeed], list[Line]]:
    """The seeds, and what is said of them."""
    seeds, lines = [], []
    for file in folder.seeds:
        name = PurePosixPath(file).stem
        settings = folder.settings("seeds", file, name)
        what = f"seed {project_name(name)}"
        path = folder.root / file
        if str(settings.get("enabled", True)).lower() == "false":
            lines.append(left(what, file, "it is disabled"))
            continue
        if path.stat().st_size > _PAST_BYTES:
            lines.append(left(what, file, "more than 20 MB: make it a source"))
            continue
        content = path.read_bytes()
        delimiter = str(settings.get("delimiter", ","))
        declared = as_mapping(settings.get("column_types"))
        types, guessed = _types(content, delimiter, declared, dialect)
        keys: dict[str, Any] = {"columns": types} if types else {}
        if delimiter != ",":
            keys["delimiter"] = delimiter
        seeds.append(DraftSeed(project_name(name), file, content, keys))
        if guessed:
            why = f"types guessed from the values, as dbt does: {', '.join(guessed)}"
            lines.append(changed(what, file, why))
        else:
            lines.append(came(what, file))
    return seeds, lines


def _types(
    content: bytes, delimiter: str, declared: Mapping[str, Any], dialect: str
) -> tuple[dict[str, str], list[str]]:
    """The types of columns that are not string, and the names of those that are guessed."""
    text = content.decode("utf-8-sig", errors="replace")
    rows = csv.reader(io.StringIO(text), delimiter=delimiter)
    names = next(rows, [])
    columns: list[list[str]] = [[] for _ in names]
    for row in rows:
        for i, value in enumerate(row[: len(names)]):
            if value.strip():
                columns[i].append(value.strip())
    known = {key.lower(): str(value) for key, value in declared.items()}
    found, guessed = {}, []
    for name, values in zip(names, columns, strict=True):
        if name.lower() in known:
            type_ = spark_type(known[name.lower()], dialect) or "string"
        else:
            type_ = _guess(values)
            if type_ != "string":
                guessed.append(name)
        if type_ != "string":
            found[name] = type_
    return found, guessed


def _guess(values: list[str]) -> str:
    if not values:
        return "string"
    return next((type_ for type_, fits in _GUESSES if all(map(fits, values))), "string")


def _boolean(text: str) -> bool:
    return text.lower() in {"true", "false"}


def _parses(parse: Callable[[str], object]) -> Callable[[str], bool]:
    def fits(text: str) -> bool:
        try:
            parse(text)
        except ValueError:
            return False
        return True

    return fits


# A number with a leading zero is a code, not a number.
_GUESSES: tuple[tuple[str, Callable[[str], bool]], ...] = (
    ("boolean", _boolean),
    ("bigint", lambda text: bool(re.fullmatch(r"-?(0|[1-9]\d{0,17})", text))),
    ("double", lambda text: bool(re.fullmatch(r"-?(0|[1-9]\d*)(\.\d+)?", text))),
    ("date", _parses(date.fromisoformat)),
    ("timestamp", _parses(datetime.fromisoformat)),
)
