# ruff: noqa: E501 (one case is one row of a table)
"""SQL functions of a project: what a call becomes, and each mistake with its place."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SHOP, project, read, write
from tests.declare.test_mistakes import shown

from infold.core.project import Project
from infold.declare.load import load

AT = "models/pages.sql"
NET = "CREATE FUNCTION net(price DECIMAL(18,2), rate DOUBLE) RETURNS DECIMAL(18,2) RETURN price / (1 + rate)"
LETTERS = "CREATE FUNCTION letters(xs ARRAY<STRING>, y STRING) RETURNS ARRAY<STRING> RETURN transform(xs, x -> concat(x, y))"


def with_functions(functions: Mapping[str, str], select: str, name: str = AT) -> dict[str, str]:
    """The project with functions, and a view with a query that may call them."""
    files = {f"functions/{name}.sql": text for name, text in functions.items()}
    return {**SHOP, **files, name: f"---\nmaterialization: view\n---\n{select}"}


def sql_of(functions: Mapping[str, str], select: str) -> str:
    """What the query is once the calls in it are expanded."""
    return project(with_functions(functions, select))["pages"].model.sql


CALLS = {
    "arguments are cast, and the result": (
        NET, "net(amount, 0.19)",
        "cast(cast(amount AS DECIMAL(18,2)) / (1 + cast(0.19 AS DOUBLE)) AS DECIMAL(18,2))",
    ),
    "a body is one expression": (
        "f(a INT) RETURN a + 1", "2 * f(amount)",
        "2 * (cast(amount AS INT) + 1)",
    ),
    "an argument is one expression": (
        "f(a INT) RETURNS INT RETURN a * 2", "f(1 + 2)",
        "cast(cast(1 + 2 AS INT) * 2 AS INT)",
    ),
    "a parameter hides no column, and no column a parameter": (
        "f(amount INT, url INT) RETURNS INT RETURN amount - url", "f(length(url), amount)",
        "cast(cast(length(url) AS INT) - cast(amount AS INT) AS INT)",
    ),
    "a parameter is written in any case, in quotes, and with the function's name": (
        "f(a INT) RETURNS INT RETURN A + `a` + f.a", "f(1)",
        "cast(cast(1 AS INT) + cast(1 AS INT) + cast(1 AS INT) AS INT)",
    ),
    "a variable of a lambda function hides no column of an argument": (
        LETTERS, "letters(split(url, ''), x)",
        "cast(transform(cast(split(url, '') AS ARRAY<STRING>), infold__letters__x -> concat(infold__letters__x, cast(x AS STRING))) AS ARRAY<STRING>)",
    ),
    "a field of a parameter": (
        "f(p STRUCT<u: INT>) RETURNS INT RETURN p.u", "f(named_struct('u', 1))",
        "cast((cast(named_struct('u', 1) AS STRUCT<u: INT>)).u AS INT)",
    ),
    "fields of a struct keep their names": (
        "f(a INT, p STRUCT<u: INT>) RETURN struct(a, p.u, a AS b)", "f(1, s)",
        "(struct(cast(1 AS INT) AS a, (cast(s AS STRUCT<u: INT>)).u AS u, cast(1 AS INT) AS b))",
    ),
    "comments and lines of a body": (
        "-- about\nCREATE OR REPLACE TEMPORARY FUNCTION IF NOT EXISTS f(a INT) -- of a\nRETURNS INT\nCOMMENT 'x' LANGUAGE SQL DETERMINISTIC\nRETURN a -- itself\n  + /* one */ 1;\n-- end", "f(1)",
        "cast(cast(1 AS INT) + 1 AS INT)",
    ),
    "numbers with their types": (
        "f(a DOUBLE) RETURNS DOUBLE RETURN a + 1.5D + 2L", "f(3.75D)",
        "cast(cast(3.75D AS DOUBLE) + 1.5D + 2L AS DOUBLE)",
    ),
    "no parameter": (
        "f() RETURNS INT RETURN 7", "f()",
        "cast(7 AS INT)",
    ),
    "a name that another dialect has a function of": (
        "safe_divide(a DOUBLE) RETURNS DOUBLE RETURN a", "safe_divide(2)",
        "cast(cast(2 AS DOUBLE) AS DOUBLE)",
    ),
    "a list that is compared": (
        "f(a INT, b INT) RETURNS BOOLEAN RETURN (a, b) IN ((1, 2))", "f(1, 2)",
        "cast((cast(1 AS INT), cast(2 AS INT)) IN ((1, 2)) AS BOOLEAN)",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_a_call_becomes_its_body(name: str) -> None:
    """A call becomes the body with the arguments in the parameters' places."""
    function, call, wanted = CALLS[name]
    text = function if "CREATE" in function else f"CREATE FUNCTION {function}"
    called = call.partition("(")[0].split()[-1]
    rows = "(SELECT *, url AS x, named_struct('u', 1) AS s FROM clicks)"

    assert sql_of({called: text}, f"SELECT {call} AS found FROM {rows} AS c") == (
        f"SELECT {wanted} AS found FROM {rows} AS c"
    )


