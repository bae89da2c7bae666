"""
What a query may say, one rule in each file.

A rule has a function ``check`` that yields one error for each place that breaks it, and a file of
accepted and refused queries beside the tests. List a new rule here, or in ``combining`` if it is on
what brings rows together.
"""

from __future__ import annotations

from types import ModuleType

from infold.analysis.rules import (
    by_key,
    clock,
    collations,
    event_times,
    events,
    limits,
    order_dependent,
    outputs,
    partition,
    random,
    recursion,
    ties,
    time_columns,
)
from infold.analysis.rules.combining import COMBINING

RULES: tuple[ModuleType, ...] = (
    outputs,
    time_columns,
    event_times,
    events,
    by_key,
    clock,
    random,
    collations,
    order_dependent,
    ties,
    limits,
    partition,
    *COMBINING,
    recursion,
)
"""In the order in which their findings are shown."""
