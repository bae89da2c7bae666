"""``sources`` of infold.yml."""

from __future__ import annotations

from infold.core.dated_path import CALENDAR, DATE, WILD
from infold.core.formats import (
    FORMATS,
    TIMESTAMP_FORMATS,
    Format,
    FormatTraits,
    format_of_path,
    unpacked_name,
)
from infold.core.interval import DAY, HOUR, parse_duration
from infold.core.model import ON_UNREADABLE, Column, Drift, NewColumns, Place, Source
from infold.declare import timestamp_pattern
from infold.declare.catalogs import read_source_catalog
from infold.declare.database_sources import check_format, is_in_database, read_database
from infold.declare.delta import check_delta_name
from infold.declare.keys import NAME, Keys
from infold.declare.source_contradictions import refuse_contradictions
from infold.declare.storage_options import check_place
from infold.declare.types import ALIKE, SIMPLE, TIMES, is_type, is_value
from infold.messages import findings

KEYS = (
    "path",
    "table",
    "url",
    "key",
    "corrections",
    "catalog",
    "format",
    "event_time_column",
    "received_column",
    "file_time_column",
    "partition_columns",
    "future_tolerance",
    "timestamp_format",
    "settle",
    "full_listing",
    "listing_window",
    "on_drift",
    "on_new_columns",
    "on_unreadable",
    "may_be_empty",
    "removal_limit",
    "delimiter",
    "header",
    "quote",
    "multiline",
    "columns",
)
OF_FILES = (
    *("settle", "file_time_column", "on_new_columns", "on_unreadable", "full_listing"),
    *("listing_window", "may_be_empty", "partition_columns"),
)
"""Keys that mean something for single files only."""
NO_QUOTES = "none"
QUOTES = ("double", NO_QUOTES)


def read_source(name: str, keys: Keys) -> Source | None:
    """One source; None when it is too wrong to go on with."""
    keys.check(KEYS)
    parts = name.split(".")
    if len(parts) != 2 or not all(NAME.match(part) for part in parts):
        at = keys.value.at
        keys.errors.append(
            findings.bad_name(at, what="source", name=name, form="group.name, such as raw.clicks")
        )
        return None
    before, path, table = len(keys.errors), keys.text("path"), keys.text("table")
    check_place(keys, "path", path or "")
    format_ = _format(keys, path, table)
    columns = _columns(keys, format_)
    header = keys.flag("header", True)
    positions = () if header else tuple(column.name for column in columns)
    of_folders = _of_folders(keys, columns)
    columns += of_folders
    file_time = _file_time(keys, columns)
    columns += (Column(file_time, "timestamp"),) if file_time else ()
    event_time = _time_column(keys, "event_time_column", columns)
    received = _time_column(keys, "received_column", columns)
    _check_companions(keys, format_)
    database = read_database(keys, columns)
    place = Place(keys.value.at.file, keys.value.at.line, keys.value.at.column)
    found = Source(
        name=name,
        # Without a known format there is an error, and the project is refused: this is never read.
        format=format_ or Format.JSON,
        columns=columns,
        path=path,
        table=table,
        catalog=read_source_catalog(keys),
        event_time_column=event_time,
        received_column=received,
        file_time_column=file_time,
        partition_columns=tuple(column.name for column in of_folders),
        future_tolerance=keys.length("future_tolerance", HOUR) or 0,
        timestamp_format=_timestamp_format(keys),
        settle=keys.length("settle", 0) or 0,
        full_listing=_full_listing(keys, path),
        listing_window=_listing_window(keys),
        on_drift=Drift(keys.choice("on_drift", tuple(Drift)) or Drift.ERROR),
        removal_limit=keys.percent("removal_limit"),
        delimiter=_delimiter(keys, path),
        multiline=keys.flag("multiline", False),
        positions=positions,
        quoted=keys.choice("quote", QUOTES) != NO_QUOTES,
        place=place,
        on_new_columns=NewColumns.IGNORE if database.url else _new_columns(keys),
        on_unreadable=Drift(keys.choice("on_unreadable", ON_UNREADABLE) or Drift.ERROR),
        may_be_empty=keys.flag("may_be_empty", False),
        url=database.url,
        key=database.key,
        reread=database.reread,
    )
    if len(keys.errors) == before:
        refuse_contradictions(keys, found)
    return found