def test_functions_call_functions() -> None:
    """A call in a body is expanded too, and so is one in an argument."""
    functions = {
        "twice": "CREATE FUNCTION twice(a INT) RETURNS INT RETURN 2 * a",
        "four": "CREATE FUNCTION four(a INT) RETURNS INT RETURN twice(twice(a))",
    }
    twice = "cast(2 * cast(cast(2 * cast(cast(1 AS INT) AS INT) AS INT) AS INT) AS INT)"

    found = project(with_functions(functions, "SELECT four(1) AS n FROM clicks"))["pages"].model

    assert found.sql == f"SELECT cast({twice} AS INT) AS n FROM clicks"
    assert [one.name for one in found.functions] == ["four", "twice"]


def test_lines_behind_a_call_keep_their_numbers() -> None:
    """A call over several lines becomes one line and as many line breaks."""
    function = {"f": "CREATE FUNCTION f(a INT,\n b INT)\nRETURNS INT\nRETURN a\n + b"}
    found = sql_of(function, "SELECT f(1, -- one\n  2) AS n,\n url FROM clicks")

    assert found == (
        "SELECT cast(cast(1 AS INT) + cast(2 AS INT) AS INT)\n AS n,\n url FROM clicks"
    )


@pytest.mark.parametrize(
    "select",
    [
        "WITH f (a, b) AS (SELECT url, amount FROM clicks) SELECT a, b FROM f",
        "SELECT a FROM (SELECT url FROM clicks) AS f (a)",
        "SELECT f.url, f.amount AS f FROM clicks AS f",
    ],
)
def test_names_that_are_no_calls_stay(select: str) -> None:
    """A function and a table, or a column, may have one name."""
    assert sql_of({"f": "CREATE FUNCTION f(a INT) RETURN a"}, select) == select


FUNCTIONS = {
    "g(a INT) RETURN a": "bad-function @:1 `g`",
    "SELECT 1": "bad-function @:1 `SELECT`",
    "": "bad-function @:1 ``",
    "f(a INT)": "bad-function @:1 `)`",
    "f(a INT) RETURN": "bad-function @:1 `RETURN`",
    "f(a INT) RETURN a; SELECT 1": "bad-function @:1 `SELECT`",
    "f(a VARCHAR(3)) RETURN a": "bad-type @:1 `VARCHAR(3)` (string)",
    "f(a text) RETURN a": "bad-type @:1 `text` (string)",
    "f(a) RETURN a": "bad-function @:1 `)`",
    "f(a INT, A INT) RETURN a": "duplicate-name @:1 `A`",
    "f(a INT DEFAULT 1) RETURN a": "bad-function @:1 `DEFAULT`",
    "f(a INT) RETURNS TABLE (b INT) RETURN a": "bad-function @:1 `TABLE`",
    "f(a INT) NOT DETERMINISTIC RETURN a": "bad-function @:1",
    "f(a INT) RETURN (SELECT max(amount) FROM clicks)": "bad-function @:1",
    "f(a INT) RETURN SELECT a": "bad-sql @:1",
    "f(a INT)\nRETURN sum(a)": "bad-function @:2 `sum(a)`",
    "f(a INT) RETURN row_number() OVER (ORDER BY a)": "bad-function @:1",
    "f(a INT) RETURN explode(array(a))": "bad-function @:1",
    "f(a INT) RETURN a AS b": "bad-function @:1 `RETURN`",
    "f(a INT) RETURN a, a": "bad-function @:1 `RETURN`",
    "f(amount INT)\nRETURN amonut": "unknown-column @:2 `amonut` (amount)",
    "f(a INT) RETURN uper(a)": "unknown-function @:1 `uper` (upper",
    "f(a INT) RETURN f(a)": "cycle @",
    "f(a ARRAY<INT>) RETURN arrays_zip(a, a)": "bad-function @:1 ",
    "f(a INT) RETURN (a, 1)": "bad-function @:1 ",
    "f(a INT) RETURN 'a": "bad-sql @",
}  # fmt: skip


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_mistake_in_a_function_has_its_place(function: str) -> None:
    """It is the only error, though a model calls the function; `@` stands for its file."""
    text = f"CREATE FUNCTION {function}" if "(" in function else function
    _, [error] = read(with_functions({"f": text}, "SELECT f(1) AS n FROM clicks"))

    assert shown(error).replace("functions/f.sql", "@").startswith(FUNCTIONS[function])


