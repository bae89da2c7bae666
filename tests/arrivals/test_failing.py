"""
Runs in which models fail: models that do not read them are built, and the next run builds the rest.
Of tables with a cron what was begun at a tick is completed, and no more.

Without Spark, as ``test_dry``: the runner, the planner and the ledger are the program's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.dry import DryEngine, DryPlay, play_through
from tests.arrivals.programs import Op, Program, programs
from tests.arrivals.shapes import SHAPES

from infold.core.interval import DAY, MINUTE, Interval, parse_instant_text
from infold.core.model import Incremental, Kind
from infold.core.plan import PlanOptions, Step
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.report import RunFailed, RunResult
from infold.messages import catalog_errors, errors, run_errors
from infold.messages.analyser_findings import refused_by_spark
from infold.planning.planner import plan
from infold.running.concurrent_batches import CommitTurn
from infold.running.execute import Runner
from infold.running.request import MOST_STEPS
from infold.running.run_progress import RunProgress

EXAMPLES = settings().max_examples // 5
Chosen = Callable[[Step], BaseException | None]


@contextmanager
def failing(chosen: Chosen) -> Iterator[None]:
    """Steps for which ``chosen`` has an error fail with it."""
    real = DryEngine.carry_out

    def carry_out(self: DryEngine, step: Step, *more: Any) -> Any:
        error = chosen(step)
        if error is not None:
            raise error
        return real(self, step, *more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DryEngine, "carry_out", carry_out)
        yield


def refusal(model: str) -> errors.InfoldError:
    """A refusal of one model."""
    return run_errors.append_would_repeat(model=model, cells=1, first="2024-03-01")


@pytest.fixture
def play(tmp_path: Path) -> DryPlay:
    """Clicks, sessions by them, tables by these, and a lookup; two files are there."""
    found = DryPlay(SHAPES["fold"], tmp_path, "fold", tmp_path, 6)
    for number in range(2):
        found.arrive(Random(number))
    return found


def stored(play: DryPlay) -> set[str]:
    """The models that have a table."""
    return {node.name for node in play.project if node.model.kind is not Kind.VIEW}


def failed(play: DryPlay, chosen: Chosen, fail_fast: bool = False) -> RunFailed:
    """The end of a run in which steps fail."""
    play.fail_fast = fail_fast
    with failing(chosen), pytest.raises(RunFailed) as caught:
        play._run(None, ())
    play.fail_fast = False
    return caught.value


def test_models_that_do_not_read_it_are_built(play: DryPlay) -> None:
    """When a model fails, only its direct and indirect readers are not tried; the next run builds
    what the failed one left, and nothing else.
    """
    first = "sessions"

    end = failed(play, lambda step: ArithmeticError("no") if step.model == first else None)

    result, below = end.result, play.shape.downstream([first])
    assert (end.exit_code, result.state) == (1, "failed")
    assert [failure.model for failure in result.failures] == [first]
    assert dict(result.not_tried) == dict.fromkeys(below, (first,))
    assert set(result.up_to_date) == stored(play) - below - {first}
    assert {step.model for step, _ in result.steps} == set(result.up_to_date)
    assert result.receipt.read == sum(receipt.read for _, receipt in result.steps) > 0

    again = play._run(None, ())
    assert {step.model for step, _ in again.steps} == {first, *below}
    assert not play._run(None, ()).steps


def test_what_stays_stale_fails_alone(play: DryPlay, monkeypatch: pytest.MonkeyPatch) -> None:
    """After some steps that leave it as stale as it was it has failed, and all others are built."""
    play._run(None, ())
    play.lookup(Random(1))
    play.arrive(Random(7))
    real = DryEngine.carry_out

    def idle(self: DryEngine, step: Step, *more: Any) -> Outcome:
        if step.model != "raw.pages":
            return real(self, step, *more)
        assert step.previous_trace is not None
        return Outcome(step.model, step.version, step.previous_trace, committed=False)

    monkeypatch.setattr(DryEngine, "carry_out", idle)
    result = failed(play, lambda _: None).result

    assert [one.model for one in result.failures] == ["raw.pages"]
    done = [step.model for step, _ in result.steps]
    assert done.count("raw.pages") == MOST_STEPS + 1
    assert {"clicks", "sessions"} <= {*done}


def test_a_failed_compaction_is_a_note(play: DryPlay, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run has done its work, and says so."""
    monkeypatch.setattr(DryEngine, "maintain", lambda _, models: [f"{models[0]}: not compacted"])

    result = play._run(None, ())

    assert result.state == "done"
    assert "raw.pages: not compacted" in result.notes


def test_only_a_run_that_wrote_nothing_is_refused(play: DryPlay) -> None:
    """A refusal beside something built is exit code 1, and 3 where nothing was written."""

    def chosen(step: Step) -> BaseException | None:
        return refusal(step.model) if step.model == "sessions" else None

    beside, alone = failed(play, chosen), failed(play, chosen)

    assert (beside.exit_code, beside.result.state) == (1, "failed")
    assert (alone.exit_code, alone.result.state) == (3, "refused")
    assert alone.result.steps == ()
    assert alone.record["slug"] == "append-would-repeat"
    book = play.ledger
    assert [run.state for run in book.runs(2)] == ["refused", "failed"]
    assert book.runs(2)[1].receipt.read == beside.result.receipt.read
    book.close()


