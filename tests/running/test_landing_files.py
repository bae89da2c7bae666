"""Rows of erased persons in the files of sources: which are found, and which files are written."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.declare.shop import write
from tests.spark.project import events

from infold import api
from infold.core.erasure import LandingFile
from infold.core.files import (
    FilesOutcome,
    IngestedFile,
    ListedFile,
    stat_fingerprint,
    with_listed,
)
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.trace import Trace
from infold.ledger import SqlLedger
from infold.running.landing_files import find_rows, rewrite_files
from infold.running.source_listings import listed_changes

CONFIG = """\
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    event_time_column: at
    settle: 1 hour
    columns: {who: string, device: bigint, at: timestamp}
  raw.owners:
    path: owners/*.csv
    columns: {who: string, name: string}
  raw.users: {url: "sqlite:///users.db", table: users, columns: {who: string}}
  raw.old:
    path: old/*.avro
    columns: {who: string}
erasures:
  person: {raw.clicks: who, raw.owners: who, raw.users: who, raw.old: who}
  device: {raw.clicks: device}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}"}
"""
MODEL = events("SELECT who, at FROM raw.clicks", key="who")


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    """A project with a file of each source, and requests to erase cat and the device 7."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    write(tmp_path, {"infold.yml": CONFIG, "models/clicks.sql": MODEL})
    for folder in ("landing", "owners", "old"):
        (tmp_path / folder).mkdir()
    (tmp_path / "landing" / "a.json").write_text('{"who": "cat"}\n{"who": "bob"}\n')
    (tmp_path / "landing" / "b.json").write_text('{"who": "bob", "device": 1}\n')
    project = api.open_project(tmp_path)
    api.erase(project, "person", ["cat"])
    api.erase(project, "device", ["7"])
    return project


@pytest.fixture
def ledger(shop: Project) -> Iterator[SqlLedger]:
    """Its ledger, which gives back the lease in the end."""
    opened = api.ledger_of(shop)
    yield opened
    opened.release()


def found(shop: Project, *sources: str) -> list[tuple[str, int | None]]:
    """Files with how many rows of erased persons they have."""
    files = find_rows(shop, api.ledger_of(shop), lambda source: source.name in sources)
    return [(file.path, file.rows) for file, _ in files]


def take_in(shop: Project, ledger: SqlLedger, path: str, *, set_aside: int = 0) -> IngestedFile:
    """Have a table know a file as it is; from then on the ledger has the lease."""
    status = (shop.root / path).stat()
    listed = ListedFile(path, status.st_size, 0, stat_fingerprint(status))
    ledger.acquire("r")
    ledger.begin_run("r", "run", 0, {})
    [id_] = ledger.register_files("raw.clicks", [listed]).values()
    file = IngestedFile(id_, path, listed.size, listed.fingerprint, 0, rows=1, set_aside=set_aside)
    ledger.begin_step("r", "r-1", 1, "clicks", "ingest", {})
    files = FilesOutcome("raw.clicks", (file,))
    ledger.finish_step("r-1", Outcome("clicks", 1, Trace("clicks", "f"), files=files))
    return file


def rewritten(
    shop: Project, ledger: SqlLedger, *behind: str, landing: bool = True
) -> Sequence[LandingFile]:
    """What came of writing files of a source again."""
    files = rewrite_files(shop, ledger, landing=landing, behind=frozenset(behind))
    return [file for file in files if file.source == "raw.clicks"]


def test_rows_of_erased_persons(shop: Project) -> None:
    """By each declared column, in the form of its type; also in files that have yet to settle."""
    assert found(shop, "raw.clicks") == [("landing/a.json", 1), ("landing/b.json", 0)]
    devices = ["7.0", "7e0", '"007"', '" 7"', "70", "7.5", '"x"', "1e400", "null"]
    lines = [f'{{"who": "x", "device": {device}}}' for device in devices]
    (shop.root / "landing" / "c.json").write_text("\n".join(lines))
    (shop.root / "owners" / "o.csv").write_text("name,who\ncat,tom\nx,cat\n")
    assert found(shop, "raw.clicks")[2:] == [("landing/c.json", 4)]
    assert found(shop, "raw.owners") == [("owners/o.csv", 1)]


def test_requests_for_some_rows(shop: Project) -> None:
    """Those of one source count there alone, those for older rows nowhere: rows may be there."""
    (shop.root / "owners" / "o.csv").write_text("name,who\nx,eve\nx,fox\n")
    (shop.root / "landing" / "a.json").write_text('{"who": "eve"}\n{"who": "fox"}\n')
    api.erase(shop, "person", ["eve"], source="raw.owners")
    api.erase(shop, "person", ["fox"], source="raw.clicks", before=7)
    assert found(shop, "raw.owners") == [("owners/o.csv", 1)]
    assert found(shop, "raw.clicks")[0] == ("landing/a.json", 0)


def test_what_cannot_be_looked_into(shop: Project) -> None:
    """Sources and files are named with the reason, which has no value of a row."""
    (shop.root / "owners" / "o.csv").write_text('name,who\n"cat"s,cat\n')
    files = find_rows(shop, api.ledger_of(shop), lambda source: source.name != "raw.clicks")
    assert [(file.source, file.path, file.why) for file, _ in files] == [
        ("raw.old", "", "rows of avro are not looked at"),
        (
            *("raw.owners", "owners/o.csv"),
            "a quote is not where a field begins or ends: ',' expected after '\"'",
        ),
    ]
    (shop.root / "owners" / "o.csv").unlink()
    (shop.root / "owners").rmdir()
    assert found(shop, "raw.owners") == []  # nothing was delivered yet
    (shop.root / "landing" / "a.json").rename(shop.root / "landing" / os.fsdecode(b"\xff.json"))
    [(source, _)] = find_rows(shop, api.ledger_of(shop), lambda one: one.name == "raw.clicks")
    assert (source.path, source.rows) == ("", None)


def test_a_file_goes_on_as_the_one_it_was(shop: Project, ledger: SqlLedger) -> None:
    """The next listing has nothing new, and what was counted of the file stays."""
    file = take_in(shop, ledger, "landing/a.json")
    assert rewritten(shop, ledger) == [LandingFile("raw.clicks", "landing/a.json", 1)]
    path = shop.root / file.path
    assert path.read_text() == '{"who": "bob"}\n'
    [known] = ledger.files("clicks")
    assert (known.id, known.rows) == (file.id, file.rows)
    assert (known.fingerprint, known.size) == (stat_fingerprint(path.stat()), path.stat().st_size)
    now = ListedFile(file.path, known.size, 0, known.fingerprint)
    assert listed_changes(ledger, "clicks", shop.sources["raw.clicks"], [now], (), 0).none
    assert rewritten(shop, ledger) == []


def test_a_file_with_rows_that_were_set_aside_is_read_again(
    shop: Project, ledger: SqlLedger
) -> None:
    """Their texts may have a key, and leave with the version of the file that they are of."""
    take_in(shop, ledger, "landing/a.json", set_aside=1)
    assert rewritten(shop, ledger) == [LandingFile("raw.clicks", "landing/a.json", 1)]
    [known] = ledger.files("clicks")
    assert known.fingerprint != stat_fingerprint((shop.root / known.path).stat())


def test_files_that_are_not_as_they_were_read(shop: Project, ledger: SqlLedger) -> None:
    """They stay, and so do those of a table that has yet to erase rows."""
    path = "landing/a.json"
    unread = [LandingFile("raw.clicks", path, 1, "no run has read it as it is now")]
    assert rewritten(shop, ledger, landing=False) == []
    assert rewritten(shop, ledger) == unread
    take_in(shop, ledger, path)
    behind = [LandingFile("raw.clicks", path, 1, "clicks has yet to erase its rows")]
    assert rewritten(shop, ledger, "clicks") == behind
    os.utime(shop.root / path)
    assert rewritten(shop, ledger) == unread
    assert "cat" in (shop.root / path).read_text()


def test_no_source_takes_in_a_file_that_is_being_written(shop: Project, ledger: SqlLedger) -> None:
    """Where one might, as its pattern begins with an underscore, all files stay."""
    take_in(shop, ledger, "landing/a.json")
    config = (shop.root / "infold.yml").read_text()
    (shop.root / "infold.yml").write_text(config.replace("owners/*.csv", "owners/_*.csv"))
    [file] = rewritten(api.open_project(shop.root), ledger)
    assert file.why == "a source takes in names that begin with _ or a dot"


def test_extracted_files_are_written_again_anyway(shop: Project) -> None:
    """They are infold's own; one that a run has not read stays."""
    from infold.lake.databases.extracted_files import Extracted, ExtractedFile, commit

    folder = Path(f"{shop.warehouse}.extracted") / "raw.users"
    folder.mkdir(parents=True)
    parquet.write_table(pa.table({"who": ["cat"]}), folder / "all.infold-1.parquet")
    files = {"all": ExtractedFile(1, "", "1")}
    commit(folder, shop.sources["raw.users"], Extracted("", "1", frozenset({"who"}), files=files))
    [file] = rewrite_files(shop, api.ledger_of(shop), landing=False, behind=frozenset())
    assert (file.source, file.rows) == ("raw.users", 1)
    assert file.why == "no run has read it as it is now"


def test_fingerprints_of_one_file() -> None:
    """Each keeps its form, and what its source decides about files as a whole."""
    assert with_listed("1:2.3:4", "5:6.7:8") == "5:6.7:8"
    assert with_listed("1:2.3:4|p", "5:6.7:8") == "5:6.7:8|p"
    assert with_listed("1:4", "5:6.7:8") == "5:8"
