"""The project that most tests of runs begin with."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.standing_tables import stand_up

from infold.core.project import Project


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Three tables, each built once by a run, and a ledger that knows them."""
    return stand_up(tmp_path / "shop")
