"""What reads changed rows: lookups by key, recomputed tables, views of unions, seeds.

Cases are projects with a few drawn rows. Many others do not change, so that what is read of them
can be counted.
"""

from __future__ import annotations

from collections import Counter
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, CROWD, SOURCE, WITH_RATES, put
from tests.spark.events.clicks_project import ClicksProject, NewShop
from tests.spark.project import VIEW

from infold import api
from infold.api import environments
from infold.api.environments import run_environment, show_environment
from infold.core.interval import Interval, parse_instant_text, show_instant
from infold.core.plan import Action, Step
from infold.core.project import Project
from infold.core.record import Receipt

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


USERS = """---
materialization: cumulative_aggregate
---
SELECT user_id, count(*) AS n FROM clicks GROUP BY user_id"""
TABLE = """---
materialization: table
timeseries: {{event_time_column: at, partition_column: day}}
incremental: {{}}
---
SELECT cast(c.at AS date) AS day, c.id, {0}"""
KNOWN = TABLE.format("u.n FROM clicks c LEFT JOIN users u ON u.user_id = c.user_id")
PRICED = TABLE.format("r.rate * c.amount AS price FROM clicks c LEFT JOIN raw.rates r USING (url)")
LISTED = TABLE.format("c.url FROM clicks c WHERE c.url IN (SELECT url FROM raw.rates)")


def rates(shop: ClicksProject, *rows: str) -> None:
    """Replace the file of rates."""
    shop.write("rates/rates.csv", "\n".join(["url,rate", *rows]) + "\n")


def steps(shop: ClicksProject, *select: str) -> dict[str, tuple[Step, Receipt]]:
    """What a run did, by model."""
    result = shop.go(select=select)
    return {step.model: (step, receipt) for step, receipt in result.steps}


def days_of(step: Step) -> list[str]:
    """The days of February that a step built."""
    february = step.cells & step.cells.of(
        (Interval(parse_instant_text("2024-02-01"), parse_instant_text("2024-03-01")),)
    )
    found = []
    for part in february:
        at = part.start
        while at < part.end:
            found.append(show_instant(at).removeprefix("2024-02-"))
            at += 86_400_000_000
    return found


def test_cells_with_changed_keys(new_shop: NewShop, spark: SparkSession) -> None:
    """
    A changed lookup row rebuilds the cells with rows of its key, and no other: of a cumulative
    lookup for a user's late row, a user's last row removed, and a new user; of a file for changed,
    added, removed and repeated rows; of a rebuilt lookup for keys whose rows differ, all keys when
    a used column changes its type, and none when it has another column that nobody uses.
    """
    shop = new_shop(CLICKS, WITH_RATES)
    rates(shop, "/0,10", "/1,11", "/2,12")
    days = [f"2024-02-{day + 1:02} 10:00:00" for day in range(CROWD)]
    put(shop, "crowd.csv", *(f"c{n},u{n:02},{days[n]},/{n % 4},1" for n in range(CROWD)))
    put(shop, "ann.csv", *(f"a{n},ann,{days[n]},/a,1" for n in (3, 7, 15)))
    best = "---\nmaterialization: table\n---\nSELECT url, {0} FROM raw.rates"
    shop.models(
        users=USERS,
        known=KNOWN,
        priced=PRICED,
        listed=LISTED,
        best=best.format("rate"),
        best_price=PRICED.replace("raw.rates", "best"),
    )
    shop.run()

    # Twenty users, one on each day, and Ann on three of them; she comes on a fourth.
    put(shop, "late.csv", "a9,ann,2024-02-12 10:00:00,/a,1")
    rates(shop, "/1,11", "/0,10", "/2,13")
    done = steps(shop)
    step, receipt = done["known"]
    assert days_of(step) == ["04", "08", "12", "16"]
    # four days with a click of the crowd each and four of Ann's; the users are read whole
    assert receipt.read == 4 + 4 + CROWD + 1
    assert [reason.detail for reason in step.reasons] == [
        "1 row in 1 cell of clicks",
        "4 rows with changed keys of users",
    ]
    twos = ["03", "07", "11", "15", "19"]
    for name in ("priced", "listed", "best_price"):
        assert days_of(done[name][0]) == sorted([*twos, "12"])
    assert done["priced"][1].read == 5 + 2 + 3
    assert done["listed"][1].cells_cut_off == 5

    put(shop, "ann.csv")
    put(shop, "new.csv", "e1,eve,2024-02-20 11:00:00,/3,1")
    rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,1")
    done = steps(shop)
    assert days_of(done["known"][0]) == ["04", "08", "12", "16", "20"]
    ones = ["02", "06", "10", "14", "18"]
    changed = [*ones, *twos, "12"]
    assert days_of(done["priced"][0]) == sorted([*changed, "04", "08", "16", "20"])  # clicks did
    assert days_of(done["best_price"][0]) == days_of(done["priced"][0])

    shop.model("best", best.format("rate, 1 AS one"))
    assert set(steps(shop)) == {"best"}
    at = shop.version("priced")
    rates(shop, "/2,13", "/2,14", "/a,7", "/0,10", "/nobody,2")
    shop.model("best", best.format("cast(rate AS bigint) AS rate, 1 AS one"))
    done = steps(shop)
    step, receipt = done["priced"]
    assert (days_of(step), receipt.read, receipt.commits) == ([], 0, 0)
    assert len(days_of(done["best_price"][0])) == 29
    assert (shop.version("priced"), steps(shop)) == (at, {})

    # Readers of tables whose earlier snapshots somebody expired are built.
    rates(shop, "/0,10", "/1,11", "/a,7")
    put(shop, "last.csv", "l1,u03,2024-02-05 10:10:00,/1,2")
    steps(shop, "clicks", "best")
    project = api.open_project(shop.root)
    for name in ("raw__rates", "best", "clicks"):
        spark.sql(
            f"CALL infold.system.expire_snapshots(table => '{project.name}.{name}', "
            "older_than => TIMESTAMP '2100-01-01', retain_last => 1)"
        )
    built = dict.fromkeys(("priced", "listed", "best_price"), Action.BUILD)
    assert {name: step.action for name, (step, _) in steps(shop).items()} == {
        "users": Action.FOLD,  # rows were only added since, and clicks has them
        "known": Action.RECOMPUTE,
        **built,
    }
    clicks, rate = shop.records("clicks"), {"/0": 10, "/1": 11, "/a": 7}
    visits = Counter(one["user_id"] for one in clicks)
    assert shop.rows("known", "id", "n") == sorted(
        (one["id"], visits[one["user_id"]]) for one in clicks
    )
    prices = {one["id"]: rate[one["url"]] * one["amount"] for one in clicks if one["url"] in rate}
    for name in ("priced", "best_price"):
        assert dict(shop.rows(name, "id", "price")) == {one["id"]: None for one in clicks} | prices
    assert {id_ for (id_,) in shop.rows("listed", "id")} == prices.keys()


