"""Scenarios and the starter's project with tables and files in a store."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.arrivals.shape import SourceSpec
from tests.reference.world import Record
from tests.servers.moved import MovedScenario, retarget
from tests.servers.store_server import StoreServer, move_to_store

from infold import api
from infold.cli import cli
from infold.core.files import ListedFile
from infold.core.project import Project
from infold.lake.reading.listing import list_files, list_without
from infold.lake.reading.object_listing import changed_objects
from infold.lake.reading.source_file import SourceFile, source_file
from infold.lake.stores import places
from infold.messages.errors import InfoldError, InfoldErrors

NO_STORE = StoreServer()


@dataclass
class InStore(MovedScenario):
    """A scenario whose tables and files are in a bucket."""

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


class Landing:
    """The starter's project in a bucket of its own, and what else lies in that."""

    def __init__(self, store: StoreServer, root: Path, **options: object) -> None:
        self.store, self.shop = store, shop_in(store, root)
        self.base = store.url_of(self.shop.bucket)
        given = {key: text for key, text in (store.options | options).items() if text}
        retarget(root, {"storage_options": given})
        self.project: Project = api.open_project(root)
        places.use(self.project)

    def put(self, name: str, content: bytes = b"x") -> str:
        """Have an object; its URL."""
        self.store.put(url := f"{self.base}/{name}", content)
        return url

    def files(self, path: str = "in/*.json", **how: Any) -> list[ListedFile]:
        """What a source with a path has."""
        source = replace(self.project.sources["raw.clicks"], path=f"{self.base}/{path}", **how)
        return list(list_files(self.project, source, 0)[0])

    def names(self, path: str = "in/*.json") -> list[str]:
        """The same, by names in the bucket."""
        return [file.path.removeprefix(f"{self.base}/") for file in self.files(path)]

    def without(self, path: str, *folders: str) -> Any:
        """What a source with a path has outside of some folders."""
        source = self.project.sources["raw.clicks"]
        source = replace(source, path=f"{self.base}/{path}", full_listing="daily")
        out = {f"{self.base}/{folder}" for folder in folders}
        return list_without(self.project, source, 0, out)

    def changed(self, *files: ListedFile) -> list[str]:
        """Those that are no longer what they were, or where."""
        return changed_objects(self.project, self.project.sources["raw.clicks"], files)

    def opened(self, file: ListedFile) -> SourceFile:
        """A file, to be read."""
        return source_file(self.project.root, file, self.project.target.stores)

    def refused(self, path: str = "in/*.json") -> InfoldError:
        """Why a source with a path cannot be listed."""
        with pytest.raises(InfoldError) as failed:
            self.files(path)
        return failed.value
