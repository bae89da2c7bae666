"""The files that are tried first, as they were measured."""

from __future__ import annotations

from pathlib import Path

from tests.times import LONGEST, read_longest

TESTS = Path(__file__).parent


def test_the_longest_files_exist() -> None:
    """The files that are tried first are there, so that a renamed one is written down again."""
    assert [file for file in read_longest() if not (TESTS / file).is_file()] == []
    assert LONGEST.is_file()