def test_fail_fast_stops_at_the_first(play: DryPlay) -> None:
    """With `--fail-fast` no step begins after the first failure."""
    end = failed(play, lambda step: refusal(step.model), fail_fast=True)

    assert len(end.result.failures) == 1
    assert end.result.steps == ()
    assert end.result.not_tried


@contextmanager
def judging(wrong: Sequence[str]) -> Iterator[list[set[str]]]:
    """Of these models the definition is wrong; what was asked of the judge, in order."""
    asked: list[set[str]] = []

    def judge(_self: DryEngine, models: Sequence[str]) -> dict[str, errors.InfoldError]:
        assert len(set(models)) == len(models)
        asked.append(set(models))
        at = errors.Spot("models/m.sql")
        return {
            m: refused_by_spark(at, model=m, why="no", condition="NO") for m in wrong if m in models
        }

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(DryEngine, "analyse", judge)
        yield asked


def test_a_wrong_definition_is_reported_before_any_step(play: DryPlay) -> None:
    """A wrong definition begins no step, all other models are built, and the exit code is 2."""
    with judging(["sessions"]) as asked, pytest.raises(RunFailed) as caught:
        play._run(None, ())

    end, below = caught.value, play.shape.downstream(["sessions"])
    assert end.exit_code == end.record["exit_code"] == 2
    assert end.result.state == "failed"
    assert [failure.model for failure in end.result.failures] == ["sessions"]
    assert {model for model, _ in end.result.not_tried} == below
    assert {step.model for step, _ in end.result.steps} == stored(play) - below - {"sessions"}
    assert asked == [{node.name for node in play.project}]


def test_a_wrong_definition_beside_other_failures(play: DryPlay) -> None:
    """With `--fail-fast` it stops the run before any step; the exit code is that of a wrong
    definition only if nothing else fails.
    """
    play.fail_fast = True
    with judging(["sessions"]):
        with pytest.raises(RunFailed) as caught:
            play._run(None, ())
        end = failed(play, lambda step: ArithmeticError() if step.model == "clicks" else None)

    assert caught.value.result.steps == ()
    assert end.exit_code == 1


def test_a_wrong_view_blocks_its_readers(tmp_path: Path) -> None:
    """A wrong view is the failure, and the stored models downstream of it are not tried."""
    play = next(p for p in _plays(tmp_path) if any(_views(p)))
    view = next(_views(play))
    play.arrive(Random(0))
    with judging([view]), pytest.raises(RunFailed) as caught:
        play._run(None, ())

    assert [failure.model for failure in caught.value.result.failures] == [view]
    assert {model for model, _ in caught.value.result.not_tried} == {
        name for name in play.project.downstream([view]) if name in stored(play)
    }


def _plays(folder: Path) -> Iterator[DryPlay]:
    return (DryPlay(shape, folder / name, name, folder, 6) for name, shape in SHAPES.items())


def _views(play: DryPlay) -> Iterator[str]:
    return (node.name for node in play.project if node.model.kind is Kind.VIEW)


def test_a_definition_is_judged_once(play: DryPlay) -> None:
    """Definitions are judged once: not again for late rows,
    and with their readers when a query changes.
    """
    changed = "daily"
    with judging([]) as asked:
        play._run(None, ())
        asked.clear()
        play.arrive(Random(7))
        assert play._run(None, ()).steps
        assert not asked
        play._declare(changed, play.versions[changed] + 1)
        play._run(None, ())

    assert changed in asked[0]
    assert asked == [{changed, *play.project.downstream([changed])}]


def test_a_lost_lease_ends_the_run(play: DryPlay) -> None:
    """A lost lease ends the run, and the result has the steps that were done before; an error in
    infold itself fails one model.
    """
    internal = failed(play, lambda step: KeyError("oh") if step.model == "sessions" else None)
    assert (internal.slug, bool(internal.result.steps)) == ("internal", True)
    play.arrive(Random(5))
    end = failed(
        play, lambda step: run_errors.lease_lost("r") if step.model == "sessions" else None
    )

    assert end.slug == "lease-lost"
    assert [failure.model for failure in end.result.failures] == [""]
    assert end.result.steps