def _format(keys: Keys, path: str | None, table: str | None) -> Format | None:
    """The format as written, else by the file names of the path."""
    if is_in_database(keys):
        return check_format(keys)
    if path is None and table is None and not {"path", "table"} & set(keys.entries):
        keys.missing(
            "path",
            "a source is files or a Delta table (path), a table in a catalog (table), or in a"
            " database (url)",
        )
    if path is not None and table is not None:
        keys.needless(("table",), "a source of files")
    written = keys.choice("format", tuple(Format))
    if "format" in keys.entries:
        by_name = table is not None and path is None
        if written and not _is_found(FORMATS[Format(written)], by_name=by_name):
            known = [
                f
                for f, of in FORMATS.items()
                if _is_found(of, by_name=path is None) and not of.is_extracted
            ]
            keys.errors.append(
                findings.bad_value(keys.at("format"), key="format", value=written, known=known)
            )
        elif written and by_name and FORMATS[Format(written)].is_folder:
            check_delta_name(keys, table or "")
        return Format(written) if written else None
    if table is not None:
        return next(name for name, of in FORMATS.items() if of.is_in_catalog)
    if path is None:
        return None
    found = format_of_path(path)
    if found is None:
        keys.missing("format", "the ending of the path does not say it")
    return found


def _is_found(traits: FormatTraits, *, by_name: bool) -> bool:
    """Whether there are such sources by `table`, or by `path`."""
    return traits.is_table if by_name else not traits.is_in_catalog


def _columns(keys: Keys, format_: Format | None) -> tuple[Column, ...]:
    is_table = format_ is not None and FORMATS[format_].is_table
    section = keys.section("columns", f"columns of {keys.where}")
    if section is None:
        if "columns" not in keys.entries and format_ is not None and not is_table:
            what = "rows" if FORMATS[format_].is_extracted else "files"
            keys.missing("columns", f"{what} are checked against their declared columns")
        return ()
    found: dict[str, Column] = {}
    for name in section.entries:
        at = section.value.keys[name]
        if name.lower() in found:
            keys.errors.append(
                findings.duplicate_name(at, name=f"column {name}", other=found[name.lower()].name)
            )
            continue
        found[name.lower()] = column = _column(section, name)
        if column.optional and is_table:
            at, where = section.value.keys[name], "a table: its columns are those of its snapshot"
            keys.errors.append(findings.needless_key(at, key="optional", where=where))
    if not found:
        keys.missing("columns", "there is not one in it")
    return tuple(found.values())


_COLUMN_KEYS = ("type", "optional", "default")


def _column(section: Keys, name: str) -> Column:
    """A column, written as its type alone or as a mapping."""
    if section.entries[name].kind != "a mapping":
        return Column(name, _type(section, name, name))
    mapping = section.section(name, f"column {name}")
    assert mapping is not None
    mapping.check(_COLUMN_KEYS)
    if "type" not in mapping.entries:
        mapping.missing("type")
    type_, optional = _type(mapping, "type", name), mapping.flag("optional", False)
    default = mapping.entries.get("default")
    if default is None or default.kind == "nothing":
        return Column(name, type_, optional)
    if not optional:
        mapping.needless(("default",), f"column {name}, which is not optional")
    elif not is_value(default.text, type_) or default.kind in ("a list", "a mapping"):
        found = default.kind if default.kind in ("a list", "a mapping") else default.text
        wanted = f"a value of {type_} (text, number, truth or date)"
        mapping.errors.append(
            findings.wrong_type(
                default.at, key=mapping.full_name("default"), wanted=wanted, found=found
            )
        )
    return Column(name, type_, optional, default.text)


def _type(keys: Keys, key: str, name: str) -> str:
    type_ = keys.text(key)
    if type_ is not None and not is_type(type_):
        keys.errors.append(
            findings.bad_column_type(keys.at(key), name, type_, ALIKE.get(type_.lower()), SIMPLE)
        )
    return type_ if type_ and is_type(type_) else "string"


def _new_columns(keys: Keys) -> NewColumns | None:
    found = keys.choice("on_new_columns", tuple(NewColumns))
    return NewColumns(found) if found else None


def _time_column(keys: Keys, key: str, columns: tuple[Column, ...]) -> str | None:
    name = keys.text(key)
    if name is None or not columns:
        return name
    column = next((c for c in columns if c.name.lower() == name.lower()), None)
    if column is None:
        names = [c.name for c in columns]
        keys.errors.append(findings.no_such_column(keys.at(key), key=key, column=name, known=names))
        return None
    if column.optional:
        keys.errors.append(findings.optional_time(keys.at(key), key=key, column=column.name))
    if column.type.lower() not in TIMES:
        keys.errors.append(
            findings.not_a_time(keys.at(key), key=key, column=name, type_=column.type)
        )
    return column.name


