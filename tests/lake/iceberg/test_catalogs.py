"""Catalogs by REST and in Hive, without a server: what is asked, and what answers mean."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import InvalidOperationException, LockState
from tests.lake.answering import answering

from infold.core.storages import Catalog, CatalogType
from infold.core.swap import Renaming
from infold.lake.hive_client import HiveClient
from infold.lake.iceberg import hive_catalog as hive
from infold.lake.iceberg.hive_catalog import LOCATION, HiveCatalog, hive_catalog
from infold.lake.iceberg.rest_catalog import RestCatalog, RestClient
from infold.messages.errors import InfoldError

NO_TABLE = {"error": {"message": "no", "type": "NoSuchTableException", "code": 404}}


@dataclass
class Shop:
    """A server with the tables of one namespace: where the metadata of each is."""

    url: str = ""
    tables: dict[str, str] = field(default_factory=dict)
    forced: tuple[int, bytes] | None = None
    """The answer to what is asked about tables, whatever it is."""
    rejected: frozenset[str] = frozenset()
    """Tables that are not renamed."""

    def catalog(self, folder: Path, **how: str) -> RestCatalog:
        """The catalog as a target declares it."""
        declared = Catalog(CatalogType.REST, **{"uri": self.url, **how})
        return RestCatalog(RestClient(declared, folder, "catalog of target dev"))

    def answer(self, method: str, path: str, content: bytes) -> tuple[int, bytes]:
        """Status and content."""
        if path.startswith("/v1/config"):
            return 200, b"{}"
        if path.startswith("/token"):
            return (200, b'{"access_token": "t"}') if path == "/token?tenant=7" else (400, b"{}")
        if self.forced is not None:
            return self.forced
        if method == "POST":
            body = json.loads(content)
            name, to = body["source"]["name"], body["destination"]["name"]
            if name in self.rejected or to in self.tables:
                return 409, json.dumps({"error": {"message": "it is there"}}).encode()
            self.tables[to] = self.tables.pop(name)
            return 204, b""
        at = self.tables.get(path.partition("?")[0].rpartition("/")[2])
        found = NO_TABLE if at is None else {"metadata-location": at}
        return 404 if at is None else 200, json.dumps(found).encode()


@pytest.fixture
def shop() -> Iterator[Shop]:
    """A running server."""
    found = Shop()
    with answering(found.answer) as found.url:
        yield found


def test_queries_of_urls(tmp_path: Path, shop: Shop) -> None:
    """That of who gives tokens is asked with it; one that paths would be put behind is refused."""
    shop.tables = {"daily": "/w/daily/metadata/1.json"}
    tokens = {"credential": "a:b", "oauth2_server_uri": f"{shop.url}/token?tenant=7"}
    key = ("shop", "daily")

    assert shop.catalog(tmp_path, **tokens).find([key]) == {key: shop.tables["daily"]}
    with pytest.raises(InfoldError, match="catalog-url") as caught:
        shop.catalog(tmp_path, uri=f"{shop.url}/iceberg?tenant=7").find([key])
    assert "query" in dict(caught.value.facts)["why"]


class TestSecrets:
    """No secret is in an error, whatever it consists of."""

    @pytest.mark.parametrize(
        "secret",
        [
            "https://bob:geheim@host/x",
            "https://geheim@host/x",
            "http://[::1/geheim",
            "http://host:geheim/x",
            "http://host:99999/geheim",
            "ftp://host/geheim",
            "http://host/geh eim",
            "http://host/ä/geheim",
            "http://host/x#geheim",
        ],
    )
    def test_a_url_that_cannot_be_used(
        self, secret: str, tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is refused by its key alone: that of the catalog, and that of who gives tokens."""
        monkeypatch.setenv("U", secret)
        for how in ({"uri": "${env:U}"}, {"credential": "a:b", "oauth2_server_uri": "${env:U}"}):
            with pytest.raises(InfoldError, match="catalog-url") as caught:
                shop.catalog(tmp_path, **how).find([("shop", "daily")])
            assert "geheim" not in f"{caught.value}{caught.value.facts}"
            assert caught.value.__cause__ is None

    @pytest.mark.parametrize("secret", ["geheim\nx", "geheim ™", "gehe\x00im"])
    @pytest.mark.parametrize("name", ["token", "credential"])
    def test_one_that_cannot_be_sent(
        self, name: str, secret: str, tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is refused by the key it has."""
        file = tmp_path / "secret"
        file.write_text(secret, encoding="utf-8")
        catalog = shop.catalog(tmp_path, **{name: "${file:secret}"})
        with pytest.raises(InfoldError, match="catalog-secret") as caught:
            catalog.find([("shop", "daily")])
        assert dict(caught.value.facts)["secret"] == name
        assert "geh" not in f"{caught.value}{caught.value.facts}"

    @pytest.mark.parametrize("status", [400, 401, 403, 409, 500])
    def test_a_server_that_repeats_one(
        self, status: int, tmp_path: Path, shop: Shop, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The reference is shown, however the server refuses, and wherever its words are cut."""
        monkeypatch.setenv("C", "shop:geheim+1")
        whole = ("shop:geheim+1", "shop%3Ageheim%2B1", "x" * 290 + "shop:geheim+1")
        # The answer to a request for a token, and to a change.
        for name, words in (("credential", (*whole, "geheim+1", "geheim%2B1")), ("token", whole)):
            for says in words:
                error = {"message": says, "code": status}
                shop.forced = (status, json.dumps({"error": error}).encode())
                how = {name: "${env:C}"}
                with pytest.raises(InfoldError, match="catalog-") as caught:
                    shop.catalog(tmp_path, **how).drop("shop", ["daily"])
                assert "gehei" not in f"{caught.value}{caught.value.facts}"


@pytest.mark.parametrize(
    ("answer", "there"),
    [
        (json.dumps(NO_TABLE).encode(), True),
        (b'{"error": {"type": "NoSuchNamespaceException", "message": "no"}}', True),
        (b'{"error": {"code": 404}}', True),
        *((other, False) for other in (b"<html>gone</html>", b"", b"[]", b'{"error": "no"}')),
    ],
)
def test_what_is_not_there(answer: bytes, there: bool, tmp_path: Path, shop: Shop) -> None:
    """
    A table is not there if the catalog says so, by the type of the error or its code. If something
    else answers, as a proxy does whose server is down, the catalog is out of reach.
    """
    catalog = shop.catalog(tmp_path)
    shop.forced = (404, answer)
    for ask, found in (
        (lambda: catalog.find([("shop", "daily")]), {}),
        (lambda: catalog.names("shop"), []),
        (lambda: catalog.drop("shop", ["daily"]), None),
    ):
        if there:
            assert ask() == found
        else:
            with pytest.raises(InfoldError, match="catalog-unreachable"):
                ask()


class TestRename:
    """Renamings that are begun are finished, whatever was committed in between."""

    SWAP = (
        Renaming("daily", "daily__a", "/w/daily/metadata/1.json"),
        Renaming("daily__b", "daily", "/w/b/metadata/1.json"),
    )

    @pytest.mark.parametrize(
        ("now", "then"),
        [
            ({"daily__a": "daily/2", "daily__b": "b/1"}, {"daily__a": "daily/2", "daily": "b/1"}),
            ({"daily__a": "daily/1", "daily__b": "b/2"}, {"daily__a": "daily/1", "daily": "b/2"}),
            ({"daily__a": "daily/2", "daily": "b/2"}, {}),
            ({"daily__a": "daily/2", "daily": "b/1", "daily__b": "new/1"}, {}),
            ({"daily": "daily/1", "daily__b": "b/1"}, None),
            ({"daily": "daily/2", "daily__b": "b/1"}, None),
        ],
        ids=[
            *("kept compacted", "committed before", "both after", "name taken again"),
            *("not begun", "not begun and moved"),
        ],
    )
    def test_what_is_left_is_done(
        self, now: dict[str, str], then: dict[str, str] | None, tmp_path: Path, shop: Shop
    ) -> None:
        """
        A table is known by its folder: its commits do not make it another one. What was not begun
        is left alone, also where a table has moved since.
        """
        shop.tables = located(now)
        assert shop.catalog(tmp_path).finish_rename("shop", self.SWAP) is (then is not None)
        assert shop.tables == located(then or now)

    def test_a_refusal_is_no_traceback(self, tmp_path: Path, shop: Shop) -> None:
        """Of the first one nothing was renamed; of a later one it is named, and finished later."""
        now = {"daily": "daily/1", "daily__b": "b/1"}
        shop.tables, catalog = located(now), shop.catalog(tmp_path)
        shop.rejected = frozenset({"daily"})
        assert not catalog.rename("shop", self.SWAP)
        assert shop.tables == located(now)
        shop.rejected = frozenset({"daily__b"})
        for ask in (catalog.rename, catalog.finish_rename):
            with pytest.raises(InfoldError, match="409 Conflict it is there"):
                ask("shop", self.SWAP)
        shop.rejected = frozenset()
        assert catalog.finish_rename("shop", self.SWAP)
        assert shop.tables == located({"daily__a": "daily/1", "daily": "b/1"})


def located(tables: dict[str, str]) -> dict[str, str]:
    """Tables with the whole paths of their metadata."""
    places = {name: at.split("/") for name, at in tables.items()}
    return {name: f"/w/{folder}/metadata/{n}.json" for name, (folder, n) in places.items()}


def test_a_child_process_has_its_own_connection(tmp_path: Path, shop: Shop) -> None:
    """A forked process does not speak over its parent's."""
    client = shop.catalog(tmp_path).client
    before = client._connection("http", "127.0.0.1:1")[0]
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            found, fresh = client._connection("http", "127.0.0.1:1")
            os.write(write, b"own" if fresh and found is not before else b"shared")
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 10) == b"own"
    assert client._connection("http", "127.0.0.1:1") == (before, False)
    os.close(read)
    os.close(write)


