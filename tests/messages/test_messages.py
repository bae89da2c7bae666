"""Messages have facts and places, and those of other tools are known."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.analysis.rules.cases import around
from tests.declare.shop import read
from tests.messages.every import MESSAGES, PACKAGE, Use, facts_of, rendered, uses

from infold.messages.errors import Finding, InfoldError, InfoldErrors, Message, Spot

DOCS = PACKAGE.parents[1] / "docs"
PAGES = sorted((DOCS / "errors").glob("*.md"))
TEXTS = Path(__file__).parent / "every_message.txt"
SLUGS = sorted({rendered(name).slug for name in MESSAGES})


def test_every_text_is_the_one_written_down(request: pytest.FixtureRequest) -> None:
    """With ``<fact>`` in place of facts; ``--rewrite`` writes the file, which a person reads."""
    found = "\n\n\n".join(
        f"=== {name} (exit code {int(rendered(name).exit_code)})\n{rendered(name)}"
        for name in MESSAGES
    )
    if request.config.getoption("--rewrite"):
        TEXTS.write_text(found + "\n", encoding="utf-8")

    assert found + "\n" == TEXTS.read_text(encoding="utf-8")


def test_every_caller_gives_the_facts_that_the_words_need() -> None:
    """Each caller gives all facts of a message by name, and no others, so that it is rendered."""
    wrong = [f"{use.place}: {use.message}: {what}" for use in uses() for what in wrong_facts(use)]

    assert wrong == []


def wrong_facts(use: Use) -> Iterator[str]:
    """The facts that a caller leaves out, gives without need, or does not give by name."""
    message = MESSAGES[use.message]
    if not isinstance(message, Message | Finding):
        return
    given, needed = set(use.facts or ()), facts_of(message)
    if not use.plain:
        yield "facts without their names"
    yield from (f"{fact} is missing" for fact in sorted(needed - given))
    yield from (f"{fact} is not a fact of it" for fact in sorted(given - needed))
    if given == needed and (slug := rendered(use.message, given).slug) != message.slug:
        yield f"it is rendered as {slug}"


def test_every_message_is_used() -> None:
    """Every message is used by some module outside of the lists."""
    assert set(MESSAGES) - {use.message for use in uses()} == set()


def test_every_message_has_a_section() -> None:
    """Each slug has one with a text, none is about another, `docs/errors.md` links to all."""
    sections = [
        (page.stem, *text.partition("\n")[::2])
        for page in PAGES
        for text in re.split(r"^## ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]
    ]
    index = (DOCS / "errors.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(errors/([a-z-]+)\.md#([a-z0-9-]+)\)", index)

    assert sorted(slug for _, slug, _ in sections) == SLUGS
    assert [slug for _, slug, text in sections if len(text.strip()) <= 40] == []
    assert set(links) == {(page, slug) for page, slug, _ in sections}


def test_errors_are_built_in_few_places_only() -> None:
    """Only the messages modules build an InfoldError, so that all messages have one tone."""
    others = [
        path
        for path in PACKAGE.rglob("*.py")
        if path.parent.name != "messages"
        and re.search(r"\b(InfoldError|Message|Finding)\(\s*\"", path.read_text())
    ]

    assert others == []


class TestDrawing:
    """Slug and what is wrong, aligned facts, the line with a caret, what to do."""

    def test_the_parts_are_separated(self) -> None:
        """Below each other, with empty lines between; what is missing leaves no gap."""
        at = Spot("models/a.sql", 3, 8, "\tSELECT lag(x) over (y)", 6)
        error = InfoldError("slug", "what is wrong", (("window", "lag"),), "Do this.", 3, at)

        assert str(InfoldError("slug", "what is wrong")) == "slug: what is wrong"
        assert str(error) == (
            "slug: what is wrong\n"
            "\n"
            "  at:      models/a.sql:3\n"
            "  window:  lag\n"
            "\n"
            "    SELECT lag(x) over (y)\n"
            "          ^^^^^^\n"
            "\n"
            "Do this."
        )

    @pytest.mark.parametrize(
        ("column", "width", "caret"), [(1, 1, "^"), (3, 2, "^^"), (5, 99, "^^^"), (40, 3, "^")]
    )
    def test_the_caret_stays_under_the_line(self, column: int, width: int, caret: str) -> None:
        """The caret stays under the line, however far the place reaches."""
        drawn = Spot("a", 1, column, "  ab cd", width).caret.splitlines()[1]

        assert drawn.strip() == caret.strip()

    @pytest.mark.parametrize(("before", "after"), [(0, 300), (300, 300), (300, 0), (60, 60_000)])
    def test_of_a_long_line_what_is_around_the_place_is_shown(
        self, before: int, after: int
    ) -> None:
        """A line of any length is one line on a screen or a few, with the place in it."""
        line = "a" * before + "bad" + "a" * after

        shown, drawn = Spot("m.sql", 1, before + 1, line, 3).caret.splitlines()

        assert len(shown) <= 204
        assert shown[drawn.index("^") : len(drawn)] == "bad"

    def test_an_error_as_a_dictionary(self) -> None:
        """An error is also a dictionary of its parts, for programs."""
        error = InfoldError("slug", "what", (("a", "b"),), "Do.", at=Spot("m.sql", 2, 5))

        place = {"file": "m.sql", "line": 2, "column": 5}
        facts = {"at": "m.sql:2", "a": "b"}
        words = {"slug": "slug", "what": "what", "facts": facts, "todo": "Do.", "exit_code": 2}
        assert error.record == {**words, **place}

    def test_several_are_counted(self) -> None:
        """Several errors are counted, and one alone is shown as it is."""
        one, two = InfoldError("a", "first"), InfoldError("b", "second", exit_code=3)

        assert str(InfoldErrors([one])) == "a: first"
        assert str(InfoldErrors([one, two])) == "a: first\n\n\nb: second\n\n\n2 errors."
        assert [InfoldErrors(found).exit_code for found in ([one], [two], [one, two])] == [2, 3, 2]
        assert InfoldErrors([one, two]).record == {
            "errors": [one.record, two.record],
            "exit_code": 2,
        }


TABLE = "---\nmaterialization: table\n---\n"


def findings(text: str) -> str:
    """All that is found in a model's file."""
    _, found = read({**around(f"clicks {text}"), "models/subject.sql": text})
    return "\n".join(str(error) for error in found)


