"""What the ledger in a file has: opening, refusing, upgrading, SQL for two databases, damage."""

from __future__ import annotations

import random
import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import sqlglot
from click.testing import CliRunner
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.crash.scenario import living
from tests.declare import shop
from tests.hostile.landed import LANDED
from tests.hostile.test_disks import obeying
from tests.ledger import released_ledgers
from tests.ledger.conftest import FORK, Place, Stopped
from tests.ledger.drawn import DAYS, distinct_changes, file_cells, known_files, some_ranges, traces
from tests.ledger.steps import change, do, kept_of, next_run, outcome

from infold.cli.main import cli
from infold.core.definition import digest_of
from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import DAY, Interval, Ranges
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.sessions import ManualEntry
from infold.core.target import Target
from infold.core.trace import UNKNOWN, CellChange, CellState, Trace, Unchanged
from infold.ledger import SqlLedger, database, ledger_schema, open_ledger, postgresql
from infold.ledger.apply_outcome import vanished
from infold.ledger.damage import damage_of, entries_in
from infold.ledger.database import FORMAT, FORMAT_ROW, ID_ROW, SCHEMA, SQL, USED_FILES
from infold.messages import errors
from infold.messages.errors import InfoldError

URL = "sqlite:///.infold/ledger.db"
KEEP = 5


def as_of_format_1(path: Path) -> None:
    """Make of a ledger what one of the first format was, before any was released."""
    with sqlite3.connect(path) as connection:
        for table in (
            *("left_out", "trace_entries", "definitions", "trace_definitions", "applied"),
            *("unchanged", "environments", "environment_tables"),
            *("erasures", "erased_keys", "erasure_columns", "trace_retention"),
        ):
            connection.execute(f"DROP TABLE {table}")
        for column in ("carried", "campaign"):
            connection.execute(f"ALTER TABLE quarantined DROP COLUMN {column}")
        now = "held BOOLEAN, session_start"
        tables = "SELECT sql FROM sqlite_master WHERE name = 'manual_entries'"
        (text,) = connection.execute(tables).fetchone()
        assert now in text
        connection.execute("ALTER TABLE manual_entries RENAME TO newer")
        connection.execute(text.replace(now, "held BOOLEAN NOT NULL, session_start"))
        connection.execute("INSERT INTO manual_entries SELECT * FROM newer")
        connection.execute("DROP TABLE newer")
        connection.execute("ALTER TABLE changes ADD COLUMN last BIGINT")
        connection.execute("DELETE FROM meta WHERE name = ?", (ID_ROW,))
        connection.execute("UPDATE meta SET value = '1' WHERE name = ?", (FORMAT_ROW,))


def begin(ledger: SqlLedger) -> SqlLedger:
    """A run begins there."""
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    return ledger


