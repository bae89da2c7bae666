"""
One SELECT's output: which columns follow the times of which inputs, after groups and windows.

:mod:`infold.analysis.bounds.scope` knows the rows that a SELECT reads. Here they are grouped, and
windows add the rows that they look at.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.bounds.known_columns import (
    InputPath,
    KnownColumns,
    NullSources,
    Shapes,
    across,
    either_shapes,
)
from infold.analysis.bounds.scope import Scope
from infold.analysis.bounds.window_reach import WindowReach
from infold.analysis.names.relation import Block, Origin, OutputColumn, Relation
from infold.analysis.names.select_parts import (
    alike_by,
    bucket_fields,
    group_items,
    group_of_several_sets,
    has_aggregate,
    is_over_windows,
    keys_in_every_set,
    several_sets,
    window_calls,
)
from infold.analysis.times.call_shapes import shape_change

_SAME_COLUMN: InputPath = ()
"""Not an input: the column that two values are both made of."""


@dataclass(slots=True, eq=False)
class SelectColumns:
    """
    The columns of ``block``, which is somewhere in the query ``root``.

    ``vouched``: whether the author vouches for windows without a bound. ``lenient`` as in
    :class:`Scope`.
    """

    block: Block
    scope: Scope
    root: Relation
    vouched: bool = False

    def known(self, columns_of: Callable[[Relation], Collection[str]]) -> KnownColumns:
        """All columns; ``columns_of`` gives those of a relation that have a shape."""
        block, scope = self.block, self.scope
        required = scope.values.required
        if block.outputs is None:
            outputs = {out.name.lower(): out for out in _open_outputs(block, columns_of)}
            shapes_by_name = {name: self.output_shapes(out) for name, out in outputs.items()}
            nulls = {name: self.null_sources(out) for name, out in outputs.items()}
            columns = {name: shapes for name, shapes in shapes_by_name.items() if shapes}
            return KnownColumns(scope.inputs, columns, nulls=nulls, required=required)
        each = tuple(self.output_shapes(out) for out in block.outputs)
        missing = tuple(self.null_sources(out) for out in block.outputs)
        known = KnownColumns.in_order(scope.inputs, block.columns, each, missing, required)
        fields = [field for out in block.outputs for field in bucket_fields(out)]
        return known.with_fields(
            (name, self.output_shapes(out), self.null_sources(out)) for name, out in fields
        )

    def output_shapes(self, out: OutputColumn) -> Shapes:
        """The shapes of an output column against every input; none if one is missing."""
        shapes = self.own_shapes(out)
        if not self.scope.against_all(shapes):
            return {}
        return self._with_windows(out, shapes, self.null_sources(out))

    def null_sources(self, out: OutputColumn) -> NullSources:
        """Where the NULLs come from of an output column that follows the time."""
        block, node = self.block, out.node
        if out.origin is not None:
            star = isinstance(node, exp.Star)
            return self.scope.column_nulls(out.origin.entry, out.origin.column, merged=star)
        while True:
            if isinstance(node, exp.Column) and node in block.aliases:
                node = block.aliases[node]
            elif isinstance(node, (exp.Paren, exp.Alias, exp.Min, exp.Max)):
                node = node.this  # a group's least is NULL when all of its values are
            elif (change := shape_change(node)) is not None:
                node = change[0]
            else:
                return self.scope.null_sources(node)

    def own_shapes(self, out: OutputColumn) -> Shapes:
        """The shapes of an output column by itself, against some inputs or all."""
        if out.origin is not None:
            star = isinstance(out.node, exp.Star)
            return self.scope.column(out.origin.entry, out.origin.column, merged=star)
        return self.shapes(out.node)

    def shapes(self, node: exp.Expr) -> Shapes:
        """The shapes of an expression over the block's rows, grouped if it groups."""
        if isinstance(node, (exp.Paren, exp.Alias)):
            return self.shapes(node.this)
        if isinstance(node, exp.Column) and node in self.block.aliases:
            return self.shapes(self.block.aliases[node])
        if self._null_in_some_set(node):
            return {}
        if isinstance(node, (exp.Min, exp.Max)) and not node.expressions:
            return self._extreme(node)
        change = shape_change(node)
        sets = group_of_several_sets(self.block)
        if sets is not None and node in keys_in_every_set(self.block, sets):
            return self.scope.shapes(node)
        if change is not None and (sets is not None or has_aggregate(node)):
            return {path: change[1](shape) for path, shape in self.shapes(change[0]).items()}
        return self.scope.shapes(node)

    def _extreme(self, node: exp.Min | exp.Max) -> Shapes:
        """The least or greatest value of a group: as far from its rows as the group reaches."""
        scope = self.scope
        nulls, inner = scope.null_sources(node.this), scope.shapes(node.this)
        keys = self.group_keys(nulls)
        if scope.lenient and not keys:
            return inner
        if not keys or not scope.against_all(inner):
            return {}
        return self._across(node.this, inner, nulls, keys[0], scope.shapes(keys[0])) or {}

    def _null_in_some_set(self, node: exp.Expr) -> bool:
        """Whether a value is NULL in rows of a grouping set that has not all of it."""
        group = group_of_several_sets(self.block)
        if group is None or self.scope.lenient:
            return False
        if isinstance(node, (exp.Min, exp.Max)):
            return False
        return shape_change(node) is None and node not in keys_in_every_set(self.block, group)

    def _with_windows(self, out: OutputColumn, shapes: Shapes, nulls: NullSources) -> Shapes:
        """
        The same, with the rows that windows add.

        Windows are independent: each brings its rows to the same row. Only what a window finds by
        the value of another one lies beyond what that one has found.
        """
        alone = shapes
        value = out.origin if out.origin is not None else out.node
        for window in window_calls(self.block):
            reach = self._reach().far(window, nulls)
            if reach is None and (self.vouched or self.scope.lenient):
                continue
            if reach is None:
                return {}  # the rule on windows says so
            start = shapes if is_over_windows(self.block, window) else alone
            brought = self._across(value, start, nulls, *reach)
            if brought is None and not self.scope.lenient:
                return {}
            shapes = either_shapes(shapes, brought or {})
        return shapes

    def _across(
        self,
        value: exp.Expr | Origin,
        shapes: Shapes,
        nulls: NullSources,
        bridge: exp.Expr,
        far: Shapes,
    ) -> Shapes | None:
        """
        A value of one row against other rows, when ``far`` are the bridge's shapes there.

        None where no input connects the value with the bridge.
        """
        scope, known = self.scope, dict(self.shapes(bridge))
        bridges = scope.values.bridges(shapes.keys() & known.keys(), nulls)
        if not bridges and shapes and shapes.keys() <= known.keys():
            bridges = [tuple(shapes)]
        one, other = scope.underlying_column(value), scope.underlying_column(bridge)
        if one is not None and other is not None and one[0] == other[0]:
            bridges = [*bridges, (_SAME_COLUMN,)]
            shapes = {**shapes, _SAME_COLUMN: one[1]}
            known = {**known, _SAME_COLUMN: other[1]}
        if not bridges:
            return None
        unit = scope.granularity
        return {path: across(shapes, known, shape, bridges, unit) for path, shape in far.items()}

    def _reach(self) -> WindowReach:
        """The windows of the block, and what is known of its rows."""
        return WindowReach(
            self.block,
            self.root,
            self.shapes,
            lambda node: self.null_sources(OutputColumn("", node)),
            self.scope.against_all,
        )

    def groups_by_time(self) -> bool:
        """Whether GROUP BY has an expression that follows the time."""
        return any(self.group_keys(nulls) for nulls in self._partition_nulls())

    def _partition_nulls(self) -> list[NullSources]:
        """
        The NULL sources of the columns that could be the partition column.

        Rows with a NULL in it are in no cell, so they may be put together with any others. So a
        group key that is NULL in no other rows is good enough.
        """
        outputs = self.block.outputs or ()
        known = [out for out in outputs if self.scope.against_all(self.own_shapes(out))]
        return [frozenset(), *(self.null_sources(out) for out in known)]

    def group_keys(self, nulls: NullSources) -> list[exp.Expr]:
        """
        The expressions of GROUP BY that follow the time.

        They are NULL only where what is missing in ``nulls`` is: all these NULLs are one group, of
        rows of any time.
        """
        group = self.block.node.args.get("group")
        if group is None:
            return []
        items = (
            [item for item in self.block.node.expressions if not has_aggregate(item)]
            if group.args.get("all")
            else list(alike_by(keys_in_every_set(self.block, group)))
            if several_sets(group)
            else list(alike_by(group_items(self.block, group)))
        )
        keys_of_time = [node for node in items if self.scope.null_sources(node) <= nulls]
        return [node for node in keys_of_time if self.scope.against_all(self.scope.shapes(node))]

    def bounded_windows(self) -> Iterator[tuple[exp.Window, bool]]:
        """The windows of the block, and whether each looks at rows near in time alone."""
        offered = self._partition_nulls()
        for window in window_calls(self.block):
            yield window, any(self._reach().far(window, nulls) for nulls in offered)


def _open_outputs(
    block: Block, columns_of: Callable[[Relation], Collection[str]]
) -> Iterator[OutputColumn]:
    """
    The named outputs of a SELECT with a star over unknown columns.

    A star over a table passes on all its columns, one over a struct none that is known. The
    SELECT's own names come last, as they win.
    """
    for item in block.node.expressions:
        star = item if isinstance(item, exp.Star) else item.this
        if not isinstance(item, (exp.Star, exp.Column)) or not isinstance(star, exp.Star):
            continue
        skip = {name.name.lower() for name in star.args.get("except_") or ()}
        for entry in block.entries:
            if isinstance(item, exp.Star) or entry.alias == item.table.lower():
                for name in [one for one in columns_of(entry.relation) if one not in skip]:
                    yield OutputColumn(name, item, Origin(entry, name))
    for item in block.node.expressions:
        if isinstance(item, (exp.Alias, exp.Column)) and not isinstance(item.this, exp.Star):
            yield OutputColumn(item.alias_or_name, item.unalias())
