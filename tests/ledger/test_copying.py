"""A ledger is taken to another place, or to a file: all of it or nothing, whoever is killed."""

from __future__ import annotations

import gzip
import json
import random
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS, code
from tests.ledger import filled, released_ledgers
from tests.ledger.conftest import Place, killed
from tests.ledger.drawn import DAYS
from tests.ledger.steps import change, do, outcome

from infold.core.audits import AuditResult
from infold.core.record import Receipt
from infold.core.report import LedgerCopy
from infold.core.sessions import ManualEntry
from infold.ledger import SqlLedger, copying, whole_tables
from infold.ledger.copying import copy_ledger, export_ledger, import_ledger
from infold.ledger.database import FORMAT, RELEASED, SCHEMA
from infold.ledger.lease import NAME, Holder
from infold.ledger.whole_tables import Checksum
from infold.messages.errors import InfoldError

NewPlace = Callable[[], Place]


def copied(original: SqlLedger, to: SqlLedger, run: str = "copying") -> LedgerCopy:
    """A copy, as the command makes it."""
    return copy_ledger(original, to, at="here", place="there", run=run)


def refusal(use: Callable[[], object]) -> str:
    """The name of the error of something that is refused."""
    with pytest.raises(InfoldError) as raised:
        use()
    return raised.value.slug


def test_all_tables_are_known_with_all_their_columns() -> None:
    """What is read from the texts is what SQLite makes of them: name, kind, NULL and key."""
    connection = sqlite3.connect(":memory:")
    for text in SCHEMA:
        connection.execute(text)
    named = "SELECT name FROM sqlite_schema WHERE sql LIKE 'CREATE TABLE%'"
    kinds = {"TEXT": (str, 64), "BIGINT": (int, 64), "INTEGER": (int, 32), "BOOLEAN": (bool, 64)}
    known = {table.name: table for table in whole_tables.TABLES}

    assert {*known, whole_tables.LEASES} == {name for (name,) in connection.execute(named)}
    for name, table in known.items():
        columns = connection.execute("SELECT * FROM pragma_table_info(?)", (name,)).fetchall()
        assert [
            (column.name, column.kind, column.bits, column.null) for column in table.columns
        ] == [(column, *kinds[kind], not required) for _, column, kind, required, _, _ in columns]
        assert set(table.key) == {column[1] for column in columns if column[5]}


class TestCopy:
    """The copy is the ledger, and the original is closed."""

    def test_every_row_of_every_table_is_copied(self, original: SqlLedger, there: Place) -> None:
        """Also into a ledger without rows; nobody has the lease, no token is given twice."""
        empty = there.open()
        empty.acquire("r9")
        empty.release()
        before = filled.rows_of(original)
        assert all(before.values())

        done = copied(original, there.open())

        to, (last, _) = there.open(), filled.token_of(original)
        assert filled.rows_of(to) == filled.rows_of(original) == before
        assert done.rows == {name: len(rows) for name, rows in before.items()}
        assert not done.again
        assert filled.token_of(to) == (last, None)
        to.acquire("r2")
        assert filled.token_of(to) == (last + 1, "r2")
        assert to.owner() == ("shop", "warehouse")
        to.close()

    def test_the_original_is_closed(self, original: SqlLedger, place: Place, there: Place) -> None:
        """Nobody writes to it again, with the lease or without, nor takes it for the ledger."""
        copied(original, there.open())
        entry = ManualEntry(0, "ann", True, 1, 2, "")
        other = place.open()

        for use in (
            lambda: other.acquire("r2"),
            lambda: other.add_entries("m", [entry]),
            lambda: other.record_audits("m", tuple[AuditResult, ...]()),
            other.owner,
            lambda: copied(other, there.open()),
        ):
            assert refusal(use) == "ledger-moved"
        assert filled.token_of(other)[1] is None
        assert other.locations()

    def test_a_copy_goes_back_to_a_new_place_only(
        self, original: SqlLedger, place: Place, there: Place, new_place: NewPlace
    ) -> None:
        """What was closed is not written over; elsewhere a copy of the copy is the ledger."""
        before = filled.rows_of(original)
        copied(original, there.open())

        assert refusal(lambda: copied(there.open(), place.open())) == "ledger-not-empty"
        back = new_place()
        copied(there.open(), back.open())

        assert filled.rows_of(back.open()) == before
        assert refusal(lambda: there.open().owner()) == "ledger-moved"
        back.open().owner()


