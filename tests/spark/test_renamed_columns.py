"""Columns that are renamed, added or get other values: only what reads a difference is built."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from tests.spark.test_destructive import EVENTS, SUMS, VISITS, WHOLE
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model, window

from infold import api
from infold.core.definition import Derivation
from infold.core.model import table_name
from infold.core.plan import Action
from infold.spark import engine

pytestmark = pytest.mark.spark


Column = tuple[str, str]
LOOSE = (
    ("events", "day"),
    ("visits", "most"),
    ("sums", "amount"),
    ("whole", "most"),
    ("daily", "amount"),
)
"""Of each model a column that no other one reads, by its first name."""
READ = (("events", "amount"), ("daily", "n"))
"""Columns that others read: sessions and a cumulative aggregate, and a window over days."""


class Renaming(DailyProject):
    """Models of every kind, with columns whose names are drawn again and again."""

    def __init__(self, root: Path, seed: int) -> None:
        super().__init__(root)
        self.draw = random.Random(seed)
        self.names = {column: column[1] for column in (*LOOSE, *READ)}
        self.earlier: dict[Column, str] = {}

    def rename(self, *columns: Column) -> None:
        """Give some columns new names, and write the models with them."""
        self.earlier = {column: self.names[column] for column in columns}
        for column in columns:
            self.names[column] = f"c{self.draw.randrange(10**6)}"
        self.declare()

    def declare(self) -> None:
        """Write the models with the names that their columns have now."""
        of = self.names
        paid, n = of["events", "amount"], of["daily", "n"]
        read = f"amount AS {paid}, day AS {of['events', 'day']} FROM"
        daily = DAILY.replace("AS amount", f"AS {of['daily', 'amount']}").replace("AS n", f"AS {n}")
        files = {
            "events": EVENTS.replace("amount FROM", read),
            "visits": VISITS.replace(
                "max(amount) AS most", f"max({paid}) AS {of['visits', 'most']}"
            ),
            "sums": SUMS.replace("sum(amount) AS amount", f"sum({paid}) AS {of['sums', 'amount']}"),
            "whole": WHOLE.replace("AS most", f"AS {of['whole', 'most']}"),
            "daily": model(daily),
            "rolling": model(ROLLING.replace("n, sum(n)", f"{n} AS n, sum({n})")),
        }
        for name in {name for name, _ in self.earlier}:
            pairs = [f"{of[c]}: {was}" for c, was in self.earlier.items() if c[0] == name]
            front = f"---\nrenamed_from: {{{', '.join(pairs)}}}\n"
            files[name] = files[name].replace("---\n", front, 1)
        self.models(**files)

    def files_of(self, name: str) -> set[str]:
        """The files of rows that a table has now."""
        rows = api.session(self.project()).sql(
            f"SELECT file_path FROM infold.shop.{table_name(name)}.files"
        )
        return {row[0] for row in rows.collect()}


def test_drawn_names_of_every_kind(tmp_path: Path) -> None:
    """
    Columns of all kinds of tables are renamed at once: no file of theirs changes and no reader is
    built, not even one that names such a column. With late and removed files before, between and
    after, all tables equal a rebuild.

    The step of a run that dies after the commit is finished by the next one.
    """
    shop = Renaming(tmp_path / "shop", 17)
    shop.declare()
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00", "2024-03-02T10:10:00")
    gone = shop.land("2024-03-01T10:20:00", "2024-03-04T10:00:00", who="bob")
    shop.go()
    every = {name for name, _ in LOOSE}
    before = {name: shop.files_of(name) for name in every}

    shop.rename(*LOOSE, *READ)
    done = shop.go()
    assert {(step.model, step.action) for step, _ in done.steps} == {
        (name, Action.EVOLVE) for name in every
    }
    assert {name: shop.files_of(name) for name in every} == before
    assert sum(receipt.read + receipt.written for _, receipt in done.steps) == 0
    assert done.notes == ()
    tables = api.lake_of(shop.project())
    assert all(shop.names[column] in tables.columns(column[0]) for column in (*LOOSE, *READ))

    shop.land("2024-03-02T10:15:00", who="bob")
    shop.drop(gone)
    assert "evolve" not in str(shop.actions(select=["raw.clicks", "events"]))
    shop.rename(*READ, ("visits", "most"))
    shop.land("2024-03-02T10:20:00", "2024-03-05T10:00:00", who="bob")
    steps = shop.actions()
    assert ("evolve" in steps["events"], "evolve" in steps["visits"]) == (True, True)
    assert steps["daily"] == ["evolve", "recompute"]

    shop.rename(("visits", "most"))
    shop.die_at("visits", "table visits: after commit")
    assert shop.names["visits", "most"] in api.lake_of(shop.project()).columns("visits")
    assert shop.actions() == {}
    shop.land("2024-03-01T10:05:00")
    shop.run()


TOTALS = "SELECT cast(ts AS date) AS day, sum(amount) AS total FROM events GROUP BY 1"
MOST = """SELECT day, total, max(total) OVER (
  ORDER BY day RANGE BETWEEN INTERVAL 6 DAYS PRECEDING AND CURRENT ROW) AS most
