"""`infold format`: models are laid out, nothing else of them changes, or nothing is written."""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.declare.shop import DAILY, SHOP, read, write
from tests.docs.pages import DOCS, files_of, texts_of

from infold.cli import cli
from infold.declare import formatted
from infold.declare.formatted import format_text
from infold.messages.errors import InfoldError

SRC = DOCS.parent / "src" / "infold"


PROJECTS: dict[str, Mapping[str, str]] = {
    "shop": SHOP,
    "starter": texts_of(SRC / "starter"),
    "demo": texts_of(SRC / "demo" / "project"),
    **{name: files_of(DOCS / name) for name in ("annotated-project.md", "cookbook.md")},
}


@pytest.mark.deep
@pytest.mark.parametrize("name", PROJECTS)
def test_fingerprints_stay(name: str) -> None:
    """Each model of a project can be laid out, keeps its fingerprint, and is laid out then."""
    files = {file: text for file, text in PROJECTS[name].items() if not file.endswith(".md")}
    laid_out = {
        file: format_text(file, text)
        if file.startswith("models/") and file.endswith(".sql")
        else text
        for file, text in files.items()
    }
    before, errors = read(files)
    after, more = read(laid_out)

    assert [str(error) for error in (*errors, *more)] == []
    assert before is not None
    assert after is not None
    assert {n.name: n.fingerprint for n in before} == {n.name: n.fingerprint for n in after}
    assert laid_out != files
    again = {f: format_text(f, text) for f, text in laid_out.items() if f.startswith("models/")}
    assert again == {f: text for f, text in laid_out.items() if f in again}


WRITTEN = """\
-- above
---
materialization:   table   # as somebody likes it
---
SELECT   cast(Session_Start AS DATE) AS Day, /* a */ count(*) AS n -- behind
  , transform(array(1,2), x -> x+1) AS `odd  Name`, "Text  A" AS End
FROM sessions s LEFT   JOIN daily d ON s.day=d.day
WHERE session_start BETWEEN @start_ts AND @end_ts AND  s.x <=> d.x;
"""
LAID_OUT = """\
-- above
---
materialization:   table   # as somebody likes it
---
select
    cast(Session_Start as DATE) as Day,  /* a */
    count(*) as n,  -- behind
    transform(array(1, 2), x -> x + 1) as `odd  Name`,
    "Text  A" as End
from sessions s
left join daily d on s.day = d.day
where session_start between @start_ts and @end_ts and s.x <=> d.x
;
"""


def test_names_texts_comments_and_front_matter_stay() -> None:
    """Lines, spaces and the case of keywords change, and nothing else: a type is a name. A file of
    Windows stays one.
    """
    assert format_text("models/x.sql", WRITTEN) == LAID_OUT
    of_windows = format_text("models/x.sql", WRITTEN.replace("\n", "\r\n"))
    assert of_windows == LAID_OUT.replace("\n", "\r\n")


@pytest.mark.parametrize(
    "written",
    [
        "SELECT a /* the first */,\n  b -- and the second\nFROM t\nWHERE c > 1\n",
        "SELECT listagg(url) WITHIN GROUP (ORDER BY at) AS urls FROM t\n",
        "SELECT '-- a' AS b FROM t",
    ],
)
def test_once_is_enough(written: str) -> None:
    """What is laid out is not changed a second time, or `--check` would never be content."""
    found = format_text("models/x.sql", written)

    assert found != written
    assert format_text("models/x.sql", found) == found


