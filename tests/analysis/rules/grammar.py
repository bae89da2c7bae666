# ruff: noqa: E501 (one form is one line)
"""
A grammar of drawn queries, good and bad.

A rule has forms, on lines of their own or between slashes; ``3× form`` is drawn three times as
often. ``{name}`` in a form is a form of that rule, the same one wherever it stands there, and
``{name1}`` and ``{name2}`` are two; ``{name|old→new}`` has other words in it. ``NAME := form`` is
drawn once for all that is inside of the rule, ``«a / b»`` is one of several, and ∅ is nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from hypothesis import strategies as st

FORMS = """
time:
  2× ts / 2× cast(ts AS date) / date_trunc('hour', ts) / date_trunc('day', ts)
  date_trunc('week', ts) / date_trunc('month', ts) / ts + INTERVAL '1' DAY
  ts - INTERVAL '90' MINUTE / cast(ts + INTERVAL '5' HOUR AS date)
  cast(cast(ts AS date) - INTERVAL '7' DAY AS date)
  cast(date_trunc('month', ts) + INTERVAL '1' MONTH AS date)
  date_trunc('week', ts + INTERVAL '1' DAY) - INTERVAL '1' DAY
  CASE WHEN extract(hour FROM ts) < 6 THEN cast(ts AS date) - 1 ELSE cast(ts AS date) END
  greatest(cast(ts AS date), cast(ts - INTERVAL '2' HOUR AS date))
  coalesce(cast(ts AS date), DATE '2024-01-01')
parts:
  extract(year FROM ts), extract(month FROM ts)
  extract(year FROM ts), extract(month FROM ts), extract(day FROM ts)
  extract(year FROM ts) * 100 + extract(month FROM ts) / extract(month FROM ts)
frame: 3× {bounded} / UNBOUNDED PRECEDING AND CURRENT ROW
bounded:
  INTERVAL '36' HOUR PRECEDING AND CURRENT ROW
  INTERVAL '48' HOUR PRECEDING AND INTERVAL '1' HOUR PRECEDING
  CURRENT ROW AND INTERVAL '1' DAY FOLLOWING
link:
  4× {near} / o.at >= cast(x.ts AS date) AND o.at < cast(x.ts AS date) + INTERVAL '1' DAY
  o.at - x.ts <= INTERVAL '1' DAY AND o.at >= x.ts / o.at >= cast(x.ts AS date) AND o.at <= x.ts
  o.at <= x.ts / o.by = x.who
near:
  o.at BETWEEN x.ts - INTERVAL '1' DAY AND x.ts / cast(o.at AS date) = cast(x.ts AS date)
  cast(o.at AS date) = cast(x.ts AS date) - INTERVAL '1' DAY
  o.at > x.ts - INTERVAL '2' DAY AND x.ts + INTERVAL '3' HOUR > o.at AND o.by = x.who
