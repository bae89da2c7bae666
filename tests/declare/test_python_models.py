"""Models and rows that are functions in Python: how they are read, and what is wrong with them."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest
from tests.declare.shop import INFOLD, SHOP, model, project, read

from infold.analysis.definitions.compare import compare_projects, same_events
from infold.analysis.definitions.meanings import Meanings
from infold.core.functions import PythonInput
from infold.core.model import DeclaredBound
from infold.core.project import Batches, Bound, Input
from infold.spark.events.arrivals import has_filter

DAY = 86_400_000_000

WEEKLY = '''"""Users by week."""
from datetime import datetime

from infold import model
from pyspark.sql import functions as F
from lib.days import spread


@model(
    materialization="table",
    timeseries={"event_time_column": "event_ts", "partition_column": "day"},
    incremental={"batch_size": 2},
    inputs={"clicks": {"before": "6 days"}, "raw.countries": {"columns": ["code"]}},
    columns={"day": "date", "users": "bigint"},
)
def weekly(clicks, countries):
    """One row for each day."""
    return spread(clicks).groupBy("day").agg(F.countDistinct("user_id").alias("users"))
'''
LIBRARY = {
    "lib/days.py": "from lib.deep.more import times\n\ndef spread(rows):\n    return times(rows)\n",
    "lib/deep/more.py": "from . import least\n\ndef times(rows):\n    return rows\n",
    "lib/deep/least.py": "LEAST = 1\n",
    "lib/unused.py": "import random\nX = random.random()\n",
}
FILES = {**SHOP, "models/weekly.py": WEEKLY, **LIBRARY}
MODEL = """from infold import model

@model(materialization="table", columns={"a": "int"}%s)
def daily_users(clicks):
    return clicks