USERS = "SELECT user_id FROM clicks"


@pytest.mark.parametrize(
    ("front", "query", "expected"),
    [
        ("kind: full", USERS, "materialization (and incremental"),
        ("materialization: table\nlookback: 3", USERS, "as SQLMesh has it"),
        (
            "materialization: sessions\nsessions: {user: user_id, gap: 1 h, max_session_days: 3}",
            "SELECT count(*) AS n FROM clicks",
            "sessions.quarantine_after (as Snowplow has it)",
        ),
        (
            "materialization: table\ntimeseries: {interval_unit: day}",
            USERS,
            "timeseries.granularity (as SQLMesh has it)",
        ),
        ("materialization: table\nmaterialized: view", USERS, "as dbt has it"),
        (
            "materialization: events\ndedup_order_by: [a]",
            "SELECT * FROM raw.clicks",
            "prefer, of events",
        ),
        ("", f"MODEL (name x, kind FULL);\n{USERS}", "a model of SQLMesh"),
        (
            "materialization: table",
            "SELECT user_id FROM {{ ref('clicks') }}",
            "name the model itself in FROM",
        ),
        (
            "materialization: table",
            USERS + " {% if is_incremental() %} WHERE true {% endif %}",
            "each run works out what is stale",
        ),
    ],
)
def test_keys_of_other_tools_are_answered(front: str, query: str, expected: str) -> None:
    """A key, header or template of another tool is answered with the one of infold."""
    assert expected in findings(f"---\n{front}\n---\n{query}" if front else query)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        ("min_file_age: 5 minutes", "settle, of a source"),
        ("on_schema_mismatch: set_aside", "on_drift (and on_new_columns"),
    ],
)
def test_usual_words_for_keys_of_a_source_are_answered(key: str, expected: str) -> None:
    """A source with the usual word for a key of infold is answered with that key."""
    files = around("SELECT user_id FROM clicks")
    path = "    path: clicks/*.json\n"
    changed = files["infold.yml"].replace(path, f"{path}    {key}\n")
    _, (error,) = read(files | {"infold.yml": changed})

    assert error.slug == "unknown-key"
    assert dict(error.facts)["here"].startswith(expected)
    assert " has it" not in str(error)


def test_a_template_inside_a_string_is_a_string() -> None:
    """A query with a template inside a string is read as it is."""
    assert not findings(TABLE + "SELECT user_id, '{{ x }}' AS t FROM clicks")


DAILY = (
    "---\nmaterialization: table\nincremental: {}\n"
    "timeseries: {event_time_column: day, partition_column: day}\n---\n"
)


def test_a_refusal_suggests_bounds() -> None:
    """
    A refusal suggests declared bounds, and leaves their length open. It suggests none for a window
    that counts rows, which have gaps: six rows are days or years.
    """
    pairs = "SELECT a.day FROM daily AS a JOIN clicks AS b ON a.user_id = b.user_id"
    assert "daily: {before: …}, clicks: {before: …}" in findings(DAILY + pairs)

    for window in (
        "sum(n) OVER (ORDER BY day, user_id ROWS 6 PRECEDING)",
        "avg(n) OVER w",
        "lag(n) OVER (ORDER BY day, user_id)",
        "row_number() OVER (ORDER BY day, user_id)",
    ):
        over = "WINDOW w AS (ORDER BY day, user_id ROWS 6 PRECEDING)"
        rows = f"SELECT day, {window} AS s FROM daily {over}"
        assert "bounds:" not in findings(DAILY + rows), window
        assert "safety_overrides: {allow_window_functions: true}" in findings(DAILY + rows), window


def test_one_cause_is_one_finding() -> None:
    """A join without a condition on time; models that depend on it are not judged."""
    join = "FROM daily AS a JOIN clicks AS b ON a.user_id = b.user_id"
    one = findings(f"{DAILY}SELECT a.day, count(*) AS n {join} GROUP BY a.day")
    two = findings(f"{DAILY}SELECT to_date(a.user_id) AS day, count(*) AS n {join} GROUP BY 1")

    assert "join-over-cells" in one
    assert "partition-not-proven" not in one
    assert "group-over-cells" not in one
    assert "join-over-cells" in two
    assert "partition-not-proven" in two
