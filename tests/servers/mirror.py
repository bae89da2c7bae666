"""A folder that is in a store too: a table is written on a disk, and what it is lands there."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tests.servers.store_server import StoreServer


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
