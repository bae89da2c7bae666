"""
Which tables are built again although their new rows follow from the stored ones by definition.

Only the engine knows the types of values. If it finds that a derived value might differ from one
that is built, the plan is made again without that derivation.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from infold.core.plan import Action, Plan, PlanOptions, Step
from infold.core.ports import Engine
from infold.messages import apply_errors
from infold.messages.errors import InfoldError

_OF_TYPES = (Action.DERIVE, Action.REFOLD)
"""The actions that are exact only if values have the types of those that are stored."""


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
        derive = (s for s in steps if s.action in _OF_TYPES and not s.expected)
        return [step for step in derive if step.model not in self._checked]

    def refuse(self, engine: Engine, steps: Iterable[Step]) -> frozenset[str]:
        """Check some derivations; the models of those that are not exact."""
        inexact = set()
        for step in steps:
            self._checked.add(step.model)
            if not engine.derives_exactly(step):
                inexact.add(step.model)
        self._refused |= inexact
        return frozenset(inexact)


def not_forward_only(now: Plan, models: Iterable[str]) -> Mapping[str, InfoldError]:
    """
    Those of some models that were to be changed forward-only, each with the refusal.

    A column that is there in all cells would have another type from some cell on.
    """
    why = "a column that it keeps would be of another type"
    since = {step.model for step in now.steps if step.trace is not None and step.trace.earlier}
    return {
        model: apply_errors.not_forward_only(model=model, why=why)
        for model in models
        if model in since
    }
