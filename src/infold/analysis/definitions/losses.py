"""
What a changed definition takes from its stored table, as far as the two texts show it.

Columns, keys, and types where both are written: of a column of a source, or by CAST around an
output. All other types are known to Spark alone; a run compares them before it writes anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from sqlglot import exp

from infold.analysis.definitions.meanings import Meaning
from infold.analysis.names.relation import Block
from infold.core.definition import Difference, Loss, Lost
from infold.core.model import Kind
from infold.core.type_changes import holds_all_values, is_simple
from infold.messages.errors import Spot

_KEYS: Mapping[str, tuple[Kind, ...]] = {
    "unique_key": (Kind.EVENTS, Kind.SCD_TYPE_2),
    "partition_column": (Kind.EVENTS, Kind.SESSIONS, Kind.INCREMENTAL_TABLE),
    "user": (Kind.SESSIONS,),
    "group": (Kind.CUMULATIVE_AGGREGATE,),
}
"""Differences that change what identifies a row or where it is stored, and of which kinds."""


def losses(before: Meaning, after: Meaning, differences: Iterable[Difference]) -> tuple[Loss, ...]:
    """What readers of the stored table would miss; nothing of a view, which stores no rows."""
    if before.node.model.kind is Kind.VIEW:
        return ()
    if after.node.model.kind is Kind.VIEW:
        return (Loss(Lost.TABLE, before.node.name, at=_query_spot(after)),)
    differences = tuple(differences)
    return (
        *_columns(before, after),
        *_types(before, after, differences),
        *_keys(after, differences),
    )


def _columns(before: Meaning, after: Meaning) -> Iterator[Loss]:
    left = {name.lower() for name in after.node.columns}
    for name in before.node.columns:
        if name.lower() not in left:
            yield Loss(Lost.COLUMN, name, at=_query_spot(after))


def _types(before: Meaning, after: Meaning, differences: Iterable[Difference]) -> Iterator[Loss]:
    """Narrowed or incompatible types, where both are written."""
    for one in differences:
        stored = any(one.name.lower() == name.lower() for name in before.node.columns)
        if one.part == "source column" and one.before and one.after and stored:
            old, new = (text.split(" DEFAULT ")[0] for text in (one.before, one.after))
            if is_simple(old) and is_simple(new) and not holds_all_values(old, new):
                yield Loss(Lost.TYPE, one.name, old, new, one.at)
    old_types, new_types = _written_types(before), _written_types(after)
    for name, old in old_types.items():
        new = new_types.get(name, old)
        if is_simple(old) and is_simple(new) and not holds_all_values(old, new):
            yield Loss(Lost.TYPE, name, old, new, _query_spot(after))


def _written_types(meaning: Meaning) -> Mapping[str, str]:
    """The outputs that are a CAST, with its type."""
    block = meaning.relation
    if not isinstance(block, Block):
        return {}
    found = {}
    for output in block.outputs or ():
        node = output.node
        while isinstance(node, (exp.Alias, exp.Paren)):
            node = node.this
        if isinstance(node, exp.Cast):
            found[output.name.lower()] = node.to.sql("spark").lower()
    return found


def _keys(after: Meaning, differences: Iterable[Difference]) -> Iterator[Loss]:
    for one in differences:
        kinds = _KEYS.get(one.part, ())
        if not one.name and after.node.model.kind in kinds:
            at = one.at or _query_spot(after)
            yield Loss(Lost.KEY, _WORDS.get(one.part, one.part), one.before, one.after, at)


_WORDS = {"group": "GROUP BY"}


def _query_spot(meaning: Meaning) -> Spot:
    model = meaning.node.model
    return Spot(model.place.file, model.sql_line)