class TestOpening:
    """The first write creates a ledger, and only where there is no other file."""

    def test_the_first_lease_creates_it(self, tmp_path: Path) -> None:
        """Reading creates no files. Who looked before sees what another connection writes."""
        reader, writer = open_ledger(URL, tmp_path), open_ledger(URL, tmp_path)
        for found in (
            *(reader.runs(), reader.unfinished(), reader.cells("events", Ranges.ever())),
            *(reader.traces(), reader.newest_versions(), reader.locations()),
        ):
            assert not found
        assert list(tmp_path.iterdir()) == []

        begin(writer)

        assert (tmp_path / ".infold" / "ledger.db").is_file()
        assert [run.id for run in reader.runs()] == ["r1"]
        writer.finish_run("r1", "done", Receipt())
        assert [run.state for run in reader.runs()] == ["done"]
        writer.close()

    @pytest.mark.parametrize("url", ["mysql://host/db", "ledger.db", "sqlite://", "sqlite:///"])
    def test_another_kind_of_url_is_refused(self, tmp_path: Path, url: str) -> None:
        """By name; one with four slashes is an absolute path, not one in the project."""
        with pytest.raises(errors.InfoldError, match="ledger-unsupported"):
            open_ledger(url, tmp_path)
        ledger = open_ledger(f"sqlite:///{tmp_path / 'x.db'}", Path("/nowhere"))
        assert ledger.place == str(tmp_path / "x.db")

    def test_each_target_has_a_schema_of_its_own(self) -> None:
        """Projects and targets may share a database; a name is never longer than it can be."""
        project = Project("shop", Path(), None, {}, (), Target("prod"))
        long = replace(project, name="s" * 60)
        other = replace(long, target=Target("dev"))

        assert ledger_schema(project) == "infold_shop_prod"
        assert ledger_schema(replace(project, target=Target("a", ledger_schema="b"))) == "b"
        assert [len(ledger_schema(each)) for each in (long, other)] == [63, 63]
        assert ledger_schema(long) != ledger_schema(other)

    @pytest.mark.parametrize(
        "tables", ["", "CREATE TABLE songs (x)", "CREATE TABLE meta (name, value)"]
    )
    def test_a_file_of_another_program_is_left_alone(self, tmp_path: Path, tables: str) -> None:
        """No database, or one that even has a table with a ledger's name."""
        path = tmp_path / "ledger.db"
        path.write_bytes(b"" if tables else b"not a database, just a longer text" * 99)
        if tables:
            with sqlite3.connect(path) as other:
                other.execute(tables)
        before = path.read_bytes()

        for use in (SqlLedger(path).newest_versions, lambda: SqlLedger(path).acquire("r1")):
            with pytest.raises(errors.InfoldError, match="not-a-ledger"):
                use()
        assert path.read_bytes() == before

    def test_an_older_ledger_gets_what_it_lacks(self, tmp_path: Path) -> None:
        """
        Whoever reads it first adds tables, columns and a name, and its content stays. Sessions in
        quarantine lack their campaigns, so their model's trace no longer matches. Definitions can
        be kept, and entries that take others back can be added.
        """
        path, ann = tmp_path / "ledger.db", QuarantinedSession("ann", 1, 2, 3)
        ledger = begin(SqlLedger(path))
        for model, held in (("sessions", (ann,)), ("daily", ())):
            built = Outcome(model, 1, Trace(model, "f"), snapshot=1, whole=True, quarantined=held)
            ledger.begin_step("r1", model, 1, model, "build", {})
            ledger.finish_step(model, built)
        ledger.add_entries("sessions", [ManualEntry(0, "ann", True, reason="bot")])
        ledger.close()
        as_of_format_1(path)

        older = SqlLedger(path)
        assert older.quarantined("sessions") == (ann,)
        lost = Trace("sessions", UNKNOWN)
        assert older.traces() == {"sessions": lost, "daily": Trace("daily", "f")}
        assert (older.left_out(), older.applied(), older.environments()) == ({}, {}, {})
        assert older.unchanged("daily", 0) == {}
        assert [run.id for run in older.runs()] == ["r1"]
        older.acquire("r2")
        adopted = replace(kept_of("daily"), fingerprint="f")
        older.keep_definitions({"d": adopted}, {"daily": "d"}, {"daily": "d"})
        older.add_entries("sessions", [ManualEntry(0, "ann", in_quarantine=None)])
        older.close()

        assert older.traces()["daily"] == Trace("daily", "f", definition="d")
        found = [(one.number, one.in_quarantine, one.reason) for one in older.entries("sessions")]
        assert found == [(1, True, "bot"), (2, None, "")]
        with sqlite3.connect(path) as connection:
            meta = dict(connection.execute("SELECT name, value FROM meta"))
        assert meta[FORMAT_ROW] == str(FORMAT)
        assert len(meta[ID_ROW]) == len(str(uuid4()))

    def test_what_may_be_in_its_place(self, tmp_path: Path) -> None:
        """A folder gives a message; an empty file becomes a ledger, as a crash may leave one."""
        path = tmp_path / "ledger.db"
        path.mkdir()
        with pytest.raises(errors.InfoldError, match="ledger-unusable"):
            SqlLedger(path).acquire("r1")
        path.rmdir()
        path.touch()
        assert list(SqlLedger(path).runs()) == []
        begin(SqlLedger(path)).close()

    @pytest.mark.deep
    def test_two_processes_may_create_it_at_once(self, place: Place) -> None:
        """One makes the tables and the other finds them."""

        def create() -> None:
            ledger = place.open()
            ledger.acquire("r", wait=20)
            ledger.close()

        both = [FORK.Process(target=create) for _ in range(2)]
        for process in both:
            process.start()
        for process in both:
            process.join(30)

        assert [process.exitcode for process in both] == [0, 0]


