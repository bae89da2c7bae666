"""What is known of a file that was ingested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infold.core.files import (
    IngestedFile,
    ListedFile,
    is_as_listed,
    set_aside_whole,
    with_file_policy,
    written_at,
)

ASIDE = IngestedFile(1, "a.csv", 10, "10:5|policy", horizon=0, set_aside=3)


@pytest.mark.parametrize(
    ("file", "whole"),
    [
        (ASIDE, True),
        (replace(ASIDE, rows=1), False),
        (replace(ASIDE, waiting=1), False),
        (replace(ASIDE, set_aside=0), False),
        (replace(ASIDE, fingerprint="10:5"), False),
    ],
    ids=["aside", "some taken in", "some waiting", "empty", "without a policy"],
)
def test_files_that_may_have_been_set_aside_as_a_whole(file: IngestedFile, whole: bool) -> None:
    """Under a policy all that a file has is set aside, and nothing of it is taken in."""
    assert set_aside_whole(file) is whole


@pytest.mark.parametrize(
    ("known", "listed", "same"),
    [
        ("10:9.4:5", "10:9.4:5", True),
        ("10:9.4:5|policy", "10:9.4:5", True),
        ("10:9.4:5", "10:9.7:5", False),
        ("10:9.4:5", "10:8.4:5", False),
        ("10:9.4:5", "10:9.4:6", False),
        ("10:5", "10:9.4:5", True),
        ("10:5|policy", "10:9.4:5", True),
        ("10:6", "10:9.4:5", False),
        ("11:5", "10:9.4:5", False),
        ("10:etag", "10:etag", True),
        ("10:etag", "10:other", False),
        ("10:etag", "10:etag:5", False),
    ],
)
def test_files_that_are_what_they_were(known: str, listed: str, *, same: bool) -> None:
    """By all that a listing shows; of older versions, that have less, by size and time."""
    assert is_as_listed(known, listed) is same
    ingested = replace(ASIDE, fingerprint=known, set_aside=0)
    found = with_file_policy(ListedFile("a.csv", 10, 0, listed), ingested, "")
    assert (found.fingerprint == known) is same


def test_when_a_file_was_written() -> None:
    """In microseconds, also by what older versions have."""
    assert written_at("10:9000.4:5000") == written_at("10:5000") == 5
