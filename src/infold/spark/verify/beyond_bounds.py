"""
Declared bounds, judged: the cells that rows beyond them would change, and bounds that are enough.

What is enough is found by trying: one side alone, then lengths that double, then the middle between
the last that was too short and the first that was not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from pyspark.sql import DataFrame

from infold.core.interval import (
    DAY,
    HOUR,
    Granularity,
    Interval,
    Ranges,
    show_duration,
    show_instant,
)
from infold.core.plan import Step
from infold.core.project import CELLS_TOGETHER, Bound, Node
from infold.inspecting.show import row_key
from infold.spark.content import time_predicate
from infold.spark.step_context import Work
from infold.spark.time_range import recompute
from infold.spark.verify.compare import Comparison, compare

_MOST_ROUNDS = 3
"""How often what is enough for some cells is tried on all of them, before nothing is proposed."""


@dataclass(frozen=True, slots=True)
class BeyondBounds:
    """Cells that differ beyond declared bounds, and what to do about them."""

    comparison: Comparison
    advice: str

    @property
    def note(self) -> str:
        """The first cell that differs, how many more do, and the advice, in one line."""
        first, *more = (cell for cell, _, _ in self.comparison.differing)
        cells = f"{show_instant(first.start)}{f' and {len(more)} more' if more else ''}"
        return f"beyond its declared bounds it differs in {cells}: {self.advice}"


def differing_beyond_bounds(
    work: Work, node: Node, step: Step, time: str | None, bounded: DataFrame, cells: Ranges
) -> BeyondBounds | None:
    """
    How a model's ``cells`` differ if they are computed from rows beyond their declared bounds.

    ``bounded`` are its rows as computed within them, ``time`` its partition column; ``step`` builds
    the whole model.
    """
    if not node.bounds_declared or time is None:
        return None
    judge = _BoundsJudge(work, node, step, time)
    comparison = compare(
        bounded,
        judge.whole(cells),
        time,
        node.model.granularity,
        row_key(node),
        left_out=node.undetermined,
    )
    if not comparison.differing:
        return None
    return BeyondBounds(comparison, judge.advice([cell for cell, _, _ in comparison.differing]))


@dataclass(frozen=True)
class _BoundsJudge:
    work: Work
    node: Node
    step: Step
    time: str

    def advice(self, cells: Sequence[Interval]) -> str:
        """What bounds would do for these cells, which differ; else what to do without."""
        span = self._span_of_rows()
        bounds = None if self.work.earlier else self._enough(cells, span)
        if bounds is None:
            return "no bound was found that is enough: build it whole (remove `incremental`)"
        text = ", ".join(f"{name}: {{{_bound_text(bound)}}}" for name, bound in bounds.items())
        declared = self._declared_bounds()
        if all(
            _reaches_all(cell, declared[name], bound, span)
            for cell in cells
            for name, bound in bounds.items()
            if bound != declared[name]
        ):
            return (
                f"{text} reaches all of its present rows, and nothing shorter is enough: build it "
                "whole (remove `incremental`)"
            )
        return f"{text} is enough for its present rows"

    def _enough(self, cells: Sequence[Interval], span: Interval) -> Mapping[str, Bound] | None:
        """Bounds with which none of the cells differs, each input's as short as may be."""
        left = list(cells)
        for _ in range(_MOST_ROUNDS):
            sample = Ranges.of(left[:: -(-len(left) // CELLS_TOGETHER)])
            whole_rows = self.whole(sample).localCheckpoint()
            bounds = least_bounds(
                self._declared_bounds(),
                Bound(span.end - span.start, span.end - span.start),
                HOUR if self.node.model.granularity is Granularity.HOUR else DAY,
                partial(self._is_enough, whole_rows, sample),
            )
            if bounds is None or len(left) <= CELLS_TOGETHER:
                return bounds
            all_cells = Ranges.of(cells)
            left = self._differing_cells(self.whole(all_cells), bounds, all_cells)
            if not left:
                return bounds
        return None

    def _is_enough(self, whole: DataFrame, cells: Ranges, bounds: Mapping[str, Bound]) -> bool:
        return not self._differing_cells(whole, bounds, cells)

    def _differing_cells(
        self, whole: DataFrame, bounds: Mapping[str, Bound], cells: Ranges
    ) -> list[Interval]:
        """The cells that differ from the query over all rows even with other bounds."""
        node = replace(
            self.node,
            inputs=tuple(
                replace(entry, bounds=(bounds[entry.name],)) if entry.name in bounds else entry
                for entry in self.node.inputs
            ),
            references=tuple(replace(reference, bound=None) for reference in self.node.references),
        )
        bounded = recompute.definition(self.work, node, replace(self.step, cells=cells))
        granularity = self.node.model.granularity
        comparison = compare(
            bounded, whole, self.time, granularity, left_out=self.node.undetermined
        )
        return [cell for cell, _, _ in comparison.differing]

    def whole(self, cells: Ranges) -> DataFrame:
        """The rows of cells as the query gives them over all rows."""
        rows = recompute.definition(self.work, self.node, self.step, narrow=False)
        if cells == Ranges.ever():
            return rows
        return rows.where(time_predicate(rows, self.time, cells, exact=True))

    def _declared_bounds(self) -> Mapping[str, Bound]:
        return {entry.name: entry.bound for entry in self.node.inputs if entry.time_column}

    def _span_of_rows(self) -> Interval:
        """The times of all rows, the model's and those that it reads."""
        names = [self.node.name, *(entry.name for entry in self.node.inputs if entry.time_column)]
        filled = Ranges.of(s.cell for name in names for s in self.work.cells(name) if s.rows)
        return filled.span or Interval(0, 0)


def least_bounds(
    declared: Mapping[str, Bound],
    far: Bound,
    unit: int,
    is_enough: Callable[[Mapping[str, Bound]], bool],
) -> Mapping[str, Bound] | None:
    """
    Bounds of whole units that are enough, on no side longer than needed; None if even ``far`` is
    not.

    Those of several inputs grow together, and then each is left as it was where it can be.
    """

    def at_least(before: int, after: int) -> Mapping[str, Bound]:
        return {name: bound.widest(Bound(before, after)) for name, bound in declared.items()}

    if not is_enough(at_least(far.before, far.after)):
        return None
    if is_enough(at_least(far.before, 0)):
        bounds = at_least(
            _least(far.before, unit, lambda length: is_enough(at_least(length, 0))), 0
        )
    elif is_enough(at_least(0, far.after)):
        bounds = at_least(0, _least(far.after, unit, lambda length: is_enough(at_least(0, length))))
    else:
        before = _least(far.before, unit, lambda length: is_enough(at_least(length, far.after)))
        after = _least(far.after, unit, lambda length: is_enough(at_least(before, length)))
        bounds = at_least(before, after)
    for name, bound in declared.items() if len(declared) > 1 else ():
        if bounds[name] != bound and is_enough({**bounds, name: bound}):
            bounds = {**bounds, name: bound}
    return bounds


def _least(far: int, unit: int, is_enough: Callable[[int], bool]) -> int:
    """The least number of units that is enough, where ``far`` is and more is never less."""
    long = 1
    while long * unit < far and not is_enough(long * unit):
        long *= 2
    short = long // 2
    while long - short > 1:
        middle = (long + short) // 2
        if middle * unit >= far or is_enough(middle * unit):
            long = middle
        else:
            short = middle
    return min(long * unit, far)


def _reaches_all(cell: Interval, declared: Bound, bound: Bound, span: Interval) -> bool:
    """Whether a cell reads all rows there are on a side on which more is read than declared."""
    before = bound.before > declared.before and cell.start - bound.before <= span.start
    return before or (bound.after > declared.after and cell.end + bound.after >= span.end)


def _bound_text(bound: Bound) -> str:
    sides = {"before": bound.before, "after": bound.after}
    return ", ".join(f"{side}: {show_duration(length)}" for side, length in sides.items() if length)
