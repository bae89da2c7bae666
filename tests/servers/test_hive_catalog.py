"""What only a catalog in a Hive metastore does; what all catalogs do is in ``test_catalogs``."""

from __future__ import annotations

import socket
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.servers.catalogs import KEY, Shelf, opened
from tests.servers.hive_metastore import HiveMetastore

from infold.core.catalogs import Catalog, CatalogType
from infold.core.swap import Renaming
from infold.lake import hive_client
from infold.lake.iceberg import hive_catalog as hive
from infold.lake.iceberg.hive_catalog import HiveCatalog, hive_catalog
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


@pytest.fixture
def shelf(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Shelf]:
    """A namespace of a metastore."""
    with opened("hive", request, tmp_path) as found:
        yield found


def at(uri: str) -> HiveCatalog:
    """The catalog of a target with such a URI."""
    return hive_catalog(Catalog(CatalogType.HIVE, uri=uri), Path("/"), KEY)


def test_what_it_costs_to_find_many_tables(shelf: Shelf, hive_metastore: HiveMetastore) -> None:
    """One request asks for all of them."""
    names = [f"t{number}" for number in range(5)]
    for name in names:
        shelf.make(name)
    hive_metastore.seen.clear()

    assert len(shelf.catalog.find([(shelf.namespace, name) for name in names])) == len(names)

    assert hive_metastore.seen.count(b"get_table") == 1


def test_capital_letters_are_those_of_the_project(shelf: Shelf) -> None:
    """The metastore has small ones only: a table is found by the name that infold gave it."""
    where = shelf.make("daily")
    key = (shelf.namespace.upper(), "Daily")

    assert shelf.catalog.find([key]) == {key: where}
    assert shelf.catalog.rename(key[0], [Renaming("Daily", "Weekly", where)])
    assert shelf.names() == {"weekly"}
    shelf.catalog.drop(key[0], ["Weekly"])
    assert shelf.names() == set()


@pytest.mark.parametrize("request_", ["alter_table", "drop_table"])
def test_a_lost_answer_is_found_out(
    shelf: Shelf, hive_metastore: HiveMetastore, request_: str
) -> None:
    """It is said that nobody knows; then the names tell, and what is left is done."""
    where = {name: shelf.make(name) for name in ("daily", "daily__b")}
    swap = [
        Renaming("daily", "daily__a", where["daily"]),
        Renaming("daily__b", "daily", where["daily__b"]),
    ]
    lake = shelf.lake()
    with (
        hive_metastore.losing(request_),
        pytest.raises(InfoldError, match="catalog-answer-lost"),
    ):
        lake.rename(swap) if request_ == "alter_table" else lake.drop("daily")

    if request_ == "alter_table":
        assert lake.was_renamed(swap)
        assert shelf.names() == {"daily", "daily__a"}
    else:
        assert shelf.names() == {"daily__b"}


def test_a_commit_meanwhile_is_not_written_over(shelf: Shelf) -> None:
    """A rename holds the lock that commits take: none of these is lost, whichever comes first."""
    where = shelf.make("daily")
    with ThreadPoolExecutor(2) as pool:
        commit = pool.submit(shelf.commit, "daily")
        renamed = shelf.catalog.rename(shelf.namespace, [Renaming("daily", "daily__a", where)])
        failed = commit.exception()

    [name] = shelf.names()
    assert name == ("daily__a" if renamed else "daily")
    assert shelf.rows(name) == (1 if failed else 2)


def test_a_lock_of_somebody_else_is_waited_for(
    shelf: Shelf, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for ever: then nothing is changed, and the error says so."""
    assert isinstance(shelf.catalog, HiveCatalog)
    where = shelf.make("daily")
    monkeypatch.setattr(hive, "LOCK_SECONDS", 0.3)
    swap = [Renaming("daily", "daily__a", where)]

    def meanwhile(hms: object) -> bool:
        assert isinstance(shelf.catalog, HiveCatalog)
        unlock = shelf.catalog._lock(hms, (shelf.namespace, "daily"))
        try:
            return shelf.catalog.rename(shelf.namespace, swap)
        finally:
            unlock()

    with pytest.raises(InfoldError, match="somebody else holds the lock"):
        shelf.catalog.client.look(meanwhile)
    assert shelf.catalog.rename(shelf.namespace, swap)


def test_a_metastore_that_is_not_there_is_named(
    shelf: Shelf, hive_metastore: HiveMetastore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of several the next one is asked; without the client its extra is named."""
    nobody = "thrift://127.0.0.1:1"
    with pytest.raises(InfoldError, match="catalog-unreachable") as caught:
        at(nobody).names("shop")
    assert dict(caught.value.facts)["catalog"] == nobody
    shelf.make("daily")
    assert at(f"{nobody},{hive_metastore.url}").names(shelf.namespace) == ["daily"]
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
