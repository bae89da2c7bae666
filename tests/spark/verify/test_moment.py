"""What is compared with a rebuild is of one moment, and what a run did is no difference."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.running.standing_tables import day, drop, put, stand_up

from infold import api
from infold.core.ports import SilentProgress
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.report import Verdict, VerificationReport
from infold.core.trace import CellChange, Trace
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.spark.verify.verify import TRIES, Moment, Verifier, moment_of

CLICKS = ("r1-1", 101)
"""The step and the snapshot of the first version of clicks."""


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """Tables of clicks, sessions and days that stand, each built once."""
    return stand_up(tmp_path / "shop")


def moment(shop: Project, model: str) -> Moment:
    """The present moment of a model."""
    found = moment_of(shop, api.ledger(shop), api.lake(shop), shop[model])
    assert found is not None
    return found


def commit(shop: Project, number: int, *, counted: bool = True) -> None:
    """A step of a run commits a version of clicks; ``counted``: the ledger has it."""
    run, step = f"r{number}", f"r{number}-1"
    book = api.ledger(shop)
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
        assert not found.is_past(api.ledger(shop))

        commit(shop, 2)

        assert found.is_past(api.ledger(shop)) is past

    def test_a_step_that_ends_between_two_questions_is_in_it_whole(
        self, shop: Project, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No cells of one version come with the trace of another."""
        book, steps = api.ledger(shop), iter([2])
        cells = book.cells

        def cells_after_a_step(table: str) -> Any:
            for number in steps:
                commit(shop, number)
            return cells(table)

        monkeypatch.setattr(book, "cells", cells_after_a_step)
        found = moment_of(shop, book, api.lake(shop), shop["clicks"])

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


class TestVerdictsBesideRuns:
    """Runs that go on while tables are compared."""

    @pytest.fixture
    def verified(
        self, shop: Project, monkeypatch: pytest.MonkeyPatch
    ) -> Callable[..., VerificationReport]:
        """The report on clicks, where each comparison comes to the next of some results."""

        def verify(*found: Callable[[], bool]) -> VerificationReport:
            results = iter(found)

            def compare(_: Verifier, node: Any, __: Moment, ___: int | None) -> Verdict:
                equal = next(results)()
                return Verdict(node.name, node.model.kind, 0, 0, 0, equal=equal, note="seen")

            monkeypatch.setattr(Verifier, "_verdict_or_damage", compare)
            spark: Any = None
            book, lake = api.ledger(shop), api.lake(shop)
            verifier = Verifier(spark, shop, book, lake, SilentProgress())
            return VerificationReport(verifier.verify(frozenset({"clicks"}), None))

        return verify

    @pytest.fixture
    def runs(self, shop: Project) -> Callable[[], bool]:
        """A run that commits a version of clicks; then they are not equal."""
        numbers = iter(range(2, 9))

        def run() -> bool:
            commit(shop, next(numbers))
            return False

        return run

    def test_a_difference_without_a_run_is_one(
        self, verified: Callable[..., VerificationReport]
    ) -> None:
        """Where nothing moved, the first comparison decides."""
        report = verified(lambda: False)

        assert (report.different, [one.note for one in report.models]) == (True, ["seen"])

    def test_a_difference_beside_a_run_is_looked_at_again(
        self, verified: Callable[..., VerificationReport], runs: Callable[[], bool]
    ) -> None:
        """What differed while a run committed is compared again."""
        assert verified(runs, lambda: True).equal
        assert verified(runs, lambda: False).different

    def test_equal_beside_a_run_is_equal(
        self, verified: Callable[..., VerificationReport], runs: Callable[[], bool]
    ) -> None:
        """What is compared is of one moment, so a run cannot make it equal: once is enough."""
        assert verified(lambda: not runs()).equal

    def test_an_error_beside_a_run_is_none(
        self, verified: Callable[..., VerificationReport], runs: Callable[[], bool]
    ) -> None:
        """What a run replaced or expired cannot be read any more; the next moment can."""

        def fails() -> bool:
            raise run_errors.source_changed(source="clicks", path="landing/a.json")

        assert verified(lambda: runs() or fails(), lambda: True).equal
        with pytest.raises(InfoldError, match="source-changed"):
            verified(fails)

    def test_runs_that_do_not_end_leave_it_open(
        self, verified: Callable[..., VerificationReport], runs: Callable[[], bool]
    ) -> None:
        """After some tries a table is said to be not compared: neither equal nor different."""
        report = verified(*[runs] * TRIES)

        assert (report.equal, report.different) == (False, False)
        assert [one.note for one in report.models] == [
            "a run changed it meanwhile, 3 times: verify it between two runs"
        ]
