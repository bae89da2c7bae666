"""Rows as bars and shades: never too wide, whole numbers kept, whatever the values are."""

from __future__ import annotations

import re
from collections.abc import Sequence
from textwrap import dedent

from hypothesis import example, given
from hypothesis import strategies as st

from infold.core.interval import DAY, HOUR, Granularity, parse_instant_text
from infold.core.report import OverTime, Point, RowByRow, Series
from infold.render.pictures.look import Look
from infold.render.pictures.plot import HEIGHT, plot_screen

FIRST = parse_instant_text("2024-03-01")


def days(*values: float | tuple[float, float] | None) -> tuple[Point, ...]:
    """A point for each day from the first of March on; None: no value."""
    found = []
    for at, value in enumerate(values):
        if value is not None:
            low, high = value if isinstance(value, tuple) else (value, value)
            found.append(Point(Granularity.DAY.cell(FIRST + at * DAY), low, high))
    return tuple(found)


def drawn(series: Sequence[Series], width: int = 40, *, plain: bool = False, by: str = "") -> str:
    """The pictures of a table, without colours."""
    found = OverTime("day", Granularity.DAY, tuple(series), by)
    return without_colours(plot_screen("daily", found, Look(width, plain=plain)))


def without_colours(text: str) -> str:
    """A text as it is read."""
    return re.sub(r"\x1b\[\d+m", "", text)


def picture(text: str) -> str:
    """An expected picture, which is indented here."""
    return dedent(text).strip("\n")


def test_bars_over_time() -> None:
    """A bar for each day; a day without a value has none, and one of 0 a foot."""
    assert drawn([Series("orders", days(1, 6, None, 3.4, 0))]) == picture(
        """
        daily by day, a column is a day

        orders: 0 to 6
                   6│    ██
                    │    ██
                    │    ██    ▄▄
                    │    ██    ██
                    │    ██    ██
                   0│ ██ ██    ██ ▁▁
                      March 2024
                      01 02 03 04 05
        """
    )


def test_negative_numbers_and_several_values() -> None:
    """Bars go down from zero, and are lighter where only some of several values reach."""
    balance = Series("balance", days(5, -3, (-2, 4), None, (1, 3), (-5, -1), 0))

    assert drawn([balance]) == picture(
        """
        daily by day, a column is a day

        balance: -5 to 5
                   5│ ██
                    │ ██    ░░    ░░
                   0│ ██    ░░    ▅▅    ▁▁
                    │    ██ ░░       ▀▀
                    │    ██          ░░
                  -5│                ░░
                      March 2024
                      01 02 03 04 05 06 07

          █ all values of a day reach here, ░
          some do
        """
    )


def test_groups_are_shades() -> None:
    """A line for each group; the legend says from which value on a shade counts."""
    groups = (("de", days(4, 3, None, 1)), ("a very long name of a country", days(0, 1)))

    assert drawn([Series("n", days(4, 3, 0, 1), groups=groups)], by="country") == picture(
        """
        daily by day, a column is a day, for
        each country

        n: 0 to 4
                         March 2024
                         01 02 03 04
          de             ██ ██    ▒▒
          a very long …  ░░ ▒▒
          ░ 0  ▒ 1  ▓ 2  █ 3 or more
        """
    )


def test_a_bar_for_each_row() -> None:
    """Rows without a time: negative numbers are left of zero, and NULL has no bar."""
    rows = RowByRow(
        "who",
        ("ann", "bob", "a very long name of somebody", "NULL"),
        (("n", (3.0, -1.0, None, 0.0)), ("big", (1e300, -1e300, 5e299, 1.0))),
        ("more",),
    )

    assert plot_screen("people", rows, Look(40), "4 rows drawn.") == picture(
        """
        people by who

        n
          ann                     3     ########
          bob                    -1  ###
          a very long ~        NULL
          NULL                    0

        big
          ann                1e+300        #####
          bob               -1e+300  ######
          a very long ~      5e+299        ##
          NULL                    1        #

        4 rows drawn.
        Not drawn: more (--columns).
        """
    )