WRONG = {
    "another name": ("SELECT a AS b FROM t", "select a as B from t", "the query"),
    "another function's name": ("SELECT f(a) AS b FROM t", "select g(a) as b from t", "the query"),
    "another field": ("SELECT s.A AS b FROM t", "select s.a as b from t", "the query"),
    "another type's field": ("SELECT cast(a AS STRUCT<B: INT>) AS c FROM t",
        "select cast(a as STRUCT<b: INT>) as c from t", "the query"),
    "another text": ("SELECT 'A' AS b FROM t", "select 'a' as b from t", "the query"),
    "another number": ("SELECT 1 AS b FROM t", "select 2 as b from t", "the query"),
    "less": ("SELECT a, b FROM t", "select a from t", "the query"),
    "brackets": ("SELECT a + b * c AS d FROM t", "select (a + b) * c as d from t", "the query"),
    "a hint": ("SELECT /*+ BROADCAST(t) */ a FROM t", "select a from t", "the query"),
    "no comment": ("SELECT a -- why\nFROM t", "select a from t", "a comment"),
    "another comment": ("SELECT a /* why */ FROM t", "select a /* how */ from t", "a comment"),
}  # fmt: skip


@pytest.mark.parametrize(("written", "result", "what"), WRONG.values(), ids=WRONG)
def test_a_result_that_is_another_query_is_refused(
    monkeypatch: pytest.MonkeyPatch, written: str, result: str, what: str
) -> None:
    """Whatever sqlfmt makes of a query: it is used only if it is the same one."""
    monkeypatch.setattr(formatted, "_laid_out", lambda *_: result)

    with pytest.raises(InfoldError) as raised:
        format_text("models/x.sql", written)

    assert (raised.value.slug, what in raised.value.what) == ("not-formatted", True)


def called(root: Path, *words: str) -> Result:
    """The command on a project."""
    return CliRunner().invoke(cli, ["-C", str(root), "format", *words])


class TestCommand:
    """What `infold format` prints, writes and ends with."""

    def test_it_writes_what_changes(self, tmp_path: Path) -> None:
        """Each file is named; of named models those alone; a second time there is nothing to do.
        `--check` writes nothing, and ends with 1 as long as there is something.
        """
        root, other = write(tmp_path / "shop"), write(tmp_path / "other")
        checked = called(root, "--check", "daily")
        assert checked.exit_code == 1
        assert checked.stdout == "models/daily.sql\n1 file would be formatted, no other.\n"
        assert (root / "models" / "daily.sql").read_text() == DAILY
        first, second = called(root), called(root)

        assert first.stdout.splitlines() == [
            *(f"models/{name}.sql" for name in ("clicks", "daily", "sessions")),
            "3 files formatted, no other.",
        ]
        assert second.exit_code == called(root, "--check").exit_code == 0
        assert second.stdout == "0 files formatted, 3 files left as they are.\n"
        assert called(root, "daily").stdout == "0 files formatted, 1 file left as it is.\n"
        assert "select cast(session_start as date)" in (root / "models" / "daily.sql").read_text()
        assert called(other, "sessions").stdout.splitlines()[0] == "models/sessions.sql"
        assert (other / "models" / "daily.sql").read_text() == DAILY
        assert called(other, "dialy").exit_code == 2

    def test_what_cannot_be_read_is_left(self, tmp_path: Path) -> None:
        """The others are written; the error says where, and the exit code is that of a mistake."""
        root = write(tmp_path, {**SHOP, "models/daily.sql": "SELECT (\n"})
        done = called(root)

        assert done.exit_code == 2
        assert "bad-sql" in done.stderr
        assert "2 files formatted" in done.stdout
        assert (root / "models" / "daily.sql").read_text() == "SELECT (\n"

    def test_another_fingerprint_is_not_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Should the comparison of a query miss something, the project's fingerprints tell."""
        root = write(tmp_path)
        other = lambda file, text: text.replace("sum(revenue)", "max(revenue)")  # noqa: E731
        monkeypatch.setattr(formatted, "format_text", other)
        done = called(root)

        assert done.exit_code == 2
        assert "its fingerprint would differ" in done.stderr
        assert (root / "models" / "daily.sql").read_text() == DAILY

    def test_without_sqlfmt(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """It is an extra: what to install is said."""
        found = lambda name: None if name == "sqlfmt" else find_spec(name)  # noqa: E731
        monkeypatch.setattr(formatted, "find_spec", found)
        done = called(write(tmp_path))

        assert (done.exit_code, "pip install shandy-sqlfmt" in done.stderr) == (2, True)
