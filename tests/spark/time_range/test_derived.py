"""A changed definition that follows from stored rows reads none of its inputs."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.spark.time_range.daily_project import DailyProject, days, model

from infold import api
from infold.spark.time_range import recompute

pytestmark = pytest.mark.spark

ROWS = "SELECT cast(ts AS date) AS day, id, who, amount FROM raw.clicks"
SUMS = """SELECT cast(ts AS date) AS day, count(*) AS n, sum(amount) AS amount
FROM raw.clicks GROUP BY 1"""
GROUPED = """SELECT cast(ts AS date) AS day, float(amount - amount) AS f, count(*) AS n
FROM raw.clicks {0} GROUP BY 1, 2"""
ODD = "double(CASE id WHEN 1 THEN 'NaN' WHEN 2 THEN '-0.0' ELSE '-1.5' END)"
TOTAL = "---\nmaterialization: cumulative_aggregate\n---\nSELECT who, count(*) AS n FROM visits"


def of_type(column: str) -> str:
    """Rows with another column."""
    return model(f"SELECT cast(ts AS date) AS day, {column} FROM raw.clicks")


def odd(columns: str, condition: str = "") -> str:
    """Rows with a number that is none, or negative and nought."""
    return model(f"SELECT cast(ts AS date) AS day, id{columns} FROM raw.clicks {condition}")


CHANGES = {
    # A dropped and a computed column, another order, a condition: together one step.
    "columns": (
        model(ROWS),
        model(
            "SELECT upper(who) AS big, id * 2 AS twice, cast(ts AS date) AS day "
            "FROM raw.clicks WHERE who = 'ann'"
        ),
        "derive",
    ),
    "sums": (model(SUMS), model(f"{SUMS} HAVING count(*) > 1"), "derive"),
    # Columns have the types of the query; where the stored type is another, they are built.
    "small": (
        of_type("cast(id AS smallint) AS s"),
        of_type("cast(id AS smallint) AS s, -s AS neg"),
        "derive",
    ),
    "hex_of_small": (
        of_type("cast(id AS smallint) AS s"),
        of_type("hex(cast(id AS smallint)) AS h"),
        "build",
    ),
    "hex_of_big": (
        of_type("cast(id AS bigint) AS s"),
        of_type("hex(cast(id AS bigint)) AS h"),
        "derive",
    ),
    "array": (
        of_type("array(cast(id AS tinyint)) AS s"),
        of_type("array(cast(id AS tinyint)) AS z"),
        "derive",
    ),
    "struct": (
        of_type("struct(id, array(1)) AS s"),
        of_type("struct(id, array(1)) AS z"),
        "derive",
    ),
    # A condition on a group of such numbers is none on its rows: 0.0 and -0.0 are one group.
    "floats": (
        model(GROUPED.format("")),
        model(GROUPED.format("WHERE float(amount - amount) >= 0")),
        "build",
    ),
    # Spark decides about NaN and -0.0, and not the statistics of files.
    "above_1": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} > 1"), "derive"),
    "nought": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} = 0"), "derive"),
    "at_least_0": (odd(f", {ODD} AS odd"), odd("", f"WHERE {ODD} >= 0"), "derive"),
    # Where an input is built again with other types, what was derived from the old ones is not.
    "ints": (model(ROWS), model(ROWS.replace("id,", "cast(id AS bigint) AS id,")), "derive"),
    "of_ints": (
        model("SELECT day, id, who FROM ints"),
        model("SELECT day, id FROM ints"),
        "build",
    ),
    # A decimal with more digits hashes alike, so no content tells its readers; its type does.
    "money": (
        model(ROWS.replace("amount", "cast(amount AS decimal(9,2)) AS amount")),
        model(ROWS.replace("amount", "cast(amount AS decimal(12,2)) AS amount")),
        "derive",
    ),
    "of_money": (model("SELECT day, id, amount FROM money"), "", "build"),
    "beside_money": (model("SELECT day, id, who FROM money"), "", ""),
    # A reader that folds changes gets those of the derived table.
    "visits": (model(ROWS), model(f"{ROWS} WHERE id <> 3"), "derive"),
    "total": (f"{TOTAL} GROUP BY who\n", "", "fold"),
    # A later start takes rows out.
    "started": (model(ROWS), model(ROWS, "{start: 2024-03-03}"), "derive"),
}
"""Each model before and, if it changes, after; and what is done then."""


def steps(shop: DailyProject, before: int) -> list[tuple[str, str]]:
    """What was done to which model since some runs; a step that derives reads nothing."""
    runs = api.ledger(shop.project()).runs(100)
    found = [step for run in runs[: len(runs) - before] for step in run.steps]
    return [(step.model, str(step.action)) for step in found if step.state == "done"]


def ids(shop: DailyProject, table: str) -> list[object]:
    """The second column of a table."""
    return [row[1] for row in shop.rows(table)]


def test_rows_that_follow_from_stored_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    They are those of the new definitions, each derived once though a run died after a commit; the
    tables lie on disk as before. An earlier start builds the new cells alone.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*days("2024-03-01", 5))
    shop.land("2024-03-01T11:00:00Z", who="bob")
    shop.models(**{name: before for name, (before, _, _) in CHANGES.items()})
    with monkeypatch.context() as patch:
        patch.setattr(recompute, "_ROWS_FOR_PARTITIONS", 1)
        shop.go()
    shop.models(**{name: after for name, (_, after, _) in CHANGES.items() if after})

    shop.die_at("columns", "table columns: after commit")
    result = shop.go()

    assert all(r.read == 0 for step, r in result.steps if str(step.action) == "derive")
    expected = [(name, action) for name, (_, _, action) in CHANGES.items() if action]
    assert sorted(steps(shop, 1)) == sorted(expected)
    assert [row[0] for row in shop.rows("columns")] == ["ANN"] * 5
    assert len(shop.rows("sums")) == 1
    assert [ids(shop, name) for name in ("above_1", "nought", "at_least_0")] == [[1], [2], [1, 2]]
    assert shop.rows("total") == [("ann", 4), ("bob", 1)]
    assert ids(shop, "started") == [3, 4, 5]
    layout = api.lake(shop.project()).layout("columns")
    assert layout is not None
    assert layout.column == "day"
    assert layout.partition is not None

    for start, done, kept in (
        ("2024-03-02", ["derive", "recompute"], [2, 3, 4, 5]),
        ("2024-03-04T13:00:00", ["derive"], [5]),
    ):
        shop.models(started=model(ROWS, f"{{start: '{start}'}}"))
        versions = len(api.ledger(shop.project()).versions("started", 0))
        moved = shop.go()
        assert [(step.model, str(step.action)) for step, _ in moved.steps] == [
            ("started", action) for action in done
        ]
        assert ids(shop, "started") == kept
        # A start that only moves earlier changes no row: the ledger alone records it.
        assert len(api.ledger(shop.project()).versions("started", 0)) - versions == 1
    shop.verify()