VISITS = """---
materialization: table
timeseries: {event_time_column: at, granularity: day}
incremental: {}
---
SELECT user_id, at, url, amount FROM clicks"""
SESSIONS = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes}
---
SELECT count(*) AS events, sum(amount) AS revenue, last(url) AS exit_url FROM visits"""
PAGES = """---
materialization: cumulative_aggregate
---
SELECT url, count(*) AS visits, sum(amount) AS revenue FROM all_visits GROUP BY url"""
ALL_VISITS = """---
materialization: table
---
SELECT * FROM visits"""


def test_only_changed_rows_are_folded(new_shop: NewShop) -> None:
    """
    A late click in a day of many is one folded row, with its session and page, and no other row is
    read. When one of three equal rows is removed, and another gets a new amount, the third stays
    and no other row changes; a repeated delivery is no change.
    """
    shop = new_shop(CLICKS, SOURCE)
    shop.model("visits", VISITS)
    shop.model("sessions", SESSIONS)
    shop.model("all_visits", ALL_VISITS)
    shop.model("pages", PAGES)
    put(shop, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/{n},1" for n in range(CROWD)))
    put(shop, "ann.csv", *(f"{n},ann,2024-03-01 09:00:00,/a,1" for n in (1, 2, 3)))
    shop.run()

    put(shop, "late.csv", "9,ann,2024-03-01 09:20:00,/b,5")
    at = shop.version("visits")
    result = folded_models(shop)
    assert shop.changes(at, "visits") == [("2024-03-01", 1, 0)]
    assert shop.changes(at, "all_visits")[0][1:] == (1, 0)
    assert result == {"sessions": (2, 1, 1), "pages": (1, 1, 0)}

    put(shop, "ann.csv", "1,ann,2024-03-01 09:00:00,/a,1", "3,ann,2024-03-01 09:00:00,/a,2")
    put(shop, "again.csv", "9,ann,2024-03-01 09:20:00,/b,5")
    at = shop.version("visits")
    result = folded_models(shop)
    assert shop.changes(at, "visits") == [("2024-03-01", 1, 2)]
    assert result["sessions"][1:] == (1, 1)
    assert ("ann", "/b") in {(row[1], row[-1]) for row in shop.rows("sessions")}
    assert [row for row in shop.rows("pages") if row[0] == "/a"] == [("/a", 2, 3)]


def folded_models(shop: ClicksProject) -> dict[str, tuple[int, int, int]]:
    """Rows read, written and removed by the models that fold; all of them did."""
    result = shop.go()
    found = {step.model: (step, receipt) for step, receipt in result.steps}
    folds = {name: found[name] for name in ("sessions", "pages")}
    assert {step.action for step, _ in folds.values()} == {Action.FOLD}
    return {name: (r.read, r.written, r.removed) for name, (_, r) in folds.items()}


SOURCES = """    event_time_column: at
    columns: {id: string, user_id: string, at: timestamp, url: string, amount: "decimal(9,2)"}
  raw.taps:
    path: taps/*.csv
    event_time_column: tapped
    columns: {tap: string, who: string, tapped: timestamp, cur: string, cents: int}
  raw.rates:
    path: rates/*.csv
    columns: {cur: string, rate: "decimal(9,2)"}
"""
TAPS = """---
materialization: events
unique_key: [tap]
timeseries: {event_time_column: tapped}
---
SELECT * FROM raw.taps"""
BOTH = (
    VIEW
    + """SELECT id, user_id AS u, at, url AS page, 'eur' AS cur, amount FROM clicks
UNION ALL
SELECT tap, who, tapped, 'app', lower(cur), cast(cents / 100 AS decimal(9,2)) FROM taps
WHERE cents >= 0"""
)
WITH_PRICES = (
    VIEW
    + """SELECT b.*, round(b.amount * r.rate, 2) AS price, r.rate IS NULL AS unknown
FROM both b LEFT JOIN raw.rates r ON r.cur = b.cur"""
)
OF_PRICED = """---
materialization: sessions
sessions: {user: u, gap: 30 minutes}
---
SELECT count(*) AS events, sum(price) AS revenue, count_if(unknown) AS unknown,
  first(id) AS first_id, last(id) AS last_id, first(page) AS entry
FROM priced"""
PAGE_PRICES = """---
materialization: cumulative_aggregate
---
SELECT page, sum(price) AS revenue, count(DISTINCT u) AS people FROM priced GROUP BY page"""
PRICES = """---
materialization: cumulative_aggregate
---
SELECT cur, unknown, count(*) AS n, sum(price) AS revenue, min(price) AS least FROM priced
GROUP BY ALL"""
"""It follows from states."""
MANY = 30


@pytest.fixture
def shop(new_shop: NewShop) -> ClicksProject:
    """A crowd on the web, Ann on the web and in the app."""
    made = new_shop(CLICKS, SOURCES)
    made.models(
        taps=TAPS,
        both=BOTH,
        priced=WITH_PRICES,
        sessions=OF_PRICED,
        pages=PAGE_PRICES,
        prices=PRICES,
    )
    other(made, "rates", "cur,rate", "eur,1", "usd,0.5")
    other(made, "taps", "tap,who,tapped,cur,cents", "t1,ann,2024-03-02 09:10:00,USD,400")
    put(made, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/{n},1" for n in range(MANY)))
    put(made, "ann.csv", "a1,ann,2024-03-02 09:00:00,/a,1", "a2,ann,2024-03-02 09:20:00,/b,2")
    made.run()
    assert ann(made) == [("2024-03-02 09:00", "2024-03-02 09:20", 3, 5, 0, "a1", "a2", "/a")]
    return made


def other(shop: ClicksProject, folder: str, header: str, *rows: str, name: str = "file") -> None:
    """A file of another source than the clicks."""
    shop.write(f"{folder}/{name}.csv", "\n".join([header, *rows]) + "\n")


def ann(shop: ClicksProject) -> list[tuple[Any, ...]]:
    """Ann's sessions: all values but their id and hers."""
    found = [record for record in shop.records("sessions") if record["u"] == "ann"]
    return sorted(
        tuple(value for name, value in record.items() if name not in {"session_id", "u"})
        for record in found
    )


def folded(shop: ClicksProject) -> dict[str, Receipt]:
    """What a run did to the sessions and pages, which were folded."""
    result = shop.go()
    found = [(step, receipt) for step, receipt in result.steps if step.model in _FOLDS]
    assert {step.action for step, _ in found} == {Action.FOLD}
    return {step.model: receipt for step, receipt in found}


_FOLDS = ("sessions", "pages")


def test_rates_that_change_and_events_of_two_tables(shop: ClicksProject) -> None:
    """A changed rate makes the sessions of its currency read again, and an event counts once for
    each of its rates; rows are ordered by time, then id.
    """
    other(shop, "rates", "cur,rate", "usd,2", "eur,1.00", "gbp,7", "gbp,8")
    more = "t2,ann,2024-03-02 12:00:00,GBP,100", "t4,ann,2024-03-02 12:10:00,JPY,100"
    tied = "t3,ann,2024-03-02 09:20:00,EUR,700"
    other(shop, "taps", "tap,who,tapped,cur,cents", *more, tied, name="more")
    put(shop, "late.csv", "a0,ann,2024-03-02 09:20:00,/z,3")

    receipts = folded(shop)

    assert ann(shop) == [
        ("2024-03-02 09:00", "2024-03-02 09:20", 5, 21, 0, "a1", "t3", "/a"),
        ("2024-03-02 12:00", "2024-03-02 12:10", 3, 15, 1, "t2", "t4", "app"),
    ]
    # the row as it was and as it is, five that came, and those of their sessions
    assert receipts["sessions"].read <= 1 + 1 + 5 + 5 + 3
    assert receipts["sessions"].written == 2
    assert {("/a", 1, 1), ("/b", 2, 1), ("/z", 3, 1), ("app", 30, 1)} <= {*shop.rows("pages")}
    assert sorted(shop.rows("prices")) == [
        ("eur", False, 34, 43, 1),
        ("gbp", False, 2, 15, 7),
        ("jpy", True, 1, None, None),
        ("usd", False, 1, 8, 8),
    ]


SEED_PRICES = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
SELECT cast(c.at AS date) AS day, c.id, p.label, c.amount * p.rate AS price
FROM clicks c LEFT JOIN prices p USING (url)"""
TYPES = """seeds:
  prices:
    columns: {rate: "decimal(5,2)", since: timestamp, share: double, many: bigint, on: boolean}
"""
ROWS = r"""url,rate,label,since,share,many,on,day
/a,1.50,"it's ""A"" \ ${x}
on two lines",2024-03-01T10:00:00.123456+02:00,1e-3,-9223372036854775808,true,2024-01-01
/b,2,,,.5,,FALSE,
/c,,"",2024-03-01 10:00,-0.1,7,,é
"""


def test_production_has_the_rows_that_were_applied(new_shop: NewShop) -> None:
    """
    Values are as the file has them; a changed row builds what contains its key, old or new.

    Where definitions are applied by hand, a changed file of a seed changes nothing before that.
    Runs go on with the rows that were applied, an environment has the new ones, and a promote
    brings them, or `infold apply`; a rollback takes them back.
    """
    shop = new_shop(CLICKS, SOURCE)
    seed = shop.write("seeds/prices.csv", ROWS)
    shop.configure("{storage", "{apply: manual, storage")
    shop.configure("", TYPES)
    shop.model("priced", SEED_PRICES)
    put(shop, "a.csv", *(f"e{n},u,2024-02-{n + 1:02} 10:00:00,/{'abc'[n % 3]},2" for n in range(9)))

    def declared() -> Project:
        return shop.project(declared=True)

    def applied() -> dict[str, int]:
        return {step.model: receipt.cells_built for step, receipt in shop.apply().steps}

    def price(rows: list[dict[str, object]]) -> set[object]:
        return {row["price"] for row in rows if str(row["id"]) in {"e1", "e4", "e7", "x"}}

    def stored() -> set[object]:
        return price(shop.shown("priced"))

    assert applied() == {"prices": 1, "clicks": 9, "priced": 9}
    assert shop.rows("prices") == [
        (
            "/a",
            Decimal("1.50"),
            'it\'s "A" \\ ${x}\non two lines',
            "2024-03-01 08:00:00.123456",
            0.001,
            -(2**63),
            True,
            "2024-01-01",
        ),
        ("/b", Decimal("2.00"), None, None, 0.5, None, False, None),
        ("/c", None, "", "2024-03-01 10:00", -0.1, 7, None, "é"),
    ]
    assert stored() == {Decimal("4.0000")}
    seed.write_text(ROWS.replace("/b,2,", "/b,3,"))
    put(shop, "b.csv", "x,u,2024-02-20 10:00:00,/b,2")
    assert shop.receipts(now="2024-04-01").keys() == {"clicks", "priced"}
    assert stored() == {Decimal("4.0000")}
    run_environment(declared(), "dev")
    assert price(show_environment(declared(), "dev", "priced").to_pylist()) == {Decimal("6.0000")}
    assert stored() == {Decimal("4.0000")}
    environments.promote(declared(), environments.find_promotion(declared(), "dev"))
    assert stored() == {Decimal("6.0000")}
    environments.rollback(declared(), environments.find_rollback(declared()))
    assert stored() == {Decimal("4.0000")}
    assert applied().keys() == {"prices", "priced"}
    assert stored() == {Decimal("6.0000")}
    seed.write_text(ROWS.replace("/b,2,", "/b,4,"))
    assert applied() == {"prices": 1, "priced": 4}
    assert stored() == {Decimal("8.0000")}
    seed.write_text(ROWS.partition("\n")[0] + "\n")
    assert applied() == {"prices": 1, "priced": 10}
    assert stored() == {None}
