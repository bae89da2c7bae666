"""``infold test`` with real tables: the starter's tests, and all that can be given."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infold.cli import cli
from infold.cli.init import write_project

pytestmark = pytest.mark.spark

MODELS = {
    "places": """---
materialization: view
---
SELECT clicks.event_id, clicks.user_id, clicks.event_ts, clicks.url, c.country
FROM clicks LEFT JOIN raw.countries AS c ON clicks.user_id = c.user_id
""",
    "by_country": """---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(event_ts AS date) AS day, country,
  CASE WHEN url = '/pay' THEN 'bought' WHEN url IS NULL THEN 'lost' ELSE 'looked' END AS what,
  count(*) AS clicks
FROM places WHERE user_id <> 'bot' GROUP BY 1, 2, 3
""",
    "shapes": """---
materialization: table
---
SELECT day, sessions * 1.5D AS x, array(sessions, NULL) AS list,
  named_struct('revenue', revenue, 'no', CAST(NULL AS string)) AS s,
  map('a|b', revenue) AS m
FROM daily
""",
}
COUNTRIES = "  raw.countries: {path: countries.csv, columns: {user_id: string, country: string}}\n"

TESTS = r"""# A lookup changes, and a file is replaced

## Arrival

raw.countries in countries:

| user_id | country |
|---------|---------|
| ann     | DE      |

raw.clicks in clicks:

| event_id | user_id | event_ts         | url  |
|----------|---------|------------------|------|
| a1       | ann     | 2024-03-08 09:21 | /    |
| a2       | ann     | 2024-03-08 23:00 | /pay |

expect by_country:

| day        | country | what   | clicks |
|------------|---------|--------|--------|
| 2024-03-08 | DE      | looked | 1      |
| 2024-03-08 | DE      | bought | 1      |

expect places:

| event_id | country |
|----------|---------|
| a1       | DE      |
| a2       | DE      |

## Arrival

replace raw.countries in countries:

| user_id | country |
|---------|---------|
| ann     | "NULL"  |

replace raw.clicks in clicks:

| event_id | user_id | event_ts         | url  |
|----------|---------|------------------|------|
| a2       | ann     | 2024-03-08 23:00 | /pay |
| a3       | ann     | 2024-03-09 12:00 | /    |
| future   | ann     | 2030-01-01       | /    |

clock: 2024-03-10

expect by_country:

| day        | country | what   | clicks |
|------------|---------|--------|--------|
| 2024-03-08 | "NULL"  | bought | 1      |
| 2024-03-09 | "NULL"  | looked | 1      |

expect by_country in 2024-03-09:

| clicks |
|--------|
| 1      |

# Rows of a model stand for it

## Arrival

daily:

| day        | sessions | revenue |
|------------|----------|---------|
| 2024-03-08 | 2        | 59.9    |
| 2024-03-09 | 4        | NULL    |

expect shapes:

| day        | x   | list      | s                                | m                |
|------------|-----|-----------|----------------------------------|------------------|
| 2024-03-08 | 3.0 | [2, null] | {"revenue": "59.90", "no": null} | {"a\|b": "59.9"} |
| 2024-03-09 | 6.0 | [4, null] | {}                               | {"a\|b": null}   |

# Rows set aside, and quarantine by hand

## Arrival

raw.clicks in clicks:

| event_id | user_id | event_ts         | amount  |
|----------|---------|------------------|---------|
| a1       | ann     | 2024-03-08 09:21 | 1.50    |
| a2       | ann     | 2024-03-08 23:00 | NULL    |
| a3       | bob     | `soon`           | NULL    |
| a4       | bob     | 2024-03-08 10:00 | `12,50` |
| a5       | bob     | 2024-03-08 10:00 | NULL    |

quarantine add sessions of ann at 2024-03-08 09:21
quarantine add sessions of bob

expect set_aside of clicks:

| event_id | event_ts         | amount  | reason                                 | file   |
|----------|------------------|---------|----------------------------------------|--------|
| a3       | `soon`           | NULL    | unparsable: event_ts is not timestamp  | clicks |
| a4       | 2024-03-08 10:00 | `12,50` | unparsable: amount is not decimal(18,2) | clicks |

expect set_aside of sessions: no rows

expect sessions:

| user_id | session_start    |
|---------|------------------|
| ann     | 2024-03-08 23:00 |

## Arrival

quarantine release sessions of user bob

no shuffle: the first test has two orders

expect sessions:

| user_id | events |
|---------|--------|
| ann     | 1      |
| bob     | 1      |

# This one fails

## Arrival

raw.clicks: no rows

expect sessions:

| user_id | events |
|---------|--------|
| ann     | 1      |
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The starter, and some more."""
    found = tmp_path_factory.mktemp("tested") / "shop"
    write_project(found)
    project = found / "infold.yml"
    project.write_text(project.read_text().replace("\ntargets:", f"{COUNTRIES}\ntargets:"))
    for name, text in MODELS.items():
        (found / "models" / f"{name}.sql").write_text(text)
    return found


def infold(folder: Path, *words: str) -> Result:
    """The command line, in this process."""
    return CliRunner().invoke(cli, ["-C", str(folder), *words])


def test_the_starters_tests_pass(folder: Path) -> None:
    """Five cases of late clicks come out as they are written; no target is touched."""
    done = infold(folder, "test", "--no-shuffle", "--json")
    found = json.loads(done.stdout)

    assert done.exit_code == 0, done.stdout
    assert [(test["passed"], test["orders"]) for test in found["tests"]] == [(True, 0)] * 5
    assert found["runs"] == 10  # two cases, of the same models, share their first run
    assert not (folder / "warehouse").exists()
    assert not (folder / ".infold" / "ledger.db").exists()


BACK = """# Given

