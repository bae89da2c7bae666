"""
Runs in which models fail: models that do not read them are built, and the next run builds the rest.
Of tables with a cron what was begun at a tick is completed, and no more. Audits that read other
tables come after these, however many models are built at once.

Without Spark, as ``test_dry``: the runner, the planner and the ledger are the program's own.
"""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.dry import DryEngine, DryPlay, play_through
from tests.arrivals.programs import Op, Program, programs
from tests.arrivals.shapes import SHAPES
from tests.crash.scenario import living

from infold.analysis.audits import in_order_for_audits
from infold.core.audits import Audit, AuditKind, AuditResult, AuditsFailed, AuditState, Severity
from infold.core.interval import DAY, MINUTE, Interval, parse_instant_text
from infold.core.model import Incremental, Kind
from infold.core.plan import Step
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.report import Failure, RunFailed, RunResult
from infold.messages import audit_findings, catalog_errors, errors, faults, run_errors
from infold.messages.findings import refused_by_spark
from infold.planning.plan_notes import tables_of_audits
from infold.running.run_progress import MOST_STEPS
from infold.system import signals

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


def audit_failed(model: str) -> AuditsFailed:
    """Rows of one model that fail its audit."""
    found = AuditResult(model, "few", Severity.ERROR, AuditState.FAILED, 1)
    error = audit_findings.audit_failed(model=model, found=[("few", "", "")], sample=[])
    return AuditsFailed.of(error, [found])


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
    """Only its readers are not tried; the next run builds what is left, and no more."""
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


def test_fail_fast_stops_at_the_first(play: DryPlay) -> None:
    """With `--fail-fast` no step begins after the first failure."""
    end = failed(play, lambda step: refusal(step.model), fail_fast=True)

    assert len(end.result.failures) == 1
    assert end.result.steps == ()
    assert end.result.not_tried


TOGETHER = ("sessions", "hourly", "payers", "places", "sections", "totals", "tours")
"""The models that can be built when ``clicks`` is."""


