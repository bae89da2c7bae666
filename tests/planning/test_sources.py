"""
What a plan says of sources: of files, of a table, of files that were extracted of a database.

One that loses many files or rows at once is refused, as when a share is not mounted.
"""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet
from tests.declare.shop import INFOLD, SHOP, write
from tests.lake.databases.folder import DAYS, Database, declare
from tests.lake.delta.vectors import mark_deleted

from infold import api
from infold.core.files import FileCell, FilesOutcome, IngestedFile
from infold.core.formats import Format
from infold.core.interval import DAY, Interval, parse_instant_text
from infold.core.model import Column, Source
from infold.core.plan import FileDiff, Plan
from infold.core.project import Project
from infold.core.record import Outcome, Receipt
from infold.core.trace import CellChange, Trace
from infold.messages.errors import InfoldError, InfoldErrors
from infold.planning.destructive import excessive_removals, refuse_lost_rows, refuse_removals


def take_in(project: Project, model: str, source: str) -> None:
    """What is there is what the model holds, ten rows of each file, all on one day."""
    book = api.ledger_of(project)
    book.acquire("r1")
    book.begin_run("r1", "run", 0, {})
    seen = api.observer_of(project).observe().models[model].files
    assert seen is not None
    ids = book.register_files(source, seen.new)
    taken = tuple(
        IngestedFile(ids[file.path], file.path, file.size, file.fingerprint, 0, rows=10)
        for file in seen.new
    )
    day = Interval(parse_instant_text("2024-03-01"), parse_instant_text("2024-03-01") + DAY)
    cells = tuple(FileCell(file.id, day, 10) for file in taken)
    rows = 10 * len(taken)
    trace = Trace(model, project[model].fingerprint)
    book.begin_step("r1", "r1-1", 1, model, "build", {})
    files = FilesOutcome(source, taken, (), cells)
    change = CellChange(day, rows, 0, 0, rows, 0, 1)
    book.finish_step("r1-1", Outcome(model, 1, trace, (change,), files=files))
    book.finish_run("r1", "done", Receipt())
    book.close()


