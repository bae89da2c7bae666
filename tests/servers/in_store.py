"""Plays, scenarios and the starter's project with tables and files in an object store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.arrivals.shape import SourceSpec
from tests.reference.world import Record
from tests.servers.moved import Moved, MovedScenario, retarget
from tests.servers.store_server import StoreServer, move_to_store

from infold import api
from infold.cli import cli
from infold.messages.errors import InfoldError, InfoldErrors

NO_STORE = StoreServer()


@dataclass
class InStore(Moved):
    """A play whose tables and files are in a bucket."""

    store: StoreServer = field(default_factory=lambda: NO_STORE)
    bucket: str = ""

    def _begin(self) -> None:
        super()._begin()
        self.bucket = self.store.new_bucket()
        move_to_store(self.folder, self.store, self.bucket)
        for source in self.shape.sources:
            self.store.put(self._at(f"{source.folder}/_"), b"there is a folder")

    def _put(self, path: str, source: SourceSpec, records: Sequence[Record]) -> None:
        super()._put(path, source, records)
        self.store.put(self._at(path), (self.folder / "landing" / path).read_bytes())

    def _drop(self, path: str) -> None:
        super()._drop(path)
        self.store.delete(self._at(path))

    def _at(self, path: str) -> str:
        return self.store.url_of(self.bucket, "landing", path)


@dataclass
class KilledInStore(InStore, MovedScenario):
    """A scenario whose tables and files are in a bucket."""


EVENT = {"user_id": "ann", "event_ts": "2024-03-08T09:00:00", "url": "/", "amount": None}


def events(*names: str) -> bytes:
    """A file of the starter's source."""
    return "".join(json.dumps({"event_id": name} | EVENT) + "\n" for name in names).encode()


@dataclass
class Shop:
    """The starter's project in a bucket."""

    root: Path
    store: StoreServer
    bucket: str

    def __call__(self, *words: str, code: int = 0) -> str:
        """What a command prints."""
        done = CliRunner().invoke(cli, ["-C", str(self.root), *words])
        assert done.exit_code == code, done.output
        return done.output

    def put(self, name: str, *ids: str) -> None:
        """A file of events arrives."""
        self.put_bytes(name, events(*ids))

    def put_bytes(self, name: str, content: bytes) -> None:
        """A file arrives."""
        self.store.put(self.store.url_of(self.bucket, "landing", "clicks", name), content)

    def run_fails(self) -> InfoldError:
        """A run that fails; why."""
        return run_fails(self.root)


def run_fails(root: Path) -> InfoldError:
    """A run of a project that fails; why."""
    with pytest.raises((InfoldError, InfoldErrors)) as failed:
        api.run(api.open_project(root))
    return failed.value.each[0]


def shop_in(store: StoreServer, root: Path, **target: object) -> Shop:
    """The same with these keys of its target; two files have arrived."""
    shop = Shop(root, store, store.new_bucket())
    assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
    retarget(root, target)
    move_to_store(root, store, shop.bucket)
    for file in sorted((root / "landing" / "clicks").iterdir()):
        shop.put_bytes(file.name, file.read_bytes())
    return shop
