"""Queries drawn at random whose rows have the time of one side or of the other."""

from __future__ import annotations

from hypothesis import strategies as st
from tests.analysis.rules.forms import FRAMES, LINKS

EITHER = [
    "coalesce(x.ts, o.at)",
    "coalesce(x.ts, o.at)",
    "coalesce(o.at, x.ts)",
    "coalesce(cast(x.ts AS date), cast(o.at AS date))",
    "greatest(x.ts, o.at)",
    "CASE WHEN x.ts IS NULL THEN o.at ELSE x.ts END",
    "CASE WHEN o.at IS NOT NULL THEN o.at ELSE x.ts END",
    "x.ts",
    "o.at",
]
"""Good and bad times of a row of ``x FULL JOIN o``."""


@st.composite
def either(draw: st.DrawFn, inner: str, other: str) -> str:
    """Rows of ``inner`` and ``other``, which are FROM clauses that yield x; each may be missing."""
    kind = draw(st.sampled_from(["FULL JOIN"] * 4 + ["LEFT JOIN", "RIGHT JOIN"]))
    time = draw(st.sampled_from(EITHER))
    if draw(st.integers(0, 4)) == 0:
        right = f"(SELECT x.id AS nr, x.who AS by, x.ts, x.code AS at FROM {other}) AS o"
        rows, time = (
            f"{inner} {kind} {right} USING (ts)",
            draw(st.sampled_from(["ts", "ts", "o.ts"])),
        )
    else:
        right = f"(SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {other}) AS o"
        rows = f"{inner} {kind} {right} ON {draw(st.sampled_from(LINKS))}"
        rows, time = draw(_joined_again(rows, time))
    rows += f" WHERE {draw(st.sampled_from(['true', 'true', 'true', 'o.nr > 3', 'x.id > 3']))}"
    form = draw(st.integers(0, 4))
    if form == 0:
        items = "count(*) AS id, min(x.who) AS who, min(o.by) AS code"
        return f"SELECT {items}, {time} AS ts FROM {rows} GROUP BY {time}"
    who = "coalesce(x.who, o.by)"
    number = "coalesce(x.id, o.nr)"
    if form == 1:
        by = draw(st.sampled_from([time, "x.ts", f"cast({time} AS date)"]))
        over = f"PARTITION BY {by}"
        if draw(st.booleans()):
            over = f"ORDER BY cast({by} AS timestamp) RANGE BETWEEN {draw(st.sampled_from(FRAMES))}"
        number = f"cast(count(*) OVER ({over}) AS int)"
    return f"SELECT {number} AS id, {who} AS who, {time} AS ts, x.code FROM {rows}"


@st.composite
def _joined_again(draw: st.DrawFn, rows: str, time: str) -> tuple[str, str]:
    """The same with one more join, perhaps, and the time that its rows have then."""
    if draw(st.integers(0, 2)):
        return rows, time
    kind = draw(st.sampled_from(["FULL JOIN", "FULL JOIN", "LEFT JOIN", "RIGHT JOIN", "JOIN"]))
    near = draw(st.sampled_from([time, time, "x.ts", "o.at"]))
    link = draw(st.sampled_from(LINKS)).replace("o.at", "l.at").replace("o.by", "l.by")
    link = link.replace("x.ts", near)
    rows += f" {kind} (SELECT id AS nr, who AS by, ts AS at FROM orders) AS l ON {link}"
    return rows, draw(st.sampled_from([f"coalesce({time}, l.at)", time, "l.at"]))


GUARDS = [
    "{apart} <= INTERVAL '30' HOUR",
    "{apart} < INTERVAL '3' HOUR AND x.id > 2",
    "{time} >= {own} - INTERVAL '30' HOUR",
    "{time} IS NULL OR {apart} > INTERVAL '30' HOUR",
    "{apart} > INTERVAL '30' HOUR OR {value} <> x.code",
    "{apart} > INTERVAL '1' HOUR OR {value} IS NULL",
    "{value} = x.code AND {apart} <= INTERVAL '5' HOUR",
    "{value} IS NOT NULL",
]
"""What is asked of the row before or after: good and bad guards of its other columns."""
SHOWN = [
    "CASE WHEN {guard} THEN {value} END",
    "CASE WHEN {guard} THEN 'no' ELSE {value} END",
    "CASE WHEN {guard} THEN concat({value}, x.code) ELSE x.code END",
    "CASE WHEN NOT ({guard}) THEN coalesce({value}, 'none') ELSE 'far' END",
    "coalesce(CASE WHEN {guard} THEN {value} END, 'none')",
    "CASE WHEN {guard} THEN 'a' ELSE 'b' END",
]


@st.composite
def guarded(draw: st.DrawFn, inner: str) -> str:
    """A column of the row before or after, shown where that row is near, or is not."""
    word = draw(st.sampled_from(["lag", "lag", "lead"]))
    own = "cast(x.ts AS timestamp)"
    ties = "x.ts, x.id"
    orders = [f"{own}, {ties}", f"{own}, {ties}", f"{ties}, {own}", f"{own} DESC, {ties}"]
    order = draw(st.sampled_from(orders))
    offset = draw(st.sampled_from(["", "", "", ", 2"]))
    other = draw(st.sampled_from([offset, offset, offset, ", 1"]))
    over = f"OVER (PARTITION BY x.who ORDER BY {order})"
    time, value = f"{word}({own}{offset}) {over}", f"{word}(x.code{other}) {over}"
    before, later = (own, "{time}") if (word == "lag") != ("DESC" in order) else ("{time}", own)
    parts = {"time": time, "value": value, "own": own}
    outside = draw(st.booleans())
    if outside:
        parts = {"time": "x.t", "value": "x.v", "own": "x.own"}
    parts["apart"] = f"{before} - {later}".format(**parts)
    if outside:
        parts["apart"] = parts["apart"].replace(own, "x.own")
    guard = draw(st.sampled_from(GUARDS)).format(**parts)
    shown = draw(st.sampled_from(SHOWN)).format(guard=guard, **parts)
    if not outside:
        return f"SELECT x.id, x.who, x.ts, {shown} AS code FROM {inner}"
    items = f"x.id, x.who, x.ts, x.code, {own} AS own, {time} AS t, {value} AS v"
    where = draw(st.sampled_from(["true", "true", guard]))
    code = draw(st.sampled_from([shown, shown, "x.v"]))
    rows = f"(SELECT {items} FROM {inner}) AS x WHERE {where}"
    return f"SELECT x.id, x.who, x.ts, {code} AS code FROM {rows}"
