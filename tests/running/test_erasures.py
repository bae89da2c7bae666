"""Requests to erase persons: what is recorded of them, and what is refused."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, cast

import pyarrow as pa
import pytest
from click.testing import CliRunner
from tests.declare.shop import write
from tests.lake.iceberg.conftest import Warehouse
from tests.page.history import history
from tests.planning import strips
from tests.spark.project import events

from infold import api
from infold.api.opening import observer_of
from infold.cli import cli
from infold.core.erasure import ErasureRequest, KeyForm, KeyHasher, form_of, latest_by_key
from infold.core.interval import DAY, MAX, Interval, Ranges
from infold.core.plan import Plan
from infold.core.project import Project
from infold.core.record import Receipt
from infold.core.report import Purged, RunResult
from infold.messages.errors import InfoldError, InfoldErrors
from infold.render.erasures import stored_screen
from infold.running import erasures
from infold.running.erasures import (
    StoredRows,
    is_purge_due,
    keys_in,
    list_erasures,
    refuse_more_rows,
    refuse_other_erasures,
    rewritten_files,
)

if TYPE_CHECKING:
    from infold.core.ports import Lake

CONFIG = """\
name: shop
sources:
  raw.clicks:
    path: landing/*.json
    event_time_column: at
    columns: {id: string, who: string, device: bigint, at: timestamp, v: double}
  raw.owners:
    path: owners/*.csv
    columns: {who: string, name: string}
erasures:
  person: {raw.clicks: who}
targets:
  dev: {erasure_secret: "${env:ERASED_BY}"}
"""
MODEL = events("SELECT id, who, at FROM raw.clicks")
NAMED = MODEL.replace(
    "id, who, at FROM raw.clicks",
    "id, who AS person, id AS key, left(who, 1) AS initial, device, at FROM clicks_of_all",
)
VIEW = "---\nmaterialization: view\n---\nSELECT * FROM raw.clicks\n"
CALLED = """\
from infold import model

@model(
    materialization="events",
    unique_key=["id"],
    timeseries={"event_time_column": "at"},
    inputs={"raw.clicks": {"columns": ["id", "who", "at"]}},
    columns={"id": "string", "who": "string", "at": "timestamp"},
)
def called(row):
    yield row
"""


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a project; its secret is in the environment."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    write(tmp_path, {"infold.yml": CONFIG, "models/clicks.sql": MODEL})
    return tmp_path


def declared(root: Path, text: str) -> Project:
    """The project with other erasures."""
    config = CONFIG.replace("  person: {raw.clicks: who}\n", text)
    (root / "infold.yml").write_text(config)
    return api.open_project(root)


def test_what_hashes_tell_apart() -> None:
    """Text is compared as it is, whole numbers as numbers; two erasures have no hash in common."""
    hasher = KeyHasher.of_secret("secret")

    def hashes(key: str, erasure: str = "person") -> set[str]:
        return set(hasher.hashes_of(erasure, key))

    assert len(hashes("ann")) == 1
    assert hashes("ann").isdisjoint(hashes("Ann") | hashes("ann "))
    assert len(hashes("7") & hashes("007")) == 1
    assert len(hashes("7") & hashes(" +7")) == 1
    assert hashes("7").isdisjoint(hashes("7", "device"))
    assert hashes("7").isdisjoint(KeyHasher.of_secret("other").hashes_of("person", "7"))
    assert len(hashes("7" * 39)) == 1  # no column has such a number
    types = ("string", "varchar(9)", "bigint", "decimal(20,0)", "DECIMAL(20, 0)", "decimal(9)")
    assert [form_of(type_) for type_ in types] == [KeyForm.TEXT] * 2 + [KeyForm.NUMBER] * 4
    assert [form_of(type_) for type_ in ("double", "decimal(9,2)", "array<string>")] == [None] * 3


def test_several_requests_about_one_key() -> None:
    """Of all the one that erases most rows counts, whichever came first."""

    def latest(*before: int | None) -> int | None:
        asked = [ErasureRequest(n, "", "person", ("k",), before=at) for n, at in enumerate(before)]
        return latest_by_key(asked)["k"]

    assert (latest(5), latest(5, 9), latest(9, 5)) == (5, 9, 9)
    assert (latest(None, 5), latest(5, None), latest(None)) == (None, None, None)


def test_what_is_kept_of_a_request(root: Path) -> None:
    """It is kept with hashes alone, under one number for all erasures."""
    project = api.open_project(root)
    first = api.erase(project, "person", ["ann", "7"], reason="by letter", request="r1")
    again = api.erase(project, "person")

    ledger = api.ledger_of(project)
    assert [(one.number, one.id, len(one.keys)) for one in ledger.erasures()] == [
        (1, "r1", 3),
        (2, again.id, 0),
    ]
    assert "ann" not in str(first)
    known = ledger.known_erasures()
    assert known.newest_of("raw.clicks", project.erased_columns["raw.clicks"]) == 2
    assert known.newest_of("raw.owners", ()) == 0
    api.ledger_of(project).close()
    assert b"ann" not in (root / ".infold" / "ledger.db").read_bytes()


def test_columns_that_are_declared_otherwise(root: Path) -> None:
    """A column that was used has to stay; a new one waits until requests are to apply to it."""
    project = api.open_project(root)
    refuse_other_erasures(project, api.ledger_of(project).known_erasures())
    api.erase(project, "person", ["ann"])

    def refused(text: str) -> str:
        other = declared(root, text)
        with pytest.raises(InfoldError) as caught:
            refuse_other_erasures(other, api.ledger_of(other).known_erasures())
        return caught.value.slug

    assert refused("  device: {raw.clicks: device}\n") == "erasure-not-declared"
    assert refused("  person: {raw.clicks: id}\n") == "erasure-not-declared"
    with pytest.raises(InfoldError, match="erasure-not-declared"):
        observer_of(api.open_project(root)).check_ledger()  # as `verify` and `audit` begin
    both = "  person: {raw.clicks: who, raw.owners: who}\n"
    assert refused(both) == "erasure-not-applied"
    wider = declared(root, both)
    with pytest.raises(InfoldError, match="erasure-not-applied"):
        api.erase(wider, "person", ["bob"])  # it would have ann erased from there, too
    api.erase(wider, "person")
    refuse_other_erasures(wider, api.ledger_of(wider).known_erasures())


@pytest.mark.parametrize(
    ("asked", "slug"),
    [
        ({"erasure": "persn", "keys": ["ann"]}, "unknown-erasure"),
        ({"keys": ["ann", ""]}, "bad-erasure"),
        ({"keys": ["ann"], "source": "raw.owners"}, "bad-erasure"),
        ({"keys": ["1", "2", "3"]}, "bad-erasure"),
        ({"keys": ["bob"], "request": "r1"}, "bad-erasure"),
    ],
)
def test_requests_that_are_none(
    root: Path, monkeypatch: pytest.MonkeyPatch, asked: dict[str, object], slug: str
) -> None:
    """Nothing of them is recorded."""
    monkeypatch.setattr(erasures, "MOST_KEYS", 2)
    project = api.open_project(root)
    api.erase(project, "person", ["ann"], request="r1")
    more = {"erasure": "person", **asked}
    with pytest.raises(InfoldError) as caught:
        api.erase(project, **more)  # type: ignore[arg-type]
    assert caught.value.slug == slug
    assert len(api.ledger_of(project).erasures()) == 1


def test_rows_without_a_time_are_not_older_than_others(root: Path) -> None:
    """So a request for a part of them cannot be meant."""
    project = declared(root, "  person: {raw.clicks: who, raw.owners: who}\n")
    with pytest.raises(InfoldError, match="bad-erasure"):
        api.erase(project, "person", ["ann"], before=7)
    assert api.erase(project, "person", ["ann"], source="raw.clicks", before=7).before == 7


def test_secrets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """None, one that is not there, and another one than before."""
    project = api.open_project(root)
    api.erase(project, "person", ["ann"])
    monkeypatch.setenv("ERASED_BY", "another")
    with pytest.raises(InfoldError, match="erasure-secret-changed"):
        api.erase(project, "person", ["bob"])
    with pytest.raises(InfoldError, match="erasure-secret-changed"):
        api.purge(project)
    assert api.history(project) == ()
    monkeypatch.delenv("ERASED_BY")
    with pytest.raises(InfoldError, match="secret-missing"):
        api.erase(project, "person", ["bob"])
    config = (root / "infold.yml").read_text()
    (root / "infold.yml").write_text(config.partition("targets:")[0])
    with pytest.raises(InfoldError, match="erasure-no-secret"):
        api.erase(api.open_project(root), "person", ["bob"])


@pytest.mark.parametrize(
    ("text", "slug"),
    [
        ("  person: {raw.clicks: v}\n", "erasure-column"),
        ("  person: {raw.clicks: whom}\n", "unknown-column"),
        ("  person: {raw.click: who}\n", "unknown-key"),
        ("  person: {raw.clicks: [who]}\n", "wrong-type"),
        ("  7th: {raw.clicks: who}\n", "bad-name"),
        ("  person: {clicks: whom}\n", "unknown-column"),
        ("  person: {daily: who}\n", "erasure-column"),
        ("  person: {named: initial}\n", "erasure-column"),
        ("  person: {named: at}\n", "erasure-column"),
        ("  person: {clicks: who, named: key}\n", "erasure-column"),
        ("  person: {called: who}\n", "erasure-column"),
    ],
)
def test_mistakes_in_infold_yml(root: Path, text: str, slug: str) -> None:
    """Each is told with its place."""
    (root / "models" / "clicks_of_all.sql").write_text(VIEW)
    (root / "models" / "named.sql").write_text(NAMED)
    (root / "models" / "called.py").write_text(CALLED)
    daily = "---\nmaterialization: table\n---\nSELECT who, count(*) AS n FROM clicks GROUP BY who\n"
    (root / "models" / "daily.sql").write_text(daily)
    with pytest.raises(InfoldErrors) as caught:
        declared(root, text)
    assert [(error.slug, error.at is not None) for error in caught.value.each] == [(slug, True)]


def test_models_of_events_name_columns_of_their_sources(root: Path) -> None:
    """A column that is passed on, through views and other names, is the column of the source."""
    (root / "models" / "named.sql").write_text(NAMED)
    (root / "models" / "clicks_of_all.sql").write_text(VIEW)
    by_source = declared(root, "  person: {raw.clicks: who}\n  device: {raw.clicks: device}\n")
    by_models = declared(
        root, "  person: {clicks: WHO, named: person}\n  device: {named: Device}\n"
    )
    assert by_models.erased_columns == by_source.erased_columns
    again = api.open_project(root)  # as it is kept
    assert again.erased_columns == by_source.erased_columns
    (root / "models" / "clicks.sql").write_text(MODEL.replace("id, who, at", "*"))
    assert declared(root, "  person: {clicks: who}\n").erased_columns == {
        "raw.clicks": by_source.erased_columns["raw.clicks"][:1]
    }


def test_a_model_that_is_wrong_itself(root: Path) -> None:
    """Only that is told of it."""
    (root / "models" / "clicks.sql").write_text(MODEL.replace("who, at", "nobody, at"))
    with pytest.raises(InfoldErrors) as caught:
        declared(root, "  person: {clicks: who}\n")
    assert [error.slug for error in caught.value.each] == ["unknown-column"]


def test_a_secret_that_is_written_out(root: Path) -> None:
    """It is refused, and not shown."""
    (root / "infold.yml").write_text(CONFIG.replace("${env:ERASED_BY}", "hunter2"))
    done = CliRunner().invoke(cli, ["-C", str(root), "check"])
    assert done.exit_code == 2
    assert "secret-written-out" in done.output
    assert "hunter2" not in done.output


def test_requests_at_the_same_time(root: Path) -> None:
    """Each has a number of its own. They are recorded beside a run; the next one applies them."""
    api.ledger_of(api.open_project(root)).acquire("r1")

    def ask(name: str) -> int:
        return api.erase(api.open_project(root), "person", [name]).number

    with ThreadPoolExecutor(4) as threads:
        numbers = sorted(threads.map(ask, "abcdefgh"))
    assert numbers == [*range(1, 9)]
    words = ["-C", str(root), "erase", "person", "--value", "ann"]
    done = CliRunner().invoke(cli, words)
    assert (done.exit_code, "locked: run r1 is working" in done.output) == (3, True)
    assert len(api.list_erasures(api.open_project(root))) == 9
    assert CliRunner().invoke(cli, [*words[:3], "--purge"]).exit_code == 3


def test_keys_of_a_file(root: Path) -> None:
    """One a line, each once; a byte order mark is none of a key, and what is no text is told."""
    assert keys_in("ann\r\nbob\n\nann\n 7") == ("ann", "bob", " 7")
    path = root / "keys.txt"
    path.write_bytes("\ufeffann\nbob\n".encode())
    words = ["-C", str(root), "erase", "person", "--from", str(path), "--later"]
    assert CliRunner().invoke(cli, words).exit_code == 0
    [request] = api.ledger_of(api.open_project(root)).erasures()
    assert len(request.keys) == 2
    for content, said in ((b"\xff\xfe", "is not UTF-8"), (b"\n", "has no key in it")):
        path.write_bytes(content)
        done = CliRunner().invoke(cli, words)
        assert (done.exit_code, said in done.output) == (2, True)
    listed = CliRunner().invoke(cli, ["-C", str(root), "erase"])
    assert request.id in listed.output


@pytest.mark.parametrize(
    "words",
    [
        ["person"],
        ["--value", "ann"],
        ["person", "--again", "--value", "ann"],
        ["person", "--again", "--max-rows", "9"],
        ["person", "--value", "ann", "--later", "--purge"],
        ["--landing", "rewrite"],
    ],
)
def test_command_lines_that_say_too_little(root: Path, words: list[str]) -> None:
    """A key, or that earlier requests are meant; and what is erased."""
    done = CliRunner().invoke(cli, ["-C", str(root), "erase", *words])
    assert done.exit_code == 2
    assert "Usage" in done.output


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project whose table of events has three rows of two persons, on two days."""
    monkeypatch.setenv("ERASED_BY", "one that nobody guesses")
    root = history(tmp_path / "shop")
    with (root / "infold.yml").open("a") as config:
        config.write(CONFIG[CONFIG.index("erasures:") :].replace("who}", "user_id}"))
    folder = root / "warehouse"
    folder.mkdir()
    times = [datetime(2024, 3, day, 12, tzinfo=UTC) for day in (1, 1, 2)]
    Warehouse(folder).write(
        "clicks",
        pa.table(
            {
                "user_id": ["ann", "ann", "bob"],
                "event_ts": pa.array(times, pa.timestamp("us", "UTC")),
            }
        ),
    )
    return root


def test_what_a_request_would_cost(stored: Path) -> None:
    """Its rows, the tables that follow, and the files that a purge writes again."""
    words = ["-C", str(stored), "erase", "person", "--value", "ann", "--dry-run", "--json"]
    shown = json.loads(CliRunner().invoke(cli, words).output)

    [file] = (stored / "warehouse" / "shop" / "clicks" / "data").glob("*.parquet")
    day = ["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"]
    clicks = {"model": "clicks", "rows": 2, "cells": [day], "readers": ["daily"]}
    assert shown == {
        "tables": [clicks],
        "purge": [{"model": "clicks", "files": 1, "bytes": file.stat().st_size}],
        "earlier_seconds": [],
    }


def test_how_long_earlier_requests_took(stored: Path) -> None:
    """By the runs that they began and that were done, half of them in no more than that."""
    ledger = api.ledger_of(api.open_project(stored))
    for at, (command, state) in enumerate(
        [("erase", "done"), ("run", "done"), ("erase", "failed")]
    ):
        ledger.acquire(f"e{at}")
        ledger.begin_run(f"e{at}", command, 0, {})
        ledger.finish_run(f"e{at}", state, Receipt())
        ledger.release()
    words = ["-C", str(stored), "erase", "person", "--value", "ann", "--dry-run"]
    assert (
        len(json.loads(CliRunner().invoke(cli, [*words, "--json"]).output)["earlier_seconds"]) == 1
    )
    assert "The last took 0.0" in CliRunner().invoke(cli, words).output
    assert stored_screen([StoredRows("clicks", 0, Ranges(), ())], (), (3.0, 1.0, 9.0)).endswith(
        "The last took 3.00 s: the median of 3"
    )


def test_more_rows_than_allowed(stored: Path) -> None:
    """Such a request is not recorded, nor one for rows that nobody can count."""
    asked = ["-C", str(stored), "erase", "person", "--value", "ann", "--later", "--max-rows"]
    refused = CliRunner().invoke(cli, [*asked, "1"])
    assert (
        refused.exit_code,
        "erasure-over-budget: this request would erase 2" in refused.output,
    ) == (
        3,
        True,
    )
    assert CliRunner().invoke(cli, [*asked, "1", "--dry-run"]).exit_code == 3
    assert api.list_erasures(api.open_project(stored)) == ()
    assert CliRunner().invoke(cli, [*asked, "2"]).exit_code == 0

    unknown = [StoredRows("clicks", 0, Ranges(), ()), StoredRows("orders", None, Ranges(), ())]
    with pytest.raises(InfoldError, match="others that cannot be counted"):
        refuse_more_rows(unknown, 1_000_000)


def test_files_of_tables_that_follow() -> None:
    """They are those with times that their rows may have: of sessions a gap more; not of others."""
    seen: dict[str, Ranges] = {}

    class Stored:
        """A file for each table that is asked for at any time."""

        def file_sizes(self, table: str, times: Ranges) -> list[int]:
            """It is as long as its name."""
            seen[table] = times
            return [len(table)] if times else []

    made = strips.project(strips.EVENTS, strips.SESSIONS, strips.DAILY)
    cells = Ranges((strips.day(3),))
    found = rewritten_files(made, cast("Lake", Stored()), [StoredRows("events", 1, cells, ())])

    assert [(one.model, one.files, one.bytes) for one in found] == [
        ("events", 1, 6),
        ("sessions", 1, 8),
        ("daily", 1, 5),
    ]
    assert seen["events"] == cells
    assert seen["sessions"] == Ranges((Interval(strips.day(2).start, strips.day(4).end),))
    assert not rewritten_files(made, cast("Lake", Stored()), [])


def test_when_a_purge_is_due(root: Path) -> None:
    """A day before the oldest request has to be purged; at once; never by itself."""

    def due(within: int | None, at: int) -> bool:
        target = replace(project.target, erasure_purge=within)
        return is_purge_due(replace(project, target=target), ledger, at)

    project = api.open_project(root)
    ledger = api.ledger_of(project)
    assert not due(0, MAX)
    first = api.erase(project, "person", ["ann"]).made_at
    api.erase(project, "person", ["bob"])
    assert [due(7 * DAY, first + 6 * DAY + late) for late in (-1, 0)] == [False, True]
    assert due(0, first)
    assert not due(None, MAX)
    week = replace(project, target=replace(project.target, erasure_purge=7 * DAY))
    assert [one.purge_by for one in list_erasures(week, ledger)][1] == first + 7 * DAY
    ledger.acquire("r")
    ledger.note_purged(1)
    asked = [one.purge_by for one in list_erasures(week, ledger)]
    assert asked[0] is not None
    assert asked[1] is None
    assert due(7 * DAY, asked[0] - DAY)
    assert not due(7 * DAY, asked[0] - DAY - 1)
    ledger.note_purged(2)
    ledger.release()
    assert not due(0, MAX)


def test_rows_in_files_of_sources_and_the_exit_code(root: Path) -> None:
    """They are somebody else's, unless it is asked that they are written again."""
    (root / "landing").mkdir()
    (root / "landing" / "a.json").write_text('{"who": "ann"}')
    words = ["-C", str(root), "erase"]
    CliRunner().invoke(cli, [*words, "person", "--value", "ann", "--later"])
    for more, code in (([], 0), (["--landing", "leave"], 0), (["--landing", "rewrite"], 4)):
        done = CliRunner().invoke(cli, [*words, "--prove", *more])
        assert (done.exit_code, "landing/a.json  1 row" in done.output) == (code, True)


@pytest.mark.parametrize(
    ("words", "within"),
    [
        (["run", "--json"], "at_once"),
        (["run", "--json"], "7 days"),
        (["erase", "person", "--value", "bob", "--json"], "at_once"),
    ],
)
def test_runs_that_purge(
    root: Path, monkeypatch: pytest.MonkeyPatch, words: list[str], within: str
) -> None:
    """At their end, where a request is due; the exit code says whether something is left."""
    api.erase(api.open_project(root), "person", ["ann"])
    config = CONFIG.replace('ERASED_BY}"}', f'ERASED_BY}}", erasure_purge: {within}}}')
    (root / "infold.yml").write_text(config)
    purges: list[bool] = []

    def purge(_: Project, *, landing: bool, **__: object) -> Purged:
        purges.append(landing)
        return Purged(("clicks",), left=(("daily", "it waits"),))

    monkeypatch.setattr(api, "purge", purge)
    monkeypatch.setattr(api, "run", lambda *_, **__: RunResult("r", "done", plans=(Plan(()),)))
    done = CliRunner().invoke(cli, ["-C", str(root), *words], catch_exceptions=False)
    due = within == "at_once"
    assert purges == [False] * due
    assert ("purged" in json.loads(done.stdout), done.exit_code) == (due, int(due))