FROM daily"""
CODES = """---
materialization: table
---
SELECT who, max(amount) AS best FROM raw.clicks GROUP BY who"""
JOINED = EVENTS.replace("id, who, ts, amount FROM raw.clicks", "c.id, c.ts, k.best FROM") + (
    " raw.clicks AS c LEFT JOIN codes AS k ON c.who = k.who"
)


def renamed(text: str, old: str, new: str) -> str:
    """A model with another name of one of its columns, whether that is a column of its input."""
    named, made = f"{old} AS {new}", f" AS {old}"
    named = text.replace(made, f" AS {new}") if made in text else text.replace(old, named)
    return named.replace("---\n", f"---\nrenamed_from: {{{new}: {old}}}\n", 1)


def test_readers_follow_from_their_stored_rows(tmp_path: Path) -> None:
    """
    Days with a new column that follows from another, over events with a renamed one: nothing is
    read. Events that join a lookup with a renamed column follow from their stored rows too.

    Sessions cannot be folded again from events that had other names: they are built.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00", "2024-03-02T10:20:00")
    shop.models(
        events=EVENTS,
        daily=model(TOTALS),
        rolling=model(MOST),
        visits=VISITS,
        codes=CODES,
        joined=JOINED,
    )
    shop.go()

    twice = TOTALS.replace("AS total", "AS total, sum(amount) * 2 AS twice")
    shop.models(
        events=renamed(EVENTS, "amount", "paid"),
        daily=model(twice.replace("amount", "paid")),
        rolling=model(MOST.replace("total, max", "total, total * 2 AS twice, max")),
        visits=VISITS.replace("max(amount)", "max(paid)").replace("30 minutes", "10 minutes"),
        codes=renamed(CODES, "best", "top"),
        joined=JOINED.replace("k.best", "k.top AS best, k.top * 2 AS twice"),
    )
    done = api.run(shop.project(), jobs=2)

    order = [step.model for step, _ in done.steps]
    assert {step.model: step.action for step, _ in done.steps} == {
        **dict.fromkeys(("rolling", "daily", "joined"), Action.DERIVE),
        **dict.fromkeys(("events", "codes"), Action.EVOLVE),
        "visits": Action.BUILD,
    }
    assert len(order) == 6
    for reader, read in (("rolling", "daily"), ("daily", "events"), ("joined", "codes")):
        assert order.index(reader) < order.index(read)
    assert {step.model for step, receipt in done.steps if receipt.read} == {"visits"}
    shop.land("2024-03-01T11:00:00")
    shop.run()


