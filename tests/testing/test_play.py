"""Unit tests of a project are played, shuffled, and tried with each branch."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.declare import shop
from tests.declare.test_python_models import FILES_OF_ROWS as FILES

from infold.core.project import Project
from infold.core.unit_tests import (
    Arrival,
    Change,
    Delivery,
    Entry,
    Side,
    TestReport,
    TestResult,
    UnitTest,
)
from infold.declare.unit_tests import read_test_file
from infold.messages.command_errors import not_built
from infold.messages.errors import InfoldError, Spot
from infold.render.unit_tests import junit_xml, report_json, report_screen, result_line
from infold.testing.in_spark import branches, workers
from infold.testing.play import Change_, Player, compare, variants
from infold.testing.project import Tables, project_under_test
from infold.testing.scratch import Scratch, State
from infold.testing.typed import Names, Values

TYPES = {
    "clicks": {"event_id": "string", "user_id": "string", "event_ts": "timestamp"},
    "sessions": {"user_id": "string", "session_start": "timestamp", "events": "bigint"},
    "daily": {"day": "date", "sessions": "bigint", "revenue": "decimal(18,2)"},
}
Rule = Callable[[list[Mapping[str, Any]], int], list[dict[str, Any]]]
"""The rows of sessions, by the clicks that are there and how many runs there were."""


class Fake(Scratch):
    """A scratch whose runs compute nothing; it counts them."""

    def run(self, of: Project, state: State, clock: int) -> tuple[State, Project]:
        """The state itself, one run later."""
        self.runs += 1
        if any(b"broken" in content for content, _ in state.files.values()):
            raise not_built(name="clicks")
        return replace(state, tables=(*state.tables, clock)), of

    def go_to(self, project: Project, state: State) -> None:
        """Remember where it is."""
        self.state = state

    def strip(self, of: Project, state: State, clock: int) -> tuple[str, ...]:
        """A line instead."""
        return (f"  the plan of a run over {len(state.files)} files",)


class FakePlayer(Player):
    """A player that reads tables by a rule."""

    rule: Rule

    def _stored(self, project: Project, model: str) -> Any:
        state: State = self.scratch.state  # type: ignore[attr-defined]
        lines = [line for content, _ in state.files.values() for line in content.splitlines()]
        rows = [json.loads(line) for line in lines]
        found = self.rule(rows, len(state.tables)) if model == "sessions" else []

        class Table:
            def to_pylist(self) -> list[dict[str, Any]]:
                return found

        return Table()


def counted(rows: list[Mapping[str, Any]], runs: int) -> list[dict[str, Any]]:
    """One session for each user."""
    users = sorted({row["user_id"] for row in rows})
    return [
        {
            "user_id": user,
            "session_start": None,
            "events": sum(row["user_id"] == user for row in rows),
        }
        for user in users
    ]


TEXT = """# Given

## Arrival

raw.clicks in first:

| event_id | user_id | event_ts   |
|----------|---------|------------|
| a1       | ann     | 2024-03-08 |
| a2       | bob     | 2024-03-08 |

# More clicks

## Arrival

raw.clicks in second:

| event_id | user_id | event_ts   |
|----------|---------|------------|
| a3       | ann     | 2024-03-09 |

expect sessions:

| user_id | events |
|---------|--------|
| bob     | 1      |
| ann     | 2      |

# The first file goes

## Arrival

delete raw.clicks in first

