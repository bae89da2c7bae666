# ruff: noqa: E501 (one case is one row of a table)
"""Session rules of a project are read from their text: nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SESSIONS, SHOP, read, write
from tests.declare.test_mistakes import shown

from infold.core.project import Node
from infold.core.session_cuts import Rule
from infold.declare.load import load

HEAD = "from infold import session_rule\nfrom re import escape as known\n"
ENDS = '@session_rule(parameters={"page": "STRING"})\ndef ends(events):\n    for event in events:\n        yield known(event["page"])\n'
LIBRARY = "def known(text):\n    return text\n\n\nif __name__ != 'never': raise SystemExit\n"
RULED = SESSIONS.replace("gap: 30 minutes}", "gap: 30 minutes, cuts: {rule: ends(url)}}")


def files(rule: str = ENDS, sessions: str = RULED) -> dict[str, str]:
    """A project with a rule."""
    return {
        **SHOP,
        "functions/ends.py": HEAD + rule,
        "functions/short.sql": "CREATE FUNCTION short(a STRING) RETURN left(a, 2)",
        "models/sessions.sql": sessions,
    }


def mistakes(rule: str = ENDS, sessions: str = RULED) -> list[str]:
    """What is wrong with the project, one line each."""
    return [shown(error) for error in read(files(rule, sessions))[1]]


def test_a_rule_is_a_part_of_the_model(tmp_path: Path) -> None:
    """Its code and that of its imports, which would fail if they were executed here, decide the
    fingerprint; comments do not. Its arguments are SQL over one event, which may call functions.
    """
    head = HEAD.replace("re import escape as", "lib.words import")
    root = write(tmp_path, {**files(), "functions/ends.py": head + ENDS})

    def sessions(ruled: str = RULED, library: str = LIBRARY) -> Node:
        write(root, {"models/sessions.sql": ruled, "lib/words.py": library})
        return load(root)["sessions"]

    node = sessions()
    assert node.model.sessions is not None
    [found] = node.model.sessions.cuts
    assert isinstance(found, Rule)
    assert found.sql == "(named_struct('page', cast(url AS STRING)))"
    assert found.code is not None
    assert found.in_words == "the rule ends"
    assert [path for path, _ in found.code.files] == ["functions/ends.py", "lib/words.py"]
    assert [one.name for one in node.model.functions] == ["ends"]

    assert sessions(library=f"# of pages\n{LIBRARY}").fingerprint == node.fingerprint
    other = LIBRARY.replace("return text", "return not text")
    assert sessions(library=other).fingerprint != node.fingerprint
    assert sessions(RULED.replace("(url)", "(user_id)")).fingerprint != node.fingerprint
    computed = sessions(RULED.replace("ends(url)", "ends(short(url))"))
    assert [one.name for one in computed.model.functions] == ["ends", "short"]


WRONG = [
    (ENDS.replace("yield ", "found = "), "bad-function functions/ends.py:4 "),
    (ENDS.replace("(events)", "(events, more)"), "bad-function functions/ends.py:4 "),
    (ENDS.replace("(events)", "(*events)"), "bad-function functions/ends.py:4 "),
    (ENDS.replace('{"page": "STRING"}', '["STRING"]'), 'bad-function functions/ends.py:3 `["STRING"]`'),
    (ENDS.replace('{"page": "STRING"}', "{}"), "bad-function functions/ends.py:3 `{}`"),
    (ENDS.replace("STRING", "int64"), 'bad-type functions/ends.py:3 `"int64"` (bigint)'),
    (ENDS.replace("STRING", "map<string,int>"), 'bad-type functions/ends.py:3 `"map<string,int>"`'),
    (ENDS.replace('"page"', '"time"'), 'bad-function functions/ends.py:3 `"time"`'),
    (ENDS.replace('"page"', '"a b"'), 'bad-function functions/ends.py:3 `"a b"`'),
    (ENDS.replace("parameters=", "given="), "bad-function functions/ends.py:3 "),
    (ENDS.replace('known(event["page"])', "random.random() > 0.5") + "import random\n",
     "not-deterministic functions/ends.py:6 `random.random`"),
    (ENDS.replace("def ends", "def other"), "bad-function functions/ends.py"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "wanted"), WRONG)
def test_a_mistake_has_its_place(text: str, wanted: str) -> None:
    """It is told in the rule's file."""
    assert mistakes(text)[0].startswith(wanted)


CALLS = [
    ("rule: nosuch(url)", "bad-call models/sessions.sql:3 "),
    ("rule: ends", "bad-call models/sessions.sql:3 "),
    ("rule: ends(url) IS NULL", "bad-call models/sessions.sql:3 "),
    ("rule: short(url)", "bad-call models/sessions.sql:3 "),
    ("rule: 'ends(url, user_id)'", "bad-call models/sessions.sql:3 "),
    ("rule: ends(urll)", "unknown-column models/sessions.sql:3 "),
    ("rule: ends(max(url))", "not-of-one-event models/sessions.sql:3 "),
]


@pytest.mark.parametrize(("call", "wanted"), CALLS)
def test_a_wrong_call_has_its_place(call: str, wanted: str) -> None:
    """What is called has to be a rule, and to be given SQL over one event."""
    [error] = mistakes(sessions=RULED.replace("rule: ends(url)", call))

    assert error.startswith(wanted)


def test_a_rule_is_called_by_sessions_alone() -> None:
    """In SQL there is no function of its name; a greatest length is for the rule to see."""
    called = RULED.replace("count(*) AS events", "count_if(ends(entry)) AS events")
    assert "unknown-function" in [error.split()[0] for error in mistakes(sessions=called)]
    longest = RULED.replace("gap: 30 minutes,", "gap: 30 minutes, max_length: 1 day,")
    [error] = mistakes(sessions=longest)
    assert error.startswith("needless-key ")
