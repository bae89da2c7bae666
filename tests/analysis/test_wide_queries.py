"""
Queries of many columns: what an analysis costs grows as they do.

Calls are counted, of our functions and of Python's own: what looks at all columns for each of them
makes 16 times as many for 4 times the columns, and that of 2,000 takes minutes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from cProfile import Profile
from functools import partial

import pytest
from tests.declare.shop import read

from infold.analysis.definitions.column_sources import column_sources
from infold.analysis.definitions.compare import compare_projects
from infold.analysis.definitions.meanings import Meanings
from infold.core.project import Project

pytestmark = pytest.mark.deep

EVENTS = """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at}
---
SELECT * FROM raw.events"""
DAILY = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day}
incremental: {}
---
"""
WHOLE = "---\nmaterialization: table\n---\n"
USERS = "---\nmaterialization: cumulative_aggregate\n---\n"
VISITS = "---\nmaterialization: sessions\nsessions: {user: id, gap: 30 minutes}\n---\n"
DAY = "SELECT cast(at AS date) AS day, "
SHAPES = {
    "star": (DAILY + DAY + "* FROM events", ""),
    "nested": (
        DAILY + "WITH a AS (SELECT *, cast(at AS date) AS day FROM events), "
        "b AS (SELECT day, {each} FROM a) SELECT * FROM b",
        "upper({0}) AS {0}",
    ),
    "renamed": (DAILY + "SELECT * FROM (" + DAY + "{each} FROM events) AS t(day, {names})", "{0}"),
    "natural": (WHOLE + "SELECT * FROM events NATURAL JOIN events AS other", ""),
    "using": (WHOLE + "SELECT {names} FROM events JOIN events AS o USING ({each})", "{0}"),
    "union": (DAILY + DAY + "{each} FROM events UNION ALL " + DAY + "{each} FROM events", "{0}"),
    "keys": (DAILY + DAY + "{each}, count(*) AS n FROM events GROUP BY day, {names}", "{0}"),
    "lists": (DAILY + DAY + "{each} FROM events GROUP BY 1",
        "sort_array(collect_list({0})) AS {0}"),
    "windows": (DAILY + DAY + "{each} FROM events",
        "lag({0}) OVER (PARTITION BY cast(at AS date), id ORDER BY at) AS {0}"),
    "subqueries": (WHOLE + "SELECT {each} FROM raw.few", "(SELECT max({0}) FROM events) AS {0}"),
    "users": (USERS + "SELECT id, {each} FROM events GROUP BY id", "count(DISTINCT {0}) AS {0}"),
    "visits": (VISITS + "SELECT {each} FROM events", "first({0}) AS {0}"),
}  # fmt: skip
WIDTHS = (20, 80)


@pytest.mark.parametrize("shape", SHAPES)
def test_calls_grow_with_the_columns(shape: str) -> None:
    """Four times the columns, about four times the calls."""
    few, many = (_calls(partial(_project, files)) for files in _each_width(shape))

    assert many < 4.6 * few


@pytest.mark.parametrize("shape", ["nested", "renamed", "natural", "keys", "subqueries"])
def test_so_they_do_for_a_changed_definition(shape: str) -> None:
    """So it is if a project is compared with the one before: what follows from the stored rows."""
    found = []
    for files in _each_width(shape):
        old, new = _project(files), _project(_with_one_more(files, shape))
        both = old.nodes, old.sources, new.nodes, new.sources
        found.append(_calls(partial(compare_projects, *both)))

    assert found[1] < 4.6 * found[0]


@pytest.mark.parametrize("shape", ["nested", "subqueries"])
def test_so_they_do_for_what_columns_are_made_of(shape: str) -> None:
    """And so for their lineage."""
    projects = [_project(files) for files in _each_width(shape)]
    relations = [Meanings.of(one, one.sources)[shape].relation for one in projects]
    few, many = (_calls(partial(column_sources, one)) for one in relations if one is not None)

    assert many < 4.6 * few


def _each_width(shape: str) -> Iterator[dict[str, str]]:
    """The files of a project with few and with many columns."""
    for width in WIDTHS:
        names = [f"c{number}" for number in range(width)]
        columns = "".join(f", {name}: string" for name in names)
        query, each = SHAPES[shape]
        listed = ", ".join(each.format(name) for name in names)
        yield {
            "infold.yml": "name: wide\nsources:\n  raw.events:\n    path: landing/*.json\n"
            f"    event_time_column: at\n    columns: {{id: string, at: timestamp{columns}}}\n"
            "  raw.few: {path: few/*.json, columns: {id: string}}\n",
            "models/events.sql": EVENTS,
            f"models/{shape}.sql": query.replace("{names}", ", ".join(names)).replace(
                "{each}", listed
            ),
        }


def _with_one_more(files: dict[str, str], shape: str) -> dict[str, str]:
    """The same with one more column in the model."""
    file = f"models/{shape}.sql"
    return {**files, file: files[file].replace("SELECT ", "SELECT 1 AS one, ", 1)}


def _project(files: dict[str, str]) -> Project:
    project, errors = read(files)
    assert project is not None, errors
    assert not errors, errors
    return project


def _calls(work: Callable[[], object]) -> int:
    """How many calls something makes."""
    with Profile() as profile:
        work()
    return sum(entry.callcount for entry in profile.getstats())
