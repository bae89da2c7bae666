"""A changed definition that takes several runs: what readers have, and what is kept."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.arrivals.apart import APART_SHAPE, DryApart
from tests.arrivals.programs import Op
from tests.crash.scenario import Life, living

from infold.core.environment import APART, Environment, OwnTable
from infold.core.interval import DAY, Ranges, parse_instant_text
from infold.core.plan import PlanOptions
from infold.core.report import RunResult
from infold.inspecting.tables_apart import TablesApart

pytestmark = pytest.mark.deep

FIRST = parse_instant_text("2024-03-01")
EVERYTHING = Op("all", 0)


@dataclass
class Story(DryApart):
    """A play that is told day by day."""

    sent: int = 0

    def send(self, *days: int) -> None:
        """A file with one click on each of these days of March."""
        rows = []
        for day in days:
            self.sent += 1
            at = FIRST + (day - 1) * DAY + self.sent
            rows.append(
                {"event_id": str(self.sent), "user_id": "u", "event_ts": at, "received_ts": at}
                | {"url": "/pay", "amount": None, "weight": None, "n": 1, "ok": True}
                | {"revision": 1}
            )
        self._write(self._new_path(), tuple(rows))

    def to_version(self, version: int) -> None:
        """The daily table's definition becomes another one."""
        self._declare("daily", version)

    def go(self) -> RunResult:
        """A run, with all checks: each table is exact by the definition that its trace says."""
        return self.run(EVERYTHING)

    def days(self) -> dict[int, int]:
        """What readers see of the daily table: numbers by day of March."""
        return {row["day"].day: row["n"] for row in self._read("daily")}

    @property
    def apart(self) -> Environment | None:
        """What the ledger has of tables that are built apart."""
        ledger = self.ledger
        found = ledger.environments().get(APART)
        ledger.close()
        return found

    @property
    def keys(self) -> set[str]:
        """The tables beside those of models."""
        return {name for name in self.memory.tables if "__" in name}


@pytest.fixture
def story() -> Iterator[Story]:
    """Six days are built, as many runs as that takes."""
    with tempfile.TemporaryDirectory(prefix="infold-apart-") as name:
        folder = Path(name)
        yield told(folder)


def told(folder: Path) -> Story:
    """Six days are built, as many runs as that takes."""
    play = Story(APART_SHAPE, folder, "apart", folder, 1)
    play.send(1, 2, 3, 4, 5, 6)
    for _ in range(3):
        play.go()
    assert play.days() == dict.fromkeys(range(1, 7), 1)
    return play


def test_readers_have_the_old_table_until_the_new_one_is_complete(story: Story) -> None:
    """Late rows and new days go on into the old one, and the new one has them too."""
    story.to_version(1)

    first = story.go()
    assert story.days() == dict.fromkeys(range(1, 7), 1)
    assert len(story.keys) == 1
    [note] = [note for note in first.notes if "built apart" in note]
    assert "being built apart: 2 of 6 days, replaces daily when complete" in note

    story.send(1, 6, 7)
    story.go()
    assert story.days() == {1: 2, 2: 1, 3: 1, 4: 1, 5: 1, 6: 2, 7: 1}

    last = story.go()
    assert story.days() == {1: 4, 2: 2, 3: 2, 4: 2, 5: 2, 6: 4, 7: 2}
    assert "daily: what was built apart has replaced its table" in last.notes
    beside = {row["day"].day: row["n"] for row in story._read("beside")}
    assert beside == story.days()
    assert not _own(story)


def test_a_change_back_drops_what_was_built(story: Story) -> None:
    """Then the old table is the wanted one."""
    story.to_version(1)
    story.go()
    story.to_version(0)

    done = story.go()

    assert not story.keys
    assert any("was dropped, as another table is wanted" in note for note in done.notes)
    assert story.days() == dict.fromkeys(range(1, 7), 1)


def test_another_change_begins_again(story: Story) -> None:
    """What was built by the change before is dropped."""
    story.to_version(1)
    story.go()
    [before] = story.keys
    story.to_version(2)

    story.go()
    assert before not in story.keys
    assert len(story.keys) == 1
    for _ in range(3):
        story.go()
    assert story.days() == dict.fromkeys(range(1, 7), 3)


