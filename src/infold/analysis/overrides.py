"""
What a model's author vouches for: safety overrides and declared bounds.

An override turns off one refusal: the author means that each cell is computed by itself. Declared
bounds replace those that cannot be derived, for every input with a time column. ``verify`` compares
such models like all others, but for columns that ``compile`` finds undetermined.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from infold.analysis.bounds.known_columns import InputBound
from infold.analysis.names.subject import Subject, time_column
from infold.core.model import Kind, Override
from infold.core.project import Bound
from infold.messages import findings
from infold.messages.errors import InfoldError, Spot

BY_SLUG = {
    "window-over-cells": Override.WINDOW_FUNCTIONS,
    "limit-over-cells": Override.LIMIT,
    "limit-without-order": Override.LIMIT,
    "subquery-over-cells": Override.SUBQUERIES,
    "clock": Override.NONDETERMINISTIC,
    "not-deterministic": Override.NONDETERMINISTIC,
    "order-dependent": Override.NONDETERMINISTIC,
    "order-not-total": Override.NONDETERMINISTIC,
    "distinct-over-cells": Override.DISTINCT,
    "set-operation-over-cells": Override.DISTINCT,
}
"""The override that lets a refusal pass."""

REACH = frozenset(
    {
        "partition-not-proven",
        "group-over-cells",
        "distinct-over-cells",
        "window-over-cells",
        "join-over-cells",
        "set-operation-over-cells",
        "subquery-over-cells",
    }
)
"""Refusals of queries without a provable bound."""


@dataclass(frozen=True, slots=True)
class RemainingFindings:
    """What is left of the findings, and what let the others pass."""

    errors: tuple[InfoldError, ...]
    overrides_used: tuple[Override, ...] = ()
    declared_bounds: tuple[InputBound, ...] = ()
    """Declared bounds, where an override or the want of a proven bound gives them a meaning."""
    uses_declared_bounds: bool = False
    """Whether declared bounds replace proven ones: each cell is made from them alone."""
    undetermined: tuple[InfoldError, ...] = ()
    """What ``allow_nondeterministic`` let pass."""
    of_views: bool = False
    """Whether it let pass what is in views, too."""


def apply_overrides(subject: Subject, errors: Sequence[InfoldError]) -> RemainingFindings:
    """The findings that overrides and declared bounds do not answer."""
    incremental = subject.model.incremental
    if subject.model.kind is Kind.TABLE:
        return _allowed_for_whole_table(subject, errors)
    if incremental is None or not subject.model.kind.is_by_cell:
        return RemainingFindings(tuple(errors))
    inputs = list(timed_inputs(subject))
    called = {name.lower(): name for name in inputs}
    wrong = [
        findings.bound_of_no_input(
            subject.draft.place(f"incremental.bounds.{bound.input}"), bound.input, inputs
        )
        for bound in incremental.bounds
        if bound.input.lower() not in called
    ]
    if wrong:
        return RemainingFindings((*errors, *wrong))
    declared = tuple(
        InputBound(called[bound.input.lower()], Bound(bound.before, bound.after), None)
        for bound in incremental.bounds
    )
    complete = bool(inputs) and {bound.name for bound in declared} == set(inputs)
    left, used, bounded = [], set(), False
    for error in errors:
        override = BY_SLUG.get(error.slug)
        if override in incremental.overrides and override is not None:
            used.add(override)
        elif complete and error.slug in REACH:
            bounded = True
        else:
            left.append(error)
    return RemainingFindings(
        tuple(left),
        tuple(sorted(used)),
        declared if used or bounded else (),
        bounded,
        tuple(one for one in errors if BY_SLUG.get(one.slug) is Override.NONDETERMINISTIC),
    )


def _allowed_for_whole_table(subject: Subject, errors: Sequence[InfoldError]) -> RemainingFindings:
    """Of a table that is built whole, what its author vouches for is that any result will do."""
    chance = Override.NONDETERMINISTIC
    if chance not in subject.model.overrides:
        return RemainingFindings(tuple(errors))
    left = tuple(error for error in errors if BY_SLUG.get(error.slug) is not chance)
    passed = tuple(error for error in errors if error not in left)
    return RemainingFindings(left, (chance,) if passed else (), undetermined=passed)


def offer_overrides(
    subject: Subject, errors: Sequence[InfoldError], windows_of_rows: Collection[Spot]
) -> None:
    """
    Name what lets each refusal pass: declared bounds, or the override of its construct.

    Where one is of a window that counts rows (``windows_of_rows``) no bounds are offered: rows have
    gaps, so that no length of time is sure to hold them.
    """
    is_whole = subject.model.kind is Kind.TABLE
    if not is_whole and not subject.model.kind.is_by_cell:
        return
    counted = any(error.at in windows_of_rows for error in errors)
    inputs = [] if is_whole or counted else list(timed_inputs(subject))
    for error in errors:
        facts = []
        if error.slug in REACH and inputs:
            each = ", ".join(f"{name}: {{before: …}}" for name in inputs)
            facts.append(("or declare", f"incremental: {{bounds: {{{each}}}}}{_HOW_TO_DECLARE}"))
        override = BY_SLUG.get(error.slug)
        if override is Override.NONDETERMINISTIC or (override is not None and not is_whole):
            facts.append(("or vouch", key_of_override(override, whole=is_whole)))
        error.facts = (*error.facts, *facts)


def key_of_override(override: Override, *, whole: bool) -> str:
    """What says so in a model's front matter; ``whole``: in that of a table built whole."""
    enabled = "enabled: false, " if whole else ""
    return f"incremental: {{{enabled}safety_overrides: {{{override}: true}}}}"


_HOW_TO_DECLARE = ", how far around its cell each is read (before, after)"


def timed_inputs(subject: Subject) -> Iterable[str]:
    """The stored inputs with a time column that a model reads, views seen through."""
    names: dict[str, None] = {}
    for name in subject.tables_read:
        node = subject.nodes.get(name)
        if node is None:
            continue
        if node.model.kind.is_view:
            names.update((entry.name, None) for entry in node.inputs if entry.time_column)
        elif time_column(node) is not None:
            names[node.name] = None
    return names
