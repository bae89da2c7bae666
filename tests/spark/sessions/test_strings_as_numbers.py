"""A large first build reads the distinct strings from the
files of its input and computes with numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SOURCE, put
from tests.spark.events.clicks_project import shop_with

from infold.spark.sessions import build
from infold.spark.tables.iceberg.tables import IcebergTables

pytestmark = pytest.mark.spark

SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT first(url) AS entry, last(url, true) AS exit, max(amount) AS most,
  first(url) FILTER (WHERE amount > 3) AS paid
FROM clicks"""


@pytest.mark.usefixtures("spark")
def test_distinct_strings_come_from_files(
    tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The distinct strings are those of the input's version:
    values that left it are harmless, new ones count.
    """
    asked = []
    real = IcebergTables.values

    def values(self: IcebergTables, *given: Any) -> pa.Array | None:
        found = real(self, *given)
        assert found is not None
        asked.append((given[1], sorted(found.to_pylist())))
        return found

    monkeypatch.setattr(IcebergTables, "values", values)
    monkeypatch.setattr(build, "LARGE", 0)
    made = shop_with(tmp_path, warehouse, CLICKS, SOURCE)
    at = "2024-03-02 09:0"
    put(made, "a.csv", f"1,ann,{at}0:00,/gone,1", f"2,bob,{at}0:00,/b,1")
    made.run()
    put(made, "a.csv", f"1,ann,{at}0:00,/a,1", f"2,bob,{at}0:00,/b,1")
    # two at the first instant of ann's, none known at the last of bob's
    put(made, "b.csv", f"3,ann,{at}0:00,é,5", f"4,bob,{at}5:00,,9", f"5,bob,{at}4:00,/d,4")
    made.run()

    made.model("sessions", SESSIONS)
    receipt = made.run(model="sessions")

    assert receipt.sessions_new == 2
    [(column, strings)] = asked
    assert column == "url"
    assert {"/a", "/b", "/d", "é"} <= set(strings) <= {"/a", "/b", "/d", "é", "/gone"}
    urls = ("user_id", "entry", "exit", "paid")
    assert sorted(tuple(row[name] for name in urls) for row in made.records("sessions")) == [
        ("ann", "/a", "é", "é"),
        ("bob", "/b", "/d", "/d"),
    ]
    assert made.proven()
