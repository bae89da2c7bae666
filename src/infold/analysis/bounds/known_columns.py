"""What is known of the columns that a relation yields, and how far an input is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.bounds.transitive import (
    InputPath,
    NullSources,
    Requirements,
    Shapes,
    Step,
    either_shapes,
)
from infold.analysis.names.relation import Block, Columns, FromEntry, Origin, SetOperation
from infold.analysis.times.shape import Span
from infold.core.project import Bound


@dataclass(frozen=True, slots=True)
class KnownColumns:
    """
    What is known of a relation: the inputs with a time column that it reads, and its columns.

    ``columns`` are those with a shape against every input, by lower-case name. A field of a struct
    is named by both, with a NUL between.
    """

    inputs: frozenset[InputPath] = frozenset()
    columns: Mapping[str, Shapes] = field(default_factory=dict)
    by_position: tuple[Shapes, ...] | None = None
    """The same by position, where all columns are known; empty where nothing is known."""
    nulls: Mapping[str, NullSources] = field(default_factory=dict)
    """Where the NULLs of these columns come from."""
    nulls_by_position: tuple[NullSources, ...] = ()
    """The same beside ``by_position``."""
    required: Requirements = field(default_factory=dict)
    """What must be present for each of the inputs."""

    @property
    def without_fields(self) -> Mapping[str, Shapes]:
        """The columns without the fields of structs, for messages and for tables."""
        return {name: shapes for name, shapes in self.columns.items() if "\0" not in name}

    def with_fields(self, fields: Iterable[tuple[str, Shapes, NullSources]]) -> KnownColumns:
        """The same with fields of structs: their names, their shapes, and their NULLs."""
        found = [one for one in fields if one[1]]
        columns = {**self.columns, **{name: shapes for name, shapes, _ in found}}
        nulls = {**self.nulls, **{name: sources for name, _, sources in found}}
        return replace(self, columns=columns, nulls=nulls) if found else self

    @property
    def reads_time(self) -> bool:
        """Whether the relation reads an input with a time column."""
        return bool(self.inputs)

    @staticmethod
    def in_order(
        inputs: frozenset[InputPath],
        names: Columns,
        shapes: tuple[Shapes, ...] | None,
        nulls: tuple[NullSources, ...],
        required: Requirements,
    ) -> KnownColumns:
        """From what is known of each column in order."""
        if names is None or shapes is None:
            return KnownColumns(inputs, required=required)
        known = [
            (name.lower(), shape, sources)
            for name, shape, sources in zip(names, shapes, nulls, strict=False)
            if shape and name
        ]
        columns = {name: shape for name, shape, _ in known}
        nulls_of = {name: sources for name, _, sources in known}
        return KnownColumns(inputs, columns, shapes, nulls_of, nulls, required)


def columns_of_set_operation(
    relation: SetOperation, left: KnownColumns, right: KnownColumns
) -> KnownColumns:
    """A column is known when it is on both sides; each side's rows are of its own inputs."""
    inputs = left.inputs | right.inputs
    required: dict[InputPath, NullSources | None] = dict.fromkeys(inputs)
    if not isinstance(relation.node, exp.Union):
        required |= left.required  # its rows are rows of the left side
    sides = left.by_position, right.by_position
    if not (left.reads_time and right.reads_time) or sides[0] is None or sides[1] is None:
        return KnownColumns(inputs, required=required)
    others, other_nulls = sides[1], right.nulls_by_position
    if relation.node.args.get("by_name"):
        names = [name.lower() for name in relation.left.columns or ()]
        others = tuple(right.columns.get(name, {}) for name in names)
        other_nulls = tuple(right.nulls.get(name, frozenset()) for name in names)
    each = tuple(
        either_shapes(a, b) if a and b else {} for a, b in zip(sides[0], others, strict=False)
    )
    nulls = tuple(a | b for a, b in zip(left.nulls_by_position, other_nulls, strict=False))
    return KnownColumns.in_order(inputs, relation.columns, each, nulls, required)


@dataclass(frozen=True, slots=True)
class InputBound:
    """How far one naming of an input is read; ``start``: its position in the model's own SQL."""

    name: str
    bound: Bound
    start: int | None


# `propagation` starts from it: it adds what the join conditions say about the entries.

EntryValue: TypeAlias = tuple[Step, str]
"""A value of one entry of FROM: the entry, and a column's name or an expression's text."""


@dataclass(frozen=True, slots=True)
class Entries:
    """What is known of the entries of a FROM before they are joined."""

    columns: Mapping[EntryValue, Shapes]
    """The shapes of each entry's columns, by entry and lower-case name."""
    inputs: Mapping[Step, frozenset[InputPath]]
    """What each entry reads."""
    nulls: Mapping[EntryValue, NullSources] = field(default_factory=dict)
    """Where the NULLs of an entry's columns come from."""
    required: Mapping[FromEntry, Requirements] = field(default_factory=dict)
    """What each entry's inputs require in it."""


@dataclass(frozen=True, slots=True, eq=False)
class Distance:
    """``low <= outer - inner <= high``: how far a value here is from one of a subquery's rows."""

    outer: exp.Expr
    inner: EntryValue
    shapes: Shapes
    span: Span


@dataclass(frozen=True, slots=True, eq=False)
class SubqueryEntry:
    """
    A subquery as an entry of FROM: the inputs that it reads, and how far away its rows are.

    ``origins`` are the columns that its own text names, also those of the rows around it.
    """

    relation: Block | SetOperation
    inputs: frozenset[InputPath]
    distances: tuple[Distance, ...]
    origins: Mapping[exp.Expr, Origin | None]
    required: Requirements
