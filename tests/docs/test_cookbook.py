"""The recipes of the cookbook are accepted."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, write_project

from infold.cli import cli

PAGE = DOCS / "cookbook.md"


@pytest.mark.deep
def test_check_accepts_every_recipe(tmp_path: Path) -> None:
    """As one project, with nothing to note about any of them."""
    done = CliRunner().invoke(cli, ["-C", str(write_project(PAGE, tmp_path)), "check"])

    assert (done.exit_code, "no findings" in done.output) == (0, True), done.output