table: 3× clicks / orders
named: {table} AS x
o: (SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {relation}) AS o
relation:
  4× {named} / (SELECT {all} FROM {relation} WHERE x.id % 3 <> 0) AS x
  (SELECT {all} FROM {relation} «2× JOIN / LEFT JOIN / RIGHT JOIN / FULL JOIN» places AS p ON x.code = p.code) AS x
  (SELECT c.id, c.who, c.ts, c.code FROM places AS p LEFT JOIN clicks AS c ON c.code = p.code) AS x
  (SELECT min(id) AS id, min(who) AS who, max(ts) AS ts, min(code) AS code FROM {relation} GROUP BY {group}) AS x
  (SELECT x.id, x.who, x.ts, x.who AS code FROM (SELECT count(*) AS id, who, {time} AS ts FROM {relation} GROUP BY 2, 3) AS x) AS x
  (SELECT cast(row_number() OVER (PARTITION BY {group|code→who} ORDER BY x.ts, x.id) AS int) AS id, x.who, x.ts, x.code FROM {relation}) AS x
  ({union}) AS x / (SELECT {distinct} AS d) AS x / 3× (SELECT {where}) AS x
  3× (SELECT {value} AS id, x.who, x.ts, x.code FROM {relation}) AS x
  2× ({daily}) AS x
  (SELECT cast(count(*) OVER («∅ / PARTITION BY x.who» ORDER BY cast(x.ts AS timestamp) «2× ∅ / DESC» RANGE BETWEEN {frame}) AS int) AS id, x.who, x.ts, x.code FROM {relation}) AS x
  3× (SELECT x.id, x.who, {joined}) AS x / (SELECT {gap}) AS x
  (WITH c AS (SELECT {all} FROM {relation}) SELECT x.id, x.who, x.ts, o.code FROM c AS x «JOIN / LEFT JOIN» c AS o ON {link|o.at→o.ts|o.by→o.who}) AS x
  («2× {optional_here} / {optional_there} / 3× {optional_further_out}») AS x / ({sides}) AS x
  ({calendar}) AS x / ({chained}) AS x
  (SELECT cast(«{window1} + {window2} / {window1} + {window2} + {window3}» AS int) AS id, x.who, x.ts, x.code FROM {relation}) AS x
  ({natural}) AS x / (SELECT cast(l.nr AS int) AS id, l.by AS who, {lateral}) AS x
  2× («3× {either_using} / 8× {either_on} / 4× {either_again}») AS x / ({guarded}) AS x
  (SELECT id, who, ts, code FROM clicks AS x ORDER BY ts, id LIMIT 4) AS x
all: x.id, x.who, x.ts, x.code
daily:
  A := x.day
  B := x.most
  SELECT x.id, x.most AS who, cast(x.day AS timestamp) AS ts, x.code FROM (SELECT «2× cast(x.ts AS date) / {time|ts→x.ts}» AS day, max(x.who) AS most, max(x.id) AS id, max(x.code) AS code FROM {relation} GROUP BY 1) AS x WHERE {asked}
group: who / who, {time} / {time} / code, {time} / 4× {parts}
union:
  3× SELECT {all} FROM {relation1} {set} SELECT {all} FROM {relation2}
  SELECT d.id, d.who, x.ts, d.code FROM (SELECT x.id, x.who, x.code FROM {relation1} {set} SELECT x.id, x.who, x.code FROM {relation2}) AS d JOIN {named} ON d.id = x.id
set: 2× UNION ALL / UNION / EXCEPT / INTERSECT
distinct:
  1 AS id, d.who FROM (SELECT DISTINCT x.who FROM {relation})
  1 AS id, d.who, d.ts, d.who AS code FROM (SELECT DISTINCT x.who, {time|ts→x.ts} AS ts FROM {relation})
where:
  4× {all} FROM {relation} WHERE {asked}
  CASE WHEN {asked} THEN 1 ELSE 0 END AS id, x.who, x.ts, x.code FROM {relation}
  {all} FROM {relation} WHERE NOT ({asked}) / {all} FROM {relation} WHERE ({asked} OR x.id < 3)
joined:
  2× {at} AS ts, x.code FROM {relation} JOIN {o} ON {link}
  2× {at} AS ts, x.code FROM {relation} JOIN {o} ON {link1} WHERE {link2}
  2× {at} AS ts, x.code FROM {relation} LEFT JOIN {o} ON {link}
  {at} AS ts, x.code FROM {relation} RIGHT JOIN {o} ON {link}
  x.ts, x.code FROM {relation} SEMI JOIN {o} ON {link}
  x.ts, x.code FROM {relation} ANTI JOIN {o} ON {link}
at: 2× x.ts / o.at
gap:
  C := cast(x.ts AS timestamp)
  2× CASE WHEN {C} - {row_before} <= INTERVAL '{hours}' HOUR THEN 0 ELSE x.id END AS id, x.who, x.ts, x.code FROM {relation}
  CASE WHEN cast({row_before} AS date) >= cast({C} AS date) - INTERVAL '1' DAY THEN 0 ELSE x.id END AS id, x.who, x.ts, x.code FROM {relation}
  CASE WHEN {row_after} - {C} <= INTERVAL '{hours}' HOUR THEN 0 ELSE x.id END AS id, x.who, x.ts, x.code FROM {relation}
  3× {all} FROM (SELECT {all}, {C} AS t, {beside} AS p FROM {relation}) AS x WHERE x.p >= x.t - INTERVAL '5' HOUR AND x.t >= x.p - INTERVAL '30' HOUR
