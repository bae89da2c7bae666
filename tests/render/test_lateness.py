"""The screen and the JSON of how late rows came."""

from __future__ import annotations

import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample

from infold.core.interval import DAY, HOUR, Granularity, parse_instant_text
from infold.core.report import Heat, How, Lateness, Measures, Missed
from infold.inspecting.lateness import measures_of
from infold.render.lateness import bins, lateness_json, lateness_screen
from infold.render.pictures.look import Look

PROJECT = sample.project()
FIRST = parse_instant_text("2024-03-01")

MEASURES = Measures(
    rows=10_000,
    ages=(("under an hour", 9000), ("under a day", 0), ("1 to 3 days", 996), ("over a year", 4)),
    lookbacks=(Missed(1, 1000, 12), Missed(3, 4, 2), Missed(7, 4, 1), Missed(30, 0, 0)),
    longest_days=401,
    worst=((FIRST, 9),),
    heat=Heat(
        Granularity.DAY,
        Granularity.WEEK,
        (
            (FIRST, FIRST - 4 * DAY, 9000),
            (FIRST, FIRST + 3 * DAY, 90),
            (FIRST + 5 * DAY, FIRST + 3 * DAY, 1),
        ),
        left_out=2,
        since=FIRST,
    ),
)
LATE = Lateness("clicks", "raw.clicks", How.RECEIVED, "seen_at", FIRST, MEASURES)


def test_the_screen() -> None:
    """What lookbacks miss, ages as bars, and both times as shades, all plain."""
    assert lateness_screen(PROJECT, [LATE], Look(64)) == (
        """\
infold lateness - shop - dev

clicks: 10,000 rows of raw.clicks, by seen_at, since 2024-03-01

A job that processes the last days again each day would have
missed
  lookback   rows          of days
  1 day     1,000  10.0 %       12
  3 days        4  <0.1 %        2
  7 days        4  <0.1 %        1
  30 days       0   0.0 %        0
  The latest row came 401 days after it happened.

Age when received
  under an hour  9,000  90.0 %  ##############################
  under a day        0   0.0 %
  1 to 3 days      996  10.0 %  ###
  over a year        4  <0.1 %  #

When rows happened (across) and were received (down), by day and
week
              Mar   March 2024
              01    06
  2024-02-26  ## ~~
  2024-03-04  :: ~~ ..

  . 1  : 10  * 95  # 925 rows or more
  Left out: 2 older rows, before 2024-03-01"""
    )


def test_nothing_known() -> None:
    """No column says when rows were received, no row has both times, no table of events; rows
    received before they happened, by a wrong clock, are not late.
    """
    unknown = Lateness("clicks", "raw.clicks", How.NOTHING)
    empty = Lateness("clicks", "raw.clicks", How.NOTHING, "seen_at")
    early = measures_of(rows_of([(0, -3 * HOUR), (0, 0)]))
    wrong = Lateness("c", "s", How.RECEIVED, "r", None, early)

    assert "raw.clicks has no `received_column` that the table keeps" in lateness_screen(
        PROJECT, [unknown], Look(200)
    )
    assert "no row has both times" in lateness_screen(PROJECT, [empty], Look(200))
    assert "No model has the materialization" in lateness_screen(PROJECT, [], Look(200))
    assert early.longest_days == 0
    assert "The latest row" not in lateness_screen(PROJECT, [wrong], Look())


def test_json_has_the_same() -> None:
    """Instants are texts; what is not known is null, or an empty list."""
    found = lateness_json(PROJECT, [LATE, Lateness("clicks", None, How.NOTHING)])
    json.dumps(found)
    known, unknown = found["models"]

    assert (found["project"], found["target"]) == ("shop", "dev")
    assert known["lookbacks"][1] == {"days": 3, "rows": 4, "event_days": 2}
    assert known["worst"] == [{"day": "2024-03-01T00:00:00Z", "rows": 9}]
    assert known["picture"]["cells"][1] == {
        "event": "2024-03-01T00:00:00Z",
        "received": "2024-03-04T00:00:00Z",
        "rows": 90,
    }
    assert list(known) == list(unknown)
    assert (unknown["rows"], unknown["ages"], unknown["picture"]) == (0, [], None)


def rows_of(times: list[tuple[int, int]]) -> pa.Table:
    """Rows by minutes since the first at which they happened, and how long after they came."""
    events = [FIRST + at for at, _ in times]
    received = [FIRST + at + late for at, late in times]
    instant = pa.timestamp("us")
    return pa.table(
        {
            "event": pa.array(events, instant),
            "received": pa.array(received, instant),
            "age": pa.array([late for _, late in times], pa.int64()),
            "late": pa.array(
                [b // DAY - a // DAY for a, b in zip(events, received, strict=True)], pa.int64()
            ),
            "rows": pa.array([1] * len(times), pa.int64()),
        }
    )


days = st.tuples(
    st.integers(0, 4000).map(lambda at: at * DAY), st.integers(-100, 9000).map(lambda at: at * HOUR)
)


@given(st.lists(days, min_size=1, max_size=60), st.integers(40, 160), st.booleans())
def test_no_screen_is_too_wide(drawn: list[tuple[int, int]], width: int, plain: bool) -> None:
    """Whatever the times and the width are, each row that is not left out has its place."""
    look = Look(width, plain=True) if plain else Look(width, plain=False)
    found = measures_of(rows_of(drawn), bins(look))
    one = Lateness("clicks", "raw.clicks", How.RECEIVED, "seen_at", None, found)

    text = lateness_screen(PROJECT, [one], Look(width))

    assert max(map(len, text.split("\n"))) <= width
    assert text.isascii()
    assert sum(rows for _, _, rows in found.heat.cells) + found.heat.left_out == len(drawn)
    picture = text.partition("were received")[2].split("\n\n")[0].split("\n")
    assert len(picture) <= 30
