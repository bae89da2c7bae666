"""
Rows of persons who were asked to be erased are as if they had never come.

What the tables should have is counted by DuckDB over all files, without the rows of these persons.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import duckdb
import fastavro
import pyarrow.parquet as pq
import pytest
from tests.crash.scenario import living
from tests.spark.project import CUMULATIVE, NOW, SparkProject, events, new_name, sessions

from infold import api
from infold.api.repairing import repair_ledger
from infold.api.spark_sessions import session
from infold.core.record import Receipt
from infold.core.storages import Storage
from infold.messages.errors import InfoldError
from infold.spark import key_filter
from infold.spark.events import table_change
from infold.spark.storages import storage_of

pytestmark = pytest.mark.spark

SECRET = "ERASED_BY"
COLUMNS = "{id: string, who: string, device: bigint, at: timestamp, v: int}"
HEADER = "id,who,device,at,v"
KEYED = events("SELECT id, who AS person, device, at, v FROM raw.clicks", "prefer: [v]")
WITHOUT_PERSON = events("SELECT id, at, v FROM raw.clicks WHERE v <> 13", "prefer: [v]")
DAILY = """---
materialization: table
timeseries: {event_time_column: at, partition_column: day, granularity: day}
incremental: {}
---
SELECT cast(at AS date) AS day, count(*) AS n, sum(v) AS v FROM clicks GROUP BY 1
"""
USERS = f"{CUMULATIVE}SELECT person, count(*) AS n, sum(v) AS v FROM clicks GROUP BY person\n"
LANDED = DAILY.replace("clicks", "raw.clicks")
"""Over the source itself, which is a table without a key then."""


class Shop(SparkProject):
    """Clicks of persons and devices, and tables over them."""

    now = NOW

    def __init__(self, root: Path, warehouse: Path, storage: Storage, **models: str) -> None:
        super().__init__(
            root,
            f"name: {new_name('erasures')}\n"
            "sources:\n  raw.clicks:\n    path: landing/*.csv\n    may_be_empty: true\n"
            f"    event_time_column: at\n    columns: {COLUMNS}\n"
            "erasures:\n  person: {raw.clicks: who}\n  device: {raw.clicks: device}\n"
            f"targets:\n  dev: {{storage: {storage}, warehouse: '{warehouse}',"
            f" erasure_secret: '${{env:{SECRET}}}'}}\n",
        )
        self.queries, self.warehouse = models, warehouse
        self.models(**models)
        self.gone: list[str] = []

    def put(self, name: str, *rows: str) -> None:
        """A file of rows."""
        self.write(f"landing/{name}", "\n".join([HEADER, *rows]) + "\n")

    def run(self, model: str = "clicks") -> Receipt:
        """One run; the receipt of a model, empty when it had nothing to do."""
        return self.receipts().get(model, Receipt())

    def erase(self, *keys: str, by: str = "person", before: str | None = None) -> None:
        """Ask for somebody to be erased; ``gone`` says the same in SQL."""
        from infold.core.interval import parse_instant_text

        instant = parse_instant_text(before) if before else None
        api.erase(self.project(), by, keys, before=instant)
        names = ", ".join(f"'{key}'" for key in keys)
        test = f"who IN ({names})" if by == "person" else f"device IN ({names})"
        self.gone.append(f"({test} AND \"at\" < '{before or '9999-01-01'}')")

    def expected(self, table: str) -> Sequence[tuple[Any, ...]]:
        """The rows that a table should have, by DuckDB over the files."""
        files = f"read_csv('{self.root}/landing/*.csv', columns={{'id': 'VARCHAR',"
        files += " 'who': 'VARCHAR', 'device': 'BIGINT', 'at': 'TIMESTAMP', 'v': 'INT'})"
        gone = " OR ".join(self.gone) or "false"
        left = f"SELECT * FROM {files} WHERE NOT coalesce({gone}, false)"
        first = f'SELECT DISTINCT ON (id, "at") * FROM ({left}) WHERE id IS NOT NULL ORDER BY v'
        day = 'SELECT cast("at" AS date), count(*), sum(v)'
        queries = {
            KEYED: f'SELECT id, who, device, "at", v FROM ({first})',
            WITHOUT_PERSON: f'SELECT id, "at", v FROM ({first}) WHERE v <> 13',
            DAILY: f"{day} FROM ({first}) GROUP BY 1",
            USERS: f"SELECT who, count(*), sum(v) FROM ({first}) GROUP BY 1",
            LANDED: f"{day} FROM ({left}) GROUP BY 1",
        }
        with duckdb.connect() as database:
            return sorted(database.execute(queries[self.queries[table]]).fetchall(), key=repr)

    def check(self) -> None:
        """Every table has exactly these rows; the ledger counts them; a rebuild finds the same."""
        for name in self.queries:
            rows = api.lake_of(self.project()).rows(name).to_pylist()
            found = sorted((tuple(map(_plain, row.values())) for row in rows), key=repr)
            assert found == [tuple(map(_plain, row)) for row in self.expected(name)]
        ledger = api.ledger_of(self.project())
        assert ledger.contradictions() == {}
        report = api.verify(self.project())
        assert report.equal, report


def _plain(value: Any) -> Any:
    """A value without its time zone, and a sum as a whole number."""
    if hasattr(value, "tzinfo"):
        return value.replace(tzinfo=None)
    return value if isinstance(value, str | int | None) or hasattr(value, "year") else int(value)


NewShop = Callable[..., Shop]


@pytest.fixture
def new_shop(tmp_path: Path, warehouse: Path, monkeypatch: pytest.MonkeyPatch) -> NewShop:
    """Makes a project; the secret is in the environment."""
    monkeypatch.setenv(SECRET, "one that nobody guesses")

    def make(storage: Storage = Storage.ICEBERG, **models: str) -> Shop:
        return Shop(tmp_path, warehouse, storage, **models)

    return make


@pytest.mark.parametrize("storage", Storage)
def test_a_person_leaves_all_tables_and_stays_away(new_shop: NewShop, storage: Storage) -> None:
    """
    Their rows leave, a copy of another person's comes back in the place of one; the same rows
    delivered again, corrected, or found by a rebuild are left out. Others' cells are not written.
    """
    shop = new_shop(storage, clicks=KEYED, daily=DAILY)
    shop.put("a.csv", "1,ann,1,2024-03-01,1", "2,bob,2,2024-03-01,2", "3,ann,,2024-03-02,3")
    shop.put("b.csv", "1,bob,2,2024-03-01,9", "4,cat,3,2024-03-05,4")
    shop.run()
    shop.check()

    shop.erase("ann")
    receipt = shop.run()

    shop.check()
    assert (receipt.erased, receipt.removed, receipt.written) == (2, 2, 1)
    files = api.ledger_of(shop.project()).files("clicks")
    counted = {file.path: (file.rows, file.dropped) for file in files}
    assert counted == {"landing/a.csv": (1, 0), "landing/b.csv": (2, 0)}
    shop.put("c.csv", "1,ann,1,2024-03-01,1", "5,ann,1,2024-03-09,5", "6,bob,2,2024-03-09,6")
    assert (again := shop.run()).erased == 2
    assert again.written == 1
    shop.check()
    (shop.root / "landing" / "b.csv").unlink()
    shop.run()
    shop.check()
    api.forget(shop.project(), ["clicks"])
    assert shop.run().erased == 4
    shop.check()
    assert shop.receipts() == {}
    version = shop.version("clicks")
    shop.erase("nobody")
    assert shop.run().erased == 0
    assert shop.version("clicks") == version + 1  # the table knows of each request
    shop.check()


def test_a_new_copy_comes_with_the_request(new_shop: NewShop) -> None:
    """A copy of an erased event arrives in the run that erases it: it takes its place."""
    shop = new_shop(clicks=KEYED)
    shop.put("a.csv", "1,ann,1,2024-03-01,1", "2,bob,2,2024-03-01,2")
    shop.run()
    shop.erase("ann")
    shop.put("b.csv", "1,bob,2,2024-03-01,9", "2,ann,2,2024-03-01,1")
    receipt = shop.run()
    shop.check()
    assert (receipt.erased, receipt.removed, receipt.written) == (2, 1, 1)


def by_device(table: str) -> str:
    """Sessions of devices, of which several persons may have rows."""
    return sessions("user: device, gap: 1 hour", f"SELECT count(*) AS n, sum(v) AS v FROM {table}")


def test_sessions_of_whoever_is_left(new_shop: NewShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Of three devices that the person used one keeps a session, by a copy that comes back, one has a
    shorter one, and one none. Rows are found among many by hashes of their times.
    """
    monkeypatch.setattr(key_filter, "PAYS_FROM", 0)
    shop = new_shop(clicks=KEYED)
    shop.model("visits", by_device("clicks"))
    shop.put("a.csv", "1,ann,7,2024-03-01,1", "2,ann,8,2024-03-01,2", "3,ann,9,2024-03-05,4")
    shop.put("b.csv", "1,bob,7,2024-03-01,9", "4,bob,8,2024-03-01 00:20:00,3")
    shop.put("c.csv", *(f"{at},eve,{at},2024-03-01 00:00:{at},1" for at in range(20, 60)))
    shop.put("d.csv", "5,zoe,5,2024-03-01,1")
    shop.run()
    shop.erase("ann")

    receipt = shop.receipts()["visits"]

    assert shop.rows("visits", "device", "n", "v")[-2:] == [(7, 1, 9), (8, 1, 3)]
    shop.check()
    assert (receipt.sessions_removed, receipt.sessions_extended) == (1, 2)
    shop.erase("zoe")
    shop.go(select=["clicks"])
    shop.erase("bob", before="2024-03-01 00:10:00")
    assert shop.receipts()["visits"].sessions_removed == 2
    shop.check()