def test_what_one_run_can_build_replaces_the_table_at_once(story: Story) -> None:
    """A window, or no limit, means one commit in one run."""
    story.to_version(1)
    story.options = lambda: PlanOptions(restated={"daily": Ranges.ever()})  # type: ignore[method-assign]

    story.go()

    assert story.days() == dict.fromkeys(range(1, 7), 2)
    assert not story.keys


def test_readers_with_changed_definitions_wait(story: Story) -> None:
    """A reader keeps its definition too, and is built by the new one after the exchange."""
    story.to_version(1)
    story._declare("after", 1)

    done = story.go()
    assert any(note.startswith("after: its definition waits") for note in done.notes)
    assert {row["n"] for row in story._read("after")} == {2}

    for _ in range(3):
        story.go()
    assert {row["n"] for row in story._read("after")} == {4}


@pytest.mark.parametrize("everything", [False, True], ids=["forget", "teardown"])
def test_what_is_dropped_is_built_by_the_new_definition(story: Story, everything: bool) -> None:
    """Nothing stays of what was built apart, nor of the old table."""
    story.to_version(1)
    story.go()
    assert story.keys

    ledger = story.ledger
    dropper = story.building(ledger)._dropper()
    if everything:
        dropper.teardown()
        assert not story.memory.tables
    else:
        dropper.forget(["daily"])
        ledger.close()
        assert not story.keys
        assert not _own(story)
    for _ in range(3):
        story.go()
    assert story.days() == dict.fromkeys(range(1, 7), 2)
    assert not story.keys


def test_a_run_that_another_one_overtook_begins_anew(story: Story) -> None:
    """It was made for a table that has replaced the other by now."""
    story.to_version(1)
    story.go()
    story.go()
    ledger = story.ledger
    building = story.building(ledger)
    find, overtaken = building._found, list[RunResult]()

    def found() -> TablesApart:
        made = find()
        if not overtaken:
            overtaken.append(story.go())
        return made

    building._found = found  # type: ignore[method-assign]
    result = building.run()
    ledger.close()

    assert overtaken[0].steps
    assert not result.steps
    assert story.days() == dict.fromkeys(range(1, 7), 2)


def test_an_environment_is_dropped_beside_it(story: Story) -> None:
    """Its own table goes, and the one that is built apart goes on where it was."""
    story.to_version(1)
    story.go()
    [key] = story.keys
    ledger = story.ledger
    table = OwnTable("daily", "daily__dev", "", "")
    ledger.acquire("r-env")
    ledger.put_environment(Environment("dev", "ann", 0, None, 0, 0, (table,)))
    ledger.release()
    story.memory.tables["daily__dev"] = deepcopy(story.memory.tables["daily"])

    story.building(ledger)._dropper().drop_environment("dev")
    ledger.close()

    assert story.keys == {key}
    assert story.apart is not None
    assert [one.key for one in story.apart.tables] == [key]
    story.go()
    last = story.go()
    assert "daily: what was built apart has replaced its table" in last.notes
    assert story.days() == dict.fromkeys(range(1, 7), 2)


SHARES = 2
"""The write points are shared out to tests that different processes can run."""


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_write_point(tmp_path: Path, share: int) -> None:
    """
    Readers have the old table or the new one, and later runs complete it.

    A death right after a write leaves what a death before the next one leaves, so one is enough.
    """
    told_once = told(tmp_path / "told")

    def changed(name: str, at: int) -> tuple[Story, Life]:
        folder = tmp_path / name
        shutil.copytree(tmp_path / "told", folder)
        play = replace(told_once, folder=folder, memory=deepcopy(told_once.memory))
        play.to_version(1)
        with living(at) as life:
            for _ in range(3):
                play._run(None, ())
        return play, life

    _, lived = changed("lived", 0)
    points = [at for at, (_, name) in enumerate(lived.passed, 1) if ": after" not in name]
    assert len(points) > 20
    for at in points[share::SHARES]:
        play, life = changed(str(at), at)
        assert life.dead
        assert set(play.days().values()) in ({1}, {2})
        for _ in range(3):
            play.go()
        assert play.days() == dict.fromkeys(range(1, 7), 2)
        assert not _own(play)
        shutil.rmtree(play.folder)


def _own(play: Story) -> set[str]:
    """The keys of tables that are built apart, or are to be dropped."""
    return {one.key for one in play.apart.tables} if play.apart else set()
