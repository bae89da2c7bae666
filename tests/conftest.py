"""What all tests share: how many examples Hypothesis draws, and the count of random steps."""

from __future__ import annotations

import os
import sys
from typing import Any

from hypothesis import HealthCheck, settings

# Quick tests share the machine with everything else, so no deadline: a slow moment is no failure.
settings.register_profile("quick", max_examples=50, deadline=None)
settings.register_profile(
    "soak", max_examples=2_000, deadline=None, suppress_health_check=list(HealthCheck)
)
settings.load_profile(os.environ.get("INFOLD_HYPOTHESIS", "quick"))


def pytest_addoption(parser: Any) -> None:
    """``--rewrite``: write expected screens anew; the diff is then read by a person."""
    parser.addoption("--rewrite", action="store_true", help="write expected screens anew")


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say how many random steps were made, when any were."""
    play = sys.modules.get("tests.arrivals.play")
    if play is not None and play.TALLY.runs:
        terminalreporter.write_line(f"arrivals: {play.TALLY}")
    if play is not None and play.DRY.runs:
        terminalreporter.write_line(f"arrivals without Spark: {play.DRY}")
