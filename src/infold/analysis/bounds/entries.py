"""
What is known of each entry of a FROM by itself, subqueries among them, before the joins.

``propagation`` starts from it: it adds what the join conditions say about the entries.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from infold.analysis.bounds.transitive import InputPath, NullSources, Requirements, Shapes, Step
from infold.analysis.names.relation import Block, FromEntry, Origin, SetOperation
from infold.analysis.times.shape import Span

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