expect sessions: no rows
"""


def played(tmp_path: Path, text: str = TEXT, rule: Rule = counted) -> tuple[TestReport, Player]:
    """How the tests of a file end, where sessions are by a rule."""
    project = shop.project()
    tests, errors = read_test_file("tests/shop.md", text)
    assert not errors
    tables = Tables.of(project, TYPES, {})
    player = FakePlayer(Fake(tmp_path, project), tables, seed=0)
    player.rule = rule
    names, values = Names(project), Values(project, tables)
    results = [player.play(values.test(names.test(test))) for test in tests]
    assert not [*names.errors, *values.errors]
    return TestReport([*results], 0, 1.0, player.scratch.runs), player


def test_tests_that_begin_alike_share_their_runs(tmp_path: Path) -> None:
    """What is given to all is run once; so is all that two orders have in common."""
    report, player = played(tmp_path)

    assert [result.passed for result in report.results] == [True, True]
    assert [result.shuffles for result in report.results] == [2, 1]
    arrivals = 2 + 2  # the first of both tests is one run
    assert report.runs < arrivals + sum(result.shuffles * 2 for result in report.results)
    assert len(player.played) == 2
    line = result_line(TestResult(report.results[0].test, (), 1.25, 2))
    assert line == "ok    More clicks  (1.25 s, 2 other orders)"


def test_a_failure_shows_the_rows_beside_each_other(tmp_path: Path) -> None:
    """Differing values are marked, in any order; JSON and JUnit's XML have the same."""
    text = TEXT.replace("| ann     | 2      |", "| ann     | 3      |\n| cat     | 1      |")
    text = text.replace("| bob     | 1      |\n", "")
    report, _ = played(tmp_path, text)

    failure = report.results[0].failures[0]
    assert failure.compared is not None
    sides = [(row.side, row.values, sorted(row.differing)) for row in failure.compared.rows]
    assert sides == [
        (Side.EXPECTED, ("ann", 3), [1]),
        (Side.ACTUAL, ("ann", 2), [1]),
        (Side.EXPECTED, ("cat", 1), [0]),
        (Side.ACTUAL, ("bob", 1), [0]),
    ]
    assert (failure.after, failure.at.line) == ("arrival 2", 22)
    assert report_screen(report).splitlines()[:14] == [
        "More clicks",
        "  sessions is not as expected after arrival 2: 2 rows differ",
        "  at tests/shop.md:22",
        "",
        "            user_id  events",
        "  --------  -------  ------",
        "  expected  ann      *3*",
        "  actual    ann      *2*",
        "  expected  *cat*    1",
        "  actual    *bob*    1",
        "",
        "  This run was about to do this:",
        "",
        "  the plan of a run over 2 files",
    ]
    assert result_line(report.results[0]).startswith("FAIL  More clicks  (")
    assert "1 passed, 1 failed in 1.00 s (" in report_screen(report)
    found = report_json(report)
    assert (found["passed"], found["seed"]) == (False, 0)
    (shown,) = found["tests"][0]["failures"]
    assert (shown["model"], shown["at"]) == ("sessions", "tests/shop.md:22")
    assert shown["rows"][:2] == [
        {"side": "expected", "values": ["ann", "3"], "differing": ["events"]},
        {"side": "actual", "values": ["ann", "2"], "differing": ["events"]},
    ]
    xml = junit_xml(report)
    assert '<testsuite name="infold" tests="2" failures="1"' in xml
    assert "expected  ann      *3*" in xml


def test_what_depends_on_the_order_is_found(tmp_path: Path) -> None:
    """A table that knows in how many runs its rows came fails in another order, and says which."""

    def by_runs(rows: list[Mapping[str, Any]], runs: int) -> list[dict[str, Any]]:
        found = counted(rows, runs)
        return [{**row, "session_start": None if runs > 1 else "1"} for row in found]

    report, _ = played(tmp_path, rule=by_runs)

    (failure,) = report.results[0].failures
    assert failure.order[0] == "all at once"
    assert "comes out otherwise where the arrivals come in another order" in report_screen(report)
    fixed = TEXT.replace("delete raw", "no shuffle: it counts runs\n\ndelete raw")
    fixed = fixed.replace("expect sessions:\n", "no shuffle: so\n\nexpect sessions:\n")
    assert played(tmp_path, fixed, by_runs)[0].passed


