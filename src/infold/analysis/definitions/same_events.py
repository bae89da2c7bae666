"""
What two definitions of an events model have in common: what a forward-only change builds upon.

A row of a file belongs to the definition in force at its event time. So both have to see each row
at the same time and with the same key, and to read files alike: then no row is taken in by both, or
by neither. If they also keep the same rows, none of a file that was ingested is missing afterwards.
"""

from __future__ import annotations

from dataclasses import fields

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.meanings import Meaning, given
from infold.analysis.definitions.places import position
from infold.analysis.names.relation import Block, Relation, Table
from infold.core.definition import KEYS, Decides, SameEvents
from infold.core.model import Deduplicate, Kind, Source


def same_events(before: Meaning, after: Meaning) -> SameEvents | None:
    """What both are proven to have in common; None unless both are events models."""
    if {before.node.model.kind, after.node.model.kind} != {Kind.EVENTS}:
        return None
    other = _other_keys(before, after) or _other_source(before.source, after.source)
    if other:
        return SameEvents(other)
    if any(meaning.node.overrides_used or meaning.node.downgraded for meaning in (before, after)):
        return SameEvents("it builds upon an override")
    try:
        rows, events = _compared(before, after)
    except (Doubt, RecursionError):
        rows = events = False
    if not events:
        return SameEvents("its key or its event time may have other values")
    return SameEvents(rows=rows)


def _other_keys(before: Meaning, after: Meaning) -> str:
    """What identifies an event in another way."""
    old, new = before.node.model, after.node.model
    if not new.unique_key or before.node.landed or after.node.landed:
        return "it has no key"
    if [key.lower() for key in old.unique_key] != [key.lower() for key in new.unique_key]:
        return "its unique_key changed"
    if Deduplicate.EVERYWHERE in (old.deduplicate, new.deduplicate):
        return "copies of an event may be on both sides (`deduplicate: everywhere`)"
    return ""


def _other_source(before: Source | None, after: Source | None) -> str:
    """Why a row of a file may be another one; columns that are new are not read by the earlier."""
    if before is None or after is None:
        return "its source is not known"
    for field in fields(Source):
        key = f"Source.{field.name}"
        decides = KEYS.get(key, Decides.CONTENT) is Decides.CONTENT and key != "Source.columns"
        if decides and getattr(before, field.name) != getattr(after, field.name):
            return f"its source is read in another way ({field.name})"
    declared = {column.name: (column.type, column.default) for column in after.columns}
    for column in before.columns:
        if column.name not in declared:
            return f"it reads column {column.name} of its source no longer"
        if declared[column.name] != (column.type, column.default):
            return f"column {column.name} of its source is declared otherwise"
    return ""


def _compared(before: Meaning, after: Meaning) -> tuple[bool, bool]:
    """Whether both keep the same rows, and whether each row has the same key and event time."""
    letters = before.structs or after.structs
    series, key = after.node.model.timeseries, after.node.model.unique_key
    if before.relation is None or after.relation is None or series is None:
        raise Doubt
    names = {name.lower() for name in (series.event_time_column, *key)}
    one, two = (
        Canon(meaning.prints, given(meaning.node.model), letters, meaning.renamed)
        for meaning in (before, after)
    )
    if one.rows(before.relation, names) == two.rows(after.relation, names):
        return True, True
    old, new = one.columns(before.relation), two.columns(after.relation)
    same = all(old[name] == new[name] for name in names)
    plain = _of_source(one, before.relation, names) and _of_source(two, after.relation, names)
    return False, same and plain


def _of_source(canon: Canon, relation: Relation, names: set[str]) -> bool:
    """Whether columns follow from the row of a file alone: no lookup has a part in them."""
    if not isinstance(relation, Block) or not _reads_one(relation.entries[0].relation):
        return False
    select = canon.select(relation)
    needs = {need for name in names for need in select.output(position(relation, name))[1]}
    return all(entry is relation.entries[0] for entry, _ in needs)


def _reads_one(relation: Relation) -> bool:
    """Whether it is a table, or a view of one table alone."""
    while isinstance(relation, Table) and relation.view is not None:
        view = relation.view
        if not isinstance(view, Block) or len(view.entries) != 1:
            return False
        relation = view.entries[0].relation
    return isinstance(relation, Table)