"""


def test_a_declaration_is_read() -> None:
    """Inputs, bounds and columns are those of the decorator, or of infold.yml; the code has all
    modules in use.
    """
    said = INFOLD + "models: {weekly: {tags: [nightly]}}\n"
    node = project({**FILES, "infold.yml": said})["weekly"]

    code, incremental = node.model.python, node.model.incremental
    assert code is not None
    assert incremental is not None
    assert (code.function, node.model.tags) == ("weekly", ("nightly",))
    assert code.files == (
        "models/weekly.py",
        "lib/days.py",
        "lib/deep/least.py",
        "lib/deep/more.py",
    )
    assert code.inputs == (
        PythonInput("clicks", "clicks"),
        PythonInput("raw.countries", "countries", ("code",)),
    )
    assert incremental.bounds == (DeclaredBound("clicks", 6 * DAY), DeclaredBound("raw.countries"))
    assert node.columns == ("day", "users")
    assert [(one.name, one.time_column, one.bounds) for one in node.inputs] == [
        ("clicks", "event_ts", (Bound(6 * DAY),)),
        ("raw.countries", None, (Bound(),)),
    ]
    assert node.bounds_declared


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("models/weekly.py", "One row for each day.", "A row a day.", True),
        ("lib/unused.py", "import random", "import uuid", True),
        ("models/clicks.sql", "url, amount", "url, amount, seen_at", False),
    ],
)
def test_what_identifies_a_definition(file: str, old: str, new: str, *, same: bool) -> None:
    """The columns that it is given count; docstrings and modules that are not imported do not."""
    after = project({**FILES, file: FILES[file].replace(old, new)})["weekly"]

    assert old in FILES[file]
    assert (project(FILES)["weekly"].fingerprint == after.fingerprint) == same


@pytest.mark.parametrize(
    ("file", "old", "new", "category", "how", "differences"),
    [
        ("lib/deep/least.py", "1", "1  # one", "none", "nothing", [("layout", "")]),
        ("models/weekly.py", '"batch_size": 2', '"batch_size": 3', "metadata", "restamp", None),
        ("lib/deep/least.py", "1", "2", "breaking", "rebuild", [("code", "lib/deep/least.py")]),
        ("models/weekly.py", '"bigint"', '"int"', "breaking", "rebuild", [("column", "users")]),
        ("models/weekly.py", '"6 days"', '"5 days"', "breaking", "rebuild", [("bounds", "")]),
    ],
)
def test_changes_are_compared(
    file: str,
    old: str,
    new: str,
    category: str,
    how: str,
    differences: list[tuple[str, str]] | None,
) -> None:
    """A changed definition is one of the known categories, and nothing is proven about code."""
    before = project(FILES)
    after = project({**FILES, file: FILES[file].replace(old, new)})

    [change] = compare_projects(before, before.sources, after, after.sources)

    assert (change.model, change.category, change.how) == ("weekly", category, how)
    same = before["weekly"].fingerprint == after["weekly"].fingerprint
    assert same is (how != "rebuild")
    if differences is not None:
        assert [(one.part, one.name) for one in change.differences] == differences


READERS = {
    "models/paying.py": MODEL.replace('"table"', '"view"').replace("daily_users", "paying") % "",
    "models/over.sql": "---\nmaterialization: view\n---\nSELECT a FROM paying",
    "models/whole.sql": "---\nmaterialization: table\n---\nSELECT max(a) AS most FROM over",
    "models/third.py": MODEL.replace("clicks", "over") % "",
}
CELLS = """---
materialization: table
timeseries: {event_time_column: event_ts, partition_column: day}
incremental: {bounds: {clicks: {before: 1 day}}}
---
SELECT cast(c.event_ts AS date) AS day, v.a FROM clicks c CROSS JOIN over v"""
BY_KEY = model("cumulative_aggregate", "SELECT a, count(*) AS n FROM over GROUP BY a")
BY_USER = model("cumulative_aggregate", "SELECT user_id, count(*) AS n FROM clicks GROUP BY 1")


def test_views_are_read_whole() -> None:
    """A view in Python is read by what is built whole, also through a view; by nothing else. How
    its rows follow from others is not known, so it is no input of rows by key.
    """
    project({**SHOP, **READERS})

    _, errors = read({**SHOP, **READERS, "models/cells.sql": CELLS, "models/keys.sql": BY_KEY})

    assert [(error.slug, error.at and error.at.file) for error in errors] == [
        ("python-view", "models/cells.sql"),
        ("python-view", "models/keys.sql"),
    ]
    paths = ROWS_BY_KEY.replace('"clicks": {', '"seen": {')
    _, errors = read({**FILES_OF_ROWS, "models/seen.py": OPAQUE, "models/paths.py": paths})
    assert [error.slug for error in errors] == ["python-view"]


def _body(body: str, imports: str = "") -> str:
    return f"{imports}\n{MODEL % ''}".replace("return clicks", body)


MISTAKES = [
    ("no Python", "def (", "bad-python", 1),
    ("a helper", "X = 1\n", "no-model-function", 1),
    ("two", MODEL % "" + (MODEL % "").replace("daily_users", "other"), "no-model-function", 8),
    ("no call", "from infold import model\n@model\ndef m(clicks): ...\n", "missing-key", 2),
    ("a class", (MODEL % "").replace("def daily_users(clicks)", "class X"),
     "bad-model-function", 4),
    ("no parameter", (MODEL % "").replace("(clicks)", "()"), "bad-model-function", 4),
    ("a default", (MODEL % "").replace("(clicks)", "(clicks, n=1)"), "bad-model-function", 4),
    ("a name", MODEL % ", tags=TAGS", "not-literal", 3),
    ("an f-string", MODEL % ', tags=[f"{1}"]', "not-literal", 3),
    ("an unknown key", MODEL % ", materialisation=1", "unknown-key", 3),
    ("a misspelt key", (MODEL % "").replace("columns=", "colums="), "unknown-key", 3),
    ("no columns", (MODEL % "").replace(', columns={"a": "int"}', ""), "missing-key", 3),
    ("a type", (MODEL % "").replace('"int"', '"number"'), "bad-type", 3),
    ("no such table", (MODEL % "").replace("clicks", "klicks"), "unknown-table", 4),
    ("no such column", MODEL % ', inputs={"clicks": {"columns": ["x"]}}', "unknown-column", 3),
    ("no parameter of it", MODEL % ', inputs={"clicks": {}, "raw.countries": {}}',
     "bad-model-function", 3),
    ("a kind", (MODEL % "").replace('"table"', '"sessions"'), "not-in-python", 3),
    ("its own bounds", MODEL % ', timeseries={"event_time_column": "a"}, '
     'incremental={"bounds": {"clicks": {}}}', "needless-key", 3),
    ("no time", (MODEL % ', timeseries={"event_time_column": "a"}, incremental={}').replace(
        '"int"', '"date"').replace("(clicks)", "(by_user)"), "no-timed-input", 3),
    ("a bound of a lookup", MODEL.replace("(clicks)", "(clicks, countries)").replace(
        '"int"', '"date"') % ', timeseries={"event_time_column": "a"}, incremental={}, '
     'inputs={"clicks": {}, "raw.countries": {"before": "1 day"}}', "unknown-table", 3),
    ("a partition of no time", MODEL % ', timeseries={"event_time_column": "a"}, incremental={}',
     "not-a-time", 4),
    ("a clock", _body("return clicks.where(datetime.now() > 1)", "from datetime import datetime"),
     "not-deterministic", 6),
    ("another clock", _body("return clicks, dt.date.today()", "import datetime as dt"),
     "not-deterministic", 6),
    ("chance", _body("return F.rand()", "import pyspark.sql.functions as F"),
     "not-deterministic", 6),
    ("a sample", _body("return clicks.sample(0.1)"), "not-deterministic", 6),
    ("what is kept", _body("global seen", "seen = 0"), "not-deterministic", 6),
    ("chance in lib", _body("return clicks", "import lib.unused"), "not-deterministic", 2),
    ("a session", _body("return clicks.sparkSession.table('x')"), "outside-inputs", 6),
    ("its own session",
     _body("return SparkSession.builder", "from pyspark.sql import SparkSession"),
     "outside-inputs", 6),
    ("a file", _body("return open('x')"), "outside-inputs", 6),
    ("a write", _body("clicks.write.parquet('x')"), "outside-inputs", 6),
    ("no such module", _body("return clicks", "from lib.none import x"), "project-import", 1),
    ("a model", _body("return clicks", "import models.weekly"), "project-import", 1),
    ("a late import", _body("from lib.days import spread"), "project-import", 6),
]  # fmt: skip


@pytest.mark.parametrize(("text", "slug", "line"), [one[1:] for one in MISTAKES],
                         ids=[one[0] for one in MISTAKES])  # fmt: skip
def test_a_mistake_has_its_place(text: str, slug: str, line: int) -> None:
    """Each mistake is one error, at the line of the file that has it."""
    files = {**SHOP, **LIBRARY, "models/by_user.sql": BY_USER, "models/m.py": text}

    _, errors = read(files)

    assert [(error.slug, error.at and error.at.line) for error in errors] == [(slug, line)]


@pytest.mark.parametrize(
    ("keys", "batches"),
    [
        ('timeseries={"event_time_column": "a"}, incremental={', Batches.PER_PARTITION_ONLY),
        ('incremental={"enabled": False, ', Batches.FULLY_BATCH_SAFE),
    ],
)
def test_any_result_may_do(keys: str, batches: Batches) -> None:
    """What changes by itself passes in a model that says so, by cells or built whole."""
    vouched = f', {keys}"safety_overrides": {{"allow_nondeterministic": True}}}}'
    text = MODEL.replace('"int"', '"date"').replace("return clicks", "return clicks.sample(0.1)")

    node = project({**SHOP, "models/m.py": text % vouched})["m"]

    assert node.overrides_used == ("allow_nondeterministic",)
    assert node.batches is batches


def test_a_mistake_in_a_module_is_reported_once() -> None:
    """A module that several models import has each of its mistakes once."""
    texts = {f"models/m{at}.py": "import lib.broken\n" + MODEL % "" for at in (1, 2)}

    _, [error] = read({**SHOP, **texts, "lib/broken.py": "x = ("})

    assert (error.slug, error.at and error.at.file) == ("bad-python", "lib/broken.py")


EVENTS = """from infold import model
from lib.text import clean


