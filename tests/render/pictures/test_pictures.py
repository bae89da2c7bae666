"""Pictures of plans, graphs, lines and states as SVG and text."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.cli import sample

from infold.core.interval import (
    DAY,
    EVER,
    HOUR,
    MAX,
    Granularity,
    Interval,
    Ranges,
    parse_instant_text,
)
from infold.core.model import Kind
from infold.core.report import ModelStatus, OverTime, Point, RowByRow, Series, State
from infold.core.trace import CellState
from infold.render.pictures import graph as graph_text
from infold.render.pictures.graph import (
    SOURCE,
    Graph,
    GraphNode,
    _in_depth,
    graph_of,
    graph_screen,
    svg,
)
from infold.render.pictures.look import Look, compact, shade, shade_limits, shades_text
from infold.render.pictures.plot import HEIGHT, Scale, line_texts, plot_screen, scale_of
from infold.render.pictures.status import status_plot

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


def test_few_hours_and_long_silences() -> None:
    """
    Labels are hours, a silence is one sign, and without values there is a sentence. The span from
    the lowest to the highest double is infinite, and is drawn all the same.
    """
    points = tuple(Point(Granularity.HOUR.cell(FIRST + at * HOUR), 1, 1) for at in (3, 4))
    text = plot_screen("t", OverTime("at", Granularity.HOUR, (Series("n", points),)), Look(60))
    late = (*days(3), Point(Granularity.DAY.cell(FIRST + 4000 * DAY), 5, 5))

    assert "a column is an hour" in text
    assert text.split("\n")[-2:] == ["              Fri 1 March 2024", "              03 04"]
    assert drawn([Series("n", late)]).split("\n")[8].startswith("           0│ ██ …  ██")
    assert "has no values with a time in day" in drawn([Series("n", ())], 80)
    assert "n: no values" in drawn([Series("n", ()), Series("m", days(1))])
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


PROJECT = sample.project()


def graph(text: str) -> Graph:
    """A graph of lines such as ``daily: sessions users``; a name with a dot is a source."""
    nodes = {}
    for line in text.split("\n"):
        name, _, reads = line.partition(":")
        kind = SOURCE if "." in name else "table"
        nodes[name.strip()] = GraphNode(name.strip(), kind, tuple(reads.split()))
    return Graph(tuple(_in_depth(nodes)))


SHOP = graph(
    """raw.clicks
raw.users
clicks: raw.clicks
users: raw.users
sessions: clicks
errors: clicks
daily: sessions errors
by_country: sessions users
report: daily by_country clicks"""
)


def dot_of(of: Graph, look: Look) -> str:
    """The picture without its head and colours."""
    text = re.sub(r"\x1b\[\d+m", "", graph_screen(PROJECT, of, look))
    return "\n".join(line.removesuffix("  table") for line in text.split("\n")[2:])


def test_lanes_show_who_reads_what() -> None:
    """A lane goes on until the last reader; a plain picture is ASCII."""
    plain = graph_screen(PROJECT, SHOP, Look(60))
    assert plain.isascii()
    assert "`-----'-'-* report  table" in plain
    assert (
        dot_of(SHOP, Look(60, plain=False))
        == dedent(
            """
            ○ raw.clicks  source
            └─● clicks
              ├─● sessions
              ├─│─● errors
              │ ├─┴─● daily
            ○ │ │   │ raw.users  source
            └─│─│─● │ users
              │ └─┴─│─● by_country
              └─────┴─┴─● report
            """
        ).strip()
    )


def test_a_wide_graph_is_a_list() -> None:
    """Where the lanes have no room, each model is listed with what it reads. A project without
    models has a sentence.
    """
    names = [f"m{number}" for number in range(30)]
    wide = graph("\n".join([*names, f"last: {' '.join(names)}"]))

    lines = graph_screen(PROJECT, wide, Look(40)).split("\n")

    assert max(map(len, lines)) <= 40
    assert lines[-1].startswith("last < m0, m1, ")
    assert "There are no models to draw." in graph_screen(PROJECT, Graph(()), Look())
    ET.fromstring(svg(PROJECT, Graph(())))


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Models that read some of those before them."""
    nodes = {}
    for number in range(draw(st.integers(1, 12))):
        some = draw(st.lists(st.integers(0, 9), max_size=4))
        known = tuple(f"m{one}" for one in dict.fromkeys(some) if one < number)
        nodes[f"m{number}"] = GraphNode(f"m{number}", "table", known)
    return Graph(tuple(_in_depth(nodes)))