def test_a_commit_whose_answer_was_lost_may_come_later(
    play: DryPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knows after the run whether it happens; it does, and the next run finds that out."""
    play._run(None, ())
    play.arrive(Random(7))
    commit, late = play.memory.commit, list[Callable[[], int]]()

    def lost(table: str, *more: Any, **how: Any) -> int:
        if table != "sessions":
            return commit(table, *more, **how)
        late.append(lambda: commit(table, *more, **how))
        raise catalog_errors.answer_lost(key="catalog", at="there", why="no answer")

    monkeypatch.setattr(play.memory, "commit", lost)
    with pytest.raises(RunFailed, match="catalog-answer-lost"):
        play._run(None, ())
    monkeypatch.undo()
    [comes] = late
    comes()

    again = play.run(Op("all", 0))

    assert any(note.startswith("sessions: a step that a dead run had") for note in again.notes)
    assert not play.run(Op("all", 0)).steps


def test_steps_after_batches_that_failed_together_have_numbers_of_their_own(
    play: DryPlay, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches that fail together are one failure of their
    model, and later steps have numbers of their own.
    """
    runner = play.runner(play.ledger)
    course = RunProgress("run", play.project, PlanOptions())
    todo = plan(play.project, runner.observer.observe())
    step = todo.steps[0]
    numbers: list[int] = []

    def attempt(
        _self: Runner, _run: str, seq: int, step: Step, _engine: object, _turn: CommitTurn
    ) -> errors.InfoldError:
        numbers.append(seq)
        return refusal(step.model)

    monkeypatch.setattr(Runner, "_try_step", attempt)
    engine = runner.engine("run", todo)
    for size in (3, 2):
        runner._execute_steps(course, size, [(step, CommitTurn(step.cells))] * size, engine)

    assert sorted(numbers) == [1, 2, 3, 4, 5]
    assert len(course.failures) == 1


def test_a_failed_search_for_a_lookups_keys_fails_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When a lookup's changed keys cannot be searched for,
    its reader fails and all others are built.
    """
    play = DryPlay(SHAPES["fold"], tmp_path, "fold", tmp_path, 6)
    play.arrive(Random(0))
    play._run(None, ())
    play.lookup(Random(1))
    play.arrive(Random(2))

    def find(*_: object) -> None:
        raise ArithmeticError("no")

    monkeypatch.setattr(DryEngine, "find_changed_keys", find)
    readers = {n.name for n in play.project if any(n.matches_of(e.name) for e in n.inputs)}
    with pytest.raises(RunFailed) as caught:
        play._run(None, ())

    assert {failure.model for failure in caught.value.result.failures} <= readers
    assert caught.value.result.steps


@pytest.mark.deep
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=5, rounds=(2, 5)),
    seed=st.integers(0, 2**20),
    jobs=st.sampled_from([None, 3]),
    shape=st.sampled_from(sorted(SHAPES)),
)
def test_runs_that_fail_in_part_are_completed(
    shape: str, program: Program, seed: int, jobs: int | None
) -> None:
    """After runs in which random steps fail, a run without
    failures brings every table up to the reference.
    """
    random = Random(seed)

    class Failing(DryPlay):
        """Fails in part, then runs."""

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            fate = {name: random.random() < 0.3 for name in self.shape.tables}

            def chosen(step: Step) -> BaseException | None:
                late = fate.get(step.model) and random.random() < 0.6
                return refusal(step.model) if late else None

            with failing(chosen):
                try:
                    result = super()._run(window, terms)
                except RunFailed as end:
                    result = end.result
            names = {failure.model for failure in result.failures}
            assert names <= {name for name, fails in fate.items() if fails}
            assert not names & set(result.up_to_date)
            self._complete = False
            return super()._run(window, terms)

    play_through(Failing, SHAPES[shape], program, jobs=jobs)


class DueAtSix(DryPlay):
    """Days are built in batches, at six; it is a minute later."""

    @property
    def project(self) -> Project:
        """The project with a cron."""
        found = super().project
        cron = Incremental(cron="0 6 * * *", batch_size=2)
        nodes = (
            replace(node, model=replace(node.model, incremental=cron))
            if node.name == "daily"
            else node
            for node in found
        )
        return replace(found, nodes=tuple(nodes))

    def __post_init__(self) -> None:
        super().__post_init__()
        for number in range(6):
            self.arrive(Random(number))
        self.world.as_of = parse_instant_text("2024-03-11T06:01:00Z")

    def built(self) -> list[str]:
        """The models of the steps of a run half an hour later, but for the ingest."""
        self.world.as_of += 30 * MINUTE
        return [step.model for step, _ in self._run(None, ()).steps if step.model != "clicks"]


@pytest.mark.parametrize("error", [ArithmeticError(), KeyboardInterrupt()], ids=["fails", "ends"])
def test_batches_of_a_cron_are_continued(tmp_path: Path, error: BaseException) -> None:
    """The next run builds the rest of the batches, and does not wait for the next tick."""
    play, begun = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6), list[Step]()

    def second(step: Step) -> BaseException | None:
        begun.extend([step] if step.model == "daily" else [])
        return error if len(begun) == 2 else None

    with failing(second), pytest.raises((RunFailed, KeyboardInterrupt)):
        play._run(None, ())

    assert begun[0].batches > 2
    assert play.built().count("daily") == begun[0].batches - 1
    assert play.built() == []


def test_a_table_that_was_complete_waits_for_its_cron(tmp_path: Path) -> None:
    """Another model failed in the same run: late rows of this one are read at the next tick."""
    play = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6)
    failed(play, lambda step: ArithmeticError() if step.model == "users" else None)
    play.arrive(Random(7))

    assert "sessions" in (later := play.built())
    assert "daily" not in later
    play.world.as_of += DAY
    assert "daily" in play.built()
