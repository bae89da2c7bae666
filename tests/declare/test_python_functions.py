# ruff: noqa: E501 (one case is one row of a table)
"""Python functions of a project are read from their text: nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SHOP, project, read, write
from tests.declare.test_mistakes import shown

from infold.declare.cache import FILE
from infold.declare.load import load

HEAD = "from infold import function\nfrom re import escape as letters\n"
CLEAN = '@function(parameters=["STRING", "INT"], returns="STRING", deterministic=True)\ndef clean(text, most):\n    return letters(text)[:most]\n'
LIBRARY = "def letters(text):\n    return text\n\n\nif __name__ != 'never': raise SystemExit\n"
VIEW = "---\nmaterialization: table\n---\nSELECT clean(url, 3) AS page FROM clicks"


def files(function: str = CLEAN, view: str = VIEW) -> dict[str, str]:
    """A project with a Python function."""
    return {**SHOP, "functions/clean.py": HEAD + function, "models/pages.sql": view}


def with_library(root: Path) -> Path:
    """A project whose function imports a module; both would fail if they were executed here."""
    head = HEAD.replace("re import escape as", "lib.text import")
    more = {"functions/_others.py": "raise SystemExit\n", "lib/text.py": LIBRARY}
    return write(root, {**files(), "functions/clean.py": head + CLEAN, **more})


def mistakes(function: str = CLEAN, view: str = VIEW, **more: str) -> list[str]:
    """What is wrong with the project, one line each."""
    return [shown(error) for error in read({**files(function, view), **more})[1]]


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


def test_without_deterministic_a_model_is_refused() -> None:
    """It is refused as chance is, and an override allows it."""
    varying = CLEAN.replace(", deterministic=True", "")
    [error] = mistakes(varying)
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

    assert not mistakes(varies + "from time import time\n", allowed)
    imported = "from random import Random\nfrom time import strftime\n"
    for other in (
        "[:most].time()",
        "[:len(strftime('%Y', (2024,) * 9))]",
        "[:Random(most).sample([1], 1)[0]]",
    ):
        assert not mistakes(CLEAN.replace("[:most]", other) + imported)


def test_a_constant_is_no_python() -> None:
    """Spark calls a function in Python with arguments; the error says what can have none."""
    code = CLEAN.replace('"STRING", "INT"', "").replace("text, most", "")
    _, [error] = read(files(code))

    assert shown(error).startswith("bad-function functions/clean.py:4 ")
    assert "CREATE FUNCTION clean() RETURN" in error.todo


def test_an_argument_that_varies_is_drawn_once() -> None:
    """An SQL function that repeats its argument does not take one that varies."""
    varying = CLEAN.replace(", deterministic=True", "")
    twice = {"functions/twice.sql": "CREATE FUNCTION twice(a STRING) RETURN concat(a, a)"}
    found = mistakes(varying, VIEW.replace("clean(url, 3)", "twice(clean(url, 3))"), **twice)

    assert "bad-call" in [error.split()[0] for error in found]


WRONG = [
    ("def clean(text): return text\n", "bad-function functions/clean.py"),
    ("@function\ndef clean(text): return text\n", "bad-function functions/clean.py:3 `function`"),
    (CLEAN.replace("clean", "clear"), "bad-function functions/clean.py"),
    (CLEAN.replace(', "INT"', ""), "bad-function functions/clean.py:4 "),
    (CLEAN.replace("text, most", "text, most=3"), "bad-function functions/clean.py:4 "),
    (CLEAN.replace("text, most", "*texts"), "bad-function functions/clean.py:4 "),
    (CLEAN.replace('"STRING", "INT"', ""), "bad-function functions/clean.py:4 "),
    (CLEAN.replace('"INT"', "INT"), "bad-function functions/clean.py:3 `INT`"),
    (CLEAN.replace("INT", "int64"), 'bad-type functions/clean.py:3 `"int64"` (bigint)'),
    (CLEAN.replace('returns="STRING"', "returns=str"), "bad-function functions/clean.py:3 `str`"),
    (CLEAN.replace("True", '"yes"'), 'bad-function functions/clean.py:3 `"yes"`'),
    (CLEAN.replace("deterministic", "pure"), "bad-function functions/clean.py:3 `True`"),
    (CLEAN.replace("=True", '=True, over="rows"'), 'bad-function functions/clean.py:3 `"rows"`'),
    (CLEAN.replace("parameters=", ""), "bad-function functions/clean.py:3 "),
    (
        CLEAN.replace("[:most]", "[:time()]") + "from time import time\n",
        "not-deterministic functions/clean.py:5 `time`",
    ),
    (
        CLEAN.replace("[:most]", "[:len(strftime('%Y'))]") + "from time import strftime\n",
        "not-deterministic functions/clean.py:5 `strftime`",
    ),
    (
        CLEAN + "def count():\n    global calls\n",
        "not-deterministic functions/clean.py:7 `global calls`",
    ),
    (CLEAN + "import nowhere_at_all\n", "missing-module functions/clean.py:6 "),
    (CLEAN + "return (\n", "bad-python functions/clean.py:6 "),
]


@pytest.mark.parametrize(("function", "wanted"), WRONG)
def test_a_mistake_has_its_place(function: str, wanted: str) -> None:
    """It is the only error, though a model calls the function."""
    [error] = mistakes(function)

    assert error.startswith(wanted)


CALLS = [
    ("SELECT clean(url) AS page FROM clicks", "bad-call models/pages.sql:4 `clean`"),
    (
        "SELECT transform(array(url), x -> clean(x, 1)) AS page FROM clicks",
        "bad-call models/pages.sql:4 `clean`",
    ),
    (
        "SELECT infold__python__clean__0() AS page FROM clicks",
        "unknown-function models/pages.sql:4 ",
    ),
]


@pytest.mark.parametrize(("select", "wanted"), CALLS)
def test_a_wrong_call_has_its_place(select: str, wanted: str) -> None:
    """As of an SQL function; Spark calls no Python in lambda functions."""
    [error] = mistakes(view=f"---\nmaterialization: table\n---\n{select}")

    assert error.startswith(wanted)


def test_a_name_belongs_to_one_function() -> None:
    """An SQL and a Python function cannot have one name."""
    [error] = mistakes(**{"functions/clean.sql": "CREATE FUNCTION clean() RETURN 1"})

    assert error.startswith("duplicate-name ")


def test_events_may_call_python() -> None:
    """A model of events is a function of each row, and so is the function."""
    assert not mistakes(**{"models/clicks.sql": CLICKS.replace("url,", "clean(url, 9) AS url,")})
