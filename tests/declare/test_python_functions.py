# ruff: noqa: E501 (one case is one row of a table)
"""Python functions of a project are read from their text: nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SHOP, write
from tests.declare.test_mistakes import shown

from infold.core.definition_text import definition_of_text, definition_text
from infold.core.project import Project
from infold.declare.cache import FILE
from infold.declare.definitions import definitions_of
from infold.declare.from_definitions import project_of_definition
from infold.declare.load import check, load

HEAD = "from infold import function\nfrom lib.text import letters\n"
CLEAN = '@function(parameters=["STRING", "INT"], returns="STRING", deterministic=True)\ndef clean(text, most):\n    return letters(text)[:most]\n'
VIEW = "---\nmaterialization: table\n---\nSELECT clean(url, 3) AS page FROM clicks"


def shop(root: Path, function: str = CLEAN, view: str = VIEW) -> Path:
    """A project with a Python function, which would fail if it were executed here."""
    files = {
        "functions/clean.py": HEAD + function,
        "functions/_others.py": "raise SystemExit\n",
        "lib/text.py": "def letters(text):\n    return text\n\n\nif __name__ != 'never': raise SystemExit\n",
        "models/pages.sql": view,
    }
    return write(root / "shop", {**SHOP, **files})


def pages(project: Project) -> tuple[str, str]:
    """The query that calls the function, and its fingerprint."""
    node = project["pages"]
    return node.model.sql, node.fingerprint


def test_a_call_carries_the_digest_of_the_code(tmp_path: Path) -> None:
    """The query calls the function by a name with a digest, with arguments and result cast."""
    root = shop(tmp_path)
    sql, before = pages(load(root))
    [called] = load(root)["pages"].model.functions
    assert called.python is not None
    name = called.python.registered

    assert sql == (
        f"SELECT cast({name}(cast(url AS STRING), cast(3 AS INT)) AS STRING) AS page FROM clicks"
    )
    assert name.startswith("infold__python__clean__")
    assert [path for path, _ in called.python.files] == ["functions/clean.py", "lib/text.py"]

    text = (root / "lib/text.py").read_text()
    (root / "lib/text.py").write_text("# of words\n" + text)
    assert pages(load(root)) == (sql, before)
    (root / "lib/text.py").write_text(text.replace("return text", "return text.lower()"))
    after, changed = pages(load(root))
    assert after != sql
    assert changed != before


def test_a_kept_definition_has_the_code(tmp_path: Path) -> None:
    """A definition is compiled again from its text alone, whatever became of the files."""
    root = shop(tmp_path)
    project = load(root)
    definitions = definitions_of(project)
    kept = definition_of_text(definition_text(definitions["pages"]))
    (root / "functions/clean.py").unlink()
    again = project_of_definition(project, kept, definitions, {})

    assert kept == definitions["pages"]
    assert again is not None
    assert again["pages"].model.functions == project["pages"].model.functions


def test_what_was_kept_of_a_project_knows_imported_modules(tmp_path: Path) -> None:
    """A changed module is seen; an unchanged project is not read again."""
    root = shop(tmp_path)
    before = pages(load(root))
    kept = (root / FILE).read_bytes()
    assert pages(load(root)) == before
    assert (root / FILE).read_bytes() == kept
    (root / "lib/text.py").write_text("def letters(text):\n    return text.upper()\n")

    assert pages(load(root)) != before


def test_without_deterministic_a_model_is_refused(tmp_path: Path) -> None:
    """It is refused as chance is, and an override allows it."""
    varying = CLEAN.replace(", deterministic=True", "")
    [error] = check(shop(tmp_path, varying))
    assert shown(error)[:48] == "not-deterministic models/pages.sql:4 `clean(url, 3)`"[:48]
    assert "clean" in error.what

    allowed = VIEW.replace(
        "table\n",
        "table\nincremental: {safety_overrides: {allow_nondeterministic: true}}\ntimeseries: {event_time_column: day}\n",
    ).replace("AS page", "AS page, cast(event_ts AS date) AS day")
    project = load(shop(tmp_path / "other", varying, allowed))
    assert "infold__varying__clean__" in project["pages"].model.sql


def test_a_function_that_says_so_may_ask_a_clock(tmp_path: Path) -> None:
    """It is the model that has to allow it; what only sounds like a clock is none."""
    varies = CLEAN.replace("=True", "=False").replace("[:most]", "[:time()]")
    allowed = VIEW.replace(
        "table\n",
        "table\nincremental: {enabled: false, safety_overrides: {allow_nondeterministic: true}}\n",
    )

    assert not check(shop(tmp_path, varies + "from time import time\n", allowed))
    others = (
        "[:most].time()",
        "[:len(strftime('%Y', (2024,) * 9))]",
        "[:Random(most).sample([1], 1)[0]]",
    )
    imported = "from random import Random\nfrom time import strftime\n"
    for number, other in enumerate(others):
        code = CLEAN.replace("[:most]", other) + imported
        assert not check(shop(tmp_path / str(number), code))


def test_a_constant_is_no_python(tmp_path: Path) -> None:
    """Spark calls a function in Python with arguments; the error says what can have none."""
    code = CLEAN.replace('"STRING", "INT"', "").replace("text, most", "")
    [error] = check(shop(tmp_path, code))

    assert shown(error).startswith("bad-function functions/clean.py:4 ")
    assert "CREATE FUNCTION clean() RETURN" in error.todo


def test_an_argument_that_varies_is_drawn_once(tmp_path: Path) -> None:
    """An SQL function that repeats its argument does not take one that varies."""
    varying = CLEAN.replace(", deterministic=True", "")
    root = shop(tmp_path, varying, VIEW.replace("clean(url, 3)", "twice(clean(url, 3))"))
    twice = "CREATE FUNCTION twice(a STRING) RETURN concat(a, a)"
    (root / "functions/twice.sql").write_text(twice)

    assert "bad-call" in [error.slug for error in check(root)]


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
def test_a_mistake_has_its_place(tmp_path: Path, function: str, wanted: str) -> None:
    """It is the only error, though a model calls the function."""
    assert [shown(error)[: len(wanted)] for error in check(shop(tmp_path, function))] == [wanted]


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
def test_a_wrong_call_has_its_place(tmp_path: Path, select: str, wanted: str) -> None:
    """As of an SQL function; Spark calls no Python in lambda functions."""
    root = shop(tmp_path, CLEAN, f"---\nmaterialization: table\n---\n{select}")

    assert [shown(error)[: len(wanted)] for error in check(root)] == [wanted]


def test_a_name_belongs_to_one_function(tmp_path: Path) -> None:
    """An SQL and a Python function cannot have one name."""
    root = shop(tmp_path)
    (root / "functions/clean.sql").write_text("CREATE FUNCTION clean() RETURN 1")

    assert [error.slug for error in check(root)] == ["duplicate-name"]


def test_events_may_call_python(tmp_path: Path) -> None:
    """A model of events is a function of each row, and so is the function."""
    root = shop(tmp_path)
    (root / "models/clicks.sql").write_text(CLICKS.replace("url,", "clean(url, 9) AS url,"))

    assert not check(root)
