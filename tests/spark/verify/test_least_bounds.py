"""The shortest bounds that are enough, found by trying."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from infold.core.interval import DAY
from infold.core.project import Bound
from infold.spark.verify.beyond_bounds import least_bounds

FAR = Bound(1000 * DAY, 1000 * DAY)


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        (Bound(19 * DAY, 0), Bound(19 * DAY, 0)),
        (Bound(6 * DAY + 1, 0), Bound(7 * DAY, 0)),
        (Bound(0, 1), Bound(6 * DAY, DAY)),
        (Bound(999 * DAY + 1, 0), Bound(1000 * DAY, 0)),
        (Bound(300 * DAY, 17 * DAY), Bound(300 * DAY, 17 * DAY)),
    ],
)
def test_whole_days_no_longer_than_needed(needed: Bound, expected: Bound) -> None:
    """Each side is as short as it may be, in whole days; no side is shorter than declared."""
    tried: list[Bound] = []

    def is_enough(bounds: Mapping[str, Bound]) -> bool:
        tried.append(bounds["daily"])
        return bounds["daily"].widest(needed) == bounds["daily"]

    assert least_bounds({"daily": Bound(6 * DAY, 0)}, FAR, DAY, is_enough) == {
        "daily": expected.widest(Bound(6 * DAY, 0))
    }
    assert len(tried) <= 45


def test_an_input_that_needs_no_more_keeps_its_bound() -> None:
    """Of two inputs the one that is read far enough stays as declared."""
    found = least_bounds(
        {"clicks": Bound(), "orders": Bound()}, FAR, DAY, lambda b: b["orders"].before >= 3 * DAY
    )
    assert found == {"clicks": Bound(), "orders": Bound(3 * DAY, 0)}


def test_where_nothing_is_enough() -> None:
    """Rows that no length reaches have no bounds."""
    assert least_bounds({"daily": Bound()}, FAR, DAY, lambda b: False) is None