@given(graphs(), st.integers(40, 120), st.booleans())
def test_any_graph_is_drawn(found: Graph, width: int, plain: bool) -> None:
    """
    Each model has one line, below all that it reads, and no line is too wide. Who follows the lanes
    by their signs finds for each model exactly what it reads.
    """
    lines = dot_of(found, Look(width, plain=plain)).split("\n")
    order = [node.name for node in found.nodes]
    assert len(order) == len({*order})
    for node in found.nodes:
        assert all(order.index(one) < order.index(node.name) for one in node.reads)
    assert [re.findall(r"m\d+", line)[0] for line in lines] == order
    assert max(map(len, lines)) <= width

    picture = dot_of(found, Look(200, plain=False)).split("\n")
    lanes: dict[int, str] = {}
    for line, node in zip(picture, found.nodes, strict=True):
        signs = line.removesuffix(f" {node.name}")
        read = {lanes[at] for at, sign in enumerate(signs) if sign in "├└┼┴"}
        for at, sign in enumerate(signs):
            if sign in "└┴":
                del lanes[at]
        assert read == set(node.reads)
        assert all(signs[at] in "│├┼" for at in lanes)
        if found.readers[node.name]:
            lanes[signs.index("●")] = node.name
    assert lanes == {}


def test_the_graph_of_some_models_has_their_sources() -> None:
    """Models that are not chosen are left out, and so are the lines to them."""
    every = graph_of(PROJECT, {node.name for node in PROJECT})
    some = graph_of(PROJECT, {"daily", "clicks"})

    assert [(node.name, node.kind) for node in some.nodes] == [
        ("raw.clicks", "source"),
        ("clicks", "events"),
        ("daily", "table"),
    ]
    assert some.nodes[-1].reads == ()
    assert {node.name for node in every.nodes} == {
        "raw.clicks",
        *("clicks", "sessions", "daily", "countries", "latest"),
    }


EVIL = graph('a"b<i>&#\\: raw.x\nraw.x')


def test_signs_of_a_language_are_escaped() -> None:
    """In Mermaid nodes have numbers, so that any name is a label; names are quoted as Graphviz
    wants them.
    """
    assert graph_text.mermaid(EVIL) == dedent(
        """\
        flowchart LR
          n0(["raw.x"])
          n1["a#34;b#60;i#62;#38;#35;#92;"]
          n0 --> n1"""
    )
    assert graph_text.dot(PROJECT, EVIL).split("\n")[3:-1] == [
        '  "raw.x" [shape=cylinder, style=solid];',
        '  "a\\"b<i>&#\\\\";',
        '  "raw.x" -> "a\\"b<i>&#\\\\";',
    ]


@pytest.mark.parametrize("of", [SHOP, EVIL], ids=["shop", "evil"])
def test_a_picture_has_each_model_and_line(of: Graph) -> None:
    """A box a node, a path a line, each left of who reads it, none over another."""
    root = ET.fromstring(svg(PROJECT, of))
    space = "{http://www.w3.org/2000/svg}"

    titles = [one.findtext(f"{space}title") for one in root.iter(f"{space}g")]
    assert titles == [node.name for node in of.nodes]
    assert len(list(root.iter(f"{space}path"))) == sum(len(node.reads) for node in of.nodes)
    left = {
        one.findtext(f"{space}title"): int(one.find(f"{space}rect").attrib["x"])  # type: ignore[union-attr]
        for one in root.iter(f"{space}g")
    }
    for node in of.nodes:
        assert all(left[read] < left[node.name] for read in node.reads)
    boxes = sorted(
        (int(one.attrib["x"]), int(one.attrib["y"]), int(one.attrib["height"]))
        for one in root.iter(f"{space}rect")
        if "x" in one.attrib
    )
    assert all(a[0] != b[0] or a[1] + a[2] < b[1] for a, b in pairwise(boxes))


