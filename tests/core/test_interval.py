"""Intervals, cells, and the cuts of sessions by them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from infold.core import interval
from infold.core.interval import DAY, EVER, MINUTE, SECOND, Granularity, Interval, Ranges
from infold.core.sessions import (
    Campaign,
    DeclaredCut,
    EventSql,
    MaxLength,
    Midnight,
    Rule,
    SqlType,
    StartEvents,
)
from infold.declare import models as declared

LOW, HIGH = -12, 13

intervals = st.tuples(st.integers(LOW, HIGH - 1), st.integers(1, 8)).map(
    lambda pair: Interval(pair[0], min(pair[0] + pair[1], HIGH))
)
ranges = st.lists(intervals, max_size=6).map(Ranges.of)
instants = st.datetimes(
    datetime(1, 1, 2),  # noqa: DTZ001 (Hypothesis adds the time zone)
    datetime(9999, 12, 30),  # noqa: DTZ001
    timezones=st.just(UTC),
    allow_imaginary=False,
).map(interval.micros_of)
granularities = st.sampled_from(list(Granularity))


def ticks(found: Ranges) -> set[int]:
    """Every instant of a small set, one by one."""
    return {at for part in found for at in range(part.start, part.end)}


def is_normal(found: Ranges) -> bool:
    """Whether the parts are sorted and neither overlap nor touch."""
    return all(a.end < b.start for a, b in pairwise(found.parts))


class TestRanges:
    """Ranges behave as the sets of instants they represent, in one normal form."""

    @given(st.lists(intervals, max_size=6))
    def test_of_contains_exactly_the_instants_of_its_parts(self, parts: list[Interval]) -> None:
        """Any intervals, in any order, give the union of their instants, normalised."""
        found = Ranges.of(parts)
        assert ticks(found) == {at for part in parts for at in range(part.start, part.end)}
        assert is_normal(found)

    @given(ranges, ranges)
    def test_the_algebra_is_that_of_sets(self, a: Ranges, b: Ranges) -> None:
        """Union, intersection and difference agree with sets of ticks and stay normalised."""
        assert ticks(a | b) == ticks(a) | ticks(b)
        assert ticks(a & b) == ticks(a) & ticks(b)
        assert ticks(a - b) == ticks(a) - ticks(b)
        assert is_normal(a | b)
        assert is_normal(a & b)
        assert is_normal(a - b)
        assert (a == b) == (ticks(a) == ticks(b))

    @given(ranges, st.integers(LOW - 2, HIGH + 2))
    def test_membership(self, a: Ranges, at: int) -> None:
        """An instant is in the ranges exactly when it is one of their ticks. All event time absorbs
        any ranges and leaves nothing of them.
        """
        assert (at in a) == (at in ticks(a))
        assert a | Ranges.ever() == Ranges.ever()
        assert a & Ranges.ever() == a
        assert not a - Ranges.ever()
        assert Ranges.ever() == Ranges((EVER,)) == Ranges.ever().widen(DAY, DAY)

    @given(ranges, intervals, intervals)
    def test_overlap(self, a: Ranges, one: Interval, other: Interval) -> None:
        """Ranges, or an interval, overlap another one exactly when they share a tick."""
        inside = ticks(Ranges((other,)))
        assert a.overlaps(other) == bool(ticks(a) & inside)
        assert one.overlaps(other) == other.overlaps(one) == bool(ticks(Ranges((one,))) & inside)

    @given(ranges, st.integers(0, 3), st.integers(0, 3))
    def test_widening_adds_the_neighbours(self, a: Ranges, before: int, after: int) -> None:
        """Widened ranges contain every tick within reach of an old one."""
        expected = {at + d for at in ticks(a) for d in range(-before, after + 1)}
        assert ticks(a.widen(before, after)) == expected

    @given(ranges)
    def test_hull_and_emptiness(self, a: Ranges) -> None:
        """The hull reaches from the first to the last instant; only empty ranges have none."""
        if a.span is None:
            assert not a
            assert str(a) == "nothing"
        else:
            assert a
            assert (a.span.start, a.span.end) == (min(ticks(a)), max(ticks(a)) + 1)
            assert len(a) == len(a.parts) == len(list(a))

    def test_an_interval_has_its_start_and_not_its_end(self) -> None:
        """An instant at the border is in the later of the two alone. An interval without instants
        cannot be made.
        """
        before, after = Interval(0, 10), Interval(10, 20)

        assert [at in before for at in (-1, 0, 9, 10)] == [False, True, True, False]
        assert 10 in after
        assert not before.overlaps(after)
        for end in (1, 0):
            with pytest.raises(ValueError, match="empty"):
                Interval(1, end)


def calendar_floor(granularity: Granularity, at: datetime) -> datetime:
    """The start of the cell of ``at`` by the calendar of the standard library."""
    day = at.replace(hour=0, minute=0, second=0, microsecond=0)
    match granularity:
        case Granularity.HOUR:
            return at.replace(minute=0, second=0, microsecond=0)
        case Granularity.DAY:
            return day
        case Granularity.WEEK:
            return day - timedelta(days=day.weekday())
        case Granularity.SUNDAY_WEEK:
            return day - timedelta(days=(day.weekday() + 1) % 7)
        case Granularity.MONTH:
            return day.replace(day=1)
        case Granularity.QUARTER:
            return day.replace(month=(day.month - 1) // 3 * 3 + 1, day=1)
        case Granularity.YEAR:
            return day.replace(month=1, day=1)


class TestGranularity:
    """Cells follow the UTC calendar and tile all of time."""

    @given(granularities, instants)
    def test_floor_is_that_of_the_calendar(self, granularity: Granularity, at: int) -> None:
        """The start of a cell is what the standard library's calendar gives."""
        assume(at >= interval.parse_instant_text("0001-01-08"))
        expected = calendar_floor(granularity, interval.datetime_of(at))
        assert interval.datetime_of(granularity.floor(at)) == expected

    @given(granularities, granularities, instants)
    def test_the_cell_of_an_instant(
        self, granularity: Granularity, fine: Granularity, at: int
    ) -> None:
        """Every instant is in one cell, and cells follow one another without a gap. Rounding up
        gives the instant itself when aligned, else the end of its cell. Covering covered ranges
        changes nothing, and open ends stay open. Where a granularity contains another, every finer
        cell is inside of one coarser cell.
        """
        cell, up = granularity.cell(at), granularity.ceil(at)
        assert at in cell
        assert granularity.aligned(cell.start)
        assert granularity.floor(cell.end - 1) == cell.start
        assert granularity.next(cell.start) == cell.end
        assert granularity.aligned(cell.end)
        assert up == (at if granularity.aligned(at) else cell.end)
        covered = granularity.cover(Ranges.of([Interval(at, at + 1)]))
        assert granularity.cover(covered) == covered == Ranges.of([cell])
        assert granularity.cover(Ranges.ever()) == Ranges.ever()
        if granularity.contains(fine):
            inner = fine.cell(at)
            assert cell.start <= inner.start
            assert inner.end <= cell.end

    @given(granularities, instants, st.integers(1, 40 * DAY))
    def test_cells_tile_an_interval(self, granularity: Granularity, at: int, length: int) -> None:
        """The cells of an interval are consecutive, and together they are its cover."""
        end = min(at + length, interval.parse_instant_text("9999-12-31"))
        assume(at < end)
        wanted = Interval(at, end)
        if granularity is Granularity.HOUR:
            wanted = Interval(at, min(end, at + 3 * DAY))
        cells = list(granularity.cells(wanted))
        assert all(cell.overlaps(wanted) for cell in cells)
        assert all(a.end == b.start for a, b in pairwise(cells))
        assert Ranges.of(cells) == granularity.cover(Ranges.of([wanted]))

    def test_weeks_do_not_nest_in_months(self) -> None:
        """A week may belong to two months, so no month contains weeks; days nest in everything."""
        assert not Granularity.MONTH.contains(Granularity.WEEK)
        assert not Granularity.YEAR.contains(Granularity.SUNDAY_WEEK)
        assert all(g.contains(Granularity.DAY) for g in Granularity if g is not Granularity.HOUR)

    @pytest.mark.parametrize(
        ("granularity", "at", "start", "end"),
        [
            ("hour", "2024-03-09 23:59:59.999999", "2024-03-09 23:00", "2024-03-10"),
            ("day", "2024-02-29", "2024-02-29", "2024-03-01"),
            ("week", "2024-03-10 23:00", "2024-03-04", "2024-03-11"),
            ("week (sunday)", "2024-03-10 23:00", "2024-03-10", "2024-03-17"),
            ("month", "1900-02-28 12:00", "1900-02-01", "1900-03-01"),
            ("quarter", "2023-12-31", "2023-10-01", "2024-01-01"),
            ("year", "1969-06-01", "1969-01-01", "1970-01-01"),
            ("month", "9999-12-31 23:00", "9999-12-01", "ever"),
        ],
    )
    def test_cells_that_a_person_would_check(
        self, granularity: str, at: str, start: str, end: str
    ) -> None:
        """Leap days, both kinds of week, times before 1970 and the last month of time."""
        cell = Granularity(granularity).cell(interval.parse_instant_text(at))
        assert (interval.show_instant(cell.start), interval.show_instant(cell.end)) == (start, end)


