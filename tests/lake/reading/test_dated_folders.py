"""Listings without some dated folders, on a disk and in a store: what is asked, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from obstore.store import MemoryStore

from infold.core.dated_path import DatedPath, Listed
from infold.core.formats import Format
from infold.core.interval import DAY
from infold.core.model import Source
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading import object_listing
from infold.lake.reading.dated_folders import dated_path, list_without
from infold.lake.reading.listing import list_files
from infold.lake.stores.bucket import Bucket
from infold.lake.stores.object_bucket import ObjectBucket
from infold.messages.errors import InfoldError

FILES = (
    "in/eu/dt=2024-03-07/a.json",
    "in/eu/dt=2024-03-07/sub/b.json",
    "in/eu/dt=2024-03-08/a.json",
    "in/eu/dt=2024-03-08/_hidden.json",
    "in/eu/dt=2024-13-77/a.json",
    "in/eu/dt=unknown/a.json",
    "in/us/dt=2024-03-07/a.json",
    "in/_old/dt=2024-03-07/a.json",
    "in/other.json",
)


@dataclass
class Place:
    """Files in a folder or in a store, and what was asked of the store."""

    project: Project
    before: str
    asked: list[str] = field(default_factory=list)

    def source(self, path: str) -> Source:
        """A source there."""
        return Source("raw.clicks", Format.JSON, (), path=self.before + path, full_listing="daily")

    def names(self, paths: Sequence[str]) -> list[str]:
        """Paths as they are in FILES."""
        return [path.removeprefix(self.before) for path in paths]

    def without(self, path: str, *skip: str) -> Listed:
        """What is listed if some folders may be left out."""
        return list_without(
            self.project, self.source(path), 0, {self.before + folder for folder in skip}
        )


@pytest.fixture(params=["folder", "store"])
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """The same files in both."""
    project = Project("shop", tmp_path, None, {}, (), Target("dev"))
    if request.param == "folder":
        for path in FILES:
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text("{}")
        return Place(project, "")
    store, found = MemoryStore(), Place(project, "s3://b/")
    bucket = ObjectBucket("s3://b", "", store)
    for path in FILES:
        bucket.write(path, b"{}")

    class Asked:
        """The bucket; what is asked of it is noted."""

        name = "b"

        def list(self, folder: str) -> object:
            found.asked.append(f"all of {folder}")
            return bucket.list(folder)

        def names(self, folder: str) -> Sequence[str]:
            found.asked.append(f"names in {folder}")
            return bucket.names(folder)

        def has_folder(self, folder: str) -> bool:
            return bucket.has_folder(folder)

    monkeypatch.setattr(object_listing, "bucket_of", lambda *_: cast(Bucket, Asked()))
    return found


ALL = [
    "in/eu/dt=2024-03-07/a.json",
    "in/eu/dt=2024-03-08/a.json",
    "in/eu/dt=2024-13-77/a.json",
    "in/us/dt=2024-03-07/a.json",
]


def test_nothing_is_left_out_that_must_not_be(place: Place) -> None:
    """Then all files are found, as in a whole listing, where the date is a pattern like another."""
    whole, _ = list_files(place.project, place.source("in/*/dt={date}/*.json"), 0)
    listed = place.without("in/*/dt={date}/*.json", "in/eu/dt=2020-01-01")

    assert place.names([file.path for file in whole]) == ALL
    assert list(listed.files) == list(whole)
    assert (listed.folders, listed.left_out) == (4, frozenset())


SUB = "in/eu/dt=2024-03-07/sub/b.json"


@pytest.mark.parametrize(
    ("path", "skip", "files", "folders"),
    [
        ("in/*/dt={date}/*.json", "in/eu/dt=2024-03-07", ALL[1:], 3),
        ("in/eu/dt={date}/**/*.json", "in/eu/dt=2024-03-08", [ALL[0], SUB, ALL[2]], 2),
        ("in/us/dt={date}/*.json", "in/us/dt=2024-03-07", [], 0),
    ],
    ids=["one of several places", "with what is below", "everything"],
)
def test_folders_are_left_out_that_may_be(
    place: Place, path: str, skip: str, files: list[str], folders: int
) -> None:
    """One is left out by its path, so the same date elsewhere is listed."""
    listed = place.without(path, skip, "in/eu/dt=2020-01-01")

    assert place.names([file.path for file in listed.files]) == files
    assert (listed.folders, place.names(sorted(listed.left_out))) == (folders, [skip])


def test_what_is_asked_of_a_store(place: Place) -> None:
    """The names of folders, and the objects of those that are not left out."""
    place.without("in/eu/dt={date}/*.json", "in/eu/dt=2024-03-07")

    if place.before:
        assert place.asked[0] == "names in in/eu"
        assert sorted(place.asked[1:]) == [
            "all of in/eu/dt=2024-03-08",
            "all of in/eu/dt=2024-13-77",
        ]


def test_a_place_that_is_not_there(place: Place) -> None:
    """It is the error that a whole listing has."""
    with pytest.raises(InfoldError) as whole:
        list_files(place.project, place.source("off/dt={date}/*.json"), 0)
    with pytest.raises(InfoldError) as some:
        place.without("off/dt={date}/*.json", "off/dt=2024-03-07")

    assert str(some.value) == str(whole.value)


def test_the_folder_of_a_file(place: Place) -> None:
    """It is told by the file's path; a file elsewhere has none. Its day ends at midnight in UTC;
    what is no date has no day.
    """
    path = dated_path(place.project, place.source("./in//*/dt={date}/x/*.json"))
    before = place.before

    assert path.folder(f"{before}in/eu/dt=2024-03-07/x/a.json") == f"{before}in/eu/dt=2024-03-07"
    assert path.folder(f"{before}in/eu/dt=2024-03-07") is None
    assert path.folder(f"{before}out/eu/dt=2024-03-07/x/a.json") is None
    digits = DatedPath("in/", ("dt=[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9].d",))
    ends = [digits.end(f"in/dt={day}") for day in ("1970-01-03.d", "1970-02-31.d", "1970-01-03xd")]
    assert ends == [3 * DAY, None, None]
