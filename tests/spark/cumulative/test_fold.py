"""Cumulative tables of users over sessions that move, merge and vanish: one row for each key.

Each user is a case of its own, and all of them run at once, from the files to the users. Many other
users do not change, so that a run folds, and what it reads of them can be counted.
"""

from __future__ import annotations

import os
import random
from collections.abc import Mapping
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.crash.scenario import living
from tests.reference.tables import versions
from tests.spark.cumulative.clicks_by_user import CLICKS, SESSIONS, SOURCE, USERS, put
from tests.spark.events.clicks_project import NOW, ClicksProject, NewShop
from tests.spark.project import CUMULATIVE

from infold import api
from infold.core.interval import parse_instant_text, show_instant
from infold.core.plan import Action
from infold.core.record import Receipt
from infold.spark import key_filter
from infold.spark.cumulative import fold as fold_states

pytestmark = pytest.mark.spark


CROWD = 80
AT_FIRST = (2, 3, 6, "2024-03-02 09:00", "2024-03-05 12:00", "/a", "/c")
"""What the row of a user shows who did what ``first_of`` says."""
BEGAN, ENDED = AT_FIRST[3:5]


def first_of(who: str, page: str = "/b", amount: float = 2, minute: int = 20) -> list[str]:
    """Three clicks of a user, in two sessions."""
    return [
        f"{who}1,{who},2024-03-02 09:00:00,/a,1",
        f"{who}2,{who},2024-03-02 09:{minute}:00,{page},{amount}",
        f"{who}3,{who},2024-03-05 12:00:00,/c,3",
    ]


def keyed(table: str, key: str, value: str) -> str:
    """A model of rows and their sum by a key."""
    shown = f"{key} AS k, count(*) AS n, sum({value}) AS v"
    return f"{CUMULATIVE}SELECT {shown} FROM {table} GROUP BY {key}"


def by_key(shop: ClicksProject, table: str) -> dict[Any, tuple[Any, ...]]:
    """The rows of a table by their key; there is one row for each."""
    rows = shop.rows(table)
    found = {row[0]: row[1:] for row in rows}
    assert len(found) == len(rows)
    return found


def users(shop: ClicksProject) -> dict[Any, tuple[Any, ...]]:
    """The rows of users, but for the crowd, whose rows are as they always were."""
    found = by_key(shop, "users")
    crowd = [found.pop(f"u{number:02}") for number in range(CROWD)]
    assert {row[:3] for row in crowd} == {(1, 1, 1)}
    return found


def fold(shop: ClicksProject) -> dict[str, Receipt]:
    """What a run did to each model: keys are folded."""
    result = shop.go()
    actions = {step.action for step, _ in result.steps if step.model != "clicks"}
    assert actions <= {Action.FOLD}
    return {step.model: receipt for step, receipt in result.steps}


