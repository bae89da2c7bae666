"""What the ledger in a file has: opening, refusing, SQL for two databases, pruning."""

from __future__ import annotations

import re
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest
import sqlglot
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.ledger.conftest import FORK, Place, Stopped
from tests.ledger.drawn import DAYS, distinct_changes, file_cells, known_files, some_ranges, traces
from tests.ledger.steps import kept_of

from infold.core.files import FileCell, FilesOutcome, IngestedFile, ListedFile
from infold.core.interval import DAY, Interval, Ranges
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.record import Outcome, QuarantinedSession, Receipt
from infold.core.session_rules import ManualEntry
from infold.core.target import Target
from infold.core.trace import UNKNOWN, CellChange, CellState, Trace, Unchanged
from infold.ledger import generated_sql, ledger_schema, open_ledger
from infold.ledger.apply_outcome import vanished
from infold.ledger.database import FORMAT, FORMAT_ROW, ID_ROW
from infold.ledger.store import SqlLedger
from infold.messages import errors

URL = "sqlite:///.infold/ledger.db"
KEEP = 5


def as_of_format_1(path: Path) -> None:
    """Make of a ledger what one of the first format was, before any was released."""
    with sqlite3.connect(path) as connection:
        for table in (
            *("left_out", "trace_entries", "definitions", "trace_definitions", "applied"),
            *("unchanged", "environments", "environment_tables"),
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
        """A folder that cannot be written gives a message instead of a traceback. An empty file
        becomes a ledger, because a crash can come between the file and its tables.
        """
        path = tmp_path / "ledger.db"
        path.mkdir()
        with pytest.raises(errors.InfoldError, match="ledger-unusable"):
            SqlLedger(path).acquire("r1")
        path.rmdir()
        path.touch()
        assert list(SqlLedger(path).runs()) == []
        begin(SqlLedger(path)).close()

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
    """The SQL that runs is what SQLAlchemy compiles, and PostgreSQL could run it too."""

    def test_the_generated_file_is_up_to_date(self) -> None:
        """The generated SQL is up to date; else run `python -m infold.ledger.generate_sql`."""
        from infold.ledger import generate_sql

        assert Path(generated_sql.__file__).read_text(encoding="utf-8") == generate_sql.text()

    @pytest.mark.parametrize("name", ["sqlite", "postgresql"])
    def test_every_statement_parses_in_both_dialects(self, name: str) -> None:
        """Every statement parses for SQLite and PostgreSQL,
        because none uses a speciality such as an upsert.
        """
        from infold.ledger import generate_sql

        dialect = generate_sql.dialects()[name]
        texts = [*generate_sql.schema(dialect), *generate_sql.statements(dialect).values()]

        for text in texts:
            plain = re.sub(r"%\((\w+)\)s(::\w+)?", r":\1", text)
            sqlglot.parse_one(plain, dialect="postgres" if name == "postgresql" else "sqlite")
        assert not [text for text in texts if "ON CONFLICT" in text or "REPLACE" in text]

    def test_a_server_runs_what_sqlalchemy_compiles_for_it(self) -> None:
        """What PostgreSQL has otherwise than SQLite is replaced when the texts are loaded."""
        from infold.ledger import generate_sql, postgresql

        dialect = generate_sql.dialects()["postgresql"]
        compiled = generate_sql.statements(dialect)
        pairs = [(compiled[name], text) for name, text in postgresql.STATEMENTS.items()]
        pairs += zip(generate_sql.schema(dialect), postgresql.TABLES, strict=True)

        for expected, text in pairs:
            bare = re.sub(r"(%\(\w+\)s)::\w+", r"\1", expected)
            # SQLite has a few more words of its own, which are names if they are quoted.
            assert text.replace(' COLLATE "C"', "").replace('"', "") == bare.replace('"', "")
            assert set(re.findall(r'"\w+"', bare)) <= set(re.findall(r'"\w+"', text))
        assert len(pairs) == len(compiled) + len(postgresql.TABLES)
        assert not [text for text in postgresql.TABLES if re.search(r'TEXT(?! COLLATE "C")', text)]

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

        assert len(sql.changes("events", 0)) == 2 * KEEP
        assert list(sql.unchanged("events", 0)) == list(range(6, KEEP + 6))
        assert len(sql.arrivals("events")) == 2 * KEEP
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
    for outcome in drawn:
        version += outcome.committed
        files = outcome.files and replace(
            outcome.files, cells=tuple(FileCell(f.id, DAYS[0], 5) for f in outcome.files.ingested)
        )
        yield replace(outcome, version=version, files=files)


class Kept:
    """What a ledger has to keep of a history, by the rules in a few lines."""

    def __init__(self, history: Iterable[Outcome]) -> None:
        self.cells: dict[Interval, CellState] = {}
        self.changes: list[tuple[int, CellChange]] = []
        self.rows: list[int] = []
        self.files: dict[int, IngestedFile] = {}
        self.file_cells: dict[tuple[int, Interval], FileCell] = {}
        for outcome in history:
            if outcome.committed:
                self._commit(outcome)
            if outcome.files is not None:
                self._move(outcome.files)

    def _commit(self, outcome: Outcome) -> None:
        changes = outcome.changes
        if outcome.whole:
            before = [(state.cell, state.rows, state.content) for state in self.cells.values()]
            changes += vanished(before, changes)
            self.cells = {}
        for one in changes:
            self.cells.pop(one.cell, None)
            if one.rows_after:
                state = CellState(one.cell, one.rows_after, one.content_after, one.last)
                self.cells[one.cell] = state
            self.changes.append((outcome.version, replace(one, last=None)))
        self.rows.append(sum(state.rows for state in self.cells.values()))

    def _move(self, files: FilesOutcome) -> None:
        moved = {*files.removed, *(file.id for file in files.ingested)}
        self.files = {id_: file for id_, file in self.files.items() if id_ not in moved}
        self.file_cells = {key: one for key, one in self.file_cells.items() if key[0] not in moved}
        self.files.update((file.id, file) for file in files.ingested)
        self.file_cells.update(((one.file_id, one.cell), one) for one in files.cells)
        for lost in files.dropped:
            if one := self.file_cells.get((lost.file_id, lost.cell)):
                now = replace(one, dropped=one.dropped + lost.dropped)
                self.file_cells[lost.file_id, lost.cell] = now
            if file := self.files.get(lost.file_id):
                self.files[lost.file_id] = replace(file, dropped=file.dropped + lost.dropped)


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
    for i, outcome in enumerate(history):
        ledger.begin_step("r1", str(i), i, "m", "fold", {})
        ledger.finish_step(str(i), outcome)
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
