"""``sources`` of infold.yml."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from infold.core.files import CALENDAR, DATE, WILD
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
from infold.core.target import Target
from infold.core.type_changes import ALIKE, SIMPLE, TIMES, has_timestamps, is_type, is_value
from infold.declare.catalogs import check_delta_name, check_place, read_source_catalog
from infold.declare.keys import NAME, Keys
from infold.messages import database_errors, findings
from infold.messages.errors import InfoldError, Spot
from infold.system.secrets import REFERENCE, bad_reference, has_password

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
    "retain",
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
    of_folders = _columns_of_folders(keys, columns)
    columns += of_folders
    file_time = _file_time(keys, columns)
    columns += (Column(file_time, "timestamp"),) if file_time else ()
    event_time = time_column(keys, "event_time_column", columns)
    received = time_column(keys, "received_column", columns)
    _check_companions(keys, format_)
    database = read_database(keys, columns)
    place = Place(keys.value.at.file, keys.value.at.line, keys.value.at.column)
    source = Source(
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
        retain=keys.retain(),
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
        refuse_contradictions(keys, source)
    return source


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
    by_ending = format_of_path(path)
    if by_ending is None:
        keys.missing("format", "the ending of the path does not say it")
    return by_ending


def _is_found(traits: FormatTraits, *, by_name: bool) -> bool:
    """Whether there are such sources by `table`, or by `path`."""
    return traits.is_table if by_name else not traits.is_in_catalog


def _columns(keys: Keys, format_: Format | None) -> tuple[Column, ...]:
    is_table = format_ is not None and FORMATS[format_].is_table
    section = keys.section("columns", f"columns of {keys.where}")
    if section is None:
        if "columns" not in keys.entries and format_ is not None and not is_table:
            carriers = "rows" if FORMATS[format_].is_extracted else "files"
            keys.missing("columns", f"{carriers} are checked against their declared columns")
        return ()
    columns: dict[str, Column] = {}
    for name in section.entries:
        at = section.value.keys[name]
        if name.lower() in columns:
            keys.errors.append(
                findings.duplicate_name(at, name=f"column {name}", other=columns[name.lower()].name)
            )
            continue
        columns[name.lower()] = column = _column(section, name)
        if column.optional and is_table:
            at, where = section.value.keys[name], "a table: its columns are those of its snapshot"
            keys.errors.append(findings.needless_key(at, key="optional", where=where))
    if not columns:
        keys.missing("columns", "there is not one in it")
    return tuple(columns.values())


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
        written = default.kind if default.kind in ("a list", "a mapping") else default.text
        form = f"a value of {type_} (text, number, truth or date)"
        mapping.errors.append(
            findings.wrong_type(
                default.at, key=mapping.full_name("default"), wanted=form, found=written
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
    choice = keys.choice("on_new_columns", tuple(NewColumns))
    return NewColumns(choice) if choice else None


def time_column(keys: Keys, key: str, columns: tuple[Column, ...]) -> str | None:
    """The column that a key names, as it is declared: a time; None with the reason noted."""
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


def _columns_of_folders(keys: Keys, columns: tuple[Column, ...]) -> tuple[Column, ...]:
    """Further columns, whose values the names of folders have."""
    section = keys.section("partition_columns", f"partition_columns of {keys.where}")
    if section is None or "path" not in keys.entries:
        return ()
    known = {column.name.lower(): "columns" for column in columns}
    columns_of_folders = []
    for name in section.entries:
        if other := known.get(name.lower()):
            at = section.value.keys[name]
            keys.errors.append(findings.duplicate_name(at, name=f"column {name}", other=other))
            continue
        known[name.lower()] = "partition_columns"
        columns_of_folders.append(Column(name, _type(section, name, name)))
    if not columns_of_folders:
        keys.missing("partition_columns", "there is not one in it")
    return tuple(columns_of_folders)


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
    length = keys.length("listing_window", 3 * DAY)
    return 3 * DAY if length is None else length


def _timestamp_format(keys: Keys) -> str:
    text = keys.text("timestamp_format")
    if text is None or text in TIMESTAMP_FORMATS:
        return text or "iso"
    if not (why := find_pattern_fault(text)):
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
        written = value.kind if value.kind != "text" else f"{len(value.text)} of them"
        keys.errors.append(
            findings.wrong_type(value.at, key="delimiter", wanted="one character", found=written)
        )
        return ","
    return value.text


ISO = "iso"
"""The format in which dates are written, too."""


def refuse_contradictions(keys: Keys, source: Source) -> None:
    """Note the keys of a source without other mistakes that have no effect beside its others."""
    for key, where, todo in _without_effect(source):
        keys.needless((key,), f"{keys.where}, {where}", todo)


def _without_effect(source: Source) -> Iterator[tuple[str, str, str]]:
    """Such keys, with what leaves them without an effect, and what to do."""
    if source.on_drift is Drift.EVOLVE and source.on_new_columns not in (None, NewColumns.IGNORE):
        where = f"whose `on_new_columns` is {source.on_new_columns}"
        todo = "`evolve` lets new columns wait in the files. Leave one of both out."
        yield "on_drift", where, todo
    if source.retain is not None and source.event_time_column is None:
        todo = "Name the column with the time of each row, or leave it out."
        yield "retain", "which has no `event_time_column`", todo
    received = source.received_column
    if received is not None and received == source.event_time_column:
        todo = (
            "A row is dated in the future if its event time is later than that. Name the column "
            "with the time of receipt, or leave it out: then such rows wait."
        )
        yield "received_column", "whose event time is the same column", todo
    timestamps = any(
        has_timestamps(one.type) for one in source.columns if one.name != source.file_time_column
    )
    if source.timestamp_format != ISO and not timestamps:
        todo = (
            "Dates are written as 2024-03-01. A column whose values are written otherwise is "
            "declared as timestamp."
        )
        yield "timestamp_format", "which declares no column of type timestamp", todo


# Spark takes the pattern letters of Java's `DateTimeFormatter` but for those of weeks, and each as
# often in a row as Java does but for the longest. What it refuses it refuses by an exception in the
# middle of a run. The tests compare this with Spark, letter by letter.

_UP_TO = {
    **dict.fromkeys("dhHkKms", 2),
    **dict.fromkeys("GML", 4),
    **dict.fromkeys("XxZ", 5),
    "y": 6,
    "D": 3,
    "S": 9,
    "a": 1,
    "g": 19,
}
"""By letter, the most that may be in a row."""

_EXACTLY = {"V": (2,), "O": (1, 4)}

_OTHERWISE = {
    **dict.fromkeys("zv", "names of zones as in PST mean several: VV reads Europe/Berlin and UTC"),
    **dict.fromkeys("YWwuec", "Spark reads no weeks, and no days of weeks: yyyy-MM-dd says a day"),
    **dict.fromkeys("EFqQ", "Spark writes it and does not read it; quoted text is read as it is"),
}
"""Letters of Java's patterns that are refused, with the reason."""

