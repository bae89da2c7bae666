"""
What a query may say, by rules.

A rule is a function that yields one error for each place that breaks it, and has a file of accepted
and refused queries beside the tests. List a new one here, or in ``combining`` if it is on what
brings rows together.
"""

from __future__ import annotations

from collections.abc import Mapping

from infold.analysis.rules import (
    by_key,
    clock,
    collations,
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
from infold.analysis.rules.combining import COMBINING, Rule

RULES: Mapping[str, Rule] = {
    "outputs": outputs.check,
    "time_columns": time_columns.check,
    "event_times": events.check_event_times,
    "events": events.check,
    "by_key": by_key.check,
    "clock": clock.check,
    "random": random.check,
    "collations": collations.check,
    "order_dependent": order_dependent.check,
    "ties": ties.check,
    "limits": limits.check,
    "partition": partition.check,
    **COMBINING,
    "recursion": recursion.check,
}
"""By name, in the order in which their findings are shown."""
