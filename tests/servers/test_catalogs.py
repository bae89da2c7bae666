"""The contract of catalogs, without Spark: on SQLite, on PostgreSQL, by REST and in Hive."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest
from tests.servers.catalogs import (
    JDBC_SECRET,
    KEY,
    PASSWORD,
    SECRET,
    Shelf,
    jdbc_uri,
    new_database,
    opened,
)
from tests.servers.postgresql import Postgresql
from tests.servers.rest_catalog import RestServer

from infold.core import write_points
from infold.core.catalogs import Catalog, CatalogType
from infold.core.formats import Format
from infold.core.model import Source
from infold.core.ports import FORBIDDEN
from infold.core.swap import Renaming
from infold.lake.iceberg import jdbc_catalog as jdbc
from infold.lake.iceberg import rest_client
from infold.lake.iceberg.jdbc_catalog import jdbc_catalog
from infold.lake.iceberg.rest_catalog import RestCatalog, rest_catalog
from infold.lake.iceberg.sql_catalog import SqlCatalog, Statements, sqlite_catalog
from infold.lake.reading.iceberg_table import table_files
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

MANY = 40


@pytest.fixture
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A catalog that changes several tables at once; what is in SQLite needs no server."""
    with opened("jdbc", request, tmp_path) as found:
        yield found


class Died(BaseException):
    """The process dies."""


class TestTables:
    """What infold finds, drops and renames, pyiceberg finds dropped and renamed, and so back."""

    def test_a_source_has_a_catalog_of_its_own(self, shelf: Shelf, tmp_path: Path) -> None:
        """Whatever the target's is: its table is found, as it is after each commit."""
        said = {"uri": f"sqlite:///{tmp_path / 'catalog.db'}", **shelf.declared}
        type_ = CatalogType(said.pop("type"))
        said.pop("namespace", None)
        catalog = Catalog(type_, **said)
        table = f"{shelf.namespace}.daily"
        source = Source("raw.x", Format.ICEBERG, (), table=table, catalog=catalog)
        own = sqlite_catalog(tmp_path / "none.db")
        with pytest.raises(InfoldError, match="no-such-table"):
            table_files(tmp_path, source, own)
        shelf.make("daily")
        assert len(table_files(tmp_path, source, own)) == 1
        shelf.commit("daily")
        assert len(table_files(tmp_path, source, own)) == 2

    def test_a_table_is_found_where_it_is(self, shelf: Shelf) -> None:
        """Its newest metadata, after each commit; one that is not there is not found."""
        lake = shelf.lake()
        first = shelf.make("daily")
        assert lake.moved_tables({"daily": "", "none": ""}) == {"daily": first, "none": None}
        second = shelf.commit("daily")

        assert lake.moved_tables({"daily": first}) == {"daily": second}
        assert lake.moved_tables({"daily": second}) == {}
        assert lake.rows("daily").num_rows == 2
        assert (lake.is_free("Daily"), lake.is_free("weekly")) == (False, True)
        assert shelf.catalog.locations("no_such_namespace") == {}
        assert shelf.catalog.find([("no_such_namespace", "daily")]) == {}

    def test_a_dropped_table_is_gone_with_its_files(self, shelf: Shelf) -> None:
        """For infold and for others; to drop it again does no harm."""
        lake = shelf.lake()
        shelf.make("daily")
        shelf.make("weekly")

        assert lake.drop("daily")
        assert not lake.drop("daily")

        assert shelf.names() == {"weekly"}
        assert not (shelf.warehouse / shelf.namespace / "daily").exists()
        assert lake.rows("weekly").num_rows == 1

    def test_tables_take_the_names_of_others(self, shelf: Shelf) -> None:
        """As a promote does: production's go aside, those of an environment come in."""
        lake = shelf.lake()
        at = {name: shelf.make(name) for name in ("daily", "weekly", "daily__b", "weekly__b")}
        renamings = [
            Renaming(name, to, at[name])
            for name, to in (
                ("daily", "daily__a"),
                ("daily__b", "daily"),
                ("weekly", "weekly__a"),
                ("weekly__b", "weekly"),
            )
        ]
        assert not lake.was_renamed(renamings)

        assert lake.rename(renamings)

        assert lake.was_renamed(renamings)
        assert {name: shelf.at(name) for name in shelf.names()} == {
            one.to: one.location for one in renamings
        }

    def test_one_that_moved_stops_all(self, shelf: Shelf) -> None:
        """If one table moved or is gone, or another one has its new name, nothing is renamed."""
        before = {name: shelf.make(name) for name in ("daily", "weekly", "taken")}
        first = Renaming("daily", "daily__a", before["daily"])
        for wrong in (
            Renaming("weekly", "weekly__a", "moved"),
            Renaming("gone", "gone__a", "gone"),
            Renaming("weekly", "taken", before["weekly"]),
        ):
            assert not shelf.lake().rename([first, wrong])
            assert {name: shelf.at(name) for name in shelf.names()} == before

    def test_a_table_is_set_back(self, shelf: Shelf) -> None:
        """It has the rows of then, for others too, who write on; not over a later commit."""
        lake = shelf.lake()
        old = shelf.make("daily")
        first = lake.metadata("daily")
        assert first is not None
        assert first.snapshot is not None
        newest = shelf.commit("daily")
        assert lake.can_set_back("daily", first.snapshot)
        assert not shelf.catalog.set_back((shelf.namespace, "daily"), old, first.snapshot)
        assert shelf.at("daily") == newest

        lake.set_back("daily", first.snapshot)

        assert (shelf.rows("daily"), lake.rows("daily").num_rows) == (1, 1)
        shelf.commit("daily")
        assert shelf.rows("daily") == 2

    def test_of_many_that_exchange_the_same_tables_one_wins(self, database: Shelf) -> None:
        """Of exchanges at the same time that expect the same state, exactly one happens."""
        at = {name: database.make(name) for name in ("daily", "daily__b")}
        swap = [
            Renaming("daily", "daily__b", at["daily"]),
            Renaming("daily__b", "daily", at["daily__b"]),
        ]

        with ThreadPoolExecutor(4) as pool:
            wins = list(pool.map(lambda _: database.lake().rename(swap), range(4)))

        assert sorted(wins) == [False, False, False, True]
        assert database.at("daily") == at["daily__b"]


