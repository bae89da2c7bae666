"""
Which tables are built again although their new rows follow from the stored ones by definition.

Only the engine knows the types of values. If it finds that a derived value might differ from one
that is built, the plan is made again without that derivation.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from infold.core.plan import FROM_STORED_ROWS, PlanOptions, Step
from infold.core.ports import Engine


@dataclass
class ExactDerivations:
    """The derivations that one run has checked, so that none is checked twice."""

    _checked: set[str] = field(default_factory=set)
    _refused: set[str] = field(default_factory=set)

    def limit(self, asked: PlanOptions) -> PlanOptions:
        """What was asked for, without derivations that are not exact."""
        return replace(asked, not_derived=frozenset(self._refused))

    def unchecked(self, steps: Iterable[Step]) -> list[Step]:
        """
        The derivations among some steps that were not checked yet.

        An expected one is checked once its inputs are built: they may have other types then.
        """
        derive = (s for s in steps if s.action in FROM_STORED_ROWS and not s.expected)
        return [step for step in derive if step.model not in self._checked]

    def refuse(self, engine: Engine, steps: Iterable[Step]) -> bool:
        """Check some derivations; whether one of them is not exact."""
        inexact = set()
        for step in steps:
            self._checked.add(step.model)
            if not engine.derives_exactly(step):
                inexact.add(step.model)
        self._refused |= inexact
        return bool(inexact)
