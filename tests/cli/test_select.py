"""Which models, and which range of event time, a command's options select."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.cli import sample

from infold.core.interval import MAX, MIN, Granularity, Interval, parse_instant_text
from infold.core.model import Timeseries
from infold.core.project import Input, Project
from infold.messages.errors import InfoldError
from infold.planning.selection import parse_as_of, parse_window, select_models, with_landed

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
            ("DAILY C*", "", "daily countries clicks"),
        ],
    )
    def test_terms(self, select: str, exclude: str, models: str) -> None:
        """Names, globs and tags add up, `+` goes up or downstream, excluded ones are removed."""
        found = select_models(sample.project(), select.split(), exclude.split())

        assert found == frozenset(models.split())

    def test_unknown_names_and_tags(self) -> None:
        """An unknown name, also in `--exclude`, has the nearest names, a tag the existing ones."""
        with pytest.raises(InfoldError) as caught:
            select_models(sample.project(), (), ["+sesions+"])

        assert str(caught.value) == (
            "unknown-model: there is no model sesions\n\n"
            "  nearest:  sessions\n\n"
            "`infold status` lists the models of the project."
        )
        with pytest.raises(InfoldError, match=r"^unknown-tag: [^$]*core, finance"):
            select_models(sample.project(), ["tag:zzz"])


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
    """Landed sources that selected models read directly are selected too, no others."""
    assert with_landed(landed(), frozenset(names.split()), exclude) == frozenset(found.split())


class TestWindow:
    """``--start`` and ``--end``."""

    def test_half_open(self) -> None:
        """A window includes its start and not its end; a missing one is open."""
        first, last = parse_instant_text("2024-03-09"), parse_instant_text("2024-03-10")
        project = sample.project()

        assert parse_window(project, ["daily"], None, None) is None
        assert parse_window(project, ["daily"], "2024-03-09", "2024-03-10") == Interval(first, last)
        assert parse_window(project, ["daily"], "2024-03-09", None) == Interval(first, MAX)
        assert parse_window(project, ["daily"], None, "2024-03-10T00:00Z") == Interval(MIN, last)

    @pytest.mark.parametrize("option", ["--start", "--end"])
    def test_an_end_inside_a_cell(self, option: str) -> None:
        """An end inside a cell is refused, and the nearest aligned instants are suggested."""
        inside = "2024-03-09T12:00"
        asked = (inside, None) if option == "--start" else (None, inside)

        with pytest.raises(InfoldError) as caught:
            parse_window(sample.project(), ["daily", "countries"], *asked)

        assert str(caught.value) == (
            f"window-unaligned: {option} 2024-03-09 12:00 lies inside a cell of daily\n\n"
            "  cells:    one day each\n"
            "  nearest:  2024-03-09 or 2024-03-10\n\n"
            f"Give {option} one of these two, or name other models."
        )

    def test_every_model_not_aligned_with_the_window_is_named(self) -> None:
        """Every model that the window is not aligned with is named, with its nearest ends."""
        weeks = Timeseries("session_start", "day", Granularity.WEEK)
        weekly = replace(
            sample.DAILY, model=replace(sample.DAILY.model, name="weekly", timeseries=weeks)
        )
        monthly = replace(weekly, model=replace(weekly.model, name="monthly", timeseries=MONTHS))
        project = sample.project(sample.DAILY, weekly, monthly)

        with pytest.raises(InfoldError) as caught:
            parse_window(project, ["daily", "weekly", "monthly"], "2024-03-06", "2024-03-08")

        assert caught.value.what == "--start 2024-03-06 lies inside a cell of weekly, monthly"
        assert caught.value.facts == (
            ("weekly", "one week each, nearest 2024-03-04 or 2024-03-11"),
            ("monthly", "one month each, nearest 2024-03-01 or 2024-04-01"),
        )
        assert parse_window(project, ["daily"], "2024-03-06", "2024-03-08") is not None

    def test_models_without_a_window(self) -> None:
        """Models that ingest files, have no cells or were not selected need not be aligned."""
        weeks = replace(sample.CLICKS.model, timeseries=MONTHS)
        project = sample.project(replace(sample.CLICKS, model=weeks), sample.DAILY)
        whole = parse_window(sample.project(), ["countries"], "2024-03-09T12:00", None)

        assert parse_window(project, ["clicks", "daily"], "2024-03-06", "2024-03-08") is not None
        assert whole == Interval(parse_instant_text("2024-03-09T12:00"), MAX)

    def test_an_empty_window_and_no_time(self) -> None:
        """A window that ends where it starts is refused, and so is a text that is no time."""
        with pytest.raises(InfoldError) as caught:
            parse_window(sample.project(), ["daily"], "2024-03-09", "2024-03-09")
        assert caught.value.slug == "window-empty"
        assert caught.value.facts == (("--start", "2024-03-09"), ("--end", "2024-03-09"))

        with pytest.raises(InfoldError, match="not-an-instant: --as-of is not a date or a time: y"):
            parse_as_of("yesterday")
