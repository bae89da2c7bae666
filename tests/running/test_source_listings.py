"""Listings without old dated folders: which are left out, and that nothing is lost by it."""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.fresh import FreshLedger
from tests.planning.strips import EVENTS
from tests.running.commands import said
from tests.running.production import EVENT as CLICK
from tests.running.production import as_json, change, production
from tests.running.standing_tables import in_ledger

from infold import api
from infold.core.files import FilesOutcome, FullListing, IngestedFile, Listed, ListedFile
from infold.core.formats import Format
from infold.core.interval import DAY, HOUR, datetime_of
from infold.core.model import Source
from infold.core.project import Project
from infold.core.record import FULL_LISTING, Outcome
from infold.core.target import Target
from infold.core.trace import Trace
from infold.lake.reading.listing import dated_path, list_files, list_without
from infold.running.source_listings import DatedLook, ListedChanges, SourceListings

START = 20_000 * DAY
"""2024-10-04."""

DAILY = Source("raw.clicks", Format.JSON, (), path="in/dt={date}/*.json", full_listing="daily")


def name_of(day: int) -> str:
    """The folder of a day, counted from the first."""
    return f"in/dt={datetime_of(START + day * DAY):%Y-%m-%d}"


@dataclass
class Landing:
    """A folder with a model's ledger: files are put, and runs take them in."""

    root: Path
    source: Source = DAILY
    ledger: FreshLedger = field(default_factory=FreshLedger)
    steps: int = 0
    written: int = 0
    missed: Collection[str] = ()
    """Files that are there and that a listing does not have: some stores show them later."""

    def __post_init__(self) -> None:
        self.ledger.acquire("r")
        self.ledger.begin_run("r", "run", 0, {})

    def put(self, path: str) -> None:
        """Have a file with another content than it had."""
        self.written += 1
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
        os.utime(file, ns=(self.written, self.written))

    def there(self) -> dict[str, str]:
        """All files, with their fingerprints."""
        found, _ = list_files(self.project, replace(self.source, settle=0), 0)
        return {file.path: file.fingerprint for file in found}

    def taken(self) -> dict[str, str]:
        """The ingested files, with their fingerprints."""
        return {file.path: file.fingerprint for file in self.ledger.files("events")}

    @property
    def project(self) -> Project:
        """The project with the source."""
        return Project("shop", self.root, None, {"raw.clicks": self.source}, (), Target("dev"))

    def looks(self, at: int, *, full: bool = False) -> SourceListings:
        """What a run lists with."""
        project = self.project

        def shown(files: Sequence[ListedFile]) -> list[ListedFile]:
            return [file for file in files if file.path not in self.missed]

        def some(source: Source, skip: Collection[str]) -> Listed:
            listed = list_without(project, source, at, skip)
            return replace(listed, files=shown(listed.files))

        def every(source: Source) -> tuple[Sequence[ListedFile], Sequence[str]]:
            files, settling = list_files(project, source, at)
            return shown(files) if self.missed else files, settling

        look = DatedLook(lambda source: dated_path(project, source), some)
        return SourceListings(self.ledger, every, look, at, {}, full=full)

    def run(
        self, at: int, *, full: bool = False, everything: bool = False, fails: Collection[str] = ()
    ) -> Listed:
        """Take in what a run finds, but for files that cannot be taken in; what was listed."""
        looks = self.looks(at, full=full)
        for _ in range(2):
            listed, seen = self.look(looks, everything=everything)
            self._take_in(seen, fails)
        listed, _ = self.look(looks, everything=everything)
        self.ledger.remember_locations(looks.compared)
        return listed

    def look(
        self, looks: SourceListings, *, everything: bool = False
    ) -> tuple[Listed, ListedChanges]:
        """What is there, and what of it is new."""
        locations = self.ledger.locations()
        return looks.changes("events", self.source, locations, everything=everything)

    def _take_in(self, seen: ListedChanges, fails: Collection[str]) -> None:
        new = [file for file in seen.changed if file.path not in fails]
        if not new and not seen.removed:
            return
        ids = self.ledger.register_files("raw.clicks", new)
        self.take_in(
            *(IngestedFile(ids[f.path], f.path, f.size, f.fingerprint, 0, rows=1) for f in new),
            removed=tuple(file.id for file in seen.removed),
        )

    def take_in(self, *files: IngestedFile, removed: tuple[int, ...] = ()) -> None:
        """Record that these files were ingested."""
        self.steps += 1
        step = f"r-{self.steps}"
        self.ledger.begin_step("r", step, self.steps, "events", "ingest", {})
        outcome = FilesOutcome("raw.clicks", files, removed)
        trace = Trace("events", EVENTS.fingerprint)
        self.ledger.finish_step(step, Outcome("events", self.steps, trace, files=outcome))