NAMES = [
    ("functions/upper.sql", "duplicate-name functions/upper.sql"),
    ("functions/a-b.sql", "bad-name functions/a-b.sql"),
    ("functions/select.sql", "bad-name functions/select.sql"),
    ("functions/case.py", "duplicate-name functions/case.py"),
    ("functions/values.py", "bad-name functions/values.py"),
]


@pytest.mark.parametrize(("file", "wanted"), NAMES)
def test_a_function_has_a_name_of_its_own(file: str, wanted: str) -> None:
    """A name that Spark knows, or that is none, is refused."""
    _, errors = read({**SHOP, file: "CREATE FUNCTION f() RETURN 1"})

    assert [shown(error)[: len(wanted)] for error in errors] == [wanted]


WRONG = [
    ("SELECT url,\n  f(1) AS n FROM clicks", f"bad-call {AT}:5 `f`"),
    ("SELECT f(1, 2, 3) AS n FROM clicks", f"bad-call {AT}:4 `f`"),
    ("SELECT f(DISTINCT 1, 2) AS n FROM clicks", f"bad-call {AT}:4 `f`"),
    ("SELECT f(1, 2) OVER (ORDER BY url) AS n FROM clicks", f"bad-call {AT}:4 `f`"),
    ("SELECT f(1, 2) FILTER (WHERE true) AS n FROM clicks", f"bad-call {AT}:4 `f`"),
    ("SELECT f(1, b => 2) AS n FROM clicks", f"bad-call {AT}:4 `b`"),
    ("SELECT f(*) AS n FROM clicks", f"bad-call {AT}:4 `f`"),
    ("SELECT f(1, x -> x) AS n FROM clicks", f"bad-call {AT}:4 `x`"),
    ("SELECT f(1 AS a, 2) AS n FROM clicks", f"bad-call {AT}:4 `1`"),
    ("SELECT f(1, 2) FROM clicks", f"unnamed-column {AT}:4 `f`"),
    ("SELECT n FROM f(1, 2) AS t(n)", f"bad-call {AT}:4 `f`"),
    ("SELECT f(rand(), 2) AS n FROM clicks", f"bad-call {AT}:4 `rand`"),
    ("SELECT f(1, usr) AS n FROM clicks", f"unknown-column {AT}:4 `usr`"),
    ("SELECT url, f(1,\n  rand()) AS n FROM clicks", f"not-deterministic {AT}:5 `rand`"),
    ("SELECT infold__f(1) AS n FROM clicks", f"unknown-function {AT}:4 `infold__f`"),
]


@pytest.mark.parametrize(("select", "wanted"), WRONG)
def test_a_wrong_call_has_its_place(select: str, wanted: str) -> None:
    """The place is that of the call, or of the argument that is at fault."""
    function = "CREATE FUNCTION f(a INT, b INT) RETURNS INT RETURN a * a + b"
    table = with_functions({"f": function}, select)
    table[AT] = table[AT].replace("view", "table")
    _, errors = read(table)

    assert [shown(error)[: len(wanted)] for error in errors] == [wanted] * len(errors)
    assert errors


def test_a_misspelled_function_of_the_project_is_near() -> None:
    """The nearest names are those of Spark and of the project."""
    functions = {"first_part": "CREATE FUNCTION first_part(a STRING) RETURN a"}
    _, [error] = read(with_functions(functions, "SELECT frist_part(url) AS n FROM clicks"))

    assert dict(error.facts)["nearest"].startswith("first_part")


def test_a_mistake_inside_of_a_function_names_its_file() -> None:
    """What the expansion shows is at the call, with the file of the function."""
    functions = {
        "today": "CREATE FUNCTION today() RETURNS DATE RETURN current_date()",
        "age": "CREATE FUNCTION age(at TIMESTAMP) RETURNS INT RETURN datediff(today(), at)",
    }
    table = with_functions(functions, "SELECT url,\n  age(event_ts) AS days FROM clicks")
    table[AT] = table[AT].replace("view", "table")
    _, errors = read(table)

    assert [shown(error)[:40] for error in errors] == [f"clock {AT}:5 `age(event_ts)`"[:40]]
    assert errors[0].facts[:2] == (("at", f"{AT}:5"), ("in", "functions/age.sql"))


