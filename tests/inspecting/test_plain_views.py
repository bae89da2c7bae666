"""The stored tables behind a plain view, and which views are not plain."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold import api
from infold.inspecting.session_events import NotPlainError, ShownTable, shown_tables

PROJECT = """
name: shop
sources:
  raw.clicks:
    path: clicks/*.csv
    event_time_column: ts
    columns: {id: string, Who: string, ts: timestamp, url: string, more: "struct<a:string>"}
  raw.taps:
    path: taps/*.csv
    event_time_column: at
    columns: {tap: string, person: string, at: timestamp}
"""


def shown(folder: Path, sql: str, **others: str) -> list[str]:
    """What the view ``v`` shows beside others: ``table: name=column …``, and its conditions."""
    (folder / "infold.yml").write_text(PROJECT, encoding="utf-8")
    models = folder / "models"
    models.mkdir()
    for name, text in {**others, "v": sql}.items():
        front = "---\nmaterialization: view\n---\n"
        (models / f"{name}.sql").write_text(front + text, encoding="utf-8")
    return [
        f"{one.table}: {' '.join(f'{name}={of}' for name, of in (one.columns or {}).items())}"
        + "".join(f" | {where}" for where in one.where)
        for one in shown_tables(api.open_project(folder), "v")
    ]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT * FROM raw.clicks", ["raw.clicks: id=id who=Who ts=ts url=url more=more"]),
        (
            "SELECT c.`who` AS User, c.TS, 'web' AS src FROM raw.clicks AS c",
            ["raw.clicks: user=Who ts=ts src=None"],
        ),
        (
            "SELECT WHO u, ts FROM raw.clicks k WHERE k.url <> 'it''s' -- why\n AND id > 'a'",
            ["raw.clicks: u=Who ts=ts | `url` <> 'it''s' -- why\n AND `id` > 'a'"],
        ),
        (
            """SELECT who AS u, ts, 'web' AS src FROM raw.clicks WHERE who <> 'robot'
            UNION ALL SELECT person, at, 'app' FROM raw.taps
            UNION ALL SELECT id, ts, url FROM raw.clicks WHERE (id IN ('a', 'b'))""",
            [
                "raw.clicks: u=Who ts=ts src=None | `Who` <> 'robot'",
                "raw.taps: u=person ts=at src=None",
                "raw.clicks: u=id ts=ts src=url | (`id` IN ('a', 'b'))",
            ],
        ),
        (
            "SELECT lower(who) AS u, more.a AS m, ts + INTERVAL 1 HOUR AS later FROM raw.clicks",
            ["raw.clicks: u=None m=None later=None"],
        ),
        ("SELECT url AS id, id AS url FROM raw.clicks", ["raw.clicks: id=url url=id"]),
    ],
)
def test_plain_views(tmp_path: Path, sql: str, expected: list[str]) -> None:
    """Each side of a UNION ALL is rows of one table, with conditions on that table's columns."""
    assert shown(tmp_path, sql) == expected


def test_views_of_views(tmp_path: Path) -> None:
    """Views of views are resolved down to the table, conditions included."""
    inner = "SELECT who AS a, id AS b, ts FROM raw.clicks WHERE url IS NULL"

    found = shown(tmp_path, "SELECT b AS a, ts FROM inner_one WHERE a = 'x'", inner_one=inner)

    assert found == ["raw.clicks: a=id ts=ts | `url` IS NULL | `Who` = 'x'"]


def test_a_condition_over_a_view() -> None:
    """A condition over a view gets the table's names; one over a constant needs no comparison."""
    part = ShownTable("clicks", {"u": "Who", "src": None})

    assert part.own_condition("u = 'a' OR shown.u IS NULL") == "`Who` = 'a' OR `Who` IS NULL"
    with pytest.raises(NotPlainError):
        part.own_condition("src = 'web'")


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT DISTINCT who FROM raw.clicks",
        "SELECT who FROM raw.clicks ORDER BY who",
        "SELECT who FROM raw.clicks UNION SELECT person FROM raw.taps",
        "WITH x AS (SELECT who FROM raw.clicks) SELECT who FROM x",
        "SELECT who FROM (SELECT who FROM raw.clicks)",
        "SELECT c.who FROM raw.clicks c LEFT JOIN raw.taps t ON t.tap = c.id",
        "SELECT c.* FROM raw.clicks c JOIN raw.taps t ON t.tap = c.id",
        "(SELECT who FROM raw.clicks) UNION ALL (SELECT person FROM raw.taps)",
        "SELECT who FROM raw.clicks WHERE more.a = 'x'",
        "SELECT who, count(*) AS n FROM raw.clicks GROUP BY who",
        "SELECT who, w FROM raw.clicks LATERAL VIEW explode(array(1, 2)) x AS w",
    ],
)
def test_views_that_only_spark_can_evaluate(tmp_path: Path, sql: str) -> None:
    """More than columns, constants, WHERE and UNION ALL is left to Spark."""
    with pytest.raises(NotPlainError):
        shown(tmp_path, sql)
