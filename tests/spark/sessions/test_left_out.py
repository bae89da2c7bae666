"""Sessions in projects: rows that they leave out, averages, rules, starts."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.spark.cumulative.clicks_by_user import CLICKS, SESSIONS, SOURCE, put
from tests.spark.events.clicks_project import ClicksProject, NewShop
from tests.spark.project import (
    CUMULATIVE,
    VIEW,
    WHOLE,
    SparkProject,
    events,
    model,
    new_name,
    sessions,
)

from infold import api
from infold.core.record import Receipt
from infold.core.report import RunFailed

pytestmark = pytest.mark.spark


Row = Mapping[str, Any]

FILES = """  raw.{name}:
    path: {name}/*.json
    event_time_column: at
    columns: {{id: string, at: timestamp, u: string, o: string, k: string}}
"""
LOOKUP = """  raw.n:
    path: n/*.json
    columns: {k: string, name: string}
"""
LEFT_OUT = """---
materialization: sessions
sessions: {%s}
---
SELECT count(*) AS events FROM %s"""

MODELS = {
    # Columns of a table.
    "a_users": ("user: u, gap: 30 minutes", "c"),
    "b_paid": ("user: u, gap: 1 hour", "c WHERE k = 'pay'"),
    "c_orders": ("identifier: [o], user: u", "c"),
    # An expression, and a view that shows more users than there are, or fewer.
    "d_named": ("user: 'nullif(u, ''x'')', gap: 30 minutes", "c"),
    "e_seen": ("user: who, gap: 30 minutes", "seen"),
    # Two landed sources, without a key, as one.
    "f_both": ("user: who, gap: 30 minutes", "both"),
    # A user that a lookup knows, at times.
    "g_known": ("user: who, gap: 30 minutes", "known"),
}
VIEWS = {
    "seen": "SELECT at, id, coalesce(u, o) AS who FROM c WHERE k IS NOT NULL",
    "known": "SELECT at, id, coalesce(u, name) AS who FROM c LEFT JOIN raw.n ON c.k = n.k",
    "both": "SELECT at, upper(u) AS who, o FROM raw.w WHERE k = 'pay' "
    "UNION ALL SELECT at, u, o FROM raw.m",
}
TESTS: Mapping[str, tuple[str, str, Callable[[Row], bool]]] = {
    "a_users": ("c", "null user", lambda row: row["u"] is None),
    "b_paid": ("c", "null user", lambda row: row["u"] is None and row["k"] == "pay"),
    "c_orders": ("c", "null identifier", lambda row: row["o"] is None),
    "d_named": ("c", "null user", lambda row: row["u"] in (None, "x")),
    "e_seen": (
        "c",
        "null user",
        lambda row: row["u"] is None and row["o"] is None and row["k"] is not None,
    ),
    "f_both": ("wm", "null user", lambda row: row["u"] is None),
    "g_known": ("c", "null user", lambda row: row["u"] is None),
}
"""Of each model the sources whose rows it reads, why it leaves rows out, and which."""


class LeftOutProject(SparkProject):
    """A project of some of the models, and the files of its sources."""

    now = "2025-01-01"

    def __init__(self, root: Path, warehouse: Path, *models: str) -> None:
        sources = "".join(FILES.format(name=name) for name in "cwm") + LOOKUP
        target = f"targets:\n  dev: {{storage: iceberg, warehouse: '{warehouse}'}}\n"
        super().__init__(root, f"name: {new_name('out')}\nsources:\n{sources}{target}", *"cwmn")
        self.of_sessions = models
        self.models(c=events("SELECT * FROM raw.c"))
        if "f_both" in models:
            self.models(**{name: VIEW + sql for name, sql in VIEWS.items()})
        self.models(**{name: LEFT_OUT % MODELS[name] for name in models})
        self.files: dict[tuple[str, str], list[Row]] = {}

    def put(self, source: str, name: str, rows: list[Row]) -> None:
        """A file, new or in the place of another."""
        self.files[source, name] = rows
        self.write(f"{source}/{name}", "".join(json.dumps(row) + "\n" for row in rows))

    def gone(self, source: str, name: str) -> None:
        """A file goes."""
        del self.files[source, name]
        (self.root / source / name).unlink()

    def run(self) -> Receipt:
        """One run; its receipt."""
        return self.go(allow_removals=False).receipt

    def left_out(self, **how: Any) -> list[Row]:
        """What ``show set_aside`` shows."""
        rows: list[Row] = api.show(self.project(), "set_aside", **how).to_pylist()
        return rows

    def counted(self) -> dict[str, int]:
        """What ``status`` says of the sessions."""
        found = api.status(self.project())
        return {one.model: one.set_aside for one in found if one.model in self.of_sessions}

    def there(self, source: str) -> list[tuple[str, Row]]:
        """The rows of a source, with their files; of copies of one event in c any one."""
        every = [
            (f"{source}/{name}", row)
            for (of, name), rows in sorted(self.files.items())
            for row in rows
            if of == source and row.get("id", "") is not None
        ]
        once = {row["id"]: (file, row) for file, row in every} if source == "c" else {}
        return list(once.values()) or every

    def expected(self) -> Counter[tuple[str, str, str]]:
        """The rows left out, by brute force: models, reasons, and what the row says."""
        found: Counter[tuple[str, str, str]] = Counter()
        for source in "cwm":
            for _, row in self.there(source):
                out = [
                    m
                    for m in self.of_sessions
                    if source in TESTS[m][0] and self.left(m, source, row)
                ]
                if out:
                    reasons = ", ".join(dict.fromkeys(TESTS[model][1] for model in out))
                    found[", ".join(out), reasons, as_json(row)] += 1
        return found

    def left(self, model: str, source: str, row: Row) -> bool:
        """Whether a model leaves a row of a source out."""
        if source == "w" and row["k"] != "pay":
            return False
        if model == "g_known" and row["k"] is not None:
            names = {one["k"]: one["name"] for _, one in self.there("n")}
            return row["u"] is None and names.get(row["k"]) is None
        return TESTS[model][2](row)

    def check(self) -> list[Row]:
        """What is shown is what is left out, each row once and in a file that has it."""
        shown = [row for row in self.left_out() if row["model"] != "c"]
        assert Counter((r["model"], r["reason"], r["raw"]) for r in shown) == self.expected()
        for row in shown:
            source, _, name = row["file"].partition("/")
            assert row["source"] == f"raw.{source}"
            assert row["raw"] in [as_json(one) for one in self.files[source, name]]
            assert row["event_time"].isoformat() == json.loads(row["raw"])["at"][:-1] + "+00:00"
        counted = self.counted()
        for one in self.of_sessions:
            names = [row["model"].split(", ") for row in shown]
            assert counted[one] == sum(one in some for some in names), one
        return shown


def as_json(row: Row) -> str:
    """A row as it is shown."""
    return json.dumps(row)


def event(random: Random, number: int, source: str) -> Row:
    """An event; few instants and few values, so that many agree in much."""
    pick = random.choice
    return {
        "id": f"{source}{number}",
        "at": f"2024-03-0{pick('12')}T0{pick('12')}:00:00Z",
        "u": pick([None, None, "x", "ann", "bob"]),
        "o": pick([None, "o1", "o2"]),
        "k": pick([None, "pay", "see"]),
    }


def test_rows_that_several_models_leave_out_are_listed_once(
    tmp_path: Path, warehouse: Path
) -> None:
    """A row left out by several models is listed once;
    status counts it for each model, the receipt once.

    A model that was never built lists no rows; after a changed definition the new one counts.
    """
    land = LeftOutProject(tmp_path, warehouse, "a_users", "b_paid", "c_orders", "d_named")
    row = {"id": "1", "at": "2024-03-01T01:00:00Z", "u": None, "o": None, "k": "pay"}
    more = [event(Random(number), number, "c") for number in range(4, 20)]
    land.put("c", "a.json", [row, {**row, "id": "2", "o": "o1"}, {**row, "id": None}])
    land.put("c", "b.json", [*more, more[0], row])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infold.spark.sessions.build._build_table", None)
        with pytest.raises(RunFailed):
            land.run()
    [bad] = land.left_out()
    assert (bad["reason"], bad["file"], bad["file_id"]) == ("null key: id", "c/a.json", 1)
    assert set(land.counted().values()) == {0}

    total, shown = land.run(), land.check()
    assert total.set_aside == sum(rows for _, rows in total.set_aside_by) == len(shown)
    assert {(one["model"], one["reason"]) for one in shown} >= {
        ("a_users, b_paid, c_orders, d_named", "null user, null identifier"),
        ("a_users, b_paid, d_named", "null user"),
    }
    assert len(land.left_out(limit=2)) == 2
    where = "reason = 'null user' and model = 'a_users, b_paid, d_named'"
    found = land.left_out(where=where, limit=99, columns=["raw"])
    assert {"o1", "o2"} >= {json.loads(one["raw"])["o"] for one in found} >= {"o1"}

    land.put("c", "c.json", [{**row, "id": "20", "k": "see"}])
    land.gone("c", "a.json")
    land.gone("c", "b.json")
    land.model("d_named", LEFT_OUT % ("user: k, gap: 30 minutes", "c"))
    assert land.go().receipt.set_aside == 1
    [last] = land.left_out()
    assert (json.loads(last["raw"])["id"], last["model"]) == ("20", "a_users, c_orders")
    assert land.counted() == {"a_users": 1, "b_paid": 0, "c_orders": 1, "d_named": 0}


def test_exactly_the_rows_left_out_are_listed(tmp_path: Path, warehouse: Path) -> None:
    """Exactly the rows left out are listed, by expressions
    and views, while files arrive, change and leave.
    """
    seed = Random().randrange(2**32)
    random, numbers = Random(seed), itertools.count()
    land = LeftOutProject(tmp_path / f"seed {seed}", warehouse, "e_seen", "f_both", "g_known")
    known: list[Row] = []
    for step in range(2):
        for source in "cwm":
            rows = [event(random, next(numbers), source) for _ in range(12)]
            if source == "c":
                rows += random.sample(known, min(4, len(known)))
                known += rows
            else:
                rows += rows[:3]
            land.put(source, f"{step}.json", rows)
            if step:
                land.put(source, "0.json", land.files[source, "0.json"][::2])
                land.gone(source, "gone.json")
            else:
                land.put(source, "gone.json", [event(random, next(numbers), source)] * 3)
        names = {"pay": random.choice([None, "eve"]), "see": random.choice([None, "mia"])}
        land.put("n", "n.json", [{"k": kind, "name": name} for kind, name in names.items()])
        land.run()
        assert land.check()


NUMBERS = (
    "    event_time_column: at\n"
    '    columns: {id: string, at: timestamp, who: string, big: bigint, wide: "decimal(38,2)"}\n'
)
EVERY_CLICK = events("SELECT * FROM raw.clicks")
MEANS = "who, avg({0}) AS mean FROM clicks GROUP BY who"
DAYS = "SELECT cast(at AS date) AS day, avg({0}) AS mean FROM clicks GROUP BY 1"
KINDS = {
    "visits": sessions("user: who, gap: 1 hour", "SELECT avg({0}) AS mean FROM clicks"),
    "users": f"{CUMULATIVE}SELECT {MEANS}",
    "whole": f"{WHOLE}SELECT {MEANS}",
    "days": model(DAYS).replace("event_time_column: day", "event_time_column: at"),
}
HEADER = "id,at,who,big,wide"
BIG = 2**62


def test_averages_of_many_digits(new_shop: NewShop) -> None:
    """
    One that no decimal holds is refused with Spark's words and condition, in a first build and by a
    late row. One of BIGINT adds doubles, as Spark has it, where the sum has more digits than one:
    in sessions one event after the other, also after a late event.
    """
    shop = new_shop(EVERY_CLICK, NUMBERS)
    shop.models(**{name: text.replace("{0}", "wide") for name, text in KINDS.items()})
    shop.models(digits=KINDS["visits"].replace("{0}", "big"))
    at, wide = "2024-03-01 00:0", "9" * 35
    refused = dict.fromkeys(KINDS, "NUMERIC_VALUE_OUT_OF_RANGE.WITH_SUGGESTION")

    def first(value: str) -> None:
        shop.put("1.csv", f"1,{at}0:00,ann,{BIG},{value}", f"2,{at}1:00,ann,3",
                 f"3,{at}2:00,ann,-{BIG}", header=HEADER)  # fmt: skip

    def means() -> list[float]:
        return sorted(row["mean"] for row in shop.records("digits"))

    first(wide)
    assert failed(shop) == refused
    assert means() == [0.0]
    first("1")
    assert failed(shop) == {}
    shop.put("2.csv", f"4,{at}3:00,ann,5,{wide}", f"5,{at}1:30,bob,7", header=HEADER)
    assert failed(shop) == refused
    assert means() == [1.25, 7.0]


def failed(shop: ClicksProject) -> dict[str, str]:
    """The models that a run could not build, with Spark's condition."""
    found = shop.failures()
    return {name: dict(one.facts).get("condition", str(one)) for name, one in found.items()}


RULE = '''from infold import session_rule


@session_rule(parameters={"page": "STRING"})
def checkout(events):
    """A session ends with a payment."""
    paid = False
    for event in events:
        yield paid
        paid = event["page"] == "/pay"
'''
VISITS = """---
materialization: sessions
sessions:
  user: user_id
  gap: 30 minutes
  cuts:
    rule: checkout(url)
---
SELECT count(*) AS events, last(url) AS exit_url FROM clicks"""


def visits(shop: ClicksProject) -> list[tuple[str, int, str]]:
    """The sessions: start, number of events, last page."""
    rows = sorted(shop.records("visits"), key=lambda row: str(row["session_start"]))
    return [(str(row["session_start"])[11:16], row["events"], row["exit_url"]) for row in rows]


def clicks(*lines: str) -> list[str]:
    """Clicks of one user: a minute and a page each."""
    found = [line.split() for line in lines]
    return [f"{at}{page},ann,2024-03-01 10:{at}:00,{page},1" for at, page in found]


def test_sessions_end_where_the_rule_says_so(new_shop: NewShop) -> None:
    """
    Also after late events, of which one opens a session's middle; a rule that fails is shown with
    its line, and a corrected one builds the table by its new code.
    """
    shop = new_shop(CLICKS, SOURCE)
    (shop.root / "functions").mkdir()
    rule = shop.root / "functions" / "checkout.py"
    rule.write_text(RULE)
    shop.model("visits", VISITS)
    put(shop, "a.csv", *clicks("00 /a", "05 /b", "10 /pay", "15 /c", "20 /d"))
    shop.run()
    assert visits(shop) == [("10:00", 3, "/pay"), ("10:15", 2, "/d")]
    put(shop, "b.csv", *clicks("02 /pay", "17 /pay"))
    receipt = shop.run(model="visits")
    assert visits(shop) == [
        ("10:00", 2, "/pay"),
        ("10:05", 2, "/pay"),
        ("10:15", 2, "/pay"),
        ("10:20", 1, "/d"),
    ]
    assert (receipt.written, receipt.removed) == (4, 2)

    rule.write_text(RULE.replace("yield paid", "yield next(events, event) and paid"))
    put(shop, "c.csv", *clicks("25 /e"))
    with pytest.raises(RunFailed) as caught:
        shop.run()
    [failure] = caught.value.result.failures
    assert (failure.model, failure.error.slug) == ("visits", "function-failed")
    assert "took the next event before it yielded" in str(failure.error)
    assert "functions/checkout.py" in str(failure.error)

    rule.write_text(RULE.replace('== "/pay"', 'in ("/pay", "/c")'))
    shop.run()
    assert visits(shop)[2:] == [("10:15", 1, "/c"), ("10:17", 1, "/pay"), ("10:20", 2, "/e")]
    rule.write_text("# A comment.\n" + rule.read_text())
    assert not api.run(api.open_project(shop.root)).steps


def test_rows_from_before_the_start_are_left_out(new_shop: NewShop) -> None:
    """Rows before the start are left out and counted: across it, and late.

    So it is in a landed source and in parts of files. A start of one model stands in place of the
    project's.
    """
    shop = new_shop(CLICKS, SOURCE)
    shop.model("sessions", SESSIONS)
    shop.model("visits", from_start(SESSIONS, "2024-03-02T00:05:00Z"))
    shop.model("raw_days", "---\nmaterialization: table\n---\nSELECT id FROM raw.clicks")
    starts(shop, "2024-03-02")
    put(
        shop,
        "first.csv",
        "1,ann,2024-03-01 23:50:00,/a,1",
        "2,ann,2024-03-02 00:00:00,/b,2",
        "3,ann,2024-03-02 00:10:00,/c,4",
        "4,,2024-03-02 00:01:00,/nobody,1",
        ",ann,2024-03-01 12:00:00,/no-key,1",
        "9,ann,,/no-time,1",
    )
    put(shop, "crowd.csv", *(f"crowd{n},crowd,2024-03-02 12:00:00,/,1" for n in range(20)))
    receipts = shop.receipts()
    ids = {id_ for (id_,) in shop.rows("raw_days") if not id_.startswith("crowd")}
    assert (receipts["clicks"].arrived, ids) == (26, {"2", "3", "4"})
    assert of(shop) == [("2024-03-02", "2024-03-02 00:10", 2, 6)]
    assert of(shop, "visits") == [("2024-03-02 00:10", "2024-03-02 00:10", 1, 4)]
    assert [receipts[name].before_start for name in ("clicks", "sessions", "visits")] == [2, 0, 2]
    assert [receipts[name].set_aside for name in ("clicks", "sessions", "visits")] == [1, 1, 0]
    # neither set aside nor waiting: only what nobody knows the time of
    assert shop.aside() == [("first.csv", "null event time")] * 2

    put(
        shop,
        "late.csv",
        "5,ann,2024-03-02 00:04:59,/d,8",
        "6,ann,2024-03-01 10:00:00,/,1",
        "10,ann,2024-03-01 23:59:59,/z,32",
    )
    put(shop, "more.csv", "7,ann,2024-03-02 00:20:00,/e,16", "8,bob,2024-03-02 00:05:00,/,1")
    receipts = shop.receipts()
    assert of(shop) == [("2024-03-02", "2024-03-02 00:20", 4, 30)]
    assert of(shop, "visits") == [("2024-03-02 00:10", "2024-03-02 00:20", 2, 20)]
    assert [receipts[name].before_start for name in ("clicks", "sessions", "visits")] == [2, 0, 1]


def from_start(model: str, start: str) -> str:
    """A model with a start of its own."""
    return model.replace("---\n", f"---\nstart: {start}\n", 1)


def starts(shop: ClicksProject, at: str) -> None:
    """The project's start, or another one."""
    file = shop.root / "infold.yml"
    lines = [line for line in file.read_text().splitlines() if not line.startswith("start:")]
    file.write_text("\n".join([*lines, f"start: {at}"]) + "\n")


def of(shop: ClicksProject, model: str = "sessions") -> list[tuple[object, ...]]:
    """Ann's sessions: start, end, events and revenue."""
    columns = ("session_start", "session_end", "events", "revenue")
    found = [record for record in shop.records(model) if record["user_id"] == "ann"]
    return sorted(tuple(record[name] for name in columns) for record in found)
