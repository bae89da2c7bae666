"""When models are due, by instants that a person can check."""

from __future__ import annotations

import pytest

from infold.core.interval import parse_instant_text, show_instant
from infold.planning.cron import last_tick, next_tick, normal_cron, time_zone


@pytest.mark.parametrize(
    ("cron", "place", "at", "before", "after"),
    [
        ("0 5 * * *", "UTC", "2024-03-04T05:00", "03-04 05:00", "03-05 05:00"),
        ("0 5 * * *", "UTC", "2024-03-04T04:59:59", "03-03 05:00", "03-04 05:00"),
        ("0 5 * * *", "Europe/Berlin", "2024-07-01T12:00", "07-01 03:00", "07-02 03:00"),
        ("0 0 * * *", "America/New_York", "2024-03-10T12:00", "03-10 05:00", "03-11 04:00"),
        ("@hourly", "UTC", "2024-02-29T23:30", "02-29 23:00", "03-01"),
        ("*/15 9-17 * * 1-5", "UTC", "2024-03-02T12:00", "03-01 17:45", "03-04 09:00"),
    ],
)
def test_ticks_around_an_instant(cron: str, place: str, at: str, before: str, after: str) -> None:
    """The last tick is at or before an instant and the next one is after it, in UTC."""
    fields = normal_cron(cron)

    assert show_instant(last_tick(fields, place, parse_instant_text(at))) == f"2024-{before}"
    assert show_instant(next_tick(fields, place, parse_instant_text(at))) == f"2024-{after}"


def test_a_time_that_summer_time_skips_occurs_once() -> None:
    """Half past two, missing or double in Berlin on these two days."""
    for day in ("2024-03-31", "2024-10-27"):
        ticks = set()
        at = parse_instant_text(f"{day}T00:00")
        while at < parse_instant_text(f"{day}T23:00"):
            at = next_tick("30 2 * * *", "Europe/Berlin", at)
            ticks.add(show_instant(at)[:10])
        assert day in ticks


def test_what_is_no_cron() -> None:
    """Six fields, a minute beyond the hour, a nickname without a time and an unknown zone."""
    for text in ("", "* * *", "61 * * * *", "0 5 * * * *", "@reboot"):
        with pytest.raises(ValueError, match=r".+"):
            normal_cron(text)
    with pytest.raises(ValueError, match="Mars"):
        time_zone("Mars/Base")
