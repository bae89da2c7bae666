"""Lines: joined where values are known, at the height of their value, whatever the values are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from tests.render.pictures.test_plot import days, picture, without_colours

from infold.core.interval import DAY, Granularity, parse_instant_text
from infold.core.report import OverTime, Point, Series
from infold.render.pictures.look import Look
from infold.render.pictures.plot import Scale, line_texts, plot_screen, scale_of

FIRST = parse_instant_text("2024-03-01")
NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def drawn(*series: Series, width: int = 44, plain: bool = False, by: str = "") -> str:
    """The lines of a table, without colours."""
    found = OverTime("day", Granularity.DAY, series, by)
    return without_colours(plot_screen("daily", found, Look(width, plain=plain), as_lines=True))


def test_a_line_begins_at_the_lowest_value() -> None:
    """A change of a few in a thousand is seen; a day without a value is none of the line."""
    price = Series("price", days(1000, 1002, 1005, 1003, None, 1004, 1001, 1000))

    assert drawn(price) == picture(
        """
        daily by day, a column is a day

        price: 1,000 to 1,005
               1,005│        ⡜⢆
                    │       ⡜  ⠣⡀     ⠰⡀
                    │      ⡰⠁   ⠑      ⠱⡀
                    │     ⡰⠁            ⠱⡀
                    │    ⡔⠁              ⠱⡀
               1,000│  ⢀⠎                 ⠈⠑⢄
                      March 2024
                      01 02 03 04 05 06 07 08
        """
    )


def test_two_lines_where_a_column_has_several_values() -> None:
    """The lowest and the highest, in ASCII too."""
    wait = Series("wait", days((0, 10), (5, 10), (5, 5)))

    assert drawn(wait, plain=True) == picture(
        """
        daily by day, a column is a day

        wait: 0 to 10
                  10|  '''|_
                    |      |_
                    |       |_
                    |    _|'''
                    |   _|
                   0|  |'
                      March 2024
                      01 02 03

          Where there are two lines: the lowest and
          the highest value of a day
        """
    )


def test_groups_have_one_scale() -> None:
    """A line for each group, one below the other."""
    one, two = days(0, 10, 0), days(5, 5, 5)
    orders = Series("orders", (*one, *two), groups=(("DE", one), ("AT", two)))

    assert drawn(orders, by="country", plain=True) == picture(
        """
        daily by day, a column is a day, for each
        country

        orders: 0 to 10
          DE
                  10|    _|_
                    |   _| '|
                   0|  |'   '|
          AT
                  10|
                    |  -------
                   0|
                      March 2024
                      01 02 03
        """
    )


def test_a_silence_is_no_line() -> None:
    """Years without anything are one sign, and nothing goes over it."""
    late = Point(Granularity.DAY.cell(FIRST + 1000 * DAY), 3, 3)

    assert drawn(Series("orders", (*days(1, 2), late))) == picture(
        """
        daily by day, a column is a day

        orders: 1 to 3
                   3│           ⠈
                    │
                    │     ⢀
                    │    ⢠⠊
                    │   ⢠⠊
                   1│  ⢠⠊   …
                      Mar 2024 November 2026
                      01 02    26
        """
    )
    # one value is one line of text: there is no scale from a value to itself
    assert drawn(Series("orders", days(5, 5))).splitlines()[3] == "           5│  ⢀⣀⣀⣀"


@given(
    st.lists(st.none() | st.tuples(NUMBERS, NUMBERS), min_size=1, max_size=30),
    st.sampled_from([1, 3]),
    st.booleans(),
)
def test_every_value_is_at_its_height(
    values: list[tuple[float, float] | None], step: int, plain: bool
) -> None:
    """In the middle of its column, between the values at the ends of the scale."""
    columns = [None if one is None else (min(one), max(one)) for one in values]
    if all(one is None for one in columns):
        return
    scale = scale_of(columns, 6)
    cells = [Granularity.DAY.cell(FIRST + at * DAY) for at in range(len(columns))]

    texts = line_texts(columns, cells, step, scale, Look(plain=plain))

    assert len(texts) == scale.height
    assert {len(text) for text in texts} == {len(columns) * step}
    for at, one in enumerate(columns):
        middle = at * step + step // 2
        for value in one or ():
            line = _line_of(value, scale, 3 if plain else 4)
            assert texts[scale.height - 1 - line][middle] != " "


def _line_of(value: float, scale: Scale, dots: int) -> int:
    """Which line of text a value is in, counted from below."""
    span = scale.high / 2 - scale.low / 2
    share = (value / 2 - scale.low / 2) / span if span else 0
    return round(share * (scale.height * dots - 1)) // dots