@pytest.fixture
def landing(tmp_path: Path) -> Landing:
    """Ten days with a file each, which a run of the eleventh has taken in."""
    made = Landing(tmp_path)
    for day in range(10):
        made.put(f"{name_of(day)}/a.json")
    made.run(START + 10 * DAY + HOUR)
    return made


NOON = START + 10 * DAY + 12 * HOUR
"""Later on that day."""

OLD = frozenset(map(name_of, range(7)))
"""The days that ended three days and more before the full listing."""


def test_known_folders_before_the_window_are_left_out(landing: Landing) -> None:
    """
    Those within the window are listed, also where a file of them leaves, and all files of the
    others count as there. All are listed where a definition that changed may read all files, and
    after a table was forgotten.
    """
    listed, seen = landing.look(landing.looks(NOON))

    assert (listed.folders, listed.left_out) == (3, OLD)
    assert (seen.none, seen.unchanged) == (True, 10)
    (landing.root / name_of(9) / "a.json").unlink()
    assert landing.run(NOON).left_out == OLD
    assert landing.taken() == landing.there()
    assert not landing.run(NOON, everything=True).left_out
    landing.ledger.forget("events")
    assert FULL_LISTING.format("events") not in landing.ledger.locations()


@pytest.mark.parametrize(
    ("source", "left"),
    [
        (replace(DAILY, listing_window=0), 10),
        (replace(DAILY, path="in/dt={date}/*.json*"), 7),
    ],
    ids=["window", "pattern"],
)
def test_another_declaration_lists_everything(landing: Landing, source: Source, left: int) -> None:
    """What was recorded is about the source as it was declared: all is listed once by the new one,
    and then other folders are left out.
    """
    for day in range(10):
        landing.put(f"{name_of(day)}/a.jsonl")
    landing.source = source

    assert not landing.run(NOON).left_out
    assert landing.taken() == landing.there()
    assert landing.run(NOON + HOUR).left_out == frozenset(map(name_of, range(left)))


def test_new_folders_of_any_date_are_listed(landing: Landing) -> None:
    """A folder of a year ago that was not there is found, and what is added to it later. The names
    of folders are listed each time: one that is gone whole is noticed.
    """
    landing.put(f"{name_of(-365)}/a.json")
    landing.run(NOON)
    landing.put(f"{name_of(-365)}/b.json")
    assert landing.run(NOON + HOUR).left_out == OLD
    assert landing.taken() == landing.there()

    (landing.root / name_of(2) / "a.json").unlink()
    (landing.root / name_of(2)).rmdir()
    assert landing.run(NOON + 2 * HOUR).left_out == OLD - {name_of(2)}
    assert landing.taken() == landing.there()


def test_what_fails_is_found_again(landing: Landing) -> None:
    """As long as a file of an old folder cannot be taken in, no full listing is recorded."""
    bad = f"{name_of(2)}/b.json"
    landing.put(bad)

    for days in range(1, 4):
        assert not landing.run(NOON + days * DAY, fails={bad}).left_out
        assert not landing.run(NOON + days * DAY + HOUR, fails={bad}).left_out
    landing.run(NOON + 4 * DAY)

    assert landing.taken() == landing.there()
    assert landing.run(NOON + 4 * DAY + HOUR).left_out > OLD - {name_of(2)}


