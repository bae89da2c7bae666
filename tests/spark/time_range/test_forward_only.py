"""Forward-only changes with Spark: each cell has the rows of the definition in force there."""

from __future__ import annotations

from collections import defaultdict
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.spark.time_range.daily_project import ROLLING, DailyProject, model, window

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.plan import Action, PlanOptions
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark

FIRST = "SELECT cast(ts AS date) AS day, count(*) AS n, cast(count(*) AS tinyint) AS small"
SECOND = """SELECT count(DISTINCT who) AS users, cast(ts AS date) AS day, count(*) + 100 AS n,
  cast(7 AS tinyint) AS small"""
THIRD = """SELECT count(DISTINCT who) + 50 AS users, cast(ts AS date) AS day, count(*) + 1000 AS n,
  cast(9 AS tinyint) AS small, map('a', count(*)) AS more"""
REACH = """SELECT day, n, sum(n) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL {} DAYS PRECEDING AND CURRENT ROW) AS s FROM daily"""
KEYS = "{forward_only: true}"
BEGIN = date(2024, 3, 1)


def query(select: str, where: str = "") -> str:
    """A query over the clicks, by day."""
    column = 1 if select is FIRST else 2
    return f"{select} FROM raw.clicks{where} GROUP BY {column}"


def day(number: int) -> date:
    """The days of this file, counted from 1."""
    return BEGIN + timedelta(days=number - 1)


class Shop(DailyProject):
    """The project, with the clicks of each day as they should be counted."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.clicks: dict[int, int] = defaultdict(int)

    def on(self, *days: int) -> None:
        """One click on each of some days."""
        for number in days:
            self.clicks[number] += 1
        self.land(*(f"{day(number)}T1{self.clicks[number]}:00:00Z" for number in days))

    def numbers(self, table: str, column: str = "n") -> dict[int, Any]:
        """A column of a table by day."""
        found = api.lake(self.project()).rows(table).to_pylist()
        assert len(found) == len({row["day"] for row in found})
        return {(row["day"] - BEGIN).days + 1: row[column] for row in found}

    def counted(self, *more: tuple[int, int]) -> dict[int, int]:
        """The clicks of each day, and what the definition in force adds: (from day, summand)."""
        return {
            number: clicks + next(add for first, add in reversed(more) if number >= first)
            for number, clicks in self.clicks.items()
        }

    def around(self, counted: dict[int, int], *reach: tuple[int, int]) -> dict[int, int]:
        """The sums over the days before each day, by the definition in force: (from day, days)."""
        return {
            number: sum(
                n
                for other, n in counted.items()
                if 0
                <= number - other
                <= next(days for first, days in reversed(reach) if number >= first)
            )
            for number in counted
        }


def test_each_cell_is_computed_by_the_definition_in_force(tmp_path: Path) -> None:
    """Definitions change twice, from the first cell that is not built and from a given one. Late
    rows on all sides are computed by the definition in force there, readers over the borders see
    them, verify judges each cell by its own, and a column that would have another type is refused.
    """
    shop = Shop(tmp_path / "shop")
    shop.on(1, 2, 4)
    shop.models(
        daily=model(query(FIRST), KEYS),
        reach=model(REACH.format(1), "{forward_only: true, batch_size: 2}"),
        rolling=model(ROLLING),
    )
    shop.go()

    # The second definition, with another reach of its reader, and rows on both sides.
    shop.models(
        daily=model(query(SECOND), KEYS),
        reach=model(REACH.format(3), "{forward_only: true, batch_size: 2}"),
    )
    shop.on(2, 5, 6)
    done = shop.go()
    counted = shop.counted((1, 0), (5, 100))
    assert shop.numbers("daily") == counted
    assert shop.numbers("daily", "users") == {1: None, 2: None, 4: None, 5: 1, 6: 1}
    assert shop.numbers("daily", "small") == {1: 1, 2: 2, 4: 1, 5: 7, 6: 7}
    assert shop.numbers("reach", "s") == shop.around(counted, (1, 1), (5, 3))
    assert shop.numbers("rolling", "week") == shop.around(counted, (1, 6))
    assert next(receipt.read for step, receipt in done.steps if step.action is Action.DERIVE) == 0

    # The third one from a day that is built already.
    # A reader, changed in the same run, names the column that is new then.
    reach = REACH.format(3).replace("SELECT", "SELECT more,")
    shop.models(daily=model(query(THIRD), KEYS), reach=model(reach, KEYS))
    shop.on(1, 5, 6, 7)
    asked = PlanOptions(forward_only={"daily": parse_instant_text(str(day(6)))})
    found = api.plan(shop.project(), asked=asked)
    assert [str(one.category) for one in found.redefinitions] == ["forward-only"] * 2
    shop.go(asked)
    counted = shop.counted((1, 0), (5, 100), (6, 1000))
    assert shop.numbers("daily") == counted
    assert shop.numbers("daily", "users") == {1: None, 2: None, 4: None, 5: 1, 6: 51, 7: 51}
    assert shop.numbers("reach", "s") == shop.around(counted, (1, 1), (5, 3))
    assert shop.numbers("reach", "more") == dict.fromkeys((1, 2, 4, 5, 6)) | {7: [("a", 1)]}
    assert shop.numbers("rolling", "week") == shop.around(counted, (1, 6))

    # Built again, each cell is as it was; so is all that reads it.
    done = api.restate(shop.project(), ["daily", "reach"])
    assert done.receipt.commits == 0
    assert shop.numbers("daily") == counted
    shop.verify()
    for number, which in ((5, "an earlier one"), (6, "the newest")):
        cell = window(str(day(number)), str(day(number + 1)))
        explained = dict(api.explain(shop.project(), "daily", cell).notes)
        assert explained["definition"].startswith(which)

    # What would change the earlier cells is refused, and the table stays as it is.
    shop.models(daily=model(query(THIRD.replace("count(*) + 1000", "'x'")), KEYS))
    with pytest.raises(RunFailed) as caught:
        shop.go()
    assert [one.error.slug for one in caught.value.result.failures] == ["not-forward-only"]
    assert shop.numbers("daily") == counted
