"""On the page of refused models, the first of each pair is
refused as shown, and the second is accepted.

``pytest tests/docs --rewrite`` writes the messages into the page.
"""

from __future__ import annotations

import json
import re
import textwrap
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, write_project

from infold.cli import cli

pytestmark = pytest.mark.deep

PAGE = DOCS / "refused.md"
PAIR = re.compile(
    r"(?:^## ([a-z-]+)\n\n)?^[A-Z].*?\n\n```sql\n(.*?)^```\n\n"
    r"```text\n(.*?)^```\n\n.*?```sql\n(.*?)^```",
    re.MULTILINE | re.DOTALL,
)


@cache
def pairs() -> list[tuple[str, str, str, str]]:
    """Each pair: the slug, the model that is refused, the message, the model that is accepted."""
    text, slug, found = PAGE.read_text(encoding="utf-8").partition("\n## ")[1:], "", []
    for title, *parts in PAIR.findall("".join(text)):
        slug = title or slug
        found.append((slug, parts[0], parts[1], parts[2]))
    return found


def checked(folder: Path, models: list[str], *words: str) -> str:
    """What ``check`` prints about the cookbook's project and these models."""
    write_project(DOCS / "cookbook.md", folder)
    for number, model in enumerate(models):
        (folder / "models" / f"example_{number:02}.sql").write_text(model, encoding="utf-8")
    return CliRunner().invoke(cli, ["-C", str(folder), "check", *words]).output


def test_the_page_has_pairs() -> None:
    """The page has as many pairs as blocks of messages."""
    assert len(pairs()) == PAGE.read_text(encoding="utf-8").count("```text") > 10


def test_the_second_of_each_pair_is_accepted(tmp_path: Path) -> None:
    """The second of each pair is accepted, all of them in one project."""
    assert "no findings" in checked(tmp_path, [after for *_, after in pairs()])


def test_the_first_of_each_pair_is_refused_as_shown(
    tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    """The first of each pair is refused with its section's slug and the message on the page."""
    said = json.loads(checked(tmp_path, [before for _, before, *_ in pairs()], "--json"))
    page = PAGE.read_text(encoding="utf-8")
    found: dict[tuple[str, str], Any] = {}
    for error in said["error"]["errors"]:
        found.setdefault((error["file"], error["slug"]), error)
    for number, (slug, before, shown, _) in enumerate(pairs()):
        error = found[f"models/example_{number:02}.sql", slug]
        what = f"{slug}: {error['what'].replace(f'example_{number:02}', 'this model')}"
        message = "\n\n".join(textwrap.fill(part, 98) for part in (what, error["todo"])) + "\n"
        if request.config.getoption("--rewrite"):
            block = f"{before}```\n\n```text\n"
            page = page.replace(block + shown, block + message)
        else:
            assert shown == message
    if request.config.getoption("--rewrite"):
        PAGE.write_text(page, encoding="utf-8")
