"""A ledger as a file: all of it comes back, and a file that is not whole is refused by its line."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import pytest
from tests.docs.pages import DOCS, code
from tests.ledger import filled, released_ledgers
from tests.ledger.conftest import Place

from infold.core.report import LedgerCopy
from infold.ledger import SqlLedger, exported_file, whole_tables
from infold.ledger.database import FORMAT
from infold.ledger.exported_file import export_ledger, import_ledger
from infold.ledger.upgrades import RELEASED
from infold.ledger.whole_tables import Checksum
from infold.messages.errors import InfoldError


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
        """
        Rows, tokens, and whose ledger it is; nobody has the lease. What says that it was copied
        elsewhere is not in the file. The same ledger is the same file, so that two can be compared;
        nothing is written over with it.
        """
        for module in (exported_file, whole_tables):
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
        monkeypatch.setattr(exported_file, "_write_table", lambda *_: 1 / 0)

        with pytest.raises(ZeroDivisionError):
            exported(original, tmp_path / "file")

        assert (tmp_path / "file").read_bytes() == before
        assert [path.name for path in tmp_path.glob("*file*")] == ["file"]


class TestEarlierFormats:
    """A backup may be older than the program that reads it."""

    @pytest.mark.parametrize("format_", released_ledgers.FORMATS)
    def test_a_file_of_a_released_format_comes_back(
        self, place: Place, there: Place, format_: int
    ) -> None:
        """What it becomes is what the ledger would have become that it was exported from."""
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
    assert json.loads(head)["file"] == exported_file.FILE_FORMAT
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


class TestRefusals:
    """A file is imported as a whole or not at all."""

    @pytest.mark.parametrize("text", ["", "\n", "[]\n", "{}\n", '{"infold": 1}\n', "\x00\n", "{"])
    def test_something_else(self, to: SqlLedger, tmp_path: Path, text: str) -> None:
        """A file that is no exported ledger."""
        assert refused(to, tmp_path / "file", text).slug == "not-a-ledger-file"
        assert refused(to, tmp_path / "file", b"\xff\xfe").slug == "not-a-ledger-file"
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

    def test_that_of_another(self, to: SqlLedger, tmp_path: Path, lines: list[str]) -> None:
        """Of another project, or of tables in another warehouse."""
        (tmp_path / "file").write_text("".join(lines), encoding="utf-8")

        with pytest.raises(InfoldError, match="ledger-file-elsewhere"):
            imported(to, tmp_path / "file", "elsewhere")
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

    @pytest.mark.parametrize(
        "row",
        [
            '["name", 1]',
            '["name"]',
            '["name", "value", 1]',
            '["name", null]',
            '["name", "\\ud800"]',
            '["name", NaN]',
            "[" * 100_000,
            f'["name", {"1" * 5000}]',
            '{"name": "value"}',
        ],
        ids=range(9),
    )
    def test_a_row_that_no_table_can_have(
        self, to: SqlLedger, tmp_path: Path, lines: list[str], row: str
    ) -> None:
        """It is found where it stands."""
        at = 1 + next(i for i, line in enumerate(lines) if line.startswith('{"table": "meta"'))
        text = [*lines[:at], f"{row}\n", *lines[at:]]

        error = refused(to, tmp_path / "file", "".join(text))

        assert (error.slug, dict(error.facts)["line"]) == ("ledger-file-damaged", str(at + 1))