class TestStatements:
    """The SQL is SQLite's and PostgreSQL's."""

    def test_every_statement_parses_in_both_dialects(self) -> None:
        """None uses a speciality such as an upsert, or a name that PostgreSQL takes for a function:
        `session_user` is quoted.
        """
        made = [re.sub(r"%\((\w+)\)s", r":\1", text) for text in postgresql.STATEMENTS.values()]
        own = [*SCHEMA, *SQL.values()]

        for dialect, texts in (("sqlite", own), ("postgres", [*postgresql.TABLES, *made])):
            for text in texts:
                sqlglot.parse_one(text, dialect=dialect)
        assert not [text for text in SQL.values() if "ON CONFLICT" in text or "REPLACE" in text]
        assert not [text for text in postgresql.TABLES if re.search(r'TEXT(?! COLLATE "C")', text)]
        assert not [text for text in own if re.search(r'(?<![":])\bsession_user\b', text)]

    def test_changes_are_found_by_an_index(self, tmp_path: Path) -> None:
        """A table's changes are clustered by version, so that old ones cost nothing to skip."""
        SqlLedger(tmp_path / "ledger.db").acquire("r1")
        with sqlite3.connect(tmp_path / "ledger.db") as connection:
            rows = connection.execute(
                "EXPLAIN QUERY PLAN SELECT * FROM changes WHERE table_name = 'a' AND version > 3"
            ).fetchall()

        assert "SEARCH changes USING PRIMARY KEY" in str(rows)


def _commit(ledger: Ledger, version: int, cells: int, inputs: dict[str, int]) -> None:
    changes = tuple(
        CellChange(Interval(at * DAY, (at + 1) * DAY), 1, 0, version - 1, version, 0, version)
        for at in range(cells)
    )
    for model, trace in (("events", {}), ("daily", inputs)):
        step = f"{model}-{version}"
        what = Outcome(model, version, Trace(model, "f", trace), changes, files=FilesOutcome("raw"))
        what = replace(what, unchanged=(Unchanged(frozenset({"a"}), Ranges.ever()),))
        ledger.begin_step("r1", step, version, model, "fold", {})
        ledger.finish_step(step, what)
    ledger.finish_run("r1", "done", Receipt())


class TestSize:
    """The thousandth run costs as much as the tenth."""

    @pytest.fixture
    def sql(self, tmp_path: Path) -> SqlLedger:
        """A ledger that keeps the changes of a few versions."""
        return begin(SqlLedger(tmp_path / "ledger.db", keep=KEEP))

    def test_versions_that_no_trace_needs_are_pruned(self, sql: SqlLedger) -> None:
        """Except the newest ones, which are kept for `history`."""
        for version in range(1, KEEP + 6):
            _commit(sql, version, 2, {"events": version})

        assert len(sql.changes("events", 0)) == len(sql.arrivals("events")) == 2 * KEEP
        assert list(sql.unchanged("events", 0)) == list(range(6, KEEP + 6))
        assert len(sql.versions("events")) == KEEP + 5

    def test_versions_that_a_trace_has_yet_to_read_stay(self, sql: SqlLedger) -> None:
        """A version that a trace has yet to read is not pruned, however old it is."""
        for version in range(1, KEEP + 6):
            _commit(sql, version, 1, {"events": min(version, 3)})

        assert len(sql.changes("events", 3)) == len(sql.unchanged("events", 3)) == KEEP + 2
        assert len(sql.changes("events", 0)) == KEEP + 2
        assert len(sql.changes("daily", 0)) == KEEP


