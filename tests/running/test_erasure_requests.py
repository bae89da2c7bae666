"""Requests to erase that others write: which are new, what is told, and what a failure stops."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from click.testing import CliRunner
from tests.declare.shop import write
from tests.spark.project import events

from infold import api
from infold.api.extraction import open_table
from infold.api.opening import observer_of
from infold.cli import cli
from infold.core.erasure import AskedKey, RequestColumns, RequestRows
from infold.core.files import ListedFile
from infold.core.interval import parse_instant_text as instant
from infold.core.model import Source
from infold.core.project import Project
from infold.lake.databases.erasure_requests import read_requests
from infold.messages import run_errors
from infold.messages.errors import InfoldError, InfoldErrors
from infold.running.erasure_requests import (
    TakenRequests,
    take_requests,
    told_of_requests,
    untaken_notes,
)

CONFIG = """\
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    event_time_column: at
    columns: {id: string, who: string, at: timestamp}
  raw.rates: {path: rates.csv, event_time_column: at, columns: {id: string, at: timestamp}}
  raw.asked:
    path: asked/*.json
    columns: {who: string, asked_at: timestamp, ticket: bigint, v: double}
erasures:
  person: {raw.clicks: who}
erasure_requests:
  person:
    raw.asked: {key: WHO, requested_at: asked_at, id: ticket}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}"}
"""
MODEL = events("SELECT id, who, at FROM raw.clicks")
RATES = MODEL.replace("id, who, at FROM raw.clicks", "id, at FROM raw.rates")
ANN, BOB = AskedKey("ann", instant("2024-03-01"), "7"), AskedKey("bob", instant("2024-02-01"))


class Service:
    """What a service has written, file by file."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files: dict[str, RequestRows] = {}
        self.reads = 0
        self.broken: InfoldError | None = None

    @property
    def project(self) -> Project:
        """The project as it is declared now."""
        return api.open_project(self.root)

    def put(self, name: str, *asked: AskedKey, **unusable: int) -> None:
        """A file of requests, and of rows that are none, by reason."""
        wrong = {(name, why): rows for why, rows in unusable.items()}
        self.files[name] = RequestRows(asked, wrong)

    def listing(self, _: Source) -> tuple[Sequence[ListedFile], Sequence[str]]:
        """The files that are there."""
        files = [ListedFile(name, 1, 0, repr(rows)) for name, rows in self.files.items()]
        return files, ()

    def read(self, _: RequestColumns, files: Sequence[ListedFile]) -> RequestRows:
        """Their rows; or the error that the source has."""
        self.reads += 1
        if self.broken is not None:
            raise self.broken
        rows = [self.files[file.path] for file in files]
        once = {one.key: one for part in rows for one in part.asked}
        unusable = {at: count for part in rows for at, count in part.unusable.items()}
        return RequestRows(tuple(once.values()), unusable)

    def take(self, *, dies: bool = False) -> TakenRequests:
        """Record what is new, in a run that may die before it notes which files it read."""
        ledger = api.ledger_of(self.project)
        ledger.acquire("run")
        before = ledger.locations()
        try:
            taken = take_requests(self.project, ledger, self.listing, self.read)
            if dies:
                ledger.remember_locations({**dict.fromkeys(ledger.locations(), ""), **before})
            return taken
        finally:
            ledger.release()

    def planned(self) -> list[str]:
        """What a plan says of it."""
        return [*untaken_notes(self.project, api.ledger_of(self.project), self.listing)]

    @property
    def asked(self) -> list[tuple[str, int]]:
        """The requests of the ledger."""
        return [(one.id, one.made_at) for one in api.ledger_of(self.project).erasures()]

    @property
    def hashes(self) -> set[str]:
        """Whoever is erased."""
        return {key for one in api.ledger_of(self.project).erasures() for key in one.keys}


@pytest.fixture
def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Service:
    """A service beside a project; the secret is in the environment."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    models = {"models/clicks.sql": MODEL, "models/rates.sql": RATES}
    write(tmp_path, {"infold.yml": CONFIG, **models})
    return Service(tmp_path)


def test_each_key_is_asked_for_once(service: Service) -> None:
    """With its time and id, oldest first; files that changed are read again, and only then."""
    service.put("a", ANN, BOB)
    assert service.take().notes == ("raw.asked: 2 new requests to erase (person)",)
    bob = service.asked[0][0]
    assert service.asked == [(bob, BOB.requested_at), ("7", ANN.requested_at)]
    assert len(bob) == 12
    assert service.take().notes == ()
    assert service.reads == 1

    service.put("b", replace(ANN, id="8"), AskedKey("cat"))
    assert service.planned() == [
        "raw.asked: a run first takes the requests to erase that are new there"
    ]
    assert service.take().notes == ("raw.asked: 1 new request to erase (person)",)
    assert [at > 0 for _, at in service.asked] == [True] * 3
    assert service.planned() == []


def test_what_is_gone_takes_nothing_back(service: Service) -> None:
    """A request is for good, whatever the service keeps of it."""
    service.put("a", ANN)
    service.take()
    service.files.clear()
    service.put("b", BOB)
    service.take()
    assert len(service.asked) == 2


def test_a_request_for_a_part_is_another(service: Service) -> None:
    """Who asked for rows before a time has not asked for all; who asked for all has."""
    api.erase(service.project, "person", ["ann"], before=instant("2024-01-01"))
    api.erase(service.project, "person", ["bob"])
    service.put("a", ANN, BOB)
    service.take()
    assert [id_ for id_, _ in service.asked][2:] == ["7"]


def test_order_and_crashes_change_nothing(service: Service, tmp_path: Path) -> None:
    """Files in any order, taken by runs that may die before they note it: the same are erased."""
    found = []
    for seed in range(4):
        random, root = Random(seed), tmp_path / f"run{seed}"
        write(root, {"infold.yml": CONFIG, "models/clicks.sql": MODEL})
        one, names = Service(root), [f"p{at}" for at in range(9)]
        random.shuffle(names)
        for at, name in enumerate(names):
            one.put(str(at), AskedKey(name), AskedKey(random.choice(names)))
            if random.random() < 0.5:
                one.take(dies=random.random() < 0.5)
        one.take()
        assert len(one.asked) == 9
        found.append(one.hashes)
    assert found == [found[0]] * 4


def test_rows_that_are_no_requests(service: Service) -> None:
    """They are counted with their file and reason, and told until the files are others."""
    service.put("a", ANN, null=2, unparsable=1)
    told = "raw.asked: nobody is erased by 3 rows (2 of a: null; 1 of a: unparsable)"
    assert service.take().notes == ("raw.asked: 1 new request to erase (person)", told)
    assert service.take().notes == (told,)
    assert service.planned() == [told]
    assert service.reads == 1
    shown = CliRunner().invoke(cli, ["-C", str(service.root), "erase"]).output
    assert told in shown
    assert "from raw.asked" in shown
    assert "ann" not in shown

    service.put("a", ANN)
    assert service.take().notes == ()
    assert [*told_of_requests(service.project, api.ledger_of(service.project))] == []


def test_no_file_at_all(service: Service) -> None:
    """A path that nothing matches is told, as it may be wrong; nothing is read."""
    assert service.take().notes == (
        "raw.asked: no file matches asked/*.json, so nobody asks to be erased",
    )
    assert service.reads == 0


def test_a_source_that_cannot_be_read(service: Service) -> None:
    """Models that take in rows of such persons wait, and others do not; then it is tried again."""
    service.put("a", ANN)
    service.broken = run_errors.unreadable_file(path="a", why="it is damaged")
    taken = service.take()
    assert {name: error.slug for name, error in taken.refused.items()} == {
        "clicks": "unreadable-file"
    }
    service.broken = None
    assert service.take().refused == {}
    assert len(service.asked) == 1


def test_another_secret(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """New requests cannot be told from known ones by it, so it is refused."""
    service.put("a", ANN)
    service.take()
    monkeypatch.setenv("ERASED_BY", "another")
    service.put("b", BOB)
    assert [error.slug for error in service.take().refused.values()] == ["erasure-secret-changed"]


def test_a_plan_without_the_folder(service: Service) -> None:
    """It says so, and goes on."""
    notes = untaken_notes(
        service.project, api.ledger_of(service.project), observer_of(service.project).listing
    )
    assert [note.partition(":")[0] for note in notes] == ["raw.asked"]


def test_a_table_of_a_database(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read where it is, each key with its earliest row; no file of it is made."""
    with sqlite3.connect(service.root / "app.db") as database:
        database.execute("CREATE TABLE asked (who TEXT, asked_at TIMESTAMP, ticket INTEGER)")
        rows = [("ann", "2024-03-01 00:00:00", 7), ("ann", "2024-03-09 00:00:00", 8)]
        rows += [("bob", None, None), (None, None, 1), ("", None, 1)]  # type: ignore[list-item]
        database.executemany("INSERT INTO asked VALUES (?, ?, ?)", rows)
    table = 'url: "sqlite:///app.db"\n    table: asked'
    text = CONFIG.replace("path: asked/*.json", table).replace(", v: double", "")
    (service.root / "infold.yml").write_text(text)
    [columns] = service.project.erasure_requests

    with open_table(columns.source, service.root) as opened:
        found = read_requests(columns, opened)
    assert found.asked == (ANN, AskedKey("bob"))
    assert found.unusable == {("", "null who"): 1, ("", "empty who"): 1}
    # It is read each time, as nothing else tells what is new.
    monkeypatch.setattr(service, "read", lambda *_: found)
    assert [len(service.take().notes) for _ in range(2)] == [2, 1]
    assert len(service.asked) == 2


MISTAKES: Mapping[str, tuple[str, ...]] = {
    "persn: {raw.asked: {key: who}}": ("unknown-key",),
    "person: {raw.ask: {key: who}}": ("unknown-key",),
    "person: {raw.asked: {}}": ("missing-key",),
    "person: {raw.asked: who}": ("wrong-type",),
    "person: {raw.asked: {key: v}}": ("erasure-column",),
    "person: {raw.asked: {key: whom}}": ("unknown-column",),
    "person: {raw.asked: {key: who, requested_at: ticket}}": ("not-a-time",),
    "person: {raw.asked: {key: who, before: asked_at}}": ("unknown-key",),
}


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_in_infold_yml(service: Service, text: str) -> None:
    """Each is told with its place."""
    before, _, after = CONFIG.partition("  person:\n    raw.asked:")
    after = after.partition("\n")[2]
    (service.root / "infold.yml").write_text(f"{before}  {text}\n{after}")
    with pytest.raises(InfoldErrors) as caught:
        api.open_project(service.root)
    found = [(error.slug, error.at is not None) for error in caught.value.each]
    assert found == [(slug, True) for slug in MISTAKES[text]]
