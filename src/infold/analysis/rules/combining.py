"""
The rules on what brings rows together: groups, windows, joins and the like.

Where one of them has a finding, the rows are of several cells already. The rule on the partition
column has none of its own then, as it would blame an expression for what the other rule names.
"""

from __future__ import annotations

from types import ModuleType

from infold.analysis.rules import (
    distinct,
    grouping,
    joins,
    set_operations,
    subqueries,
    windows,
)

COMBINING: tuple[ModuleType, ...] = (
    grouping,
    distinct,
    windows,
    joins,
    set_operations,
    subqueries,
)
"""In the order in which their findings are shown."""
