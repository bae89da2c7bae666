# ruff: noqa: E501 (one case is one row of a table)
"""
Python functions and session rules of a project are read from their text: nothing is executed.

Nor are the project's modules that they import.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from tests.declare.shop import CLICKS, SESSIONS, SHOP, project, read, write
from tests.declare.test_mistakes import shown

from infold.core.project import Node
from infold.core.session_cuts import Rule
from infold.declare.cache import FILE
from infold.declare.load import load
from infold.declare.python_sources import read_sources
from infold.messages.errors import InfoldError

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
    found = mistakes(
        {**files(varying, VIEW.replace("clean(url, 3)", "twice(clean(url, 3))")), **twice}
    )

    assert "bad-call" in [error.split()[0] for error in found]


WRONG = [
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


@pytest.mark.parametrize(("what", "text", "wanted"), WRONG)
def test_a_mistake_has_its_place(what: str, text: str, wanted: str) -> None:
    """It is the first error, in its own file, though a model calls the function or the rule."""
    error, *_ = mistakes(files(**{what: text}))

    assert error.startswith(wanted)


PAGES = "---\nmaterialization: table\n---\nSELECT %s AS page FROM clicks"
CALLS = [
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


@pytest.mark.parametrize(("what", "text", "wanted"), CALLS)
def test_a_wrong_call_has_its_place(what: str, text: str, wanted: str) -> None:
    """As of an SQL function; Spark calls no Python in lambda functions. What a cut calls has to be
    a rule, and to be given SQL over one event.
    """
    [error] = mistakes(files(**{what: text}))

    assert error.startswith(wanted)


def test_a_name_belongs_to_one_function() -> None:
    """An SQL and a Python function cannot have one name."""
    [error] = mistakes({**files(), "functions/clean.sql": "CREATE FUNCTION clean() RETURN 1"})

    assert error.startswith("duplicate-name ")


def test_events_may_call_python() -> None:
    """A model of events is a function of each row, and so is the function."""
    assert not mistakes(
        {**files(), "models/clicks.sql": CLICKS.replace("url,", "clean(url, 9) AS url,")}
    )


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
    all files.
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


def test_an_import_that_may_fail_needs_no_module(importing: Path) -> None:
    """What stands in a `try` with an `except` has another way."""
    text = "try:\n    import nowhere_at_all\nexcept ImportError:\n    pass\n"
    write(importing, {"functions/clean.py": text})

    assert len(read_sources(importing, "functions/clean.py").files) == 1