class TestTexts:
    """Instants and lengths are read and shown without loss."""

    @given(instants)
    def test_an_instant_survives_a_datetime_and_a_text(self, at: int) -> None:
        """Instant to datetime to instant, and through its text, is the same instant."""
        assert interval.micros_of(interval.datetime_of(at)) == at
        assert interval.parse_instant_text(interval.datetime_of(at).isoformat()) == at
        assert interval.parse_instant_text(interval.show_instant(at)) == at

    @given(st.integers(0, 10**15))
    def test_a_length_survives_its_text(self, length: int) -> None:
        """A length is read back from its text, or as the whole that it just misses."""
        whole = length + ((length + 1) % interval.SECOND == 0)

        assert interval.parse_duration(interval.show_duration(length)) == whole
        assert interval.show_duration(7 * DAY - 1) == "1 week"

    @pytest.mark.parametrize(
        ("text", "length"),
        [
            ("30 minutes", 30 * MINUTE),
            ("1 hour 30 minutes", 90 * MINUTE),
            (" 1Day ", DAY),
            ("2 weeks 1 second", 14 * DAY + SECOND),
            ("0 seconds", 0),
            ("5 milliseconds", 5_000),
            ("7microseconds", 7),
        ],
    )
    def test_lengths_are_read(self, text: str, length: int) -> None:
        """Units of lengths may be plural, joined and in any case."""
        assert interval.parse_duration(text) == length

    @pytest.mark.parametrize(
        "text", ["", "  ", "30", "minutes", "1 month", "1.5 hours", "-1 day", "1 day,", "1 dayss"]
    )
    def test_invalid_lengths_are_refused(self, text: str) -> None:
        """A text without a fixed length raises ValueError."""
        with pytest.raises(ValueError):
            interval.parse_duration(text)

    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("2024-03-09", "2024-03-09"),
            ("2024-03-09T12:30:00", "2024-03-09 12:30"),
            ("2024-03-09 12:30:00+02:00", "2024-03-09 10:30"),
            ("1969-12-31T23:59:59.999999Z", "1969-12-31 23:59:59.999999"),
        ],
    )
    def test_instants_are_read_in_utc(self, text: str, expected: str) -> None:
        """A text without an offset is UTC; an offset is taken into account."""
        assert interval.show_instant(interval.parse_instant_text(text)) == expected

    def test_the_ends_of_time_are_shown_as_ever(self) -> None:
        """Open ends are shown as "ever" and not as dates."""
        assert str(EVER) == "[ever, ever)"
        day = interval.parse_instant_text("2024-03-09")
        assert str(Interval(day, day + DAY)) == "[2024-03-09, 2024-03-10)"
        assert interval.show_instant(interval.micros_of(datetime(1, 1, 1, tzinfo=UTC))) == "ever"


