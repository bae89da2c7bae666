"""Numbers, times and ranges as texts; what `infold engine status` prints."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infold.core.engines import WarmEngine
from infold.core.interval import EVER, MAX, MIN, Granularity, Interval, Ranges, parse_instant_text
from infold.render import formatting
from infold.render.checkup import warm_engine_json, warm_engine_screen

DAY = Granularity.DAY


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

    text = formatting.ranges_text(Ranges.of([*march, longer, last]), DAY)

    assert text == "2024-03-01, 2024-03-03, [2024-03-05, 2024-03-08), and 1 more"
    assert formatting.range_text(last, DAY) == "since 2024-04-01"
    assert formatting.range_text(Interval(MIN, last.start), DAY) == "until 2024-04-01"
    assert formatting.range_text(EVER, None) == "all of it"


def test_cells_and_instants() -> None:
    """A cell is as short as its granularity allows. Calendar cells are counted, open ranges are
    not. Instants in JSON are ISO 8601 with a Z and microseconds; an open end is null.
    """
    at = parse_instant_text("2024-03-01")
    year = Ranges((Interval(parse_instant_text("2024-01-01"), parse_instant_text("2025-01-01")),))

    for unit, text in (("month", "2024-03"), ("year", "2024"), ("hour", "2024-03-01 00:00")):
        assert formatting.cell_text(Granularity(unit).cell(at), Granularity(unit)) == text
    counted = [formatting.cells_in(year, unit) for unit in (DAY, Granularity.MONTH)]
    assert counted == [366, 12]
    assert formatting.cells_in(Ranges.ever(), DAY) is None
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
        "  ends:         when no command came for 10 minutes, or by `infold engine stop`"
    )
    assert "carries out a command." in warm_engine_screen(replace(FOUND, busy=True))
    assert "No engine is running" in warm_engine_screen(None)