def test_values_that_cannot_be_added() -> None:
    """The span from the lowest to the highest double is infinite, and is drawn all the same."""
    text = drawn([Series("huge", days(1.7e308, -1.7e308, 5e307))], plain=True)

    assert "1.7e+308| ##" in text
    assert "-1.7e+308|    ##" in text


def test_hours_are_days_where_they_are_many() -> None:
    """Numbers of rows add up then; of values the lowest and the highest are kept."""
    hours = tuple(
        Point(Granularity.HOUR.cell(FIRST + at * HOUR), at % 24, at % 24 + 1) for at in range(72)
    )
    series = (Series("rows", hours, adds_up=True), Series("v", hours))
    found = OverTime("at", Granularity.HOUR, series, left_out=3)

    text = plot_screen("t", found, Look(50))

    assert "a column is a day" in text
    assert f"rows: up to {sum(range(1, 25))} in a day" in text
    assert "v: 0 to 24" in text
    assert text.endswith("3 rows without a time.")


def test_few_hours_and_long_silences() -> None:
    """Labels are hours, a silence is one sign, and without values there is a sentence."""
    points = tuple(Point(Granularity.HOUR.cell(FIRST + at * HOUR), 1, 1) for at in (3, 4))
    text = plot_screen("t", OverTime("at", Granularity.HOUR, (Series("n", points),)), Look(60))
    late = (*days(3), Point(Granularity.DAY.cell(FIRST + 4000 * DAY), 5, 5))

    assert "a column is an hour" in text
    assert text.split("\n")[-2:] == ["              Fri 1 March 2024", "              03 04"]
    assert drawn([Series("n", late)]).split("\n")[8].startswith("           0│ ██ …  ██")
    assert "has no values with a time in day" in drawn([Series("n", ())], 80)
    assert "n: no values" in drawn([Series("n", ()), Series("m", days(1))])


numbers = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-9, 9).map(float)
values = st.none() | numbers | st.tuples(numbers, numbers).map(lambda two: (min(two), max(two)))


@given(st.lists(values, max_size=400), st.integers(40, 160), st.booleans())
@example(
    drawn_values=[0.0, *[None] * 3] * 4 + [None, 0.0], width=40, plain=False
)  # a month at the end
def test_no_picture_is_too_wide(drawn_values: list[float], width: int, plain: bool) -> None:
    """Whatever the values and the width are; a plain picture is ASCII."""
    points = days(*drawn_values)
    counts = days(*range(1, len(drawn_values)))
    groups = (("x" * 60, points), ("y", points[:3]))
    for text in (
        drawn([Series("n", points), Series("m", counts, adds_up=True)], width, plain=plain),
        drawn([Series("n", points, groups=groups)], width, plain=plain, by="who"),
    ):
        assert max(map(len, text.split("\n"))) <= width
        assert text.isascii() or not plain


@given(
    st.lists(st.tuples(st.text(max_size=50), numbers | st.none()), min_size=1, max_size=9),
    st.integers(40, 160),
)
def test_no_bar_is_too_wide(rows: list[tuple[str, float | None]], width: int) -> None:
    """Of rows without a time, with labels that may have line breaks."""
    labels, values = zip(*rows, strict=True)
    of = RowByRow("who", labels, (("n", values),))

    lines = without_colours(plot_screen("t", of, Look(width, plain=False))).split("\n")

    assert len(lines) == 3 + len(labels)
    assert max(map(len, lines)) <= width


@given(st.lists(st.integers(0, 50), min_size=1, max_size=12))
def test_a_bar_is_as_high_as_its_value(heights: list[int]) -> None:
    """In whole and parts of lines, of which the highest value has all."""
    lines = drawn([Series("n", days(*heights))], 60).split("\n")
    top = max(heights)
    bars = lines[3 : 3 + (HEIGHT if top else 1)]
    start = bars[0].index("│") + 2

    for at, height in enumerate(heights):
        column = "".join(line.ljust(start + 40)[start + at * 3] for line in bars)
        eighths = sum(" ▁▂▃▄▅▆▇█".index(sign) for sign in column)
        exact = height / top * HEIGHT * 8 if top else 0
        assert abs(eighths - exact) <= 1