def test_a_run_that_fails_is_the_tests_failure(tmp_path: Path) -> None:
    """The error is shown with the arrival; other tests go on."""
    report, _ = played(tmp_path, TEXT.replace("a3 ", "broken"))

    (failure,) = report.results[0].failures
    assert isinstance(failure.error, InfoldError)
    assert failure.after == "arrival 2"
    assert "not-built: clicks has not been built yet" in report_screen(report)
    assert report.results[1].passed


@pytest.mark.parametrize(
    ("cores", "files", "players"), [(1, 9, 2), (2, 9, 4), (16, 9, 4), (16, 3, 3), (2, 0, 1)]
)
def test_players_wait_for_spark_so_there_are_two_for_each_core(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cores: int, files: int, players: int
) -> None:
    """But four at most, and one for each file; they play in scratches of their own."""
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    monkeypatch.setattr(Scratch, "spark", None)
    report, player = played(tmp_path / "0")
    test = report.results[0].test
    tests = [replace(test, at=Spot(f"tests/{at}.md")) for at in range(files)]

    found = workers(player, tests, lambda _: None).players

    assert len({each.scratch.root for each in found}) == len(found) == players


@pytest.mark.parametrize(
    ("expected", "actual", "equal"),
    [
        ([1.0], [1.0 + 1e-12], True),
        ([float("nan")], [float("nan")], True),
        ([1], [1, 1], False),
        ([1, 1], [1], False),
        ([None], [None], True),
        ([[1.0, {"a": 2.0}]], [[1.0, {"a": 2.0 + 1e-12}]], True),
        ([], [], True),
    ],
)
def test_rows_are_compared_as_multisets(
    expected: list[Any], actual: list[Any], equal: bool
) -> None:
    """Each row counts, NULL equals NULL, and doubles may differ in their last digits."""
    found = compare(["n"], [{"n": one} for one in expected], [{"n": one} for one in actual])

    assert found.equal is equal


def test_given_rows_of_a_model_stand_for_it() -> None:
    """Its readers are as they were, nothing before it is run, and its source has its columns."""
    base = shop.project()
    made = project_under_test(base, ["daily"], ["sessions"], Tables.of(base, TYPES, {}))

    assert [node.name for node in made] == ["sessions", "daily"]
    assert made["daily"] == base["daily"]
    assert made["sessions"].landed
    assert made["sessions"].columns == ("user_id", "session_start", "events")
    assert made.sources["sessions"].event_time_column == "session_start"


def test_rows_that_their_time_leaves_out_are_noted(tmp_path: Path) -> None:
    """A failure says which given rows are from before the start, or from after the clock."""
    text = TEXT.replace("| a3       | ann     | 2024-03-09 |", "| a3 | cat | 2019-10-23 |")
    text = text.replace("expect sessions:\n", "clock: 2024-03-07\n\nexpect sessions:\n", 1)
    report, _ = played(tmp_path, text)

    assert report.results[0].failures[0].notes == (
        "clicks leaves out 1 given row from before its start, 2024-01-01",
        "2 given rows of raw.clicks wait, as the clock is at 2024-03-07",
    )
    assert "  note: clicks leaves out 1 given row" in report_screen(report)