@pytest.mark.parametrize("at_once", [True, False])
def test_sessions_of_rows_without_a_key(new_shop: NewShop, at_once: bool) -> None:
    """Rows of one file and instant are told apart by whose they are, in a later run too."""
    shop = new_shop(visits=by_device("raw.clicks"))
    shop.queries = {}
    others = [f"{at},eve,{at},2024-03-01,1" for at in range(20, 40)]
    shop.put("a.csv", "1,ann,7,2024-03-01,1", "1,bob,8,2024-03-01,1", *others)
    shop.run()
    shop.erase("ann")
    if not at_once:
        shop.go(select=["raw.clicks"])
    shop.run()
    assert shop.rows("visits", "device", "n")[-1:] == [(8, 1)]
    shop.check()


def test_no_file_is_read_again_where_all_copies_are_equal(
    new_shop: NewShop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Until one arrives that differs, or may: by its values, its time, or a column stored since.

    Of a wide table the times of the person's rows are looked for first.
    """
    monkeypatch.setattr(table_change, "WIDE", 0)
    shop = new_shop(clicks=KEYED)
    rows = [f"{at},{who},{at},2024-03-0{at},1" for at, who in enumerate(("ann", "bob", "cat"), 1)]
    shop.put("a.csv", *rows, "9,eve,9,2024-03-09,1")
    shop.put("b.csv", *rows)
    shop.run()
    shop.erase("ann")
    assert shop.run().scanned == 4
    shop.check()
    shop.put("c.csv", "2,eve,2,2024-03-02,7")
    shop.run()
    shop.erase("bob")
    assert shop.run().scanned > 3
    shop.check()


def test_copies_of_another_time_come_back(new_shop: NewShop) -> None:
    """Of copies that differ in nothing but the time, those after the instant stay."""
    shop = new_shop(clicks=KEYED.replace("prefer: [v]", "deduplicate: everywhere"))
    shop.queries = {}
    shop.put("a.csv", "1,ann,1,2024-03-01,1")
    shop.run()
    shop.put("b.csv", "1,ann,1,2024-03-05,1")
    shop.run()
    shop.erase("ann", before="2024-03-04")
    shop.run()
    assert shop.rows("clicks", "id", "at") == [("1", "2024-03-05")]
    shop.check()


def test_copies_of_another_person_who_was_not_stored_come_back(new_shop: NewShop) -> None:
    """Copies were equal until the model got the column with the persons."""
    shop = new_shop(clicks=events("SELECT id, at, v FROM raw.clicks", "prefer: [v]"))
    shop.put("a.csv", "1,ann,1,2024-03-01,1")
    shop.put("b.csv", "1,bob,1,2024-03-01,1", "2,bob,1,2024-03-02,1")
    shop.run()
    shop.models(clicks=KEYED)
    shop.queries = {"clicks": KEYED}
    shop.run()
    shop.erase("ann")
    shop.run()
    shop.check()


def test_rows_without_a_key_or_without_the_column(new_shop: NewShop) -> None:
    """
    Of a table without a key rows leave one by one; where a table does not have the column, files
    are read again. Of one person only what was before some instant; numbers are compared as such.
    """
    shop = new_shop(clicks=WITHOUT_PERSON, daily=LANDED)
    shop.put("a.csv", "1,ann,7,2024-03-01,1", "1,ann,7,2024-03-01,1", "2,bob,2,2024-03-01,2")
    shop.put("b.csv", "3,ann,7,2024-03-04,3", "4,cat,,2024-03-05,13", "5,cat,2,2024-03-01,5")
    shop.run()
    shop.check()
    before = {file.path: file.rows for file in api.ledger_of(shop.project()).files("raw.clicks")}

    shop.erase("ann", before="2024-03-04")
    receipts = shop.receipts()

    shop.check()
    assert before == {"landing/a.csv": 3, "landing/b.csv": 3}
    assert (receipts["raw.clicks"].erased, receipts["clicks"].erased) == (2, 1)
    shop.erase("002", by="device")
    again = shop.receipts()["raw.clicks"]  # by two columns: files are read again
    assert (again.erased, again.read, again.removed, again.written) == (2, 6, 4, 2)
    shop.check()
    shop.put("a.csv", "1,ann,7,2024-03-01,1", "9,eve,9,2024-03-01,9")
    shop.run()
    shop.check()


def test_rows_that_wait_or_were_set_aside(new_shop: NewShop) -> None:
    """Rows dated in the future never come due, and rows without a key are no longer set aside."""
    shop = new_shop(clicks=KEYED)
    shop.put("a.csv", "1,ann,1,2024-03-01,1", ",ann,1,2024-03-01,2", ",bob,1,2024-03-01,2")
    shop.put("b.csv", "3,ann,1,2030-03-05,3", "4,bob,1,2030-03-05,4")
    first = shop.run()
    assert (first.waiting, first.set_aside) == (2, 2)

    shop.erase("ann")
    shop.run()

    status = next(one for one in api.status(shop.project()) if one.model == "clicks")
    assert (status.waiting, status.set_aside) == (1, 1)
    aside = api.lake_of(shop.project()).rows("infold__set_aside").to_pylist()
    assert [row["raw"] for row in aside if row["model"] == "clicks"] == [",bob,1,2024-03-01,2"]


def test_what_is_refused(new_shop: NewShop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another secret, and a column that is declared no longer, stop a run; nothing is written."""
    shop = new_shop(clicks=KEYED)
    shop.put("a.csv", "1,ann,1,2024-03-01,1")
    shop.run()
    shop.erase("ann")
    monkeypatch.setenv(SECRET, "another")
    with pytest.raises(Exception, match="erasure-secret-changed"):
        shop.run()
    config = shop.root / "infold.yml"
    text = config.read_text(encoding="utf-8")
    config.write_text(text.replace("  person: {raw.clicks: who}\n", ""), encoding="utf-8")
    with pytest.raises(InfoldError, match="erasure-not-declared"):
        shop.run()
    assert api.lake_of(shop.project()).rows("clicks").num_rows == 1


def test_a_lost_ledger_gets_the_requests_back(new_shop: NewShop) -> None:
    """They are in a table of their own; with a ledger of before them, too, nobody comes back."""
    shop = new_shop(clicks=KEYED)
    shop.put("a.csv", "1,ann,1,2024-03-01,1", "2,bob,2,2024-03-01,2", "3,cat,3,2024-03-01,3")
    shop.run()
    ledger = shop.root / ".infold" / "ledger.db"
    api.ledger_of(shop.project()).close()
    before = ledger.read_bytes()
    for name in ("ann", "cat"):
        shop.erase(name)
        shop.run()
    asked = api.ledger_of(shop.project()).erasures()

    for content in (None, before):
        api.ledger_of(shop.project()).close()
        for path in ledger.parent.glob("ledger.db*"):
            path.unlink()
        if content is not None:
            ledger.write_bytes(content)
        done = repair_ledger(shop.project())
        assert done.requests == 2
        assert api.ledger_of(shop.project()).erasures() == asked
        shop.run()
        shop.check()


def files_with(folder: Path, text: str) -> list[str]:
    """The files below a folder that have a text, in rows of Parquet, blocks of Avro or as bytes."""
    found = []
    for path in sorted(folder.rglob("*")):
        if not path.is_file():
            continue
        content = str(path.read_bytes())
        if path.suffix == ".parquet":
            content += str(pq.read_table(path, partitioning=None).to_pylist())
            content += str(pq.read_metadata(path).to_dict())
        if path.suffix == ".avro":
            with path.open("rb") as blocks:
                content += str([*fastavro.reader(blocks)])
        if text in content:
            found.append(path.relative_to(folder).as_posix())
    return found


@pytest.mark.parametrize("storage", Storage)
def test_a_purge_leaves_no_file_with_an_erased_row(new_shop: NewShop, storage: Storage) -> None:
    """
    Not in data, deletes, manifests, logs or the ledger; tables go on as before. A table that waits
    for a run keeps its rows, and that is said.
    """
    shop = new_shop(storage, clicks=KEYED, daily=DAILY, users=USERS)
    shop.model("visits", sessions("user: person, gap: 1 hour", "SELECT count(*) AS n FROM clicks"))
    tables = shop.warehouse / shop.project().name
    others = [f"{30 + day},bob,2,2024-0{1 + day % 3}-0{1 + day},2" for day in range(9)]
    shop.put("a.csv", "1,mallory,1,2024-03-01,1", "3,mallory,,2024-02-02,3", *others)
    shop.run()
    shop.put("b.csv", "4,mallory,1,2024-03-01,4", "5,cat,2,2024-02-01,5")
    shop.run()
    api.restate(shop.project(), ["users"])  # the storage replaces the table by itself
    shop.erase("mallory")
    shop.go(select=["clicks"])

    left = dict(api.purge(shop.project()).left)
    assert left == {"clicks": "a table that reads it is not up to date"}
    assert files_with(tables, "mallory")
    shop.run()
    assert api.purge(shop.project()).left == ()

    assert files_with(tables, "mallory") == []
    own = files_with(shop.root / ".infold", "mallory")
    # The Spark of the tests goes on, with the files of its shuffles; a command's ends.
    assert [name for name in own if not name.startswith("spill/")] == []
    assert files_with(tables, "bob")
    assert [one.purged for one in api.list_erasures(shop.project())] == [True]
    assert shop.receipts() == {}
    shop.check()
    shop.put("c.csv", "6,bob,1,2024-03-01,6", "7,mallory,1,2024-01-01,6")
    shop.run()
    shop.check()


@pytest.mark.parametrize("storage", Storage)
def test_a_reader_in_the_middle_of_an_older_snapshot(new_shop: NewShop, storage: Storage) -> None:
    """It gets the rows that it began with, or an error of its own: never other rows."""
    shop = new_shop(storage, clicks=KEYED)
    for at in range(6):
        shop.put(
            f"{at}.csv",
            *(f"{at}{n},{'mallory' if n == 3 else 'bob'},2,2024-03-01,{n}" for n in range(9)),
        )
        shop.run()
    project = shop.project()
    tables = storage_of(project).tables(session(project), project, api.lake_of(project))
    reader = tables.read("clicks").toLocalIterator()
    names = [str(path) for path in (shop.warehouse / project.name / "clicks").rglob("*.parquet")]
    other = duckdb.connect().execute("SELECT id FROM read_parquet(?)", [names])
    rows, others = [next(reader)["id"]], other.fetchmany(1)
    shop.erase("mallory")
    shop.run()
    assert api.purge(shop.project()).left == ()

    every = sorted(f"{at}{n}" for at in range(6) for n in range(9))
    try:
        rows += [row["id"] for row in reader]
    except Exception:  # noqa: BLE001 (whatever its engine says of a file that is gone)
        rows = every
    try:
        others += other.fetchall()
    except duckdb.Error:
        others = [(key,) for key in every]
    assert (sorted(rows), sorted(key for (key,) in others)) == (every, every)
    shop.check()


def test_landing_files_are_written_again_and_nothing_is_built(new_shop: NewShop) -> None:
    """
    They have the rows of others as they were. A file with rows that were set aside is read again,
    without the texts of these; one that nobody has read stays.
    """
    shop = new_shop(clicks=KEYED, daily=DAILY, landed=LANDED)
    shop.put("a.csv", "1,mallory,1,2024-03-01,1", "2,bob,2,2024-03-01,2", "2,bob,2,2024-03-01,3")
    shop.put("b.csv", "1,bob,2,2024-03-01,9", "3,mallory,1,2024-03-01,1")
    shop.put("c.csv", "4,bob,1,2024-03-01,1", "5,mallory,1,2024-03-01,x")
    shop.put("d.csv", "6,mallory,1,2024-03-01,1")
    shop.run()
    shop.erase("mallory")
    shop.run()
    shop.put("d.csv", "6,mallory,1,2024-03-01,1", "7,eve,1,2024-03-01,1")
    done = api.purge(shop.project(), landing=True)

    assert [(file.path, file.rows, file.why) for file in done.files] == [
        ("landing/a.csv", 1, ""),
        ("landing/b.csv", 1, ""),
        ("landing/c.csv", 1, ""),
        ("landing/d.csv", 1, "no run has read it as it is now"),
    ]
    rows = "2,bob,2,2024-03-01,2", "2,bob,2,2024-03-01,3"
    assert (shop.root / "landing" / "a.csv").read_text() == "\n".join([HEADER, *rows]) + "\n"
    (shop.root / "landing" / "d.csv").unlink()
    receipts = shop.receipts()
    assert {name: (one.files_new, one.written) for name, one in receipts.items()} == {
        "raw.clicks": (1, 1),
        "clicks": (1, 1),
    }
    assert shop.receipts() == {}
    shop.check()
    assert api.prove_erased(shop.project()).landing == ()
    assert "mallory" not in str(api.lake_of(shop.project()).rows("infold__set_aside").to_pylist())


def test_a_purge_that_dies_is_done_by_doing_it_again(new_shop: NewShop) -> None:
    """Killed at each of its write points in turn, it goes on; readers have the same rows."""
    shop = new_shop(clicks=KEYED)
    tables = shop.warehouse / shop.project().name
    shop.put("a.csv", "1,mallory,1,2024-03-01,1", "2,bob,2,2024-03-01,2")
    shop.run()
    shop.put("b.csv", "3,bob,2,2024-03-02,2")
    shop.run()
    shop.erase("mallory")
    shop.run()
    deaths = 0
    for number in count(1):
        with living(number) as life:
            api.purge(shop.project())
        assert shop.rows("clicks", "id") == [("2",), ("3",)]
        if not life.dead:
            break
        deaths += 1

    assert deaths > 3
    assert files_with(tables, "mallory") == []
    assert shop.receipts() == {}
    shop.check()


def test_requests_that_a_service_writes(new_shop: NewShop) -> None:
    """
    The run that finds them erases by them, whatever the format: what is none of them is told.

    Each key is taken as its column has it, with the earliest time that it was asked for.
    """
    shop = new_shop(clicks=KEYED, daily=DAILY)
    text = (shop.root / "infold.yml").read_text()
    columns = "{number: 'decimal(20,0)', asked_at: timestamp, note: int}"
    declared = "  raw.people: {path: asked/*.json, columns: {who: string, asked_at: timestamp}}\n"
    declared += f"  raw.devices: {{path: devices/*.parquet, columns: {columns}}}\nerasures:\n"
    requests = "erasure_requests:\n  person: {raw.people: {key: who, requested_at: asked_at}}\n"
    requests += "  device: {raw.devices: {key: number}}\ntargets:\n"
    text = text.replace("erasures:\n", declared, 1).replace("targets:\n", requests, 1)
    (shop.root / "infold.yml").write_text(text)
    shop.put("1.csv", *(f"e{at},p{at},{at},2024-03-0{at} 01:00:00,{at}" for at in range(1, 7)))
    asked = ['{"who": "p1", "asked_at": "2024-03-09T00:00:00"}', '{"who": null}', '{"who": ""}']
    asked += ['{"who": "p1", "asked_at": "2024-03-08T00:00:00"}', '{"who": "p2"}']
    shop.write("asked/1.json", "\n".join([*asked, '{"who": "p6", "asked_at": "soon"}', "{"]))
    (shop.root / "devices").mkdir()
    with duckdb.connect() as database:  # its `note` is no number, which is nobody's matter
        database.execute(
            "COPY (SELECT 3::decimal(20,0) AS number, now()::timestamp AS asked_at, 'x' AS note)"
            f" TO '{shop.root}/devices/1.parquet' (FORMAT parquet)"
        )
    result = shop.go()
    shop.gone = ["who IN ('p1', 'p2')", "device = 3"]
    shop.check()
    told = "raw.people: nobody is erased by 4 rows ("
    assert "raw.people: 2 new requests to erase (person)" in result.notes
    [line] = [note for note in result.notes if note.startswith(told)]
    assert "1 of asked/1.json: null who" in line
    made = {one.made_at for one in api.ledger_of(shop.project()).erasures()}
    assert 1_709_856_000_000_000 in made  # 2024-03-08
    assert "soon" not in line
    again = shop.go()
    assert (again.steps, line in again.notes) == ((), True)

    shop.write("asked/2.json", '{"who": "p5", "asked_at": null}\n')
    shop.go()
    shop.gone.append("who = 'p5'")
    shop.check()
    assert len(api.ledger_of(shop.project()).erasures()) == 4