DAILY = ("shop", "daily")


@dataclass
class MadeUp:
    """A metastore with one table; how it locks it and what it says to a change are given."""

    at: str
    state: int = LockState.ACQUIRED
    refuses: bool = False
    moves_to: str = ""
    asked: list[str] = field(default_factory=list)

    def get_table(self, *_: str) -> Any:
        """The table, with where its metadata is."""
        return SimpleNamespace(tableName="daily", parameters={LOCATION: self.at})

    def get_table_objects_by_name(self, *_: object) -> list[Any]:
        """The same."""
        return [self.get_table()]

    def lock(self, _: object) -> Any:
        """The lock as it is given out, or not."""
        return SimpleNamespace(state=self.state, lockid=1)

    def check_lock(self, _: object) -> Any:
        """The same."""
        return self.lock(None)

    def unlock(self, _: object) -> None:
        """Nothing is kept of it."""

    def alter_table_with_environment_context(self, *given: Any) -> None:
        """Take a change, or refuse it; somebody else may be quicker."""
        self.asked.append("alter")
        if self.moves_to:
            self.at = self.moves_to
        if self.refuses or self.moves_to:
            raise InvalidOperationException("partition keys cannot be changed")
        self.at = given[2].parameters[LOCATION]


@pytest.fixture
def metastore(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MadeUp:
    """A metastore that every client is connected to; its table has a snapshot to go back to."""
    file = tmp_path / "metadata" / "00001-x.metadata.json"
    file.parent.mkdir()
    file.write_text(
        json.dumps(
            {"current-snapshot-id": 2, "snapshots": [{"snapshot-id": 1}, {"snapshot-id": 2}]}
        )
    )
    found = MadeUp(str(file))
    closed = SimpleNamespace(close=lambda: None)
    monkeypatch.setattr(HiveClient, "_open", lambda _: (closed, found))
    monkeypatch.setattr(hive, "LOCK_SECONDS", 0.05)
    return found


@pytest.fixture
def catalog() -> HiveCatalog:
    """A catalog as a target names it."""
    return hive_catalog(Catalog(CatalogType.HIVE, uri="thrift://hms:9083"), Path("/"), "catalog")


def test_a_table_is_set_back(
    catalog: HiveCatalog, metastore: MadeUp, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Its metadata is a new file, with the earlier snapshot; if it moved, nothing is done. The file
    is written first: that the disk is full says nothing of the metastore.
    """
    before = metastore.at

    def full(*_: object) -> str:
        raise OSError("no space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(hive, "metadata_file_of", full)
        with pytest.raises(OSError, match="no space"):
            catalog.set_back(DAILY, before, 1)
    assert metastore.asked == []

    assert catalog.set_back(DAILY, before, 1)

    assert json.loads(Path(metastore.at).read_text(encoding="utf-8"))["current-snapshot-id"] == 1
    assert not catalog.set_back(DAILY, before, 1)
    assert metastore.asked == ["alter"]


def test_what_is_refused_is_a_change_of_somebody_else_only_if_the_table_moved(
    catalog: HiveCatalog, metastore: MadeUp
) -> None:
    """Otherwise the metastore's own words are said. Where a lock is not given, the table is as it
    was, and good: the error says who is in the way.
    """
    metastore.state = LockState.WAITING
    for change in (
        lambda: catalog.set_back(DAILY, metastore.at, 1),
        lambda: catalog.rename("shop", [Renaming("daily", "daily__a", metastore.at)]),
    ):
        with pytest.raises(InfoldError, match="catalog-failed") as caught:
            change()
        why = "somebody else holds the lock of shop.daily"
        assert dict(caught.value.facts)["why"] == why
    assert metastore.asked == []

    metastore.state, metastore.refuses = LockState.ACQUIRED, True
    with pytest.raises(InfoldError, match="partition keys"):
        catalog.set_back(DAILY, metastore.at, 1)
    metastore.moves_to = "/elsewhere/metadata/00002-y.metadata.json"
    assert not catalog.set_back(DAILY, metastore.at, 1)