class Share:
    """A project over a folder of files, each of ten rows, that a model has taken in."""

    def __init__(self, root: Path, files: int, limit: str | None = None) -> None:
        text = INFOLD.replace(
            "    format: json\n",
            f"    format: json\n    removal_limit: {limit}\n" if limit else "    format: json\n",
        )
        write(root, {**SHOP, "infold.yml": text})
        (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
        self.folder = root / "landing" / "clicks"
        self.folder.mkdir(parents=True)
        for number in range(files):
            self.land(f"{number}.json")
        self.project = api.open_project(root)
        self.take_in()

    def land(self, name: str, text: str = "{}") -> None:
        """A file; only its size is read."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def take_in(self) -> None:
        """What is there is what clicks holds."""
        take_in(self.project, "clicks", "raw.clicks")

    def lose(self, *numbers: int) -> None:
        """Files that are gone."""
        for number in numbers:
            (self.folder / f"{number}.json").unlink()

    def lost(self) -> str:
        """What a run is refused for; empty when it is not."""
        todo = api.make_plan(self.project, api.observe(self.project), select=["clicks"])
        found = dict(excessive_removals(self.project, todo))
        assert set(found) <= {"raw.clicks"}
        return found.get("raw.clicks", "")


def share(tmp_path: Path, files: int, limit: str | None = None) -> Share:
    """So many files, all taken in."""
    return Share(tmp_path / "shop", files, limit)


def test_an_emptied_folder_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    """Before anything is written, exit code 3."""
    clicks = share(tmp_path, 3)
    clicks.lose(0, 1, 2)
    todo = api.make_plan(clicks.project, api.observe(clicks.project), select=["clicks"])

    with pytest.raises(InfoldError) as caught:
        api.run(clicks.project)

    assert (caught.value.slug, caught.value.exit_code) == ("source-shrank", 3)
    assert caught.value.facts == (("raw.clicks", "3 of 3 files gone, with 30 of 30 rows"),)
    assert api.history(clicks.project)[0].state == "refused"
    assert len(api.ledger_of(clicks.project).files("clicks")) == 3
    assert todo.notes == (
        "raw.clicks: 3 of 3 files gone, with 30 of 30 rows; a run needs --allow-removals",
    )
    refuse_removals(clicks.project, todo, allowed=True)


@pytest.mark.parametrize(
    ("files", "gone", "limit", "refused"),
    [
        (1, 1, None, True),
        (20, 19, None, False),
        (21, 10, None, False),
        (21, 11, None, True),
        (22, 11, None, False),  # half is not more than half
        (20, 2, "10%", False),
        (20, 3, "10%", True),
        (3, 3, "100%", False),
        (3, 1, "0%", True),
    ],
)
def test_how_much_may_be_removed(
    tmp_path: Path, files: int, gone: int, limit: str | None, refused: bool
) -> None:
    """Not all files, and of more than 20 at most half; or as declared."""
    clicks = share(tmp_path, files, limit)
    clicks.lose(*range(gone))

    assert bool(clicks.lost()) is refused


def test_rows_count_like_files(tmp_path: Path) -> None:
    """Removing one large file among many small ones removes most of the source's rows."""
    clicks = share(tmp_path, 4, "50%")
    clicks.lose(0)
    seen = api.observe(clicks.project)
    assert not clicks.lost()

    files = seen.models["clicks"].files
    assert files is not None
    [gone] = files.lost
    large = replace(gone, rows=31)
    known = tuple(large if file == gone else file for file in files.ingested)
    model = replace(seen.models["clicks"], files=replace(files, lost=(large,), ingested=known))
    todo = api.make_plan(
        clicks.project, replace(seen, models={**seen.models, "clicks": model}), select=["clicks"]
    )

    assert dict(excessive_removals(clicks.project, todo)) == {
        "raw.clicks": "1 of 4 files gone, with 31 of 61 rows"
    }


def test_files_in_their_place_compensate(tmp_path: Path) -> None:
    """
    A renamed file or the next full copy compensates for a removed one; fewer rows do not. Emptied
    files count as removed, corrected ones do not; when a folder is mounted again, no file is new.
    """
    clicks = share(tmp_path, 2)
    away = shutil.move(clicks.folder, tmp_path / "away")
    clicks.folder.mkdir()
    assert clicks.lost()
    clicks.land("a.json")
    assert clicks.lost()
    clicks.land("b.json")
    assert not clicks.lost()
    shutil.rmtree(clicks.folder)
    shutil.move(away, clicks.folder)
    seen = clicks.project
    assert not api.make_plan(seen, api.observe(seen), select=["clicks"]).steps

    clicks.land("0.json", "")
    clicks.land("1.json", "{} {}")
    assert not clicks.lost()
    clicks.land("1.json", "")
    assert clicks.lost()


def replaced(
    files: int, rows: int, *, after: int, iceberg: bool = False, came: int = 0, grown: int = 0
) -> str:
    """The refusal when files have another number of rows, and some new rows arrived."""
    columns = (Column("id", "string"),)
    source = Source("raw.clicks", Format.ICEBERG if iceberg else Format.CSV, columns, path="*.csv")
    known = tuple(IngestedFile(at, f"{at}.csv", 9, "old", 0, rows=rows) for at in range(files))
    counted = {file.path: after for file in known} | ({"more.csv": came} if came else {})
    counted |= {"0.csv": grown} if grown else {}
    diff = FileDiff(source.name, removed=known, ingested=known, row_counts=counted)
    refuse_lost_rows(source, replace(diff, removals_allowed=True))
    try:
        refuse_lost_rows(source, diff)
    except InfoldError as error:
        return dict(error.facts)["raw.clicks"]
    return ""


def test_rows_of_replaced_files_count() -> None:
    """As many rows or more are a correction; rows that an Iceberg update moves are not removed."""
    assert replaced(30, 10, after=0) == (
        "30 of 30 files replaced by ones with fewer rows: 300 of 300 rows gone"
    )
    assert replaced(30, 10, after=4)
    assert replaced(1, 10, after=0)
    assert replaced(30, 10, after=0, grown=1000), "one that grew does not stand for the others"
    assert replaced(30, 10, after=0, came=300), "of files, others do not stand for them"
    assert not replaced(20, 10, after=1)
    assert not any(replaced(30, 10, after=after) for after in (5, 10, 11))
    assert not replaced(30, 10, after=0, iceberg=True, came=300)
    assert replaced(30, 10, after=0, iceberg=True, came=1)


def test_parquet_footers_give_row_counts(tmp_path: Path) -> None:
    """The plan knows rows of Parquet files from their footers without starting Spark."""
    clicks = share(tmp_path, 2)
    source = replace(clicks.project.sources["raw.clicks"], format=Format.PARQUET)
    clicks.project = replace(
        clicks.project, sources={**clicks.project.sources, source.name: source}
    )
    ten = pa.table({"id": list(range(10))})
    for rows, refused in ((10, False), (1, False), (0, True)):
        for number in range(2):
            parquet.write_table(ten.slice(0, rows), clicks.folder / f"{number}.json")
        assert bool(clicks.lost()) is refused, rows
    with pytest.raises(InfoldError, match="more than may go in one run"):
        api.run(clicks.project, select=["clicks"])


def test_a_changed_definition_hides_nothing(tmp_path: Path) -> None:
    """A changed definition, which ingests everything again, still refuses missing files."""
    clicks = share(tmp_path, 3)
    model = clicks.project.root / "models" / "clicks.sql"
    model.write_text(model.read_text().replace("WHERE", "WHERE true AND"), encoding="utf-8")
    clicks.project = api.open_project(clicks.project.root)
    assert not clicks.lost()
    clicks.lose(0, 1, 2)
    assert clicks.lost()


@pytest.mark.parametrize("text", ["half", "10", "101%", "-1%"])
def test_the_share_is_written_in_percent(tmp_path: Path, text: str) -> None:
    """The allowed share is written in percent, and anything else is a mistake at its place."""
    with pytest.raises(InfoldErrors, match="removal_limit is not a part in percent"):
        share(tmp_path, 0, json.dumps(text))


# -- a source that is a table, without an engine


FILES = {
    "infold.yml": """name: shop
sources:
  raw.orders: {path: lake/orders, format: delta, columns: {id: bigint, at: timestamp}}
""",
    "models/orders.sql": """---
materialization: events
unique_key: [id]
timeseries: {event_time_column: at, granularity: day}
---
SELECT id, at FROM raw.orders""",
}


class Orders:
    """A project over a Delta table that somebody else writes."""

    def __init__(self, root: Path) -> None:
        write(root, FILES)
        self.project: Project = api.open_project(root)
        self.folder = root / "lake" / "orders"
        self.folder.parent.mkdir()

    def append(self, *ids: int) -> None:
        """Rows, in one file."""
        at = pa.array(list(ids), pa.timestamp("us", "UTC"))
        write_deltalake(self.folder.as_uri(), pa.table({"id": list(ids), "at": at}), mode="append")

    @property
    def table(self) -> DeltaTable:
        """As its owner has it."""
        return DeltaTable(self.folder.as_uri())

    def plan(self) -> Plan:
        """What a run would do now."""
        return api.make_plan(self.project, api.observe(self.project))

    def reasons(self) -> list[str]:
        """Why it would do something."""
        return [reason.detail for step in self.plan().steps for reason in step.reasons]


@pytest.fixture
def orders(tmp_path: Path) -> Orders:
    """Two files, which a run took in."""
    found = Orders(tmp_path / "shop")
    found.append(1, 2)
    found.append(3, 4)
    take_in(found.project, "orders", "raw.orders")
    assert not found.plan().steps
    return found


def test_what_only_tidies_up_is_nothing_to_do(orders: Orders) -> None:
    """
    A checkpoint and a vacuum leave the files of the newest version; appended rows are new. Of a
    marked row the file is read, as it is another version.
    """
    orders.table.create_checkpoint()
    orders.table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    (orders.folder / "_delta_log" / f"{0:020}.json").unlink()
    assert not orders.plan().steps
    orders.append(5)
    assert orders.reasons() == ["1 new file"]
    assert not orders.plan().notes
    mark_deleted(orders.folder, "id", {3})
    assert orders.reasons() == ["1 new file, 1 replaced", "1 file replaced or deleted"]


def test_a_compaction_says_what_it_costs(orders: Orders) -> None:
    """Rows are in another file: it is read and compared, and nothing is lost."""
    orders.table.optimize.compact()

    assert orders.reasons() == ["1 new file", "2 files replaced or deleted"]
    (note,) = orders.plan().notes
    assert re.search(r"rows of these \(1 file, \d\.\d MB\) are read and compared", note)


def test_a_table_that_is_gone(orders: Orders) -> None:
    """A run asks for --allow-removals; without the table it is an error by name."""
    orders.table.delete()
    (note,) = orders.plan().notes
    assert note.startswith("raw.orders: 2 of 2 files gone")
    orders.folder.rename(orders.folder.with_name("moved"))

    with pytest.raises(InfoldError, match="no-delta-table"):
        orders.plan()


# -- files that were extracted of a database: each reading writes new ones


class Bought:
    """A project over a table of ten rows on each of three days, all of them taken in."""

    def __init__(self, root: Path, keys: str) -> None:
        declare(root, keys)
        self.database = Database(root, key="at" if keys else None, reread=30 if keys else None)
        self.project = api.open_project(root)
        self.database.run("CREATE TABLE t (id INTEGER, at DATETIME, v TEXT)")
        for id_ in range(30):
            day = id_ // 10 + 1
            self.database.run("INSERT INTO t VALUES (?, ?, 'a')", values=(id_, f"2024-03-0{day}"))
        self.database.extract()
        take_in(self.project, "taken", "raw.t")

    def changes(self, statement: str) -> tuple[FileDiff, str]:
        """What a plan says after a statement and a reading, and what a run is refused for."""
        self.database.run(statement)
        self.database.extract()
        plan = api.plan(self.project)
        files = next(step.files for step in plan.steps if step.model == "taken")
        assert files is not None
        return files, dict(excessive_removals(self.project, plan)).get("raw.t", "")


def test_a_day_with_other_rows_is_a_replaced_file(tmp_path: Path) -> None:
    """So a day that goes while the others change is one file of three that is lost."""
    bought = Bought(tmp_path, DAYS)
    files, refused = bought.changes("UPDATE t SET v = 'b', at = max(at, '2024-03-02')")

    assert (len(files.new), files.replaced, files.unchanged) == (2, 2, 0)
    assert [Path(file.path).name[:10] for file in files.lost] == ["2024-03-01"]
    assert not refused


@pytest.mark.parametrize(
    ("statement", "refused"),
    [
        ("DELETE FROM t WHERE id > 4", ""),
        ("DELETE FROM t", "1 of 1 files replaced by ones with fewer rows: 10 of 10 rows gone"),
    ],
)
def test_a_whole_table_is_one_file_that_is_replaced(
    tmp_path: Path, statement: str, refused: str
) -> None:
    """One without rows is refused by its footer, as the file of ten rows that it replaces."""
    files, says = Bought(tmp_path, "").changes(statement)

    assert (len(files.new), files.replaced, files.lost) == (1, 1, ())
    assert says == refused
