"""How unit tests are written, and what they say when they pass or fail."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.declare import shop
from tests.testing.test_play import TEXT

from infold.core.formats import Format
from infold.core.interval import parse_instant_text
from infold.core.project import Project
from infold.core.typed_text import Unusable
from infold.core.unit_tests import Change, Failure, TestResult, UnitTest
from infold.declare.unit_tests import read_test_file, read_tests
from infold.messages.errors import InfoldError, Spot
from infold.testing import run_tests
from infold.testing.project import Tables
from infold.testing.run_tests import PassedTests
from infold.testing.typed import Names, Values

GOOD = r"""Some words about the file, and | a bar.

# Given

## Arrival

raw.clicks in first:

| event_id | user_id | event_ts         | url    |
|----------|:-------:|------------------|--------|
| a1       | ann     | 2024-03-08 09:21 | a\|b   |

# A late click

It comes late.

## Arrival of the rest

clock: 2024-03-10
> A note.
replace raw.clicks in first: no rows

Raw.Clicks:
| event_id | user_id | event_ts   | url  |
|---|---|---|---|
| a2       | "NULL"  | 2024-03-09 | NULL |

delete raw.clicks in first
no shuffle: it is only read

expect Sessions in 2024-03-09:

| USER_ID | events |
|---------|--------|
| NULL    | 1      |

expect daily: no rows
"""
MODELS = {
    "clicks": {"event_id": "string", "user_id": "string", "event_ts": "timestamp"},
    "sessions": {"user_id": "string", "events": "bigint"},
    "daily": {"day": "date"},
}


def typed(text: str) -> tuple[list[UnitTest], list[InfoldError]]:
    """The tests of a file in the shop's project, and all mistakes in it."""
    project = shop.project()
    tests, errors = read_test_file("tests/shop.md", text)
    names = Names(project, list(errors))
    found = [names.test(test) for test in tests]
    if names.errors:
        return found, names.errors
    values = Values(project, Tables.of(project, MODELS, {}))
    return [values.test(test) for test in found], values.errors


def test_all_that_can_be_written_is_read() -> None:
    """Given arrivals come first; files, clock, notes, cells and escapes are as written."""
    tests, errors = typed(GOOD)

    assert [str(error) for error in errors] == []
    (test,) = tests
    assert (test.name, test.at.line, test.fixed) == ("A late click", 13, "it is only read")
    first, second = test.arrivals
    assert [one.number for one in test.arrivals] == [1, 2]
    assert first.clock == second.clock == parse_instant_text("2024-03-10")
    (given,) = first.deliveries
    assert (given.change, given.of, given.file) == (Change.ADD, "raw.clicks", "first")
    assert given.rows[0]["url"] == "a|b"
    assert given.rows[0]["amount"] is None
    assert given.rows[0]["event_ts"] == datetime(2024, 3, 8, 9, 21, tzinfo=UTC)
    assert [(one.change, one.file) for one in second.deliveries] == [
        (Change.REPLACE, "first"),
        (Change.ADD, "line_23"),
        (Change.DELETE, "first"),
    ]
    assert second.deliveries[1].rows[0]["user_id"] == "NULL"
    sessions, daily = second.expected
    assert (sessions.model, sessions.within and sessions.within.text) == ("sessions", "2024-03-09")
    assert sessions.rows == ({"user_id": None, "events": 1},)
    assert (daily.rows, daily.columns) == ((), ())
    (test,), _ = typed(GOOD.replace("clock: 2024-03-10\n", ""))
    assert {arrival.clock for arrival in test.arrivals} == {parse_instant_text("2024-03-10")}


ARRIVAL = """# A test

## Arrival

raw.clicks:

| event_id | event_ts   |
|----------|------------|
| a1       | 2024-03-08 |

expect sessions:

| user_id | events |
|---------|--------|
| ann     | 1      |
"""


