"""
What a catalog in a Hive metastore makes of what goes wrong, on a metastore that is made up.

What a real one does is in ``tests/servers/test_hive_catalog.py``.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import InvalidOperationException, LockState

from infold.core.catalogs import Catalog, CatalogType
from infold.core.swap import Renaming
from infold.lake.hive_client import HiveClient
from infold.lake.iceberg import hive_catalog as hive
from infold.lake.iceberg.hive_catalog import LOCATION, HiveCatalog, hive_catalog
from infold.messages.errors import InfoldError

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


def test_a_lock_that_is_not_given_is_no_change_of_somebody_else(
    catalog: HiveCatalog, metastore: MadeUp
) -> None:
    """The table is as it was, and good: the error says who is in the way."""
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


def test_what_is_refused_is_a_change_of_somebody_else_only_if_the_table_moved(
    catalog: HiveCatalog, metastore: MadeUp
) -> None:
    """Otherwise the metastore's own words are said."""
    metastore.refuses = True
    with pytest.raises(InfoldError, match="partition keys"):
        catalog.set_back(DAILY, metastore.at, 1)

    metastore.moves_to = "/elsewhere/metadata/00002-y.metadata.json"
    assert not catalog.set_back(DAILY, metastore.at, 1)