def test_a_type_that_becomes_wider_beside(tmp_path: Path) -> None:
    """Where the new type would be another one than that of the stored rows, they are built, once
    and after their input.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land("2024-03-01T10:00:00", "2024-03-02T10:00:00")
    daily = TOTALS.replace("AS total", "AS total, max(id) AS last")
    shop.models(events=EVENTS, daily=model(daily))
    shop.go()

    shop.configure("id: int", "id: bigint")
    shop.models(daily=model(daily.replace("AS last", "AS last, max(id) * 2 AS twice")))

    assert [*shop.actions().items()] == [("events", ["evolve"]), ("daily", ["build"])]
    assert [row[2:] for row in shop.rows("daily")] == [(1, 2), (2, 4)]


DAYS = ("2024-03-01T10:00:00Z", "2024-03-01T11:00:00Z", "2024-03-02T10:00:00Z")
CLICKS = """---
materialization: events
unique_key: [id]
timeseries: {{event_time_column: ts, granularity: day}}
---
SELECT id, who, ts, amount{0} FROM raw.clicks
"""
SESSIONS = """---
materialization: sessions
sessions: {user: who, gap: 30 minutes}
---
SELECT count(*) AS n, sum(amount) AS spent FROM clicks
"""
NAMES = (
    "---\nmaterialization: table\n---\nSELECT DISTINCT who, {0} FROM raw.clicks WHERE who = 'ann'\n"
)
BASE = "SELECT cast(ts AS date) AS day, id, {0} FROM raw.clicks"


def built(shop: DailyProject) -> dict[str, str]:
    """What a run builds, by model, and how."""
    return {step.model: str(step.action) for step, _ in shop.go().steps}


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """Some clicks, a table of them, and readers of some of its columns."""
    made = DailyProject(tmp_path / "shop")
    made.land(*DAYS)
    made.models(
        base=model(BASE.format("id % 2 AS x")),
        ids=model("SELECT day, id FROM base"),
        values=model("SELECT day, sum(x) AS x FROM base GROUP BY 1"),
        pairs=model("SELECT day, id * 10 + x AS pair FROM base"),
        every=model("WITH b AS (SELECT * FROM base) SELECT * FROM b"),
    )
    return made


def test_columns_are_added_and_get_other_values(shop: DailyProject) -> None:
    """
    Readers that name their columns are left alone by others, and late rows reach them; a change
    and late rows of one run reach each where it reads them.

    So do lookups that are built whole, and events with sessions over them.
    """
    shop.models(
        names=NAMES.format("upper(who) AS name"),
        named=model(
            "SELECT cast(c.ts AS date) AS day, n.name FROM raw.clicks c "
            "JOIN names n ON c.who = n.who"
        ),
        clicks=CLICKS.format(""),
        visits=SESSIONS,
    )
    built(shop)

    shop.models(
        base=model(BASE.format("id % 2 AS x, 'new' AS y")),
        names=NAMES.format("upper(who) AS name, 1 AS y"),
        clicks=CLICKS.format(", day"),
    )
    project = shop.project()
    said = {one.model: one.why for one in api.make_plan(project, api.observe(project)).skipped}
    assert said["ids"] == said["values"] == said["pairs"] == "reads no changed column of base"
    assert built(shop) == {"base": "derive", "every": "build", "names": "build", "clicks": "derive"}
    assert {y for *_, y in (*shop.rows("base"), *shop.rows("every"))} == {"new"}
    assert built(shop) == {}
    traces = api.ledger_of(shop.project()).traces()
    assert {traces[name].inputs["base"] for name in ("ids", "values", "pairs")} == {2}

    shop.land("2024-03-02T11:00:00Z", who="bob")
    shop.models(
        base=model(BASE.format("id % 2 AS x, 'newer' AS y")), names=NAMES.format("who AS name")
    )
    steps = {step.model: step for step, _ in shop.go().steps}
    assert steps.keys() == {
        *("raw.clicks", "base", "ids", "values", "pairs", "every"),
        *("names", "named", "clicks", "visits"),
    }
    assert [str(steps[name].action) for name in ("clicks", "visits")] == ["ingest", "fold"]
    for name in ("ids", "values", "pairs"):
        assert list(steps[name].cells) == [window("2024-03-02", "2024-03-03")]
    assert {y for *_, y in (*shop.rows("base"), *shop.rows("every"))} == {"newer"}
    assert shop.rows("values", "x") == [(1,), (1,)]
    assert [pair for _, pair in shop.rows("pairs")] == [11, 20, 31, 40]
    assert shop.rows("named", "name") == [("ann",)] * 3
    assert shop.rows("visits", "n") == [(1,)] * 4


def test_a_column_of_another_type_is_another_column(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Equal numbers of another type are built again, and the readers' tables get that type.

    Where comparing rows fails, readers are built as if all had changed; a table that lacks a
    column of its definition does not equal its rebuild.
    """
    built(shop)
    shop.models(base=model(BASE.format("cast(id % 2 AS bigint) + 3000000000 AS x")))
    readers = {"values": "build", "pairs": "build", "every": "build"}
    assert built(shop) == {"base": "derive", **readers}
    assert shop.rows("pairs")[0][1] == 3000000011

    def fails(*_: object) -> None:
        raise RuntimeError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "with_unchanged_columns", fails)
        shop.models(base=model(BASE.format("id % 2 AS x")))
        assert built(shop).keys() == {"base", "ids", "values", "pairs", "every"}
    shop.verify()

    with monkeypatch.context() as patch:
        patch.setattr(Derivation, "changes_nothing", True)
        shop.models(base=model(BASE.format("id % 2 AS x, 'new' AS y")))
        built(shop)
    [verdict] = api.verify(shop.project(), select=["base"]).models
    assert verdict.note.startswith("its table has other columns (y): `infold forget base`")


@pytest.mark.parametrize(
    ("more", "earlier_run"), [(", 'new' AS y", False), ("", False), ("", True)]
)
def test_values_that_hash_alike_in_another_type(
    tmp_path: Path, more: str, *, earlier_run: bool
) -> None:
    """
    100 and 1.00 hash alike: the types alone tell that cents became euros.

    The readers' rows are of an earlier definition, so they are computed by it, not built; with
    another column the hashes differ, and without none does.
    """
    shop = DailyProject(tmp_path / "shop")
    shop.land(*DAYS)
    paid, forward = "SELECT day, int(x) + {} AS n FROM base", "{forward_only: true}"
    cents = BASE.format("cast(amount * 100 AS decimal(5,0)) AS x")
    shop.models(base=model(cents), paid=model(paid.format(0), forward))
    built(shop)
    assert shop.rows("paid", "n") == [(100,)] * 3

    shop.models(paid=model(paid.format(7), forward))
    if earlier_run:
        built(shop)
    shop.models(base=model(BASE.format(f"cast(amount AS decimal(5,2)) AS x{more}")))
    assert built(shop) == {"base": "build", "paid": "recompute"}
    assert shop.rows("paid", "n") == [(1,)] * 3
    assert api.verify(shop.project()).equal


def test_values_that_change_places(shop: DailyProject) -> None:
    """Rows count, not columns one by one: two columns may have the same values in other rows."""
    shop.models(base=model(BASE.format("id AS x")))
    built(shop)
    shop.models(base=model(BASE.format("if(id < 3, 3 - id, id) AS x")))

    assert built(shop).keys() == {"base", "pairs", "every"}
    assert [pair for _, pair in shop.rows("pairs")] == [12, 21, 33]