_BARE_NANOS = re.compile(r"(?<![.,S])S{7}")
"""Digits finer than microseconds right after the seconds: where they begin is unknown."""


def find_pattern_fault(pattern: str) -> str:
    """Why Spark reads no time by a pattern, or reads some as others; empty if nothing is wrong."""
    return next(_wrong(pattern), "")


def _wrong(pattern: str) -> Iterator[str]:
    # Each second part is in quotes. With fractions Spark looks for no end of the last one.
    parts = pattern.split("'")
    if "S" not in pattern and len(parts) % 2 == 0:
        yield "a quote has no end"
    parts = parts[::2]
    letters = [letter for part in parts for letter in part if letter.isascii() and letter.isalpha()]
    if not letters:
        yield "it has no letter of a part of a time"
    for part in parts:
        for letter, run in groupby(part):
            yield from _wrong_run(letter, len([*run]))
    opened = 0
    for letter in "".join(parts):
        opened += (letter == "[") - (letter == "]")
        if opened < 0:
            yield "a ] has no [ before it"
    if _BARE_NANOS.search(pattern):
        yield "digits finer than microseconds come after a point: .SSSSSSSSS"
    if not {"y", "g"} & {*letters}:
        yield "it has no year: Spark takes each for 1970"


def _wrong_run(letter: str, count: int) -> Iterator[str]:
    """What is wrong with a letter that is there so often in a row."""
    if letter in _OTHERWISE:
        yield f"{letter}: {_OTHERWISE[letter]}"
    elif letter in "{}#":
        yield f"{letter} is reserved: write it in quotes"
    elif letter.isascii() and letter.isalpha():
        allowed = _EXACTLY.get(letter) or range(1, _UP_TO.get(letter, 0) + 1)
        if not allowed:
            yield f"{letter} is no letter of a pattern: write text in quotes, 'T'"
        elif count not in allowed:
            known = " or ".join(letter * one for one in allowed[:4])
            yield f"{letter * count}: it is {known}"


