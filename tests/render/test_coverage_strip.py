"""Coverage strips are drawn as expected, and never wider than allowed."""

from __future__ import annotations

from dataclasses import replace
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.planning.strips import DAILY, day, project

from infold.core.interval import DAY, EVER, HOUR, Granularity, Interval, Ranges, parse_instant_text
from infold.core.plan import Action, Plan, Skipped, Step
from infold.core.project import Node
from infold.render.coverage_strip import COLUMNS, Row, axis, header_lines, strip_lines
from infold.render.plan import models_to_draw


def span(start: str, end: str) -> Ranges:
    """One range."""
    return Ranges((Interval(parse_instant_text(start), parse_instant_text(end)),))


def drawn(built: Ranges, arrived: Ranges, granularity: Granularity = Granularity.DAY) -> str:
    """The strip of one table."""
    row = Row("t", (("+", arrived), ("#", built)), " ")
    return "\n".join(strip_lines([row], granularity, 100))


CASES = {
    "a week is labelled day by day": (
        span("2024-03-04", "2024-03-11"),
        span("2024-03-06", "2024-03-07"),
        Granularity.DAY,
        """
             March 2024
             04 05 06 07 08 09 10
          t   #  #  +  #  #  #  #
        """,
    ),
    "six weeks are labelled by their mondays": (
        span("2024-01-29", "2024-03-11"),
        span("2024-02-06", "2024-02-07"),
        Granularity.DAY,
        """
                February 2024                March 2024
             29     05     12     19     26     04
          t  ########+#################################
        """,
    ),
    "ten months are weeks": (
        span("2023-05-29", "2024-03-11"),
        span("2024-02-06", "2024-02-07"),
        Granularity.DAY,
        """
             2023                           2024
              Jun Jul  Aug Sep Oct  Nov Dec Jan  Feb Mar
          t  ####################################+####
        """,
    ),
    "three years are months": (
        span("2021-05-29", "2024-03-11"),
        span("2024-02-06", "2024-02-07"),
        Granularity.DAY,
        """
             2021    2022        2023        2024
             MJJASONDJFMAMJJASONDJFMAMJJASONDJFM
          t  #################################+#
        """,
    ),
    "ten years are quarters": (
        span("2014-05-29", "2024-03-11"),
        span("2024-02-06", "2024-02-07"),
        Granularity.DAY,
        """
             14 15  16  17  18  19  20  21  22  23  2024
             2341234123412341234123412341234123412341
          t  #######################################+
        """,
    ),
    "a century is years, the first ones left out": (
        span("1914-05-29", "2024-03-11"),
        span("2024-02-06", "2024-02-07"),
        Granularity.DAY,
        """
                 1975 1980 1985 1990 1995 2000 2005 2010 2015 2020
          t  …####################################################+
        """,
    ),
    "an event of long ago is two columns": (
        span("2024-03-09", "2024-03-11"),
        span("1999-02-06", "1999-02-07"),
        Granularity.DAY,
        """
             Feb   March 2024
             06    09 10
          t   +  …  #  #
        """,
    ),
    "two days of hours": (
        span("2024-03-09", "2024-03-11"),
        span("2024-03-09", "2024-03-09T05:00"),
        Granularity.HOUR,
        """
             Sat 9 March 2024        Sun 10 March 2024
             00    06    12    18    00    06    12    18
          t  +++++###########################################
        """,
    ),
    "a few months have their names": (
        span("2024-03-01", "2024-07-01"),
        Ranges(),
        Granularity.MONTH,
        """
             2024
             Mar Apr May Jun
          t   #   #   #   #
        """,
    ),
    "weeks from sunday": (
        span("2024-03-03", "2024-03-17"),
        Ranges(),
        Granularity.SUNDAY_WEEK,
        """
             2024
             03-03 03-10
          t   #     #
        """,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_as_drawn(case: str) -> None:
    """A strip is the picture that a person would draw."""
    built, arrived, granularity, picture = CASES[case]

    assert drawn(built, arrived, granularity) == _picture(picture)


def _picture(text: str) -> str:
    lines = dedent(text).strip("\n").splitlines()
    return "\n".join(f"  {line}".rstrip() for line in lines if line.strip())


def test_marks_and_texts() -> None:
    """A column has the first mark that applies to it: a week with one day to build is marked as to
    build. A table without cells has one mark, which all columns are around. A long reason
    beside the strip ends in an ellipsis, and is printed in full below it.
    """
    few, year = span("2024-03-04", "2024-03-06"), span("2024-01-01", "2024-12-31")
    row = Row("t", (("B", span("2024-02-06", "2024-02-07")), ("-", year)))
    rows = [Row("t", (("#", few),)), Row("one", single="B", note="x")]
    long = strip_lines([Row("t", (("#", few),), note="because " * 30)], Granularity.DAY, 60)[-1]

    weeks = strip_lines([row], Granularity.DAY, 100)[-1]
    assert weeks == "  t  -----B-----------------------------" + ("-" * 18)
    assert strip_lines(rows, Granularity.DAY, 100) == [
        "       March 2024",
        "       04 05",
        "  t     #  #",
        "  one  [ B  ]   x",
    ]
    assert (len(long), long[-1]) == (60, "…")


def test_open_ranges_do_not_stretch_the_axis() -> None:
    """A table with open ranges is drawn over the range that the others cover."""
    rows = [
        Row("t", (("#", span("2024-03-04", "2024-03-06")),)),
        Row("all", (("B", Ranges((EVER,))),)),
    ]

    assert strip_lines(rows, Granularity.DAY, 100)[-1] == "  all   B  B"


instants = st.integers(
    parse_instant_text("1900-01-01") // HOUR, parse_instant_text("2200-01-01") // HOUR
)
ranges = st.lists(st.tuples(instants, st.integers(1, 24 * 400)), min_size=1, max_size=8).map(
    lambda drawn: Ranges.of(Interval(at * HOUR, (at + hours) * HOUR) for at, hours in drawn)
)


@given(ranges, st.sampled_from(Granularity))
def test_any_ranges(built: Ranges, granularity: Granularity) -> None:
    """It fits beside a name and a reason; columns are there once, and every range is in one."""
    found = axis(built, granularity)
    cells = [cell for cell in found.columns if cell is not None]

    assert found.width <= COLUMNS
    assert all(len(line) <= COLUMNS for line in header_lines(found, COLUMNS))
    assert len(strip_lines([Row("t", (("#", built),))], granularity, 100)[-1]) <= COLUMNS + 5
    assert cells == sorted(set(cells))
    if found.columns[0] is not None:
        assert not built - Ranges.of(cells)


def test_a_wide_table_costs_nothing() -> None:
    """A strip over five years of hours does not enumerate them."""
    built = Ranges((Interval(0, 50 * 365 * DAY),))

    assert axis(built, Granularity.HOUR).granularity is Granularity.YEAR


STEP = Step("m1", Action.BUILD, Ranges.ever(), ())
LEFT = (Skipped("m0", "up to date"), Skipped("m2", "outside the window", Ranges((day(1),))))


def named(number: int) -> Node:
    """A table of that number."""
    return replace(DAILY, model=replace(DAILY.model, name=f"m{number}"))


@pytest.mark.parametrize(("tables", "drawn"), [(3, 3), (40, 40), (41, 2)])
def test_of_many_tables_those_with_something_to_say_are_drawn(tables: int, drawn: int) -> None:
    """Few tables are all drawn; of many only those that are built or stale."""
    found = models_to_draw(project(*map(named, range(tables))), Plan((STEP,), LEFT))

    assert len(found) == drawn
    assert {"m1", "m2"} <= found
