"""
The canonical form of a query: queries with equal forms give equal rows for any inputs.

A form is a digest of a relation, relative to some *wanted* output columns. All columns are wanted
where the others affect the rows (DISTINCT, UNION, LIMIT …). A form is made of tokens, with each
column replaced by its origin, so these rewritings are no change:

- layout and comments;
- aliases of tables, CTEs and their columns; a view in place of its query;
- the order of columns, of AND and OR terms, and of GROUP BY;
- TRUE among ANDs, FALSE among ORs, and brackets that Spark's grammar does not need;
- ordinals and aliases in GROUP BY;
- ORDER BY of a whole table, and hints about joins and partitions.

Everything else counts to the letter. Constructs that are not understood raise Doubt.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from types import MappingProxyType

from sqlglot import exp
from sqlglot.tokenizer_core import TokenType

from infold.analysis.definitions.clauses import Doubt, clauses
from infold.analysis.definitions.expressions import digest
from infold.analysis.definitions.places import (
    Need,
    Place,
    all_positions,
    columns_of,
    position,
)
from infold.analysis.definitions.selects import Select
from infold.analysis.names.relation import (
    Block,
    FromEntry,
    OtherRows,
    Relation,
    RenamedColumns,
    SetOperation,
    Table,
    blocks_of,
    without_renaming,
)
from infold.analysis.names.select_parts import merges_columns
from infold.analysis.sql.text import Text

_REFUSED = frozenset(
    {TokenType.PIVOT, TokenType.UNPIVOT, TokenType.TABLE_SAMPLE, TokenType.RECURSIVE}
)


@dataclass(slots=True)
class Canon:
    """
    Forms of relations, each made once.

    ``prints`` are the fingerprints of views: the form of a view that is not understood. ``given``
    are columns that a SELECT sees without an input. With ``letters``, the case of names counts,
    because fields of structs are named as written.
    """

    prints: Mapping[str, str]
    given: frozenset[str] = frozenset()
    letters: bool = False
    renamed: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Stored tables, in lower case, with columns that count by the name that they had before."""
    _labels: dict[FromEntry, tuple[int, int, bool]] = field(default_factory=dict)
    _blocks: dict[Block, Select] = field(default_factory=dict)
    _forms: dict[tuple[Relation, frozenset[int], bool], tuple[str, frozenset[Need]]] = field(
        default_factory=dict
    )
    _columns: dict[tuple[Relation, Place], str] = field(default_factory=dict)
    _views: dict[Table, bool] = field(default_factory=dict)

    def rows(
        self,
        relation: Relation,
        names: Collection[str],
        called: Mapping[str, str] = MappingProxyType({}),
    ) -> str:
        """
        The form of the rows of a whole query, seen in some columns, by lower-case name.

        A column counts by the name that it has in ``called``, if any.
        """
        places = {name: position(relation, name) for name in names}
        form, needs = self.form(relation, frozenset(places.values()), whole=True)
        if any(isinstance(source, FromEntry) for source, _ in needs):
            raise Doubt
        named = sorted((called.get(n, n), self.column(relation, at)) for n, at in places.items())
        return digest((form, named))

    def columns(self, relation: Relation) -> dict[str, str]:
        """The form of each output column of a whole query, by lower-case name."""
        names = relation.columns or ()
        return {
            name.lower(): self.column(relation, position(relation, name.lower())) for name in names
        }

    # -- relations

    def form(
        self, relation: Relation, positions: frozenset[int], *, whole: bool = False
    ) -> tuple[str, frozenset[Need]]:
        """
        The form of a relation's rows, seen in the columns at some positions.

        Also the columns that it reads of stored tables, and of entries of FROM around it.
        """
        key = relation, positions, whole
        if key not in self._forms:
            value, needs = self._form(relation, positions, whole=whole)
            self._forms[key] = value if isinstance(value, str) else digest(value), needs
        return self._forms[key]

    def _form(
        self, relation: Relation, positions: frozenset[int], *, whole: bool
    ) -> tuple[object, frozenset[Need]]:
        if isinstance(relation, Table):
            if relation.view is None:
                return ("table", relation.name.lower()), columns_of(relation, positions)
            if not self._understood(relation):
                if relation.name not in self.prints:
                    raise Doubt
                return ("view", self.prints[relation.name]), _all_stored(relation.view)
            return self.form(relation.view, positions)
        if isinstance(relation, RenamedColumns):
            _require_equal_width(relation, relation.inner)
            return self.form(relation.inner, positions)
        if isinstance(relation, SetOperation):
            return self._set_operation(relation, positions)
        if isinstance(relation, OtherRows):
            raise Doubt
        return self.select(relation).form(positions, whole=whole)

    def _understood(self, table: Table) -> bool:
        """Whether a view can be seen through."""
        assert table.view is not None
        if table not in self._views:
            try:
                self.form(table.view, all_positions(table.view))
                self._views[table] = True
            except Doubt:
                self._views[table] = False
        return self._views[table]

    def _set_operation(
        self, relation: SetOperation, positions: frozenset[int]
    ) -> tuple[object, frozenset[Need]]:
        node = relation.node
        arguments_present = {key for key, value in node.args.items() if value}
        if not arguments_present <= {"this", "expression", "distinct", "with_"}:
            raise Doubt
        for side in (node.this, node.expression):  # INTERSECT goes before UNION and EXCEPT
            mixed = isinstance(side, exp.SetOperation) and type(side) is not type(node)
            if mixed and isinstance(
                side if isinstance(side, exp.Intersect) else node, exp.Intersect
            ):
                raise Doubt
        if not isinstance(node, exp.Union) or node.args.get("distinct"):
            positions = all_positions(relation)
        _require_equal_width(relation.left, relation.right)
        left, needs = self.form(relation.left, positions)
        right, more = self.form(relation.right, positions)
        pairs = sorted(
            (self.column(relation.left, at), self.column(relation.right, at)) for at in positions
        )
        word = type(node).__name__, bool(node.args.get("distinct"))
        return (word, left, right, pairs), needs | more

    # -- columns

    def column(self, relation: Relation, place: Place) -> str:
        """The form of one column of a relation."""
        key = relation, place
        if key not in self._columns:
            self._columns[key] = self._column(relation, place)
        return self._columns[key]

    def _column(self, relation: Relation, place: Place) -> str:
        if isinstance(relation, Table):
            name = place if isinstance(place, str) else (relation.columns or ())[place].lower()
            if relation.view is not None and self._understood(relation):
                return self.column(relation.view, position(relation.view, name))
            return self.renamed.get(relation.name.lower(), {}).get(name, name)
        at = place if isinstance(place, int) else position(relation, place)
        if isinstance(relation, RenamedColumns):
            _require_equal_width(relation, relation.inner)
            return self.column(relation.inner, at)
        if isinstance(relation, SetOperation):
            _require_equal_width(relation.left, relation.right)
            both = self.column(relation.left, at), self.column(relation.right, at)
            return digest(("both", *both))
        if isinstance(relation, OtherRows):
            return digest(("other", at))
        return self.select(relation).output(at)[0]

    def select(self, block: Block) -> Select:
        """What is known of a SELECT."""
        if block not in self._blocks:
            if _has_refused_words(block.text):
                raise Doubt
            level, around = 0, block.outer
            while around is not None:
                level, around = level + 1, around.outer
            for index, entry in enumerate(block.entries):
                self._labels[entry] = level, index, merges_columns(block)
            self._blocks[block] = Select(self, block, clauses(block))
        return self._blocks[block]

    def label(self, entry: FromEntry) -> tuple[int, int, bool]:
        """
        How many SELECTs are around that of an entry, which of it it is, and whether a join there
        makes one column of two.
        """
        if entry not in self._labels:
            raise Doubt
        return self._labels[entry]


@lru_cache(maxsize=16)
def _has_refused_words(text: Text) -> bool:
    """Each subquery asks for the whole text."""
    return any(token.token_type in _REFUSED for token in text.tokens)


def _all_stored(relation: Relation) -> frozenset[Need]:
    """All columns of the stored tables below a relation."""
    needs: set[Need] = set()
    for part in blocks_of(relation, views=True):
        below = (
            [entry.relation for entry in part.entries]
            if isinstance(part, Block)
            else [part.left, part.right]
        )
        for table in map(without_renaming, below):
            if isinstance(table, Table) and table.view is None:
                needs |= columns_of(table, all_positions(table))
    return frozenset(needs)


def _require_equal_width(left: Relation, right: Relation) -> None:
    if len(all_positions(left)) != len(all_positions(right)):
        raise Doubt
