"""What is compared with a rebuild is of one moment, and what a run did is no difference."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.running.standing_tables import day, drop, put, stand_up
from tests.spark.events.clicks_project import ClicksProject
from tests.spark.project import events, sessions
from tests.spark.time_range.daily_project import DAILY, ROLLING, DailyProject, model

from infold import api
from infold.core.interval import DAY
from infold.core.model import Source
from infold.core.ports import SilentProgress
from infold.core.project import Bound, Project
from infold.core.record import Outcome, Receipt
from infold.core.report import Verdict, VerificationReport
from infold.core.trace import CellChange, Trace
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.render.json_shapes import pair_rows
from infold.spark.reading import source_rows
from infold.spark.verify import verify
from infold.spark.verify.compare import Comparison, compare
from infold.spark.verify.verify import (
    TRIES,
    Moment,
    Verifier,
    about_doubles,
    least_bounds,
    moment_of,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CLICKS = ("r1-1", 101)
"""The step and the snapshot of the first version of clicks."""


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Tables of clicks, sessions and days that stand, each built once."""
    return stand_up(tmp_path / "shop")


def moment(shop: Project, model: str) -> Moment:
    """The present moment of a model."""
    found = moment_of(shop, api.ledger_of(shop), api.lake_of(shop), shop[model])
    assert found is not None
    return found


def commit(shop: Project, number: int, *, counted: bool = True) -> None:
    """A step of a run commits a version of clicks; ``counted``: the ledger has it."""
    run, step = f"r{number}", f"r{number}-1"
    book = api.ledger_of(shop)
    book.acquire(run)
    book.begin_run(run, "run", 0, {})
    book.begin_step(run, step, 1, "clicks", "ingest", {})
    earlier = [(f"r{one}-1", 100 + one) for one in range(2, number)]
    put(shop, "clicks", step, 100 + number, CLICKS, *earlier)
    if counted:
        change = CellChange(day(number), 1, 0, 0, 1, 0, 9)
        trace = Trace("clicks", shop["clicks"].fingerprint)
        book.finish_step(step, Outcome("clicks", number, trace, (change,), snapshot=100 + number))
        book.finish_run(run, "done", Receipt())
    book.close()


def commit_of_nobody(shop: Project, operation: str) -> None:
    """A commit to clicks without a step, as another engine or a compaction makes it."""
    [path] = (shop.warehouse / shop.name / "clicks" / "metadata").glob("*.json")
    known = json.loads(path.read_text())
    summary = {"operation": operation}
    known["snapshots"].append({"snapshot-id": 900, "parent-snapshot-id": 101, "summary": summary})
    path.write_text(json.dumps({**known, "current-snapshot-id": 900}))