@pytest.mark.parametrize(
    ("old", "new", "line", "what"),
    [
        ("expect sessions:", "expcet sessions:", 11, "no part of an arrival"),
        ("expect sessions:", "", 13, "nothing says what this table is"),
        ("expect sessions:\n", "expect sessions:\n\nexpect daily:\n", 11, "a table has to follow"),
        ("|---------|--------|\n", "", 13, "a line of dashes"),
        ("| ann     | 1      |", "| ann | 1 | 2 |", 15, "3 cells, and the table 2 columns"),
        ("| ann     | 1      |", "| ann |", 15, "1 cells, and the table 2 columns"),
        ("| user_id | events |", "| events | events |", 13, "is there twice"),
        ("raw.clicks:", "raw.click:", 5, "there is no source or model raw.click"),
        ("expect sessions:", "expect session:", 11, "there is no model session"),
        ("| user_id | events |", "| user_id | event |", 13, "has no column event"),
        ("| event_id | event_ts   |", "| event_id | at |", 7, "has no column at"),
        ("2024-03-08", "8 March", 9, "8 March is no timestamp"),
        ("| ann     | 1      |", "| ann     | 1.5    |", 15, "1.5 is no bigint"),
        ("| ann     | 1      |", "|         | 1      |", 15, "an empty cell is no string"),
        ("raw.clicks:", "replace raw.clicks in a:", 5, "has no file a at this point"),
        ("expect sessions:", "delete raw.clicks in a\n\nexpect sessions:", 11, "has no file a"),
        ("raw.clicks:", "raw.clicks in a: no rows\n\nraw.clicks in a:", 7, "a file a already"),
        ("raw.clicks:", "clock: soon\n\nraw.clicks:", 5, "soon is no date or time"),
        (
            "raw.clicks:",
            "clock: 2024-03-09\n\nclock: 2024-03-08\n\nraw.clicks:",
            7,
            "the clock goes back, from 2024-03-09",
        ),
        ("expect sessions:", "expect sessions in March:", 11, "March is no cell of sessions"),
        ("raw.clicks:", "sessions:", 11, "there is nothing to expect of it"),
        ("expect sessions:", "expect set_aside:", 11, "which model sets the rows aside"),
        ("expect sessions:", "expect set_aside of daily:", 11, "daily sets no rows aside"),
        ("expect sessions:", "quarantine add daily of ann\n\nexpect sessions:", 11, "no sessions"),
        (
            "expect sessions:",
            "quarantine add sessions of identifier k\n\nexpect sessions:",
            11,
            "one user each, not of an identifier",
        ),
        (
            "expect sessions:",
            "quarantine add sessions of ann at noon\n\nexpect sessions:",
            11,
            "noon is no date or time",
        ),
        ("expect sessions:", "quarantine keep sessions of ann\n\nexpect sessions:", 11, "no part"),
        ("| ann     | 1      |", "| ann     | `1`    |", 15, "`1` is no bigint"),
        ("| a1       | 2024-03-08 |", "| a1       | 2024-03-08 |\n| a2 |", 10, "1 cells"),
        ("# A test\n", "", 2, "belongs to no test"),
        ("## Arrival\n", "", 1, "has no arrival"),
        ("expect sessions:", "> a note\n\nraw.clicks in other:", 1, "expects nothing"),
        (
            "# A test",
            "# A test\n\n## Arrival\n\nexpect daily: no rows\n\n# Given",
            7,
            "before them",
        ),
    ],
)
def test_a_mistake_is_shown_with_its_line(old: str, new: str, line: int, what: str) -> None:
    """No misspelled line is passed over, and no value is guessed."""
    assert old in ARRIVAL
    text = ARRIVAL.replace(old, new, 1)
    if what == "expects nothing":
        text = text.replace("| user_id | events |", "| event_id | user_id |")

    _, errors = typed(text)

    assert errors
    assert what in str(errors[0])
    at = errors[0].at
    assert at is not None
    assert (at.file, at.line) == ("tests/shop.md", line)


GIVEN_ROWS = """# A test

## Arrival

clicks in first:

| event_id | event_ts   |
|----------|------------|
| a1       | 2024-03-08 |

## Arrival

replace clicks in first:

| event_id | event_ts   |
|----------|------------|
| a1       | 2024-03-09 |

clicks in second:

| event_id | event_ts   |
|----------|------------|
| a1       | 2024-03-08 |
| a1       | 2024-03-09 |
| a2       | NULL       |

expect sessions: no rows
"""