beside: 2× {row_before} / {row_after}
row_before: lag({C}) OVER (PARTITION BY x.who ORDER BY {C})
row_after: lead({C}) OVER (PARTITION BY x.who ORDER BY {C})
hours: 1 / 30

optional_here:
  R := {optional_rows}
  K := o.at
  S := x.ts
  {optional_form}
optional_there:
  R := {optional_rows}
  K := x.ts
  S := o.at
  {optional_form}
optional_further_out:
  R := {optional_outer}
  K := x.key
  S := x.ts
  {optional_form}
optional_outer:
  2× (SELECT x.id, x.who, x.code, o.at AS key, x.ts AS ts FROM {optional_rows}) AS x
  (SELECT x.id, x.who, x.code, x.ts AS key, o.at AS ts FROM {optional_rows}) AS x
  (SELECT x.id, x.who, x.code, o.at AS key, x.ts AS ts FROM {optional_rows} UNION ALL SELECT x.id, x.who, x.code, o.at AS key, x.ts AS ts FROM {optional_rows}) AS x
optional_rows:
  {relation} «2× LEFT JOIN / RIGHT JOIN / FULL JOIN / JOIN» (SELECT x.id AS nr, x.who AS by, x.ts AS at FROM «2× orders AS x / {relation}») AS o ON «o.at = x.ts / o.at = x.ts AND o.nr = x.id / 3× {near}» WHERE «3× true / o.at IS NOT NULL / o.nr > x.id - 1»
optional_key: {K} / 6× {time|ts→{K}}
optional_shown: 3× {S} / {K}
optional_form:
  SELECT count(*) AS id, min(x.who) AS who, max({optional_shown}) AS ts, min(x.code) AS code FROM {R} GROUP BY {optional_key}
  SELECT count(*) AS id, min(x.who) AS who, {optional_key} AS ts, min(x.code) AS code FROM {R} GROUP BY 3
  SELECT cast(count(*) OVER (ORDER BY cast({optional_key} AS timestamp) RANGE BETWEEN {bounded}) AS int) AS id, x.who, {optional_shown} AS ts, x.code FROM {R}
  SELECT cast(count(*) OVER (PARTITION BY {optional_key}) AS int) AS id, x.who, {optional_shown} AS ts, x.code FROM {R}

sides:
  R := (SELECT {all}, cast({time1|ts→x.ts} AS timestamp) AS k FROM {relation1} UNION ALL SELECT {all}, cast({time2|ts→x.ts} AS timestamp) AS k FROM {relation2}) AS x
  SELECT cast(count(*) OVER (PARTITION BY x.k) AS int) AS id, x.who, x.ts, x.code FROM {R}
  SELECT cast(count(*) OVER (ORDER BY x.k RANGE BETWEEN INTERVAL '36' HOUR PRECEDING AND CURRENT ROW) AS int) AS id, x.who, x.ts, x.code FROM {R}
  2× SELECT count(*) AS id, min(x.who) AS who, max(x.ts) AS ts, min(x.code) AS code FROM {R} GROUP BY x.k
  2× SELECT x.id, x.who, x.ts, o.code FROM {R} JOIN orders AS o ON {near|o.at→o.ts|o.by→o.who|x.ts→x.k}

calendar:
  L := {link|x.ts→p.since|x.who→p.code}
  R := «places AS p LEFT JOIN {o} ON {L} / {o} RIGHT JOIN places AS p ON {L}»
  SELECT count(o.nr) AS id, min(p.place) AS who, p.since AS ts, max(o.by) AS code FROM {R} GROUP BY p.since
  SELECT o.nr AS id, p.place AS who, {at|x.ts→p.since} AS ts, p.code FROM {R}