@model(
    materialization="events",
    unique_key=["event_id"],
    prefer=["url desc"],
    timeseries={"event_time_column": "event_ts", "granularity": "day"},
    inputs={"raw.clicks": {"columns": ["event_id", "user_id", "event_ts", "url"]}},
    columns={"event_id": "string", "user_id": "string", "event_ts": "timestamp",
             "url": "string", "amount": "decimal(18,2)"},
)
def clicks(row):
    return {**row, "url": clean(row["url"]), "amount": None}
"""
ROWS_BY_KEY = """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["user_id"],
    inputs={"clicks": {"columns": ["event_ts", "url"]}},
    columns={"user_id": "string", "path": "array<string>"},
)
def paths(rows):
    return {"path": [row["url"] for row in rows]}
"""
FILES_OF_ROWS = {name: text for name, text in SHOP.items() if name != "models/clicks.sql"} | {
    "models/clicks.py": EVENTS,
    "models/paths.py": ROWS_BY_KEY,
    "lib/text.py": "def clean(text):\n    return text\n",
}


def test_rows_are_declared() -> None:
    """Events are taken in from the source, which has no table then; sessions read them. The key of
    rows by key is that of the table, and the function may leave a key out.
    """
    shop = project(FILES_OF_ROWS)
    node = shop["clicks"]

    assert node.model.python is not None
    assert node.model.python.inputs == (
        PythonInput("raw.clicks", "row", ("event_id", "user_id", "event_ts", "url")),
    )
    assert (node.source, node.inputs) == ("raw.clicks", (Input("raw.clicks", "event_ts"),))
    assert node.model.unique_key == ("event_id",)
    assert "raw.clicks" not in shop
    sessions, query = shop["sessions"].query, shop["paths"].grouped
    assert sessions is not None
    assert (sessions.time_column, sessions.key) == ("event_ts", ("event_id",))
    assert query is not None
    assert [key.name for key in query.keys] == ["user_id"]
    assert set(query.columns or ()) == {"event_ts", "url", "user_id"}
    assert (bool(query.having), query.followed) == (True, None)


@pytest.mark.parametrize(
    ("file", "old", "new", "category", "how"),
    [
        ("models/clicks.py", '"amount": None', '"amount":  None', "none", "nothing"),
        ("models/clicks.py", '"amount": None', '"amount": 1', "breaking", "rebuild"),
        ("lib/text.py", "return text", "return text or None", "breaking", "rebuild"),
        ("models/clicks.py", '"decimal(18,2)"', '"decimal(20,2)"', "breaking", "rebuild"),
        ("models/clicks.py", '"user_id", "event_ts", "url"]', '"user_id", "event_ts"]',
         "breaking", "rebuild"),
        ("models/paths.py", '"path": [', '"path": 1 * [', "breaking", "rebuild"),
        ("models/paths.py", '["event_ts", "url"]', '["url", "event_ts"]', "breaking", "rebuild"),
        ("models/paths.py", "def paths", "# why\n\ndef paths", "none", "nothing"),
    ],
)  # fmt: skip
def test_changes_of_rows_are_compared(
    file: str, old: str, new: str, category: str, how: str
) -> None:
    """Whatever decides about rows builds the table again, and nothing else does."""
    before = project(FILES_OF_ROWS)
    after = project({**FILES_OF_ROWS, file: FILES_OF_ROWS[file].replace(old, new)})
    name = "paths" if "paths" in file else "clicks"

    changes = compare_projects(before, before.sources, after, after.sources)

    assert old in FILES_OF_ROWS[file]
    [change] = [one for one in changes if one.model == name]
    assert (change.category, change.how) == (category, how)
    assert bool(change.columns_kept) == (how == "nothing")  # the function may leave keys out


def test_rows_that_a_function_makes_are_not_the_rows_of_a_file() -> None:
    """It may make none of a row, or several: a file's rows are counted before it sees them."""
    events = project(FILES_OF_ROWS)["clicks"]
    plain = project(SHOP)["clicks"]
    kept = replace(plain, model=replace(plain.model, sql="SELECT * FROM raw.clicks"))
    some = replace(plain, model=replace(plain.model, sql="SELECT * FROM raw.clicks WHERE true"))

    assert [has_filter(one) for one in (events, kept, some)] == [True, False, True]


