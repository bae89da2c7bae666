"""Rows that are shown: of views, in an order, drawn, compared, and by how late they came."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample
from tests.declare.shop import SHOP, project
from tests.page.history import FIRST, day, history, lay_out

from infold import api
from infold.core.definition import Category, How, Redefinition
from infold.core.interval import (
    DAY,
    HOUR,
    Granularity,
    Interval,
    Ranges,
    micros_of,
    parse_instant_text,
)
from infold.core.ports import Lake
from infold.core.report import EnvironmentDiff, OverTime, Row, RowByRow, RowDiff, TableDiff
from infold.core.report import How as Lateness
from infold.core.trace import CellState
from infold.inspecting import show
from infold.inspecting.lateness import (
    LOOKBACKS,
    MOST_ROWS,
    _newest,
    lateness_of,
    measures_of,
    received_column,
)
from infold.inspecting.session_events import NotPlainError, ShownTable, shown_tables
from infold.inspecting.show import (
    MOST_COLUMNS,
    MOST_GROUPS,
    drawn_columns,
    first_cells,
    in_order,
    own_order,
    picture_of,
)
from infold.inspecting.table_diff import row_diffs, table_diff
from infold.messages.errors import InfoldError
from infold.render.environments import diff_json, diff_screen

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
        ("SELECT c.`who` AS User, c.TS, 'web' AS src FROM raw.clicks AS c",
         ["raw.clicks: user=Who ts=ts src=None"]),
        ("SELECT WHO u, ts FROM raw.clicks k WHERE k.url <> 'it''s' -- why\n AND id > 'a'",
         ["raw.clicks: u=Who ts=ts | `url` <> 'it''s' -- why\n AND `id` > 'a'"]),
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
        ("SELECT lower(who) AS u, more.a AS m, ts + INTERVAL 1 HOUR AS later FROM raw.clicks",
         ["raw.clicks: u=None m=None later=None"]),
        ("SELECT url AS id, id AS url FROM raw.clicks", ["raw.clicks: id=url url=id"]),
    ],
)  # fmt: skip
def test_plain_views(tmp_path: Path, sql: str, expected: list[str]) -> None:
    """Each side of a UNION ALL is rows of one table, with conditions on that table's columns."""
    assert shown(tmp_path, sql) == expected


def test_views_of_views(tmp_path: Path) -> None:
    """Views of views are resolved down to the table, conditions included. A condition over a view
    gets the table's names; one over a constant needs no comparison.
    """
    inner = "SELECT who AS a, id AS b, ts FROM raw.clicks WHERE url IS NULL"

    found = shown(tmp_path, "SELECT b AS a, ts FROM inner_one WHERE a = 'x'", inner_one=inner)

    assert found == ["raw.clicks: a=id ts=ts | `url` IS NULL | `Who` = 'x'"]
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


# -- rows are shown by time and key, or as somebody asks


TAGGED = pa.table(
    {"id": [2, 1, None, 2], "Name": ["b", "a", "c", "a"], "tags": [["x"], ["y"], [], None]}
)
MARCH = parse_instant_text("2024-03-01")


def ids(rows: pa.Table) -> list[tuple[object, object]]:
    """The two columns that can be sorted by."""
    return [(row["id"], row["Name"]) for row in rows.to_pylist()]


@pytest.mark.parametrize(
    ("order", "found"),
    [
        ((), [(1, "a"), (2, "a"), (2, "b"), (None, "c")]),
        (("name", "-id"), [(2, "a"), (1, "a"), (2, "b"), (None, "c")]),
        (("-ID", "-Name"), [(2, "b"), (2, "a"), (1, "a"), (None, "c")]),
    ],
)
def test_rows_are_sorted(order: tuple[str, ...], found: list[tuple[object, object]]) -> None:
    """By the columns that are named, in any case, up or down; else by all; NULL comes last."""
    assert ids(in_order(TAGGED, order)) == found