chained:
  SELECT l.nr AS id, o.by AS who, «2× x.ts / o.at / l.at» AS ts, x.code FROM {relation} {chained_side1} {o} ON {link1} {chained_side2} (SELECT id AS nr, who AS by, ts AS at FROM orders) AS l ON {link2|o.at→l.at|o.by→l.by|x.ts→o.at|x.who→o.by}
chained_side: 2× LEFT JOIN / JOIN

window:
  2× count(*) OVER (ORDER BY cast(x.ts AS timestamp) RANGE BETWEEN {bounded})
  2× count(*) OVER (ORDER BY cast(x.ts AS timestamp) DESC RANGE BETWEEN {bounded})
  2× count(*) OVER (PARTITION BY {time|ts→x.ts})

natural:
  D := {time|ts→x.ts}
  SELECT «3× id, who, ts, code / id, who, day AS ts, code» FROM (SELECT {all}, {D} AS day FROM {relation1}) AS l NATURAL «2× ∅ / LEFT / RIGHT / FULL» JOIN ({natural_right}) AS r
natural_right:
  5× SELECT x.id AS nr, «2× x.ts / x.who, x.ts / {D} AS day / {D} AS day, x.who / x.who» FROM {relation}
  SELECT code, place AS nr FROM places

lateral:
  L := LATERAL (SELECT {lateral_items} FROM {other} WHERE {link}) AS l
  2× {lateral_at} AS ts, x.code FROM {relation}, {L}
  {lateral_at} AS ts, x.code FROM {relation} JOIN {L} ON true
  {lateral_at} AS ts, x.code FROM {relation} LEFT JOIN {L} ON true
lateral_at: 2× x.ts / l.at
lateral_items:
  o.nr, o.by, o.at / o.nr, x.who AS by, o.at / count(*) AS nr, max(o.by) AS by, max(o.at) AS at
  sum(o.nr) AS nr, min(o.by) AS by, min(o.at) AS at

other:
  4× (SELECT id AS nr, who AS by, ts AS at FROM {table}) AS o
  (SELECT r.id AS nr, r.who AS by, l.ts AS at FROM clicks AS r LEFT JOIN orders AS l ON l.ts = r.ts AND l.id = r.id) AS o
  3× {o}
A: x.ts
B: x.who
own_link: {link|x.ts→{A}|x.who→{B}}
asked: 5× {asked_in} / 2× EXISTS ({subquery}) / NOT EXISTS ({subquery})
asked_in:
  {A} IN (SELECT o.at FROM {other})
  cast({A} AS date) IN (SELECT cast(o.at AS date) FROM {other} WHERE o.nr > x.id)
  {A} - INTERVAL '1' DAY IN (SELECT cast(o.at AS date) FROM {other})
  ({B}, cast({A} AS date)) IN (SELECT max(o.by), cast(o.at AS date) FROM {other} GROUP BY 2)
  {B} IN (SELECT o.by FROM {other} WHERE {own_link})
  {B} NOT IN (SELECT o.by FROM {other} WHERE {own_link} AND o.nr < 9)
  ({B}, cast({A} AS date)) NOT IN (SELECT o.by, cast(o.at AS date) FROM {other})
  {A} NOT IN (SELECT o.at FROM {other}) / x.code IN (SELECT code FROM places)
  x.id = (SELECT max(id) FROM clicks)
subquery:
  SELECT 1 FROM {other} WHERE {own_link} / SELECT 1 FROM {other} WHERE {own_link} AND o.nr > x.id
  SELECT 1 FROM {other} WHERE o.by = {B} AND {own_link} GROUP BY o.by HAVING count(*) > 1
  SELECT DISTINCT o.by FROM {other} JOIN places AS p ON true WHERE p.code = x.code AND {own_link}
  SELECT 1 FROM {other} WHERE {own_link} AND NOT EXISTS (SELECT 1 FROM orders WHERE ts = o.at)
  SELECT 1 FROM places AS p WHERE p.since «= / <= / BETWEEN {A} - INTERVAL '36' HOUR AND» {A} AND EXISTS (SELECT 1 FROM {other} WHERE {link|x.ts→p.since|x.who→p.code})
