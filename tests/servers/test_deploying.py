"""A project on a shared ledger: set up as the page on it says, run, and cut off from its server."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import quote

import pytest
from tests.docs.pages import DOCS, code
from tests.ledger.conftest import Place
from tests.servers.moved import Starter
from tests.servers.postgresql import Postgresql

from infold.ledger.lease import Holder

pytestmark = [pytest.mark.servers, pytest.mark.spark]

PAGE = DOCS / "deploying.md"
SECRET = "s3cret word/@:?#%&='\"ä"
AWAY = Holder("away", "away:boot:ns", 1, "1")
READING = """
  reading:
    warehouse: {warehouse}
    ledger: postgresql+psycopg://ledger_reader:${{file:reader.secret}}@127.0.0.1:{port}/ledgers
    ledger_schema: infold_shop_prod
"""


@dataclass(kw_only=True)
class Shop(Starter):
    """The same, whose target ``prod`` has its ledger on the server."""

    server: Postgresql

    def place(self) -> Place:
        """Where the ledger is."""
        url = self.server.url("ledger_writer", SECRET, "ledgers")
        return Place(url, "infold_shop_prod")


@pytest.fixture(scope="module")
def shop(postgresql: Postgresql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Shop]:
    """The starter's project, with what the page has and runs."""
    root = tmp_path_factory.mktemp("deploying") / "shop"
    made = Shop(root=root, server=postgresql)
    warehouse = root.parent / "warehouse"
    writer, reader = code(PAGE, "sql")
    (targets,) = code(PAGE, "yaml")
    (commands,) = code(PAGE, "sh")
    address = f"127.0.0.1:{postgresql.port}"
    places = {"db.example.com:5432": address, "/srv/shop/warehouse": str(warehouse)}
    targets += READING.format(warehouse=warehouse, port=postgresql.port)
    made.declare(targets, places)
    (root / "reader.secret").write_text(f"{SECRET}\n", encoding="utf-8")
    secret = SECRET.replace("'", "''")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEDGER_PASSWORD", SECRET)
        postgresql.run(*writer.replace("change-me", secret).split(";\n")[:-1])
        for line in commands.splitlines():
            made(line.removeprefix("infold "))
        statements = reader.replace("change-me-too", secret).split(";\n")[:-1]
        postgresql.run(*statements, database="ledgers")
        yield made


def test_doctor_shows_where_the_ledger_is(shop: Shop) -> None:
    """Kind, version, URL without its secret, and schema, and that its lease was taken."""
    found = json.loads(shop.infold("--target prod doctor --json").stdout)

    [ledger] = [check for check in found["checks"] if check["name"] == "ledger"]
    assert ledger["found"].startswith("PostgreSQL ")
    user = "ledger_writer:${env:LEDGER_PASSWORD}"
    at = f"postgresql+psycopg://{user}@127.0.0.1:{shop.server.port}/ledgers"
    assert f"{at}, schema infold_shop_prod: newest run " in ledger["found"]
    assert ledger["found"].endswith("its lease was taken and given back")


def test_others_read_while_a_run_goes_on(shop: Shop) -> None:
    """A role that may only read has history, status and plan; a second run is refused by name."""
    place = shop.place()
    far = place.open(holder=AWAY)
    far.acquire("theirs")
    far.begin_run("theirs", "run", 0, {})
    try:
        history = shop("--target reading history --limit 1")
        shop("--target reading status")
        shop("--target reading plan")
        refused = shop("--target prod run", code=3)
    finally:
        place.close()

    assert "theirs" in history
    assert "locked: run theirs is working on this target" in refused
    assert "away" in refused
    assert "ledger-not-permitted" in shop("--target reading run", code=1)


def test_a_ledger_is_taken_along(shop: Shop) -> None:
    """By the command of the page, from a file to the server, into another schema; and back."""
    (command,) = code(PAGE, "bash")
    *words, url = shlex.split(command.replace("\\\n", ""))[1:]
    url = url.replace("db.example.com:5432", f"127.0.0.1:{shop.server.port}")
    file = shop.root / "infold.yml"
    text = file.read_text(encoding="utf-8")
    named = f"{url}\n    ledger_schema: "
    file.write_text(text.replace(url, f"{named}infold_shop_prod"), encoding="utf-8")
    assert "(without ledger_schema)" in shop("--target prod ledger copy sqlite:///taken.db")
    file.write_text(text.replace(url, "sqlite:///taken.db"), encoding="utf-8")
    before = shop("--target prod history")
    assert "theirs" in before

    told = shop(*words, url, "--schema", "moved")

    assert "compared what was written" in told
    assert f"    ledger: {named}moved\n" in told
    file.write_text(text.replace(url, f"{named}moved"), encoding="utf-8")
    assert shop("--target prod history") == before
    shop("--target", "prod", "ledger", "export", str(shop.root / "saved"))


def test_no_secret_is_written_anywhere(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not on a screen, in JSON, in a file of the project or its tables, nor in the ledger."""
    shop("--target prod history --json")
    with monkeypatch.context() as patch:
        patch.setenv("LEDGER_PASSWORD", f"{SECRET} wrong")
        assert "ledger-login-refused" in shop("--target prod run", code=1)
        shop("--target prod doctor --json", code=1)
    with monkeypatch.context() as patch:
        patch.delenv("LEDGER_PASSWORD")
        assert "${env:LEDGER_PASSWORD}" in shop("--target prod plan", code=2)
    tables = shop.server.run(
        "SELECT tablename FROM pg_tables WHERE schemaname = 'moved'", database="ledgers"
    )
    assert len(tables) > 20
    texts = [text.encode() for text in shop.printed]
    for (table,) in tables:
        rows = shop.server.run(f"SELECT t::text FROM moved.{table} t", database="ledgers")
        texts += [row.encode() for (row,) in rows]
    files = [path for path in shop.root.parent.rglob("*") if path.is_file()]
    names = {path.name for path in files}
    assert {"infold.yml", "project.json", "catalog.db", "taken.db", "saved"} <= names
    texts += [path.read_bytes() for path in files if path.name != "reader.secret"]

    for secret in (SECRET, quote(SECRET, safe=""), json.dumps(SECRET)[1:-1], "s3cret"):
        assert [text for text in texts if secret.encode() in text] == []
    assert os.environ["LEDGER_PASSWORD"] == SECRET


def test_nothing_is_left_of_a_target_that_is_torn_down(shop: Shop) -> None:
    """Tables and ledger go, and the next run begins anew."""
    shop("--target prod teardown --yes")

    gone = shop.server.run("SELECT to_regnamespace('moved') IS NULL", database="ledgers")
    assert gone == [(True,)]
    assert shop("--target prod history").startswith("No runs yet")
