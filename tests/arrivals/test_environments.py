"""Environments in random programs: see ``environments``."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.arrivals.borders import effective_from
from tests.arrivals.branches import BRANCHES, IN_PARTS, STEADY
from tests.arrivals.dry import Stored
from tests.arrivals.environments import CHANGED_FORWARD, FORWARD, NAMES, Act, BranchPlay, acts
from tests.arrivals.play import DifferenceError
from tests.arrivals.programs import Op

from infold import api
from infold.api import environments
from infold.core.environment import BUILT_APART
from infold.core.interval import DAY
from infold.core.model import table_name
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.deep

EXAMPLES = settings().max_examples

IN_A = next(seed for seed in range(99) if Random(seed).choice(NAMES) == "a")
"""A seed with which a command is about the environment a."""

IN_B = next(seed for seed in range(99) if Random(seed).choice(NAMES) == "b")
"""And one about the environment b."""

ROWS = 542987
"""A seed with which files arrive that have rows."""


def _onward(seed: int) -> tuple[str, int, int | None]:
    """The model that a seed changes forward-only, its version, and days from the border on."""
    random = Random(seed)
    name = random.choice(FORWARD)
    changes = random.random() < CHANGED_FORWARD
    version = random.randrange(len(BRANCHES.tables[name])) if changes else -1
    at = effective_from(0, random)
    return name, version, None if at is None or at % DAY else at // DAY


def onward(name: str, version: int, days: int | None = None) -> Act:
    """A forward-only change of a model, from its last cell on or some days from there."""
    wanted = (name, version, days)
    return Act(Op("onward", next(seed for seed in range(99_999) if _onward(seed) == wanted)))


@contextmanager
def playing(*, manual: bool) -> Iterator[BranchPlay]:
    """Production with its first files, in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="infold-branches-") as name:
        folder = Path(name)
        play = BranchPlay(BRANCHES, folder, BRANCHES.name, folder, 4, manual=manual)
        with play.outside():
            play.act([Act(Op("arrive", ROWS)), Act(Op("apply", 1))])
            yield play


def complete(program: list[Act], *, manual: bool) -> None:
    """All of a program; at the end everything is run."""
    with playing(manual=manual) as play:
        play.act([*program, Act(Op("run", 0)), Act(Op("env_run", 0))])


@pytest.mark.parametrize("manual", [True, False])
def test_a_table_with_stretches(manual: bool) -> None:
    """Shared where files have the newer definition; another is promoted and taken back."""
    with playing(manual=manual) as play:
        play.act([onward("rolling", 1)])
        [earlier] = play.ledger.traces()["rolling"].earlier
        for name in NAMES:
            play.branches[name] = dict(play.branches[""])
        play.change_of("b", {"rolling": 2})
        play.act([Act(Op("env_run", IN_A)), Act(Op("env_run", IN_B))])
        own = {name: set(one.own) for name, one in play.ledger.environments().items()}
        assert own == {"a": set(), "b": {"rolling", "later"}}
        play.act([Act(Op("arrive", ROWS + 1)), Act(Op("run", 1)), Act(Op("env_run", IN_B))])
        play.act([Act(Op("promote", IN_B))])
        assert play.ledger.traces()["rolling"].earlier == ()
        play.act([Act(Op("rollback", 1)), Act(Op("arrive", ROWS + 2)), Act(Op("run", 1))])
        assert play.ledger.traces()["rolling"].earlier == (earlier,)


@pytest.mark.parametrize(
    ("name", "days"), [("clicks", -3), ("daily", 2), ("stays", -3), ("stays", 2)]
)
def test_a_change_from_an_instant_on(name: str, days: int) -> None:
    """A change may be in force in cells that are built, or from later on; and again from before."""
    with playing(manual=True) as play:
        play.act([Act(Op("env_run", IN_A)), onward(name, 3, days)])
        assert len(play.borders.held[name]) == 2

        play.act([Act(Op("arrive", ROWS + 1)), Act(Op("run", 1)), Act(Op("env_run", IN_A))])
        play.act([onward(name, STEADY[name][0], -4), Act(Op("arrive", ROWS + 2))])
        play.act([Act(Op("run", 1)), Act(Op("env_run", IN_A)), Act(Op("env_run", IN_B))])
        assert play.done["run"] == 2


@pytest.mark.parametrize("who", ["onward", "promote"])
def test_stretches_come_back_though_somebody_died(who: str) -> None:
    """A rollback gives back what held, where the change died, or the promote after its commit."""
    with playing(manual=True) as play:
        change = onward("clicks", 3, -3)
        play.change_of("a", {"clicks": 1})
        if who == "onward":
            play.act([replace(change, dies=12), Act(Op("ship", 0))])
        else:
            play.act([change, Act(Op("env_run", IN_A)), Act(Op("promote", IN_A), dies=12)])
            play.act([Act(Op("run", 0))])
        assert any("died" in line for line in play.log)
        play.act([Act(Op("rollback", 0))])
        assert play.done["rollback"] == 1
        assert len(play.borders.held["clicks"]) == 2


