"""Every output column has a name of its own, and none that infold keeps for itself."""

from __future__ import annotations

import re
from collections.abc import Iterator

from infold.analysis.names.column_types import types_of
from infold.analysis.names.relation import (
    Block,
    Columns,
    OutputColumn,
    Relation,
    Table,
    blocks_of,
    first_block,
    without_renaming,
)
from infold.analysis.names.subject import Draft, Subject
from infold.core.model import Kind
from infold.core.queries import ALL_COLUMNS
from infold.messages import findings, refusals
from infold.messages.errors import InfoldError, Spot


def check(subject: Subject) -> Iterator[InfoldError]:
    """Columns without a name, names given twice or kept by infold, and types of no column."""
    by_name: dict[str, OutputColumn] = {}
    block = first_block(subject.relation)
    for out in block.outputs or () if block is not None else ():
        at = block.text.spot_of(out.label or out.node) if block is not None else Spot("")
        if not out.name:
            if subject.model.kind is not Kind.SESSIONS:  # found there, at the item's own place
                yield refusals.unnamed_column(at)
            continue
        if out.name.lower() in by_name:
            yield refusals.duplicate_column(at, column=out.name)
        if out.name.startswith("_") and subject.draft.landed:
            yield findings.reserved_column_of_source(
                subject.draft.place("columns"), source=subject.model.name, column=out.name
            )
        elif out.name.startswith("_"):
            yield findings.reserved_column(at, column=out.name)
        by_name[out.name.lower()] = out
    if subject.model.kind.is_stored and block is not None:
        yield from _not_stored(subject, block)


def _not_stored(subject: Subject, block: Block) -> Iterator[InfoldError]:
    """Columns of types that a table cannot have."""
    known = types_of(subject.relation, subject.types)
    for out in block.outputs or ():
        type_ = known.get(out.name.lower())
        if out.name and type_ in _NEVER_STORED:
            at = block.text.spot_of(out.node)
            yield refusals.not_stored(at, out.name, _NEVER_STORED[type_], type_)


_NEVER_STORED = {"interval": "an interval", "void": "always NULL, of no type"}


_DIRECTION = re.compile(r"\s+(asc|desc)\s*\Z", re.IGNORECASE)


def check_time_columns(subject: Subject) -> Iterator[InfoldError]:
    """Columns, time columns and keys in the front matter that the query does not yield."""
    columns = subject.relation.columns
    yield from wrong_renamings(subject.draft, columns)
    if columns is None or subject.model.kind in (Kind.SESSIONS, Kind.VIEW):
        return
    known = {column.lower() for column in columns}
    visited = set()
    for place, key, column in _named(subject, known):
        if column.lower() not in known and (column.lower(), key.split(".")[0]) not in visited:
            visited.add((column.lower(), key.split(".")[0]))
            at = subject.draft.place(place)
            yield findings.no_such_column(at, key=key, column=column, known=columns)


def _named(subject: Subject, known: set[str]) -> list[tuple[str, str, str]]:
    """The columns that the front matter names: the place, the key, and the column."""
    series = subject.model.timeseries
    named = [(f"unique_key.{i}", "unique_key", c) for i, c in enumerate(subject.model.unique_key)]
    incremental = subject.model.incremental
    for i, c in enumerate(incremental.unique_key if incremental is not None else ()):
        named.append((f"incremental.unique_key.{i}", "incremental.unique_key", c))
    for i, text in enumerate(subject.model.prefer):
        named.append((f"prefer.{i}", "prefer", _DIRECTION.sub("", text).strip().strip("`")))
    rules = subject.model.versions
    if rules is not None:
        key = "scd_type_2.updated_at"
        named.append((key, key, rules.updated_at))
    for i, c in enumerate(rules.columns if rules is not None else ()):
        if c != ALL_COLUMNS:
            named.append((f"scd_type_2.columns.{i}", "scd_type_2.columns", c))
    if series is not None:
        for key, column in (
            ("event_time_column", series.event_time_column),
            ("partition_column", series.partition_column),
        ):
            from_input = key == "event_time_column" and subject.model.kind is not Kind.EVENTS
            read = _columns_read(subject.relation)
            if from_input and (read is None or column.lower() in known | read):
                continue
            named.append((f"timeseries.{key}", f"timeseries.{key}", column))
    return named


def wrong_renamings(draft: Draft, columns: Columns) -> Iterator[InfoldError]:
    """New names that no column has, and earlier ones that another column has."""
    sessions = draft.model.sessions
    known = {column.lower() for column in columns or ()}
    stored = {*known, *(sessions.fixed_columns if sessions is not None else ())}
    for new, old in draft.model.renamed_from if columns is not None else ():
        at = draft.place(f"renamed_from.{new}")
        if new.lower() not in known:
            yield findings.no_such_column(at, key="renamed_from", column=new, known=columns or ())
        elif old.lower() in stored:
            yield findings.kept_name(at, new=new, old=old)


def _columns_read(relation: Relation) -> set[str] | None:
    """All columns of the stored tables that are read; None when they are not known."""
    columns: set[str] = set()
    for block in blocks_of(relation, views=True):
        if isinstance(block, Block):
            for entry in block.entries:
                inner = without_renaming(entry.relation)
                if isinstance(inner, Table):
                    if inner.columns is None:
                        return None
                    columns.update(column.lower() for column in inner.columns)
    return columns
