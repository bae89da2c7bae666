"""
Which definitions Spark's analyser checks before the first step of a run, each once.

Definitions that tables were built by already are not checked again, so a daily run checks nothing.
Readers of a model with a new definition are: that model may have other columns now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from infold.core.model import Kind
from infold.core.plan import Observations, Plan
from infold.core.ports import Engine
from infold.core.project import Project
from infold.messages.errors import InfoldError


@dataclass
class DefinitionsToAnalyse:
    """The definitions that one run has checked, so that none is checked twice."""

    project: Project
    analysed: set[str] = field(default_factory=set)

    def not_analysed(self, observed: Observations, plan: Plan) -> frozenset[str]:
        """The models of a plan that nothing was built from as they are defined now."""
        planned = {step.model for step in plan.steps} - self.analysed
        changed = {name for name in planned if self._definition_changed(observed, name)}
        return frozenset(changed | (planned & self.project.downstream(changed)))

    def _definition_changed(self, observed: Observations, name: str) -> bool:
        trace = observed.models[name].trace
        return trace is None or trace.fingerprint != self.project[name].fingerprint

    def analyse(self, engine: Engine, models: Collection[str]) -> Mapping[str, InfoldError]:
        """The errors in the definitions of some models, or of views that they read."""
        above = self.project.upstream(models)
        views = {name for name in above if self.project[name].model.kind is Kind.VIEW}
        new = (views | set(models)) - self.analysed
        self.analysed.update(new)
        return engine.analyse(sorted(new))
