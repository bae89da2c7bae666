"""
What a query may say, one rule in each file.

A rule has a function ``check`` that yields one error for each place that breaks it; each has a
file of accepted and refused queries beside the tests.
"""

from __future__ import annotations

from types import ModuleType

from infold.analysis.rules import (
    by_key,
    clock,
    distinct,
    event_times,
    events,
    grouping,
    joins,
    limits,
    order_dependent,
    outputs,
    partition,
    random,
    recursion,
    set_operations,
    subqueries,
    ties,
    time_columns,
    windows,
)

RULES: tuple[ModuleType, ...] = (
    outputs,
    time_columns,
    event_times,
    events,
    by_key,
    clock,
    random,
    order_dependent,
    ties,
    limits,
    partition,
    grouping,
    distinct,
    windows,
    joins,
    set_operations,
    subqueries,
    recursion,
)
"""In the order in which their findings are shown."""
