"""
Which models of an environment need tables of their own: by definitions, and by contents.

A model is production's if its definition gives the same rows, and if what it reads is production's
as far as it reads it. That is proven by definitions (columns that a change is proven to keep), or
seen by contents, once the environment's table of an input is up to date: equal cells have equal
rows. Until then its readers wait.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from infold.core.definition import Category, How, Redefinition
from infold.core.project import Node, Project
from infold.core.trace import Trace
from infold.planning.forward_only import without_earlier_cells

if TYPE_CHECKING:
    from infold.analysis.definitions.columns_read import ColumnsRead
    from infold.analysis.definitions.meanings import Meanings

EqualRows = Callable[[str, str], bool | None]
"""
Whether an environment's table has the rows of production's, by model and identity of the table.

None: that is not known yet, as the table is not up to date.
"""


@dataclass(frozen=True, slots=True)
class OwnModels:
    """
    The models with tables of their own, and the identities of these.

    Of ``waiting`` models that is not known before the tables that they read are built. ``changes``
    are the definitions that give other rows than production's.
    """

    identities: Mapping[str, str]
    waiting: tuple[str, ...] = ()
    changes: tuple[Redefinition, ...] = ()


def own_models(
    declared: Project,
    production: Project,
    equal_rows: EqualRows,
    *,
    assume: bool = False,
    stretched: Mapping[str, Trace] = MappingProxyType({}),
) -> OwnModels:
    """
    Decide in dependency order. With ``assume``, rows not known yet count as different.

    ``stretched`` are traces of production's tables with cells of earlier definitions, which a
    changed model does not have.
    """
    decision = _Decision(declared, production, equal_rows, assume=assume, stretched=stretched)
    for node in declared:
        decision.add(node)
    changes = (*decision.changes.values(), *decision.removed())
    return OwnModels(decision.identities, tuple(decision.waiting), changes)


@dataclass(slots=True)
class _Comparison:
    """The definitions of both projects, compared and looked into when that is needed."""

    declared: Project
    production: Project
    found: dict[str, Redefinition | None] = field(default_factory=dict)
    _meanings: list[Meanings] = field(default_factory=list)
    _reads: list[ColumnsRead] = field(default_factory=list)

    def change(self, node: Node) -> Redefinition | None:
        """What differs from production's definition; None for nothing."""
        from infold.analysis.definitions.compare import redefinition
        from infold.analysis.definitions.meanings import Meanings

        if self._is_same(node.name):
            return None
        if not self._meanings:
            both = (self.production, self.declared)
            self._meanings += [Meanings.of(one, one.sources) for one in both]
        old, new = self._meanings
        return redefinition(old[node.name], new[node.name])

    def _is_same(self, name: str) -> bool:
        """Whether a model is the same to the letter, with all views that it reads."""
        known = name in self.production and name in self.declared
        if not known or self.production[name] != self.declared[name]:
            return False
        reads = (self.declared[one] for one in self.declared[name].reads if one in self.declared)
        return all(self._is_same(one.name) for one in reads if one.model.kind.is_view)

    def columns_read(self, reader: str, name: str) -> frozenset[str] | None:
        """The columns that production's model reads of an input; None: all."""
        from infold.analysis.definitions.columns_read import ColumnsRead

        if reader not in self.production:
            return None
        if all(one.name != name for one in self.production[reader].stored_inputs):
            return frozenset()
        if not self._reads:
            self._reads.append(ColumnsRead(self.production))
        return self._reads[0](reader, name)


def changed_models(
    declared: Project, production: Project, models: Iterable[str]
) -> tuple[Redefinition, ...]:
    """What differs from production's definitions, of those of the models that it has."""
    comparison = _Comparison(declared, production)
    found = (comparison.change(declared[name]) for name in models if name in production)
    return tuple(change for change in found if change is not None)


@dataclass
class _Decision:
    declared: Project
    production: Project
    equal_rows: EqualRows
    assume: bool
    stretched: Mapping[str, Trace]
    identities: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    changes: dict[str, Redefinition] = field(default_factory=dict)
    _kept: dict[str, frozenset[str]] = field(default_factory=dict)
    """The columns of own tables that are proven to have production's values in the same rows."""

    @cached_property
    def _comparison(self) -> _Comparison:
        return _Comparison(self.declared, self.production)

    def add(self, node: Node) -> None:
        """Decide about one model, after those that it reads."""
        change = self._change(node)
        if change is not None and not same_rows(change):
            self.changes[node.name] = change
        if node.model.kind.is_view:
            return
        there = node.name in self.production
        other = not there or (change is not None and not same_rows(change))
        reads = [entry.name for entry in node.stored_inputs]
        seen = [] if other else [self._is_shared(node, name) for name in reads]
        if any(name in self.waiting for name in reads) or (None in seen):
            self.waiting.append(node.name)
        elif other or not all(seen):
            self.identities[node.name] = self._identity(node)
            if change is not None and all(self._is_kept(node.name, name) for name in reads):
                self._kept[node.name] = change.columns_kept

    def removed(self) -> tuple[Redefinition, ...]:
        """The models of production that are not declared."""
        return tuple(
            Redefinition(node.name, Category.REMOVED, (), How.NOTHING, node, None)
            for node in self.production
            if node.name not in self.declared
        )

    def _change(self, node: Node) -> Redefinition | None:
        if node.name not in self.production:
            how = How.NOTHING if node.model.kind.is_view else How.REBUILD
            return Redefinition(node.name, Category.NEW, (), how, None, node)
        change, trace = self._comparison.change(node), self.stretched.get(node.name)
        if change is None or trace is None:
            return change
        return without_earlier_cells(change, trace)

    def _is_shared(self, node: Node, name: str) -> bool | None:
        """Whether what a model reads of an input is production's; None: not known yet."""
        if name in self.waiting:
            return None
        if self._is_kept(node.name, name):
            return True
        equal = self.equal_rows(name, self.identities[name])
        return False if equal is None and self.assume else equal

    def _is_kept(self, reader: str, name: str) -> bool:
        """
        Whether an input is production's, or keeps all columns that production's model reads of it.

        Columns that a changed model keeps follow from these, as their forms are the same.
        """
        if name not in self.identities:
            return True
        kept, read = self._kept.get(name), self._comparison.columns_read(reader, name)
        return bool(kept) and (read is not None and read <= (kept or frozenset()))

    def _identity(self, node: Node) -> str:
        """The hash of everything that a table follows from, but for production's tables."""
        inputs = sorted(
            [one.name, self.identities[one.name]]
            for one in node.stored_inputs
            if one.name in self.identities
        )
        return sha256(json.dumps([node.name, node.fingerprint, inputs]).encode()).hexdigest()


def same_rows(change: Redefinition) -> bool:
    """Whether a changed definition has the same rows, in columns of the same order."""
    return change.category in (Category.NONE, Category.METADATA) and change.how in (
        How.NOTHING,
        How.RESTAMP,
    )
