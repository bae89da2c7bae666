"""The annotated project has every key that the reference lists, and is accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, files_of, write_project

from infold.cli import cli

PAGE = DOCS / "annotated-project.md"
SECTIONS = {
    "Project keys": "infold.yml",
    "Source keys": "infold.yml",
    "Seed keys": "infold.yml",
    "Target keys": "infold.yml",
    "timeseries": "models/daily.sql",
    "incremental": "models/daily.sql",
}


@pytest.mark.parametrize("section", SECTIONS)
def test_every_key_of_the_reference_is_in_it(section: str) -> None:
    """The annotated project has every key that the reference lists."""
    reference = (DOCS / "reference" / "keys.md").read_text(encoding="utf-8")
    text = reference.partition(f"\n### {section}\n")[2].partition("\n##")[0]
    keys = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    shown = set(re.findall(r"(?:^|[\s{])(\w+):\s", files_of(PAGE)[SECTIONS[section]]))

    assert keys
    assert keys - shown == set()


def test_check_accepts_it(tmp_path: Path) -> None:
    """The annotated project, with its comments, passes `check`."""
    folder = write_project(PAGE, tmp_path)

    done = CliRunner().invoke(cli, ["-C", str(folder), "check"])

    assert (done.exit_code, "no findings" in done.output) == (0, True), done.output
