"""How calls change the shape of the one value that they are a function of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from sqlglot import exp

from infold.analysis.times.distances import moved_by
from infold.analysis.times.durations import (
    TIMES,
    epoch_number_of,
    interval_length,
    is_text_of_seconds,
    length_of_units,
    negate_span,
    number_of,
    range_of,
    zone_offsets,
)
from infold.analysis.times.floors import (
    TimeFloor,
    change_of_bucket,
    floor_of,
    is_date,
    is_time_cast,
)
from infold.analysis.times.shape import Shape, Span, cell_lengths
from infold.core.interval import DAY, HOUR, MINUTE, SECOND, WEEK, Granularity

ShapeChange = tuple[exp.Expr, Callable[[Shape], Shape]]
"""The value, and how its shape changes."""


def shape_change(node: exp.Expr) -> ShapeChange | None:
    """How a call changes the shape of the one value that it is a function of."""
    floor = floor_of(node)
    if floor is not None and floor.unit is None and epoch_number_of(floor.inner) is not None:
        return _time_of_number(node)
    if floor is not None:
        unit = floor.unit
        if floor.inside and unit is not None:
            return floor.inner, lambda shape: shape.in_same_cell(unit)
        return floor.inner, lambda shape: shape.floor(unit)
    moved = moved_by(node)
    if moved is not None:
        return moved[0], lambda shape: shape.moved_by(moved[1])
    if isinstance(node, exp.AddMonths):
        span = length_of_units(node.expression, exp.Var(this="MONTH"))
        if span is None:
            return None
        return node.this, lambda shape: shape.floor(Granularity.DAY).moved_by(span)
    if isinstance(node, exp.NextDay):
        return _next_day(node)
    if isinstance(node, exp.LastDay) and not node.args.get("unit"):
        month_of = Granularity.MONTH
        return node.this, lambda shape: replace(shape.in_same_cell(month_of), grain=Granularity.DAY)
    return (
        change_of_bucket(node)
        or _in_zone(node)
        or _time_in_words(node)
        or _time_of_parts(node)
        or _time_of_number(node)
        or _moved_by_own_part(node)
    )


def _next_day(node: exp.NextDay) -> ShapeChange | None:
    """``next_day(d, 'SUNDAY')``: the first Sunday after a day, where the next week begins."""
    name = node.expression.name.upper() if isinstance(node.expression, exp.Literal) else ""
    if name in _FIRST_DAYS:
        week = _FIRST_DAYS[name]
        return node.this, lambda shape: shape.floor(week).moved_by((WEEK, WEEK))
    day = Granularity.DAY
    change = node.this, lambda shape: shape.floor(day).at_distance((DAY, WEEK), day)
    return change if name in _OTHER_DAYS else None


def _day_names(day: str) -> tuple[str, ...]:
    """The names that next_day knows of a day, in capitals."""
    return day, day[:3], day[:2]


_FIRST_DAYS = dict.fromkeys(_day_names("SUNDAY"), Granularity.SUNDAY_WEEK) | dict.fromkeys(
    _day_names("MONDAY"), Granularity.WEEK
)
_OTHER_DAYS = frozenset(
    name
    for day in ("TUESDAY", "WEDNESDAY", "THURSDAY", "FRIDAY", "SATURDAY")
    for name in _day_names(day)
)


def _time_in_words(node: exp.Expr) -> ShapeChange | None:
    """A day as a text, ``2024-03-01``: it is equal, less and greater as the day is."""
    inner: exp.Expr | None = None
    if isinstance(node, exp.TimeToStr) and node.args["format"].name == _DAY:
        inner = node.this.this if isinstance(node.this, exp.TimeStrToTime) else node.this
    elif isinstance(node, exp.Cast) and node.to.this in _TEXTS:
        inner = node.this if is_date(node.this.unnest()) else None
    else:
        text, length = _first_letters(node)
        if length == _LETTERS and isinstance(text, exp.Cast) and text.to.this in _TEXTS:
            inner = text.this
    return None if inner is None else (inner, lambda shape: shape.floor(Granularity.DAY))


def _first_letters(node: exp.Expr) -> tuple[exp.Expr | None, float | None]:
    """A text and how many of its first letters are used."""
    if isinstance(node, exp.Left):
        return node.this.unnest(), number_of(node.expression)
    if isinstance(node, exp.Substring) and number_of(node.args.get("start")) == 1:
        return node.this.unnest(), number_of(node.args.get("length"))
    return None, None


_DAY = "%Y-%mstrict-%dstrict"
"""How the parser writes the format yyyy-MM-dd."""
_LETTERS = len("2024-03-01")
_TEXTS = (exp.DType.TEXT, exp.DType.VARCHAR)


def _time_of_parts(node: exp.Expr) -> ShapeChange | None:
    """``make_date(year(ts), month(ts), 1)``: a time put together of its own parts."""
    if isinstance(node, exp.Anonymous) and node.name.lower() == "make_date":
        parts: list[exp.Expr | None] = list(node.expressions)
    elif isinstance(node, exp.TimestampFromParts) and not node.args.get("zone"):
        parts = [node.args.get(key) for key in ("year", "month", "day", "hour", "min", "sec")]
    else:
        return None
    times: list[exp.Expr] = []
    for part, (kinds, first) in zip(parts, _PARTS, strict=False):
        if isinstance(part, kinds):
            if len(times) < parts.index(part):
                return None  # a finer part than one that is left out
            inner = part.this
            times.append(inner.this if isinstance(inner, exp.TsOrDsToDate) else inner)
        elif part is None or number_of(part) != first:
            return None
    if not times or any(time != times[0] for time in times) or len(times) > len(_UNITS):
        return None
    unit = _UNITS[len(times) - 1]
    return times[0], lambda shape: shape.floor(unit)


_PARTS: tuple[tuple[tuple[type[exp.Expr], ...], int], ...] = (
    ((exp.Year,), 1970),
    ((exp.Month,), 1),
    ((exp.Day, exp.DayOfMonth), 1),
    ((exp.Hour,), 0),
    ((exp.Minute,), 0),
    ((exp.Second,), 0),
)
_UNITS = (Granularity.YEAR, Granularity.MONTH, Granularity.DAY, Granularity.HOUR)


def _time_of_number(node: exp.Expr) -> ShapeChange | None:
    """A time made of a number that counts since 1970, by a call, a cast, or a cast of its text."""
    if isinstance(node, exp.Anonymous) and node.name.lower() in TIMES and node.expressions:
        scale, inner = TIMES[node.name.lower()], node.expressions[0]
    elif is_time_cast(node) or (is_text_of_seconds(node) and _is_cast_to_time(node)):
        scale, inner = SECOND, node.this
    else:
        return None
    number = epoch_number_of(inner)
    if number is None or number.unit_length != scale:
        return None
    span, cell = (number.low, number.high), number.cell
    if cell is not None and span != (0, 0):
        return number.time, lambda shape: shape.in_same_cell(cell)
    return number.time, lambda shape: shape.moved_by(span)


def _is_cast_to_time(text: exp.Expr) -> bool:
    """Whether a text is made a time or a date, so that it is compared as one."""
    return text.parent is not None and floor_of(text.parent) is not None


def _moved_by_own_part(node: exp.Expr) -> ShapeChange | None:
    """A time moved by a number that is made of the same column: NULL where that one is."""
    amount, unit, inner = _amount_moved(node)
    span = range_of(amount) if amount is not None else None
    if amount is None or inner is None or unit is None or span is None:
        return None
    columns = [*amount.find_all(exp.Column), *inner.find_all(exp.Column)]
    if any(column != columns[0] for column in columns):
        return None
    by = span[0] * unit, span[1] * unit
    floor = floor_of(inner)
    if floor is not None and floor.unit is not None and not floor.inside:
        start = _started_by(amount, floor) if unit == DAY else None
        if start is not None:
            return floor.inner, lambda shape: shape.floor(start)
        cell = floor.unit
        if by[0] >= 0 and by[1] < cell_lengths(cell)[0]:
            return floor.inner, lambda shape: shape.in_same_cell(cell)
    return inner, lambda shape: shape.moved_by(by)


def _amount_moved(node: exp.Expr) -> tuple[exp.Expr | None, int | None, exp.Expr | None]:
    """How far a time is moved: a number, its unit, and the time."""
    if isinstance(node, exp.TsOrDsAdd) and str(node.args.get("unit", "DAY")).upper() == "DAY":
        return node.expression, DAY, node.this
    if isinstance(node, exp.Add) and isinstance(node.expression, exp.MakeInterval):
        parts = {key: value for key, value in node.expression.args.items() if value is not None}
        moving = [key for key, value in parts.items() if number_of(value) != 0]
        if len(moving) == 1 and moving[0] in _SIZES:
            return parts[moving[0]], _SIZES[moving[0]], node.this
    return None, None, None


_SIZES = {"day": DAY, "hour": HOUR, "minute": MINUTE}


def _started_by(amount: exp.Expr, floor: TimeFloor) -> Granularity | None:
    """What a day begins that is moved back by its own place: ``date_sub(d, weekday(d))``."""
    if floor.unit is not Granularity.DAY:
        return None
    text = amount.sql("spark")
    for place, unit in _PLACES:
        for call in amount.find_all(exp.Anonymous, exp.DayOfWeek, exp.Day, exp.DayOfMonth):
            if text in [form.format(call.sql("spark")) for form in place] and _is_place_in(
                call, unit
            ):
                return unit
    return None


_PLACES = (
    (("{} * -1",), Granularity.WEEK),
    (("1 - {}", "({} - 1) * -1"), Granularity.SUNDAY_WEEK),
    (("1 - {}", "({} - 1) * -1"), Granularity.MONTH),
)


def _is_place_in(call: exp.Expr, unit: Granularity) -> bool:
    """Whether a call says the place of a day in a unit."""
    if unit is Granularity.WEEK:
        return isinstance(call, exp.Anonymous) and call.name.lower() == "weekday"
    if unit is Granularity.SUNDAY_WEEK:
        return isinstance(call, exp.DayOfWeek)
    return isinstance(call, (exp.Day, exp.DayOfMonth))


def _in_zone(node: exp.Expr) -> ShapeChange | None:
    """A time on the clocks of a zone."""
    ahead: Span | None = None
    inner: exp.Expr | None = None
    if isinstance(node, (exp.AtTimeZone, exp.FromTimeZone)):
        zone = node.args.get("zone")
        if isinstance(zone, exp.Literal):
            ahead = zone_offsets(zone.name)
            ahead = ahead if isinstance(node, exp.AtTimeZone) else negate_span(ahead)
            inner = node.this
    elif isinstance(node, exp.ConvertTimezone):
        source, target = node.args.get("source_tz"), node.args.get("target_tz")
        source_offsets = zone_offsets(source.name) if isinstance(source, exp.Literal) else None
        if source is None:
            source_offsets = 0, 0  # the session's own zone
        target_offsets = zone_offsets(target.name) if isinstance(target, exp.Literal) else None
        if source_offsets is not None and target_offsets is not None:
            ahead = target_offsets[0] - source_offsets[1], target_offsets[1] - source_offsets[0]
            inner = node.args.get("timestamp")
    if ahead is None or inner is None:
        return None
    span = ahead
    return inner, lambda shape: shape.moved_by(span)


# A shape that each of them has is the shape of the result. NULL is different: a CASE without ELSE
# is NULL for rows of any time, so it is none of these.


def possible_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values that a CASE or IF may have, NULL or not; None for any other expression."""
    if first_values(node) is not None:
        return None
    if isinstance(node, exp.If):
        return _two_values(node.args.get("true"), node.args.get("false"))
    if isinstance(node, exp.Case):
        results = [branch.args["true"] for branch in node.args["ifs"]]
        last = node.args.get("default")
        return None if last is None else [*results, last]
    return None


