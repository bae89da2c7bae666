"""A project with built tables and a ledger that describes them, made without an engine."""

from __future__ import annotations

import itertools
import json
import shutil
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from tests.declare.shop import INFOLD, SHOP, write

from infold import api
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import DAY, Interval, parse_instant_text
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.ledger.store import SqlLedger

START = parse_instant_text("2024-03-01")
DECLARED = INFOLD.replace("format: json\n", "format: json\n    may_be_empty: true\n")
"""No file is there: what is said to be taken in is only in the ledger."""
NAMES = ("clicks", "sessions", "daily")
INPUTS = {"clicks": {}, "sessions": {"clicks": 1}, "daily": {"sessions": 1}}

CATALOG = """
CREATE TABLE iceberg_tables (
    catalog_name TEXT, table_namespace TEXT, table_name TEXT,
    metadata_location TEXT, previous_metadata_location TEXT, iceberg_type TEXT,
    PRIMARY KEY (catalog_name, table_namespace, table_name)
)
"""


def in_catalog(project: Project, statement: str, *values: object) -> list[Any]:
    """What a statement of SQL does to the catalog, or finds there."""
    return _executed(project.catalog_db, statement, values)


def in_ledger(project: Project, statement: str, *values: object) -> list[Any]:
    """The same for the ledger."""
    file = project.root / project.target.ledger.removeprefix("sqlite:///")
    return _executed(file, statement, values)


def _executed(file: Path, statement: str, values: Sequence[Any]) -> list[Any]:
    with closing(sqlite3.connect(file)) as database, database:
        return database.execute(statement, values).fetchall()


def day(number: int) -> Interval:
    """A day of March 2024, from 0."""
    return Interval(START + number * DAY, START + (number + 1) * DAY)


def stand_up(root: Path, targets: str = "", target: str | None = None) -> Project:
    """The shop of the declared examples, each table built once with two days of rows."""
    return copied(_made(targets, target), root)


def copied(made: Project, root: Path) -> Project:
    """The same project in another folder."""
    shutil.copytree(made.root, root)
    project = api.open_project(root, made.target.name)
    moved = "UPDATE iceberg_tables SET metadata_location = replace(metadata_location, ?, ?)"
    in_catalog(project, moved, str(made.root), str(root))
    return project


def also_built(project: Project, name: str, reads: str) -> None:
    """One more table of the project, built by a second run from version 1 of what it reads."""
    with leased(project) as book:
        book.begin_run("r2", "run", 0, {})
        _build(project, book, name, 9, run="r2", inputs={reads: 1})
        book.finish_run("r2", "done", Receipt())


@contextmanager
def leased(project: Project, run: str = "r2") -> Iterator[SqlLedger]:
    """The ledger, to be written to by a run until the end of the block."""
    book = api.ledger_of(project)
    book.acquire(run)
    try:
        yield book
    finally:
        book.close()


def commit(project: Project, outcome: Outcome, run: str = "r2") -> None:
    """A run with one step, of which this came."""
    with leased(project, run) as book:
        book.begin_run(run, "run", 0, {})
        book.begin_step(run, f"{run}-1", 1, outcome.model, "build", {})
        book.finish_step(f"{run}-1", outcome)


def taken_over(project: Project, run: str) -> None:
    """A run began its first step, of clicks, and the next one forgot it."""
    with leased(project, run) as book:
        book.begin_run(run, "run", 0, {})
        book.begin_step(run, f"{run}-1", 1, "clicks", "ingest", {})
        book.close_step(f"{run}-1", "forgotten")


@cache
def _made(targets: str, target: str | None) -> Project:
    """The project that others are copies of: dozens of tests begin with the same one."""
    root = new_folder()
    write(root, {**SHOP, "infold.yml": DECLARED + targets})
    (root / "landing" / "clicks").mkdir(parents=True)
    (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
    project = api.open_project(root, target, declared=True)
    project.warehouse.mkdir(parents=True)
    in_catalog(project, CATALOG)
    with leased(project, "r1") as book:
        book.begin_run("r1", "run", 0, {})
        for seq, name in enumerate(NAMES, 1):
            _build(project, book, name, seq, run="r1", inputs=INPUTS[name])
        book.finish_run("r1", "done", Receipt())
    return project


_FOLDER = TemporaryDirectory(prefix="infold-standing-")
_NUMBERS = itertools.count()


def new_folder() -> Path:
    """Where a project may be for as long as this process is."""
    return Path(_FOLDER.name) / str(next(_NUMBERS))


def _build(
    project: Project, book: SqlLedger, name: str, seq: int, *, run: str, inputs: Mapping[str, int]
) -> None:
    changes = tuple(
        CellChange(day(i), 3, 0, 0, 3, 0, 7 + i, day(i).start + (i + 1) * 1_000) for i in (0, 1)
    )
    files = None
    if name == "clicks":
        known = book.register_files("raw.clicks", [ListedFile("landing/a.json", 1, 0, "f")])
        (id_,) = known.values()
        taken = (IngestedFile(id_, "landing/a.json", 1, "f", horizon=0, rows=6),)
        files = FilesOutcome("raw.clicks", taken, (), (FileCell(id_, day(0), 3),), ())
    trace = Trace(name, project[name].fingerprint, dict(inputs))
    snapshot = 100 + seq
    book.begin_step(run, f"{run}-{seq}", seq, name, "build", {})
    book.finish_step(
        f"{run}-{seq}", Outcome(name, 1, trace, changes, whole=True, snapshot=snapshot, files=files)
    )
    put(project, name, f"{run}-{seq}", snapshot)


def put(project: Project, name: str, step: str, snapshot: int, *before: tuple[str, int]) -> None:
    """A table in the catalog, with a file of metadata and one of rows; ``before`` are older."""
    folder = project.warehouse / project.name / name
    for part in ("metadata", "data"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    (folder / "data" / "rows.parquet").write_bytes(b"rows")
    found, parent = [], None
    for by, number in (*before, (step, snapshot)):
        summary = {"infold.step": by, "operation": "append"}
        found.append({"snapshot-id": number, "parent-snapshot-id": parent, "summary": summary})
        parent = number
    metadata = folder / "metadata" / f"{len(found)}.metadata.json"
    metadata.write_text(
        json.dumps({"snapshots": found, "current-snapshot-id": snapshot}), encoding="utf-8"
    )
    row = "INSERT OR REPLACE INTO iceberg_tables VALUES ('infold', ?, ?, ?, NULL, 'TABLE')"
    in_catalog(project, row, project.name, name, f"file:{metadata}")


def tables(project: Project) -> set[str]:
    """The tables in the catalog."""
    return {name for name in NAMES if api.lake_of(project).metadata(name) is not None}


def folders(project: Project) -> set[str]:
    """The folders of tables that there are."""
    base = project.warehouse / project.name
    return {path.name for path in base.iterdir()} if base.exists() else set()


def drop(project: Project, name: str) -> None:
    """As another engine drops a table: its row in the catalog goes."""
    in_catalog(project, "DELETE FROM iceberg_tables WHERE table_name = ?", name)