def test_the_order_of_a_table() -> None:
    """Its time first, then what tells rows apart. What is no column, or a list, is said."""
    shop = project(SHOP)

    assert own_order(shop["clicks"]) == ("event_ts", "event_id")
    assert own_order(shop["sessions"]) == ("session_start", "session_id")
    assert own_order(shop["daily"]) == ("day",)
    for order, what in (("nmae", "no column nmae"), ("tags", "by tags")):
        with pytest.raises(InfoldError, match=what):
            in_order(TAGGED, [order])


def test_the_first_rows_are_in_the_first_cells(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a large table no more cells are read than have the rows that are shown."""
    days = [Interval(MARCH + at * DAY, MARCH + (at + 1) * DAY) for at in range(3)]
    cells = [CellState(day, 30, 0, None) for day in days]
    daily = project(SHOP)["daily"]

    assert first_cells(daily, cells, 20) == "`day` < '2024-03-02'"
    assert first_cells(daily, cells, 31) == "`day` < '2024-03-03'"
    assert first_cells(daily, cells, 91) is None
    monkeypatch.setattr(show, "MOST", 20)
    assert first_cells(daily, cells, 20) is None


# -- what is drawn of rows


NOON_OF_MARCH = datetime(2024, 3, 1, tzinfo=UTC)


def over_time(columns: dict[str, Any]) -> OverTime:
    """The pictures over time of some columns."""
    found = picture_of(pa.table(columns), sample.DAILY.model)
    assert isinstance(found, OverTime)
    return found


def points(found: OverTime, name: str) -> list[tuple[int, float, float]]:
    """The points of a series: day since the first, lowest, highest."""
    (series,) = (one for one in found.series if one.name == name)
    start = micros_of(NOON_OF_MARCH)
    return [((one.cell.start - start) // DAY, one.low, one.high) for one in series.points]


def test_days_of_a_table_are_a_point_each() -> None:
    """With one row a day each point is its value; NULL and NaN have none."""
    days = [date(2024, 3, day) for day in (3, 1, 2, 4)]
    found = over_time({"day": days, "n": [3, 1, None, 4], "x": [0.5, float("nan"), 1.5, -1.0]})

    assert (found.time, found.finest, found.by) == ("day", Granularity.DAY, "")
    assert [one.name for one in found.series] == ["n", "x"]
    assert points(found, "n") == [(0, 1, 1), (2, 3, 3), (3, 4, 4)]
    assert points(found, "x") == [(1, 1.5, 1.5), (2, 0.5, 0.5), (3, -1, -1)]
    own = over_time({"at": [NOON_OF_MARCH], "day": [date(2024, 3, 5)], "n": [1]})
    assert (own.time, points(own, "n")) == ("day", [(4, 1, 1)]), "the one by which it has cells"
    empty = picture_of(pa.schema({"day": pa.date32(), "n": pa.int64()}).empty_table(), None)
    assert isinstance(empty, OverTime)
    assert [one.points for one in empty.series] == [()]


def test_times_of_a_day_are_hours() -> None:
    """Times that are no midnights are drawn by hours, whatever their unit and zone."""
    five = NOON_OF_MARCH + timedelta(hours=5, seconds=7)
    for kind in (pa.timestamp("s"), pa.timestamp("ms", "UTC"), pa.timestamp("ns", "UTC")):
        found = over_time({"at": pa.array([five], pa.timestamp("us", "UTC")).cast(kind), "n": [1]})

        assert found.finest is Granularity.HOUR
        starts = [one.cell.start for one in found.series[0].points]
        assert starts == [micros_of(NOON_OF_MARCH) + 5 * HOUR]


def test_several_rows_of_a_time_are_counted_too() -> None:
    """Where times repeat, how many rows there are comes first."""
    found = over_time(
        {"at": [NOON_OF_MARCH, NOON_OF_MARCH, NOON_OF_MARCH + timedelta(days=1)], "n": [5, 2, 9]}
    )

    assert [one.name for one in found.series] == ["rows", "n"]
    assert [one.adds_up for one in found.series] == [True, False]
    assert points(found, "rows") == [(0, 2, 2), (1, 1, 1)]
    assert points(found, "n") == [(0, 2, 5), (1, 9, 9)]


def test_a_column_that_tells_the_rows_of_a_time_apart_groups_them() -> None:
    """A line for each, NULL too, the highest of many; two users at one instant are none."""
    found = over_time(
        {
            "day": [date(2024, 3, 1)] * 3 + [date(2024, 3, 2)] * 2,
            "country": ["nl", "de", None, "nl", "de"],
            "n": [1, 5, 3, 2, None],
        }
    )

    (series,) = found.series
    assert found.by == "country"
    assert [name for name, _ in series.groups] == ["de", "NULL", "nl"]
    assert [[one.high for one in drawn] for _, drawn in series.groups] == [[5], [3], [1, 2]]
    minute = timedelta(minutes=1)
    found = over_time(
        {
            "at": [NOON_OF_MARCH, NOON_OF_MARCH, NOON_OF_MARCH + minute],
            "who": ["ann", "bob", "ann"],
            "n": [1, 2, 3],
        }
    )
    assert (found.by, [one.name for one in found.series]) == ("", ["rows", "n"]), (
        "two at an instant"
    )
    names = [f"n{number:03}" for number in range(40)]
    found = over_time({"day": [date(2024, 3, 1)] * 40, "who": names, "n": list(range(40))})
    assert [name for name, _ in found.series[0].groups] == names[::-1][:MOST_GROUPS]


def test_rows_without_a_time_are_counted() -> None:
    """They have no place on the axis; neither have times that no calendar has."""
    found = over_time({"at": [NOON_OF_MARCH, None, None], "n": [1, 2, 3]})
    assert (found.left_out, points(found, "n")) == (2, [(0, 1, 1)])

    first_year = -62_135_596_800 * 10**6
    far = pa.array([10**18, 253_402_300_800 * 10**6, first_year], pa.timestamp("us"))
    found = over_time({"at": far, "n": [1, 2, 3]})
    assert found.left_out == 2
    assert [(one.low, one.cell.start) for one in found.series[0].points] == [(3, first_year)]


def test_rows_without_any_time_have_bars() -> None:
    """The label is the first column of names, and all kinds of numbers are drawn."""
    columns = {
        "who": ["ann", None],
        "n": [-3, None],
        "d": [Decimal("1.50"), Decimal("-2.25")],
        "big": pa.array([2**63, 0], pa.uint64()),
        "ok": [True, False],
    }
    found = picture_of(pa.table(columns), None)

    assert isinstance(found, RowByRow)
    assert (found.label, found.labels) == ("who", ("ann", "NULL"))
    assert found.columns == (("n", (-3.0, None)), ("d", (1.5, -2.25)), ("big", (float(2**63), 0.0)))


def test_only_columns_that_are_drawn_are_read() -> None:
    """Not structs, lists and further texts; all numbers, so that others are named."""
    assert picture_of(pa.table({"who": ["ann"]}), None) is None
    assert drawn_columns(pa.schema({"who": pa.string(), "tags": pa.list_(pa.int64())}), None) == ()
    kinds = {"a": pa.string(), "b": pa.string(), "c": pa.string(), "l": pa.list_(pa.int64())}
    numbers = {f"n{at}": pa.int32() for at in range(MOST_COLUMNS + 1)}
    schema = pa.schema({**kinds, "day": pa.date32(), **numbers})

    assert drawn_columns(schema, sample.DAILY.model) == ("a", "b", "day", *numbers)
    found = over_time({"day": [date(2024, 3, 1)], **{name: [1] for name in numbers}})
    assert found.not_drawn == (f"n{MOST_COLUMNS}",)


@given(st.lists(st.tuples(st.integers(-3000, 3000), st.integers(-50, 50) | st.none()), max_size=40))
def test_points_are_those_of_the_rows(drawn: Sequence[tuple[int, int | None]]) -> None:
    """Each hour has its lowest and highest value, and how many rows it has, as Python counts."""
    times = [NOON_OF_MARCH + timedelta(minutes=at * 7) for at, _ in drawn]
    when = pa.array(times, pa.timestamp("us", "UTC"))
    n = pa.array([value for _, value in drawn], pa.int64())
    found = picture_of(pa.table({"at": when, "n": n}), None)
    assert isinstance(found, OverTime)
    values: dict[int, list[int]] = {}
    rows: dict[int, int] = {}
    for at, (_, value) in zip(times, drawn, strict=True):
        start = found.finest.floor(micros_of(at))
        rows[start] = rows.get(start, 0) + 1
        if value is not None:
            values.setdefault(start, []).append(value)

    known = {one.name: one for one in found.series}
    assert [(one.cell.start, one.low, one.high) for one in known["n"].points] == [
        (start, min(some), max(some)) for start, some in sorted(values.items())
    ]
    if "rows" in known:
        assert [(one.cell.start, one.high) for one in known["rows"].points] == sorted(rows.items())
    else:
        assert set(rows.values()) <= {1}


# -- the rows that differ between two tables of one model


ROWS = st.lists(
    st.fixed_dictionaries({"id": st.integers(0, 3), "n": st.none() | st.floats(0, 2)}), max_size=8
)


def texts(rows: Sequence[Row | None]) -> Counter[str]:
    """Rows as a multiset."""
    return Counter(repr(row) for row in rows)


@given(ROWS, ROWS, st.sampled_from([(), ("id",), ("id", "n")]))
def test_one_table_and_the_difference_make_the_other(
    before: list[Row], after: list[Row], key: tuple[str, ...]
) -> None:
    """Without the rows that were removed or changed, and with those added or changed, one table is
    the other; each changed row has one key on both sides, which no other differing row has.
    """
    added, removed, changed = row_diffs(before, after, key)

    left = texts(before) - texts([one.before for one in (*removed, *changed)])
    assert left + texts([one.after for one in (*added, *changed)]) == texts(after)
    kept = texts(before) & texts(after)
    assert left == kept
    for one in changed:
        assert one.before is not None
        assert one.after is not None
        assert [one.before[name] for name in key] == [one.after[name] for name in key]
        others = [row.key for row in (*added, *removed, *changed)]
        assert others.count(one.key) == 1
    assert key or not changed


def test_what_is_shown() -> None:
    """Each table has its numbers, its columns, and rows with what became of them."""
    cells = Ranges((Interval(0, DAY),))
    rows = (
        RowDiff({"day": "a"}, {"day": "a", "n": 1}, {"day": "a", "n": 2}),
        RowDiff({"day": "b"}, None, {"day": "b", "n": None}),
        RowDiff({"day": "c"}, {"day": "c", "n": 3}, None),
    )
    table = TableDiff("daily", (4, 4), (("top", "", "int32"),), cells, 1, 1, 1, rows)
    new = TableDiff("best", (0, 1), compared=False)
    change = Redefinition("daily", Category.BREAKING, (), How.REBUILD, None, None)
    found = EnvironmentDiff("dev", (change,), (table, new, TableDiff("weekly", (2, 2))))

    assert diff_screen(found) == (
        "Definitions\n"
        "  daily  breaking\n\n"
        "daily: 4 rows in production, 4 here: 1 added, 1 removed, 1 changed\n"
        "  column top: none → int32\n"
        "  ~ day a: n 1 → 2\n"
        "  + day b, n NULL\n"
        "  - day c, n 3\n\n"
        "best: production has none; 1 row\n\n"
        "weekly: the same 2 rows"
    )
    assert [one["equal"] for one in diff_json(found)["tables"]] == [False, False, True]
    assert diff_json(found)["tables"][0]["cells"] == [
        ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"]
    ]
    same = EnvironmentDiff("dev", (), (TableDiff("weekly", (2, 2)),))
    assert (same.equal, found.equal) == (True, False)
    assert diff_screen(same) == "dev and production have the same rows."


@pytest.mark.parametrize(
    ("model", "type_", "where"),
    [
        ("daily", pa.date32(), "`day` >= '1970-01-02' AND `day` < '1970-01-04'"),
        ("sessions", pa.timestamp("us", "UTC"),
         "`session_start` >= '1970-01-02T00:00:00' AND `session_start` < '1970-01-04T00:00:00'"),
    ],
)  # fmt: skip
def test_only_what_differs_is_read(model: str, type_: pa.DataType, where: str) -> None:
    """Rows are read from the first to the last cell with other contents, and of none otherwise."""
    name = "day" if model == "daily" else "session_start"
    spark = "date" if model == "daily" else "timestamp"
    asked = []

    class Stored:
        """Two tables, as ledger and lake; the other one has other contents on two days."""

        def cells(self, table: str) -> list[CellState]:
            """Five days."""
            other = {1, 2} if table == "other" else set()
            return [
                CellState(Interval(at * DAY, (at + 1) * DAY), 1, at + (at in other))
                for at in range(5)
            ]

        def columns(self, table: str) -> dict[str, str]:
            """Those of the table, and one that the other has in another type."""
            return {name: spark, "n": "long" if table == "other" else "integer"}

        def rows(self, table: str, where: str = "", **_: Any) -> pa.Table:
            """No row, with the columns of the table."""
            if where:
                asked.append((table, where))
            return pa.schema([(name, type_)]).empty_table()

    stored: Any = Stored()
    found = table_diff(stored, stored, project()[model], model, "other")

    assert asked == [(model, where), ("other", where)]
    assert found.cells == Ranges((Interval(DAY, 3 * DAY),))
    assert found.columns == (("n", "int", "bigint"),)
    same = table_diff(stored, stored, project()[model], model, "same")
    assert (same.equal, len(asked)) == (True, 2)


# -- lateness by the times of rows, compared with counting them one by one


START = datetime(1969, 12, 20, tzinfo=UTC)  # before 1970: days are counted down there
MICRO = timedelta(microseconds=1)


@dataclass
class StoredRows:
    """A lake with one table."""

    table: pa.Table

    def rows(self, table: str, *, columns: Sequence[str], where: str | None) -> pa.Table:
        """Its columns."""
        assert (table, where) == ("clicks", None)
        return self.table.select(list(columns))


minutes = st.integers(0, 60 * 24 * 60)


@given(st.lists(st.tuples(minutes, st.integers(-90, 60 * 24 * 400)), min_size=1, max_size=60))
def test_counts_are_those_of_the_rows(drawn: list[tuple[int, int]]) -> None:
    """Ages, lookbacks and the picture have each row once, where plain Python puts it."""
    events = [START + timedelta(minutes=at) for at, _ in drawn]
    received = [at + timedelta(minutes=late) for at, (_, late) in zip(events, drawn, strict=True)]
    ages = [(b - a) // MICRO for a, b in zip(events, received, strict=True)]
    days = [(b.date() - a.date()).days for a, b in zip(events, received, strict=True)]

    columns = {"age": ages, "late": days, "rows": [1] * len(ages)}
    times = {"event": events, "received": received}
    found = measures_of(
        pa.table(
            {
                name: pa.array([at.replace(tzinfo=None) for at in some], pa.timestamp("us"))
                for name, some in times.items()
            }
            | {name: pa.array(some, pa.int64()) for name, some in columns.items()}
        )
    )

    assert found.rows == len(drawn)
    assert [rows for _, rows in found.ages] == [
        sum(low <= age < high for age in ages) for low, high in BOUNDS
    ]
    assert {one.days: (one.rows, one.event_days) for one in found.lookbacks} == {
        length: (
            sum(late > length for late in days),
            len({at.date() for at, late in zip(events, days, strict=True) if late > length}),
        )
        for length in LOOKBACKS
    }
    assert found.longest_days == max(days)
    assert found.heat.event_unit is found.heat.received_unit
    assert sum(rows for _, _, rows in found.heat.cells) == len(drawn)
    worst = Counter(at.date() for at, late in zip(events, days, strict=True) if late > 1)
    assert [rows for _, rows in found.worst] == sorted(worst.values(), reverse=True)[:10]


EDGES = [-(10**18), HOUR, DAY, 3 * DAY, 7 * DAY, 30 * DAY, 365 * DAY, 10**18]
BOUNDS = list(pairwise(EDGES))


def with_received(root: Path, select: str) -> Path:
    """The project with a source that says when rows were received, and another SELECT."""
    text = (root / "infold.yml").read_text(encoding="utf-8")
    text = text.replace(
        "event_time_column: event_ts\n",
        "event_time_column: event_ts\n    received_column: seen_at\n",
    )
    (root / "infold.yml").write_text(
        text.replace("event_ts: timestamp,", "event_ts: timestamp, seen_at: timestamp,"),
        encoding="utf-8",
    )
    model = root / "models" / "clicks.sql"
    before, _, _ = model.read_text(encoding="utf-8").rpartition("SELECT")
    model.write_text(f"{before}{select}\n", encoding="utf-8")
    return root


def test_the_received_column_is_found_under_its_name_in_the_table(tmp_path: Path) -> None:
    """A column is the received time where the query passes it on as it is, also by another name."""
    plain = "SELECT event_id, user_id, event_ts, seen_at{} FROM raw.clicks"
    other = "SELECT event_id, user_id, event_ts, event_ts AS seen_at FROM raw.clicks"
    columns = []
    for number, select in enumerate((plain.format(""), plain.format(" AS came_at"), other)):
        project = api.open_project(with_received(lay_out(tmp_path / str(number)), select))
        columns.append(received_column(project, project["clicks"]))

    assert columns == ["seen_at", "came_at", None]


def test_rows_of_the_table_tell_themselves(tmp_path: Path) -> None:
    """Both times are read; rows without one, or with one that no calendar has, are left out."""
    root = with_received(
        history(tmp_path / "shop"), "SELECT event_id, user_id, event_ts, seen_at FROM raw.clicks"
    )
    at = datetime(2024, 3, 1, 12, tzinfo=UTC)
    far = 10**18  # microseconds: the year 33,658, where seconds were taken for milliseconds
    times = [(at, micros_of(at)), (at, micros_of(at + timedelta(days=2))), (at, None), (at, far)]
    table = pa.table(
        {
            "event_ts": pa.array([a for a, _ in times], pa.timestamp("us", "UTC")),
            "seen_at": pa.array([b for _, b in times], pa.timestamp("us", "UTC")),
        }
    )
    project = api.open_project(root)

    found = lateness_of(project, api.ledger_of(project), cast("Lake", StoredRows(table)), "clicks")

    assert found.measures is not None
    assert (found.how, found.column, found.measures.rows) == (Lateness.RECEIVED, "seen_at", 2)
    assert [one.rows for one in found.measures.lookbacks] == [1, 0, 0, 0]


def test_the_newest_cell_is_read_whatever_its_size() -> None:
    """Cells are read from the newest on up to a number of rows, and always one that has some."""

    def since(*rows: int) -> int | None:
        found = _newest([CellState(day(at), of, 0, 0) for at, of in enumerate(rows)])
        return None if found is None else (found - FIRST) // DAY

    assert since(1, MOST_ROWS + 1) == 1
    assert since(1, MOST_ROWS + 1, 0) == 1
    assert since(1, 1, MOST_ROWS) == 2
    assert since(2, 1, MOST_ROWS - 1) == 1
    assert since(1, 1, MOST_ROWS - 2) is None
