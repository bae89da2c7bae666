"""
What a query may say, by rules.

A rule is a function that yields one error for each place that breaks it, and has a file of accepted
and refused queries beside the tests. List a new one here, or in ``combining`` if it is on what
brings rows together.
"""

from __future__ import annotations

from collections.abc import Mapping

from infold.analysis.rules import (
    clock,
    combining,
    events,
    order_dependent,
    outputs,
    partition,
    random,
    recursion,
    ties,
)
from infold.analysis.rules.combining import COMBINING, Rule

RULES: Mapping[str, Rule] = {
    "outputs": outputs.check,
    "time_columns": outputs.check_time_columns,
    "event_times": events.check_event_times,
    "events": events.check,
    "by_key": combining.check_by_key,
    "clock": clock.check,
    "random": random.check,
    "collations": random.check_collations,
    "order_dependent": order_dependent.check,
    "ties": ties.check,
    "limits": ties.check_limits,
    "partition": partition.check,
    **COMBINING,
    "recursion": recursion.check,
}
"""By name, in the order in which their findings are shown."""