def test_rows_of_a_model_are_such_as_it_stores() -> None:
    """One row of each key at a time, over all files that are there; and none without a time."""
    _, errors = typed(GIVEN_ROWS)

    assert [(error.at and error.at.line, error.what) for error in errors] == [
        (25, "this row of clicks has no event_ts, so it would not be stored"),
        (24, "clicks has another row with this key"),
    ]
    assert dict(errors[1].facts)["other"] == "tests/shop.md:17"


def test_what_is_made_by_hand_and_what_stands_in_files() -> None:
    """An entry has its owner and instant; text between backticks is what stands in the file."""
    text = ARRIVAL.replace("| a1       | 2024-03-08 |", "| a1       | `soon`     |")
    text = text.replace(
        "expect sessions:",
        'quarantine add sessions of "ann lee" at 2024-03-08\n'
        "quarantine release sessions of user bob\n\n"
        "expect set_aside of clicks:\n\n"
        "| event_ts | reason |\n|---|---|\n| `soon` | unparsable |\n\nexpect sessions:",
    )
    (test,), errors = typed(text)

    assert [str(error) for error in errors] == []
    (arrival,) = test.arrivals
    assert arrival.deliveries[0].rows[0]["event_ts"] == Unusable("soon")
    assert arrival.clock == parse_instant_text("2000-01-01")
    one, two = (entry.entry for entry in arrival.entries)
    at = parse_instant_text("2024-03-08")
    assert (one.owner, one.in_quarantine, one.start, one.end) == ("ann lee", True, at, at)
    assert (two.owner, two.in_quarantine, two.start, two.end) == ("bob", False, None, None)
    assert arrival.expected[0].rows == ({"event_ts": Unusable("soon"), "reason": "unparsable"},)
    assert (test.aside, test.judged) == (("clicks",), ("sessions",))


def test_all_files_are_read_and_names_are_there_once(tmp_path: Path) -> None:
    """Tests of two files may not have one name; a file that is not UTF-8 is named with its line."""
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests" / "a.md").write_text(ARRIVAL)
    (tmp_path / "tests" / "b.md").write_text(ARRIVAL)
    (tmp_path / "tests" / "c.md").write_bytes(b"# one\n\xff")
    tests, errors = read_tests(tmp_path)

    assert [test.file for test in tests] == ["tests/a.md", "tests/b.md"]
    assert [error.slug for error in errors] == ["not-utf8", "bad-test"]
    assert "there is another test 'A test'" in str(errors[1])


def project(root: Path, files: Mapping[str, str] = shop.SHOP) -> Project:
    """The small project at a place."""
    return replace(shop.project(files), root=root)


def read(text: str = TEXT) -> tuple[UnitTest, ...]:
    """The tests of a file."""
    found, errors = read_test_file("tests/shop.md", text)
    assert not errors
    return tuple(found)


def known(
    root: Path, of: Project | None = None, text: str = TEXT, seed: int = 0, shuffles: int = 1
) -> list[str]:
    """The tests that are known to pass."""
    return sorted(PassedTests(of or project(root), seed, shuffles).of(read(text)))


def pass_all(of: Project, text: str = TEXT, shuffles: int = 0) -> None:
    """Keep that all tests of a file passed."""
    tests = read(text)
    results = {test.name: TestResult(test, (), shuffles=shuffles) for test in tests}
    PassedTests(of, 0, 1).add(tests, results)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder in which all tests of the file passed."""
    pass_all(project(tmp_path), shuffles=2)
    return tmp_path


BOTH = ["More clicks", "The first file goes"]


def test_what_passed_is_known(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    With the orders that it passed in, in a later process too. A row counts, and of two tests in a
    file the other one is as it was; a place does not. Other orders, other settings and other
    versions of the program were not tried.
    """
    found = PassedTests(project(root), 0, 1).of(read())
    assert sorted(found) == BOTH
    assert {(one.passed, one.cached, one.shuffles) for one in found.values()} == {(True, True, 2)}

    text = TEXT.replace("| ann     | 2      |", "| ann     | 2      |\n| cid     | 1      |")
    assert known(root, text=text) == ["The first file goes"]
    assert known(root, text=f"Prose.\n\n{TEXT}") == BOTH
    assert known(root, text=TEXT.replace("| a2       | bob", "| a2       | bea")) == []

    ours = project(root)
    other = replace(ours, target=replace(ours.target, spark=(("spark.sql.x", "1"),)))
    assert known(root, seed=1) == known(root, shuffles=0) == known(root, other) == []
    monkeypatch.setattr(run_tests, "program_version", lambda: "infold 99")
    assert known(root) == []


