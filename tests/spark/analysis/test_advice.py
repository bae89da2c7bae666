"""What a refusal proposes in place of a query gives the same rows, where these are defined."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import pytest
from tests.analysis.rules.cases import around, under_caret
from tests.declare.shop import read
from tests.messages.every import MESSAGES, rendered
from tests.spark.analysis.at_once import interpreted, rows_of, view

from infold.messages.errors import InfoldError

pytestmark = pytest.mark.deep

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# ruff: noqa: E501 (one case is one row of a table)


REFUSED = (
    "SELECT user_id, {} AS x FROM clicks GROUP BY user_id",
    "SELECT event_id, {} AS x FROM clicks",
)
CALLS = (
    (0, "max_by(url, event_ts)"),
    (0, "min_by(url, amount)"),
    (0, "max_by(url, amount + 1)"),
    (0, "min_by(url, CASE WHEN amount > 2 THEN event_ts END)"),
    (0, "max_by(url, CASE WHEN event_ts > '2024-03-01' THEN amount END)"),
    (0, "min_by(url, if(code IS NULL, NULL, event_ts))"),
    (0, "max_by(url, CASE WHEN amount > 2 THEN event_ts ELSE event_ts - INTERVAL 9 DAYS END)"),
    (0, "min_by(url, struct(event_ts))"),
    (0, "max_by(url, struct(event_ts, amount))"),
    (1, "max_by(url, amount) OVER (PARTITION BY user_id)"),
    (1, "first_value(url) OVER w"),
    (1, "last_value(url) OVER w"),
    (1, "first_value(url) IGNORE NULLS OVER w"),
    (1, "last_value(url) IGNORE NULLS OVER w"),
    (1, "last_value(url, true) OVER w"),
    (1, "last(code) IGNORE NULLS OVER w"),
)
CHOICES = ("refusals.ties_in_choice", "refusals.ties_in_range", "refusals.filter_in_window")
"""The messages of these, and of conditions that are put into the value."""
WINDOW = "(PARTITION BY user_id ORDER BY event_ts RANGE BETWEEN INTERVAL 2 HOURS PRECEDING AND CURRENT ROW)"
HEAD = "---\nmaterialization: table\n---\n"


def proposed(call: str, query: str) -> str:
    """The query as the only error of the refused one proposes it, which is accepted."""
    refused = query.format(call.replace("OVER w", f"OVER {WINDOW}"))
    _, [error] = read({**around(refused), "models/example.sql": HEAD + refused})
    assert error.slug == "order-not-total"
    assert error.todo is not None
    found = re.fullmatch(r"Say which: (.*?)( OVER the same window)?\.", error.todo, re.DOTALL)
    assert found is not None, error.todo
    window = under_caret(error).partition(" OVER ")[2]
    other = refused.replace(under_caret(error), found[1] + (f" OVER {window}" if window else ""))
    _, errors = read({**around(other), "models/example.sql": HEAD + other})
    assert not errors, (other, errors)
    return other


def clicks(session: SparkSession) -> None:
    """Rows with NULLs, in which those of a user tie in nothing but NULL."""
    rows = [
        (
            f"e{number}",
            f"u{number % 5}" if number % 7 else None,
            datetime(2024, 3, 1, number % 24, number, tzinfo=UTC),
            f"/{number}" if number % 4 else None,
            number if number % 3 and number % 5 else None,
            f"{'cC'[number % 4 // 2]}{number % 3}" if number % 2 else None,
        )
        for number in range(48)
    ]
    view(
        session,
        "clicks",
        rows,
        "event_id string, user_id string, event_ts timestamp, url string, amount int, code string",
    )


@pytest.mark.spark
def test_what_a_choice_is_replaced_by(spark: SparkSession) -> None:
    """NULL in an order takes no part in a choice, and still takes none with a second column.

    Rows of a user tie in nothing but NULL, so that Spark has one answer for what was refused.
    """
    session = interpreted(spark)
    clicks(session)
    queries = [REFUSED[at].format(call.replace("OVER w", f"OVER {WINDOW}")) for at, call in CALLS]
    instead = [proposed(call, REFUSED[at]) for at, call in CALLS]
    found = rows_of(session, [*queries, *instead])
    for (_, call), before, after in zip(
        CALLS, found[: len(CALLS)], found[len(CALLS) :], strict=True
    ):
        assert before is not None, call
        assert before == after, call


HOUR = HEAD.replace(
    "table\n",
    "table\nincremental: {}\n"
    "timeseries: {event_time_column: event_ts, partition_column: x, granularity: hour}\n",
)
DAY = HOUR.replace("partition_column: x, granularity: hour", "partition_column: day")
OF_DAY = "cast(event_ts AS date)"
BY_DAY = f"SELECT {OF_DAY} AS day, event_id, {{}} AS x FROM clicks"
EACH = "SELECT xxhash64(event_id) AS id, {} AS x FROM clicks GROUP BY xxhash64(event_id)"
QUARTER = "from_unixtime(unix_timestamp(event_ts) - unix_timestamp(event_ts) % 900)"
IN_TURN = "(PARTITION BY user_id ORDER BY event_ts, event_id)"
BOTH = "SELECT cast(c.event_ts AS date) AS day, c.event_id, p.url AS x FROM clicks c "
NEAR = "AND p.event_ts BETWEEN c.event_ts - INTERVAL 1 DAY AND c.event_ts + INTERVAL 1 DAY"
AT_DAY = "AND cast(p.event_ts AS date) = cast(c.event_ts AS date)"
OF_OTHER = "SELECT cast(p.event_ts AS date) AS day, c.event_id AS x FROM clicks c {} JOIN {} p ON p.event_id = c.event_id AND p.event_ts = c.event_ts"


class Pair(NamedTuple):
    """
    A refused query, its message, and what this says: ``old`` is replaced by ``new``.

    ``shown`` is what has to be equal of both, over ``x``: what was refused may have no order, or
    another type (``shown_instead``). ``those`` are the rows that both speak of. What is refused
    because it asks about rows of other cells is asked about rows of one cell: there both are the
    same. Without ``head`` the query is a small one of those that are refused.
    """

    of: str
    message: str
    refused: str
    old: str
    new: str
    shown: str = "x"
    head: str = HEAD
    shown_instead: str = ""
    those: str = "true"

    @property
    def proposed(self) -> str:
        """The query as the message says."""
        assert self.old in self.refused, self
        return self.refused.replace(self.old, self.new)


ROLLING = "count(url) OVER (PARTITION BY user_id ORDER BY event_ts"
LIMITED = BY_DAY.format("url") + " ORDER BY event_id, event_ts LIMIT 9"
NUMBERED = f"SELECT {OF_DAY} AS day, event_id, url AS x, row_number() OVER (PARTITION BY {OF_DAY} ORDER BY event_id, event_ts) AS n FROM clicks"
CELL = "the cell as well (cast(… AS date)"
APART = "b.ts BETWEEN a.ts - INTERVAL … AND a.ts, or equal days"
SOME = "p.url = c.url"
VALUES = BOTH.replace("p.url", "c.code") + "WHERE c.url "
PAIRS = (
    Pair("refusals.order_dependent", "sort_array(collect_list(…))", REFUSED[0].format("collect_list(url)"), "collect_list(url)", "sort_array(collect_list(url))", "sort_array(x)"),
    Pair("refusals.order_dependent", "sort_array(collect_set(…))", REFUSED[0].format("collect_set(code)"), "collect_set(code)", "sort_array(collect_set(code))", "sort_array(x)"),
    Pair("refusals.order_dependent", "listagg(x) WITHIN GROUP (ORDER BY x)", REFUSED[0].format("listagg(url)"), "listagg(url)", "listagg(url) WITHIN GROUP (ORDER BY url)", "sort_array(split(x, '/'))"),
    Pair("refusals.order_dependent", "min_by or max_by", EACH.format("first(url)"), "first(url)", "min_by(url, struct(url))"),
    Pair("refusals.any_value", "min, max, min_by", EACH.format("any_value(url)"), "any_value(url)", "min(url)"),
    Pair("refusals.any_value", "min, max, min_by", EACH.format("any_value(url)"), "any_value(url)", "max(url)"),
    Pair("refusals.mode", "mode(x, true)", "SELECT mode(url IS NULL) AS x FROM clicks", "IS NULL)", "IS NULL, true)"),
    Pair("refusals.mode", "mode() WITHIN GROUP (ORDER BY x DESC)", "SELECT mode(url IS NULL) AS x FROM clicks", "(url IS NULL)", "() WITHIN GROUP (ORDER BY url IS NULL DESC)"),
    Pair("refusals.order_not_total", "Add event_id to ORDER BY.", REFUSED[1].format("row_number() OVER (PARTITION BY user_id ORDER BY event_ts)"), "BY event_ts", "BY event_ts, event_id"),
    Pair("refusals.order_not_total", "Add event_id to ORDER BY.", REFUSED[1].format("lag(url) OVER (PARTITION BY user_id ORDER BY event_ts DESC)"), "BY event_ts DESC", "BY event_ts DESC, event_id"),
    Pair("refusals.limit_without_order", "Add ORDER BY", REFUSED[1].format("url") + " LIMIT 99", "LIMIT", "ORDER BY event_id, event_ts LIMIT"),
    Pair("refusals.not_deterministic", "percentile_disc(p) WITHIN GROUP (ORDER BY x) in place of percentile_approx(x, p)", REFUSED[0].format("percentile_approx(amount, 0.3)"), "percentile_approx(amount, 0.3)", "percentile_disc(0.3) WITHIN GROUP (ORDER BY amount)", "cast(x AS double)"),
    Pair("refusals.not_deterministic", "count(DISTINCT x) in place of hll_sketch_agg", REFUSED[0].format("hll_sketch_estimate(hll_sketch_agg(url))"), "hll_sketch_estimate(hll_sketch_agg(url))", "count(DISTINCT url)"),
    Pair("refusals.not_stored", "unix_micros(b) - unix_micros(a)", REFUSED[1].format("event_ts - TIMESTAMP '2024-03-01 12:00'"), "event_ts - TIMESTAMP '2024-03-01 12:00'", "unix_micros(event_ts) - unix_micros(TIMESTAMP '2024-03-01 12:00')", "timestampdiff(MICROSECOND, TIMESTAMP '2024-01-01', TIMESTAMP '2024-01-01' + x)", shown_instead="x"),
    Pair("refusals.not_stored", "CAST(NULL AS string)", REFUSED[1].format("NULL"), "NULL", "CAST(NULL AS string)"),
    Pair("refusals.collation", "lower(x) in place of x COLLATE UTF8_LCASE", "SELECT code COLLATE UTF8_LCASE AS x, count(*) AS n FROM clicks GROUP BY 1", "code COLLATE UTF8_LCASE", "lower(code)", "lower(x COLLATE UTF8_BINARY)"),
    Pair("refusals.partition_unproven", "to_timestamp(from_unixtime(…))", f"SELECT {QUARTER} AS x, count(*) AS n FROM clicks GROUP BY 1", QUARTER, f"to_timestamp({QUARTER})", "cast(x AS timestamp)", HOUR),
    Pair("refusals.total_over_cells", f"Group by {CELL}", f"SELECT max({OF_DAY}) AS day, count(*) AS x FROM clicks", "FROM clicks", f"FROM clicks GROUP BY {OF_DAY}", head=DAY),
    Pair("refusals.group_over_cells", f"Group by {CELL}", f"SELECT user_id, max({OF_DAY}) AS day, count(*) AS x FROM clicks GROUP BY user_id", "BY user_id", f"BY user_id, {OF_DAY}", head=DAY),
    Pair("refusals.distinct_over_cells", f"Select {CELL}", f"{BOTH}JOIN (SELECT DISTINCT url FROM clicks) p ON {SOME}", f"url FROM clicks) p ON {SOME}", f"url, {OF_DAY} AS event_ts FROM clicks) p ON {SOME} {AT_DAY}", head=DAY),
    Pair("refusals.set_operation", "Select the cell on both sides as well (cast(… AS date)", f"{BOTH}JOIN (SELECT url FROM clicks UNION SELECT code FROM clicks) p ON {SOME}", f"url FROM clicks UNION SELECT code FROM clicks) p ON {SOME}", f"url, {OF_DAY} AS event_ts FROM clicks UNION SELECT code, {OF_DAY} FROM clicks) p ON {SOME} {AT_DAY}", head=DAY),
    Pair("refusals.window_over_cells", "PARTITION BY …, cast(… AS date)", BY_DAY.format(f"lag(url) OVER {IN_TURN}"), "user_id ORDER", f"user_id, {OF_DAY} ORDER", head=DAY),
    Pair("refusals.window_over_cells", "CASE WHEN ts - lag(ts) OVER w <= INTERVAL … THEN lag(x) OVER w END", BY_DAY.format(f"lag(url) OVER {IN_TURN}"), f"lag(url) OVER {IN_TURN}", f"CASE WHEN event_ts - lag(event_ts) OVER {IN_TURN} <= INTERVAL 1 DAY THEN lag(url) OVER {IN_TURN} END", head=DAY),
    Pair("refusals.window_over_cells", "RANGE BETWEEN INTERVAL … PRECEDING", BY_DAY.format(f"{ROLLING})"), f"{ROLLING})", f"{ROLLING} RANGE BETWEEN INTERVAL 1 DAY PRECEDING AND CURRENT ROW)", head=DAY),
    Pair("refusals.limit_over_cells", "row_number() OVER (PARTITION BY …)", LIMITED, LIMITED, f"SELECT day, event_id, x FROM ({NUMBERED}) WHERE n <= 9", head=DAY),
    *(
        Pair(f"refusals.{name}", APART, refused, old, f"{old} {near}", head=DAY)
        for name, refused, old in (
            ("join_of_times", f"{BOTH}JOIN paid p ON p.user_id = c.user_id", "= c.user_id"),
            ("join_of_times", f"{VALUES.removesuffix('WHERE c.url ')}LEFT SEMI JOIN paid p ON {SOME}", SOME),
            ("subquery_over_cells", f"{VALUES.removesuffix('c.url ')}EXISTS (SELECT 1 FROM paid p WHERE {SOME})", SOME),
        )
        for near in (NEAR, AT_DAY)
    ),
    *(
        Pair("refusals.values_over_cells", message, f"{VALUES}{word} (SELECT p.url FROM paid p WHERE {where})", f"c.url {word} (SELECT p.url FROM paid p WHERE {where})", f"{instead} (SELECT 1 FROM paid p WHERE {where} AND {equal} {AT_DAY})", head=DAY)
        for message, word, instead, equal in (
            ("EXISTS (… WHERE b.x = a.x)", "IN", "EXISTS", SOME),
            ("NOT EXISTS (… WHERE coalesce(b.x = a.x, true))", "NOT IN", "NOT EXISTS", f"coalesce({SOME}, true)"),
        )
        for where in ("p.event_id <> 'e5'", "p.url > '/2'", "p.url = 'none'")
    ),
    Pair("refusals.join_keeps_lookup", "put that side first and use LEFT JOIN", f"{BOTH}RIGHT JOIN raw.countries p ON p.code = c.code".replace("p.url", "p.country"), "RIGHT", "LEFT", head=DAY, those="day IS NOT NULL AND x IS NOT NULL"),
    Pair("refusals.null_cell", "SELECT * FROM (…) WHERE day IS NOT NULL", OF_OTHER.format("LEFT", "paid"), OF_OTHER.format("LEFT", "paid"), f"SELECT * FROM ({OF_OTHER.format('LEFT', 'paid')}) WHERE day IS NOT NULL", head=DAY, those="day IS NOT NULL"),
    Pair("refusals.null_cell", "of a FULL JOIN coalesce(a.ts, b.ts)", OF_OTHER.format("FULL", "clicks"), "cast(p.event_ts AS date)", "cast(coalesce(p.event_ts, c.event_ts) AS date)", head=DAY),
    *(
        Pair(name, "A list (IN (…)) says the same as thousands of ORs", REFUSED[1].format("url = '/1' OR url = '/2' OR url = '/3'"), "url = '/1' OR url = '/2' OR url = '/3'", "url IN ('/1', '/2', '/3')", head="")
        for name in ("findings.too_deep", "faults.too_deep")
    ),
)  # fmt: skip


def is_like(text: str, words: str) -> bool:
    """Whether a text is that of a message, whose facts are in angle brackets in its words."""
    cell = r"an? (hour|day) of \w+"
    pattern = re.sub(r"<[^>]+>(, <[^>]+>)*", "\0", words).replace("a day of daily", "\1")
    pattern = re.escape(pattern).replace("\0", ".*").replace("\1", cell)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def is_of(error: InfoldError, name: str) -> bool:
    """Whether an error is of this message."""
    message = rendered(name)
    return error.slug == message.slug and is_like(error.what, message.what)


def test_what_messages_propose_is_accepted() -> None:
    """A query with what the message of a refused one proposes."""
    for pair in PAIRS:
        if pair.head:
            files = {**around(pair.refused), "models/example.sql": pair.head + pair.refused}
            errors = [str(one) for one in read(files)[1] if is_of(one, pair.of)]
            assert any(pair.message in one for one in errors), (pair, read(files)[1])
        else:
            assert pair.message in str(rendered(pair.of))
        files = {**around(pair.proposed), "models/example.sql": (pair.head or HEAD) + pair.proposed}
        assert not read(files)[1], (pair.proposed, read(files)[1])


class Form(NamedTuple):
    """
    A file that is refused, and the same as its message says.

    ``rows`` are two queries that have the same rows for the same reason, if they have any.
    """

    of: str
    message: str
    file: str
    refused: str
    accepted: str
    rows: tuple[str, ...] = ()
    beside: Mapping[str, str] = MappingProxyType({})


CLEAN = """from infold import function