# By name: a dataclass with slots leaves the class behind that it was made from.
DECLARED = {cut.__name__ for cut in DeclaredCut.__subclasses__()}
DOCS = Path(__file__).parents[2] / "docs"
EVERY = (
    Midnight("Europe/Berlin"),
    Campaign(("source", "medium"), direct=("direct",)),
    StartEvents("name = 'login'"),
    Rule("ends(url)"),
    MaxLength(3_600_000_000),
)


def test_spark_has_a_file_for_every_cut() -> None:
    """Spark has an object of the declared sort for every cut, and so have the examples here."""
    from infold.spark.sessions.cuts import CUTS
    from infold.spark.sessions.cuts.base import PairwiseCut

    assert {type(cut).__name__ for cut in EVERY} == {cut.__name__ for cut in CUTS} == DECLARED
    for cut in EVERY:
        assert isinstance(CUTS[type(cut)](cut), PairwiseCut) == cut.pairwise


@pytest.mark.parametrize("cut", EVERY, ids=lambda cut: cut.key)
def test_every_cut_has_a_key_that_can_be_declared(cut: DeclaredCut) -> None:
    """The key of a cut is read by ``declare``, and the reference describes it."""
    above, _, own = cut.key.rpartition(".")
    assert own in (declared.CUTS if above else declared.SESSION_KEYS)
    assert f"`{own}`" in (DOCS / "reference" / "keys.md").read_text()


def test_cuts_in_words() -> None:
    """``infold explain`` describes each cut in words. Its SQL over one event has a place: a
    campaign has columns, also as a short list; a start event is a condition.
    """
    assert [cut.in_words for cut in EVERY] == [
        "midnight in Europe/Berlin",
        "a change of campaign",
        "an event that begins a session",
        "the rule ends(url)",
        "a length of 1 hour",
    ]
    assert [one for cut in EVERY for one in cut.event_sql] == [
        EventSql(("cuts.campaign.columns.0", "cuts.campaign.0"), "source"),
        EventSql(("cuts.campaign.columns.1", "cuts.campaign.1"), "medium"),
        EventSql(("cuts.start_events",), "name = 'login'", SqlType.BOOLEAN),
        EventSql(("cuts.rule",), "ends(url)"),
    ]


def test_the_contributors_page_names_every_phase() -> None:
    """The table of the page lists exactly the methods of a cut within islands."""
    from infold.spark.sessions.cuts.base import InnerCut

    page = (DOCS / "contributing.md").read_text()
    table = page.partition("| phase | method |")[2].partition("\n\n")[0]
    named = {name for row in table.splitlines()[2:] for name in re.findall(r"`(\w+)`", row)}
    assert named == {name for name in vars(InnerCut) if not name.startswith("_")}