def _file_time(keys: Keys, columns: tuple[Column, ...]) -> str | None:
    """A further column, which no file has."""
    name = keys.text("file_time_column")
    if name is None or "path" not in keys.entries:
        return None
    if any(column.name.lower() == name.lower() for column in columns):
        at = keys.at("file_time_column")
        keys.errors.append(findings.duplicate_name(at, name=f"column {name}", other="columns"))
        return None
    return name


def _of_folders(keys: Keys, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Further columns, whose values the names of folders have."""
    section = keys.section("partition_columns", f"partition_columns of {keys.where}")
    if section is None or "path" not in keys.entries:
        return ()
    known = {column.name.lower(): "columns" for column in columns}
    found = []
    for name in section.entries:
        if other := known.get(name.lower()):
            at = section.value.keys[name]
            keys.errors.append(findings.duplicate_name(at, name=f"column {name}", other=other))
            continue
        known[name.lower()] = "partition_columns"
        found.append(Column(name, _type(section, name, name)))
    if not found:
        keys.missing("partition_columns", "there is not one in it")
    return tuple(found)


def _check_companions(keys: Keys, format_: Format | None) -> None:
    """Keys that mean nothing without another."""
    needs = (
        ("received_column", "event_time_column"),
        ("future_tolerance", "received_column"),
        ("catalog", "table"),
        ("settle", "path"),
        ("file_time_column", "path"),
        ("partition_columns", "path"),
        ("on_new_columns", "path"),
        ("on_unreadable", "path"),
        ("may_be_empty", "path"),
    )
    for key, other in needs:
        if other not in keys.entries:
            keys.needless((key,), f"{keys.where} without {other}")
    if format_ is not None and FORMATS[format_].is_folder:
        keys.needless(OF_FILES, f"{keys.where}, which is a table")
    for other_format, traits in FORMATS.items():
        if format_ not in (None, other_format):
            keys.needless(traits.keys, f"{keys.where}, not {other_format.upper()}")
    if format_ is not None and FORMATS[format_].is_table:
        keys.needless(("on_drift",), f"{keys.where}, which is a table, and drifts as a whole")


_ALWAYS = "always"


def _full_listing(keys: Keys, path: str | None) -> str | None:
    """When all dated folders are listed; only of a path that has any."""
    if path is not None and DATE in path and not _is_dated_right(path):
        keys.errors.append(findings.bad_dated_path(keys.at("path"), path=path, date=DATE))
    text = keys.text("full_listing")
    if text not in (None, _ALWAYS) and DATE not in (path or ""):
        keys.needless(("full_listing",), f"{keys.where} without {DATE} in its path")
        return None
    if text is None or text == _ALWAYS:
        return None
    try:
        if text not in CALENDAR:
            parse_duration(text)
    except ValueError:
        at_value, known = keys.at("full_listing"), (_ALWAYS, *CALENDAR, "6 hours")
        keys.errors.append(
            findings.bad_value(at_value, key="full_listing", value=text, known=known)
        )
        return None
    return text


def _is_dated_right(path: str) -> bool:
    """Whether the date is in the name of one folder, with names before it that can be listed."""
    *folders, _ = [name for name in path.split("/") if name not in ("", ".")]
    at = next((i for i, name in enumerate(folders) if DATE in name), None)
    if at is None or path.count(DATE) != 1:
        return False
    return not WILD.search(folders[at]) and "**" not in folders[:at]


def _listing_window(keys: Keys) -> int:
    listing = keys.entries.get("full_listing")
    if listing is None or listing.text == _ALWAYS:
        without = "without full_listing" if listing is None else "whose folders are always listed"
        keys.needless(("listing_window",), f"{keys.where} {without}")
    found = keys.length("listing_window", 3 * DAY)
    return 3 * DAY if found is None else found


def _timestamp_format(keys: Keys) -> str:
    text = keys.text("timestamp_format")
    if text is None or text in TIMESTAMP_FORMATS:
        return text or "iso"
    if not (why := timestamp_pattern.find_pattern_fault(text)):
        return text
    known = (*TIMESTAMP_FORMATS, "yyyy-MM-dd HH:mm:ss")
    at = keys.at("timestamp_format")
    keys.errors.append(findings.bad_pattern(at, value=text, why=why, known=known))
    return "iso"


def _delimiter(keys: Keys, path: str | None) -> str:
    value = keys.entries.get("delimiter")
    if value is None:
        return "\t" if path and unpacked_name(path.lower()).endswith(".tsv") else ","
    if value.kind != "text" or len(value.text) != 1:
        found = value.kind if value.kind != "text" else f"{len(value.text)} of them"
        keys.errors.append(
            findings.wrong_type(value.at, key="delimiter", wanted="one character", found=found)
        )
        return ","
    return value.text