PATHS = ("a", "b", "c")
SMALL_IDS = st.integers(1, len(PATHS))


def _named(file: IngestedFile) -> IngestedFile:
    """The file as its listing had it: path and fingerprint belong to the id."""
    return replace(file, path=PATHS[file.id - 1], size=10, fingerprint="1")


drawn_files = st.builds(
    FilesOutcome,
    source=st.just("raw"),
    ingested=st.lists(known_files(SMALL_IDS).map(_named), max_size=2, unique_by=lambda f: f.id).map(
        tuple
    ),
    removed=st.lists(SMALL_IDS, max_size=1).map(tuple),
    dropped=st.lists(file_cells(SMALL_IDS), max_size=2).map(tuple),
)
drawn_outcomes = st.builds(
    Outcome,
    model=st.just("m"),
    version=st.just(0),
    trace=traces(st.just("m")),
    changes=distinct_changes(st.sampled_from(DAYS)),
    whole=st.booleans(),
    committed=st.booleans(),
    files=st.none() | drawn_files,
)


def _numbered(drawn: Sequence[Outcome]) -> Iterator[Outcome]:
    """A history that could be: versions count up, taken files hold rows in a cell."""
    version = 0
    for done in drawn:
        version += done.committed
        files = done.files and replace(
            done.files, cells=tuple(FileCell(f.id, DAYS[0], 5) for f in done.files.ingested)
        )
        yield replace(done, version=version, files=files)


class Kept:
    """What a ledger has to keep of a history, by the rules in a few lines."""

    def __init__(self, history: Iterable[Outcome]) -> None:
        self.cells: dict[Interval, CellState] = {}
        self.changes: list[tuple[int, CellChange]] = []
        self.rows: list[int] = []
        self.files: dict[int, IngestedFile] = {}
        self.file_cells: dict[tuple[int, Interval], FileCell] = {}
        for done in history:
            if done.committed:
                self._commit(done)
            if done.files is not None:
                self._move(done.files)

    def _commit(self, done: Outcome) -> None:
        changes = done.changes
        if done.whole:
            before = [(state.cell, state.rows, state.content) for state in self.cells.values()]
            changes += vanished(before, changes)
            self.cells = {}
        for one in changes:
            self.cells.pop(one.cell, None)
            if one.rows_after:
                state = CellState(one.cell, one.rows_after, one.content_after, one.last)
                self.cells[one.cell] = state
            self.changes.append((done.version, replace(one, last=None)))
        self.rows.append(sum(state.rows for state in self.cells.values()))

    def _move(self, files: FilesOutcome) -> None:
        moved = {*files.removed, *(file.id for file in files.ingested)}
        self.files = {id_: file for id_, file in self.files.items() if id_ not in moved}
        self.file_cells = {key: one for key, one in self.file_cells.items() if key[0] not in moved}
        self.files.update((file.id, file) for file in files.ingested)
        self.file_cells.update(((one.file_id, one.cell), one) for one in files.cells)
        for lost in files.dropped:
            if one := self.file_cells.get((lost.file_id, lost.cell)):
                now = replace(one, rows=one.rows + lost.rows, dropped=one.dropped + lost.dropped)
                self.file_cells[lost.file_id, lost.cell] = now
            if file := self.files.get(lost.file_id):
                rows, dropped = file.rows + lost.rows, file.dropped + lost.dropped
                self.files[lost.file_id] = replace(file, rows=rows, dropped=dropped)


