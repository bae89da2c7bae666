"""Scenarios and the starter's project somewhere else: on a server, in a catalog, in a store."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner, Result
from tests.crash.scenario import Scenario
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

Move = Callable[[Path], None]
"""Has the project of a folder compute, or find its tables, elsewhere."""


def retarget(folder: Path, keys: Mapping[str, Any]) -> None:
    """Give all targets of a project these keys."""
    file = folder / "infold.yml"
    project = yaml.safe_load(file.read_text(encoding="utf-8"))
    for target in project["targets"].values():
        target |= keys
    file.write_text(yaml.safe_dump(project), encoding="utf-8")


def nowhere(folder: Path) -> None:
    """The project stays as it is."""


@dataclass
class MovedScenario(Scenario):
    """A scenario whose project is moved before anything runs."""

    move: Move = nowhere

    def _begin(self) -> None:
        super()._begin()
        self.move(self.folder)

    def take_in(self) -> None:
        """A run; each table is what the reference says."""
        self.go()
        self.check({*self.shape.tables}, None)


EVENT = {"user_id": "ann", "event_ts": "2024-03-08T09:00:00", "url": "/", "amount": None}


def events(*names: str) -> bytes:
    """A file of the starter's source."""
    return "".join(json.dumps({"event_id": name} | EVENT) + "\n" for name in names).encode()


@dataclass
class Starter:
    """The starter's project, and what its commands have printed."""

    root: Path
    target: str = ""
    printed: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        assert CliRunner().invoke(cli, ["init", str(self.root)]).exit_code == 0

    def infold(self, *words: str, code: int = 0) -> Result:
        """A command, as one text or word by word, in this process; it ends with ``code``."""
        words = tuple(words[0].split()) if len(words) == 1 else words
        target = ("--target", self.target) if self.target else ()
        done = CliRunner().invoke(cli, ["-C", str(self.root), *target, *words])
        self.printed.append(done.output)
        assert done.exit_code == code, done.output
        return done

    def __call__(self, *words: str, code: int = 0) -> str:
        """What a command prints."""
        return self.infold(*words, code=code).output

    def declare(self, targets: str, replaced: Mapping[str, str]) -> None:
        """Have these targets in place of its own; texts of a page are those of servers here."""
        for old, new in replaced.items():
            targets = targets.replace(old, new)
        file = self.root / "infold.yml"
        text = file.read_text(encoding="utf-8").partition("targets:")[0]
        file.write_text(text + targets, encoding="utf-8")

    def add_a_column(self) -> None:
        """Change a definition: ``daily`` has the column ``most``, too."""
        model = self.root / "models" / "daily.sql"
        text = model.read_text(encoding="utf-8")
        model.write_text(text.replace("sum(revenue)", "max(revenue) AS most,\n  sum(revenue)"))


@dataclass(kw_only=True)
class Shop(Starter):
    """The same in a bucket."""

    store: StoreServer
    bucket: str

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
    """The events and sessions of the same, with these keys; two files have arrived."""
    shop = Shop(root=root, store=store, bucket=store.new_bucket())
    (root / "models" / "daily.sql").unlink()
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