CODES = "SELECT code AS event_id, code AS user_id, code AS event_ts, code AS url FROM raw.countries"
SEEN = "SELECT DISTINCT user_id, url, event_ts FROM clicks"
OPAQUE = """from infold import model

@model(materialization="view",
       columns={"user_id": "string", "url": "string", "event_ts": "timestamp"})
def seen(clicks):
    return clicks
"""

MISTAKES_OF_ROWS = [
    ("no key", "clicks", 'unique_key=["event_id"],', "", "missing-key", 5),
    ("no time", "clicks", "timeseries=", "audits=[], description=", "wrong-type", 9),
    ("a key of no column", "clicks", '"event_id"],', '"id"],', "unknown-column", 7),
    ("a time that is none", "clicks", '"event_ts": "timestamp"', '"event_ts": "string"',
     "not-a-time", 9),
    ("events of a model", "clicks", '"raw.clicks": {"columns": ', '"countries": {"columns": ',
     "not-row-wise", 10),
    ("two sources", "clicks", '"raw.clicks"', '"raw.countries": {}, "raw.clicks"',
     "bad-model-function", 10),
    ("two parameters", "clicks", "def clicks(row)", "def clicks(row, more)",
     "bad-model-function", 14),
    ("a bound", "clicks", '{"columns": ["event_id"', '{"before": "1 day", "columns": ["event_id"',
     "unknown-key", 10),
    ("a key of events", "clicks", 'prefer=["url desc"]', 'group_by=["url"]', "needless-key", 8),
    ("rows by no key", "paths", 'group_by=["user_id"],', "", "missing-key", 4),
    ("an empty key", "paths", '["user_id"]', "[]", "wrong-type", 6),
    ("a key of no column", "paths", '["user_id"]', '["who"]', "unknown-column", 6),
    ("a key of no input", "paths", '"user_id"', '"who"', "unknown-column", None),
    ("no such column", "paths", '["event_ts", "url"]', '["x"]', "unknown-column", 7),
    ("no columns", "paths", '["event_ts", "url"]', "[]", "wrong-type", 7),
    ("a view that is no row by row", "paths", '"clicks": {', '"seen": {', "not-by-key", 7),
]  # fmt: skip


