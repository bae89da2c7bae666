"""Models built by cells: bounds, batches, crons and strategies; verify proves each run."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.crash.scenario import living
from tests.spark.time_range.daily_project import DAILY, HOURLY, ROLLING, DailyProject, model, window

from infold import api
from infold.core.interval import Ranges, parse_instant_text
from infold.core.plan import PlanOptions
from infold.core.report import RunResult
from infold.messages.errors import InfoldError
from infold.planning.restating import backbuild, restate
from infold.spark.time_range import cell_states, recompute

pytestmark = pytest.mark.spark


@pytest.fixture
def shop(tmp_path: Path) -> DailyProject:
    """An empty shop."""
    return DailyProject(tmp_path / "shop")


def days(first: str, count: int, at: str = "12:00") -> list[str]:
    """One time on each of some days."""
    start = dt.date.fromisoformat(first)
    return [f"{start + dt.timedelta(days=n)}T{at}:00Z" for n in range(count)]


def cells(result: RunResult, name: str) -> int:
    """How many cells of a model a run built."""
    return sum(receipt.cells_built for step, receipt in result.steps if step.model == name)


def commits(result: RunResult, name: str) -> int:
    """How often a run committed a model."""
    return sum(receipt.commits for step, receipt in result.steps if step.model == name)


@pytest.mark.parametrize("rows", ["few", "many"])
def test_a_late_day_shows_in_the_six_days_after_it(
    shop: DailyProject, rows: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A late day of a rolling week rebuilds seven of thirty cells from thirteen days.

    The result is the same whether these are few and read at once, or many.
    """
    if rows == "many":
        monkeypatch.setattr(recompute, "_ROWS_IN_ONE_PART", -1)
        monkeypatch.setattr(cell_states, "_FEW_CELLS", 0)
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land(*days("2024-03-01", 30))
    shop.run()

    shop.land("2024-03-10T05:00:00Z")
    result = shop.run()

    assert (cells(result, "daily"), cells(result, "rolling")) == (1, 7)
    read = sum(receipt.read for step, receipt in result.steps if step.model == "rolling")
    assert read == 13
    assert shop.rows("rolling")[9:11] == [
        (dt.date(2024, 3, 10), 2, 8),
        (dt.date(2024, 3, 11), 1, 8),
    ]