def test_given_rows_of_a_view_stand_for_it() -> None:
    """Its readers are compiled over a table of its columns, by its event time if it has one."""
    lookup = "sources:\n  raw.users: {path: users/*.json, columns: {user_id: string, born: string}}"
    visits = shop.model("sessions\nsessions: {user: user_id, gap: 1 hour}", "SELECT %s FROM seen")
    files = {
        **shop.spoilt("infold.yml", "sources:", lookup),
        "models/seen.sql": shop.model(
            "view", "SELECT event_id, user_id, event_ts, url, event_ts AS at FROM clicks"
        ),
        "models/visits.sql": visits % "count(*) AS n, first(url) AS entry",
        "models/urls.sql": shop.DAILY.partition("SELECT")[0].replace("session_start", "event_ts")
        + "SELECT cast(event_ts AS date) AS day, url, count(*) AS n FROM seen GROUP BY 1, 2",
        "models/users.sql": shop.model(
            "view", "SELECT user_id, cast(born AS timestamp) AS born FROM raw.users"
        ),
        "models/ages.sql": shop.model(
            "table", "SELECT born, count(*) AS n FROM users GROUP BY born"
        ),
    }
    base = shop.project(files)
    times = dict.fromkeys(("at", "event_ts"), "timestamp")
    types: dict[str, dict[str, str]] = {
        **TYPES,
        **{name: {} for name in ("visits", "urls", "ages")},
        "seen": {"event_id": "string", "user_id": "string", "url": "string", **times},
        "users": {"user_id": "string", "born": "timestamp"},
    }
    tables = Tables.of(base, types, {})

    made = project_under_test(base, ["visits", "urls"], ["seen"], tables)
    ages = project_under_test(base, ["ages"], ["users"], tables)

    assert sorted(node.name for node in made) == ["seen", "urls", "visits"]
    assert made["seen"].landed
    assert made.sources["seen"].event_time_column == "event_ts"
    assert [entry.name for entry in made["visits"].inputs] == ["seen"]
    query = made["visits"].query
    assert query is not None
    assert (query.input, query.time_column, query.key) == ("seen", "event_ts", ("event_id",))
    assert made["urls"].input("seen").time_column == "event_ts"
    assert ages.sources["users"].event_time_column is None


AT = Spot("tests/a.md")


def delivery(change: Change, of: str, file: str, *rows: int) -> Delivery:
    """A changed file with some rows."""
    return Delivery(change, of, file, AT, rows=tuple({"n": row} for row in rows))


@st.composite
def drawn_tests(draw: st.DrawFn) -> UnitTest:
    """Files that come, are replaced and go, in some arrivals."""
    there: set[tuple[str, str]] = set()
    arrivals = []
    for number in range(draw(st.integers(1, 4))):
        changes = []
        for _ in range(draw(st.integers(0, 3))):
            key = draw(st.sampled_from(["a", "b"])), draw(st.sampled_from(["x", "y", "z"]))
            kinds = [Change.REPLACE, Change.DELETE] if key in there else [Change.ADD]
            change = draw(st.sampled_from(kinds))
            there.discard(key) if change is Change.DELETE else there.add(key)
            rows = draw(st.lists(st.integers(0, 9), max_size=4))
            changes.append(delivery(change, *key, *(rows if change is not Change.DELETE else ())))
        owners = draw(st.lists(st.sampled_from(["ann", "bob"]), max_size=2))
        actions = [draw(st.sampled_from(["add", "release"])) for _ in owners]
        made = [Entry("s", *one, AT, "", number) for one in zip(actions, owners, strict=True)]
        arrivals.append(Arrival(number + 1, AT, tuple(changes), tuple(made), clock=number))
    return UnitTest("a test", AT, tuple(arrivals))


def what_there_is(runs: Iterable[Sequence[Change_]]) -> tuple[Counter[tuple[str, Any]], list[Any]]:
    """
    The rows of each source when all is there, and the entries in their order.

    Fails where a file changes that is not there.
    """
    files: dict[tuple[str, str], Delivery] = {}
    entries = []
    for run in runs:
        for each in run:
            if isinstance(each, Entry):
                entries.append(each)
                continue
            key = each.of, each.file
            assert (each.change is Change.ADD) == (key not in files)
            files[key] = each
            if each.change is Change.DELETE:
                del files[key]
    return Counter((each.of, row["n"]) for each in files.values() for row in each.rows), entries


@given(drawn_tests(), st.integers())
def test_the_same_rows_are_there_at_the_end(test: UnitTest, seed: int) -> None:
    """Whatever the order is; a seed gives the same orders again."""
    wanted = what_there_is((*a.deliveries, *a.entries) for a in test.arrivals)

    drawn = list(variants(test, seed, 3))
    assert drawn == list(variants(test, seed, 3))
    for variant in drawn:
        assert what_there_is(variant.runs) == wanted
        assert variant.clock == test.arrivals[-1].clock
        assert len(variant.order) == len(variant.runs) + 1


