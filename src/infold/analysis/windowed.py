"""How far the windows of one SELECT look: by what they are partitioned by, or by their frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.bridges import Gaps, Shapes
from infold.analysis.frames import Reach, guarded, near_outside, ordering, reach
from infold.analysis.links import FAR, links
from infold.analysis.relation import Block, From, Relation, Renamed, blocks
from infold.analysis.selects import named_windows, partitioned_by
from infold.analysis.shape import Span


@dataclass(frozen=True, slots=True)
class Windows:
    """
    The windows of ``block``, which stands somewhere in ``root``.

    ``shapes`` and ``gaps`` say what is known of an expression where the block's rows are, ``good``
    whether that is enough to tell cells apart, ``full`` whether it is against every input.
    """

    block: Block
    root: Relation
    shapes: Callable[[exp.Expr], Shapes]
    gaps: Callable[[exp.Expr], Gaps]
    good: Callable[[Shapes], bool]
    full: Callable[[Shapes], bool]

    def key(self, window: exp.Window, gaps: Gaps) -> exp.Expr | None:
        """
        An expression of PARTITION BY that follows the time.

        It is NULL only where what is missing in ``gaps`` is.
        """
        for item in partitioned_by(window, named_windows(self.block)):
            shapes = self.shapes(item)
            if self.good(shapes) and self.gaps(item) <= gaps:
                return item
        return None

    def far(self, window: exp.Window, gaps: Gaps) -> tuple[exp.Expr, Shapes] | None:
        """
        How far the rows are that a window looks at; None when there is no bound.

        A value of the row itself, and its shapes against the rows that are looked at: those of the
        same partition, or within a RANGE frame.
        """
        key = self.key(window, gaps)
        if key is not None:
            return key, self.shapes(key)
        found = self._reach(window, gaps)
        if found is None:
            return None
        shapes = self.shapes(found.order)
        if not self.full(shapes):
            return None
        near = {at: shape.near(found.before, found.after) for at, shape in shapes.items()}
        return found.order, near

    def _reach(self, window: exp.Window, gaps: Gaps) -> Reach | None:
        """
        How far from its own row a window looks, by the column it is ordered by.

        The rows without a value to be ordered by are in one frame, so there may be none but where
        what is missing in ``gaps`` is.
        """
        named = named_windows(self.block)
        found = reach(window, named)
        if found is not None and not self.gaps(found.order) <= gaps:
            return None
        return found or guarded(window, named) or self._kept_near(window)

    def _kept_near(self, window: exp.Window) -> Reach | None:
        """The reach of LAG or LEAD as a column, where every query around it keeps near rows."""
        block, named = self.block, named_windows(self.block)
        names = {id(out.node.unalias()): out.name.lower() for out in block.outputs or ()}
        column, order = names.get(id(window)), ordering(window, named)
        if column is None or order is None:
            return None
        by = {out.name.lower() for out in block.outputs or () if out.node.unalias() == order}
        spans = [
            _distance(around, entry, column, by)
            for around in blocks(self.root, views=True)
            if isinstance(around, Block)
            for entry in around.entries
            if _is(entry.relation, block)
        ]
        known = [span for span in spans if span is not None]
        if not known or len(known) < len(spans):
            return None
        widest = min(low for low, _ in known), max(high for _, high in known)
        return near_outside(window, named, widest)


def _is(relation: Relation, block: Block) -> bool:
    while isinstance(relation, Renamed):
        relation = relation.inner
    return relation is block


def _distance(block: Block, entry: From, column: str, by: set[str]) -> Span | None:
    """How far WHERE lets a column of an entry be from one of the columns ``by`` of it."""
    low, high = -FAR, FAR
    for link in links(block.node.args.get("where")):
        for one in (link, link.turned):
            sides = [
                block.origins.get(id(side)) if isinstance(side, exp.Column) else None
                for side in (one.left, one.right)
            ]
            if any(side is None or side.entry is not entry for side in sides):
                continue
            left, right = (side.column for side in sides if side is not None)
            if left == column and right in by:
                low, high = max(low, one.low), min(high, one.high)
    return (low, high) if (low, high) != (-FAR, FAR) else None
