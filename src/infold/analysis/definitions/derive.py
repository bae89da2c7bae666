"""
How the rows of a changed definition follow from the rows that the old one gave.

Both queries are one SELECT over the same rows: equal forms of FROM and of all conditions that both
have prove that. An output of the old query is then a value of such a row (or group), and it is
stored. What the new query says about these values alone can be evaluated over the stored rows: an
output that is computed row by row, a condition that is added. Every piece of its words has to be a
stored value with an equal form, or an operator, a literal or a function that are known to compute
one value of one row. Everything else raises Doubt, and the table is built again.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt, Range
from infold.analysis.definitions.expressions import Terms
from infold.analysis.definitions.meanings import Meaning
from infold.analysis.definitions.places import Need
from infold.analysis.definitions.selects import Select
from infold.analysis.definitions.stored_values import StoredValues
from infold.analysis.names.relation import Block
from infold.core.definition import Derivation
from infold.core.model import Kind
from infold.core.project import Node
from infold.core.quoting import quoted

_CONDITIONS = ("where", "having")


def derivation(before: Meaning, after: Meaning, kept: Collection[str]) -> Derivation | None:
    """
    How the new rows follow from the stored ones; None where that is not proven.

    ``kept`` are the columns with a proof that they have the same values in the same rows. Both
    definitions are equal in everything but the query, and where the table starts.
    """
    old, new = before.node, after.node
    kinds = {old.model.kind, new.model.kind}
    if kinds not in ({Kind.INCREMENTAL_TABLE}, {Kind.EVENTS}) or old.landed or new.landed:
        return None
    if any(of.overrides_used or of.bounds_declared or of.downgraded for of in (old, new)):
        return None
    if any(of.model.python is not None for of in (old, new)):
        return None
    if any("collat" in sql.lower() for sql in (*before.queries, *after.queries)):
        return None  # a table does not store how its strings compare
    stored = {name.lower(): name for name in old.columns}
    names = [name.lower() for name in new.columns]
    if len(stored) < len(old.columns) or len(set(names)) < len(names):
        return None
    if kinds == {Kind.EVENTS}:
        return _of_events(before, after)
    if set(names) <= set(kept):
        columns = tuple((name, quoted(stored[name.lower()])) for name in new.columns)
        return Derivation(columns, stored=old.columns)
    try:
        found = over_stored_rows(before, after)
    except (Doubt, RecursionError):
        return None
    return found if _in_same_cells(new, found) else None


def _of_events(before: Meaning, after: Meaning) -> Derivation | None:
    """
    The same for events: what the stored rows do not tell is read from the files.

    A stored row is found again by its key and its time, so these have to stay. Which copy of an
    event is kept may depend on all columns; whether there were copies, the ledger says.
    """
    new = after.node
    if before.node.start != new.start:
        return None  # rows before the start are counted as they are read
    try:
        found = over_stored_rows(before, after, files=True)
    except (Doubt, RecursionError):
        return None
    series = new.model.timeseries
    identity = {name.lower() for name in new.model.unique_key}
    identity |= {series.event_time_column.lower()} if series is not None else set()
    if identity - {name.lower() for name, was in found.plain if name.lower() == was.lower()}:
        return None
    read = [
        {column.name for column in of.source.columns} if of.source is not None else set()
        for of in (before, after)
    ]
    if read[1] - read[0] and not found.from_files:
        return None  # no file was ever checked for these
    return replace(found, other_source_columns=read[0] != read[1])


def _in_same_cells(node: Node, found: Derivation) -> bool:
    """Whether each row stays in its cell, and at its time."""
    series = node.model.timeseries
    if series is None:
        return False
    places = {series.partition_column.lower(), series.event_time_column.lower()}
    same = {new.lower() for new, old in found.plain if new.lower() == old.lower()}
    return not ({name.lower() for name in (*node.columns, *found.stored)} & places) - same


def over_stored_rows(before: Meaning, after: Meaning, *, files: bool = False) -> Derivation:
    """
    What the new SELECT says about outputs of the old one; raises Doubt.

    With ``files`` a column that it does not say is one to read from the files.
    """
    letters = before.structs or after.structs
    old, new = (
        _select(meaning, Canon(meaning.prints, letters=letters, renamed=meaning.renamed))
        for meaning in (before, after)
    )
    stored = StoredValues(old, new, before.node.columns)
    columns = [(name, stored.known(at, files=files)) for at, name in enumerate(after.node.columns)]
    unknown = tuple(name for name, sql in columns if not sql)
    added = {key: _added(old.conditions(key), new.conditions(key)) for key in _CONDITIONS}
    if any(added.values()) and _has_window(new):
        raise Doubt
    where = [stored.condition(key, span) for key in _CONDITIONS for span in added[key].values()]
    new_needs: set[Need] = set()
    for at, (_, sql) in enumerate(columns):
        new_needs |= new.output(at)[1] if sql else set()
    if old.source_rows(set(stored.needs), {}) != new.source_rows(new_needs, added):
        raise Doubt
    return Derivation(
        tuple(columns),
        tuple(where),
        frozenset(stored.grouped),
        frozenset(stored.read_by_value),
        before.node.columns,
        from_files=unknown,
    )


def _added(before: Terms, after: Terms) -> dict[str, Range]:
    """The conditions that only the new query has, by their forms."""
    known = dict(before)
    return {form: span for form, span in after if form not in known}


def _select(meaning: Meaning, canon: Canon) -> Select:
    """The one SELECT that a definition is."""
    block, columns = meaning.relation, meaning.node.columns
    if not isinstance(block, Block) or block.columns is None:
        raise Doubt
    if [name.lower() for name in block.columns] != [name.lower() for name in columns]:
        raise Doubt
    return canon.select(block)


def _has_window(select: Select) -> bool:
    """Whether an output depends on other rows, so that a condition changes it."""
    return any(
        select.kind(at) is TokenType.OVER
        for start, stop in select.parts.items
        for at in range(start, stop)
    )
