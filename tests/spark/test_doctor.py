"""What `infold doctor` tries with Spark."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from infold import api
from infold.api.doctor import examine
from infold.cli import cli
from infold.core.interval import SECOND
from infold.core.report import CheckVerdict
from infold.messages.errors import InfoldError
from infold.spark import probes

pytestmark = pytest.mark.spark


def test_a_target_that_works_and_one_that_does_not(tmp_path: Path) -> None:
    """A new project passes, with nothing left of what was tried; then its parts fail."""
    root = tmp_path / "shop"
    CliRunner().invoke(cli, ["init", str(root)])
    found = {check.name: check for check in examine(root)}

    assert {check.verdict for check in found.values()} == {CheckVerdict.OK}, found
    assert found["source raw.clicks"].found.endswith("2024-03-09.json was read")
    assert not list((root / "warehouse").rglob("*.parquet"))
    assert not api.ledger_of(api.open_project(root)).exists()

    project = api.open_project(root)
    spark = api.session(project)
    with pytest.raises(InfoldError, match="clocks cannot be used") as slow:
        probes.clocks(spark, lambda: api.now() - 60 * SECOND)
    # As far as is certain: less by what the question took.
    assert re.search(r"clock is (5\d\.\d|60\.0) s", str(slow.value))
    assert "within" in probes.clocks(spark, lambda: api.now() + SECOND)

    (root / "landing" / "clicks" / "2099-01-01.json").write_text("{\n")
    shutil.rmtree(root / "warehouse" / "shop")
    (root / "warehouse" / "shop").write_text("a file where the tables' folder would be")
    found = {check.name: check for check in examine(root)}

    assert found["catalog"].verdict is CheckVerdict.FAILED, found["catalog"]
    assert "cannot be used: " in found["source raw.clicks"].found
