"""
What the analysis takes a call to mean is what Spark makes of it.

Every form below stands for one way of writing a time that the analysis follows. It is filled with
every unit that any table of the analysis knows, and with some that none does, and evaluated by
Spark over times at all ends of the calendar, in one job. Where the analysis says where such a value
lies, it lies there, in every row; and it is NULL in those rows alone in which the time is.
"""

from __future__ import annotations

import ast
import inspect
import re
from datetime import UTC, datetime
from itertools import product
from typing import TYPE_CHECKING

import pytest
from sqlglot import exp
from tests.spark.analysis.at_once import interpreted, view

from infold.analysis.bounds import known_columns, scope
from infold.analysis.bounds.known_columns import Entries
from infold.analysis.names import relation, resolve
from infold.analysis.sql import parse
from infold.analysis.sql.functions import BUILT_IN
from infold.analysis.times import call_shapes, distances, durations, floors
from infold.analysis.times.shape import Shape
from infold.core.interval import Granularity, micros_of
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIKE_UNITS = "D H M Q W Y S MS MONS DAYS WEEKS CENTURY yyyy dAy"
UNITS = sorted(
    {*floors.DATE_TRUNC, *floors.INSIDE, *durations.UNITS, *durations.MONTHS}
    | {*LIKE_UNITS.split(), ""}
)
"""Everything that is a unit somewhere, and what only looks like one."""