NUMBERS = st.floats(allow_nan=False, allow_infinity=False)


def lines_of(*series: Series, width: int = 44, plain: bool = False, by: str = "") -> str:
    """The lines of a table, without colours."""
    found = OverTime("day", Granularity.DAY, series, by)
    return without_colours(plot_screen("daily", found, Look(width, plain=plain), as_lines=True))


def test_a_line_begins_at_the_lowest_value() -> None:
    """A change of a few in a thousand is seen; a day without a value is none of the line."""
    price = Series("price", days(1000, 1002, 1005, 1003, None, 1004, 1001, 1000))

    assert lines_of(price) == picture(
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

    assert lines_of(wait, plain=True) == picture(
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

    assert lines_of(orders, by="country", plain=True) == picture(
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

    assert lines_of(Series("orders", (*days(1, 2), late))) == picture(
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
    assert lines_of(Series("orders", days(5, 5))).splitlines()[3] == "           5│  ⢀⣀⣀⣀"


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


def table(
    model: str, rows: dict[int, int], stale: str = "", *, partly: bool = False
) -> tuple[ModelStatus, Ranges]:
    """The state of a table with so many rows on days of March, and its gaps."""
    cells = tuple(CellState(sample.day(at), many, 0) for at, many in rows.items())
    covered = Ranges.of(one.cell for one in cells)
    hull = Ranges((covered.span,)) if covered.span else Ranges()
    state = ModelStatus(
        model=model, kind=Kind.EVENTS, state=State.STANDARD_RUN, rows=sum(rows.values()),
        covered=covered, stale=sample.days(stale), partly=partly, cells=cells,
    )  # fmt: skip
    return state, hull - covered


def status_of(*tables: tuple[ModelStatus, Ranges], width: int = 60, plain: bool = True) -> str:
    """The picture, without colours."""
    gaps = {state.model: missing for state, missing in tables}
    text = status_plot(PROJECT, [state for state, _ in tables], gaps, Look(width, plain=plain))
    return re.sub(r"\x1b\[\d+m", "", text)


def test_shades_are_parts_of_each_tables_most_rows() -> None:
    """Days without rows and stale days are marked; a project of views has a sentence."""
    countries = ModelStatus(
        "countries",
        Kind.TABLE,
        State.STANDARD_RUN,
        7,
        Ranges.ever(),
        cells=(CellState(EVER, 7, 0),),
    )
    new = ModelStatus("daily", Kind.INCREMENTAL_TABLE, State.NEW_MODEL)
    view = ModelStatus("latest", Kind.VIEW, State.VIEW)

    assert (
        status_of(
            table("clicks", {4: 1, 5: 250, 6: 251, 8: 1000, 9: 750}),
            table("sessions", {5: 1, 6: 1}, "6 10"),
            (countries, Ranges()),
            (new, Ranges()),
            (view, Ranges()),
        )
        == """\
infold status - shop - dev

             March 2024
             04 05 06 07 08 09 10
  clicks     .. .. :: __ ## **         2,252
  sessions      ## !!          !!          2
  countries  one cell                      7
  daily      no rows                       0

  . 1/4  : 2/4  * 3/4  # 4/4 of its most rows
  _ no rows  ! stale"""
    )
    assert "There are no tables to draw." in status_of((view, Ranges()))


def test_what_is_stale_in_part_is_named() -> None:
    """
    An endless range of which only some is built would hide all shades. Of a table that is stale for
    all time the open end has no place on the axis, and marks what is there.
    """
    text = status_of(table("clicks", {4: 1}, "4", partly=True))
    assert "!" not in text.split("\n")[4]
    assert text.endswith("  stale in part: clicks")
    state, gaps = table("clicks", {4: 1, 5: 1})
    endless = replace(state, stale=Ranges((Interval(sample.day(5).start, MAX),)))
    assert "  clicks  ## !!" in status_of((endless, gaps))


@given(
    st.lists(st.dictionaries(st.integers(1, 31), st.integers(1, 10**14)), min_size=1, max_size=4),
    st.integers(40, 160),
    st.booleans(),
)
def test_no_status_is_too_wide(tables: list[dict[int, int]], width: int, plain: bool) -> None:
    """Whatever the rows and the width are, all numbers of rows are in one column."""
    names = ("clicks", "sessions", "daily", "countries")
    made = [
        table(name, dict(sorted(rows.items()))) for name, rows in zip(names, tables, strict=False)
    ]

    text = status_of(*made, width=width, plain=plain)

    lines = text.split("\n")
    assert max(map(len, lines)) <= width
    assert text.isascii() or not plain
    strips = [line for line in lines if line.startswith(tuple(f"  {name} " for name in names))]
    assert len({len(line) for line in strips}) == 1


def test_years_of_hours() -> None:
    """Cells are added up in the columns that there is room for."""
    cells = tuple(
        CellState(
            Interval(sample.day(1).start + at * DAY, sample.day(1).start + (at + 1) * DAY), 1, 0
        )
        for at in range(2000)
    )
    state = replace(table("clicks", {1: 1})[0], rows=2000, cells=cells)
    strip = status_of((state, Ranges())).split("\n")[4]

    assert set(strip.removeprefix("  clicks  ").removesuffix("2,000").strip()) <= set(".:*#")


PLAIN, FULL = Look(80), Look(80, plain=False)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "0"),
        (-1204, "-1,204"),
        (12.5, "12.5"),
        (1 / 3, "0.33"),
        (0.0625, "0.062"),
        (99_999, "99,999"),
        (123_456, "123k"),
        (999_999, "1,000k"),
        (3_412_345, "3.41M"),
        (-7.5e12, "-7.5T"),
        (2.5e40, "2.5e+40"),
        (1e-9, "1e-09"),
    ],
)
def test_numbers_are_short(number: float, text: str) -> None:
    """Numbers have three digits or all before the point, and a unit where they are large."""
    assert compact(number) == text


def test_a_bar_is_as_long_as_its_share() -> None:
    """To an eighth of a character; what is not 0 is seen, and 0 is not. A plain picture has no
    colours, nor has a full one around blanks.
    """
    shares = (0, 0.001, 0.5, 0.53125, 1)
    assert [FULL.bar(share, 4) for share in shares] == ["", "▏", "██", "██▏", "████"]
    assert [PLAIN.bar(share, 4) for share in (0, 0.001, 0.5, 1)] == ["", "#", "##", "####"]
    assert (PLAIN.tinted("x", "blue"), FULL.tinted("x", "blue")) == ("x", "\x1b[34mx\x1b[0m")
    assert FULL.tinted("  ", "blue") == "  "
    assert PLAIN.screen(["a · b…  "]) == "a - b~"


@given(st.integers(1, 10**18), st.floats(allow_nan=False, allow_infinity=False))
def test_shades_cover_powers(most: int, number: float) -> None:
    """
    The most rows have the darkest shade, one row the lightest, none a blank. The legend has the
    shade of each number that it names. Ten characters hold any number.
    """
    limits = shade_limits(10_000)
    assert limits == (1, 10, 100, 1000)
    assert [shade(PLAIN, rows, limits) for rows in (0, 1, 9, 10, 999, 10_000)] == list(" ..:*#")
    assert shades_text(FULL, limits) == "░ 1  ▒ 10  ▓ 100  █ 1,000 rows or more"

    limits = shade_limits(most)
    text = shades_text(PLAIN, limits)
    assert shade(PLAIN, most, limits) == "#"
    for part in text.removesuffix(" rows or more").split("  "):
        sign, of = part.split()
        assert shade(PLAIN, int(of.replace(",", "")), limits) == sign
    assert len(compact(number)) <= 10
