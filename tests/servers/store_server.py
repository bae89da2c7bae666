"""What tests ask of a server of an object store, whosever protocol it speaks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import yaml
from tests.servers.gate import Gated

from infold.core.object_store import StorageOptions, Stores
from infold.lake.stores.bucket import Bucket
from infold.lake.stores.buckets import bucket_of


class StoreServer(Gated):
    """A running server."""

    scheme: ClassVar[str]

    def new_bucket(self) -> str:
        """A bucket that nobody used, as URLs name it."""
        raise NotImplementedError

    def make_folder(self, bucket: str, key: str) -> None:
        """What the store, or a connector or a tool in it, has for an empty folder."""
        raise NotImplementedError

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        raise NotImplementedError

    def url_of(self, bucket: str, *names: str) -> str:
        """A place in a bucket."""
        return "/".join((f"{self.scheme}://{bucket}", *names))

    def bucket(self, name: str) -> Bucket:
        """A bucket, by infold's own hands."""
        stores = Stores(StorageOptions(**self.options))
        return bucket_of(self.url_of(name), stores, Path())

    def put(self, url: str, content: bytes) -> None:
        """Have an object."""
        bucket, _, key = url.partition("://")[2].partition("/")
        self.bucket(bucket).write(key, content)

    def read(self, url: str) -> bytes:
        """What an object has."""
        bucket, _, key = url.partition("://")[2].partition("/")
        return self.bucket(bucket).read(key)

    def below(self, url: str) -> list[str]:
        """The URLs of the objects below a folder; not those that stand for folders."""
        bucket, _, key = url.partition("://")[2].partition("/")
        return [self.url_of(bucket, one.key) for one in self.bucket(bucket).list(key) if one.size]

    @contextmanager
    def refusing(self, method: str, url: str) -> Iterator[None]:
        """Nobody may write, or read, below a folder, for the block."""
        methods = {"write": "PUT|POST", "read": "GET"}[method]
        names = url.rpartition("/")[2]
        with self.rule(methods, f"{names}(/|%2F)", status=403, code="Forbidden"):
            yield

    def delete(self, url: str) -> None:
        """Have it no more."""
        bucket, _, key = url.partition("://")[2].partition("/")
        self.bucket(bucket).delete([key])


def move_to_store(folder: Path, store: StoreServer, bucket: str) -> None:
    """Have a project's tables, and the files of its sources, in a bucket."""
    file = folder / "infold.yml"
    project = yaml.safe_load(file.read_text(encoding="utf-8"))
    for source in project["sources"].values():
        if "path" in source:
            source["path"] = store.url_of(bucket, source["path"])
    for target in project["targets"].values():
        target["warehouse"] = store.url_of(bucket, "warehouse")
        if target.get("storage") != "delta":
            target["catalog"] = {"type": "sqlite", "uri": "sqlite:///.infold/catalog.db"}
        target["storage_options"] = store.options
    file.write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")


@dataclass
class Mirror:
    """Each call makes the objects below a URL those that the folder has."""

    store: StoreServer
    folder: Path
    url: str
    there: dict[str, int] = field(default_factory=dict)
    """The files that are in the store, with when they were written."""

    def __call__(self) -> None:
        """The log comes last, as with a writer of Delta."""
        found = {
            str(path.relative_to(self.folder)): path.stat().st_mtime_ns
            for path in self.folder.rglob("*")
            if path.is_file()
        }
        for name in sorted(found, key=lambda name: (name.startswith("_delta_log"), name)):
            if self.there.get(name) != found[name]:
                self.store.put(f"{self.url}/{name}", (self.folder / name).read_bytes())
        for name in self.there.keys() - found.keys():
            self.store.delete(f"{self.url}/{name}")
        self.there = found