FORMS = (
    "date_trunc('{unit}', {t})",
    "date_trunc({unit}, {t})",
    "trunc({t}, '{unit}')",
    "dateadd({unit}, 3, {t})",
    "date_add({unit}, -3, {t})",
    "timestampadd({unit}, 1, {t})",
    "{t} + INTERVAL 3 {unit}",
    "{t} - INTERVAL '2' {unit}",
    "{t} + INTERVAL '1 {unit}'",
    "{t} + INTERVAL '-14 {unit}s'",
    "{t} - 2 * INTERVAL 1 {unit}",
    "{t} - INTERVAL 1.5 {unit}",
    "{t} + INTERVAL '1.5' {unit}",
    "{t} + INTERVAL '3 {unit} ago'",
    "{t} + (- INTERVAL '1' {unit})",
    "CAST({t} AS date)",
    "TRY_CAST({t} AS date)",
    "CAST({t} AS timestamp)",
    "CAST({t} AS timestamp_ntz)",
    "CAST({t} AS timestamp_ltz)",
    "DATE({t})",
    "TIMESTAMP({t})",
    "{t}::date",
    "to_date({t})",
    "to_timestamp({t})",
    "date_add({t}, 3)",
    "dateadd({t}, 3)",
    "date_sub({t}, 3)",
    "date_sub({t}, -40)",
    "{t} - 3",
    "3 + {t}",
    "add_months({t}, 1)",
    "add_months({t}, -13)",
    "last_day({t})",
    "next_day({t}, 'MON')",
    "next_day({t}, 'Su')",
    "next_day(date_sub({t}, 7), 'SUNDAY')",
    "next_day({t}, 'THURSDAY')",
    "CAST(CAST({t} AS date) AS string)",
    "CAST(from_unixtime(unix_timestamp({t})) AS timestamp)",
    "to_timestamp(from_unixtime(unix_timestamp({t}) - unix_timestamp({t}) % 900))",
    "to_date(from_unixtime(unix_timestamp({t})))",
    "CAST(unix_timestamp({t}) AS timestamp)",
    "from_utc_timestamp({t}, 'Europe/Berlin')",
    "to_utc_timestamp({t}, 'America/New_York')",
    "from_utc_timestamp({t}, '+05:30')",
    "convert_timezone('America/New_York', 'Asia/Kathmandu', {t})",
    "convert_timezone('Asia/Tokyo', {t})",
    "date_trunc('MONTH', date_add({t}, 40))",
    "date_trunc('HOUR', {t} - INTERVAL 90 MINUTES)",
    "trunc(last_day({t}), 'QUARTER') - INTERVAL 1 DAY",
    "CAST(from_utc_timestamp({t}, 'Pacific/Auckland') AS date)",
    "{t} + INTERVAL '1 02:03:04.5' DAY TO SECOND",
    "{t} - INTERVAL '-1 02' DAY TO HOUR",
    "{t} + INTERVAL '2-3' YEAR TO MONTH",
    "{t} + INTERVAL 1 DAY 2 HOURS",
    "{t} + make_interval(0, 1, 1, 1, 1, 1, 1.5)",
    "{t} - make_dt_interval(1, 2, 3, 4.5)",
    "{t} + CAST('1 day 2 hours' AS INTERVAL)",
    "CAST(date_format({t}, 'yyyy-MM-dd') AS date)",
    "to_date(date_format({t}, 'yyyy-MM-dd'))",
    "CAST(substring(CAST({t} AS string), 1, 10) AS date)",
    "to_date(left(CAST({t} AS string), 10))",
    "make_date(year({t}), month({t}), day({t}))",
    "make_date(year({t}), month({t}), dayofmonth({t}))",
    "make_date(year({t}), month({t}), 1)",
    "make_date(year({t}), 1, 1)",
    "make_timestamp(year({t}), month({t}), day({t}), hour({t}), 0, 0)",
    "timestamp_seconds(unix_timestamp({t}))",
    "timestamp_seconds(to_unix_timestamp({t}))",
    "timestamp_seconds(unix_seconds(CAST({t} AS timestamp)) + 90)",
    "timestamp_millis(unix_millis(CAST({t} AS timestamp)))",
    "timestamp_micros(unix_micros(CAST({t} AS timestamp)) - 1)",
    "timestamp_seconds(CAST(CAST({t} AS timestamp) AS bigint))",
    "timestamp_seconds(bigint(CAST({t} AS timestamp)))",
    "timestamp_seconds(floor(unix_timestamp({t}) / 900) * 900)",
    "timestamp_seconds(900 * floor(unix_timestamp({t}) / 900))",
    "timestamp_seconds(CAST(floor(unix_timestamp({t}) / 86400) * 86400 AS bigint))",
    "timestamp_seconds(unix_timestamp({t}) div 900 * 900)",
    "timestamp_seconds(unix_timestamp({t}) - unix_timestamp({t}) % 900)",
    "timestamp_seconds(unix_timestamp({t}) - pmod(unix_timestamp({t}), 900))",
    "date_trunc('HOUR', {t}) + make_interval(0, 0, 0, 0, 0, floor(minute({t}) / 15) * 15)",
    "date_trunc('HOUR', {t}) + make_interval(0, 0, 0, 0, 0, minute({t}) div 15 * 15)",
    "date_trunc('HOUR', {t}) + make_interval(0, 0, 0, 0, 0, minute({t}) - minute({t}) % 15)",
    "date_trunc('DAY', {t}) + make_interval(0, 0, 0, 0, hour({t}))",
    "date_sub(CAST({t} AS date), weekday({t}))",
    "date_add(CAST({t} AS date), 1 - dayofweek({t}))",
    "date_sub(CAST({t} AS date), dayofweek({t}) - 1)",
    "date_sub(CAST({t} AS date), day({t}) - 1)",
    "date_sub(CAST({t} AS date), dayofmonth({t}))",
    "date_add(CAST({t} AS date), hour({t}))",
    "date_add({t}, quarter({t}) + month({t}) - second({t}) % 7)",
    "CASE WHEN hour({t}) < 6 THEN CAST({t} AS date) - INTERVAL 1 DAY ELSE CAST({t} AS date) END",
    "if(hour({t}) >= 22, date_add(CAST({t} AS date), 1), CAST({t} AS date))",
    "greatest(CAST({t} AS date), CAST({t} - INTERVAL 2 HOURS AS date))",
    "least({t} + INTERVAL 3 HOURS, date_trunc('MONTH', {t}))",
    "coalesce({t} - INTERVAL 1 HOUR, {t})",
    "explode(sequence(CAST({t} AS date), CAST({t} AS date) + INTERVAL 2 DAYS))",
    "explode(sequence(date_trunc('DAY', {t}), {t} + INTERVAL 2 DAYS, INTERVAL 1 DAY))",
    "explode(array({t}, {t} + INTERVAL 1 DAY))",
)

