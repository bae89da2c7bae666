"""What a run would take from stored tables: refused before it writes anything, or noted."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from infold.core.definition import Redefinition
from infold.core.model import table_name
from infold.core.plan import Destroyed, Plan, PlanOptions
from infold.core.ports import Engine, Lake
from infold.core.project import Project
from infold.core.target import Apply
from infold.core.type_changes import Type
from infold.planning.destructive import (
    destroyed,
    loss_notes,
    lost_types,
    policy,
    refuse_destructive,
)


@dataclass
class DestructiveChanges:
    """
    The changes of one run that destroy something; all of them are refused together.

    ``changes`` gives all definitions that changed since they were applied, removed models too.
    """

    project: Project
    lake: Lake
    changes: Callable[[], Sequence[Redefinition]] = tuple

    @cached_property
    def _changes(self) -> Sequence[Redefinition]:
        """Those that there were when the run began: it applies them."""
        return self.changes()

    @property
    def are_declared(self) -> bool:
        """Whether a changed definition destroys something, so that a plan has to be looked at."""
        return any(change.destroys for change in self._changes)

    def refuse(self, plan: Plan, asked: PlanOptions) -> tuple[str, ...]:
        """Raise what a plan may not destroy; what is said of the rest."""
        found = destroyed(self.project, plan, self._changes, self._stored, asked)
        refuse_destructive(self.project, found)
        return tuple(loss_notes(found))

    def refuse_types(
        self, engine: Engine, models: Collection[str], asked: PlanOptions
    ) -> tuple[str, ...]:
        """
        Raise where stored columns would lose values of their types, as only the engine can tell.

        What was applied was permitted: a run that goes on with it does not ask again.
        """
        if self.project.target.apply is Apply.MANUAL and not self.project.applies:
            return ()
        stored = {name: columns for name in sorted(models) if (columns := self._stored(name))}
        if not stored:
            return ()  # as in a first run: the engine analyses nothing for an answer without use
        found = [
            Destroyed(model, losses, policy(self.project, model, asked))
            for name, types in engine.column_types(list(stored)).items()
            for model in (self._replaced(name),)
            if (losses := lost_types(self.project[name], stored[name], types))
        ]
        refuse_destructive(self.project, found)
        return tuple(loss_notes(found))

    def _stored(self, model: str) -> Mapping[str, Type]:
        return self.lake.columns(table_name(self._replaced(model)))

    def _replaced(self, model: str) -> str:
        """The model with the table that readers have, where one is built apart."""
        return self.project.apart.get(model, model)
