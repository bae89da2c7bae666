"""Tests as they are written: what is read of them, and each mistake with its line."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.declare import shop

from infold.core.interval import parse_instant_text
from infold.core.typed_text import Unusable
from infold.core.unit_tests import Change, UnitTest
from infold.declare.unit_tests import read_test_file, read_tests
from infold.messages.errors import InfoldError
from infold.testing.project import Tables
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