def test_who_waits_begins_when_another_ends(play: DryPlay, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two at a time and no more, all by one plan; the ends are told in the plan's order."""
    real, running, most = DryEngine.carry_out, set[str](), 0

    def carry_out(self: DryEngine, step: Step, *more: Any) -> Outcome:
        nonlocal most
        running.add(step.model)
        most = max(most, len(running))
        time.sleep(0.001 * (TOGETHER[::-1].index(step.model) if step.model in TOGETHER else 0))
        try:
            return real(self, step, *more)
        finally:
            running.remove(step.model)

    monkeypatch.setattr(DryEngine, "carry_out", carry_out)
    play.models_at_once = 2
    result = play._run(None, ())

    assert most == 2
    built = [step.model for step, _ in result.steps]
    first = built.index(TOGETHER[0])
    assert built[first : first + len(TOGETHER)] == list(TOGETHER)
    assert sum(not plan.steps[0].expected for plan in result.plans if plan.steps) == 5
    assert not play._run(None, ()).steps


@pytest.mark.parametrize(
    ("error", "fail_fast"),
    [(refusal("sessions"), True), (run_errors.lease_lost("r"), False)],
    ids=["--fail-fast", "an error that ends the run"],
)
def test_who_waits_does_not_begin(
    play: DryPlay, error: errors.InfoldError, fail_fast: bool
) -> None:
    """What was begun beside the failed step is completed and recorded, and nothing else begins."""
    play.models_at_once = 2
    begun, has_failed = list[str](), threading.Event()

    def chosen(step: Step) -> BaseException | None:
        begun.append(step.model)
        if step.model == "hourly":
            has_failed.wait()
            time.sleep(0.01)
        if step.model != "sessions":
            return None
        has_failed.set()
        return error

    result = failed(play, chosen, fail_fast=fail_fast).result

    assert sorted(begun[2:]) == ["hourly", "sessions"]
    assert [step.model for step, _ in result.steps] == ["raw.pages", "clicks", "hourly"]


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
    """With `--fail-fast` no step begins; the exit code is 2 only if nothing else fails."""
    play.fail_fast = True
    with judging(["sessions"]):
        with pytest.raises(RunFailed) as caught:
            play._run(None, ())
        end = failed(play, lambda step: ArithmeticError() if step.model == "clicks" else None)

    assert caught.value.result.steps == ()
    assert end.exit_code == 1


def test_a_wrong_view_blocks_its_readers(play: DryPlay) -> None:
    """A wrong view is the failure, and the stored models downstream of it are not tried."""
    with judging(["paying"]), pytest.raises(RunFailed) as caught:
        play._run(None, ())

    assert [failure.model for failure in caught.value.result.failures] == ["paying"]
    below = set(play.project.downstream(["paying"])) & stored(play)
    assert {model for model, _ in caught.value.result.not_tried} == below


def test_a_definition_is_judged_once(play: DryPlay) -> None:
    """Not again for late rows, and with their readers when a query changes."""
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
    """The result has the steps done before; an error in infold itself fails one model."""
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


def test_a_failed_search_for_a_lookups_keys_fails_its_reader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All others are built."""
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
    """Also where audits fail and runs die besides; what audits found is recorded."""
    random = Random(seed)

    class Failing(DryPlay):
        """Fails in part, then runs."""

        def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
            fate = {name: random.random() < 0.3 for name in self.shape.tables}

            def chosen(step: Step) -> BaseException | None:
                late = fate.get(step.model) and random.random() < 0.6
                if not late:
                    return None
                return refusal(step.model) if random.random() < 0.5 else audit_failed(step.model)

            failures: Sequence[Failure] = ()
            with failing(chosen), living(random.choice((0, 0, random.randint(1, 40)))) as life:
                try:
                    result = super()._run(window, terms)
                except RunFailed as end:
                    result, failures = end.result, end.result.failures
            names = {failure.model for failure in failures}
            assert names <= {name for name, fails in fate.items() if fails}
            if not life.dead:
                assert not names & set(result.up_to_date)
                judged = {one.model for one in failures if one.error.slug == "audit-failed"}
                book = self.ledger
                assert judged <= {one.result.model for one in book.audits() if one.result.fails}
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


@pytest.mark.parametrize("error", [ArithmeticError(), faults.engine_died(why="gone")])
def test_a_signal_is_told_from_what_it_causes(tmp_path: Path, error: Exception) -> None:
    """Who tidies up asks a JVM that is gone: no model failed, the run was stopped."""
    play, begun = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6), list[str]()

    def stopped(step: Step) -> BaseException:
        begun.append(step.model)
        try:
            signals._stop(signal.SIGINT, None)
        except signals.Stopped:
            return error
        raise AssertionError

    with pytest.MonkeyPatch.context() as patch, failing(stopped):
        patch.setattr(signals, "_state", signals._State())
        with pytest.raises(signals.Stopped):
            play._run(None, ())

    [run] = play.ledger.runs(1)
    assert (len(begun), run.state, run.error) == (1, "failed", "stopped by SIGINT")


def test_a_table_that_was_complete_waits_for_its_cron(tmp_path: Path) -> None:
    """Another model failed in the same run: late rows of this one are read at the next tick."""
    play = DueAtSix(SHAPES["fold"], tmp_path, "fold", tmp_path, 6)
    failed(play, lambda step: ArithmeticError() if step.model == "users" else None)
    play.arrive(Random(7))

    assert "sessions" in (later := play.built())
    assert "daily" not in later
    play.world.as_of += DAY
    assert "daily" in play.built()


# -- audits that read other tables, which are built before


@dataclass
class Judged(DryPlay):
    """Models with an audit that reads another table each, and the steps of the last run."""

    seed: int = 0
    began: list[tuple[Step, set[str]]] = field(default_factory=list)
    """Each step in the order in which they began, with the models whose steps had ended by then."""

    @property
    def project(self) -> Project:
        """The project with audits: of each model at most one, which reads a table drawn for it."""
        found, nodes = super().project, []
        for node in found:
            above = {*self.shape.tables} - found.downstream([node.name]) - {node.name}
            other = Random(f"{self.seed} {node.name}").choice([None, *sorted(above)])
            reads = Audit("known", AuditKind.RELATIONSHIP, to=other) if other else None
            judged = node.model.kind is not Kind.VIEW and not node.landed
            audits = (reads,) if reads and judged else ()
            nodes.append(replace(node, model=replace(node.model, audits=audits)))
        return replace(found, nodes=in_order_for_audits(nodes))

    def _run(self, window: Interval | None, terms: Sequence[str]) -> RunResult:
        real, self.began, ended = DryEngine.carry_out, [], set[str]()

        def carry_out(engine: DryEngine, step: Step, *more: Any) -> Any:
            self.began.append((step, {*ended}))
            found = real(engine, step, *more)
            ended.add(step.model)
            return found

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(DryEngine, "carry_out", carry_out)
            result = super()._run(window, terms)
        self._check_order()
        return result

    def _check_order(self) -> None:
        """No table was built, beside or after a model of ordinary steps that is judged on it."""
        project = self.project
        order = [node.name for node in project]
        for at, (step, ended) in enumerate(self.began):
            for other in tables_of_audits(project, project[step.model]):
                first = order.index(other) < order.index(step.model)
                begun = [one.model for one, _ in self.began[:at]]
                later = [one.model for one, _ in self.began[at:]]
                if first and not step.action.of_own_rows:
                    assert other not in later, f"{step.model} was built before {other}"
                    assert other not in begun or other in ended, f"{step.model} beside {other}"


@pytest.mark.deep
@pytest.mark.parametrize("shape", SHAPES)
@settings(max_examples=EXAMPLES)
@given(
    program=programs(users=4, rounds=(2, 4)),
    seed=st.integers(0, 2**20),
    at_once=st.integers(2, 4),
)
def test_what_audits_read_is_built_before(
    shape: str, program: Program, seed: int, at_once: int
) -> None:
    """No model that an audit judges is built before, or beside, a table that the audit reads."""
    play_through(Judged, SHAPES[shape], program, seed=seed, models_at_once=at_once)