SQLITE = "sqlite:///"
SCHEMES = (SQLITE, "postgresql+psycopg://", "postgresql://", "${")
FORMS = ("postgresql://USER@HOST:PORT/DATABASE", "sqlite:///FILE")
NONE = "none"
CORRECTIONS = (NONE, "reread 3 days")
NUMBERS = ("smallint", "short", "int", "integer", "bigint", "long")
_NEEDLESS = ("path", "catalog", "on_drift", "timestamp_format")
"""Keys of other sources, but for those that need ``path`` beside them."""
_REREAD = re.compile(r"reread\s+(.+)")


@dataclass(frozen=True, slots=True)
class DatabaseKeys:
    """What the keys of a source say of a database; nothing for any other source."""

    url: str | None = None
    key: str | None = None
    reread: int | None = None


def is_in_database(keys: Keys) -> bool:
    """Whether a source is a table in a database."""
    written = keys.entries.get("format")
    return "url" in keys.entries or (written is not None and written.text == Format.JDBC)


def check_format(keys: Keys) -> Format:
    """The format of such a source; notes what it lacks, and what makes no sense beside it."""
    keys.choice("format", (Format.JDBC,))
    if "url" not in keys.entries:
        keys.missing("url", "it says where the database is")
    if "table" not in keys.entries:
        keys.missing("table", "it names a table, or a view, of the database")
    keys.needless(_NEEDLESS, f"{keys.where}, which is in a database")
    return Format.JDBC


def read_database(keys: Keys, columns: Sequence[Column]) -> DatabaseKeys:
    """What a source says of its database."""
    if not is_in_database(keys):
        return DatabaseKeys()
    url, key, reread = _url(keys), keys.text("key"), _reread(keys)
    if key is None:
        if "key" not in keys.entries:
            where = f"{keys.where} without key, which is read whole each time"
            keys.needless(("corrections",), where)
        return DatabaseKeys(url)
    if "corrections" not in keys.entries:
        why = "whether rows that were read may change later: none, or reread 3 days"
        keys.missing("corrections", why)
    _check_key(keys, key, columns, rereads=reread is not None)
    return DatabaseKeys(url, key, reread)


def _check_key(keys: Keys, key: str, columns: Sequence[Column], *, rereads: bool) -> None:
    column = next((one for one in columns if one.name == key), None)
    at, known = keys.at("key"), [one.name for one in columns]
    if column is None:
        if columns:
            keys.errors.append(findings.no_such_column(at, key="key", column=key, known=known))
        return
    type_ = column.type.strip().lower()
    if column.optional:
        why = "it is optional, and a row without a key would never be read"
    elif type_ not in (*NUMBERS, *TIMES):
        why = f"its type is {column.type}: a whole number, a date or a timestamp grows"
    elif rereads and type_ in NUMBERS:
        why = "it is a number, and `corrections: reread` is a length of time"
    else:
        return
    keys.errors.append(database_errors.bad_key(at, column=key, why=why))


def _url(keys: Keys) -> str | None:
    """The URL, with references to secrets; none in which a password may be is shown."""
    text = keys.text("url")
    if text is None:
        return None
    at = replace(keys.at("url"), text="")
    if (wrong := bad_reference(text)) is not None:
        keys.errors.append(findings.bad_secret(at, key="url", value=wrong))
    elif has_password(text):
        keys.errors.append(findings.password_written_out(at, key="url"))
    elif not text.startswith(SCHEMES) or (text.startswith(SQLITE) and REFERENCE.search(text)):
        scheme, begun, _ = text.partition("://")
        shown = f"{scheme}://…" if begun else "…" if "@" in text else text
        keys.errors.append(findings.bad_value(at, key="url", value=shown, known=FORMS))
    return text


def _reread(keys: Keys) -> int | None:
    """How long before the newest key rows may still change."""
    text = keys.text("corrections")
    if text is None or text == NONE:
        return None
    match = _REREAD.fullmatch(text.strip())
    try:
        length = parse_duration(match[1]) if match else 0
    except ValueError:
        length = 0
    if length <= 0:
        at = keys.at("corrections")
        keys.errors.append(findings.bad_value(at, key="corrections", value=text, known=CORRECTIONS))
        return None
    return length


def refuse_in_stores(
    sources: Mapping[str, Source], targets: Mapping[str, Target], places: Mapping[str, Spot]
) -> Iterator[InfoldError]:
    """An error for each target that has no folder of a disk for what is extracted."""
    extracted = [name for name, source in sources.items() if FORMATS[source.format].is_extracted]
    for name, target in targets.items():
        if target.in_store and extracted:
            yield database_errors.not_beside_store(places[name], source=extracted[0])