def test_orders_are_cut_into_several_runs() -> None:
    """What comes in an order of its own comes in at least two runs, so that something is folded.
    The first variant is a build from nothing over all that is there.
    """
    arrivals = tuple(
        Arrival(at, AT, (delivery(Change.ADD, "a", f"{at}", at, at),), clock=0) for at in range(3)
    )
    drawn = list(variants(UnitTest("a test", AT, arrivals), 0, 9))

    rows = "a in 0 (2 rows); a in 1 (2 rows); a in 2 (2 rows)"
    assert drawn[0].order == ("all at once", f"run 1: {rows}")
    assert [len(one.runs) > 1 for one in drawn] == [False] + [True] * 9


def test_tests_that_begin_alike_share_runs() -> None:
    """What two tests have in common is split, ordered and cut alike in both."""
    given_ = Arrival(1, AT, (delivery(Change.ADD, "a", "x", *range(9)),), clock=0)
    own = (
        Arrival(2, AT, (delivery(Change.ADD, "a", "late", late),), clock=0) for late in range(30)
    )
    drawn = [list(variants(UnitTest("a test", AT, (given_, late)), 0, 1))[-1] for late in own]

    def first(part: str) -> set[Any]:
        runs = [one.runs[0] for one in drawn if {each.file for each in one.runs[0]} == {part}]
        return {tuple(each.key for each in run) for run in runs}

    assert [len(first(part)) for part in ("x_a", "x_b")] in ([1, 0], [0, 1])


DAILY = """---
materialization: table
---
SELECT url, CASE url WHEN '/' THEN 1 WHEN '/pay' THEN 2 END AS kind,
  CASE WHEN sum(amount) > 1 THEN 'much' ELSE 'little' END AS spent
FROM clicks AS c
WHERE c.user_id <> 'bot' AND (url IS NULL OR amount > 0)
GROUP BY 1, 2
"""
JOINED = """---
materialization: table
---
SELECT a.url FROM clicks AS a JOIN clicks AS b ON a.event_id = b.event_id WHERE a.amount > 1
"""


def test_each_when_else_and_part_of_where_is_a_branch() -> None:
    """A row goes one way; conditions are about a row of the one table that is read."""
    files = {**shop.SHOP, "models/kinds.sql": DAILY}
    found = branches(shop.project(files)["kinds"])

    conditions = {one.label: one.condition for one in found if not one.unknown}
    assert conditions == {
        "WHEN '/'": "(url = '/')",
        "WHEN '/pay'": "(NOT coalesce(url = '/', false)) AND (url = '/pay')",
        "no ELSE: NULL": "(NOT coalesce(url = '/', false)) AND (NOT coalesce(url = '/pay', false))",
        "left out by WHERE c.user_id <> 'bot'": "(NOT coalesce(user_id <> 'bot', false))",
        "left out by WHERE url IS NULL OR amount > 0": "(NOT coalesce(url IS NULL OR "
        "amount > 0, false))",
    }
    assert {one.table for one in found if not one.unknown} == {"clicks"}
    unknown = [(one.label, one.unknown) for one in found if one.unknown]
    assert unknown == [
        ("ELSE", "it is not about one row alone"),
        ("WHEN SUM(amount) > 1", "it is not about one row alone"),
    ]
    assert {one.at.line for one in found} == {4, 5, 7}


def test_what_is_not_looked_into() -> None:
    """Those of several tables are listed with the reason; models in Python have none."""
    (branch,) = branches(shop.project({**shop.SHOP, "models/joined.sql": JOINED})["joined"])
    in_python = shop.project(FILES)

    assert branch.label == "left out by WHERE a.amount > 1"
    assert branch.unknown == "its query reads several tables, or none"
    assert [branches(in_python[name]) for name in ("clicks", "paths")] == [(), ()]