@pytest.mark.deep
@settings(max_examples=20)
@given(st.lists(drawn_outcomes, max_size=5), some_ranges)
def test_what_is_kept_of_any_history(
    new_place: Callable[[], Place], drawn: Sequence[Outcome], within: Ranges
) -> None:
    """Cells, changes, versions and files are what the outcomes of all steps amount to."""
    history = list(_numbered(drawn))
    ledger = new_place().open(clock=Stopped())
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    ledger.register_files("raw", [ListedFile(name, 10, 0, "1") for name in PATHS])
    for i, done in enumerate(history):
        ledger.begin_step("r1", str(i), i, "m", "fold", {})
        ledger.finish_step(str(i), done)
    ledger.release()
    ledger.close()

    kept = Kept(history)
    every = sorted(kept.cells.values(), key=lambda state: state.cell.start)
    assert list(ledger.cells("m")) == every
    assert list(ledger.cells("m", within)) == [one for one in every if within.overlaps(one.cell)]
    assert Counter(ledger.changes("m", 1)) == Counter(
        change for version, change in kept.changes if version > 1
    )
    assert [one.rows for one in ledger.versions("m")] == kept.rows
    assert {file.id: file for file in ledger.files("m")} == kept.files
    assert set(ledger.file_cells("m")) == set(kept.file_cells.values())
    some = {one for one in kept.file_cells.values() if one.file_id in (1, 3)}
    assert set(ledger.file_cells("m", [1, 3])) == some
    if history:
        assert ledger.traces()["m"] == history[-1].trace


# -- ledgers of formats that were released become ledgers of the present, in both databases


NEXT = database.Upgrade(
    FORMAT + 1,
    "a table has another column, and there is another table",
    (
        "ALTER TABLE left_out ADD COLUMN why TEXT",
        "CREATE TABLE notes ( name TEXT NOT NULL, PRIMARY KEY (name) )",
        "INSERT INTO notes (name) SELECT model FROM left_out",
    ),
)
"""What the format after the present one might be."""


@pytest.fixture
def next_format(monkeypatch: pytest.MonkeyPatch) -> Iterator[pytest.MonkeyPatch]:
    """The program is that of the next format."""
    with monkeypatch.context() as patch:
        patch.setattr(database, "UPGRADES", (*database.UPGRADES, NEXT))
        for module in (database, postgresql):
            patch.setattr(module, "FORMAT", database.newest_format())
        yield patch


def test_the_present_format_is_kept_for_those_to_come() -> None:
    """Each format since the first release is stored, with the tables that a file of it has."""
    assert [*range(database.RELEASED, FORMAT + 1)] == released_ledgers.FORMATS
    for format_ in released_ledgers.FORMATS:
        made = (released_ledgers.FOLDER / f"{format_}.sql").read_text(encoding="utf-8")
        tables = [text for text in made.splitlines() if text.startswith("CREATE TABLE")]
        assert [*database.tables_of(format_, SCHEMA)] == tables


@pytest.mark.parametrize("format_", released_ledgers.FORMATS)
def test_a_released_ledger_becomes_one_of_today(format_: int, place: Place, there: Place) -> None:
    """All its rows stay, but for columns that are dropped; its tables are as in a new ledger."""
    before = released_ledgers.kept(released_ledgers.make(place, format_))
    there.open().acquire("r")

    ledger = place.open()
    ledger.acquire("r")
    ledger.release()

    assert released_ledgers.structure(place) == released_ledgers.structure(there)
    found = released_ledgers.stored_rows(place, before)
    assert found.keys() == before.keys()
    for table, rows in before.items():
        assert ordered(found[table]) == ordered(rows)


def test_any_sqlite_can_upgrade(tmp_path: Path) -> None:
    """One before 3.35 drops no column; tables are the same to the letter as in a new ledger."""
    for format_ in released_ledgers.FORMATS:
        old = Place(f"sqlite:///{tmp_path / str(format_) / 'ledger.db'}", "")
        released_ledgers.make(old, format_)
        old.open().left_out()
        with closing(sqlite3.connect(tmp_path / str(format_) / "ledger.db")) as file:
            made = {text for (text,) in file.execute("SELECT sql FROM sqlite_master") if text}
        assert made == set(SCHEMA)
        old.close()
    texts = " ".join(database.texts_since(database.RELEASED))
    assert "DROP COLUMN" not in texts
    assert "RENAME COLUMN" not in texts


