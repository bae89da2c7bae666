"""A listing of many objects, by a server that only lists."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.lake.reading.listing_store import PAGE, ListingStore, listing_store

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.listing import list_files
from infold.lake.reading.object_listing import refuse_name
from infold.messages.errors import InfoldError

MANY = 10_000


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingStore]:
    """A store with many objects."""
    with listing_store(monkeypatch) as found:
        found.keys = [f"in/{number:06}.json" for number in range(MANY)]
        yield found


@pytest.fixture
def project(tmp_path: Path, store: ListingStore) -> Project:
    """A project with a source of that server."""
    source = Source("raw.clicks", Format.JSON, (), path="s3://many/in/*.json")
    target = Target("dev", stores=Stores(store.options))
    return Project("shop", tmp_path, None, {source.name: source}, (), target)


def test_ten_thousand_objects(project: Project, store: ListingStore) -> None:
    """A request for each thousand, and less than a second of this process."""
    started = time.process_time()
    files, _ = list_files(project, project.sources["raw.clicks"], 0)
    spent = time.process_time() - started
    assert len(files) == MANY
    assert files[1].path == "s3://many/in/000001.json"
    assert files[1].fingerprint == '9:"1"'
    assert len(store.asked) == MANY // PAGE
    assert spent < 1  # of the server, too


@pytest.mark.parametrize("folder", ["in/", "in/..", "in/a\nb"])
def test_an_object_that_obstore_cannot_name(
    project: Project, store: ListingStore, folder: str
) -> None:
    """The error names it and says what to do; the store did not fail."""
    store.keys = [f"{folder}/0.json"]
    with pytest.raises(InfoldError, match="begin further down") as refused:
        list_files(project, project.sources["raw.clicks"], 0)
    assert refused.value.slug == "bad-file-name"
    named = repr(f"{folder}/0.json").strip("'")
    assert refused.value.facts == (("at", "s3://many/in"), ("object", named))


@pytest.mark.parametrize("ending", [".gzip", ".ZSTD", ".lz4", ".snappy", ".deflate"])
def test_an_object_that_spark_unpacks_in_another_way(project: Project, ending: str) -> None:
    """There are no links in a store, so it is refused by its name; an ORC file may have that."""
    source = project.sources["raw.clicks"]
    with pytest.raises(InfoldError) as refused:
        refuse_name(source, f"s3://many/in/a.json{ending}")
    assert refused.value.slug == "bad-file-name"
    refuse_name(source, "s3://many/in/a.json.gz")
    refuse_name(replace(source, format=Format.ORC), f"s3://many/in/a{ending}")


def test_obstore_is_not_installed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    source = replace(project.sources["raw.clicks"], path="s3://other/in/*.json")
    with pytest.raises(InfoldError, match=r"infold\[s3\]"):
        list_files(project, source, 0)