def test_rows_follow_the_sessions_and_clicks_of_their_keys(
    new_shop: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Changes to sessions show in their user's row, and in no other row.

    Keys are ordinary values: NULL, texts, expressions. A key without rows has no row, nor one whose
    rows do not pass HAVING. A run reads what changed, and writes what shows it.
    """
    shop = new_shop(CLICKS, SOURCE)
    shop.model("sessions", SESSIONS)
    shop.model("users", USERS)
    shop.model("pages", keyed("clicks", "upper(url)", "amount"))
    shop.model("returning", keyed("sessions", "user_id", "events") + " HAVING count(*) > 1")
    put(shop, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/,1" for n in range(CROWD)))
    for who in ("moves", "merges", "later", "leaves", "twin"):
        put(shop, f"{who}.csv", *first_of(who))
    put(shop, "fixed.csv", *first_of("fixed", "/only"))
    put(shop, "returns.csv", "r1,returns,2024-03-01 10:00:00,/,1")
    shop.run()
    at_first = users(shop)
    assert {row for who, row in at_first.items() if who != "returns"} == {AT_FIRST}
    assert by_key(shop, "pages")["/ONLY"] == (1, 2)
    assert "returns" not in by_key(shop, "returning")

    # A late event moves a session to the day before: it has another id, day and start.
    early = ("moves4,moves,2024-03-01 23:50:00,/z,5", "moves5,moves,2024-03-02 00:15:00,/y,1")
    put(shop, "early.csv", *early)
    put(shop, "more.csv", "merges4,merges,2024-03-05 12:50:00,/d,1")
    put(shop, "later.csv", first_of("later")[-1])
    shop.drop("leaves.csv")
    twins = [f"{who}4,{who},2024-03-07 08:00:00,/t,1" for who in ("twin", "eve")]
    put(shop, "twins.csv", *twins)
    put(shop, "fixed.csv", *first_of("fixed", "/q", 7.5))
    put(shop, "again.csv", *first_of("merges"))
    put(shop, "second.csv", "r2,returns,2024-03-06 10:00:00,/,1")
    put(shop, "odd.csv", "n1,,2024-03-03 10:00:00,,4", "n2,,2024-03-03 11:00:00,NULL,1")
    fold(shop)
    twin = (3, 4, 7, BEGAN, "2024-03-07 08:00", "/a", "/t")
    found = users(shop)
    assert found.pop("eve")[:3] == (1, 1, 1)
    assert found.pop("returns")[:3] == (2, 2, 2)
    assert (
        found
        == {
            "moves": (3, 5, 12, "2024-03-01 23:50", ENDED, "/z", "/c"),
            "merges": (3, 4, 7, BEGAN, "2024-03-05 12:50", "/a", "/d"),
            "later": (1, 1, 3, ENDED, ENDED, "/c", "/c"),  # values come from the next session
            "twin": twin,
            "fixed": (2, 3, 11.5, *AT_FIRST[3:]),
        }
    )
    pages = by_key(shop, "pages")
    assert (pages[None], pages["NULL"], pages["/Q"]) == ((1, 4), (1, 1), (1, 7.5))
    assert "/ONLY" not in pages
    assert by_key(shop, "returning")["returns"] == (2, 2)

    monkeypatch.setattr(key_filter, "pays", lambda *_: True)  # as in a large table
    put(shop, "between.csv", "merges5,merges,2024-03-05 12:25:00,/e,1")
    put(shop, "leaves.csv", *first_of("leaves"))
    put(shop, "twins.csv", twins[0])  # of two sessions with equal times one goes
    shop.drop("second.csv")
    shop.drop("odd.csv")
    put(shop, "null.csv", "n3,,2024-03-04 10:00:00,,6")
    put(shop, "earlier.csv", "moves6,moves,2024-03-01 23:30:00,/x,1")
    put(shop, "zoe.csv", "z1,zoe,2024-03-09 10:00:00,/z,1", "z2,zoe,2024-03-09 12:00:00,/y,1")
    fold(shop)
    found = users(shop)
    assert found["merges"] == (2, 5, 8, BEGAN, "2024-03-05 12:50", "/a", "/d")
    assert (found["leaves"], found["twin"]) == (AT_FIRST, twin)
    assert "eve" not in found
    assert found["moves"] == (3, 6, 13, "2024-03-01 23:30", ENDED, "/x", "/c")
    assert found["zoe"][:3] == (2, 2, 2)
    assert by_key(shop, "pages")[None] == (1, 6)
    assert by_key(shop, "returning").keys() == found.keys() - {"later", "returns"}

    explained = api.explain(api.open_project(shop.root), "users")
    follows = "follows from stored states: 0 unchanged rows of sessions read"
    assert explained.inputs[0].mapping == "the rows of the same user_id"
    but = "keys that lose a least or greatest value"
    assert explained.notes == (("folds", f"by user_id: {follows}, but for {but}"),)

    version = shop.version("returning")
    put(shop, "fixed.csv", *first_of("fixed", "/q", 7.5, 21))
    shop.drop("null.csv")
    receipts = fold(shop)
    # one session came, one is gone, one user is stored; others are not read
    assert receipts["users"].read == 3
    receipt = receipts["returning"]  # which does not show when sessions end
    assert (receipt.written, receipt.commits, receipt.cells_cut_off) == (0, 0, 1)
    assert shop.version("returning") == version
    assert None not in by_key(shop, "pages")


def test_a_user_loses_all_sessions(new_shop: NewShop) -> None:
    """Who has no session any more has no row, though no row came in the same run; by states, and
    where the rows of a key are read again.
    """
    shop = new_shop(CLICKS, SOURCE)
    shop.model("sessions", SESSIONS)
    shop.model("users", USERS)
    shop.model("middles", keyed("clicks", "user_id", "amount").replace("sum(", "median("))
    put(shop, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/,1" for n in range(CROWD)))
    put(shop, "ann.csv", *first_of("ann"))
    shop.run()
    shop.drop("ann.csv")

    assert fold(shop)["users"].removed == 1
    assert users(shop) == {}
    assert "ann" not in by_key(shop, "middles")


TOPS = "SELECT user_id, max(amount) AS top, min(at) AS first_at FROM clicks GROUP BY user_id"
GROUPS = "SELECT top, count(*) AS users FROM tops GROUP BY top HAVING count(*) > 1"
OTHERS = 30
FINISHING = "ledger finish_step: before commit"
ANN = ("1,ann,2024-03-02 09:00:00,/a,5", "2,ann,2024-03-02 10:00:00,/b,3")


@pytest.fixture
def shop(new_shop: NewShop) -> ClicksProject:
    """What a crowd and Ann paid at most, and how many paid the same."""
    made = new_shop(CLICKS, SOURCE)
    made.model("tops", CUMULATIVE + TOPS)
    made.model("groups", CUMULATIVE + GROUPS)
    put(made, "crowd.csv", *(f"c{n},u{n:02},2024-03-01 10:00:00,/,5" for n in range(OTHERS)))
    put(made, "ann.csv", *ANN)
    made.run()
    return made


def run(shop: ClicksProject) -> dict[str, Receipt]:
    """What a run did to each model; the one of users folds, if it is due."""
    result = shop.go()
    assert {s.action for s, _ in result.steps if s.model == "tops"} <= {Action.FOLD}
    return {step.model: receipt for step, receipt in result.steps}


def top(shop: ClicksProject) -> tuple[object, ...]:
    """Ann's row."""
    return next((row for row in shop.rows("tops") if row[0] == "ann"), ())


def test_runs(shop: ClicksProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each run reads what changed, and the rows of keys that lost their greatest value alone."""
    put(shop, "more.csv", "3,ann,2024-03-03 09:00:00,/c,4")
    put(shop, "u00.csv", "5,u00,2024-03-03 09:00:00,/c,4")
    with living() as life:
        steps = run(shop)
    # The rows show what they showed, and their states have one row more: readers need not look.
    assert steps.keys() == {"clicks", "tops"}
    assert (steps["tops"].read, steps["tops"].written, steps["tops"].removed) == (4, 2, 2)
    assert steps["tops"].cells_cut_off == 1
    planned = api.plan(api.open_project(shop.root), as_of=parse_instant_text(NOW))
    assert not planned.steps

    finishing = [at for at, (_, name) in enumerate(life.passed, 1) if name == FINISHING]
    put(shop, "even.csv", "4,ann,2024-03-03 10:00:00,/d,2")
    with living(at=finishing[-1]) as life:
        run(shop)
    assert life.dead, "a state alone was committed, and the ledger does not know it yet"
    assert run(shop) == {}

    monkeypatch.setattr(key_filter, "pays", lambda *_: True)  # as in a large table
    put(shop, "ann.csv", ANN[1])  # the greatest and the first are gone
    steps = run(shop)
    assert top(shop) == ("ann", 4, "2024-03-02 10:00")
    assert steps["tops"].read == 1 + 1 + 3, "one click went, one row is stored, three are read"
    # Nor do they later, when another row has changed.
    assert steps["groups"].read == 2 + 1 + 1, "its group is stored; another may be left out"
    for name in ("more.csv", "even.csv", "ann.csv"):
        shop.drop(name)
    assert run(shop)["tops"].removed == 1
    assert top(shop) == ()

    older_forms = {"states_of": lambda *_: None, "state_mark": lambda _: "of_0_0"}
    for more, (name, older) in enumerate(older_forms.items(), 1):
        put(shop, f"{name}.csv", f"{name},{name},2024-03-03 09:00:00,/c,4")
        with monkeypatch.context() as patch:
            patch.setattr(fold_states, name, older)
            assert run(shop)["tops"].written == OTHERS + more
    put(shop, "ann.csv", *ANN)
    assert run(shop)["tops"].written == OTHERS + 3, "a table of an older form is built once"
    assert top(shop) == ("ann", 5, "2024-03-02 09:00")
    shop.drop("ann.csv")
    assert run(shop)["tops"].read == 3
    assert shop.proven()


PLANS = """    event_time_column: at
    columns: {id: string, who: string, at: timestamp, plan: string, seats: int, note: string}
"""
CHANGES = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.clicks"""
BY_COLUMNS = """---
materialization: scd_type_2
unique_key: [who, big]
scd_type_2: {updated_at: since, columns: [plan, seats]}
---
SELECT who, c.seats > 1 AS big, date_trunc('hour', at) AS since, plan, seats, note
FROM changes c WHERE plan <> 'x'"""
SNAPSHOTS = """---
materialization: scd_type_2
unique_key: [who]
scd_type_2: {updated_at: at, columns: "*", invalidate_hard_deletes: true}
---
SELECT who, at, plan, seats FROM changes WHERE who NOT LIKE 'crowd%'"""
COLUMNS = ("id", "who", "at", "plan", "seats", "note")
STEADY = tuple(f"c{n},crowd{n},2024-02-{n % 2 + 20} 10:00:00,a,1," for n in range(60))


def drawn(draw: random.Random, number: int) -> str:
    """A change of one of few users at one of few times."""
    at = f"2024-02-{draw.randint(1, 3):02} {draw.randint(0, 2):02}:{draw.choice(['00', '30'])}:00"
    who, plan = draw.choice(["ann", "bob", ""]), draw.choice(["a", "b", "x", ""])
    return f"e{number},{who},{at},{plan},{draw.choice(['1', '2', ''])},{draw.choice('pq')}"


def parsed(line: str) -> dict[str, Any]:
    """A line of a file as a row."""
    row: dict[str, Any] = dict(
        zip(COLUMNS, (value or None for value in line.split(",")), strict=True)
    )
    row["at"] = parse_instant_text(row["at"])
    row["seats"] = None if row["seats"] is None else int(row["seats"])
    return row


def shown(rows: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Rows in an order, with times as people write them."""
    times = ("at", "since", "valid_from", "valid_to")
    found = [
        tuple(
            show_instant(value) if name in times and value is not None else value
            for name, value in row.items()
        )
        for row in rows
    ]
    return sorted(found, key=repr)


def expected(lines: list[str]) -> dict[str, list[tuple[Any, ...]]]:
    """The tables of versions by brute force."""
    rows = [parsed(line) for line in lines]
    by_columns = [
        {
            "who": row["who"],
            "big": None if row["seats"] is None else row["seats"] > 1,
            "since": row["at"] - row["at"] % 3_600_000_000,
            "plan": row["plan"],
            "seats": row["seats"],
            "note": row["note"],
        }
        for row in rows
        if row["plan"] is not None and row["plan"] != "x"
    ]
    snapshots = [
        {name: row[name] for name in ("who", "at", "plan", "seats")}
        for row in rows
        if row["who"] is not None and not row["who"].startswith("crowd")
    ]
    both = ["plan", "seats"]
    return {
        "by_columns": shown(versions(by_columns, key=["who", "big"], time="since", compared=both)),
        "snapshots": shown(
            versions(snapshots, key=["who"], time="at", compared=both, snapshots=True)
        ),
    }


def test_random_changes(new_shop: NewShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    After every run all tables are those of the reference, folded; also where one died after a
    commit. From the second run on, rows to remove are found by a filter, as in a large table.
    """
    draw = random.Random(7)
    shop = new_shop("", PLANS)
    shop.models(changes=CHANGES, by_columns=BY_COLUMNS, snapshots=SNAPSHOTS)
    files = {"crowd.csv": list(STEADY)}
    number = 0

    def land() -> dict[str, list[tuple[Any, ...]]]:
        for path in (shop.root / "landing").glob("*.csv"):
            if path.name not in files:
                path.unlink()
        for name, lines in files.items():
            text = "\n".join([",".join(COLUMNS), *lines]) + "\n"
            if not (path := shop.root / "landing" / name).exists() or path.read_text() != text:
                path.write_text(text)
        return expected([line for lines in files.values() for line in lines])

    for turn in range(3):
        if turn == 1:
            monkeypatch.setattr(key_filter, "pays", lambda *_: True)
        for _ in range(draw.randint(1, 2)):
            old = [name for name in files if name != "crowd.csv"]
            if turn > 1 and draw.random() < 0.5:
                files.pop(draw.choice(old), None)
            lines = [drawn(draw, number + n) for n in range(draw.randint(1, 5))]
            number += len(lines)
            files[f"f{draw.randint(0, 4)}.csv"] = lines
        if turn == 2:
            files["last.csv"] = ["last,ann,2024-02-03 05:00:00,z,2,p"]
        wanted = land()
        if turn == 2:
            shop.die_at("by_columns", "table by_columns: after commit")
            assert shop.rows("by_columns") == wanted["by_columns"]
        steps = {step.model: (step.action, receipt) for step, receipt in shop.go().steps}
        for name, rows in wanted.items():
            assert shop.rows(name) == rows, name
            if turn and name in steps:
                assert steps[name][0] is Action.FOLD
                assert steps[name][1].written < 30


def test_snapshots_by_the_times_of_their_files(new_shop: NewShop) -> None:
    """
    Files of a lookup are snapshots by their times, also those without rows: at these all keys end.

    So they do whenever a file came, and no longer once it has rows, or is gone.
    """
    columns = "columns: {who: string, plan: string}"
    path = "path: landing/{0}/*.{0}\n    file_time_column: taken_at"
    source = f"    file_time_column: taken_at\n    {columns}\n" + "".join(
        f"  raw.{kind}:\n    {path.format(kind)}\n    {columns}\n" for kind in ("json", "parquet")
    )
    shop = new_shop("", source)
    rules = "updated_at: taken_at, columns: [plan], invalidate_hard_deletes: true"
    head = f"unique_key: [who]\nscd_type_2: {{{rules}}}"
    noted = "SELECT who, plan, taken_at AS seen FROM raw.clicks"
    shop.model("noted", f"---\nmaterialization: view\n---\n{noted}")
    for table, query in (
        ("plans", "SELECT who, plan, date_trunc('day', seen) AS taken_at FROM noted"),
        ("json", "SELECT * FROM raw.json"),
        ("parquet", "SELECT * FROM raw.parquet"),
    ):
        shop.model(table, f"---\nmaterialization: scd_type_2\n{head}\n---\n{query}")

    def put(name: str, content: str | bytes) -> None:
        file = shop.root / "landing" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content if isinstance(content, bytes) else content.encode())
        at = parse_instant_text(f"2024-02-0{file.stem} 12:00") // 1_000_000
        os.utime(file, (at, at))

    def as_of(days: Mapping[int, str], hour: int = 0) -> list[tuple[Any, ...]]:
        times = {day: parse_instant_text(f"2024-02-0{day} {hour:02}:00") for day in days}
        rows = [
            {"who": who, "plan": plan, "taken_at": times[day]}
            for day, text in days.items()
            for who, plan in (line.split(",") for line in text.split())
        ]
        empty = [times[day] for day, text in days.items() if not text]
        found = versions(
            rows,
            key=["who"],
            time="taken_at",
            compared=["plan"],
            snapshots=True,
            without_rows=empty,
        )
        return sorted((row["who"], row["plan"], *map(_at, list(row.values())[3:])) for row in found)

    there: Mapping[int, str] = {}
    for now in (
        {1: "ann,a bob,a", 5: "ann,a"},
        {1: "ann,a bob,a", 3: "", 5: "ann,a", 7: ""},
        {3: "ann,b", 5: "ann,a"},
    ):
        for day in there.keys() - now.keys():
            shop.drop(f"{day}.csv")
        for day, text in now.items():
            if text != there.get(day):
                lines = "who,plan\n" if day < 7 else ""
                put(f"{day}.csv", lines + text.replace(" ", "\n"))
        if not there:
            some = pa.table({"who": ["ann"], "plan": ["a"]})
            for number, table in enumerate((some, some.slice(1))):
                buffer = BytesIO()
                pq.write_table(table, buffer)
                put(f"parquet/{number + 1}.parquet", buffer.getvalue())
            put("json/1.json", '{"who": "ann", "plan": "a"}')
            put("json/2.json", "")
        shop.go()
        assert _held(shop, "plans") == as_of(now)
        if 7 in now:
            shop.verify()
        there = now
    assert _held(shop, "json") == _held(shop, "parquet") == as_of({1: "ann,a", 2: ""}, 12)


def _at(instant: int | None) -> str | None:
    return None if instant is None else show_instant(instant)


def _held(shop: ClicksProject, table: str) -> list[tuple[Any, ...]]:
    """The versions in a table of plans: whose, which, from when and until when."""
    return sorted((who, plan, start, end) for who, plan, _, start, end in shop.rows(table))
