"""Functions of a project that queries call, in SQL and in Python."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SESSIONS, SHOP, project, read, write
from tests.declare.test_mistakes import shown

from infold.core.project import Node, Project
from infold.core.sessions import Rule
from infold.declare.cache import FILE
from infold.declare.load import load
from infold.declare.python_code import read_sources
from infold.messages.errors import InfoldError

# ruff: noqa: E501 (one case is one row of a table)


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


def test_a_mistake_inside_of_a_function_names_its_file() -> None:
    """What the expansion shows is at the call, with the file of the function. The names nearest to
    a misspelled one are those of Spark and of the project.
    """
    functions = {
        "today": "CREATE FUNCTION today() RETURNS DATE RETURN current_date()",
        "age": "CREATE FUNCTION age(at TIMESTAMP) RETURNS INT RETURN datediff(today(), at)",
    }
    table = with_functions(functions, "SELECT url,\n  age(event_ts) AS days FROM clicks")
    table[AT] = table[AT].replace("view", "table")
    _, errors = read(table)

    assert [shown(error)[:40] for error in errors] == [f"clock {AT}:5 `age(event_ts)`"[:40]]
    assert errors[0].facts[:2] == (("at", f"{AT}:5"), ("in", "functions/age.sql"))
    functions = {"first_part": "CREATE FUNCTION first_part(a STRING) RETURN a"}
    _, [error] = read(with_functions(functions, "SELECT frist_part(url) AS n FROM clicks"))
    assert dict(error.facts)["nearest"].startswith("first_part")


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
    """A table is built cell by cell, though a function makes its day. A body that repeats its
    argument, called of itself again and again, has a limit.
    """
    day = "CREATE FUNCTION day_of(t TIMESTAMP) RETURNS DATE RETURN cast(t AS DATE)"
    daily = (
        "---\nmaterialization: table\ntimeseries: {event_time_column: day, granularity: day}\n"
        "incremental: {}\n---\nSELECT day_of(event_ts) AS day, count(*) AS n FROM clicks GROUP BY 1"
    )
    files = with_functions({"day_of": day}, "SELECT 1 AS one FROM clicks")
    [entry] = project({**files, "models/days.sql": daily})["days"].inputs
    assert [(bound.before, bound.after) for bound in entry.bounds] == [(0, 0)]

    function = "CREATE FUNCTION f(a STRING) RETURNS STRING RETURN concat(a, a, a, a)"
    call = "f(" * 9 + "url" + ")" * 9
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


HEAD = "from infold import function\nfrom re import escape as letters\n"
CLEAN = '@function(parameters=["STRING", "INT"], returns="STRING", deterministic=True)\ndef clean(text, most):\n    return letters(text)[:most]\n'
RULE_HEAD = "from infold import session_rule\nfrom re import escape as known\n"
ENDS = '@session_rule(parameters={"page": "STRING"})\ndef ends(events):\n    for event in events:\n        yield known(event["page"])\n'
LIBRARY = "def letters(text):\n    return text\n\n\nif __name__ != 'never': raise SystemExit\n"
RULED = SESSIONS.replace("gap: 30 minutes}", "gap: 30 minutes, cuts: {rule: ends(url)}}")
VIEW = "---\nmaterialization: table\n---\nSELECT clean(url, 3) AS page FROM clicks"


def files(
    function: str = CLEAN, view: str = VIEW, *, rule: str = ENDS, sessions: str = RULED
) -> dict[str, str]:
    """A project with a function and a rule in Python."""
    return {
        **SHOP,
        "functions/clean.py": HEAD + function,
        "functions/ends.py": RULE_HEAD + rule,
        "functions/short.sql": "CREATE FUNCTION short(a STRING) RETURN left(a, 2)",
        "models/pages.sql": view,
        "models/sessions.sql": sessions,
    }


def with_library(root: Path) -> Path:
    """One whose function and rule import a module; all would fail if they were executed here."""
    found = files()
    for name, old in (("clean", "re import escape as"), ("ends", "re import escape as known")):
        new = "lib.text import" + " letters as known" * (name == "ends")
        found[f"functions/{name}.py"] = found[f"functions/{name}.py"].replace(old, new)
    return write(
        root, {**found, "functions/_others.py": "raise SystemExit\n", "lib/text.py": LIBRARY}
    )


def mistakes(project: Mapping[str, str]) -> list[str]:
    """What is wrong with a project, one line each."""
    return [shown(error) for error in read(project)[1]]


def test_a_call_carries_the_digest_of_the_code(tmp_path: Path) -> None:
    """The query calls the function by a name with a digest, with arguments and result cast; an
    imported module counts, and what was kept of a project knows it.
    """
    root = with_library(tmp_path)
    node = load(root)["pages"]
    [called] = node.model.functions
    assert called.python is not None
    name = called.python.registered

    assert node.model.sql == (
        f"SELECT cast({name}(cast(url AS STRING), cast(3 AS INT)) AS STRING) AS page FROM clicks"
    )
    assert name.startswith("infold__python__clean__")
    assert [path for path, _ in called.python.files] == ["functions/clean.py", "lib/text.py"]
    kept = (root / FILE).read_bytes()
    assert load(root)["pages"] == node
    assert (root / FILE).read_bytes() == kept
    write(root, {"lib/text.py": f"# of words\n{LIBRARY}"})
    same = load(root)["pages"]
    assert (same.model.sql, same.fingerprint) == (node.model.sql, node.fingerprint)
    write(root, {"lib/text.py": LIBRARY.replace("return text", "return text.lower()")})
    other = load(root)["pages"]
    assert other.model.sql != node.model.sql
    assert other.fingerprint != node.fingerprint


def test_a_rule_is_a_part_of_the_model(tmp_path: Path) -> None:
    """Its code and that of its imports decide the fingerprint; comments do not. Its arguments are
    SQL over one event, which may call functions.
    """
    root = with_library(tmp_path)

    def sessions(ruled: str = RULED, library: str = LIBRARY) -> Node:
        write(root, {"models/sessions.sql": ruled, "lib/text.py": library})
        return load(root)["sessions"]

    node = sessions()
    assert node.model.sessions is not None
    [found] = node.model.sessions.cuts
    assert isinstance(found, Rule)
    assert found.sql == "(named_struct('page', cast(url AS STRING)))"
    assert found.code is not None
    assert found.in_words == "the rule ends"
    assert [path for path, _ in found.code.files] == ["functions/ends.py", "lib/text.py"]
    assert [one.name for one in node.model.functions] == ["ends"]

    assert sessions(library=f"# of pages\n{LIBRARY}").fingerprint == node.fingerprint
    other = LIBRARY.replace("return text", "return not text")
    assert sessions(library=other).fingerprint != node.fingerprint
    assert sessions(RULED.replace("(url)", "(user_id)")).fingerprint != node.fingerprint
    computed = sessions(RULED.replace("ends(url)", "ends(short(url))"))
    assert [one.name for one in computed.model.functions] == ["ends", "short"]


def test_without_deterministic_a_model_is_refused() -> None:
    """It is refused as chance is, and an override allows it."""
    varying = CLEAN.replace(", deterministic=True", "")
    [error] = mistakes(files(varying))
    assert error.startswith("not-deterministic models/pages.sql:4 `clean(url, 3)`")

    allowed = VIEW.replace(
        "table\n",
        "table\nincremental: {safety_overrides: {allow_nondeterministic: true}}\ntimeseries: {event_time_column: day}\n",
    ).replace("AS page", "AS page, cast(event_ts AS date) AS day")
    assert "infold__varying__clean__" in project(files(varying, allowed))["pages"].model.sql


def test_a_function_that_says_so_may_ask_a_clock() -> None:
    """It is the model that has to allow it; what only sounds like a clock is none."""
    varies = CLEAN.replace("=True", "=False").replace("[:most]", "[:time()]")
    allowed = VIEW.replace(
        "table\n",
        "table\nincremental: {enabled: false, safety_overrides: {allow_nondeterministic: true}}\n",
    )

    assert not mistakes(files(varies + "from time import time\n", allowed))
    imported = "from random import Random\nfrom time import strftime\n"
    for other in (
        "[:most].time()",
        "[:len(strftime('%Y', (2024,) * 9))]",
        "[:Random(most).sample([1], 1)[0]]",
    ):
        assert not mistakes(files(CLEAN.replace("[:most]", other) + imported))


def test_what_is_no_call_of_python() -> None:
    """Spark calls a function in Python with arguments; the error says what can have none. An SQL
    function that repeats its argument does not take one that varies, and has no other's name. A
    model of events is a function of each row, and so is a function.
    """
    _, [error] = read(files(CLEAN.replace('"STRING", "INT"', "").replace("text, most", "")))
    assert shown(error).startswith("bad-function functions/clean.py:4 ")
    assert "CREATE FUNCTION clean() RETURN" in error.todo
    varying = CLEAN.replace(", deterministic=True", "")
    twice = {"functions/twice.sql": "CREATE FUNCTION twice(a STRING) RETURN concat(a, a)"}
    called = VIEW.replace("clean(url, 3)", "twice(clean(url, 3))")
    found = mistakes({**files(varying, called), **twice})
    assert "bad-call" in [error.split()[0] for error in found]
    [named] = mistakes({**files(), "functions/clean.sql": "CREATE FUNCTION clean() RETURN 1"})
    assert named.startswith("duplicate-name ")
    events = CLICKS.replace("url,", "clean(url, 9) AS url,")
    assert not mistakes({**files(), "models/clicks.sql": events})


WRONG_IN_PYTHON = [
    ("function", "def clean(text): return text\n", "bad-function functions/clean.py"),
    ("function", "@function\ndef clean(text): return text\n", "bad-function functions/clean.py:3 `function`"),
    ("function", CLEAN.replace("clean", "clear"), "bad-function functions/clean.py"),
    ("function", CLEAN.replace(', "INT"', ""), "bad-function functions/clean.py:4 "),
    ("function", CLEAN.replace("text, most", "text, most=3"), "bad-function functions/clean.py:4 "),
    ("function", CLEAN.replace("text, most", "*texts"), "bad-function functions/clean.py:4 "),
    ("function", CLEAN.replace('"STRING", "INT"', ""), "bad-function functions/clean.py:4 "),
    ("function", CLEAN.replace('"INT"', "INT"), "bad-function functions/clean.py:3 `INT`"),
    ("function", CLEAN.replace("INT", "int64"), 'bad-type functions/clean.py:3 `"int64"` (bigint)'),
    ("function", CLEAN.replace('returns="STRING"', "returns=str"), "bad-function functions/clean.py:3 `str`"),
    ("function", CLEAN.replace("True", '"yes"'), 'bad-function functions/clean.py:3 `"yes"`'),
    ("function", CLEAN.replace("deterministic", "pure"), "bad-function functions/clean.py:3 `True`"),
    ("function", CLEAN.replace("=True", '=True, over="rows"'), 'bad-function functions/clean.py:3 `"rows"`'),
    ("function", CLEAN.replace("parameters=", ""), "bad-function functions/clean.py:3 "),
    ("function", CLEAN.replace("[:most]", "[:time()]") + "from time import time\n",
     "not-deterministic functions/clean.py:5 `time`"),
    ("function", CLEAN.replace("[:most]", "[:len(strftime('%Y'))]") + "from time import strftime\n",
     "not-deterministic functions/clean.py:5 `strftime`"),
    ("function", CLEAN + "def count():\n    global calls\n",
     "not-deterministic functions/clean.py:7 `global calls`"),
    ("function", CLEAN + "import nowhere_at_all\n", "missing-module functions/clean.py:6 "),
    ("function", CLEAN + "return (\n", "bad-python functions/clean.py:6 "),
    ("rule", ENDS.replace("yield ", "found = "), "bad-function functions/ends.py:4 "),
    ("rule", ENDS.replace("(events)", "(events, more)"), "bad-function functions/ends.py:4 "),
    ("rule", ENDS.replace("(events)", "(*events)"), "bad-function functions/ends.py:4 "),
    ("rule", ENDS.replace('{"page": "STRING"}', '["STRING"]'), 'bad-function functions/ends.py:3 `["STRING"]`'),
    ("rule", ENDS.replace('{"page": "STRING"}', "{}"), "bad-function functions/ends.py:3 `{}`"),
    ("rule", ENDS.replace("STRING", "int64"), 'bad-type functions/ends.py:3 `"int64"` (bigint)'),
    ("rule", ENDS.replace("STRING", "map<string,int>"), 'bad-type functions/ends.py:3 `"map<string,int>"`'),
    ("rule", ENDS.replace('"page"', '"time"'), 'bad-function functions/ends.py:3 `"time"`'),
    ("rule", ENDS.replace('"page"', '"a b"'), 'bad-function functions/ends.py:3 `"a b"`'),
    ("rule", ENDS.replace("parameters=", "given="), "bad-function functions/ends.py:3 "),
    ("rule", ENDS.replace('known(event["page"])', "random.random() > 0.5") + "import random\n",
     "not-deterministic functions/ends.py:6 `random.random`"),
    ("rule", ENDS.replace("def ends", "def other"), "bad-function functions/ends.py"),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "wanted"), WRONG_IN_PYTHON)
def test_a_mistake_has_its_place(what: str, text: str, wanted: str) -> None:
    """It is the first error, in its own file, though a model calls the function or the rule."""
    error, *_ = mistakes(files(**{what: text}))

    assert error.startswith(wanted)


PAGES = "---\nmaterialization: table\n---\nSELECT %s AS page FROM clicks"
CALLS_OF_PYTHON = [
    ("view", PAGES % "clean(url)", "bad-call models/pages.sql:4 `clean`"),
    ("view", PAGES % "transform(array(url), x -> clean(x, 1))", "bad-call models/pages.sql:4 `clean`"),
    ("view", PAGES % "infold__python__clean__0()", "unknown-function models/pages.sql:4 "),
    *(("sessions", RULED.replace("rule: ends(url)", call), wanted) for call, wanted in (
        ("rule: nosuch(url)", "bad-call models/sessions.sql:3 "),
        ("rule: ends", "bad-call models/sessions.sql:3 "),
        ("rule: ends(url) IS NULL", "bad-call models/sessions.sql:3 "),
        ("rule: short(url)", "bad-call models/sessions.sql:3 "),
        ("rule: 'ends(url, user_id)'", "bad-call models/sessions.sql:3 "),
        ("rule: ends(urll)", "unknown-column models/sessions.sql:3 "),
        ("rule: ends(max(url))", "not-of-one-event models/sessions.sql:3 "),
    )),
]  # fmt: skip


@pytest.mark.parametrize(("what", "text", "wanted"), CALLS_OF_PYTHON)
def test_a_wrong_call_of_python_has_its_place(what: str, text: str, wanted: str) -> None:
    """As of an SQL function; Spark calls no Python in lambda functions. What a cut calls has to be
    a rule, and to be given SQL over one event.
    """
    [error] = mistakes(files(**{what: text}))

    assert error.startswith(wanted)


def test_a_rule_is_called_by_sessions_alone() -> None:
    """In SQL there is no function of its name; a greatest length is for the rule to see."""
    called = RULED.replace("count(*) AS events", "count_if(ends(entry)) AS events")
    assert "unknown-function" in [error.split()[0] for error in mistakes(files(sessions=called))]
    longest = RULED.replace("gap: 30 minutes,", "gap: 30 minutes, max_length: 1 day,")
    [error] = mistakes(files(sessions=longest))
    assert error.startswith("needless-key ")


@pytest.fixture
def importing(tmp_path: Path) -> Path:
    """A function that imports a module, which imports another in a package."""
    files = {
        "functions/clean.py": "import re\nfrom lib.text import strip\n",
        "lib/text.py": "from lib.deep import letters\nfrom .deep.letters import VOWELS\n",
        "lib/deep/__init__.py": "",
        "lib/deep/letters.py": "import lib.text\nVOWELS = 'aeiou'\n",
        "lib/unused.py": "raise SystemExit('it is never imported')\n",
    }
    return write(tmp_path, files)


def test_the_file_comes_first_then_what_it_imports(importing: Path) -> None:
    """Modules of the project are followed, also in circles; others are not read. The digest is of
    all files. What stands in a `try` with an `except` has another way, and needs no module.
    """
    found = read_sources(importing, "functions/clean.py")

    assert [path for path, _ in found.files] == [
        "functions/clean.py",
        "lib/deep/__init__.py",
        "lib/deep/letters.py",
        "lib/text.py",
    ]
    write(importing, {"lib/deep/letters.py": "VOWELS = 'aeiouy'\n"})
    assert read_sources(importing, "functions/clean.py").digest != found.digest
    text = "try:\n    import nowhere_at_all\nexcept ImportError:\n    pass\n"
    write(importing, {"functions/clean.py": text})
    assert len(read_sources(importing, "functions/clean.py").files) == 1


@pytest.mark.parametrize(
    ("before", "after", "same"),
    [
        ("x = 1\n", "# a comment\nx  =  1\n", True),
        ('def f():\n    "Says."\n    return 1\n', "def f():\n    return 1\n", True),
        ('class A:\n    "Says."\n    x = 1\n', 'class A:\n    "Else."\n    x = 1\n', True),
        ("x = 1\n", "x = 1.0\n", False),
        ("x = 1\n", "x = True\n", False),
        ("x = None\n", "x = 0\n", False),
        ('x = "a"\n', "x = b'a'\n", False),
        ("x = 'a'\n", 'x = "a"\n', True),
        ("def f(a): return a\n", "def f(*, a): return a\n", False),
    ],
)
def test_comments_layout_and_docstrings_do_not_count(
    tmp_path: Path, before: str, after: str, same: bool
) -> None:
    """Two texts are one if their trees are."""
    write(tmp_path, {"functions/a.py": before})
    first = read_sources(tmp_path, "functions/a.py").digest
    write(tmp_path, {"functions/a.py": after})

    assert (read_sources(tmp_path, "functions/a.py").digest == first) is same


@pytest.mark.parametrize(
    ("file", "text", "slug", "line"),
    [
        ("functions/clean.py", "import re\nfrom lib.txet import strip\n", "missing-module", 2),
        ("functions/clean.py", "import nowhere_at_all\n", "missing-module", 1),
        ("functions/clean.py", "\n\nfrom . import nothing\n", "missing-module", 3),
        ("functions/clean.py", "def f():\n    return (\n", "bad-python", 2),
        ("functions/clean.py", "x = '\0'\n", "bad-python", 1),
        ("lib/text.py", "x = 1\nimport nowhere_at_all\n", "missing-module", 2),
    ],
)
def test_mistakes_have_a_file_and_a_line(
    importing: Path, file: str, text: str, slug: str, line: int
) -> None:
    """A module that is not there, and a file that is not Python, which may be an imported one."""
    write(importing, {file: text})

    with pytest.raises(InfoldError) as caught:
        read_sources(importing, "functions/clean.py")

    assert (caught.value.slug, str(caught.value.at)) == (slug, f"{file}:{line}")
