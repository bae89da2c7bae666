"""How far the windows of one SELECT look: by what they are partitioned by, or by their frame."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp

from infold.analysis.bounds.lag_lead import of_the_order, shift_reach
from infold.analysis.bounds.transitive import NullSources, Shapes
from infold.analysis.names.relation import Block, Relation
from infold.analysis.names.select_parts import alike_by, named_windows, partitioned_by
from infold.analysis.times.window_frames import Reach, frame_reach


@dataclass(frozen=True, slots=True)
class WindowReach:
    """
    The windows of ``block``, which is somewhere in the query ``root``.

    ``shapes`` and ``nulls_of`` give what is known of an expression over the block's rows;
    ``against_all`` says whether that is against every input.
    """

    block: Block
    root: Relation
    shapes: Callable[[exp.Expr], Shapes]
    nulls_of: Callable[[exp.Expr], NullSources]
    against_all: Callable[[Shapes], bool]

    def key(self, window: exp.Window, nulls: NullSources) -> exp.Expr | None:
        """
        An expression of PARTITION BY that follows the time.

        It is NULL only where what is missing in ``nulls`` is.
        """
        for item in alike_by(partitioned_by(window, named_windows(self.block))):
            shapes = self.shapes(item)
            if self.against_all(shapes) and self.nulls_of(item) <= nulls:
                return item
        return None

    def far(self, window: exp.Window, nulls: NullSources) -> tuple[exp.Expr, Shapes] | None:
        """
        How far the rows are that a window looks at; None when there is no bound.

        A value of the row itself, and its shapes against the rows that are looked at: those of the
        same partition, or within a RANGE frame.
        """
        key = self.key(window, nulls)
        if key is not None:
            return key, self.shapes(key)
        found = self._reach(window, nulls)
        if found is None:
            return None
        shapes = self.shapes(found.order)
        if not self.against_all(shapes):
            return None
        near = {at: shape.of_rows_within(found.before, found.after) for at, shape in shapes.items()}
        return found.order, near

    def _reach(self, window: exp.Window, nulls: NullSources) -> Reach | None:
        """
        How far from its own row a window looks, by the column it is ordered by.

        The rows without a value to be ordered by are in one frame, so there may be none but where
        what is missing in ``nulls`` is.
        """
        named = named_windows(self.block)
        found = frame_reach(window, named)
        if found is not None and not self.nulls_of(found.order) <= nulls:
            return None
        if found is not None:
            return found
        found = shift_reach(window, self.block, self.root, named)
        if found is None or of_the_order(window, found.order) or not self.nulls_of(found.order):
            return found
        return None  # the row before one may be without a time, and then it is of any time
