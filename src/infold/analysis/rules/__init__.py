"""
What a query may say, one rule in each file.

A rule has a function ``check`` that yields one error for each place that breaks it; each has a
file of accepted and refused queries beside the tests.
"""

from __future__ import annotations

from types import ModuleType

RULES: tuple[ModuleType, ...] = ()
"""In the order in which their findings are shown."""