@pytest.mark.parametrize("kind", ["rest", "hive"])
def test_a_death_between_two_names_is_mended(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wherever a process dies among its renamings, all of them are done afterwards, or none."""
    with opened(kind, request, tmp_path) as shelf:
        names = ("daily", "weekly", "daily__b", "weekly__b")
        at = {name: shelf.make(name) for name in names}
        pairs = [
            ("daily", "daily__a"),
            ("daily__b", "daily"),
            ("weekly", "weekly__a"),
            ("weekly__b", "weekly"),
        ]
        back = [(to, name) for name, to in reversed(pairs)]
        for dies in range(8):
            lake, passed = shelf.lake(), iter(range(100))
            order = pairs if dies % 2 == 0 else back
            now = {name: shelf.at(name) for name in shelf.names()}
            swap = [Renaming(one, to, now[one]) for one, to in order if one in now]

            def point(_: str, passed: Iterator[int] = passed, dies: int = dies) -> None:
                if next(passed) == dies:
                    raise Died

            with monkeypatch.context() as patch:
                patch.setattr(write_points, "point", point)
                with pytest.raises(Died):
                    lake.rename(swap)
            done = lake.was_renamed(swap)
            found = {name: shelf.at(name) for name in shelf.names()}

            assert done == (dies > 0)
            wanted = {one.to: one.location for one in swap} if done else now
            assert found == wanted
            if not done:
                assert lake.rename(swap)
        assert sorted(shelf.at(name) for name in shelf.names()) == sorted(at.values())


class TestPublished:
    """In a database all tables are shown at one instant; by REST that is refused."""

    def test_readers_see_all_commits_at_once(self, database: Shelf) -> None:
        """Commits to tables that are held back are for infold alone, until they are published."""
        lake = database.lake(together=True)
        for name in ("daily", "weekly"):
            database.make(name)
        lake.hold_back(["daily", "weekly"])
        for name in ("daily", "weekly"):
            database.commit(lake.stored_name(name))
        assert [database.rows(name) for name in ("daily", "weekly")] == [1, 1]
        assert lake.rows("daily").num_rows == 2

        assert lake.publish(hold_back=True) == ("daily", "weekly")

        assert [database.rows(name) for name in ("daily", "weekly")] == [2, 2]
        assert lake.publish(hold_back=True) == ()
        database.commit("daily")
        with pytest.raises(InfoldError, match="published-elsewhere"):
            lake.publish(hold_back=True)

    def test_no_reader_sees_a_mixture(self, database: Shelf) -> None:
        """A reader that looks up both tables at once sees both of the same publication."""
        lake = database.lake(together=True)
        for name in ("daily", "weekly"):
            database.make(name)
        lake.hold_back(["daily", "weekly"])
        seen: set[tuple[int, int]] = set()
        over = threading.Event()

        def read() -> None:
            readers = database.lake(published=True)
            while not over.is_set():
                found = readers.moved_tables({"daily": "", "weekly": ""})
                steps = [Path(at or "").name.split("-")[0] for at in found.values()]
                seen.add((int(steps[0]), int(steps[1])))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for _ in range(4):
                for name in ("daily", "weekly"):
                    database.commit(lake.stored_name(name))
                lake.publish(hold_back=True)
        finally:
            over.set()
            reader.join()

        assert len(seen) > 1
        assert all(one == other for one, other in seen), seen

    def test_by_rest_it_is_refused(self, rest: Shelf) -> None:
        """Holding back is refused by name; a run that publishes each step goes on."""
        with pytest.raises(InfoldError, match="catalog-not-together"):
            rest.lake(together=True).hold_back(["daily"])
        assert rest.lake().publish(hold_back=False) == ()


class TestRestServer:
    """A server that refuses, is busy or slow, or loses an answer; and what many tables cost."""

    def test_what_it_costs_to_find_many_tables(self, rest: Shelf, rest_server: RestServer) -> None:
        """One request for each table, and one that asks what the server is."""
        assert isinstance(rest.catalog, RestCatalog)
        at = rest.make("t0")
        content = Path(at).read_text(encoding="utf-8")
        names = [f"t{number}" for number in range(MANY)]

        def register(name: str) -> None:
            assert isinstance(rest.catalog, RestCatalog)
            copy = Path(at).with_name(f"{name}.metadata.json")
            copy.write_text(content, encoding="utf-8")
            body = {"name": name, "metadata-location": str(copy)}
            rest.catalog.client.change("POST", f"namespaces/{rest.namespace}/register", body)

        with ThreadPoolExecutor(4) as pool:
            list(pool.map(register, names[1:]))
        keys = [(rest.namespace, name) for name in names]
        declared = Catalog(CatalogType.REST, uri=rest_server.url, token="${env:CATALOG_TOKEN}")
        rest_server.seen.clear()

        assert len(rest_catalog(declared, rest.warehouse, KEY).find(keys)) == MANY

        assert rest_server.seen.total() == MANY + 1

    def test_a_wrong_token_is_named(self, rest: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
        """The key and where the server is are shown, and no secret."""
        monkeypatch.setenv("CATALOG_TOKEN", "another s3cret")
        with pytest.raises(InfoldError, match="catalog-login-refused") as caught:
            rest.lake().location("daily")
        assert dict(caught.value.facts)["key"] == KEY
        assert "s3cret" not in str(caught.value)

    def test_a_credential_is_exchanged_for_a_token(
        self, rest: Shelf, rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Once, and again when the token is not taken any more; a wrong one is refused."""
        at = rest.make("daily")
        declared = Catalog(
            CatalogType.REST, uri=rest_server.url, credential=f"shop:${{env:{SECRET}}}"
        )
        catalog = rest_catalog(declared, rest.warehouse, KEY)
        for _ in range(2):
            assert catalog.find([(rest.namespace, "daily")]) == {(rest.namespace, "daily"): at}
        monkeypatch.setattr(rest_server, "token", "the next one")
        assert catalog.find([(rest.namespace, "daily")]) == {(rest.namespace, "daily"): at}
        monkeypatch.setenv(SECRET, "wrong s3cret")
        other = rest_catalog(declared, rest.warehouse / "other", KEY)
        with pytest.raises(InfoldError, match="catalog-login-refused") as caught:
            other.find([(rest.namespace, "daily")])
        assert "s3cret" not in str(caught.value)

    def test_what_is_not_permitted_is_named(self, rest: Shelf, rest_server: RestServer) -> None:
        """Each right alone: what needs it fails with the server's words, and changes nothing."""
        lake, at = rest.lake(), rest.make("daily")
        asks: list[tuple[str, str, Callable[[], object]]] = [
            ("GET", "/tables/daily", lambda: lake.location("daily")),
            ("GET", "/tables$", lambda: lake.is_free("daily")),
            ("DELETE", "/daily", lambda: lake.drop("daily")),
            ("POST", "rename", lambda: lake.rename([Renaming("daily", "other", at)])),
        ]
        for method, path, ask in asks:
            with (
                rest_server.rule(method, path, status=403),
                pytest.raises(InfoldError, match="catalog-not-permitted") as caught,
            ):
                ask()
            assert "403 Forbidden a rule says so" in str(caught.value)
            assert rest.at("daily") == at

    def test_one_table_may_be_hidden(self, rest: Shelf, rest_server: RestServer) -> None:
        """The others are looked at all the same; where none may be looked at, it is an error."""
        at = {name: rest.make(name) for name in ("daily", "weekly")}
        with rest_server.rule("GET", "/tables/daily", status=403):
            found = rest.lake().moved_tables({"daily": at["daily"], "weekly": "", "none": ""})
            with pytest.raises(InfoldError, match="catalog-not-permitted"):
                rest.lake().moved_tables({"daily": at["daily"]})
        assert found == {"daily": FORBIDDEN, "weekly": at["weekly"], "none": None}

    def test_a_busy_server_is_asked_again(self, rest: Shelf, rest_server: RestServer) -> None:
        """Where that changes nothing; one that stays busy is named."""
        at = rest.make("daily")
        with rest_server.rule("GET", "/tables/daily", status=503, times=2):
            assert rest.lake().location("daily") == at
        with (
            rest_server.rule("GET", "/tables/daily", status=503),
            pytest.raises(InfoldError, match="catalog-failed"),
        ):
            rest.lake().location("daily")

    def test_a_silent_server_is_not_waited_for(
        self, rest: Shelf, rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is named as out of reach, as one that does not run."""
        rest.make("daily")
        monkeypatch.setattr(rest_client, "ANSWER_SECONDS", 0.3)
        declared = Catalog(CatalogType.REST, uri=rest_server.url, token="${env:CATALOG_TOKEN}")
        with (
            rest_server.rule("GET", "/tables/daily", seconds=1, times=1),
            pytest.raises(InfoldError, match="catalog-unreachable"),
        ):
            rest_catalog(declared, rest.warehouse / "slow", KEY).find([(rest.namespace, "daily")])
        nobody = Catalog(CatalogType.REST, uri="http://127.0.0.1:1")
        with pytest.raises(InfoldError, match="catalog-unreachable"):
            rest_catalog(nobody, rest.warehouse, KEY).names("shop")

    def test_a_lost_answer_is_found_out(self, rest: Shelf, rest_server: RestServer) -> None:
        """It is said that nobody knows; then the names tell, and what is left is done."""
        at = {name: rest.make(name) for name in ("daily", "daily__b")}
        swap = [
            Renaming("daily", "daily__a", at["daily"]),
            Renaming("daily__b", "daily", at["daily__b"]),
        ]
        with (
            rest_server.rule("POST", "rename", lost=True),
            pytest.raises(InfoldError, match="catalog-answer-lost"),
        ):
            rest.lake().rename(swap)

        assert rest.lake().was_renamed(swap)
        assert (rest.at("daily"), rest.at("daily__a")) == (at["daily__b"], at["daily"])


class TestPostgresqlServer:
    """A server that does not let somebody in, or not do something, or that was started again."""

    def test_each_refusal_is_named(
        self, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        """Password, database, host, and a right that is not there; nothing secret is shown."""
        name = new_database(postgresql)
        uri = jdbc_uri(postgresql, name)
        monkeypatch.setenv(JDBC_SECRET, "wrong s3cret")
        cases = {
            "catalog-login-refused": uri,
            "catalog-unreachable": f"postgresql://x:${{env:{JDBC_SECRET}}}@127.0.0.1:1/x",
            "catalog-url": f"postgresql://x:${{env:{JDBC_SECRET}}}@127.0.0.1:port/x",
        }
        for slug, where in cases.items():
            with pytest.raises(InfoldError, match=slug) as caught:
                jdbc_catalog(where, tmp_path, KEY).names("shop")
            assert dict(caught.value.facts)["key"] == KEY
            assert "s3cret" not in str(caught.value)
        url = f"postgresql://infold:${{env:{JDBC_SECRET}}}@127.0.0.1:{postgresql.port}"
        monkeypatch.setenv(JDBC_SECRET, postgresql.password)
        with pytest.raises(InfoldError, match="catalog-database-missing"):
            jdbc_catalog(f"{url}/nowhere", tmp_path, KEY).names("shop")

    def test_a_role_that_may_only_read(
        self, database: Shelf, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It finds tables, and what would change something is refused by name."""
        at = database.make("daily")
        name = database.declared["uri"].rpartition("/")[2]
        reader = f"{name}_reader"
        postgresql.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'x'")
        postgresql.run(f"GRANT SELECT ON iceberg_tables TO {reader}", database=name)
        monkeypatch.setenv("READER", "x")
        uri = f"postgresql://{reader}:${{env:READER}}@127.0.0.1:{postgresql.port}/{name}"
        reading = jdbc_catalog(uri, database.warehouse, KEY)
        assert reading.locations("shop") == {"daily": at}
        with pytest.raises(InfoldError, match="catalog-not-permitted"):
            reading.rename("shop", [Renaming("daily", "other", at)])

    def test_a_connection_that_was_lost_is_made_again(
        self, database: Shelf, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between two looks nobody notices; in the middle of a change it is named."""
        at, lake = database.make("daily"), database.lake()
        assert lake.location("daily") == at
        postgresql.disconnect_all()
        assert lake.location("daily") == at
        with monkeypatch.context() as patch:
            patch.setattr(write_points, "point", lambda _: postgresql.disconnect_all())
            with pytest.raises(InfoldError, match="catalog-answer-lost"):
                lake.rename([Renaming("daily", "other", at)])
        assert lake.location("daily") == at

    def test_what_was_not_to_be_committed_is_not_in_doubt(
        self, database: Shelf, postgresql: Postgresql
    ) -> None:
        """A connection lost in a look, or before a commit, is a server that is out of reach."""
        at, lake = database.make("daily"), database.lake()
        assert isinstance(database.catalog, SqlCatalog)
        there = database.catalog.database

        def loses(statements: Statements | None) -> None:
            postgresql.disconnect_all()
            assert statements is not None
            statements.rows("SELECT 1")

        for opens in (there.read, partial(there.write, "shop")):
            with pytest.raises(InfoldError, match="catalog-unreachable"), opens() as found:
                loses(found)
        assert lake.location("daily") == at

    def test_a_frozen_process_keeps_nobody_waiting(
        self, database: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that stops in a change loses it."""
        monkeypatch.setattr(jdbc, "FROZEN_SECONDS", 1)
        at, lake = database.make("daily"), database.lake()
        with monkeypatch.context() as patch:
            patch.setattr(write_points, "point", lambda _: time.sleep(1.5))
            with pytest.raises(InfoldError, match="catalog-answer-lost"):
                lake.rename([Renaming("daily", "other", at)])
        assert lake.location("daily") == at

    def test_a_catalog_that_is_not_seen(self, database: Shelf, postgresql: Postgresql) -> None:
        """
        One in a schema that a role may not use, or does not look in, is not an empty one; one of
        somebody else's is none.
        """
        at, catalog = database.make("daily"), database.catalog
        assert catalog.locations("shop") == {"daily": at}
        name = database.declared["uri"].rpartition("/")[2]

        def run(*texts: str) -> None:
            postgresql.run(*texts, database=name)

        def refused(why: str) -> None:
            with pytest.raises(InfoldError, match="catalog-not-permitted") as caught:
                catalog.locations("shop")
            assert why in str(caught.value)

        run("CREATE SCHEMA other", "ALTER TABLE iceberg_tables SET SCHEMA other")
        refused("permission denied for schema other")
        run(f"GRANT USAGE ON SCHEMA other TO {name}")
        refused("iceberg_tables is in schema other, which is not in the search_path")
        run("ALTER TABLE other.iceberg_tables OWNER TO infold")
        assert catalog.locations("shop") == {}
        run(f"REVOKE USAGE ON SCHEMA other FROM {name}")
        run(f"ALTER ROLE {name} SET search_path TO other, public")
        postgresql.disconnect_all()
        refused("permission denied for schema other")

    def test_a_database_without_a_catalog(
        self, postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Nothing is found there, and nothing is made."""
        name = new_database(postgresql)
        monkeypatch.setenv(JDBC_SECRET, PASSWORD)
        catalog = jdbc_catalog(jdbc_uri(postgresql, name), tmp_path, KEY)
        assert (catalog.locations("shop"), catalog.rename("shop", [])) == ({}, True)
        tables = "SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"
        assert postgresql.run(tables, database=name) == [(0,)]
