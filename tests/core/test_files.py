"""What is known of a file that was ingested."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infold.core.files import IngestedFile, set_aside_whole

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
