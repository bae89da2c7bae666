"""A ledger goes from a file to a server and back, as the page on it says."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, code
from tests.ledger import filled
from tests.ledger.conftest import Place
from tests.servers.postgresql import Postgresql
from tests.servers.test_ledger_access import role

from infold.cli import cli
from infold.ledger import SqlLedger
from infold.ledger import postgresql as ledger_on_server
from infold.ledger.copying import copy_ledger
from infold.ledger.exported_file import export_ledger, import_ledger
from infold.ledger.whole_tables import Checksum
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

YML = """
name: shop
start: 2024-01-01
targets:
  prod: {{ledger: '{url}'}}
"""


def copied(original: SqlLedger, to: SqlLedger) -> None:
    """A copy, as the command makes it."""
    copy_ledger(original, to, at="here", place="there", run="copying")


def test_there_and_back(postgresql: Postgresql, tmp_path: Path) -> None:
    """By copies and by files, from either kind into the other, every row comes back as it was."""
    places = [
        Place(f"sqlite:///{tmp_path / 'one.db'}", ""),
        Place(postgresql.url(), postgresql.schema()),
        Place(postgresql.url(), postgresql.schema()),
        Place(f"sqlite:///{tmp_path / 'two.db'}", ""),
    ]
    filled.fill(places[0].open())
    before = filled.rows_of(places[0].open())
    assert all(before.values())
    of: dict[str, Any] = {"project": "shop", "warehouse": "warehouse"}

    for number, (one, two) in enumerate(pairwise(places)):
        file = tmp_path / f"{number}.gz"
        export_ledger(one.open(), file, at="here", **of)
        copied(one.open(), two.open())
        imported = Place(f"sqlite:///{tmp_path / f'{number}.db'}", "")
        if one is places[0]:
            imported = Place(postgresql.url(), postgresql.schema())
        import_ledger(imported.open(), file, place="there", run="r", **of)
        for place in (two, imported):
            assert filled.rows_of(place.open()) == before
            place.close()


def test_one_server_by_two_names(postgresql: Postgresql) -> None:
    """A ledger is not copied onto itself, however its server is called."""
    place = Place(postgresql.url(), postgresql.schema())
    filled.fill(place.open())
    other = Place(postgresql.url().replace("127.0.0.1", "localhost"), place.schema)

    with pytest.raises(InfoldError, match="ledger-not-empty"):
        copied(place.open(), other.open())

    assert place.open().owner()


def test_a_table_that_changes_what_is_written(postgresql: Postgresql, tmp_path: Path) -> None:
    """What a trigger makes of a row is found out, and nothing of the copy is kept."""
    here = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    there = Place(postgresql.url(), postgresql.schema())
    filled.fill(here.open())
    empty = there.open()
    empty.acquire("r")
    empty.release()
    table = f"{there.schema}.cells"
    postgresql.run(
        f"CREATE FUNCTION {there.schema}.one() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN NEW.rows := 1; RETURN NEW; END $$",
        f"CREATE TRIGGER one BEFORE INSERT ON {table} FOR EACH ROW"
        f" EXECUTE FUNCTION {there.schema}.one()",
    )

    with pytest.raises(InfoldError, match="ledger-copy-differs") as raised:
        copied(here.open(), there.open())

    assert ("tables", "cells") in raised.value.facts
    assert postgresql.run(f"SELECT count(*) FROM {table}") == [(0,)]
    assert here.open().owner()


def test_a_connection_that_is_lost(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is there, and the original goes on."""
    from infold.ledger import copying

    here = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    there = Place(postgresql.url(), postgresql.schema())
    filled.fill(here.open())
    real = copying._give_back

    def lose(*words: object) -> None:
        postgresql.disconnect_all()
        real(*words)  # type: ignore[arg-type]

    with monkeypatch.context() as patch:
        patch.setattr(copying, "_give_back", lose)
        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            copied(here.open(), there.open())
    assert here.open().owner()

    copied(here.open(), there.open())
    assert filled.rows_of(there.open()) == filled.rows_of(here.open())


def test_an_open_transaction_is_kept_awake(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server ends transactions that are idle; comparing may take longer than it waits."""
    here = Place(postgresql.url(), postgresql.schema())
    there = Place(f"sqlite:///{tmp_path / 'one.db'}", "")
    filled.fill(here.open())
    monkeypatch.setattr(ledger_on_server, "FROZEN_SECONDS", 1)
    real = Checksum.add

    def add(self: Checksum, lines: Iterable[str]) -> None:
        time.sleep(0.05)
        real(self, lines)

    monkeypatch.setattr(Checksum, "add", add)
    copied(here.open(), there.open())

    assert filled.rows_of(there.open()) == filled.rows_of(here.open())


def test_who_may_only_read_exports(postgresql: Postgresql, tmp_path: Path) -> None:
    """A backup needs no other right; a copy does, as it closes the ledger."""
    place = Place(postgresql.url(), postgresql.schema())
    filled.fill(place.open())
    url = role(
        postgresql,
        "saver",
        f"GRANT USAGE ON SCHEMA {place.schema} TO saver",
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {place.schema} TO saver",
    )
    reader, there = Place(url, place.schema), Place(f"sqlite:///{tmp_path / 'one.db'}", "")

    done = export_ledger(
        reader.open(), tmp_path / "file", at="here", project="shop", warehouse="warehouse"
    )
    with pytest.raises(InfoldError, match="ledger-not-permitted"):
        copied(reader.open(), there.open())

    assert sum(done.rows.values()) > 200
    assert not (tmp_path / "one.db").exists()


def test_as_the_page_says(
    postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command of the page, with a password that nothing shows and no file has."""
    monkeypatch.setenv("LEDGER_PASSWORD", postgresql.password)
    (command,) = code(DOCS / "deploying.md", "bash")
    words = shlex.split(command.replace("\\\n", ""))[1:]
    url = words[-1].replace("ledger_writer", "infold").replace("/ledgers", "/postgres")
    url = url.replace("db.example.com:5432", f"127.0.0.1:{postgresql.port}")
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "one.sql").write_text("SELECT 1 AS x", encoding="utf-8")
    yml = tmp_path / "infold.yml"
    yml.write_text(YML.format(url="sqlite:///.infold/ledger.db"), encoding="utf-8")
    filled.fill(SqlLedger(tmp_path / ".infold" / "ledger.db"))
    before = filled.rows_of(SqlLedger(tmp_path / ".infold" / "ledger.db"))
    printed = []

    def infold(*some: str) -> str:
        done = CliRunner().invoke(cli, ["-C", str(tmp_path), *some])
        printed.append(done.output)
        assert done.exit_code == 0, done.output
        return done.output

    assert "compared what was written" in infold(*words[:-1], url, "--schema", "moved")
    assert f"    ledger: {url}\n    ledger_schema: moved\n" in printed[-1]
    yml.write_text(
        YML.format(url=url).replace("}\n", ", ledger_schema: moved}\n"), encoding="utf-8"
    )
    infold("--target", "prod", "ledger", "export", str(tmp_path / "saved"))
    assert "(without ledger_schema)" in infold(
        "--target", "prod", "ledger", "copy", "sqlite:///back.db"
    )

    assert filled.rows_of(SqlLedger(tmp_path / "back.db")) == before
    rows = postgresql.run("SELECT value FROM moved.meta WHERE name = 'infold.moved'")
    assert rows == [("sqlite:///back.db",)]
    files = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) >= 4
    texts = [*files, *(text.encode() for text in printed)]
    assert [text for text in texts if b"s3cret" in text] == []