def coalesced_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of an expression that is one of them that is not NULL, if there is any."""
    if isinstance(node, (exp.Greatest, exp.Least)):
        return [node.this, *node.expressions]
    return first_values(node)


def first_values(node: exp.Expr) -> list[exp.Expr] | None:
    """The values of an expression that is the first of them that is not NULL."""
    node = node.unnest()
    if isinstance(node, exp.Coalesce):
        return [node.this, *node.expressions]
    branch: exp.Expr | None = node if isinstance(node, exp.If) else None
    last = node.args.get("false")
    if isinstance(node, exp.Case) and len(node.args["ifs"]) == 1 and node.args.get("this") is None:
        branch, last = node.args["ifs"][0], node.args.get("default")
    condition = branch.this.unnest() if branch is not None else None
    is_negated = isinstance(condition, exp.Not)
    null_test = condition.this.unnest() if isinstance(condition, exp.Not) else condition
    if branch is None or last is None or not isinstance(null_test, exp.Is):
        return None
    first, second = (branch.args["true"], last) if is_negated else (last, branch.args["true"])
    plain = isinstance(null_test.expression, exp.Null) and isinstance(first, exp.Column)
    return [first, second] if plain and first == null_test.this.unnest() else None


def exploded_values(node: exp.Expr) -> list[exp.Expr] | None:
    """What the elements of an exploded list lie between, or are."""
    if not isinstance(node, exp.Explode) or type(node) is not exp.Explode or node.expressions:
        return None
    inner = node.this.unnest()
    if isinstance(inner, exp.GenerateSeries) and _is_by_days(inner.args.get("step")):
        return _two_values(inner.args.get("start"), inner.args.get("end"))
    return list(inner.expressions) if isinstance(inner, exp.Array) and inner.expressions else None


def _two_values(first: object, second: object) -> list[exp.Expr] | None:
    if isinstance(first, exp.Expr) and isinstance(second, exp.Expr):
        return [first, second]
    return None


def _is_by_days(step: object) -> bool:
    """Whether each element is as whole as the first: days after days."""
    if step is None:
        return True
    span = interval_length(step) if isinstance(step, exp.Expr) else None
    return span is not None and span[0] == span[1] and span[0] > 0 and span[0] % DAY == 0