@pytest.mark.parametrize(
    ("file", "old", "new", "kept"),
    [
        ("models/clicks.sql", "url, amount FROM", "url, 2 * amount AS amount FROM", []),
        ("models/sessions.sql", "gap: 30 minutes", "gap: 31 minutes", []),
        ("models/daily.sql", "AS sessions", "AS visits", BOTH),
        ("infold.yml", "amount: decimal(18,2)", "amount: decimal(20,2)", []),
        ("infold.yml", "start: 2024-01-01", "start: 2024-01-02", []),
    ],
)
def test_what_it_is_made_from_counts(
    root: Path, file: str, old: str, new: str, kept: list[str]
) -> None:
    """The models before those whose rows are expected, and sources; a later model does not."""
    assert known(root, project(root, shop.spoilt(file, old, new))) == kept


def test_a_failed_one_runs_again(tmp_path: Path) -> None:
    """Also where it passed before by the same key, which a mistake of infold may lead to."""
    failure = Failure("sessions", "arrival 1", Spot("tests/shop.md"))
    results = {test.name: TestResult(test, (failure,)) for test in read()}
    PassedTests(project(tmp_path), 0, 1).add(read(), results)

    assert known(tmp_path) == []


@pytest.mark.parametrize("format_", [Format.ICEBERG, Format.DELTA])
def test_a_table_elsewhere_may_change(tmp_path: Path, format_: Format) -> None:
    """A source that is a table has columns that nothing here says."""
    found = project(tmp_path)
    source = replace(found.sources["raw.countries"], format=format_)
    found = replace(found, sources={**found.sources, "raw.countries": source})
    pass_all(found)

    assert known(tmp_path, found) == []


@pytest.mark.parametrize("by", ["", "[1]", '{"a": "b"}', "the key of somebody else"])
def test_a_file_of_somebody_else_knows_nothing(
    root: Path, by: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is made anew: what a stranger, or damage, says that passed did not."""
    (root / run_tests.FILE).write_text(by)
    if by.startswith("the key"):
        with monkeypatch.context() as other:
            other.setenv("INFOLD_CACHE", str(tmp_path / "other"))
            pass_all(project(root))

    assert known(root) == []
    pass_all(project(root))
    assert known(root) == BOTH


GIVEN = """# Given sessions

## Arrival

sessions:

| user_id | session_start    | revenue |
|---------|------------------|---------|
| ann     | 2024-03-08 09:21 | 1.25    |

expect daily:

| day        | sessions |
|------------|----------|
| 2024-03-08 | 1        |
"""


def test_what_is_before_a_given_model_counts(tmp_path: Path) -> None:
    """It says which columns there are, and of which types."""
    pass_all(project(tmp_path), GIVEN)
    other = shop.spoilt("models/sessions.sql", "sum(amount)", "cast(sum(amount) AS int)")

    assert known(tmp_path, text=GIVEN) == ["Given sessions"]
    assert known(tmp_path, project(tmp_path, other), text=GIVEN) == []


@pytest.mark.parametrize(("module", "kept"), [("math", BOTH), ("numpy", BOTH), ("rates", [])])
def test_a_module_from_anywhere_may_change(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, module: str, kept: list[str]
) -> None:
    """Nothing tells of one that is on Python's path; packages have versions."""
    (tmp_path / "rates.py").write_text("RATE = 1\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    function = f"""
from infold import function

@function(parameters=["string"], returns="string", deterministic=True)
def tax(url):
    import {module}

    return str({module})
"""
    clicks = shop.CLICKS.replace("event_ts, url,", "event_ts, tax(url) AS url,")
    found = project(
        tmp_path, {**shop.SHOP, "functions/tax.py": function, "models/clicks.sql": clicks}
    )
    pass_all(found)

    assert known(tmp_path, found) == kept
