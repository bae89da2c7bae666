"""
Asks the engine where the changed keys of lookups are, before steps are executed.

Only the rows themselves show which cells have rows of changed keys. So a plan that was made before
this search has all cells that may have some. A run searches, and plans again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from infold.core.plan import ChangedKeyRows, InputDiff, ModelObservation, Observations, Plan
from infold.core.ports import Engine
from infold.core.project import Node, Project

KeyQuestion = tuple[str, str, int, int, tuple[int, ...]]
"""A model, a lookup of it, which versions of that are compared, and those of all inputs."""


def unlocated_lookups(node: Node, model: ModelObservation) -> Iterator[InputDiff]:
    """The changed lookups of a model with keys that can be searched, and were not yet."""
    for diff in model.inputs:
        if diff.changes and diff.changed_keys is None and node.matches_of(diff.name):
            yield diff


@dataclass
class KeyLocations:
    """The answers of one run; each change of a lookup is searched once for each model."""

    project: Project
    answers: dict[KeyQuestion, ChangedKeyRows] = field(default_factory=dict)

    def unanswered(self, observed: Observations, plan: Plan) -> list[KeyQuestion]:
        """What must be searched before the steps of a plan can be executed."""
        found = []
        for step in plan.steps:
            node = self.project[step.model]
            if not step.expected:
                model = observed.models[step.model]
                found += [
                    _question(step.model, model, one) for one in unlocated_lookups(node, model)
                ]
        return [key for key in found if key not in self.answers]

    def locate(self, engine: Engine, sought: KeyQuestion) -> None:
        """Have the engine search."""
        self.answers[sought] = engine.find_changed_keys(*sought[:4])

    def add_to(self, observed: Observations) -> Observations:
        """The observations with the answers so far."""
        models = {
            name: self._model_with_answers(name, model) for name, model in observed.models.items()
        }
        return replace(observed, models=models) if self.answers else observed

    def _model_with_answers(self, name: str, model: ModelObservation) -> ModelObservation:
        inputs = tuple(
            replace(
                diff,
                changed_keys=self.answers.get(_question(name, model, diff), diff.changed_keys),
            )
            for diff in model.inputs
        )
        return replace(model, inputs=inputs)


def _question(name: str, model: ModelObservation, diff: InputDiff) -> KeyQuestion:
    return (
        name,
        diff.name,
        diff.read_version,
        diff.newest_version,
        tuple(one.newest_version for one in model.inputs),
    )
