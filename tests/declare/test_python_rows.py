"""Events and rows by key in Python: what is declared, what is known of them, what is refused."""

from __future__ import annotations

import re

import pytest
from tests.declare.shop import SHOP, model, project, read

from infold.analysis.definitions.compare import compare_projects
from infold.analysis.definitions.meanings import Meanings
from infold.analysis.definitions.same_events import same_events
from infold.core.functions import PythonInput
from infold.core.project import Input

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
BY_KEY = """from infold import model


@model(
    materialization="cumulative_aggregate",
    group_by=["user_id"],
    inputs={"clicks": {"columns": ["event_ts", "url"]}},
    columns={"user_id": "string", "path": "array<string>"},
)
def paths(rows):
    return {"path": [row["url"] for row in rows]}
"""
FILES = {name: text for name, text in SHOP.items() if name != "models/clicks.sql"} | {
    "models/clicks.py": EVENTS,
    "models/paths.py": BY_KEY,
    "lib/text.py": "def clean(text):\n    return text\n",
}


def test_events_are_declared() -> None:
    """Events are taken in from the source, which has no table then; sessions read them."""
    shop = project(FILES)
    node = shop["clicks"]

    assert node.model.python is not None
    assert node.model.python.inputs == (
        PythonInput("raw.clicks", "row", ("event_id", "user_id", "event_ts", "url")),
    )
    assert (node.source, node.inputs) == ("raw.clicks", (Input("raw.clicks", "event_ts"),))
    assert node.model.unique_key == ("event_id",)
    assert "raw.clicks" not in shop
    sessions = shop["sessions"].query
    assert sessions is not None
    assert (sessions.time_column, sessions.key) == ("event_ts", ("event_id",))


def test_rows_by_key_are_declared() -> None:
    """The key is that of the table, and the function may leave a key out."""
    query = project(FILES)["paths"].grouped

    assert query is not None
    assert [key.name for key in query.keys] == ["user_id"]
    assert set(query.columns or ()) == {"event_ts", "url", "user_id"}
    assert query.having
    assert query.followed is None


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
def test_changes_are_compared(file: str, old: str, new: str, category: str, how: str) -> None:
    """Whatever decides about rows builds the table again, and nothing else does."""
    before = project(FILES)
    after = project({**FILES, file: FILES[file].replace(old, new)})
    name = "paths" if "paths" in file else "clicks"

    changes = compare_projects(before, before.sources, after, after.sources)

    assert old in FILES[file]
    [change] = [one for one in changes if one.model == name]
    assert (change.category, change.how) == (category, how)
    assert bool(change.columns_kept) == (how == "nothing")  # the function may leave keys out


CODES = "SELECT code AS event_id, code AS user_id, code AS event_ts, code AS url FROM raw.countries"
SEEN = "SELECT DISTINCT user_id, url, event_ts FROM clicks"
OPAQUE = """from infold import model

@model(materialization="view",
       columns={"user_id": "string", "url": "string", "event_ts": "timestamp"})
def seen(clicks):
    return clicks
"""

MISTAKES = [
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


@pytest.mark.parametrize(("file", "old", "new", "slug", "line"), [one[1:] for one in MISTAKES],
                         ids=[one[0] for one in MISTAKES])  # fmt: skip
def test_a_mistake_has_its_place(
    file: str, old: str, new: str, slug: str, line: int | None
) -> None:
    """Each mistake is an error at the line of the file that has it."""
    text = FILES[f"models/{file}.py"]
    assert old in text
    files = {
        **FILES,
        "models/countries.sql": model("table", CODES),
        "models/seen.sql": model("view", SEEN),
        f"models/{file}.py": text.replace(old, new),
    }

    _, errors = read(files)

    assert (slug, line) in [
        (error.slug, None if line is None else error.at and error.at.line) for error in errors
    ]
    assert {error.at and error.at.file for error in errors} == {f"models/{file}.py"}


def test_a_view_in_python_is_no_input() -> None:
    """How the rows of such a view follow from others is not known."""
    files = {**FILES, "models/seen.py": OPAQUE}
    files["models/paths.py"] = BY_KEY.replace('"clicks": {', '"seen": {')

    _, errors = read(files)

    assert [error.slug for error in errors] == ["python-view"]


@pytest.mark.parametrize("given", ["{}", '{"columns": ["event_id", "amount", "event_ts"]}'])
def test_a_source_that_is_declared_otherwise(given: str) -> None:
    """What a function makes of a wider column is not known, so events are made again."""
    text = re.sub(r'"raw.clicks": \{"columns": \[.*\]\}', f'"raw.clicks": {given}', EVENTS)
    before = {**FILES, "models/clicks.py": text}
    after = {
        **before,
        "infold.yml": before["infold.yml"].replace("decimal(18,2)", "decimal(20,2)"),
    }
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
    before = project(FILES)
    after = project({**FILES, "models/clicks.py": EVENTS.replace("None}", new)})
    one, two = (Meanings.of(each, each.sources)["clicks"] for each in (before, after))

    found = same_events(one, two)

    assert found is not None
    assert (found.other == "", found.rows) == (same, same)
