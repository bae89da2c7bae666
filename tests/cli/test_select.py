"""Which models, and which stretch of event time, a command means."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cli import sample

from infold.core.interval import MAX, MIN, Granularity, Interval, instant
from infold.core.model import Timeseries
from infold.core.project import Input, Project
from infold.messages.errors import InfoldError
from infold.planning.selection import selected, with_landed
from infold.planning.window import as_of, window

MONTHS = Timeseries("session_start", "day", Granularity.MONTH)
ALL = "countries clicks sessions daily latest"


class TestSelection:
    """``--select`` and ``--exclude``."""

    @pytest.mark.parametrize(
        ("select", "exclude", "models"),
        [
            ("", "", ALL),
            ("sessions", "", "sessions"),
            ("+sessions", "", "clicks sessions"),
            ("sessions+", "", "sessions daily latest"),
            ("+sessions+", "", "clicks sessions daily latest"),
            ("c*", "", "countries clicks"),
            ("tag:core", "", "clicks sessions"),
            ("tag:core+", "", "clicks sessions daily latest"),
            ("+tag:fin*", "", "countries clicks sessions daily"),
            ("daily clicks", "", "daily clicks"),
            ("daily,clicks", "", "daily clicks"),
            ("", "sessions+", "countries clicks"),
            ("+daily", "clicks", "countries sessions daily"),
            ("daily", "daily", ""),
        ],
    )
    def test_terms(self, select: str, exclude: str, models: str) -> None:
        """Names, globs and tags add up; + reaches up or down; what is excluded leaves again."""
        found = selected(sample.project(), select.split(), exclude.split())

        assert found == frozenset(models.split())

    def test_an_unknown_name(self) -> None:
        """It is an error with the nearest names, for exclusions too."""
        with pytest.raises(InfoldError) as caught:
            selected(sample.project(), (), ["+sesions+"])

        assert str(caught.value) == (
            "unknown-model: there is no model sesions\n\n"
            "  nearest:  sessions\n\n"
            "`infold status` lists the models of the project."
        )

    def test_an_unknown_tag(self) -> None:
        """It is an error that names the tags there are."""
        with pytest.raises(InfoldError) as caught:
            selected(sample.project(), ["tag:zzz"])

        assert caught.value.slug == "unknown-tag"
        assert caught.value.facts == (("nearest", "core, finance"),)


def landed() -> Project:
    """Three models over two landed sources, one of them through a view."""
    sources = [
        replace(sample.COUNTRIES, landed=True, model=replace(sample.COUNTRIES.model, name=name))
        for name in ("raw.a", "raw.b")
    ]
    readers = [
        replace(sample.DAILY, inputs=tuple(map(Input, inputs)), model=named)
        for name, inputs in (("one", ("raw.a",)), ("two", ("raw.a", "raw.b")), ("top", ("one",)))
        for named in (replace(sample.DAILY.model, name=name),)
    ]
    return sample.project(*sources, *readers)


@pytest.mark.parametrize(
    ("names", "exclude", "found"),
    [
        ("one", (), "one raw.a"),
        ("two", (), "raw.a raw.b two"),
        ("two", ("raw.b",), "raw.a two"),
        ("top", (), "top"),
        ("one two", ("raw.*",), "one two"),
    ],
)
def test_landed_sources_come_along(names: str, exclude: tuple[str, ...], found: str) -> None:
    """Those that the models read themselves: what stands between was not asked for."""
    assert with_landed(landed(), frozenset(names.split()), exclude) == frozenset(found.split())


class TestWindow:
    """``--start`` and ``--end``."""

    def test_no_window(self) -> None:
        """Without either there is none."""
        assert window(sample.project(), ["daily"], None, None) is None

    def test_half_open(self) -> None:
        """A day is from its start to the next one's; an end that was not given is open."""
        first, last = instant("2024-03-09"), instant("2024-03-10")
        project = sample.project()

        assert window(project, ["daily"], "2024-03-09", "2024-03-10") == Interval(first, last)
        assert window(project, ["daily"], "2024-03-09", None) == Interval(first, MAX)
        assert window(project, ["daily"], None, "2024-03-10T00:00Z") == Interval(MIN, last)

    @pytest.mark.parametrize("option", ["--start", "--end"])
    def test_an_end_inside_a_cell(self, option: str) -> None:
        """It is refused, and the nearest instants that would do are named."""
        inside = "2024-03-09T12:00"
        asked = (inside, None) if option == "--start" else (None, inside)

        with pytest.raises(InfoldError) as caught:
            window(sample.project(), ["daily", "countries"], *asked)

        assert str(caught.value) == (
            f"window-unaligned: {option} 2024-03-09 12:00 lies inside a cell of daily\n\n"
            "  cells:    one day each\n"
            "  nearest:  2024-03-09 or 2024-03-10\n\n"
            f"Give {option} one of these two, or name other models."
        )

    def test_every_model_that_it_does_not_suit_is_named(self) -> None:
        """Each with the ends that would do; of the others none."""
        weekly = replace(
            sample.DAILY,
            model=replace(
                sample.DAILY.model,
                name="weekly",
                timeseries=Timeseries("session_start", "day", Granularity.WEEK),
            ),
        )
        monthly = replace(weekly, model=replace(weekly.model, name="monthly", timeseries=MONTHS))
        project = sample.project(sample.DAILY, weekly, monthly)

        with pytest.raises(InfoldError) as caught:
            window(project, ["daily", "weekly", "monthly"], "2024-03-06", "2024-03-08")

        assert caught.value.what == "--start 2024-03-06 lies inside a cell of weekly, monthly"
        assert caught.value.facts == (
            ("weekly", "one week each, nearest 2024-03-04 or 2024-03-11"),
            ("monthly", "one month each, nearest 2024-03-01 or 2024-04-01"),
        )
        assert window(project, ["daily"], "2024-03-06", "2024-03-08") is not None

    def test_tables_that_take_in_files_have_no_window(self) -> None:
        """So none has to suit them."""
        weeks = replace(sample.CLICKS.model, timeseries=MONTHS)
        project = sample.project(replace(sample.CLICKS, model=weeks), sample.DAILY)

        assert window(project, ["clicks", "daily"], "2024-03-06", "2024-03-08") is not None

    def test_models_that_were_not_selected_do_not_matter(self) -> None:
        """A table of one cell has no cells to be aligned with."""
        found = window(sample.project(), ["countries"], "2024-03-09T12:00", None)

        assert found == Interval(instant("2024-03-09T12:00"), MAX)

    def test_an_empty_window(self) -> None:
        """Half-open, so a window of one day does not end on the day it starts."""
        with pytest.raises(InfoldError) as caught:
            window(sample.project(), ["daily"], "2024-03-09", "2024-03-09")

        assert caught.value.slug == "window-empty"
        assert caught.value.facts == (("--start", "2024-03-09"), ("--end", "2024-03-09"))

    def test_not_a_time(self) -> None:
        """Neither a window nor an instant is guessed from other texts."""
        with pytest.raises(InfoldError) as caught:
            as_of("yesterday")

        assert caught.value.slug == "not-an-instant"
        assert caught.value.what == "--as-of is not a date or a time: yesterday"
