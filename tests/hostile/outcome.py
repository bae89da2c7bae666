"""The allowed outcomes of hostile input: a right answer, rows set aside, or a named error.

Never a traceback, an error named ``internal`` (a mistake in infold), a hang or a silent loss.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from click.testing import CliRunner

from infold.cli import cli
from infold.messages.errors import InfoldError

ERRORS = Path(__file__).parents[2] / "docs" / "errors"
USAGE = 2
CODES = {0, 1, 2, 3, 4}


@cache
def slugs() -> frozenset[str]:
    """Errors that have a page, but for the one that says that infold is wrong."""
    pages = "".join(page.read_text(encoding="utf-8") for page in ERRORS.glob("*.md"))
    return frozenset(re.findall(r"^## ([a-z0-9-]+)$", pages, re.MULTILINE)) - {"internal"}


def judged(test: str, found: Mapping[str, str]) -> None:
    """Nothing is wrong with any case."""
    wrong = [f"{test} {name}: {what}" for name, what in found.items() if what]

    assert not wrong, "\n".join(wrong)


def error_fault(error: InfoldError) -> str:
    """What is wrong with an error: empty if it has a page, words and a record."""
    if error.slug not in slugs():
        return f"no page for it: {error}"
    json.dumps(error.record)
    return "" if error.exit_code in CODES - {0} and str(error).startswith(error.slug) else "no name"


def command(folder: Path, *words: str) -> str:
    """What is wrong with how a command ended, run in this process: nothing, if it ended well."""
    result = CliRunner().invoke(cli, ["-C", str(folder), *words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        return f"an exception: {result.exception!r}"
    return ended(result.exit_code, result.stdout, result.stderr)


def ended(code: int, out: str, err: str) -> str:
    """What is wrong with an exit code and what was printed."""
    if "Traceback" in out + err:
        return f"a traceback: {err[-300:]}"
    if code not in CODES:
        return f"exit code {code}: {err[-300:]}"
    if code in (0, 4):
        return ""
    text = err.lstrip()
    named = re.findall(r"^(?:[a-z]+: )?([a-z0-9-]+): ", text, re.MULTILINE)
    named += re.findall(r'"slug": "([a-z0-9-]+)"', out)
    if "internal" in named:
        return f"internal: {text[:300]}"
    if slugs() & set(named) or (code == USAGE and text.startswith(("Error: ", "Usage: "))):
        return ""
    return f"no named error: {text[:300]!r}"