@settings(max_examples=EXAMPLES // 2)
@given(program=acts(14, deaths=True), manual=st.booleans())
def test_every_table_is_what_its_definition_says(program: list[Act], manual: bool) -> None:
    """Whatever is changed, run, promoted and taken back, and whoever dies of it."""
    complete(program, manual=manual)


@settings(max_examples=EXAMPLES // 6)
@given(program=acts(20, deaths=False), manual=st.booleans())
def test_programs_of_those_who_live(program: list[Act], manual: bool) -> None:
    """The same without deaths, for longer."""
    complete(program, manual=manual)


@settings(max_examples=EXAMPLES * 2 // 3)
@given(program=acts(6, deaths=True), manual=st.booleans())
def test_columns_get_other_names_at_any_time(program: list[Act], manual: bool) -> None:
    """Columns are renamed in production and environments between all else, whoever dies."""
    often = [
        one
        for act in program
        for one in (act, Act(Op("rename", act.op.seed)), Act(Op("apply", 1), act.dies))
    ]
    complete(often, manual=manual)


def test_a_new_model_does_not_take_the_table_of_somebody_else() -> None:
    """Where a table of another engine has a new model's name, nothing is promoted or built."""
    with playing(manual=True) as play:
        play.change_of("a", {"tops": 0})
        play.act([Act(Op("env_run", IN_A))])
        theirs = Stored({7: []})
        play.memory.tables["tops"] = theirs

        with pytest.raises(InfoldError) as refused:
            environments.find_promotion(play.project, "a")
        assert refused.value.slug == "table-name-taken"
        play.change_of("", {"tops": 0})
        with pytest.raises(DifferenceError, match="table-name-taken"):
            play.act([Act(Op("apply", 2))])
        assert play.memory.tables["tops"] is theirs
        assert theirs.snapshots == {7: []}


@pytest.mark.parametrize("command", ["promote", "rollback", "drop"])
def test_no_names_are_swapped_while_a_table_is_built_apart(command: str) -> None:
    """Promote and rollback are refused, a drop goes on; all stays exact, and it is completed."""
    with playing(manual=False) as play:
        play.act([*(Act(Op("arrive", ROWS + at)) for at in range(3)), Act(Op("run", 0))])
        if command == "rollback":
            play.change_of("a", {"daily": 1})
            play.act([Act(Op("env_run", IN_A)), Act(Op("promote", IN_A))])
        play.change_of("a", {"daily": 5})
        play.act([Act(Op("env_run", IN_A))])
        play.change_of("", {"daily": IN_PARTS[2]})
        play._run(play.project)
        book = play.ledger
        assert book.own_tables()[BUILT_APART]
        play.check_all()

        play._operate(Act(Op(command, IN_A)))
        refused = {"promote": "production-moved", "rollback": "rollback-outdated"}.get(command)
        assert play.done.get(refused or command), play.log
        play.check_all()

        for _ in range(40):
            play._run(play.project)
            play.check_all()
            if BUILT_APART not in play.ledger.own_tables():
                break
        play.applied = play._as_files_say()
        play._complete_production()


# -- what goes wrong elsewhere, with the right outcome here

# From the issues of SQLMesh, by number: 3866 and 1383, 5719. Random programs come upon 5843, 3529
# and 4292, and its janitor; those about plans are in ``tests/planning/test_faults_of_peers.py``.


def do(play: BranchPlay, *kinds: str) -> None:
    """Operations, those on an environment on the environment a."""
    play.act([Act(Op(kind, ROWS if kind == "arrive" else IN_A)) for kind in kinds])


def own_tables(play: BranchPlay) -> dict[str, str | None]:
    """Where the own tables of the environment a are, by model."""
    book = play.ledger
    own = book.environments()["a"].own
    return {model: play.memory.location(table_name(key)) for model, key in own.items()}


def test_who_comes_second_waits_or_is_told() -> None:
    """Whatever else would write is refused, and writes nothing."""
    with playing(manual=True) as play:
        play.change_of("a", {"daily": 3})
        do(play, "env_run", "promote")
        play.change_of("a", {"daily": 2})
        do(play, "run", "env_run")
        production, change = play.project, play.declared("a")
        promote, back = (
            environments.find_promotion(production, "a"),
            environments.find_rollback(production),
        )
        before, own = play._production(), own_tables(play)
        book = play.ledger
        book.acquire("somebody")
        commands: tuple[Callable[[], object], ...] = (
            lambda: play._run(api.to_apply(change), command="apply"),
            lambda: environments.run_environment(change, "a"),
            lambda: environments.promote(production, promote),
            lambda: environments.rollback(production, back),
            lambda: environments.drop_environment(production, "a"),
        )
        for command in commands:
            with pytest.raises(InfoldError) as refused:
                command()
            assert (refused.value.slug, refused.value.exit_code) == ("locked", 3)
        book.release()

        assert (play._production(), own_tables(play)) == (before, own)


def test_restating_production_changes_no_environment() -> None:
    """Tables that are built again with equal rows leave environments promotable as they are."""
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
