"""A changed definition that takes several runs: what readers have, and what is kept."""

from __future__ import annotations

import copy
import shutil
import tempfile
from collections.abc import Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from tests.arrivals.borders import Borders
from tests.arrivals.branches import ABSENT, BRANCHES, IN_PARTS
from tests.arrivals.environments import BranchPlay
from tests.arrivals.test_failing import audit_failed, failing
from tests.crash.scenario import Life, living

from infold import api
from infold.api.building import Building
from infold.core.environment import BUILT_APART
from infold.core.interval import DAY, Ranges, parse_instant_text
from infold.core.report import RunFailed, RunResult
from infold.inspecting.tables_apart import TablesApart
from infold.ledger.database import close_all

pytestmark = pytest.mark.deep

FIRST = parse_instant_text("2024-03-01")


@dataclass
class Story(BranchPlay):
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
        """The daily table's definition becomes another one of those that take several runs."""
        self.change_of("", {"daily": IN_PARTS[version]})

    def go(self, times: int = 1, **more: Any) -> RunResult:
        """Runs, with all checks: each table is exact by the definition that its trace says."""
        for _ in range(times):
            result = self._run(self.project, **more)
            self.check_all()
        return result

    def days(self, model: str = "daily", column: str = "n") -> dict[int, int]:
        """What readers see of a table: numbers by day of March."""
        return {row["day"].day: row[column] for row in self._read(model)}

    @property
    def keys(self) -> set[str]:
        """The tables beside those of models."""
        return {name for name in self.memory.tables if "__" in name}

    @property
    def apart(self) -> set[str]:
        """The keys of tables that are built apart, or are to be dropped."""
        return {one.key for one in self.ledger.own_tables().get(BUILT_APART, ())}


@pytest.fixture
def story() -> Iterator[Story]:
    """Six days are built, as many runs as that takes."""
    with tempfile.TemporaryDirectory(prefix="infold-apart-") as name:
        play = Story(BRANCHES, Path(name), BRANCHES.name, Path(name), 1)
        with play.outside():
            yield told(play)


def told(play: Story) -> Story:
    """Six days are built, as many runs as that takes."""
    few = {"clicks": 0, "rolling": 0, "tops": 0, "daily": IN_PARTS[0]}
    play.change_of("", {**dict.fromkeys(BRANCHES.tables, ABSENT), **few})
    play.send(1, 2, 3, 4, 5, 6)
    play.go(3)
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
    assert story.days("tops", "top") == story.days()
    assert not story.apart


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
    story.go(3)
    assert story.days() == dict.fromkeys(range(1, 7), 3)


def test_what_one_run_can_build_replaces_the_table_at_once(story: Story) -> None:
    """A window, or no limit, means one commit in one run."""
    story.to_version(1)

    story.go(asked=replace(story._asked(story.project), restated={"daily": Ranges.ever()}))

    assert story.days() == dict.fromkeys(range(1, 7), 2)
    assert not story.keys


def test_readers_with_changed_definitions_wait(story: Story) -> None:
    """A reader keeps its definition too, and is built by the new one after the swap."""
    story.to_version(1)
    story.change_of("", {"rolling": 1})

    done = story.go()
    assert any(note.startswith("rolling: its definition waits") for note in done.notes)
    assert story.days("rolling", "around")[6] == 3

    story.go(3)
    assert story.days("rolling", "around")[6] == 2


def test_rows_that_fail_an_audit_are_not_built(story: Story) -> None:
    """Readers keep the old table until all rows pass; findings follow the table they are about."""
    before = audit_failed("daily").results
    story.ledger.record_audits("daily", [replace(one, audit="before") for one in before])
    story.to_version(1)
    story.go()
    wrong = failing(lambda step: audit_failed(step.model) if "__" in step.model else None)

    with wrong, pytest.raises(RunFailed) as end:
        story._run(story.project)
    [apart] = story.keys
    assert [one.error.slug for one in end.value.result.failures] == ["audit-failed"]
    assert story.days() == dict.fromkeys(range(1, 7), 1)
    found = {one.result.audit: one.result.model for one in story.ledger.audits()}
    assert found == {"before": "daily", "few": apart}

    story.go(2)
    [old] = story.keys
    assert story.days() == dict.fromkeys(range(1, 7), 2)
    found = {one.result.audit: one.result.model for one in story.ledger.audits()}
    assert found == {"before": old, "few": "daily"}


@pytest.mark.parametrize("everything", [False, True], ids=["forget", "teardown"])
def test_what_is_dropped_is_built_by_the_new_definition(story: Story, everything: bool) -> None:
    """Nothing stays of what was built apart, nor of the old table."""
    story.to_version(1)
    story.go()
    assert story.keys

    if everything:
        api.teardown(story.project)
        assert not story.memory.tables
    else:
        api.forget(story.project, ["daily"])
        assert not story.keys
        assert not story.apart
    story.go(3)
    assert story.days() == dict.fromkeys(range(1, 7), 2)
    assert not story.keys


def test_a_run_that_another_one_overtook_begins_anew(
    story: Story, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was made for a table that has replaced the other by now."""
    story.to_version(1)
    story.go(2)
    find, overtaken = Building._tables_apart, list[RunResult]()

    def found(self: Building) -> TablesApart:
        made = find(self)
        if not overtaken:
            overtaken.append(RunResult("", ""))
            overtaken[0] = story.go()
        return made

    monkeypatch.setattr(Building, "_tables_apart", found)
    result = story.go()

    assert overtaken[0].steps
    assert not result.steps
    assert story.days() == dict.fromkeys(range(1, 7), 2)


SHARES = 2
"""The write points are shared out to tests that different processes can run."""


@pytest.mark.parametrize("share", range(SHARES))
def test_killed_at_every_write_point(story: Story, tmp_path: Path, share: int) -> None:
    """Readers have one table or the other, and later runs complete it.

    One death for each kind of write of the run that begins the new table, and of the one that
    completes it; what a run writes in its second batch is as in its first.
    """

    def copied(play: Story, name: str) -> Story:
        close_all()  # what is copied is the file alone
        made = copy.copy(play)
        made.folder, made.memory = tmp_path / name, deepcopy(play.memory)
        made.branches, made.borders = dict(play.branches), Borders(lost=True)
        shutil.copytree(play.folder, made.folder)
        return made

    def run(play: Story, at: int = 0) -> Life:
        with play.outside(), living(at) as life:
            play._run(play.project)
        return life

    plays, points = [copied(story, "0")], list[tuple[int, int]]()
    plays[0].to_version(1)
    for number in range(3):
        plays.append(copied(plays[-1], f"{number + 1}"))
        tried = set[str]()
        for at, (_, name) in enumerate(run(plays[-1]).passed, 1):
            if name == "ledger acquire: before commit":  # a run is several, if tables are swapped
                tried.clear()
            if number != 1 and name not in tried and ": after" not in name:
                points.append((number, at))
            tried.add(name)
    assert len(points) > 30
    for number, at in points[share::SHARES]:
        play = copied(plays[number], f"{number} {at}")
        assert run(play, at).dead
        play._after_death()
        assert set(play.days().values()) in ({1}, {2})
        with play.outside():
            play.go(3 - number)
        assert play.days() == dict.fromkeys(range(1, 7), 2)
        assert not play.apart
        shutil.rmtree(play.folder)