@pytest.mark.parametrize(
    ("file", "old", "new", "slug", "line"),
    [one[1:] for one in MISTAKES_OF_ROWS],
    ids=[one[0] for one in MISTAKES_OF_ROWS],
)
def test_a_mistake_of_rows_has_its_place(
    file: str, old: str, new: str, slug: str, line: int | None
) -> None:
    """Each mistake is an error at the line of the file that has it."""
    text = FILES_OF_ROWS[f"models/{file}.py"]
    assert old in text
    files = {
        **FILES_OF_ROWS,
        "models/countries.sql": model("table", CODES),
        "models/seen.sql": model("view", SEEN),
        f"models/{file}.py": text.replace(old, new),
    }

    _, errors = read(files)

    assert (slug, line) in [
        (error.slug, None if line is None else error.at and error.at.line) for error in errors
    ]
    assert {error.at and error.at.file for error in errors} == {f"models/{file}.py"}


@pytest.mark.parametrize("given", ["{}", '{"columns": ["event_id", "amount", "event_ts"]}'])
def test_a_source_that_is_declared_otherwise(given: str) -> None:
    """What a function makes of a wider column is not known, so events are made again."""
    text = re.sub(r'"raw.clicks": \{"columns": \[.*\]\}', f'"raw.clicks": {given}', EVENTS)
    before = {**FILES_OF_ROWS, "models/clicks.py": text}
    after = {**before, "infold.yml": before["infold.yml"].replace("decimal(18,2)", "decimal(20,2)")}
    one, two = project(before), project(after)

    [change] = [
        each
        for each in compare_projects(one, one.sources, two, two.sources)
        if each.model == "clicks"
    ]

    assert (change.how, change.columns_kept) == ("rebuild", frozenset())


@pytest.mark.parametrize(("new", "same"), [("1}", False), ("None }", True)])
def test_other_code_is_not_forward_only(new: str, *, same: bool) -> None:
    """Other code may give an event another key, so it would be taken in twice, or never."""
    before = project(FILES_OF_ROWS)
    after = project({**FILES_OF_ROWS, "models/clicks.py": EVENTS.replace("None}", new)})
    one, two = (Meanings.of(each, each.sources)["clicks"] for each in (before, after))

    found = same_events(one, two)

    assert found is not None
    assert (found.other == "", found.rows) == (same, same)