@function(parameters=["STRING"], returns="STRING", deterministic=True)
def clean(text):
    return text
"""
ENDS = """from infold import session_rule

@session_rule(parameters={"page": "STRING"})
def ends(events):
    for event in events:
        yield event["page"] is None
"""
RULED = """---
materialization: sessions
sessions: {user: user_id, gap: 30 minutes, cuts: {rule: ends(url)}}
---
SELECT count(*) AS events FROM clicks"""
DAYS = """from infold import model

@model(materialization="table", columns={"a": "int"})
def days(clicks):
    return clicks
"""
RULE = {"functions/ends.py": ENDS}
FORMS = (
    Form(
        "function_findings.not_a_function",
        "CREATE FUNCTION name(parameter TYPE, …) RETURNS TYPE RETURN expression",
        "functions/f.sql",
        "SELECT 1",
        "CREATE FUNCTION f(x STRING) RETURNS STRING RETURN upper(x)",
    ),
    Form(
        "function_findings.nameless_field",
        "named_struct('a', a, …)",
        "functions/f.sql",
        "CREATE FUNCTION f(url STRING, n INT) RETURN (url, n)",
        "CREATE FUNCTION f(url STRING, n INT) RETURN named_struct('url', url, 'n', n)",
        ("(url, amount)", "named_struct('url', url, 'amount', amount)"),
    ),
    Form(
        "function_findings.no_function",
        "@function(parameters=[…], returns=…, deterministic=True) above `def clean`",
        "functions/clean.py",
        "def clean(text):\n    return text\n",
        CLEAN,
    ),
    Form(
        "function_findings.bad_decorator",
        '@function(parameters=["STRING"], returns="STRING", deterministic=True)',
        "functions/clean.py",
        CLEAN.replace("parameters=[", "parameters=(").replace("],", "),"),
        CLEAN,
    ),
    Form(
        "function_findings.bad_rule",
        "`for event in events: yield …`",
        "functions/ends.py",
        ENDS.replace("yield ", "found = "),
        ENDS,
    ),
    Form(
        "function_findings.no_python_parameters",
        "CREATE FUNCTION clean() RETURN …",
        "functions/clean.py",
        CLEAN.replace('"STRING"]', "]").replace("(text)", "()").replace("text", "'x'"),
        "",
        beside={"functions/clean.sql": "CREATE FUNCTION clean() RETURN 'x'"},
    ),
    Form(
        "function_findings.no_session_rule",
        "rule: name(column, …)",
        "models/s.sql",
        RULED.replace("ends(url)", "ends"),
        RULED,
        beside=RULE,
    ),
    Form(
        "function_findings.no_model_function",
        "@model(...) over one function",
        "models/days.py",
        "X = 1\n",
        DAYS,
    ),
    Form(
        "findings.reserved_column_of_source",
        "(SELECT _id AS other)",
        "models/read.sql",
        "---\nmaterialization: table\n---\nSELECT n FROM raw.odd",
        "---\nmaterialization: events\nunique_key: [other]\ntimeseries: {event_time_column: at}\n---\n"
        "SELECT `_id` AS other, at FROM raw.odd",
    ),
)


def of_form(form: Form, text: str) -> list[InfoldError]:
    """What is wrong with a project that has this file."""
    files: dict[str, str] = {**around("SELECT 1 FROM clicks"), **form.beside, form.file: text}
    odd = "sources:\n  raw.odd: {path: odd/*.csv, columns: {_id: string, at: timestamp, n: int}}\n"
    files["infold.yml"] = files["infold.yml"].replace("sources:\n", odd)
    return read({name: content for name, content in files.items() if content})[1]


def test_what_messages_about_files_propose_is_accepted() -> None:
    """A file with what the message of a refused one proposes."""
    for form in FORMS:
        plain = form._replace(beside={} if not form.accepted else form.beside)
        [error, *_] = of_form(plain, form.refused)
        assert is_of(error, form.of), error
        assert form.message in str(error)
        assert not of_form(form, form.accepted), form.of


OTHERWISE = {
    "ledger_errors.not_permitted": "a right of a user",
    "database_errors.not_permitted": "a right of a user",
    "delta_errors.not_with_delta": "a key of a declaration",
    "faults.too_many_parts": "names no more than a clause",
    "findings.needless_key": "keys alone are proposed",
    "findings.bad_cron": "no SQL",
    "findings.template": "of each template of another tool: tests/declare/test_mistakes.py",
    "findings.not_in_spark": "Spark has no rows for what was refused",
    "findings.column_too_far": "Spark has no rows for what was refused",
    "findings.type_not_stored": "no table has had such a column",
    "refusals.unnamed_column": "a name is no value",
    "refusals.view_mixes_times": "names no more than a clause",
    "refusals.joined_events": "the one form that is accepted, of other joins too",
    "refusals.no_group_by": "names no more than a clause",
    "refusals.no_time_input": "reads another table on purpose",
    "run_errors.rows_without_cell": "asks which of two is wanted",
    "audit_findings.not_of_one_row": "names no more than a clause",
    "function_findings.unsupported_clause": "each is left out, or a word for a model",
    "function_findings.nameless_call": "a name is no value",
    "function_findings.bad_argument": "what is left out of an argument",
}
"""Messages with words of SQL or Python that no pair stands behind, and why."""

_CODE = re.compile(
    r"\b[a-z_]+\([^)]|<(instead|rewrite|todo|example)>|@[a-z]|\byield\b|\bAS [a-z]|\b("
    "BETWEEN|CASE|CAST|DISTINCT|EXISTS|FILTER|GROUP BY|JOIN|ORDER BY|PARTITION BY|RETURN|SELECT|"
    r"UNION|WHERE|WITHIN)\b"
)


def test_what_is_proposed_has_a_pair() -> None:
    """Each message that proposes SQL or Python has one, or is listed with the reason."""
    proposing = set()
    for name in MESSAGES:
        error = rendered(name)
        facts = (f"<{fact}> {text}" for fact, text in error.facts if fact != "at")
        if _CODE.search(" ".join((error.todo or "", *facts))):
            proposing.add(name)
    paired = {pair.of for pair in PAIRS} | {form.of for form in FORMS} | {*CHOICES}
    assert proposing - paired == {*OTHERWISE}
    assert not paired - {*MESSAGES}


@pytest.mark.spark
def test_what_other_messages_propose(spark: SparkSession) -> None:
    """A query with what its refusal proposes has the rows of the refused one."""
    session = interpreted(spark)
    clicks(session)
    session.sql("SELECT * FROM clicks WHERE amount > 0").createOrReplaceTempView("paid")
    known = [(f"c{n}", f"land {n}") for n in range(3)] + [("C0", None), (None, "none")]
    view(session, "countries", known, "code string, country string")
    every = [
        f"SELECT * EXCEPT (x), {shown} AS x FROM ({query.replace('raw.', '')}) WHERE {pair.those}"
        for pair in PAIRS
        for query, shown in (
            (pair.refused, pair.shown),
            (pair.proposed, pair.shown_instead or pair.shown),
        )
    ]
    every += [f"SELECT {one} AS x FROM clicks" for form in FORMS for one in form.rows]
    found = rows_of(session, every)
    about: list[Pair | Form] = [*PAIRS, *(form for form in FORMS if form.rows)]
    for pair, before, after in zip(about, found[::2], found[1::2], strict=True):
        assert before is not None, pair
        assert before == after, pair
    with_rows = {pair.of for pair, before in zip(about, found[::2], strict=True) if before}
    assert with_rows == {pair.of for pair in about}


@pytest.mark.spark
def test_a_condition_that_is_put_into_the_value(spark: SparkSession) -> None:
    """``sum(CASE WHEN … THEN x END)`` is the sum with FILTER, which Spark has in no window."""
    session = interpreted(spark)
    clicks(session)
    forms = (
        ("sum(amount) FILTER (WHERE code IS NULL)", "sum(CASE WHEN code IS NULL THEN amount END)"),
        ("count(*) FILTER (WHERE amount > 9)", "count(CASE WHEN amount > 9 THEN 1 END)"),
    )
    for filtered, other in forms:
        refused = REFUSED[1].format(f"{filtered} OVER (PARTITION BY user_id)")
        _, [error] = read({**around(refused), "models/example.sql": HEAD + refused})
        assert f"{other.partition('(')[0]}(CASE WHEN … THEN" in str(error)
        window = REFUSED[1].format(f"{other} OVER (PARTITION BY user_id)")
        groups = f"SELECT user_id, {filtered} AS x FROM clicks GROUP BY user_id"
        by_group = f"SELECT event_id, x FROM clicks c JOIN ({groups}) g ON g.user_id <=> c.user_id"
        found = rows_of(session, [window, by_group])
        assert found[0] == found[1] is not None, filtered
