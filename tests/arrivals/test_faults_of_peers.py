"""
What goes wrong elsewhere when definitions change beside production, with the right outcome here.

From the issues of SQLMesh, by number: 5843, 3866 and 1383, 5719, 5201, 3529 and 4292, and its
janitor. Those about plans alone are in ``tests/planning/test_faults_of_peers.py``. Without Spark
(see ``environments``); after each operation all that is said there is checked.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tests.arrivals.environments import Act, BranchPlay
from tests.arrivals.programs import Op
from tests.arrivals.test_environments import IN_A, ROWS, playing
from tests.arrivals.test_failing import failing

from infold import api
from infold.api import environment_runs, environments, promoting
from infold.core.model import table_name
from infold.core.plan import PlanOptions
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.deep


def do(play: BranchPlay, *kinds: str) -> None:
    """Operations, those on an environment on the environment a."""
    play.act([Act(Op(kind, ROWS if kind == "arrive" else IN_A)) for kind in kinds])


def own_tables(play: BranchPlay) -> dict[str, str | None]:
    """Where the own tables of the environment a are, by model."""
    book = play.ledger
    own = book.environments()["a"].own
    book.close()
    return {model: play.memory.location(table_name(key)) for model, key in own.items()}


def test_a_changed_table_that_cannot_be_built_keeps_its_rows() -> None:
    """A build that fails leaves no hole: the old rows stay, and the next run builds the new."""
    with playing(manual=True) as play:
        before = play.memory.location("daily")
        play.change_of("", {"daily": 3})
        project = api.to_apply(play.declared())
        fails = failing(lambda step: ArithmeticError() if step.model == "daily" else None)
        with fails, pytest.raises(RunFailed):
            play._run(project, command="apply")

        assert play.memory.location("daily") == before
        play.applied = dict(play.branches[""])
        do(play, "run")
        assert play.memory.location("daily") != before


def test_who_comes_second_waits_or_is_told() -> None:
    """While somebody works on a target, whatever else would write is refused, and writes nothing:
    an apply, a run of an environment, a promote, the way back, a drop.
    """
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3})
        do(play, "env_run", "promote")
        play.change_of("a", {"daily": 2})
        do(play, "run", "env_run")
        production, change = play.project, play.declared("a")
        promote, back = (
            promoting.find_promotion(production, "a"),
            promoting.find_rollback(production),
        )
        before, own = play._production(), own_tables(play)
        book = play.ledger
        book.acquire("somebody")
        commands: tuple[Callable[[], object], ...] = (
            lambda: play._run(api.to_apply(change), command="apply"),
            lambda: environment_runs.run_environment(change, "a"),
            lambda: promoting.promote(production, promote),
            lambda: promoting.rollback(production, back),
            lambda: environments.drop_environment(production, "a"),
        )
        for command in commands:
            with pytest.raises(InfoldError) as refused:
                command()
            assert (refused.value.slug, refused.value.exit_code) == ("locked", 3)
        book.release()
        book.close()

        assert (play._production(), own_tables(play)) == (before, own)


def test_what_readers_would_lose_is_said_before_production_changes() -> None:
    """An environment may drop a column; production gets it only if that is allowed, and whoever is
    refused has a production that goes on as it was.
    """
    with playing(manual=True) as play:
        play.change_of("", {"daily": 1})
        do(play, "apply", "run")
        play.change_of("a", {"daily": 0})
        do(play, "env_run")
        before = play._production()

        with pytest.raises(InfoldError, match="column amount is dropped") as refused:
            promoting.find_promotion(play.project, "a")

        assert (refused.value.slug, refused.value.exit_code) == ("destructive-change", 3)
        assert play._production() == before
        do(play, "arrive", "run", "env_run", "promote", "run")


def test_an_environment_of_yesterday_reads_what_there_is_today() -> None:
    """An environment that is behind is not promoted; its next run reads production's rows of now
    before it builds anything upon them.
    """
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3, "stays": 3})
        do(play, "env_run", "arrive", "run")
        with pytest.raises(InfoldError) as refused:
            promoting.find_promotion(play.project, "a")
        assert refused.value.slug == "production-moved"
        assert dict(refused.value.facts).keys() == {"daily", "stays"}
        do(play, "env_run", "promote")

        assert play.done["promote"] == 1


def test_restating_production_changes_no_environment() -> None:
    """Production's tables built again, with equal rows, leave environments as they are and
    promotable; nothing has to be built in them.
    """
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3})
        do(play, "env_run")
        own = own_tables(play)
        api.restate(play.project, ["clicks", "daily"], as_of=play.world.as_of)
        play.check_all()

        assert own_tables(play) == own
        do(play, "env_run")
        assert own_tables(play) == own
        do(play, "promote")
        assert play.done["promote"] == 1


def test_nothing_that_a_name_points_to_is_tidied_away() -> None:
    """An environment that expires after it was promoted takes none of its former tables along, nor
    one that it shared.
    """
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3, "tops": 0})
        do(play, "env_run", "promote", "run")
        before = {name: play.memory.location(name) for name in ("clicks", "daily", "tops")}
        play.ttl = 0
        environment_runs.run_environment(play.declared("a"), "a", as_of=play.world.as_of)
        play.ttl = None
        do(play, "run")

        book = play.ledger
        assert book.environments() == {}
        book.close()
        assert {name: play.memory.location(name) for name in before} == before
        do(play, "rollback", "run")


def test_a_first_look_at_a_change_reads_and_writes_nothing() -> None:
    """Planning a change, for production or an environment, leaves no trace anywhere."""
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3, "stays": 1, "clicks": 1})
        before, commits = play._production(), play.memory.commits
        shown = environment_runs.plan_environment(play.declared("a"), "a", as_of=play.world.as_of)
        assert shown.plan.steps
        project = api.to_apply(play.declared("a"))
        assert api.plan(project, asked=PlanOptions(), as_of=play.world.as_of).steps

        assert (play._production(), play.memory.commits) == (before, commits)
        book = play.ledger
        assert book.environments() == {}
        book.close()