def test_keys_with_sql_call_functions() -> None:
    """Audits and the SQL of sessions are expanded as queries are."""
    function = "CREATE FUNCTION f(a STRING) RETURNS STRING RETURN upper(a)"
    clicks = CLICKS.replace(
        "unique_key", "audits:\n- expression: f(url) <> ''\n  where: f(url) > 'A'\nunique_key", 1
    )
    sessions = SHOP["models/sessions.sql"].replace(
        "user: user_id,",
        "user: f(user_id), cuts: {start_events: f(url) = 'X', campaign: [f(url)]},",
    )
    audit = "---\nmodel: clicks\n---\nSELECT f(url) AS page FROM clicks WHERE f(url) = 'A'"
    found = project(
        {
            **SHOP,
            "functions/f.sql": function,
            "models/clicks.sql": clicks,
            "models/sessions.sql": sessions,
            "audits/no_a.sql": audit,
        }
    )
    url = "cast(upper(cast(url AS STRING)) AS STRING)"

    in_key, in_file = found["clicks"].model.audits
    assert (in_key.name, in_key.sql, in_key.where) == (
        "expression(f(url) <> '')",
        f"{url} <> ''",
        f"{url} > 'A'",
    )
    assert in_file.sql == f"SELECT {url} AS page FROM clicks WHERE {url} = 'A'"
    model = found["sessions"].model.sessions
    assert model is not None
    assert model.user == url.replace("url", "user_id")
    assert [one.event_sql[0].sql for one in model.cuts] == [url, f"{url} = 'X'"]
    assert [one.name for one in found["sessions"].model.functions] == ["f"]


def fingerprints(functions: Mapping[str, str]) -> dict[str, str]:
    """The fingerprint of each model, where clicks and pages call functions."""
    files = with_functions(functions, "SELECT f(url) AS n FROM clicks")
    files["models/clicks.sql"] = CLICKS.replace("url,", "g(url) AS url,")
    return {node.name: node.fingerprint for node in project(files)}


def test_a_changed_body_changes_the_models_that_call_it() -> None:
    """A comment, a line break or another case of a word change none."""
    f, g = (f"CREATE FUNCTION {n}(a STRING) RETURNS STRING RETURN upper(a)" for n in "fg")
    before = fingerprints({"f": f, "g": g})

    same = f.replace("upper(a)", "-- louder\n  UPPER(A) /* all */")
    assert fingerprints({"f": same, "g": g}) == before
    after = fingerprints({"f": f.replace("upper", "lower"), "g": g})
    assert {name for name in before if after[name] != before[name]} == {"pages"}


def test_what_is_proven_of_the_body_holds_for_the_call() -> None:
    """A table is built cell by cell, though a function makes its day."""
    functions = {
        "day_of": "CREATE FUNCTION day_of(t TIMESTAMP) RETURNS DATE RETURN cast(t AS DATE)"
    }
    daily = (
        "---\nmaterialization: table\ntimeseries: {event_time_column: day, granularity: day}\n"
        "incremental: {}\n---\nSELECT day_of(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1"
    )
    files = {**with_functions(functions, "SELECT 1 AS one FROM clicks"), "models/days.sql": daily}
    [entry] = project(files)["days"].inputs

    assert [(bound.before, bound.after) for bound in entry.bounds] == [(0, 0)]


def test_a_call_may_not_grow_without_end() -> None:
    """A body that repeats its argument, called of itself again and again, has a limit."""
    function = "CREATE FUNCTION f(a STRING) RETURNS STRING RETURN concat(a, a, a, a)"
    call = "url"
    for _ in range(9):
        call = f"f({call})"
    _, errors = read(with_functions({"f": function}, f"SELECT {call} AS n FROM clicks"))

    assert [error.slug for error in errors] == ["too-deep"]


def changed(root: Path, file: str, old: str, new: str) -> Project:
    """The project after a change of one file, read as every command reads it."""
    path = root / file
    path.write_text(path.read_text().replace(old, new))
    return load(root)


def test_what_was_kept_of_a_project_knows_its_functions(tmp_path: Path) -> None:
    """A changed function is seen, and a changed model knows the functions that did not change."""
    function = "CREATE FUNCTION f(a STRING) RETURNS STRING RETURN upper(a)"
    others = {f"models/d{at}.sql": SHOP["models/daily.sql"] for at in range(9)}
    files = {**with_functions({"f": function}, "SELECT 1 AS one FROM clicks"), **others}
    top = "---\nmaterialization: table\n---\nSELECT f('a') AS n, max(sessions) AS most FROM d1"
    root = write(tmp_path / "shop", {**files, "models/top.sql": top})
    load(root)

    assert "lower" in changed(root, "functions/f.sql", "upper", "lower")["top"].model.sql
    assert "lower(cast('b'" in changed(root, "models/top.sql", "'a'", "'b'")["top"].model.sql