@pytest.mark.parametrize("size", [1, 4])
def test_batches_change_no_row_and_are_commits_of_their_own(shop: DailyProject, size: int) -> None:
    """Ten days in batches give the same rows and one commit
    each; every batch reads beyond its ends.
    """
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land(*days("2024-03-01", 10))

    result = shop.run(batch_size=size)

    assert commits(result, "rolling") == -(-10 // size)
    assert [row[2] for row in shop.rows("rolling")] == [1, 2, 3, 4, 5, 6, 7, 7, 7, 7]


def test_a_run_that_fails_keeps_its_finished_batches(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that fails keeps its finished batches, and the next run builds the rest."""
    shop.models(daily=model(DAILY, "{batch_size: 2}"))
    shop.land(*days("2024-03-01", 6))
    _fail_at(monkeypatch, 2)
    with pytest.raises((InfoldError, ArithmeticError)):
        shop.run()
    monkeypatch.undo()
    assert len(shop.rows("daily")) == 4

    result = shop.run()

    assert cells(result, "daily") == 2
    assert len(shop.rows("daily")) == 6


def test_concurrent_batches_change_no_row(shop: DailyProject) -> None:
    """Ten one-day batches, four at once, give the same rows and a commit each, and so do late
    rows.
    """
    together = "{batch_size: 1, batch_concurrency: 4}"
    shop.models(daily=model(DAILY, together), rolling=model(ROLLING, together))
    shop.land(*days("2024-03-01", 10))
    first = shop.run()
    assert [row[2] for row in shop.rows("rolling")] == [1, 2, 3, 4, 5, 6, 7, 7, 7, 7]

    shop.land(*days("2024-03-01", 10, "13:00"))
    again = shop.run()

    assert [row[2] for row in shop.rows("rolling")] == [2, 4, 6, 8, 10, 12, 14, 14, 14, 14]
    for result in (first, again):
        assert commits(result, "daily") == commits(result, "rolling") == 10
    # The first batch makes the table; then four, four and the last one, each after one look.
    seen = [made.steps[0] for made in first.plans if made and made.steps[0].model == "daily"]
    assert [(step.batches, len(step.concurrent_batches)) for step in seen] == [
        (10, 0),
        (9, 3),
        (5, 3),
        (1, 0),
    ]


def test_a_batch_that_fails_leaves_the_others_built(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a concurrent batch fails, the others are built,
    and the next run builds only what is left.
    """
    shop.models(daily=model(DAILY, "{batch_size: 1, batch_concurrency: 3}"))
    shop.land(*days("2024-03-01", 4))
    shop.run()
    shop.land(*days("2024-03-01", 4, "13:00"))
    _fail_at(monkeypatch, 2)  # of three
    with pytest.raises((InfoldError, ArithmeticError)):
        shop.run()
    monkeypatch.undo()
    assert sorted(row[1] for row in shop.rows("daily")) == [1, 1, 2, 2]

    result = shop.run()

    assert cells(result, "daily") == 2
    assert [row[1] for row in shop.rows("daily")] == [2, 2, 2, 2]


def _fail_at(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    from infold.spark.time_range import recompute

    real: Callable[..., Any] = recompute._query_rows
    seen: list[int] = []

    def failing(*given: Any, **named: Any) -> Any:
        seen.append(1)
        if len(seen) > number:
            raise ArithmeticError("no more")
        return real(*given, **named)

    monkeypatch.setattr(recompute, "_query_rows", failing)


def test_a_run_that_dies_between_and_in_batches_continues(shop: DailyProject) -> None:
    """Runs that die at each write point in turn are continued by the next, until one completes."""
    shop.models(daily=model(DAILY, "{batch_size: 2}"), rolling=model(ROLLING, "{batch_size: 2}"))
    shop.land(*days("2024-03-01", 4))
    shop.run()
    shop.land(*days("2024-03-01", 6, "13:00"))
    met: set[tuple[str, str]] = set()
    seen: set[tuple[int, ...]] = set()
    for _ in range(200):
        with living(met=met) as life:
            api.run(shop.project(), progress=life, jobs=1)
        seen.add(tuple(row[1] for row in shop.rows("daily")))
        met.update(life.passed)
        if not life.dead:
            break

    shop.verify()
    assert ("daily", "ledger finish_step: before commit") in met
    assert seen <= {(1, 1, 1, 1), (2, 2, 1, 1), (2, 2, 2, 2), (2, 2, 2, 2, 1, 1)}


class AllBut(list[tuple[str, str]]):
    """All write points but one."""

    def __contains__(self, point: object) -> bool:
        return point not in list(self)


class TestNewDays:
    """Cells without rows in the table are computed and written in one pass."""

    def test_new_cells_are_counted_and_hashed_once(self, shop: DailyProject) -> None:
        """Rows and content of new cells are recorded after
        one read; cells written again are compared.
        """
        shop.models(daily=model(DAILY), rolling=model(ROLLING))
        shop.land(*days("2024-03-01", 3))
        shop.run()
        name = shop.land(*days("2024-03-04", 2))
        new = shop.run()
        assert (cells(new, "daily"), new.receipt.cells_cut_off) == (2, 0)
        assert (new.receipt.written, new.receipt.clamped, new.receipt.removed) == (6, 3, 0)
        head = api.ledger(shop.project()).newest_versions()["daily"]

        shop.land(*days("2024-03-04", 1), who="bob")
        (shop.root / "landing" / name).unlink()
        shop.land(*days("2024-03-05", 1))
        again = shop.run()

        assert again.receipt.cells_cut_off == 2  # the same sums of other rows
        assert (commits(again, "daily"), commits(again, "rolling")) == (0, 0)
        assert api.ledger(shop.project()).newest_versions()["daily"] == head, "nothing was written"

    def test_new_cells_may_have_no_rows(self, shop: DailyProject) -> None:
        """New cells may get no rows, from a query that
        Spark knows to be empty or one that turns out to be.
        """
        never = f"SELECT * FROM ({DAILY}) WHERE 1 = 0"
        nobodys = DAILY.replace("GROUP BY", "WHERE who = 'zoe' GROUP BY")
        shop.models(daily=model(DAILY), never=model(never), nobodys=model(nobodys))
        shop.land(*days("2024-03-01", 2))
        shop.run()
        shop.land(*days("2024-03-03", 1))
        shop.run()
        shop.land(*days("2024-03-04", 1), who="zoe")
        shop.run()
        assert shop.rows("never") == []
        assert [row[:2] for row in shop.rows("nobodys")] == [(dt.date(2024, 3, 4), 1)]

    def test_a_run_that_dies_while_it_writes_them(self, shop: DailyProject) -> None:
        """After deaths at each write point the new cells are right, and no row is duplicated."""
        shop.models(daily=model(DAILY), hourly=model(HOURLY, column="hour", granularity="hour"))
        shop.land(*days("2024-03-01", 2))
        shop.run()
        shop.land(*days("2024-03-03", 2), *days("2024-03-03", 2, "13:00"))
        met: set[tuple[str, str]] = set()
        for _ in range(200):
            with living(met=met) as life:
                api.run(shop.project(), progress=life, jobs=1)
            assert len(shop.rows("daily")) in (2, 4)
            assert len(shop.rows("hourly")) in (2, 6)
            met.update(life.passed)
            if not life.dead:
                break

        shop.verify()
        assert ("hourly", "table hourly: after commit") in met

    def test_a_dead_runs_commit_is_counted_and_rebuilt(self, shop: DailyProject) -> None:
        """After a death the rows of a commit are counted at
        once; the content is unknown, so readers see a change.
        """
        shop.models(daily=model(DAILY), rolling=model(ROLLING))
        shop.land(*days("2024-03-01", 2))
        shop.run()
        shop.land(*days("2024-03-03", 2), *days("2024-03-03", 2, "13:00"))
        with living(met=AllBut([("daily", "table daily: after commit")])) as life:
            api.run(shop.project(), progress=life, jobs=1)
        assert life.dead
        others = PlanOptions(selected=frozenset({"raw.clicks"}))
        project, book = shop.project(), api.ledger(shop.project())
        [note] = api.run(project, asked=others).notes
        assert note == "daily: a step that a dead run had committed was finished"
        assert [state.rows for state in book.cells("daily")] == [1, 1, 1, 1]
        assert book.traces()["daily"].pending_ranges == Ranges(
            (window("2024-03-03", "2024-03-05"),)
        )

        result = shop.run()

        assert (cells(result, "daily"), cells(result, "rolling")) == (2, 2)
        assert [row[1] for row in shop.rows("daily")] == [1, 1, 2, 2]


def test_a_month_after_may_have_31_days(shop: DailyProject) -> None:
    """A frame of a month reaches as far as the longest month, of 31 days."""
    ahead = """SELECT cast(ts AS date) AS day, id, count(*) OVER (PARTITION BY who ORDER BY ts
      RANGE BETWEEN CURRENT ROW AND INTERVAL 1 MONTH FOLLOWING) AS n FROM raw.clicks"""
    shop.models(ahead=model(ahead))
    shop.land("2024-03-01T12:00:00Z")
    shop.run()
    shop.land("2024-03-30T12:00:00Z")
    shop.run()
    assert [row[2] for row in shop.rows("ahead")] == [2, 1]


def test_a_later_start_removes_the_days_before_it(shop: DailyProject) -> None:
    """A start that moves forward removes the days before it, though no batch builds them."""
    shop.models(daily=model(DAILY))
    shop.land(*days("2024-03-01", 6))
    shop.run()
    shop.models(daily=model(DAILY, "{start: 2024-03-03, batch_size: 2}"))
    shop.run()
    assert [row[0].day for row in shop.rows("daily")] == [3, 4, 5, 6]


def test_a_start_reads_the_days_before_it_and_stores_none(shop: DailyProject) -> None:
    """A bound reads days before the start, and no row of those days is stored."""
    shop.models(daily=model(DAILY), rolling=model(ROLLING, "{start: 2024-03-05}"))
    shop.land(*days("2024-03-01", 8))
    shop.run()
    assert [row[2] for row in shop.rows("rolling")] == [5, 6, 7, 7]


def test_days_of_another_zone(shop: DailyProject) -> None:
    """Local days of Berlin are built correctly, the 23 hours of 2024-03-31 included."""
    local = """SELECT cast(from_utc_timestamp(ts, 'Europe/Berlin') AS date) AS day, count(*) AS n
    FROM raw.clicks GROUP BY 1"""
    shop.models(local=model(local))
    shop.land(*days("2024-03-28", 6, "22:30"), *days("2024-03-28", 6, "23:30"))
    shop.run()
    assert [row[1] for row in shop.rows("local")] == [1, 2, 2, 1, 2, 2, 2]

    shop.land("2024-03-30T23:00:00Z", "2024-03-31T21:59:59Z", "2024-03-31T22:00:00Z")
    result = shop.run(batch_size=1)

    assert cells(result, "local") <= 4


def test_a_source_that_lost_a_day_removes_its_rows(shop: DailyProject) -> None:
    """When a source loses a day, the range is replaced by no rows."""
    shop.models(daily=model(DAILY))
    shop.land("2024-03-01T10:00:00Z")
    gone = shop.land("2024-03-02T10:00:00Z")
    shop.run()

    (shop.root / "landing" / gone).unlink()
    shop.run()

    assert [row[0] for row in shop.rows("daily")] == [dt.date(2024, 3, 1)]


def test_rows_in_no_cell_are_refused(shop: DailyProject) -> None:
    """A row with a NULL partition value is in no cell and
    refused, unless analysis proves that there is none.
    """
    picked = "SELECT CASE WHEN who = 'ann' THEN cast(ts AS date) END AS day, id FROM raw.clicks"
    shop.models(picked=model(picked, "{bounds: {raw.clicks: {}}}"))
    shop.land("2024-03-01T10:00:00Z")
    shop.run()
    shop.land("2024-03-01T11:00:00Z", "2024-03-01T12:00:00Z", who="bob")

    with pytest.raises(InfoldError, match="null-cell") as found:
        shop.run()

    assert "day IS NOT NULL" in str(found.value)
    assert len(shop.rows("picked")) == 1

    shop.models(picked=model(f"SELECT * FROM ({picked}) WHERE day IS NOT NULL", BOUNDS))
    shop.run()
    assert len(shop.rows("picked")) == 1


BOUNDS = "{bounds: {raw.clicks: {}}}"


def test_rows_beyond_the_cells_are_counted(shop: DailyProject) -> None:
    """The receipt counts the rows that are removed because they are outside the built cells."""
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land(*days("2024-03-01", 10))
    shop.run()
    shop.land("2024-03-10T05:00:00Z")

    result = shop.run()

    assert result.receipt.clamped == 6


def test_declared_bounds_hold_in_every_build(shop: DailyProject) -> None:
    """A cell reads its declared bounds in a first build and after a late row of another cell.

    A rebuild uses the same bounds and counts the cells that
    would see more. Another bound is another definition.
    """
    last = """SELECT cast(ts AS date) AS day, id,
      lag(id) OVER (PARTITION BY who ORDER BY ts, id) AS before FROM raw.clicks"""
    shop.models(last=model(last, "{bounds: {RAW.clicks: {before: 1 day}}}"))
    shop.land("2024-03-01T12:00:00Z", "2024-03-02T12:00:00Z", "2024-03-05T12:00:00Z")
    result = shop.run()
    assert "declared" in " ".join(result.plans[0].notes)
    first = shop.rows("last")
    assert [row[2] for row in first] == [None, 1, None]
    found = next(v for v in api.verify(shop.project()).models if v.model == "last")
    assert "1 cells would differ without its declared bounds" in found.note

    shop.land("2024-03-05T01:00:00Z", who="bob")
    result = shop.run()
    assert [row for row in shop.rows("last") if row[1] != 4] == first
    assert cells(result, "last") == 1, "the day after it has no rows"

    shop.models(last=model(last, "{bounds: {raw.clicks: {before: 30 days}}}"))
    shop.run()
    assert [row[2] for row in shop.rows("last") if row[1] != 4] == [None, 1, 2]


def test_an_override_builds_each_cell_singly(shop: DailyProject) -> None:
    """With an override LIMIT applies to each cell; verify,
    which evaluates the whole query, differs.
    """
    some = "SELECT cast(ts AS date) AS day, id FROM raw.clicks ORDER BY id LIMIT 1"
    shop.models(some=model(some, "{safety_overrides: {allow_limit: true}}"))
    shop.land(*days("2024-03-01", 3))

    result = shop.run(equal=False)

    assert len(shop.rows("some")) == 3
    assert "allow_limit" in " ".join(result.plans[0].notes)
    assert result.receipt.commits == 2, "the clicks, and all three days"


def test_cells_built_singly_are_combined_a_few_at_a_time(
    shop: DailyProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Cells built singly, more of them than one query
    takes, give the same rows, late days included.
    """
    numbered = """SELECT cast(ts AS date) AS day,
      count(*) OVER (PARTITION BY who ORDER BY ts, id) AS n FROM raw.clicks"""
    vouched = "{safety_overrides: {allow_window_functions: true}}"
    shop.models(numbered=model(numbered, vouched))
    shop.land(*days("2024-03-01", 7))
    monkeypatch.setattr("infold.spark.time_range.by_cell.CELLS_TOGETHER", 3)
    shop.run(equal=False)
    assert [row[1] for row in shop.rows("numbered")] == [1] * 7

    shop.land("2024-03-02T01:00:00Z", "2024-03-05T02:00:00Z")
    shop.run(equal=False)

    assert sorted(row[1] for row in shop.rows("numbered")) == [1] * 7 + [2] * 2


def test_a_refused_model_can_be_rebuilt_completely_once(shop: DailyProject) -> None:
    """A refused model is rebuilt completely with the flag, and refused again without it."""
    numbered = "SELECT cast(ts AS date) AS day, row_number() OVER (ORDER BY ts, id) AS n FROM {}"
    shop.models(numbered=model(numbered.format("raw.clicks")))
    shop.land(*days("2024-03-01", 3))
    with pytest.raises(InfoldError, match="window-over-cells"):
        shop.run()

    result = shop.run(downgrade=True)
    assert "built whole" in " ".join(result.plans[0].notes)
    shop.land("2024-02-01T00:00:00Z")
    shop.run(downgrade=True)

    assert [row[1] for row in shop.rows("numbered")] == [1, 2, 3, 4]


def test_a_cron_builds_at_its_ticks_and_complete_days_only(shop: DailyProject) -> None:
    """With a daily cron at five, nothing is built between ticks, nor the day that has not ended."""
    shop.models(daily=model(DAILY, "{cron: '0 5 * * *'}"), eager=model(DAILY))
    shop.land(*days("2024-03-01", 3, "01:00"))
    shop.run(as_of="2024-03-03T06:00")
    assert [row[0].day for row in shop.rows("daily")] == [1, 2]
    assert len(shop.rows("eager")) == 3

    shop.land("2024-03-01T02:00:00Z")
    shop.run(as_of="2024-03-03T07:00")
    assert shop.plan("2024-03-03T07:00")["daily"] == "not due before 2024-03-04 05:00"
    assert sum(row[1] for row in shop.rows("daily")) == 2
    shop.run(as_of="2024-03-03T07:00", ignore_cron=True)
    assert sum(row[1] for row in shop.rows("daily")) == 4

    shop.land("2024-03-03T03:00:00Z", "2024-03-04T03:00:00Z")
    shop.run(as_of="2024-03-04T05:00")
    assert [row[1] for row in shop.rows("daily")] == [2, 1, 2]
    assert shop.plan("2024-03-05T04:00")["daily"] == "not due before 2024-03-05 05:00"
    assert shop.plan("2024-03-05T05:00")["daily"] == "recompute"


def test_the_interval_of_a_run_is_unbounded(shop: DailyProject) -> None:
    """The interval variables of a run cover all time, so a
    filter by another column loses no late row.
    """
    asked = """SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks
    WHERE day BETWEEN @start_ds AND @end_ds AND ts >= @start_ts AND ts < @end_ts GROUP BY 1"""
    shop.models(asked=model(asked))
    shop.land(*days("2024-03-01", 2))
    shop.run()
    shop.land("2024-03-01T01:00:00Z", day="2024-06-01")
    shop.run()

    assert [row[1] for row in shop.rows("asked")] == [2, 1]


def test_append_refuses_a_cell_with_rows(shop: DailyProject) -> None:
    """The append strategy refuses a cell that has rows, because they would be duplicated."""
    shop.models(daily=model(DAILY, "{strategy: append}"))
    shop.land("2024-03-01T10:00:00Z")
    shop.run()
    shop.land("2024-03-02T10:00:00Z")
    shop.run()
    assert len(shop.rows("daily")) == 2

    shop.land("2024-03-02T11:00:00Z")
    with pytest.raises(InfoldError, match="append"):
        shop.run()


def test_a_dead_run_that_made_the_table_leaves_none_of_its_rows(shop: DailyProject) -> None:
    """A first load that dies after its commit never happened: none of its rows stays."""
    shop.models(daily=model(DAILY, "{strategy: append, batch_size: 1}"))
    shop.land(*days("2024-03-01", 3))
    second = PlanOptions(window=window("2024-03-02", "2024-03-03"))
    with living(met=AllBut([("daily", "table daily: after commit")])) as life:
        api.run(shop.project(), asked=second, progress=life, jobs=1)
    assert life.dead

    shop.run(window=window("2024-03-03", "2024-03-04"))
    assert [(row[0].day, row[1]) for row in shop.rows("daily")] == [(3, 1)]
    shop.run()
    assert [(row[0].day, row[1]) for row in shop.rows("daily")] == [(1, 1), (2, 1), (3, 1)]


def test_another_definition_in_a_window_leaves_the_table(shop: DailyProject) -> None:
    """A changed definition with a window leaves the table
    as it was, with rows of the old definition only.
    """
    shop.models(daily=model(DAILY))
    shop.land(*days("2024-03-01", 4))
    shop.run()
    shop.models(daily=model(DAILY.replace("count(*) AS n", "count(*) AS n, max(id) AS last")))

    shop.run(window=window("2024-03-02", "2024-03-03"))  # verified by the old definition
    assert [(row[0].day, len(row)) for row in shop.rows("daily")] == [(n, 3) for n in (1, 2, 3, 4)]
    shop.run()

    assert [(row[0].day, len(row)) for row in shop.rows("daily")] == [(n, 4) for n in (1, 2, 3, 4)]


def test_restating_cuts_off_what_stayed_the_same(shop: DailyProject) -> None:
    """A restated model with the same result does not rebuild its downstream tables."""
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land(*days("2024-03-01", 5))
    shop.run()

    asked = restate(shop.project(), ["daily"], window("2024-03-02", "2024-03-04")).options
    result = shop.run(asked=asked)

    assert [step.model for step, _ in result.steps] == ["daily"]
    assert (result.receipt.cells_built, result.receipt.cells_cut_off) == (2, 2)


def test_restating_an_events_model_reads_all_files(shop: DailyProject) -> None:
    """To restate a model that ingests files reads all of
    them; with the same result nothing downstream is built.
    """
    events = "SELECT id, who, ts FROM raw.clicks"
    head = "materialization: events\nunique_key: id\ntimeseries: {event_time_column: ts}"
    shop.models(clicks=f"---\n{head}\n---\n{events}\n")
    shop.models(daily=model("SELECT cast(ts AS date) AS day, id FROM clicks"))
    shop.land(*days("2024-03-01", 2))
    shop.run()
    shop.land(*days("2024-03-02", 2))
    shop.run()

    result = shop.run(asked=restate(shop.project(), ["clicks"], None).options)

    assert [step.model for step, _ in result.steps] == ["clicks"]
    assert len(shop.rows("daily")) == 4


def test_backbuilding_reads_upstream_what_the_target_needs(shop: DailyProject) -> None:
    """Backbuild of six more days builds upstream first the days that the target's bound reads."""
    shop.models(daily=model(DAILY), rolling=model(ROLLING))
    shop.land(*days("2024-03-01", 20))
    shop.run()

    again = backbuild(shop.project(), ["+rolling"], window("2024-03-10", "2024-03-12"))
    result = shop.run(asked=again.options)

    assert again.options.restated["daily"] == Ranges((window("2024-03-04", "2024-03-12"),))
    assert [(step.model, receipt.cells_built) for step, receipt in result.steps] == [
        ("daily", 8),
        ("rolling", 2),
    ]


def test_hours_in_monthly_partitions_lose_nothing(shop: DailyProject) -> None:
    """Late rows in hourly cells, which share monthly partitions, lose no row of other hours."""
    hourly = "SELECT date_trunc('hour', ts) AS hour, count(*) AS n FROM raw.clicks GROUP BY 1"
    monthly = "SELECT date_trunc('month', hour) AS month, sum(n) AS n FROM hourly GROUP BY 1"
    shop.models(
        hourly=model(hourly, column="hour", granularity="hour"),
        monthly=model(monthly, column="month", granularity="month"),
    )
    shop.land(*days("2024-01-30", 4), *days("2024-01-30", 4, "13:59"))
    shop.run()
    shop.land("2024-01-31T12:30:00Z", "2024-02-29T23:59:59Z")

    result = shop.run(batch_size=24)

    assert (cells(result, "hourly"), commits(result, "hourly")) == (3, 2)
    assert [row[1] for row in shop.rows("monthly")] == [5, 5]  # and hours of other days are there


REVENUE = """SELECT
  CAST(transaction_timestamp AS DATE) as revenue_date,
  user_id,
  COUNT(*) as transaction_count,
  SUM(amount) as total_revenue,
  AVG(amount) as avg_transaction_amount,
  MIN(transaction_timestamp) as first_transaction,
  MAX(transaction_timestamp) as last_transaction
FROM raw.transactions
WHERE transaction_timestamp IS NOT NULL
GROUP BY 1, 2
ORDER BY 1, 2
"""
SMELT = """
name: shop
sources:
  raw.transactions:
    path: landing/*.csv
    event_time_column: transaction_timestamp
    columns: {transaction_timestamp: timestamp, user_id: int, amount: "decimal(18,2)"}
models:
  daily_revenue:
    materialization: table
    timeseries:
      event_time_column: transaction_timestamp
      partition_column: revenue_date
      granularity: day
    incremental:
      enabled: true
"""


def test_the_example_of_smelt(shop: DailyProject) -> None:
    """The example of smelt works with its source declared and its FROM renamed."""
    (shop.root / "infold.yml").write_text(SMELT)
    shop.models(daily_revenue=REVENUE)
    file = shop.root / "landing" / "1.csv"
    head = "transaction_timestamp,user_id,amount\n"
    file.write_text(f"{head}2025-01-15T10:00:00Z,1,2.00\n2025-01-16T10:00:00Z,1,3.00\n")

    shop.run(window=window("2025-01-15", "2025-01-16"))
    assert [row[0].day for row in shop.rows("daily_revenue")] == [15]
    shop.run()
    (shop.root / "landing" / "2.csv").write_text(f"{head}2025-01-15T09:00:00Z,1,4.00\n")
    result = shop.run()

    assert cells(result, "daily_revenue") == 1
    assert [str(row[4]) for row in shop.rows("daily_revenue")] == ["3.000000", "3.000000"]


@pytest.mark.parametrize("jobs", [None, 3])
def test_concurrent_models_wait_for_what_they_read(shop: DailyProject, jobs: int | None) -> None:
    """Models of one source are built at once, and what reads one of them comes after it."""
    hours = "SELECT date_trunc('hour', ts) AS hour, count(*) AS n FROM raw.clicks GROUP BY 1"
    people = "SELECT cast(ts AS date) AS day, who, count(*) AS n FROM raw.clicks GROUP BY 1, 2"
    shop.models(daily=model(DAILY), rolling=model(ROLLING), people=model(people))
    shop.models(hours=model(hours, column="hour", granularity="hour"))
    for late in ("2024-03-01", "2024-03-03"):
        shop.land(*days(late, 4))
        result = api.run(shop.project(), jobs=jobs)
        shop.verify()

        order = [step.model for step, _ in result.steps]
        assert order.index("rolling") > order.index("daily")
        assert sorted(order) == ["daily", "hours", "people", "raw.clicks", "rolling"]
        # One for the source, for each of two waves of models, and one without a step.
        assert len(result.plans) == 4


WHERE_OTHERS_GO_WRONG = {
    # A filter pasted behind an OR, or into the last branch of a UNION alone, reads all days.
    "either": "SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks "
    "WHERE who = 'ann' OR who = 'bob' GROUP BY 1",
    "both": "SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE who = 'ann' UNION ALL "
    "SELECT cast(ts AS date) AS day, id FROM raw.clicks WHERE who <> 'ann'",
    # The clamp in one SELECT with a window would cut off what the window looks at.
    "hours": "SELECT cast(ts AS date) AS day, id, count(*) OVER (ORDER BY ts "
    "RANGE BETWEEN INTERVAL 36 HOURS PRECEDING AND CURRENT ROW) AS n FROM raw.clicks",
    # The right side of a LEFT JOIN, read too narrowly, gives NULLs; a self join is ambiguous.
    "before": "SELECT a.day, a.n - b.n AS more FROM daily AS a "
    "LEFT JOIN daily AS b ON b.day = a.day - INTERVAL 1 DAY",
    # A filter below the wrong scope: the CTE is read for two different stretches.
    "twice": "WITH d AS (SELECT cast(ts AS date) AS day, count(*) AS n FROM raw.clicks GROUP BY 1) "
    "SELECT a.day, sum(b.n) AS n FROM d AS a JOIN d AS b "
    "ON b.day BETWEEN date_sub(a.day, 2) AND a.day GROUP BY a.day",
    # A session over midnight, cut where the day ends.
    "starts": "SELECT cast(ts AS date) AS day, id, CASE WHEN ts - lag(ts) OVER "
    "(PARTITION BY who ORDER BY ts, id) <= INTERVAL 30 MINUTES THEN 0 ELSE 1 END AS starts "
    "FROM raw.clicks",
    # Rows of a day that has no other row must not keep a row of the day before.
    "quiet": "SELECT d.day FROM daily AS d LEFT ANTI JOIN daily AS e "
    "ON e.day = d.day + INTERVAL 1 DAY",
}


def test_cases_that_other_tools_get_wrong(shop: DailyProject) -> None:
    """After late rows, removed rows, holes, batches and windows every table equals a rebuild."""
    shop.models(daily=model(DAILY, "{unique_key: day}"))
    shop.models(**{name: model(sql) for name, sql in WHERE_OTHERS_GO_WRONG.items()})
    shop.land("2024-03-01T23:50:00Z", "2024-03-02T00:10:00Z", "2024-03-05T12:00:00Z")
    shop.land("2024-03-02T00:05:00Z", "2024-03-09T00:00:00Z", who="bob")
    shop.run(batch_size=2)

    gone = shop.land("2024-03-04T23:59:59.999999Z", "2024-03-10T00:00:00Z")  # a hole is filled
    shop.run(window=window("2024-03-04", "2024-03-06"))
    shop.run()

    (shop.root / "landing" / gone).unlink()
    shop.land("2024-02-28T12:00:00Z", "2024-03-01T11:00:00Z", who="bob")
    result = shop.run(batch_size=3)

    assert cells(result, "either") < 12
    shop.models(both=model(WHERE_OTHERS_GO_WRONG["both"].replace("AS day, id", "AS day, who, id")))
    shop.run()


def test_a_model_with_an_earlier_cron_than_its_input_is_corrected(shop: DailyProject) -> None:
    """A model that is built before its input has the day is built again once it has."""
    shop.models(
        daily=model(DAILY, "{cron: '0 5 * * *'}"), rolling=model(ROLLING, "{cron: '0 0 * * *'}")
    )
    shop.land(*days("2024-03-01", 2, "01:00"))
    shop.run(as_of="2024-03-03T06:00")
    shop.land("2024-03-01T02:00:00Z")

    shop.run(as_of="2024-03-04T00:30")
    assert [row[2] for row in shop.rows("rolling")] == [1, 2]
    shop.run(as_of="2024-03-04T05:30")

    assert [row[2] for row in shop.rows("rolling")] == [2, 3]


class TestBackfillLimit:
    """With a backfill limit, each run builds a part of the
    backlog, and new rows do not wait for it.
    """

    def test_a_backlog_is_built_in_parts_while_new_rows_arrive(self, shop: DailyProject) -> None:
        """A gap longer than the limit is built over several
        runs; in the end every table equals its rebuild.
        """
        shop.models(daily=model(DAILY, "{backfill_limit: 2 days}", "day"))
        shop.land("2024-03-01 10:00", "2024-03-02 10:00", day="2024-03-01")
        shop.land("2024-03-03 10:00", "2024-05-20 10:00", day="2024-03-03")

        first = shop.run()
        kept = [row[0] for row in shop.rows("daily")]
        shop.land("2024-05-28 10:00")
        second = shop.run()

        standing = {entry.model: entry for entry in first.model_states}["daily"]
        assert (standing.state, standing.upper) == ("first run", parse_instant_text("2024-03-03"))
        assert kept == [dt.date(2024, 3, 1), dt.date(2024, 3, 2)]
        assert {entry.model: str(entry.state) for entry in second.model_states} == {
            "raw.clicks": "standard run",
            "daily": "out of sync",
        }
        assert [row[0] for row in shop.rows("daily")] == [
            dt.date(2024, 3, 1),
            dt.date(2024, 3, 2),
            dt.date(2024, 3, 3),
            dt.date(2024, 5, 28),
        ]
        third = shop.run()
        assert len(shop.rows("daily")) == 5
        assert not shop.run().steps
        assert len(third.steps) == 1