BUCKETS = (
    "window({t}, '1 hour')",
    "window({t}, '15 minutes')",
    "window({t}, '1 day')",
    "window({t}, '6 hours')",
    "window({t}, '7 minutes')",
    "window({t}, '1 week')",
    "window({t}, '2 hours', '1 hour')",
    "window({t}, '90 minutes', '1 hour')",
    "window({t}, '3 days', '1 day')",
    "window({t}, '50 minutes', '20 minutes', '7 minutes')",
    "window({t}, '1 hour', '1 hour', '15 minutes')",
    "window({t}, '1 hour', '1 hour', '-15 minutes')",
    "window({t}, '1 day', '1 day', '-5 hours')",
    "window({t}, 'interval 1 day 2 hours')",
)
"""Calls of ``window``, of which Spark takes one in a SELECT; rows without a time fall away."""

TIMES = (
    "1600-02-29 23:59:59.999999",
    "1899-12-31 00:00:00",
    "1969-12-31 23:59:59.999999",
    "1970-01-01 00:00:00",
    "2000-02-29 12:00:00",
    "2023-12-31 23:59:59.999999",
    "2024-01-01 00:00:00",
    "2024-01-31 00:30:00",
    "2024-02-29 00:00:00.000001",
    "2024-03-03 23:00:00",
    "2024-03-04 00:00:00",
    "2024-03-10 07:30:00",
    "2024-03-31 01:00:00",
    "2024-03-31 23:59:59",
    "2024-10-27 00:30:00",
    "2024-10-27 01:59:59.999999",
    "2024-12-31 11:15:00",
    "2099-06-30 14:45:30.25",
)

PREDICATES = (
    "datediff({a}, {b}) {op} {n}",
    "date_diff({a}, {b}) {op} {n}",
    "datediff(HOUR, {b}, {a}) {op} {n}",
    "datediff(DAY, {b}, {a}) {op} {n}",
    "datediff(WEEK, {b}, {a}) {op} {n}",
    "datediff(YEAR, {b}, {a}) {op} {n}",
    "timestampdiff(HOUR, {b}, {a}) {op} {n}",
    "timestampdiff(DAY, {b}, {a}) {op} {n}",
    "timestampdiff(MINUTE, {b}, {a}) {op} {n}",
    "timestampdiff(MONTH, {b}, {a}) {op} {n}",
    "{a} - {b} {op} INTERVAL '{n}' HOUR",
    "{a} {op} {b} + INTERVAL '{n}' DAY",
    "{a} - INTERVAL '{n}' MONTH {op} {b}",
    "CAST({a} AS date) {op} date_add(CAST({b} AS date), {n})",
    "{a} BETWEEN {b} - INTERVAL '{n}' DAY AND {b} + INTERVAL '{n}' HOUR",
    "{a} <=> {b} + INTERVAL '{n}' DAY",
    "{a} {op} {b} + INTERVAL '{n}' DAY OR {a} BETWEEN {b} AND {b} + INTERVAL 3 DAYS",
    (
        "{a} BETWEEN {b} AND {b} + INTERVAL 2 DAYS "
        "OR {b} - {a} BETWEEN INTERVAL 0 HOUR AND INTERVAL '{n}' DAY"
    ),
    "unix_timestamp({a}) - unix_timestamp({b}) {op} {n} * 3600",
    "(unix_timestamp({a}) - unix_timestamp({b})) / 3600 {op} {n}",
    "unix_timestamp({a}) {op} unix_timestamp({b}) + {n}",
    "unix_millis({a}) - {n} {op} unix_millis({b})",
    "CAST({a} AS bigint) {op} CAST({b} AS bigint) - {n}",
    "abs(unix_timestamp({a}) - unix_timestamp({b})) {op} 90000 * {n}",
    "abs(datediff({a}, {b})) {op} {n}",
    "date_format({a}, 'yyyy-MM-dd') {op} date_format({b}, 'yyyy-MM-dd')",
)
OPERATORS = ("<", "<=", "=", ">=", ">")
NUMBERS = ("0", "1", "-1", "3")

pytestmark = pytest.mark.spark


def forms() -> list[str]:
    """Every form with every unit, once."""
    return list(dict.fromkeys(form.replace("{unit}", u) for form, u in product(FORMS, UNITS)))


COLUMNS = {"ts": Shape(), "day": Shape(grain=Granularity.DAY)}
"""The times, and dates."""