value:
  cast((SELECT count(*) FROM {other} WHERE {link}) AS int)
  cast((SELECT sum(o.nr) FROM {other} WHERE {link} AND o.by = x.who) AS int)
  cast(coalesce((SELECT max(o.nr) FROM {other} WHERE {link}), x.id) AS int)
  cast((SELECT count(DISTINCT o.by) FROM {other} WHERE o.by <> x.who AND {link}) AS int)
  cast((SELECT max(o.nr) FROM {other}) AS int)

either_using:
  T := «2× ts / o.ts»
  R := {relation1} {either_side} (SELECT x.id AS nr, x.who AS by, x.ts, x.code AS at FROM {relation2}) AS o USING (ts)
  {either_form}
either_on:
  T := {either_time}
  R := {either_rows}
  {either_form}
either_again:
  O := {either_time}
  R := {either_rows} «2× FULL JOIN / LEFT JOIN / RIGHT JOIN / JOIN» (SELECT id AS nr, who AS by, ts AS at FROM orders) AS l ON {link|o.at→l.at|o.by→l.by|x.ts→«2× {O} / x.ts / o.at»}
  T := «coalesce({O}, l.at) / {O} / l.at»
  {either_form}
either_rows:
  {relation1} {either_side} (SELECT x.id AS nr, x.who AS by, x.ts AS at FROM {relation2}) AS o ON {link}
either_side: 4× FULL JOIN / LEFT JOIN / RIGHT JOIN
either_time:
  2× coalesce(x.ts, o.at) / coalesce(o.at, x.ts) / coalesce(cast(x.ts AS date), cast(o.at AS date))
  greatest(x.ts, o.at) / CASE WHEN x.ts IS NULL THEN o.at ELSE x.ts END
  CASE WHEN o.at IS NOT NULL THEN o.at ELSE x.ts END / x.ts / o.at
either_where: 3× true / o.nr > 3 / x.id > 3
either_form:
  SELECT count(*) AS id, min(x.who) AS who, min(o.by) AS code, {T} AS ts FROM {R} WHERE {either_where} GROUP BY {T}
  4× SELECT {either_number} AS id, coalesce(x.who, o.by) AS who, {T} AS ts, x.code FROM {R} WHERE {either_where}
either_number:
  6× coalesce(x.id, o.nr) / cast(count(*) OVER (PARTITION BY {either_key}) AS int)
  cast(count(*) OVER (ORDER BY cast({either_key} AS timestamp) RANGE BETWEEN {frame}) AS int)
either_key: {T} / x.ts / cast({T} AS date)

guarded:
  C := cast(x.ts AS timestamp)
  4× {guarded_lag} / {guarded_lag_backwards} / 2× {guarded_lead} / {guarded_lead_backwards}
guarded_lag:
  W := lag
  O := {guarded_order}
  A := {own} - {before}
  {guarded_form}
guarded_lead:
  W := lead
  O := {guarded_order}
  A := {before} - {own}
  {guarded_form}
guarded_lag_backwards:
  W := lag
  O := {C} DESC, x.ts, x.id
  A := {before} - {own}
  {guarded_form}
guarded_lead_backwards:
  W := lead
  O := {C} DESC, x.ts, x.id
  A := {own} - {before}
  {guarded_form}
guarded_order: 2× {C}, x.ts, x.id / x.ts, x.id, {C}
own: §own
before: §time
guarded_form:
  N := «3× ∅ / , 2»
  M := «3× {N} / , 1»
  T := {W}({C}{N}) OVER (PARTITION BY x.who ORDER BY {O})
  V := {W}(x.code{M}) OVER (PARTITION BY x.who ORDER BY {O})
  Q := {guard}
  SELECT x.id, x.who, x.ts, {shown|§own→{C}|§time→{T}|§value→{V}} AS code FROM {named}
  SELECT x.id, x.who, x.ts, {guarded_code|§own→x.own|§time→x.t|§value→x.v} AS code FROM (SELECT {all}, {C} AS own, {T} AS t, {V} AS v FROM {named}) AS x WHERE {guarded_where|§own→x.own|§time→x.t|§value→x.v}
