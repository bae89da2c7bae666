"""What only catalogs on a server do: what all do is in ``test_catalog_contract``."""

from __future__ import annotations

import socket
import sys
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
from tests.servers.hive_metastore import HiveMetastore
from tests.servers.postgresql import Postgresql
from tests.servers.rest_catalog import RestServer
from tests.servers.test_catalog_contract import others, queries, space

from infold.core import write_points
from infold.core.ports import FORBIDDEN
from infold.core.storages import Catalog, CatalogType
from infold.core.swap import Renaming
from infold.lake import hive_client
from infold.lake.iceberg import hive_catalog as hive
from infold.lake.iceberg import rest_catalog as rest_
from infold.lake.iceberg.hive_catalog import HiveCatalog, hive_catalog
from infold.lake.iceberg.jdbc_catalog import jdbc_catalog
from infold.lake.iceberg.rest_catalog import RestCatalog, rest_catalog
from infold.lake.iceberg.sql_catalog import SqlCatalog, Statements
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

MANY = 5


class Died(BaseException):
    """The process dies."""


def test_a_death_between_two_names_is_mended(rest: Shelf, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    Wherever a process dies among its renamings, all of them are done afterwards, or none: so it is
    with each type that has no transaction.
    """
    at = {name: rest.make(name) for name in ("daily", "weekly", "daily__b", "weekly__b")}
    pairs = [
        ("daily", "daily__a"),
        ("daily__b", "daily"),
        ("weekly", "weekly__a"),
        ("weekly__b", "weekly"),
    ]
    back = [(to, name) for name, to in reversed(pairs)]
    for dies in range(8):
        lake, passed = rest.lake(), iter(range(100))
        order = pairs if dies % 2 == 0 else back
        now = {name: rest.at(name) for name in rest.names()}
        swap = [Renaming(one, to, now[one]) for one, to in order if one in now]

        def point(_: str, passed: Iterator[int] = passed, dies: int = dies) -> None:
            if next(passed) == dies:
                raise Died

        with monkeypatch.context() as patch:
            patch.setattr(write_points, "point", point)
            with pytest.raises(Died):
                lake.rename(swap)
        done = lake.was_renamed(swap)
        found = {name: rest.at(name) for name in rest.names()}

        assert done == (dies > 0)
        wanted = {one.to: one.location for one in swap} if done else now
        assert found == wanted
        if not done:
            assert lake.rename(swap)
    assert sorted(rest.at(name) for name in rest.names()) == sorted(at.values())


@pytest.mark.parametrize("kind", ["rest", "hive"])
def test_a_lost_answer_is_found_out(
    kind: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """It is said that nobody knows; then the names tell, and what is left is done."""
    with opened(kind, request, tmp_path) as shelf:
        at = {name: shelf.make(name) for name in ("daily", "daily__b")}
        swap = [
            Renaming("daily", "daily__a", at["daily"]),
            Renaming("daily__b", "daily", at["daily__b"]),
        ]
        losing = (
            request.getfixturevalue("rest_server").rule("POST", "rename", lost=True)
            if kind == "rest"
            else request.getfixturevalue("hive_metastore").losing("alter_table")
        )
        with losing, pytest.raises(InfoldError, match="catalog-answer-lost"):
            shelf.lake().rename(swap)

        assert shelf.lake().was_renamed(swap)
        assert (shelf.at("daily"), shelf.at("daily__a")) == (at["daily__b"], at["daily"])


class TestRestServer:
    """A server that refuses, is busy or slow, or loses an answer; and what many tables cost."""

    def test_publishing_is_refused(self, rest: Shelf) -> None:
        """Holding back is refused by name; a run that publishes each step goes on."""
        with pytest.raises(InfoldError, match="catalog-not-together"):
            rest.lake(together=True).hold_back(["daily"])
        assert rest.lake().publish(hold_back=False) == ()

    def test_what_it_costs_to_find_many_tables(self, rest: Shelf, rest_server: RestServer) -> None:
        """One request for each table, and one that asks what the server is."""
        names = [f"t{number}" for number in range(MANY)]
        for name in names:
            rest.make(name)
        declared = Catalog(CatalogType.REST, uri=rest_server.url, token="${env:CATALOG_TOKEN}")
        catalog = rest_catalog(declared, rest.warehouse, KEY)
        rest_server.seen.clear()

        assert len(catalog.find([(rest.namespace, name) for name in names])) == MANY

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

    @pytest.mark.usefixtures("short_pauses")
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
        monkeypatch.setattr(rest_, "ANSWER_SECONDS", 0.3)
        declared = Catalog(CatalogType.REST, uri=rest_server.url, token="${env:CATALOG_TOKEN}")
        with (
            rest_server.rule("GET", "/tables/daily", seconds=1, times=1),
            pytest.raises(InfoldError, match="catalog-unreachable"),
        ):
            rest_catalog(declared, rest.warehouse / "slow", KEY).find([(rest.namespace, "daily")])
        nobody = Catalog(CatalogType.REST, uri="http://127.0.0.1:1")
        with pytest.raises(InfoldError, match="catalog-unreachable"):
            rest_catalog(nobody, rest.warehouse, KEY).names("shop")


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
        self, jdbc: Shelf, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It finds tables, and what would change something is refused by name."""
        at = jdbc.make("daily")
        name = jdbc.declared["uri"].rpartition("/")[2]
        reader = f"{name}_reader"
        postgresql.run(f"CREATE ROLE {reader} LOGIN PASSWORD 'x'")
        postgresql.run(f"GRANT SELECT ON iceberg_tables TO {reader}", database=name)
        monkeypatch.setenv("READER", "x")
        uri = f"postgresql://{reader}:${{env:READER}}@127.0.0.1:{postgresql.port}/{name}"
        reading = jdbc_catalog(uri, jdbc.warehouse, KEY)
        assert reading.locations("shop") == {"daily": at}
        with pytest.raises(InfoldError, match="catalog-not-permitted"):
            reading.rename("shop", [Renaming("daily", "other", at)])

    def test_a_connection_that_was_lost_is_made_again(
        self, jdbc: Shelf, postgresql: Postgresql, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Between two looks nobody notices; in the middle of a change it is named."""
        at, lake = jdbc.make("daily"), jdbc.lake()
        assert lake.location("daily") == at
        postgresql.disconnect_all()
        assert lake.location("daily") == at
        with monkeypatch.context() as patch:
            patch.setattr(write_points, "point", lambda _: postgresql.disconnect_all())
            with pytest.raises(InfoldError, match="catalog-answer-lost"):
                lake.rename([Renaming("daily", "other", at)])
        assert lake.location("daily") == at

    def test_what_was_not_to_be_committed_is_not_in_doubt(
        self, jdbc: Shelf, postgresql: Postgresql
    ) -> None:
        """A connection lost in a look, or before a commit, is a server that is out of reach."""
        at, lake = jdbc.make("daily"), jdbc.lake()
        assert isinstance(jdbc.catalog, SqlCatalog)
        there = jdbc.catalog.database

        def loses(statements: Statements | None) -> None:
            postgresql.disconnect_all()
            assert statements is not None
            statements.rows("SELECT 1")

        for opens in (there.read, partial(there.write, "shop")):
            with pytest.raises(InfoldError, match="catalog-unreachable"), opens() as found:
                loses(found)
        assert lake.location("daily") == at

    def test_a_frozen_process_keeps_nobody_waiting(
        self, jdbc: Shelf, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """One that stops in a change loses it."""
        monkeypatch.setattr("infold.lake.iceberg.jdbc_catalog.FROZEN_SECONDS", 1)
        at, lake = jdbc.make("daily"), jdbc.lake()
        with monkeypatch.context() as patch:
            patch.setattr(write_points, "point", lambda _: time.sleep(1.5))
            with pytest.raises(InfoldError, match="catalog-answer-lost"):
                lake.rename([Renaming("daily", "other", at)])
        assert lake.location("daily") == at

    def test_a_catalog_that_is_not_seen(self, jdbc: Shelf, postgresql: Postgresql) -> None:
        """
        One in a schema that a role may not use, or does not look in, is not an empty one; one of
        somebody else's is none.
        """
        at, catalog = jdbc.make("daily"), jdbc.catalog
        assert catalog.locations("shop") == {"daily": at}
        name = jdbc.declared["uri"].rpartition("/")[2]

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


@pytest.fixture
def in_hive(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A namespace of a metastore."""
    with opened("hive", request, tmp_path) as found:
        yield found


def at(uri: str) -> HiveCatalog:
    """The catalog of a target with such a URI."""
    return hive_catalog(Catalog(CatalogType.HIVE, uri=uri), Path("/"), KEY)


def test_what_it_costs_to_find_many_in_hive(in_hive: Shelf, hive_metastore: HiveMetastore) -> None:
    """One request asks for all of them."""
    names = [f"t{number}" for number in range(MANY)]
    for name in names:
        in_hive.make(name)
    hive_metastore.seen.clear()

    assert len(in_hive.catalog.find([(in_hive.namespace, name) for name in names])) == MANY

    assert hive_metastore.seen.count(b"get_table") == 1


def test_capital_letters_are_those_of_the_project(in_hive: Shelf) -> None:
    """The metastore has small ones only: a table is found by the name that infold gave it."""
    where = in_hive.make("daily")
    key = (in_hive.namespace.upper(), "Daily")

    assert in_hive.catalog.find([key]) == {key: where}
    assert in_hive.catalog.rename(key[0], [Renaming("Daily", "Weekly", where)])
    assert in_hive.names() == {"weekly"}
    in_hive.catalog.drop(key[0], ["Weekly"])
    assert in_hive.names() == set()


def test_a_lost_answer_to_a_drop_is_named(in_hive: Shelf, hive_metastore: HiveMetastore) -> None:
    """The table is gone, which is looked up."""
    in_hive.make("daily")
    with hive_metastore.losing("drop_table"), pytest.raises(InfoldError, match="answer-lost"):
        in_hive.lake().drop("daily")
    assert in_hive.names() == set()


def test_a_commit_meanwhile_is_not_written_over(in_hive: Shelf) -> None:
    """A rename holds the lock that commits take: none of these is lost, whichever comes first."""
    where = in_hive.make("daily")
    with ThreadPoolExecutor(2) as pool:
        commit = pool.submit(in_hive.commit, "daily")
        renamed = in_hive.catalog.rename(in_hive.namespace, [Renaming("daily", "daily__a", where)])
        failed = commit.exception()

    [name] = in_hive.names()
    assert name == ("daily__a" if renamed else "daily")
    assert in_hive.rows(name) == (1 if failed else 2)


def test_a_lock_of_somebody_else_is_waited_for(
    in_hive: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for ever: then nothing is changed, and the error says so."""
    assert isinstance(in_hive.catalog, HiveCatalog)
    where = in_hive.make("daily")
    monkeypatch.setattr(hive, "LOCK_SECONDS", 0.3)
    swap = [Renaming("daily", "daily__a", where)]

    def meanwhile(hms: object) -> bool:
        assert isinstance(in_hive.catalog, HiveCatalog)
        unlock = in_hive.catalog._lock(hms, (in_hive.namespace, "daily"))
        try:
            return in_hive.catalog.rename(in_hive.namespace, swap)
        finally:
            unlock()

    with pytest.raises(InfoldError, match="somebody else holds the lock"):
        in_hive.catalog.client.look(meanwhile)
    assert in_hive.catalog.rename(in_hive.namespace, swap)


def test_a_metastore_that_is_not_there_is_named(
    in_hive: Shelf, hive_metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several the next one is asked; without the client its extra is named."""
    nobody = "thrift://127.0.0.1:1"
    with pytest.raises(InfoldError, match="catalog-unreachable") as caught:
        at(nobody).names("shop")
    assert dict(caught.value.facts)["catalog"] == nobody
    in_hive.make("daily")
    assert at(f"{nobody},{hive_metastore.url}").names(in_hive.namespace) == ["daily"]
    monkeypatch.setitem(sys.modules, "thrift.Thrift", None)
    with pytest.raises(InfoldError, match=r"infold\[hive\]"):
        at(nobody).names("shop")


def test_a_silent_metastore_is_not_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is out of reach; whether a change happened that it was asked for, nobody knows."""
    monkeypatch.setattr(hive_client, "ANSWER_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        catalog = at(f"thrift://127.0.0.1:{silent.getsockname()[1]}")
        with pytest.raises(InfoldError, match="catalog-unreachable"):
            catalog.names("shop")
        with pytest.raises(InfoldError, match="catalog-answer-lost"):
            catalog.drop("shop", ["daily"])


@pytest.mark.parametrize("uri", ["thrift://h", "thrift://h:x", "http://h:1", "thrift://u@h:1", ""])
def test_a_wrong_uri_is_refused(uri: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It comes by a secret, so it is not shown."""
    monkeypatch.setenv("METASTORE", uri or " ")
    with pytest.raises(InfoldError, match="catalog-url") as caught:
        at("${env:METASTORE}").names("shop")
    assert uri == "" or uri not in str(caught.value)


class TestViewsByRest:
    """What only a server of the REST protocol does with views for readers."""

    def test_a_view_that_an_engine_replaced_is_theirs(self, rest: Shelf) -> None:
        """Its properties are still infold's, its query is not: it stays, and is told."""
        rest.make("daily")
        lake, client = rest.lake(), rest.catalog
        assert isinstance(client, RestCatalog)
        lake.refresh_views(["daily"])
        path = f"namespaces/{space(rest)}/views/daily"
        there = (client.client.get(path) or {})["metadata"]
        version = {**there["versions"][0], "version-id": 9}
        version["representations"] = [
            {**one, "sql": "SELECT 1 AS n"} for one in version["representations"]
        ]
        change = [
            {"action": "add-view-version", "view-version": version},
            {"action": "set-current-view-version", "view-version-id": -1},
        ]
        client.client.change("POST", path, {"requirements": [], "updates": change})

        assert lake.refresh_views(["daily"]) == ["daily"]
        assert lake.refresh_views([]) == []
        assert others(rest) == {"daily"}

    def test_a_server_without_views_is_named(
        self, rest: Shelf, rest_server: RestServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """By what it says of itself; where none are wanted it is not asked for any."""
        rest.make("daily")
        new = rest_catalog(rest.catalog.client._declared, rest.warehouse / "other", "key")  # type: ignore[attr-defined]
        monkeypatch.setitem(
            new.client.__dict__, "_answered", {"endpoints": ["GET /v1/{prefix}/namespaces"]}
        )
        lake = rest.lake()
        lake.catalog = new

        with pytest.raises(InfoldError, match="catalog-without-views") as caught:
            lake.check_views(["daily"])
        rest_server.seen.clear()

        assert "GET /v1/{prefix}/namespaces/{namespace}/views" in str(caught.value)
        assert lake.refresh_views([]) == []
        assert not rest_server.seen
        rest.lake().check_views(["daily"])

    def test_one_who_may_not_look(self, rest: Shelf, rest_server: RestServer) -> None:
        """Who wants no views needs no right there; who does is told which one is missing."""
        rest.make("daily")
        for status in (403, 501):
            with rest_server.rule("GET", "/views", status=status):
                assert rest.lake().refresh_views([]) == ()
        for method in ("GET", "POST"):
            with (
                rest_server.rule(method, "/views", status=403),
                pytest.raises(InfoldError, match="catalog-not-permitted"),
            ):
                rest.lake().refresh_views(["daily"])
        assert rest.lake().refresh_views(["daily"]) == []

    def test_a_death_in_the_middle(self, rest: Shelf, rest_server: RestServer) -> None:
        """Some views are there then, and the next look makes the others."""
        for name in ("daily", "weekly"):
            rest.make(name)
        with (
            rest_server.rule("POST", "/views$", lost=True, times=1),
            pytest.raises(InfoldError, match="catalog-answer-lost"),
        ):
            rest.lake().refresh_views(["daily", "weekly"])
        assert set(queries(rest)) == {"daily"}

        assert rest.lake().refresh_views(["daily", "weekly"], only_new=True) == []
        assert set(queries(rest)) == {"daily", "weekly"}