def test_a_young_file_of_an_old_folder_is_found_again(tmp_path: Path) -> None:
    """A full listing that leaves one to settle is not recorded."""
    made = Landing(tmp_path, replace(DAILY, settle=HOUR))
    for path in (f"{name_of(0)}/a.json", f"{name_of(0)}/b.json"):
        made.put(path)
    young = (START + 9 * DAY) * 1000
    os.utime(tmp_path / name_of(0) / "b.json", ns=(young, young))

    made.run(START + 9 * DAY + HOUR // 2)
    listed = made.run(START + 9 * DAY + 2 * HOUR)

    assert not listed.left_out
    assert made.taken() == made.there()


@pytest.mark.parametrize("listing", [None, "daily"])
def test_a_file_that_a_listing_misses(landing: Landing, listing: str | None) -> None:
    """
    A new one is taken in once a listing shows it, though newer ones beside it are there by then;
    a known one leaves with its rows, and comes back.
    """
    landing.source = replace(DAILY, full_listing=listing)
    late = [f"{name_of(day)}/late.json" for day in (-365, 9, 10)]
    known = f"{name_of(9)}/a.json"
    for path in late:
        landing.put(path)
        landing.put(path.replace("late", "later"))
    landing.missed = {*late, known}
    landing.run(NOON)
    assert landing.there().keys() - landing.taken().keys() == landing.missed

    for hours in (1, 2):
        landing.missed = ()
        landing.run(NOON + hours * HOUR)
        assert landing.taken() == landing.there()


@pytest.mark.parametrize("why", ["due", "copies"])
def test_files_that_would_be_read_are_looked_at(landing: Landing, why: str) -> None:
    """Rows come due in a left-out folder, or a copy of it comes back as another leaves."""
    [known] = [one for one in landing.ledger.files("events") if one.path.startswith(name_of(2))]
    waits: dict[str, Any] = {"waiting": 1, "next_due": NOON} if why == "due" else {"dropped": 1}
    landing.take_in(replace(known, **waits))
    assert landing.look(landing.looks(NOON - HOUR))[0].left_out == OLD
    (landing.root / name_of(2) / "a.json").unlink()
    if why == "copies":
        (landing.root / name_of(9) / "a.json").unlink()

    listed, seen = landing.look(landing.looks(NOON))

    assert not listed.left_out
    assert known.id in {file.id for file in seen.removed}


def test_two_models_of_a_source(landing: Landing) -> None:
    """One that knows nothing has all listed, for the other too; after a full listing it goes on."""
    looks = landing.looks(NOON)
    assert landing.look(looks)[0].left_out == OLD

    new, _ = looks.changes("other", DAILY, landing.ledger.locations(), everything=False)

    assert not new.left_out
    assert landing.look(looks)[0] is new
    assert not landing.run(NOON, full=True).left_out
    assert landing.run(NOON + HOUR).left_out == OLD


@pytest.mark.parametrize(
    ("every", "hours", "over"),
    [
        ("daily", 11, False),
        ("daily", 12, True),
        ("weekly", 60, False),  # 2024-10-14 is a Monday
        ("weekly", 84, False),
        ("weekly", 85 + 24 * 7, True),
        ("6 hours", 5, False),
        ("6 hours", 6, True),
        ("weekly", -1, True),
    ],
)
def test_when_the_next_is_due(every: str, hours: int, over: bool) -> None:
    """In the next day or week of UTC, after a length of time, and by a clock set back."""
    last = FullListing(START + 3 * DAY + 12 * HOUR, 7, "x")

    assert FullListing.of_text(str(last)) == last
    assert last.is_over(every, last.at + hours * HOUR) is over


EVENT = st.tuples(
    st.sampled_from(["put", "put", "remove", "run", "run", "fail"]),
    st.integers(-2, 14),
    st.sampled_from("ab"),
)


@pytest.mark.deep
@settings(max_examples=80, deadline=None)
@given(st.lists(EVENT, max_size=40), st.sampled_from(["daily", "weekly", "36 hours"]), st.data())
def test_after_a_full_listing_all_is_as_it_is(
    tmp_path_factory: pytest.TempPathFactory,
    events: list[tuple[str, int, str]],
    every: str,
    data: st.DataObject,
) -> None:
    """
    Files come, change and go in folders of any date, and runs go on.

    After a full listing exactly the files that are there are ingested. After any other, so is each
    file of a folder that was listed, and the others are as they were.
    """
    made = Landing(tmp_path_factory.mktemp("landing"), replace(DAILY, full_listing=every))
    (made.root / "in").mkdir()
    at = START + 5 * DAY
    for what, day, name in events:
        path = f"{name_of(day)}/{name}.json"
        if what == "put":
            made.put(path)
        elif what == "remove":
            (made.root / path).unlink(missing_ok=True)
        else:
            at += data.draw(st.integers(1, 60)) * HOUR
            before = made.taken()
            listed = made.run(at, fails={path} if what == "fail" else ())
            there, taken = made.there(), made.taken()
            for one in {*there, *taken} - ({path} if what == "fail" else set()):
                out = one.rpartition("/")[0] in listed.left_out
                assert taken.get(one) == (before if out else there).get(one)
    made.run(at, full=True)
    assert made.taken() == made.there()
    made.run(at + HOUR)
    assert made.taken() == made.there()


# -- what commands list, and what they say of it


DATED = ("infold.yml", "path: landing/clicks/*.json", "path: landing/clicks/dt={date}/*.json")
LISTED_DAILY = (DATED[0], DATED[1], f"{DATED[2]}\n    full_listing: 10000 days")
NAME = "dt=2024-03-01/a.json"


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop with its one file in a dated folder, after a run that listed everything."""
    found = production(tmp_path / "shop")
    landed(found, NAME).parent.mkdir()
    landed(found, "a.json").rename(landed(found, NAME))
    in_ledger(found, "UPDATE files SET path = ?", f"landing/clicks/{NAME}")
    change(found, LISTED_DAILY)
    said(found, "run")
    return api.open_project(found.root, "prod")


def landed(shop: Project, name: str) -> Path:
    """A file that lands."""
    return shop.root / "landing" / "clicks" / name


def planned(shop: Project, *words: str) -> list[dict[str, Any]]:
    """The files of the steps that are planned."""
    steps = as_json(shop, "plan", *words)["steps"]
    assert isinstance(steps, list)
    return [step["files"] for step in steps if step["files"]]


def test_a_plan_says_what_was_left_out(shop: Project) -> None:
    """The folder of years ago; a new one is planned, and as JSON the folders are counted too."""
    left = "1 file as before; 0 dated folders listed, 1 left for a full listing"
    assert left in said(shop, "plan")

    put_new(shop)
    [files] = planned(shop)

    assert files["new"] == ["landing/clicks/dt=2020-01-01/b.json"]
    assert (files["same"], files["folders_listed"], files["folders_left_out"]) == (1, 1, 1)


def put_new(shop: Project) -> None:
    """A file of a new folder."""
    path = landed(shop, "dt=2020-01-01/b.json")
    path.parent.mkdir()
    path.write_text(json.dumps(CLICK), encoding="utf-8")


def test_a_change_in_an_old_folder_is_planned_when_all_is_listed(shop: Project) -> None:
    """By ``--full-listing``, for a table that is built again, and by default."""
    landed(shop, NAME).write_text(json.dumps(CLICK) * 2, encoding="utf-8")

    assert planned(shop) == []
    [files] = planned(shop, "--full-listing")
    assert (files["new"], files["replaced"]) == ([f"landing/clicks/{NAME}"], 1)
    change(shop, LISTED_DAILY, ("models/clicks.sql", "event_id, ", "upper(event_id) AS event_id, "))
    [files] = planned(shop)
    assert (files["folders_left_out"], files["replaced"]) == (0, 1)
    change(shop, DATED)
    assert len(planned(shop)) == 1


def test_a_saved_plan_lists_as_it_was_made(shop: Project, tmp_path: Path) -> None:
    """What it did not see of an old folder does not make it outdated; a new file is left."""
    change(shop, LISTED_DAILY, ("models/daily.sql", "FROM sessions", "FROM sessions /* all */"))
    landed(shop, NAME).write_text(json.dumps(CLICK) * 2, encoding="utf-8")
    plan = tmp_path / "plan.json"
    said(shop, "plan", "--save", str(plan))
    put_new(shop)

    said(shop, "apply", str(plan))

    assert len(planned(shop)) == 1