def ordered(rows: list[dict[str, Any]]) -> list[str]:
    """Rows in some order, without that of the format; a file has numbers in place of booleans."""
    return sorted(
        repr(sorted((name, int(v) if isinstance(v, bool) else v) for name, v in row.items()))
        for row in rows
        if row.get("name") != FORMAT_ROW
    )


def test_the_next_format(place: Place, next_format: pytest.MonkeyPatch) -> None:
    """A reader upgrades in one transaction, once; programs of this format are then told to."""
    released_ledgers.make(place, FORMAT)

    ledger = place.open()
    known = ledger.left_out()
    assert known
    with ledger.database.read() as query:
        assert [*query.stream("SELECT why FROM left_out")] == [(None,)] * len(known)
        assert len([*query.stream("SELECT name FROM notes")]) == len(known)
        assert query.one("meta", name=FORMAT_ROW)[0] == str(FORMAT + 1)
    assert place.open().left_out() == known

    next_format.undo()
    for use in (lambda: place.open().left_out(), lambda: place.open().acquire("r")):
        with pytest.raises(InfoldError, match="ledger-newer"):
            use()


@pytest.mark.usefixtures("next_format")
def test_an_upgrade_that_dies(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of it is there then, and the next one does all of it."""
    released_ledgers.make(place, FORMAT)
    broken = database.Upgrade(FORMAT + 1, "", (*NEXT.texts[:2], "INSERT INTO nowhere VALUES (1)"))
    with monkeypatch.context() as patch:
        patch.setattr(database, "UPGRADES", (*database.UPGRADES[:-1], broken))
        with pytest.raises(InfoldError):
            place.open().left_out()
    with living(1):
        place.open().left_out()

    ledger = place.open()
    known = ledger.left_out()
    assert known
    with ledger.database.read() as query:
        assert len([*query.stream("SELECT name FROM notes")]) == len(known)


# -- any byte of a ledger's file may be anything


SEEDS = 500
FLIPS = 20


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The bytes of a ledger with some runs, definitions and changed cells."""
    path = tmp_path_factory.mktemp("whole") / "ledger.db"
    ledger = SqlLedger(path)
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 5, {})
    ledger.set_owner("shop", "warehouse")
    for number in range(1, 8):
        cells = [Interval(day * DAY, (day + 1) * DAY) for day in range(number)]
        do(ledger, outcome(number, *(change(cell, number) for cell in cells)), run=f"r{number}")
        kept = kept_of(f"m{number}", f"SELECT {number} AS a")
        ledger.keep_definitions({digest_of(kept): kept}, {kept.name: digest_of(kept)}, {})
        ledger.finish_run(f"r{number}", "done", Receipt())
        next_run(ledger, f"r{number + 1}")
    ledger.finish_run("r8", "done", Receipt())
    ledger.release()
    ledger.database.close()
    return path.read_bytes()


@pytest.mark.deep
def test_flipped_bytes(whole: bytes, tmp_path: Path) -> None:
    """
    Whatever twenty bytes are, a command reads all that it asks for, or says that the file is none;
    and a repair finds it damaged and gives it another name.
    """
    found = {True: 0, False: 0}
    for seed in range(SEEDS):
        drawn = random.Random(seed)
        flipped = bytearray(whole)
        for _ in range(FLIPS):
            flipped[drawn.randrange(len(flipped))] = drawn.randrange(256)
        path = tmp_path / f"{seed}.db"
        path.write_bytes(flipped)
        ledger = SqlLedger(path)
        damage = damage_of(ledger)
        found[bool(damage)] += 1
        entries_in(path)
        if damage:
            assert Path(ledger.database.put_aside()).read_bytes() == flipped
            assert not path.exists()
        else:  # what most commands read
            ledger.owner(), ledger.traces(), ledger.newest_versions(), ledger.runs(100)
            ledger.changes("events", 0), ledger.cells("events")
        ledger.database.close()
    USED_FILES.clear()
    assert min(found.values()) > SEEDS / 20