class TestRefusals:
    """Nothing is written over, and nothing is copied while somebody writes."""

    def test_a_place_with_a_ledger(self, original: SqlLedger, place: Place, there: Place) -> None:
        """Whatever is in it: a run is enough. Nor the same place: it would be closed."""
        other = there.open()
        other.acquire("r9")
        other.begin_run("r9", "run", 0, {})
        other.release()
        before = filled.rows_of(other)

        for to in (there, place):
            assert refusal(partial(copied, original, to.open())) == "ledger-not-empty"

        assert filled.rows_of(other) == before
        assert original.owner()

    def test_a_run_at_work(self, original: SqlLedger, place: Place, there: Place) -> None:
        """In either place: it is named, and nothing is copied."""
        far = Holder("away", "away:boot:ns", 1, "1")
        for busy in (place.open(holder=far), there.open(holder=far)):
            busy.acquire("theirs")
            assert refusal(lambda: copied(original, there.open())) == "locked"
            assert busy.database.lost is None
            busy.release()
        copied(original, there.open())

    def test_a_place_where_somebody_was_a_moment_sooner(
        self, original: SqlLedger, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """What they wrote stays."""
        to, other = there.open(), there.open()
        real = to.acquire

        def acquire(run: str) -> None:
            other.add_entries("theirs", [ManualEntry(0, "ann", True, 1, 2, "")])
            real(run)

        monkeypatch.setattr(to, "acquire", acquire)

        assert refusal(lambda: copied(original, to)) == "ledger-not-empty"

        assert [entry.owner for entry in other.entries("theirs")] == ["ann"]
        assert original.owner()
        other.acquire("r9")

    def test_nobody_writes_meanwhile(
        self, original: SqlLedger, place: Place, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Not even what needs no lease: it would be lost."""
        real, tried = copying.fill, []

        def fill(*words: object, **how: object) -> object:
            done = real(*words, **how)  # type: ignore[arg-type]
            if place.url.startswith("sqlite"):
                file = place.url.removeprefix("sqlite:///")
                with closing(sqlite3.connect(file, timeout=0)) as connection:
                    try:
                        connection.execute("BEGIN IMMEDIATE")
                    except sqlite3.OperationalError as error:
                        tried.append(str(error))
            return done

        monkeypatch.setattr(copying, "fill", fill)
        copied(original, there.open())

        assert tried == ["database is locked"] * place.url.startswith("sqlite")

    def test_what_is_read_back_has_to_be_the_same(
        self, original: SqlLedger, there: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A copy that lacks a row is not kept, and the original goes on."""
        real = whole_tables.add_rows

        def add_rows(query: object, table: whole_tables.WholeTable, rows: list[object]) -> None:
            real(query, table, rows[table.name == "steps" :])  # type: ignore[arg-type]

        monkeypatch.setattr(whole_tables, "add_rows", add_rows)

        with pytest.raises(InfoldError, match="ledger-copy-differs") as raised:
            copied(original, there.open())

        assert ("tables", "steps") in raised.value.facts
        with there.open().database.read() as query:
            assert whole_tables.is_empty(query)
        assert original.owner()


POINTS = [
    f"ledger {write}: {when} commit"
    for write in ("create", "acquire", "copy", "release", "move")
    for when in ("before", "after")
]


def test_the_points_of_a_copy(original: SqlLedger, there: Place, points: list[str]) -> None:
    """The copy is committed before the original is closed."""
    copied(original, there.open())

    assert set(points) == set(POINTS)
    order = [point for point in points if "copy" in point or "move" in point]
    assert order == POINTS[4:6] + POINTS[8:]


def dying(place: Place, there: Place, point: str) -> bool:
    """A process that copies a ledger is killed."""
    return killed(point, lambda: copied(place.open(), there.open(), "dying"))


@pytest.mark.deep
@pytest.mark.parametrize("point", [*POINTS[1:2], *POINTS[4:6], *POINTS[8:]])
def test_a_kill_leaves_all_or_nothing(
    original: SqlLedger, place: Place, there: Place, point: str
) -> None:
    """Nothing or all is there, the original is as it was, and the same command does the rest."""
    before = filled.rows_of(original)
    original.close()

    assert dying(place, there, point)

    whole, closed = POINTS.index(point) >= 5, point == POINTS[-1]
    with there.open().database.read() as query:
        assert whole_tables.is_empty(query) is not whole
    assert filled.rows_of(place.open()) == before
    if whole:
        assert filled.rows_of(there.open()) == before
    if closed:
        assert refusal(lambda: place.open().owner()) == "ledger-moved"
    else:
        assert place.open().owner()
        done = copied(place.open(), there.open())
        assert done.again is whole
        assert filled.rows_of(there.open()) == before
        assert refusal(lambda: place.open().owner()) == "ledger-moved"
    to = there.open()
    to.acquire("r2")
    to.close()


@pytest.mark.deep
@pytest.mark.parametrize("where", ["original", "copy"])
def test_a_copy_that_is_no_longer_the_same_is_a_ledger_of_its_own(
    original: SqlLedger, place: Place, there: Place, where: str
) -> None:
    """After a kill between the two, whoever goes on in either place is not lost."""
    original.close()
    assert dying(place, there, POINTS[5])
    entry = ManualEntry(0, "ann", True, 1, 2, "")
    (place if where == "original" else there).open().add_entries("new", [entry])

    assert refusal(lambda: copied(place.open(), there.open())) == "ledger-not-empty"

    with suppress(InfoldError):
        place.close()
    with place.open().database.read() as query:
        assert query.one("lease", name=NAME)[2] is None
    assert place.open().owner()


# -- a ledger as a file


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """The lines of a file."""
    folder = tmp_path_factory.mktemp("exported")
    ledger = Place(f"sqlite:///{folder / 'ledger.db'}", "").open()
    filled.fill(ledger)
    exported(ledger, folder / "file")
    return (folder / "file").read_text(encoding="utf-8").splitlines(keepends=True)


def exported(ledger: SqlLedger, path: Path) -> LedgerCopy:
    """The ledger in a file."""
    return export_ledger(ledger, path, at="here", project="shop", warehouse="warehouse")


def imported(to: SqlLedger, path: Path, warehouse: str = "warehouse") -> LedgerCopy:
    """A ledger of a file."""
    return import_ledger(
        to, path, place="there", project="shop", warehouse=warehouse, run="importing"
    )


class TestRoundTrip:
    """What is imported is what was exported."""

    @pytest.mark.parametrize("batch", [3, whole_tables.BATCH])
    @pytest.mark.parametrize("name", ["ledger.jsonl", "ledger.jsonl.gz"])
    def test_every_row_comes_back(
        self,
        original: SqlLedger,
        there: Place,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        name: str,
        batch: int,
    ) -> None:
        """Nobody has the lease; the same ledger is the same file, and nothing is written over."""
        for module in (copying, whole_tables):
            monkeypatch.setattr(module, "BATCH", batch)
        rows, (token, _) = filled.rows_of(original), filled.token_of(original)
        with original.database.write(None) as query:
            query.run("add_meta", name="infold.moved", value="lost")
        one, two, three = (tmp_path / f"{number} {name}" for number in range(3))
        done = exported(original, one)
        exported(original, two)
        back = imported(there.open(), one)
        exported(there.open(), three)
        with pytest.raises(InfoldError, match="ledger-not-empty"):
            imported(there.open(), one)

        to = there.open()
        assert filled.rows_of(to) == rows
        assert done.rows == back.rows == {n: len(r) for n, r in rows.items()}
        assert filled.token_of(to) == (token, None)
        assert to.owner() == ("shop", "warehouse")
        assert one.read_bytes() == two.read_bytes() == three.read_bytes()
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith(".")] == []

    def test_a_failed_export_leaves_the_file_as_it_was(
        self, original: SqlLedger, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The last backup is still there. A run at work is named, as the state is one of a run."""
        original.acquire("r2")
        assert exported(original, tmp_path / "file").working == "r2"
        before = (tmp_path / "file").read_bytes()
        monkeypatch.setattr(copying, "_write_table", lambda *_: 1 / 0)

        with pytest.raises(ZeroDivisionError):
            exported(original, tmp_path / "file")

        assert (tmp_path / "file").read_bytes() == before
        assert [path.name for path in tmp_path.glob("*file*")] == ["file"]


@pytest.mark.parametrize("format_", released_ledgers.FORMATS)
def test_a_file_of_a_released_format_comes_back(place: Place, there: Place, format_: int) -> None:
    """A backup may be older than the program that reads it. What it becomes is what the ledger
    would have become that it was exported from.
    """
    released_ledgers.make(there, format_)

    done = imported(place.open(), released_ledgers.FOLDER / f"{format_}.jsonl")

    assert filled.rows_of(place.open()) == filled.rows_of(there.open())
    assert released_ledgers.structure(place) == released_ledgers.structure(there)
    assert done.rows == {n: len(r) for n, r in filled.rows_of(place.open()).items()}
    assert filled.token_of(place.open())[1] is None


def test_the_page_is_right(lines: list[str]) -> None:
    """Its lines are those of a file: the header's keys, a table with its checksum, the end."""
    head, table, end = code(DOCS / "reference" / "ledger-file.md", "json")[0], *_rest()
    first, *rows, last = table.splitlines()
    own = Checksum()
    own.add(rows)

    assert json.loads(head).keys() == json.loads(lines[0]).keys()
    assert json.loads(head)["file"] == copying.FILE_FORMAT
    assert json.loads(head)["format"] == FORMAT
    assert json.loads(last) == {"end": "left_out", "rows": own.rows, "checksum": own.text}
    assert f"{first}\n" in lines
    assert f"{end}\n" == lines[-1]


def _rest() -> tuple[str, str]:
    page = DOCS / "reference" / "ledger-file.md"
    text = page.read_text(encoding="utf-8")
    return code(page, "json")[1], text.partition("The last line is `")[2].partition("`")[0]


@pytest.fixture
def to(tmp_path: Path) -> SqlLedger:
    """A ledger in a file, which is not there."""
    return SqlLedger(tmp_path / "ledger.db")


def refused(to: SqlLedger, path: Path, text: str | bytes) -> InfoldError:
    """The error of importing a file with this text; nothing is kept of it."""
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(InfoldError) as raised:
        imported(to, path)
    with to.database.read() as query:
        assert whole_tables.is_empty(query)
    return raised.value


class TestFilesThatAreRefused:
    """A file is imported as a whole or not at all."""

    def test_something_else(self, to: SqlLedger, tmp_path: Path, lines: list[str]) -> None:
        """A file that is no exported ledger, or one of tables in another warehouse."""
        for text in ("", "\n", "[]\n", "{}\n", '{"infold": 1}\n', "\x00\n", "{", b"\xff\xfe"):
            assert refused(to, tmp_path / "file", text).slug == "not-a-ledger-file"
        (tmp_path / "file").write_text("".join(lines), encoding="utf-8")
        with pytest.raises(InfoldError, match="ledger-file-elsewhere"):
            imported(to, tmp_path / "file", "elsewhere")
        assert not (tmp_path / "ledger.db").exists()

    @pytest.mark.parametrize(
        ("changed", "slug"),
        [
            ({"file": 2}, "ledger-file-newer"),
            ({"format": FORMAT + 1}, "ledger-file-newer"),
            ({"format": RELEASED - 1}, "ledger-file-damaged"),
            ({"file": 0}, "ledger-file-damaged"),
            ({"token": "1"}, "ledger-file-damaged"),
            ({"project": None}, "ledger-file-damaged"),
        ],
    )
    def test_a_wrong_header(
        self, to: SqlLedger, tmp_path: Path, lines: list[str], changed: dict[str, Any], slug: str
    ) -> None:
        """Of a newer program, by the lines or the tables in them, or damaged."""
        head = json.dumps(json.loads(lines[0]) | changed | {"version": "9.0", "more": 1})

        error = refused(to, tmp_path / "file", f"{head}\n" + "".join(lines[1:]))

        facts = dict(error.facts)
        assert error.slug == slug
        assert (facts.get("line") == "1") is (slug == "ledger-file-damaged")
        assert (facts.get("exported by") == "infold 9.0") is (slug == "ledger-file-newer")
        assert not (tmp_path / "ledger.db").exists()

    @pytest.mark.parametrize("earlier", [False, True])
    def test_every_line_is_needed(
        self, to: SqlLedger, tmp_path: Path, lines: list[str], earlier: bool
    ) -> None:
        """A line that is left out, or there twice, is told by the number of a line."""
        if earlier:
            file = released_ledgers.FOLDER / f"{RELEASED}.jsonl"
            lines = file.read_text(encoding="utf-8").splitlines(keepends=True)
        some = random.Random(1).sample(range(1, len(lines)), 6 if earlier else 12)
        for at in (1, len(lines) - 2, len(lines) - 1, *some):
            for text in (lines[:at] + lines[at + 1 :], lines[: at + 1] + lines[at:]):
                error = refused(to, tmp_path / "file", "".join(text))

                assert error.slug == "ledger-file-damaged"
                assert int(dict(error.facts)["line"]) > at

    def test_every_byte_is_needed(self, to: SqlLedger, tmp_path: Path, lines: list[str]) -> None:
        """A byte that is another one is told by its line or the end of its table."""
        whole, drawn = "".join(lines).encode(), random.Random(2)
        first = len(lines[0])
        for at in (len(whole) - 1, *(drawn.randrange(first, len(whole)) for _ in range(40))):
            other = bytes([whole[at] ^ (1 << drawn.randrange(7))])

            error = refused(to, tmp_path / "file", whole[:at] + other + whole[at + 1 :])

            assert error.slug == "ledger-file-damaged"
            assert int(dict(error.facts)["line"]) > whole[:at].count(b"\n")

    def test_a_file_that_ends_early(self, to: SqlLedger, tmp_path: Path, lines: list[str]) -> None:
        """Wherever it was cut off, packed or not."""
        whole = "".join(lines).encode()
        packed = gzip.compress(whole)
        for part in (0.3, 0.6, 0.99):
            for text in (whole, packed):
                error = refused(to, tmp_path / "file", text[: int(len(text) * part)])
                assert error.slug == "ledger-file-damaged"
        assert not to.exists()

    def test_a_row_that_no_table_can_have(
        self, to: SqlLedger, tmp_path: Path, lines: list[str]
    ) -> None:
        """It is found where it stands."""
        at = 1 + next(i for i, line in enumerate(lines) if line.startswith('{"table": "meta"'))
        for row in (
            '["name", 1]', '["name"]', '["name", "value", 1]', '["name", null]', "[" * 100_000,
            '["name", "\\ud800"]', '["name", NaN]', f'["name", {"1" * 5000}]', '{"name": "value"}',
        ):  # fmt: skip
            text = [*lines[:at], f"{row}\n", *lines[at:]]
            error = refused(to, tmp_path / "file", "".join(text))
            assert (error.slug, dict(error.facts)["line"]) == ("ledger-file-damaged", str(at + 1))


# -- a process that is killed at any write of the ledger leaves all of it or nothing


WRITES = [
    *("create", "acquire", "begin_run", "begin_step", "prepare_step"),
    *("finish_step", "finish_run", "release"),
]


def one_step(place: Place) -> SqlLedger:
    """A run of one step."""
    ledger = place.open()
    ledger.acquire("r1")
    ledger.begin_run("r1", "run", 0, {})
    do(ledger, outcome(1, change(DAYS[2], 1)))
    ledger.finish_run("r1", "done", Receipt())
    ledger.release()
    return ledger


def test_every_write_is_a_point_before_and_after(place: Place, points: list[str]) -> None:
    """Every write has a point before and after it, in the order in which the writes happen."""
    one_step(place)

    names = [f"ledger {write}: {when} commit" for write in WRITES for when in ("before", "after")]
    assert points == names


@pytest.mark.deep
@pytest.mark.parametrize("write", WRITES[3:7])
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_step(place: Place, write: str, when: str) -> None:
    """A write is there or not, and the next run can take over."""
    assert killed(f"ledger {write}: {when} commit", lambda: one_step(place))

    done = WRITES.index(write) + (when == "after")
    ledger = place.open()
    ledger.acquire("r2")
    (r1,) = ledger.runs()
    states = {3: [], 4: ["intent"], 5: ["prepared"], 6: ["done"], 7: ["done"]}
    assert [step.state for step in r1.steps] == states[done]
    assert r1.state == ("done" if done == 7 else "died")
    assert ("events" in ledger.newest_versions()) == ("events" in ledger.traces()) == (done >= 6)
    assert len(ledger.cells("events")) == (done >= 6)


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_ledger_that_is_removed(place: Place, when: str) -> None:
    """It is whole, or there is none."""

    def remove() -> None:
        ledger = one_step(place)
        ledger.acquire("r2")
        ledger.destroy()

    assert killed(f"ledger remove: {when}", remove)

    ledger = place.open()
    assert [run.id for run in ledger.runs()] == (["r1"] if when == "before" else [])
    ledger.acquire("r3")


@pytest.mark.deep
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_ledger_that_is_imported(
    original: SqlLedger, there: Place, tmp_path: Path, when: str
) -> None:
    """One that was half imported can be imported again."""
    file, whose = tmp_path / "file", {"project": "shop", "warehouse": "warehouse"}
    export_ledger(original, file, at="here", **whose)

    def imported() -> None:
        import_ledger(there.open(), file, place="there", run="r", **whose)

    assert killed(f"ledger import: {when} commit", imported)
    if when == "before":
        imported()
    assert filled.rows_of(there.open()) == filled.rows_of(original)
    there.open().acquire("r2")
