"""The reference's versions of keys, on cases that a person can check."""

from __future__ import annotations

from typing import Any

import pytest
from tests.reference.tables import versions


def shown(*seen: str, compared: list[str] | None = None, snapshots: bool = False) -> list[str]:
    """Rows like ``1 ann free`` -> versions like ``ann free 1-3``; ``-`` is NULL."""
    rows = []
    for text in seen:
        at, who, plan = (None if part == "-" else part for part in text.split())
        rows.append({"who": who, "at": None if at is None else int(at), "plan": plan})
    found = versions(rows, key=["who"], time="at", compared=compared, snapshots=snapshots)
    return sorted(map(_text, found))


def _text(row: dict[str, Any]) -> str:
    return f"{row['who']} {row['plan']} {row['valid_from']}-{row['valid_to'] or ''}"


@pytest.mark.parametrize(
    ("seen", "by_time", "by_plan"),
    [
        (["1 ann a", "3 ann b"], ["ann a 1-3", "ann b 3-"], ["ann a 1-3", "ann b 3-"]),
        (["3 ann b", "1 ann a"], ["ann a 1-3", "ann b 3-"], ["ann a 1-3", "ann b 3-"]),
        (["1 ann a", "2 ann a"], ["ann a 1-2", "ann a 2-"], ["ann a 1-"]),
        (
            ["1 ann a", "5 ann a", "3 ann b"],
            ["ann a 1-3", "ann a 5-", "ann b 3-5"],
            ["ann a 1-3", "ann a 5-", "ann b 3-5"],
        ),
        (["1 ann a", "1 ann b", "1 ann -"], ["ann b 1-"], ["ann b 1-"]),
        (["1 - a", "2 - b", "- ann a"], ["None a 1-2", "None b 2-"], ["None a 1-2", "None b 2-"]),
    ],
)
def test_versions_of_rows(seen: list[str], by_time: list[str], by_plan: list[str]) -> None:
    """Versions are by instant, or by change; the order of rows and equal rows change nothing."""
    assert shown(*seen) == by_time
    assert shown(*seen, *seen, compared=["plan"]) == by_plan


def test_versions_of_snapshots() -> None:
    """A key that is missing at an instant of others ends there, and begins again."""
    seen = ["1 ann a", "1 bob a", "2 bob a", "3 ann a", "3 bob b", "4 bob b"]

    assert shown(*seen, compared=["plan"], snapshots=True) == [
        "ann a 1-2",
        "ann a 3-4",
        "bob a 1-3",
        "bob b 3-",
    ]