## Arrival

raw.clicks in given:

| event_id | user_id | event_ts   |
|----------|---------|------------|
| a1       | ann     | 2024-03-08 |

# One more

## Arrival

raw.clicks in more:

| event_id | user_id | event_ts   |
|----------|---------|------------|
| a2       | ann     | 2024-03-08 |

expect clicks:

| event_id |
|----------|
| a1       |
| a2       |

# The given one goes

## Arrival

delete raw.clicks in given

expect clicks: no rows
"""


def test_tables_of_delta_lake_go_back(tmp_path: Path) -> None:
    """Tables of Delta Lake go back to what a case begins with, as those of Iceberg do."""
    shop = tmp_path / "shop"
    write_project(shop)
    project = shop / "infold.yml"
    project.write_text(project.read_text().replace("storage: iceberg", "storage: delta"))
    for file in (
        *(shop / "tests").iterdir(),
        shop / "models/sessions.sql",
        shop / "models/daily.sql",
    ):
        file.unlink()
    (shop / "tests" / "back.md").write_text(BACK)

    done = infold(shop, "test", "--no-shuffle", "--json")

    found = json.loads(done.stdout)
    assert done.exit_code == 0, done.output
    assert (len(found["tests"]), found["runs"]) == (2, 3)


def test_all_that_can_be_given_is_compared(folder: Path) -> None:
    """
    Lookups, replaced files, the clock, given models and values of any type; and a failure,
    with what the run was about to do, and what has no test.
    """
    (folder / "tests" / "more.md").write_text(TESTS)
    junit = folder / "junit.xml"

    done = infold(
        folder, *("test", "more", "--shuffles", "1"), *("--coverage", "--junit", str(junit))
    )

    assert done.exit_code == 1, done.output
    (line,) = [line for line in done.output.splitlines() if "ok    A lookup changes" in line]
    assert "2 other orders" in line
    assert "ok    Rows of a model stand for it  (" in done.output
    assert "FAIL  This one fails  (" in done.output
    assert "  missing  ann      1" in done.output
    assert "ok    Rows set aside, and quarantine by hand  (" in done.output
    assert "3 passed, 1 failed in " in done.output
    assert "3 of 6 models have a test." not in done.output  # sessions has one, which fails
    assert "  places" not in done.output.partition("Without a test")[2].partition("No row")[0]
    untaken = done.output.partition("No row of a test goes this way")[2]
    assert "WHEN url IS NULL" in untaken
    assert "WHEN url = '/pay'" not in untaken
    assert 'tests="4" failures="1"' in junit.read_text()
    (folder / "tests" / "more.md").unlink()


def test_a_test_from_real_rows_passes(folder: Path) -> None:
    """Of a cell, and of a session with masks; the test says what is stored."""
    assert infold(folder, "run", "sessions", "daily", "clicks").exit_code == 0
    rows = infold(folder, "show", "sessions", "--columns", "session_id,user_id", "--json").stdout
    ann = next(json.loads(line) for line in rows.splitlines() if '"ann"' in line)["session_id"]

    cell = infold(folder, "test", "--new", "daily", "--from", "2024-03-08")
    session = infold(folder, *("test", "--new", "sessions", "--from", ann), *("--mask", "user_id"))
    done = infold(folder, "test", "*_from_rows", "--no-shuffle")

    assert (cell.exit_code, session.exit_code) == (0, 0), cell.output + session.output
    written = (folder / "tests" / "sessions_from_rows.md").read_text()
    assert "| user_id_1 |" in written
    assert "ann" not in written.replace("# A session of sessions", "")
    assert done.exit_code == 0, done.output
    refused = infold(folder, "test", "--new", "clicks", "--from", "2024-03-08")
    assert refused.exit_code == 2
    assert "no-rows-for-test" in refused.output
    nothing = infold(folder, "test", "--new", "daily", "--from", "1999-03-08")
    assert "daily has no rows in 1999-03-08" in nothing.output
    unmasked = infold(folder, *("test", "--new", "daily", "--from", "2024-03-08", "--mask", "no"))
    assert "has a column of text no" in unmasked.output


def test_wrong_tests_are_not_run(folder: Path) -> None:
    """Mistakes of all files are shown at once, with exit code 2, before Spark starts."""
    wrong = folder / "tests" / "wrong.md"
    wrong.write_text("# A\n\n## Arrival\n\nexpct daily: no rows\n\nexpect dialy: no rows\n")
    done = infold(folder, "test")
    wrong.unlink()

    assert done.exit_code == 2
    assert done.output.count("bad-test: ") == 2
    assert "tests/wrong.md:5" in done.output
    unknown = infold(folder, "test", "midnigth")
    assert (unknown.exit_code, "midnight" in unknown.output) == (2, True)