def claimed(sql: str, column: str) -> Shape | None:
    """What the analysis says of an expression over a time or a date."""
    block, key = _block(f"SELECT {sql} AS v FROM times")
    if block is None:
        return None
    entry = block.entries[0]
    columns = Entries({(entry, column): {key: COLUMNS[column]}}, {entry: frozenset({key})})
    here = scope.Scope(block, columns, Granularity.DAY)
    return here.shapes(block.node.expressions[0]).get(key)


def _block(sql: str) -> tuple[relation.Block | None, known_columns.InputPath]:
    try:
        read = parse.parse("times.sql", sql)
    except InfoldError:
        return None, ()
    tables = {"times": relation.Table("times", tuple(COLUMNS))}
    found = resolve.resolve(read.text, read.tree, tables)
    if found.errors or not isinstance(found.relation, relation.Block):
        return None, ()
    return found.relation, (found.relation.entries[0],)


def right(shape: Shape, t: int, v: int) -> bool:
    """Whether ``v`` lies where the shape says that it does, for the time ``t``."""
    if shape.grain is not None and shape.grain.floor(v) != v:
        return False
    low, high = t + shape.low, t + shape.high
    if shape.cell is not None:
        low, v, high = (shape.cell.floor(at) for at in (low, v, high))
    return low <= v <= high


@pytest.mark.usefixtures("quick_errors")
def test_every_call_is_as_the_analysis_bounds_it(spark: SparkSession) -> None:
    """Spark's value of every form, unit and time fits the bounds that the analysis gives for it."""
    session = interpreted(spark)
    _times(session, "times")
    claims = {
        (sql, column): shape
        for one, column in product(forms(), COLUMNS)
        if (shape := claimed(sql := one.format(t=column), column)) is not None
    }
    # To a date Spark adds no such interval with hours, and says so only when it does.
    may_be = [
        (sql, column)
        for sql, column in claims
        if not (column == "day" and re.search("make_interval|AS INTERVAL", sql))
    ]
    accepted = set(_accepted(session, list(dict.fromkeys(sql for sql, _ in may_be))))
    known = {key: claims[key] for key in may_be if key[0] in accepted}

    columns = ", ".join(f"CAST({sql} AS timestamp) AS v{i}" for i, (sql, _) in enumerate(known))
    times = ", ".join(f"CAST({column} AS timestamp) AS {column}" for column in COLUMNS)
    rows = session.sql(f"SELECT {times}, {columns} FROM times").toArrow().to_pylist()
    wrong = [
        f"{sql} of {row[column]} is {row[f'v{i}']}, and not {shape}"
        for i, ((sql, column), shape) in enumerate(known.items())
        for row in rows
        if not _fits(shape, row[column], row[f"v{i}"])
    ]

    assert not wrong, "\n".join(wrong)
    assert len(known) > 100
    assert {row["ts"] is None for row in rows} == {True, False}


def test_every_bucket_is_as_the_analysis_bounds_it(spark: SparkSession) -> None:
    """Every start and end of a time bucket fits the bounds that the analysis gives for it."""
    session = interpreted(spark)
    _times(session, "times")
    found = [(one.format(t=column), column) for one, column in product(BUCKETS, COLUMNS)]
    parts = [
        f"SELECT {i} AS i, t, CAST(w.start AS timestamp) AS start, CAST(w.end AS timestamp) AS end "
        f"FROM (SELECT {sql} AS w, CAST({column} AS timestamp) AS t FROM times)"
        for i, (sql, column) in enumerate(found)
    ]
    rows = session.sql(" UNION ALL ".join(parts)).toArrow().to_pylist()
    wrong = []
    for row, name in product(rows, ("start", "end")):
        sql, column = found[row["i"]]
        shape = claimed(f"{sql}.{name}", column)
        if shape is None or not _fits(shape, row["t"], row[name]):
            wrong.append(f"{sql}.{name} of {row['t']} is {row[name]}, and not {shape}")

    assert not wrong, "\n".join(wrong[:50])
    assert len(rows) > len(found) * len(TIMES)


