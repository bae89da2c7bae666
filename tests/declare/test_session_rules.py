# ruff: noqa: E501 (one case is one row of a table)
"""Session rules of a project are read from their text: nothing is executed."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import SESSIONS, SHOP, write
from tests.declare.test_mistakes import shown

from infold.core.definition_text import definition_of_text, definition_text
from infold.core.project import Project
from infold.core.session_cuts import Rule
from infold.declare.definitions import definitions_of
from infold.declare.from_definitions import project_of_definition
from infold.declare.load import check, load

HEAD = "from infold import session_rule\nfrom lib.words import known\n"
ENDS = '@session_rule(parameters={"page": "STRING"})\ndef ends(events):\n    for event in events:\n        yield known(event["page"])\n'
RULED = SESSIONS.replace("gap: 30 minutes}", "gap: 30 minutes, cuts: {rule: ends(url)}}")


def shop(root: Path, rule: str = ENDS, sessions: str = RULED) -> Path:
    """A project with a rule, which would fail if it were executed here."""
    files = {
        "functions/ends.py": HEAD + rule,
        "functions/short.sql": "CREATE FUNCTION short(a STRING) RETURN left(a, 2)",
        "lib/words.py": "def known(text):\n    return text\n\n\nif __name__ != 'never': raise SystemExit\n",
        "models/sessions.sql": sessions,
    }
    return write(root / "shop", {**SHOP, **files})


def rule(project: Project) -> Rule:
    """The rule of the sessions model."""
    sessions = project["sessions"].model.sessions
    assert sessions is not None
    [cut] = sessions.cuts
    assert isinstance(cut, Rule)
    return cut


def test_a_rule_is_a_part_of_the_model(tmp_path: Path) -> None:
    """Its code and that of its imports decide the fingerprint; comments do not."""
    root = shop(tmp_path)
    project = load(root)
    found = rule(project)
    assert found.sql == "(named_struct('page', cast(url AS STRING)))"
    assert found.code is not None
    assert found.in_words == "the rule ends"
    assert [path for path, _ in found.code.files] == ["functions/ends.py", "lib/words.py"]
    assert [one.name for one in project["sessions"].model.functions] == ["ends"]

    before, text = project["sessions"].fingerprint, (root / "lib/words.py").read_text()
    (root / "lib/words.py").write_text("# of pages\n" + text)
    assert load(root)["sessions"].fingerprint == before
    (root / "lib/words.py").write_text(text.replace("return text", "return not text"))
    assert load(root)["sessions"].fingerprint != before
    (root / "lib/words.py").write_text(text)
    (root / "models/sessions.sql").write_text(RULED.replace("(url)", "(user_id)"))
    assert load(root)["sessions"].fingerprint != before


def test_a_kept_definition_has_the_rule(tmp_path: Path) -> None:
    """A definition is compiled again from its text alone, whatever became of the files."""
    root = shop(tmp_path)
    project = load(root)
    definitions = definitions_of(project)
    kept = definition_of_text(definition_text(definitions["sessions"]))
    (root / "functions/ends.py").unlink()
    again = project_of_definition(project, kept, definitions, {})

    assert kept == definitions["sessions"]
    assert again is not None
    assert rule(again) == rule(project)


def test_what_a_rule_is_given_may_be_computed(tmp_path: Path) -> None:
    """Its arguments are SQL over one event, which may call functions of the project."""
    root = shop(tmp_path, sessions=RULED.replace("ends(url)", "ends(short(url))"))
    assert not check(root)
    assert [one.name for one in load(root)["sessions"].model.functions] == ["ends", "short"]


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
def test_a_mistake_has_its_place(tmp_path: Path, text: str, wanted: str) -> None:
    """It is told in the rule's file."""
    found = [shown(error)[: len(wanted)] for error in check(shop(tmp_path, text))]
    assert found[0] == wanted


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
def test_a_wrong_call_has_its_place(tmp_path: Path, call: str, wanted: str) -> None:
    """What is called has to be a rule, and to be given SQL over one event."""
    found = check(shop(tmp_path, sessions=RULED.replace("rule: ends(url)", call)))
    assert [shown(error)[: len(wanted)] for error in found] == [wanted]


def test_a_rule_is_called_by_sessions_alone(tmp_path: Path) -> None:
    """In SQL there is no function of its name; a greatest length is for the rule to see."""
    called = RULED.replace("count(*) AS events", "count_if(ends(entry)) AS events")
    assert "unknown-function" in [error.slug for error in check(shop(tmp_path, sessions=called))]
    longest = RULED.replace("gap: 30 minutes,", "gap: 30 minutes, max_length: 1 day,")
    [error] = check(shop(tmp_path / "other", sessions=longest))
    assert error.slug == "needless-key"