@pytest.mark.parametrize(
    "broken",
    [
        "UPDATE meta SET value = 'abc' WHERE name = 'infold.ledger'",
        "UPDATE meta SET value = x'ff' WHERE name = 'infold.project'",
        "UPDATE steps SET detail = cast(x'7bff7d' AS TEXT)",
        "UPDATE steps SET detail = '{'",
        "UPDATE steps SET outcome = '{}'",
        "UPDATE runs SET receipt = '[1]'",
        "UPDATE runs SET started_at = 9223372036854775807",
        "UPDATE runs SET as_of = 'now'",
        "UPDATE versions SET number = 'one' WHERE number = 1",
        "UPDATE cells SET cell_end = cell_start - 1",
        "UPDATE leases SET token = 'abc'",
        "DROP TABLE traces",
    ],
)
def test_a_value_that_is_none(broken: str, whole: bytes, tmp_path: Path) -> None:
    """SQLite takes any value for any column, and says of such a file that it is whole."""
    path = shop.write(tmp_path / "shop") / ".infold" / "ledger.db"
    path.parent.mkdir()
    path.write_bytes(whole)
    with closing(sqlite3.connect(path)) as file:
        assert file.execute(broken).rowcount
        file.commit()

    assert damage_of(SqlLedger(path)) != ""
    for command in (["history"], ["status"], ["repair", "--dry-run"]):
        done = CliRunner().invoke(cli, ["-C", str(tmp_path / "shop"), *command])
        assert "internal:" not in done.output
    assert "damaged" in done.output


def test_a_ledger_is_no_worse_than_it_is(whole: bytes, tmp_path: Path) -> None:
    """A whole one, none, and a database of somebody else's are not damaged."""
    path = tmp_path / "ledger.db"
    assert damage_of(SqlLedger(path)) == ""
    path.write_bytes(whole)
    assert damage_of(SqlLedger(path)) == ""
    other = tmp_path / "other.db"
    with closing(sqlite3.connect(other)) as file:
        file.execute("CREATE TABLE theirs (a)")
    with pytest.raises(InfoldError) as caught:
        damage_of(SqlLedger(other))
    assert caught.value.slug == "not-a-ledger"


# -- a ledger on a disk that is only read


@contextmanager
def only_read(file: Path) -> Iterator[None]:
    """A ledger whose disk takes no writes meanwhile."""
    file.chmod(0o444)
    file.parent.chmod(0o555)
    try:
        with obeying():
            yield
    finally:
        file.parent.chmod(0o755)
        file.chmod(0o644)


def test_commands_that_look(tmp_path: Path) -> None:
    """They find what was written there, and leave nothing; others say that it cannot be used. Who
    only looks opens the file anew each time: what another machine writes is seen.
    """
    root = shop.write(tmp_path / "shop", LANDED)
    file = root / ".infold" / "ledger.db"
    reader = SqlLedger(file)
    for run in ("r1", "r2"):
        writer = SqlLedger(file)
        writer.acquire(run)
        writer.begin_run(run, "run", 5, {})
        writer.finish_run(run, "done", Receipt())
        writer.release()
        writer.close()
        with only_read(file):
            assert run in {one.id for one in reader.runs()}
            for word in ("status", "plan", "history"):
                done = CliRunner().invoke(cli, ["-C", str(root), word])
                assert done.exit_code == 0, done.output
            assert run in done.output
            with pytest.raises(InfoldError, match="ledger-unusable"):
                SqlLedger(file).acquire("r3")
        assert [path.name for path in file.parent.iterdir()] == ["ledger.db"]