def test_every_predicate_bounds_its_columns_as_claimed(spark: SparkSession) -> None:
    """Where Spark finds a predicate true, its columns are as far apart as the analysis claims."""
    session = interpreted(spark)
    _times(session, "times")
    session.sql("SELECT a.ts AS a, b.ts AS b FROM times a, times b").createOrReplaceTempView("two")
    found = [
        text.format(a="a", b="b", op=op, n=n)
        for text, op, n in product(PREDICATES, OPERATORS, NUMBERS)
    ]
    known = [sql for sql in dict.fromkeys(found) if list(_links(sql))]
    columns = ", ".join(f"{sql} AS v{i}" for i, sql in enumerate(known))
    rows = session.sql(f"SELECT a, b, {columns} FROM two").toArrow().to_pylist()
    wrong = [
        f"{sql} is true of {row['a']} and {row['b']}, against {link}"
        for i, sql in enumerate(known)
        for link in _links(sql)
        for row in rows
        if row[f"v{i}"] and not _linked(link, row["a"], row["b"])
    ]

    assert not wrong, "\n".join(wrong[:50])
    assert len(known) > 100


def test_every_node_with_a_meaning_is_in_a_form() -> None:
    """Every node of a syntax tree that has a meaning to the
    analysis occurs in a tested form or predicate.
    """
    wanted = set()
    for module in (call_shapes, distances, durations, floors):
        for node in ast.walk(ast.parse(inspect.getsource(module))):
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "exp":
                wanted.add(node.attr)
    texts = [one.format(t="ts") for one in forms()]
    texts += [one.format(t="ts") + ".start" for one in BUCKETS]
    texts += [one.format(a="a", b="b", op=op, n=1) for one in PREDICATES for op in OPERATORS]
    seen = set()
    for text in texts:
        try:
            tree = parse.parse("times.sql", f"SELECT {text} AS v FROM times").tree
        except InfoldError:
            continue
        seen |= {type(node).__name__ for node in tree.walk()}

    assert sorted(wanted - seen - AROUND) == []


def test_the_functions_are_those_of_spark(spark: SparkSession) -> None:
    """The functions that ``check`` takes for Spark's are exactly those of Spark's registry."""
    found = {str(row[0]) for row in spark.sql("SHOW SYSTEM FUNCTIONS").collect()}

    assert {name for name in found if name.isidentifier()} == set(BUILT_IN)


AROUND = {
    "And", "Case", "DType", "Expr", "Having", "If", "Is", "Join", "Not", "Null", "Or", "Qualify",
    "Where", "Paren", "Identifier", "Binary", "Func", "DayOfYear", "Extract",
    "CumeDist", "DenseRank", "Filter", "IgnoreNulls", "Lag", "Lead", "Ntile", "Order",
    "PercentRank", "Rank", "RespectNulls", "RowNumber", "Window", "WindowSpec",
}  # fmt: skip
"""
Nodes that say where a predicate stands, and are no calls; kinds of nodes; calls that only name
periods, which counter-examples of grouping judge; and windows, which say over which rows.
"""


def _times(session: SparkSession, name: str) -> None:
    rows = [(datetime.fromisoformat(text).replace(tzinfo=UTC),) for text in TIMES]
    view(session, "instants", [*rows, (None,)], "ts timestamp")
    session.sql("SELECT ts, CAST(ts AS date) AS day FROM instants").createOrReplaceTempView(name)


def _accepted(session: SparkSession, texts: list[str]) -> list[str]:
    """Those that Spark takes, asked all at once, else by halves: what it refuses can do no harm."""
    columns = ", ".join(f"CAST({sql} AS timestamp)" for sql in texts)
    try:
        session.sql(f"SELECT {columns} FROM times").schema  # noqa: B018
    except Exception:  # noqa: BLE001 - whatever it says, it is no
        half = len(texts) // 2
        parts = (texts[:half], texts[half:]) if half else ()
        return [sql for part in parts for sql in _accepted(session, part)]
    return texts


def _fits(shape: Shape, t: datetime | None, v: datetime | None) -> bool:
    if t is None or v is None:
        return t is v
    return right(shape, micros_of(t), micros_of(v))


def _links(sql: str) -> list[distances.Link]:
    tree = parse.parse("two.sql", f"SELECT 1 AS v FROM two WHERE {sql}").tree
    return [
        one
        for one in distances.links_of(tree.args["where"])
        if isinstance(one.left, exp.Column) and isinstance(one.right, exp.Column)
    ]


def _linked(link: distances.Link, a: datetime | None, b: datetime | None) -> bool:
    if a is None or b is None:
        return link.or_null and a is b
    apart = micros_of(a) - micros_of(b)
    if link.left.name == "b":
        apart = -apart
    return link.low <= apart <= link.high
