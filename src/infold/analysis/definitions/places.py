"""Columns of relations: by position, by name, and those that a query needs of what it reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from infold.analysis.definitions.clauses import Doubt
from infold.analysis.names.relation import FromEntry, Relation, Table

Place: TypeAlias = int | str
"""A column of a relation: its position, or its lower-case name in a table."""
Need: TypeAlias = tuple[FromEntry | Table, Place]
"""A column of an entry of FROM, or by its lower-case name one of a stored table."""


def all_positions(relation: Relation) -> frozenset[int]:
    """The positions of all columns; raises Doubt where they are not known."""
    if relation.columns is None:
        raise Doubt
    return frozenset(range(len(relation.columns)))


def position(relation: Relation, name: str) -> int:
    """The position of the one column of a lower-case name."""
    positions = relation.places.get(name, ())
    if len(positions) != 1 or not name:
        raise Doubt
    return positions[0]


def columns_of(table: Table, places: Iterable[Place]) -> frozenset[Need]:
    """Some columns of a stored table, as what a form needs."""
    columns = table.columns or ()
    return frozenset((table, at if isinstance(at, str) else columns[at].lower()) for at in places)
