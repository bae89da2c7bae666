"""Events and rows by key in Python, with Spark: what they build, and how they fail."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.test_apply import built
from tests.spark.test_python_models import PythonShop

from infold import api

pytestmark = pytest.mark.spark

VISITS = """from datetime import timedelta

from infold import model
from lib import names


@model(
    materialization="events",
    unique_key=["id", "part"],
    timeseries={"event_time_column": "at", "granularity": "day"},
    inputs={"raw.clicks": {"columns": ["id", "who", "ts", "amount"]}},
    columns={"id": "int", "part": "int", "who": "string", "at": "timestamp",
             "amount": "decimal(18,2)"},
)
def visits(row):
    print("in visits")
    if row["who"] == "bot":
        return None
    if row["id"] is None:
        return {"id": None, "part": 0, "who": None, "at": row["ts"], "amount": None}
    return (
        {
            "id": row["id"],
            "part": part,
            "who": names.shown(row["who"]),
            "at": row["ts"] + timedelta(hours=part),
            "amount": row["amount"],
        }
        for part in range(2 if row["who"] == "twin" else 1)
    )
"""
PEOPLE = """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["who"],
    inputs={"visits": {"columns": ["at", "id", "amount"]}},
    columns={"who": "string", "first": "timestamp", "ids": "array<int>", "paid": "decimal(28,2)"},
    audits=[{"not_null": ["ids"]}],
)
def people(rows):
    if rows[0]["at"].hour == 23:
        return None
    paid = sum(row["amount"] for row in rows if row["amount"] is not None)
    return {"first": rows[0]["at"], "ids": [row["id"] for row in rows], "paid": paid}
"""
NAMES = "def shown(name):\n    return name and name.upper()%s\n"


class RowShop(PythonShop):
    """A shop with events in Python, rows by key in Python over them, and SQL over these."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        (root / "models/rolling.sql").unlink()
        self.write(models__visits=VISITS, models__people=PEOPLE, lib__names=NAMES % "")

    def people(self) -> dict[str | None, tuple[str, list[int]]]:
        """The first time and the events of each person."""
        rows = api.show(self.project(), "people").to_pylist()
        return {row["who"]: (f"{row['first']:%d %H}", row["ids"]) for row in rows}


def test_rows(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Rows of a source become none, one or several events; what is late, gone or changed by other
    code is followed through, and all equals a rebuild.
    """
    shop = RowShop(tmp_path / "shop")
    shop.land("2024-03-05T09:00:00", "2024-03-05T07:00:00", who="twin")
    shop.land("2024-03-05T09:00:00", who="bot")
    (shop.root / "landing/none.csv").write_text(
        "id,who,ts,day,amount\n,ann,2024-03-05T09:00:00,,\nx,ann,2024-03-05T09:00:00,,\n"
    )
    done = shop.apply()
    assert shop.judge() == {}
    [receipt] = [receipt for step, receipt in done.steps if step.model == "visits"]
    assert (receipt.arrived, receipt.written, receipt.set_aside) == (7, 6, 2)
    assert shop.people() == {
        "ANN": ("01 10", [1, 2]),
        "TWIN": ("05 07", [4, 4, 3, 3]),
    }
    printed = capfd.readouterr()
    assert "in visits" not in printed.out

    late = shop.land("2024-03-01T08:00:00", who="ann")
    shop.land("2024-03-01T23:00:00", who="eve")
    done = api.run(shop.project())
    assert set(built(done)) == {"raw.clicks", "daily", "visits", "people"}
    assert shop.people()["ANN"] == ("01 08", [6, 1, 2])
    assert shop.judge() == {}

    (shop.root / "landing" / late).unlink()
    shop.land("2024-03-01T22:00:00", who="eve")
    api.run(shop.project())
    assert shop.people()["ANN"] == ("01 10", [1, 2])
    assert shop.people()["EVE"] == ("01 22", [8, 7])
    assert shop.judge() == {}

    shop.write(lib__names=NAMES % ".title()")
    assert shop.people().keys() == {"ANN", "TWIN", "EVE"}
    shop.apply()
    assert shop.people().keys() == {"Ann", "Twin", "Eve"}
    assert shop.judge() == {}