guarded_code: 2× {shown} / §value
guarded_where: 2× true / {Q}
guard:
  {A} <= INTERVAL '30' HOUR / {A} < INTERVAL '3' HOUR AND x.id > 2
  §time >= §own - INTERVAL '30' HOUR / §time IS NULL OR {A} > INTERVAL '30' HOUR
  {A} > INTERVAL '30' HOUR OR §value <> x.code / {A} > INTERVAL '1' HOUR OR §value IS NULL
  §value = x.code AND {A} <= INTERVAL '5' HOUR / §value IS NOT NULL
shown:
  CASE WHEN {Q} THEN §value END / CASE WHEN {Q} THEN 'no' ELSE §value END
  CASE WHEN {Q} THEN concat(§value, x.code) ELSE x.code END
  CASE WHEN NOT ({Q}) THEN coalesce(§value, 'none') ELSE 'far' END
  coalesce(CASE WHEN {Q} THEN §value END, 'none') / CASE WHEN {Q} THEN 'a' ELSE 'b' END

query:
  7× SELECT {time} AS part, «2× x.id / x.who / x.code» AS n FROM {relation}
  7× SELECT {time} AS part, «count(*) / 2× sum(x.id) / max(x.code)» AS n FROM {relation} GROUP BY 1 «∅ / HAVING count(*) > 1»
bare:
  SELECT cast(x.ts AS date) AS part, {value} AS n FROM clicks AS x
  SELECT cast(x.ts AS date) AS part, x.id AS n FROM clicks AS x WHERE «2× ∅ / NOT» ({asked})
"""
_PLACE = re.compile(r"\{(\w+?)(\d?)((?:\|[^{}|]*)*)\}")


class Rule(NamedTuple):
    """What is drawn first, and the forms, some of them repeated."""

    first: dict[str, str]
    forms: list[str]


def _forms(text: str) -> list[str]:
    """Those of a line, or of a choice within one."""
    found = []
    for form in filter(None, re.split(r" / (?![^«]*»)", text.strip())):
        times = re.match(r"(\d)× ", form)
        found += [form[times.end() if times else 0 :]] * int(times[1] if times else 1)
    return found


def _rules() -> Mapping[str, Rule]:
    found: dict[str, Rule] = {}
    rule = Rule({}, [])
    for line in FORMS.splitlines():
        if line[:1].strip():
            name, _, line = line.partition(":")
            rule = found[name] = Rule({}, [])
        local, is_local, text = line.strip().partition(" := ")
        if is_local:
            rule.first[local] = text
        else:
            rule.forms.extend(_forms(line))
    return found


RULES = _rules()


@st.composite
def drawn(draw: st.DrawFn, name: str, depth: int = 2) -> str:
    """A form of a rule, in which relations lie so deep in each other."""
    return _drawn(draw, name, depth, {})


def _drawn(draw: st.DrawFn, name: str, depth: int, known: Mapping[str, str]) -> str:
    if name in known:
        return known[name]
    if name == "relation":  # it knows nothing of what is around it
        name, depth, known = ("relation" if depth else "named"), max(0, depth - 1), {}
    rule, scope = RULES[name], dict(known)
    for local, text in rule.first.items():
        scope[local] = _filled(draw, text, depth, scope)
    return _filled(draw, draw(st.sampled_from(rule.forms)), depth, scope)


def _filled(draw: st.DrawFn, text: str, depth: int, known: Mapping[str, str]) -> str:
    while choice := re.search("«(.*?)»", text):
        chosen = draw(st.sampled_from(_forms(choice[1])))
        text = text[: choice.start()] + chosen + text[choice.end() :]
    seen, text = dict[str, str](), text.replace("∅", "")
    while place := _PLACE.search(text):  # the innermost ones first
        name, number, words = place.groups()
        if name + number not in seen:
            seen[name + number] = _drawn(draw, name, depth, known)
        found = seen[name + number]
        for pair in words.split("|")[1:]:
            found = found.replace(*pair.split("→"))
        text = text[: place.start()] + found + text[place.end() :]
    return text
