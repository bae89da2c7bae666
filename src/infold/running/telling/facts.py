"""What a hook tells of a run: a few plain values, the same in each form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from infold.core.hooks import PLACE, Fact
from infold.running.telling.listener import RunEnd

Facts = Mapping[Fact, str | int | float]


def facts_of(end: RunEnd) -> Facts:
    """The facts of a run that ended."""
    result, project = end.result, end.start.project
    return {
        Fact.PROJECT: project.name,
        Fact.TARGET: project.target.name,
        Fact.COMMAND: end.start.command,
        Fact.RUN: result.run if result else "",
        Fact.STATE: end.state,
        Fact.ERROR: end.why,
        Fact.MODELS: ", ".join(failure.model for failure in end.failures if failure.model),
        Fact.STEPS: len(result.steps) if result else 0,
        Fact.ROWS_READ: result.receipt.read if result else 0,
        Fact.ROWS_WRITTEN: result.receipt.written if result else 0,
        Fact.SECONDS: round(end.seconds, 3),
    }


def filled(template: Any, facts: Facts, secret: Callable[[str], str]) -> Any:
    """
    A template with facts in the places of its texts; of a mapping or list, all texts in it.

    ``secret`` resolves references of the template; what looks like one in a fact stays.
    """
    if isinstance(template, Mapping):
        return {key: filled(value, facts, secret) for key, value in template.items()}
    if isinstance(template, list):
        return [filled(value, facts, secret) for value in template]
    if not isinstance(template, str):
        return template
    parts = PLACE.split(template)
    return "".join(
        str(facts[Fact(part)]) if at % 2 else secret(part) for at, part in enumerate(parts)
    )