class TestMoment:
    """What the ledger knows of a table, and the snapshot that has these rows."""

    def test_it_has_all_of_a_version(self, shop: Project) -> None:
        """Trace, cells, files and rows are those of the newest version."""
        commit(shop, 2)

        found = moment(shop, "clicks")

        assert [state.cell for state in found.cells] == [day(0), day(1), day(2)]
        assert (found.snapshot, len(found.files)) == (102, 1)

    def test_a_step_that_the_ledger_does_not_count_yet_is_not_in_it(self, shop: Project) -> None:
        """Between the commit to a table and the one to the ledger, rows are those before."""
        commit(shop, 2, counted=False)

        assert moment(shop, "clicks").snapshot == 101

    @pytest.mark.parametrize("operation", ["append", "replace"])
    def test_what_others_wrote_is_compared(self, shop: Project, operation: str) -> None:
        """Rows that another engine added, or put into fewer files, are those that readers get."""
        commit_of_nobody(shop, operation)

        assert moment(shop, "clicks").snapshot == 900

    @pytest.mark.parametrize(
        ("model", "past"), [("clicks", True), ("sessions", True), ("daily", False)]
    )
    def test_it_is_past_once_a_run_changed_the_model_or_its_inputs(
        self, shop: Project, model: str, *, past: bool
    ) -> None:
        """A version of clicks ends the moments of clicks and of what reads them."""
        found = moment(shop, model)
        assert not found.is_past(api.ledger_of(shop))

        commit(shop, 2)

        assert found.is_past(api.ledger_of(shop)) is past

    def test_a_step_that_ends_between_two_questions_is_in_it_whole(
        self, shop: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No cells of one version come with the trace of another."""
        book, steps = api.ledger_of(shop), iter([2])
        cells = book.cells

        def cells_after_a_step(table: str) -> Any:
            for number in steps:
                commit(shop, number)
            return cells(table)

        monkeypatch.setattr(book, "cells", cells_after_a_step)
        found = moment_of(shop, book, api.lake_of(shop), shop["clicks"])

        assert found is not None
        assert (found.snapshot, len(found.cells)) == (102, 3)

    def test_dropped_tables(self, shop: Project) -> None:
        """It names a table that somebody dropped, be it the model's or an input's."""
        drop(shop, "sessions")

        assert [moment(shop, model).dropped for model in ("clicks", "sessions", "daily")] == [
            frozenset(),
            {"sessions"},
            {"sessions"},
        ]


@pytest.mark.parametrize(
    ("comparisons", "verdict"),
    [
        ("differs", "different"),  # where nothing moved, the first comparison decides
        ("run differs, equal", "equal"),
        ("run differs, differs", "different"),
        ("run equal", "equal"),  # it is of one moment: a run cannot make it equal
        ("run fails, equal", "equal"),  # what a run replaced cannot be read any more
        ("fails", "source-changed"),
        (", ".join(["run differs"] * TRIES), "open"),
    ],
)
def test_verdicts_beside_runs(
    shop: Project, monkeypatch: pytest.MonkeyPatch, comparisons: str, verdict: str
) -> None:
    """What differs, or cannot be read, while a run commits is compared again, and after some tries
    is said to be not compared.
    """
    results, runs = iter(comparisons.split(", ")), iter(range(2, 9))

    def compare(_: Verifier, node: Any, *__: object) -> Verdict:
        *run, found = next(results).split()
        if run:
            commit(shop, next(runs))
        if found == "fails":
            raise run_errors.source_changed(source="clicks", path="landing/a.json")
        return Verdict(node.name, node.model.kind, 0, 0, 0, equal=found == "equal", note="seen")

    monkeypatch.setattr(Verifier, "_verdict_or_damage", compare)
    spark: Any = None
    verifier = Verifier(spark, shop, api.ledger_of(shop), api.lake_of(shop), SilentProgress())

    def judge() -> str:
        report = VerificationReport(verifier.verify(frozenset({"clicks"}), None))
        [model] = report.models
        if report.equal or report.different:
            assert model.note == "seen"
            return "equal" if report.equal else "different"
        assert model.note == "a run changed it meanwhile, 3 times: verify it between two runs"
        return "open"

    if verdict == "source-changed":
        with pytest.raises(InfoldError, match=verdict):
            judge()
    else:
        assert judge() == verdict


MODELS = ("raw.clicks", "daily", "rolling")


@pytest.fixture
def clicks_shop(tmp_path: Path) -> DailyProject:
    """Clicks, their days, and a window over these, built."""
    found = DailyProject(tmp_path / "shop")
    found.models(daily=model(DAILY), rolling=model(ROLLING))
    found.land("2024-03-01T10:00:00Z", "2024-03-02T10:00:00Z")
    api.run(found.project())
    return found


@pytest.fixture
def comparisons(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[int]]:
    """Does something in the comparison of that number; the numbers of all that were made."""

    def do(what: Callable[[], object], *, at: int) -> list[int]:
        made: list[int] = []

        def patched(*frames: Any, **options: Any) -> Comparison:
            made.append(len(made))
            if made[-1] == at:
                what()
            return compare(*frames, **options)

        monkeypatch.setattr(verify, "compare", patched)
        return made

    return do


@pytest.mark.spark
def test_a_run_in_a_comparison_changes_no_verdict(
    clicks_shop: DailyProject, comparisons: Callable[..., list[int]]
) -> None:
    """
    A run commits new versions of all tables while one of them is compared: that one as it was
    then, and the next ones as they are by then, equal their rebuilds, each at once. Clicks cannot
    be rebuilt from a file that a run took out meanwhile, so they are compared once more.
    """

    def run() -> None:
        clicks_shop.land("2024-03-02T11:00:00Z")
        assert len(clicks_shop.go().steps) == len(MODELS)

    made = comparisons(run, at=0)
    clicks_shop.verify()
    assert len(made) == len(MODELS)

    late = clicks_shop.land("2024-03-03T10:00:00Z")
    clicks_shop.go()

    def take_out() -> None:
        (clicks_shop.root / "landing" / late).unlink()
        api.run(clicks_shop.project(), allow_removals=True)

    made = comparisons(take_out, at=0)
    clicks_shop.verify()
    assert len(made) == len(MODELS) + 1


SAMPLED = {
    "clicks": events("SELECT id, who, at, v FROM raw.clicks"),
    "visits": sessions(
        "user: who, gap: 30 minutes, session_number: true, quarantine_after: 40 minutes",
        "SELECT sum(v) AS total FROM clicks",
    ),
    "daily": model("SELECT CAST(at AS DATE) AS day, sum(v) AS v FROM clicks GROUP BY 1").replace(
        "event_time_column: day", "event_time_column: at"
    ),
}
BORDER = ("03T23:50", "04T00:10")
LONG = ("05T10:00", "05T10:25", "05T10:50")
"""A visit over the border of two days, and one that is too long."""


@pytest.mark.spark
def test_a_sample_is_of_its_cells(
    spark: SparkSession, warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Of a sample only files with rows in its cells are read, a visit is made of all its user's, and a
    changed row is found in each kind of table: in its cell, and in no other.
    """
    columns = "columns: {id: string, who: string, at: timestamp, v: int}"
    source = f"    event_time_column: at\n    {columns}\n"
    shop = ClicksProject(tmp_path / "shop", warehouse, "", source)
    shop.models(**SAMPLED)
    for number, times in enumerate((("02T10:00",), BORDER, BORDER[:1], LONG, ("06T10:00",))):
        who = "bob" if number == 4 else "ann"
        rows = [f"{at},{who},2024-03-{at}:00Z,1" for at in times]  # the third is a copy
        shop.write(f"landing/{number}.csv", "\n".join(["id,who,at,v", *rows]) + "\n")
    shop.go()
    files: list[int] = []
    read = source_rows.read

    def counted(spark: SparkSession, project: Project, source: Source, found: Any) -> Any:
        files.append(len(found))
        return read(spark, project, source, found)

    monkeypatch.setattr(source_rows, "read", counted)

    def differing(number: int) -> list[str]:
        """The tables that differ in the cells of a day of March."""
        monkeypatch.setattr(
            "random.sample",
            lambda cells, _: [one for one in cells if one.cell == day(number - 1)],
        )
        report = api.verify(shop.project(), sample=1)
        return [verdict.model for verdict in report.models if not verdict.equal]

    assert [differing(number) for number in (2, 3, 4, 5, 6)] == [[]] * 5
    assert files == [1, 2, 1, 1, 1]

    for change in (
        "clicks SET v = 7 WHERE CAST(at AS DATE)",
        "visits SET total = 8 WHERE CAST(session_start AS DATE)",
        "daily SET v = 9 WHERE day",
    ):
        spark.sql(f"UPDATE infold.{shop.project().name}.{change} = '2024-03-03'")
    assert {*differing(3)} == SAMPLED.keys()
    assert differing(6) == []


@pytest.mark.parametrize("key", [("id",), ()])
@pytest.mark.spark
def test_each_row_beside_its_rebuild(spark: SparkSession, key: tuple[str, ...]) -> None:
    """Of many different rows verify shows some, each beside
    its rebuild, with the one value that differs.
    """
    same = "id, concat('user ', id % 7) AS user, TIMESTAMP '2024-03-09 12:00:00+00:00' AS at"
    stored = spark.sql(f"SELECT {same}, id AS n FROM range(50)")
    rebuilt = spark.sql(f"SELECT {same}, id + 1 AS n FROM range(50)")

    found = compare(stored, rebuilt, None, None, key)

    pairs = pair_rows(found.sample, key)
    assert [list(pair.differing) for pair in pairs] == [["n"]] * 5
    assert all(
        pair.stored and pair.stored["at"].isoformat()[10:] == "T12:00:00+00:00" for pair in pairs
    )


@pytest.mark.parametrize(
    ("total", "n", "differing", "said"),
    [
        ("3 + id", "id", 0, "1 cell equal but for the last digits of doubles"),
        ("1", "id", 1, "only doubles differ"),
        ("1", "id + 1", 1, ""),
    ],
)
@pytest.mark.spark
def test_sums_of_doubles_that_cancel(
    spark: SparkSession, total: str, n: str, differing: int, said: str
) -> None:
    """Last digits are no difference; other ones are, and verify says where doubles alone differ."""
    stored = spark.sql("SELECT id AS n, 3D + id AS total FROM range(5)")
    rebuilt = spark.sql(f"SELECT {n} AS n, ({total}) * (1 + 1e-15D) AS total FROM range(5)")

    found = compare(stored, rebuilt, None, None)

    assert len(found.differing) == differing
    assert [note.partition(": ")[0] for note in about_doubles(found)] == ([said] if said else [])


@pytest.mark.spark
def test_columns_that_are_left_out(spark: SparkSession) -> None:
    """They are not compared, though they count in what is known of stored rows; the others are."""
    stored = spark.sql("SELECT id, rand() AS r FROM range(50)").cache()
    rebuilt = spark.sql("SELECT id, rand() AS r FROM range(50)")
    other = spark.sql("SELECT id + 1 AS id, rand() AS r FROM range(50)")
    alone = compare(stored, stored, None, None)

    for left_out in (("R",), ("*",)):
        found = compare(stored, rebuilt, None, None, ("id",), left_out=left_out)
        assert (found.rows, found.content, found.differing) == (50, alone.content, ())
    assert compare(stored, other, None, None, left_out=("r",)).differing
    assert not compare(stored, other, None, None, left_out=("*",)).differing


FAR = Bound(1000 * DAY, 1000 * DAY)


@pytest.mark.parametrize(
    ("needed", "expected"),
    [
        (Bound(19 * DAY, 0), Bound(19 * DAY, 0)),
        (Bound(6 * DAY + 1, 0), Bound(7 * DAY, 0)),
        (Bound(0, 1), Bound(6 * DAY, DAY)),
        (Bound(999 * DAY + 1, 0), Bound(1000 * DAY, 0)),
        (Bound(300 * DAY, 17 * DAY), Bound(300 * DAY, 17 * DAY)),
    ],
)
def test_whole_days_no_longer_than_needed(needed: Bound, expected: Bound) -> None:
    """Each side is as short as it may be, in whole days; no side is shorter than declared."""
    tried: list[Bound] = []

    def is_enough(bounds: Mapping[str, Bound]) -> bool:
        tried.append(bounds["daily"])
        return bounds["daily"].widest(needed) == bounds["daily"]

    assert least_bounds({"daily": Bound(6 * DAY, 0)}, FAR, DAY, is_enough) == {
        "daily": expected.widest(Bound(6 * DAY, 0))
    }
    assert len(tried) <= 45


def test_an_input_that_needs_no_more_keeps_its_bound() -> None:
    """Of two inputs the one that is read far enough stays as declared."""
    found = least_bounds(
        {"clicks": Bound(), "orders": Bound()}, FAR, DAY, lambda b: b["orders"].before >= 3 * DAY
    )
    assert found == {"clicks": Bound(), "orders": Bound(3 * DAY, 0)}


def test_where_nothing_is_enough() -> None:
    """Rows that no length reaches have no bounds."""
    assert least_bounds({"daily": Bound()}, FAR, DAY, lambda b: False) is None
