"""Numbers, times, ranges, pairs of rows and lateness as texts; `infold engine status`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample

from infold.core.interval import (
    DAY,
    EVER,
    HOUR,
    MAX,
    MIN,
    Granularity,
    Interval,
    Ranges,
    parse_instant_text,
)
from infold.core.report import Heat, How, Lateness, Measures, Missed
from infold.core.target import WarmEngine
from infold.inspecting.lateness import measures_of
from infold.render import formatting
from infold.render.checkup import warm_engine_json, warm_engine_screen
from infold.render.json_shapes import pair_rows
from infold.render.lateness import bins, lateness_json, lateness_screen
from infold.render.pictures.look import Look

BY_DAY = Granularity.DAY


@pytest.mark.parametrize(
    ("length", "text"),
    [(0, "0.00 s"), (0.314, "0.31 s"), (9.999, "10.0 s"), (12.4, "12.4 s"), (200, "3 min 20 s")],
)
def test_measured_times(length: float, text: str) -> None:
    """Times have two digits below ten seconds, one below a hundred, and are minutes after that."""
    assert formatting.seconds(length) == text


def test_ranges() -> None:
    """One cell has its name, ranges are half-open, open ends words, long lists cut."""
    march = [
        Interval(parse_instant_text(f"2024-03-{d:02}"), parse_instant_text(f"2024-03-{d + 1:02}"))
        for d in (1, 3)
    ]
    longer = Interval(parse_instant_text("2024-03-05"), parse_instant_text("2024-03-08"))
    last = Interval(parse_instant_text("2024-04-01"), MAX)

    text = formatting.ranges_text(Ranges.of([*march, longer, last]), BY_DAY)

    assert text == "2024-03-01, 2024-03-03, [2024-03-05, 2024-03-08), and 1 more"
    assert formatting.range_text(last, BY_DAY) == "since 2024-04-01"
    assert formatting.range_text(Interval(MIN, last.start), BY_DAY) == "until 2024-04-01"
    assert formatting.range_text(EVER, None) == "all of it"


def test_cells_and_instants() -> None:
    """A cell is as short as its granularity allows. Calendar cells are counted, open ranges are
    not. Instants in JSON are ISO 8601 with a Z and microseconds; an open end is null.
    """
    at = parse_instant_text("2024-03-01")
    year = Ranges((Interval(parse_instant_text("2024-01-01"), parse_instant_text("2025-01-01")),))

    for unit, text in (("month", "2024-03"), ("year", "2024"), ("hour", "2024-03-01 00:00")):
        assert formatting.cell_text(Granularity(unit).cell(at), Granularity(unit)) == text
    counted = [formatting.cells_in(year, unit) for unit in (BY_DAY, Granularity.MONTH)]
    assert counted == [366, 12]
    assert formatting.cells_in(Ranges.ever(), BY_DAY) is None
    fine = "2024-03-09T12:00:00.000001"
    assert formatting.iso(parse_instant_text(fine)) == f"{fine}Z"
    assert formatting.iso(MAX) is None


FOUND = WarmEngine("dev", 12, 13, 0, 3, False, 120, 600, 812_000_000)


def test_the_screen_of_an_engine() -> None:
    """What it does, takes, and when it ends; programs get the same facts."""
    assert warm_engine_json(None) == {"engine": None}
    assert warm_engine_json(FOUND)["engine"]["memory_bytes"] == 812_000_000
    assert warm_engine_screen(FOUND) == (
        "The engine of the target dev is ready; its last command was 2 minutes ago.\n"
        "\n"
        "  carried out:  3 commands\n"
        "  memory:       812 MB, in Java\n"
        "  processes:    12, and Java's 13\n"
        "  ends:         when no command came for 10 minutes, "
        "or by `infold --target dev engine stop`"
    )
    assert "carries out a command." in warm_engine_screen(replace(FOUND, busy=True))
    assert "No engine is running" in warm_engine_screen(None)


Row = Mapping[str, Any]


def rows(side: str, *found: str) -> list[tuple[str, Row]]:
    """Rows drawn as ``a=1 b=x``."""
    return [(side, dict(word.split("=") for word in row.split())) for row in found]


@pytest.mark.parametrize(
    ("stored", "rebuilt", "key", "expected"),
    [
        (["k=1 n=1"], ["k=1 n=2"], ["k"], ["k=1: n 1 2"]),
        (["k=1 n=1", "k=2 n=2"], ["k=2 n=3"], ["k"], ["k=1: gone", "k=2: n 2 3"]),
        (["k=1 n=1"], ["k=2 n=1"], ["k"], ["k=1: gone", "k=2: new"]),
        (["k=1 n=1", "k=1 n=2"], ["k=1 n=3"], ["k"], ["k=1: n 1 3", "k=1: gone"]),
        (["d=1 a=1 b=1"], ["d=1 a=2 b=2"], [], [": a 1 2, b 1 2"]),
        (["d=1 a=1 b=1"], ["d=1 a=1 b=2", "d=1 a=2 b=1"], [], [": b 1 2", ": new"]),
        (["d=1 a=1"], ["d=2 a=2"], [], [": gone", ": new"]),
    ],
)
def test_pairs(
    stored: Sequence[str], rebuilt: Sequence[str], key: Sequence[str], expected: Sequence[str]
) -> None:
    """By key where it is known, else by similarity; without a partner it is single."""
    found = []
    for pair in pair_rows([*rows("stored", *stored), *rows("rebuilt", *rebuilt)], key):
        known = " ".join(f"{name}={value}" for name, value in pair.key.items())
        values = ", ".join(f"{name} {a} {b}" for name, (a, b) in pair.differing.items())
        alone = "gone" if pair.rebuilt is None else "new"
        found.append(f"{known}: {values or alone}")

    assert found == expected


def test_the_last_digits_of_doubles_are_no_difference() -> None:
    """Values that the comparison takes as equal are not shown as different."""
    sample = [
        ("stored", {"k": 1, "x": 0.1 + 0.2, "y": float("nan"), "n": 1}),
        ("rebuilt", {"k": 1, "x": 0.3, "y": float("nan"), "n": 2}),
    ]

    (pair,) = pair_rows(sample, ["k"])

    assert pair.differing == {"n": (1, 2)}


PROJECT = sample.project()
FIRST_DAY = parse_instant_text("2024-03-01")

MEASURES = Measures(
    rows=10_000,
    ages=(("under an hour", 9000), ("under a day", 0), ("1 to 3 days", 996), ("over a year", 4)),
    lookbacks=(Missed(1, 1000, 12), Missed(3, 4, 2), Missed(7, 4, 1), Missed(30, 0, 0)),
    longest_days=401,
    worst=((FIRST_DAY, 9),),
    heat=Heat(
        Granularity.DAY,
        Granularity.WEEK,
        (
            (FIRST_DAY, FIRST_DAY - 4 * DAY, 9000),
            (FIRST_DAY, FIRST_DAY + 3 * DAY, 90),
            (FIRST_DAY + 5 * DAY, FIRST_DAY + 3 * DAY, 1),
        ),
        left_out=2,
        since=FIRST_DAY,
    ),
)
LATE = Lateness("clicks", "raw.clicks", How.RECEIVED, "seen_at", FIRST_DAY, MEASURES)


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
    early = measures_of(rows_at([(0, -3 * HOUR), (0, 0)]))
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


def rows_at(times: list[tuple[int, int]]) -> pa.Table:
    """Rows by minutes since the first at which they happened, and how long after they came."""
    events = [FIRST_DAY + at for at, _ in times]
    received = [FIRST_DAY + at + late for at, late in times]
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
    found = measures_of(rows_at(drawn), bins(look))
    one = Lateness("clicks", "raw.clicks", How.RECEIVED, "seen_at", None, found)

    text = lateness_screen(PROJECT, [one], Look(width))

    assert max(map(len, text.split("\n"))) <= width
    assert text.isascii()
    assert sum(rows for _, _, rows in found.heat.cells) + found.heat.left_out == len(drawn)
    picture = text.partition("were received")[2].split("\n\n")[0].split("\n")
    assert len(picture) <= 30
