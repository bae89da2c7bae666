"""The files of a source on a disk and in a store, unpacked ones, and values in JSON."""

from __future__ import annotations

import gzip
import json
import os
import time
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from obstore.store import MemoryStore
from tests.lake.reading.listing_store import PAGE, ListingStore, listing_store

from infold.core.files import DatedPath, Listed
from infold.core.formats import Format
from infold.core.interval import DAY, SECOND
from infold.core.model import Source
from infold.core.object_store import Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading import object_listing
from infold.lake.reading.json_lines import json_values
from infold.lake.reading.listing import dated_path, list_files, list_without, matching_files
from infold.lake.reading.object_listing import refuse_name
from infold.lake.reading.source_file import SourceFile, location
from infold.lake.stores.bucket import Bucket
from infold.lake.stores.buckets import ObjectBucket
from infold.messages import errors
from infold.messages.errors import InfoldError


def files(path: str, *, settle: int = 0) -> Source:
    """A source of JSON files."""
    return Source("raw.clicks", Format.JSON, (), path=path, settle=settle)


def touch(root: Path, *paths: str) -> None:
    """Make files."""
    for path in paths:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text("{}")


def found(root: Path, path: str) -> list[str]:
    """The paths that a pattern gives."""
    return [file.path for file in matching_files(root, files(path), 0)[0]]


TREE = (
    "in/a.json",
    "in/b.json.gz",
    "in/b.json.gz.gz",
    "in/j.json.zst",
    "in/k.json.bz2",
    "in/l.json.zip",
    "in/m.json.gzip",
    "in/c.csv",
    "in/2024/d.json",
    "in/2024/03/e.json",
    "in/_tmp/f.json",
    "in/.hidden/g.json",
    "in/_h.json",
    "in/.i.json",
)


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("in/*.json",
         ["in/a.json", "in/b.json.gz", "in/j.json.zst", "in/k.json.bz2", "in/m.json.gzip"]),
        ("in/[aj].json", ["in/a.json", "in/j.json.zst"]),
        ("in/*.json.zst", ["in/j.json.zst"]),
        ("in/*.json.gz", ["in/b.json.gz"]),
        ("in/*/*.json", ["in/2024/d.json"]),
        ("in/2024/**/*.json", ["in/2024/03/e.json", "in/2024/d.json"]),
        (
            "in/**/*.json",
            [
                *("in/2024/03/e.json", "in/2024/d.json", "in/a.json", "in/b.json.gz"),
                *("in/j.json.zst", "in/k.json.bz2", "in/m.json.gzip"),
            ],
        ),
        ("in/**/0?/**/*.json", ["in/2024/03/e.json"]),
        ("in/**/**/[de].json", ["in/2024/03/e.json", "in/2024/d.json"]),
        ("in/2024", ["in/2024/03/e.json", "in/2024/d.json"]),
        ("./in//2024/", ["in/2024/03/e.json", "in/2024/d.json"]),
        ("in/2024/**", ["in/2024/03/e.json", "in/2024/d.json"]),
        ("in/a.json", ["in/a.json"]),
        ("in/_h.json", ["in/_h.json"]),
        ("in/.i.json", ["in/.i.json"]),
        ("in/_*.json", ["in/_h.json"]),
        ("in/_*/*.json", ["in/_tmp/f.json"]),
        ("in/_tmp/*.json", ["in/_tmp/f.json"]),
        ("in/*.parquet", []),
        ("in/[a]*", ["in/a.json"]),
    ],
)  # fmt: skip
def test_patterns(tmp_path: Path, pattern: str, paths: list[str]) -> None:
    """Patterns match as globs do; below the fixed part, names that start with _ or . are
    ignored.
    """
    touch(tmp_path, *TREE)

    assert found(tmp_path, pattern) == paths


def test_outside_the_project_paths_are_absolute(tmp_path: Path) -> None:
    """
    Paths inside are relative, however they were written. Names in any script are listed, and a link
    to a file is that file; a name that is not UTF-8 is an error, as no table could store it.
    """
    name = "späť %20 [1]{2}.json"
    touch(tmp_path, f"shop/in/{name}", "far/b.json")
    root = tmp_path / "shop"
    (root / "in/a.json").symlink_to(root / "in" / name)

    assert found(root, f"{tmp_path}/far/*.json") == [f"{tmp_path}/far/b.json"]
    assert found(root, "../far/*.json") == [f"{tmp_path}/far/b.json"]
    assert found(root, f"{root}/in/*.json") == ["in/a.json", f"in/{name}"]
    (root / os.fsdecode(b"in/\xff.json")).write_text("{}")
    with pytest.raises(errors.InfoldError, match="bad-file-name"):
        found(root, "in/*.json")


def test_young_files_settle(tmp_path: Path) -> None:
    """
    Files younger than `settle` are counted and not listed. A fingerprint begins with the size, and
    ends with the time of modification; between is what no writer sets.
    """
    touch(tmp_path, "in/old.json", "in/young.json")
    os.utime(tmp_path / "in/old.json", ns=(0, 100_123_456_789))
    os.utime(tmp_path / "in/young.json", ns=(0, 111 * 10**9))
    source = files("in/*", settle=10 * SECOND)

    seen, settling = matching_files(tmp_path, source, 120 * SECOND)
    assert ([file.path for file in seen], settling) == (["in/old.json"], ("in/young.json",))
    assert (seen[0].size, seen[0].modified_at) == (2, 100_123_456)
    assert seen[0].fingerprint.split(":")[::2] == ["2", "100123456789"]

    seen, settling = matching_files(tmp_path, source, 121 * SECOND)
    assert (len(seen), settling) == (2, ())


def test_a_missing_folder_is_an_error(tmp_path: Path) -> None:
    """An empty one is not, nor a missing single file, as it may come later."""
    for path in ("in/*.json", "in/a.json"):
        with pytest.raises(errors.InfoldError, match="no-such-folder") as raised:
            found(tmp_path, path)
        assert raised.value.facts == (("path", path), ("folder", f"{tmp_path}/in"))
    (tmp_path / "in").mkdir()
    for path in ("in/*.json", "in/a.json"):
        seen, settling = matching_files(tmp_path, files(path), 0)
        assert ([*seen], settling) == ([], ())


@pytest.mark.parametrize("pattern", ["in/**/*.json", "in/**", "in/*/*.json", "in/*/*/*.json"])
def test_links_to_folders_are_followed_by_each_pattern(tmp_path: Path, pattern: str) -> None:
    """A folder elsewhere that a link names is read as one that is there."""
    touch(tmp_path, "elsewhere/a.json")
    touch(tmp_path, "elsewhere/sub/b.json")
    (tmp_path / "in").mkdir()
    (tmp_path / "in/link").symlink_to(tmp_path / "elsewhere")
    linked = found(tmp_path, pattern)
    (tmp_path / "in/link").unlink()
    (tmp_path / "elsewhere").rename(tmp_path / "in/link")

    assert linked == found(tmp_path, pattern) != []


@pytest.mark.parametrize("pattern", ["in/**/*.json", "in/**", "in/*.json", "in/*/*.json"])
def test_links_that_lead_back_lead_to_nothing_new(tmp_path: Path, pattern: str) -> None:
    """Up, to each other, to themselves and to nothing: the files are those without these links."""
    touch(tmp_path, "in/a.json")
    touch(tmp_path, "in/one/b.json")
    touch(tmp_path, "in/two/c.json")
    without = found(tmp_path, pattern)
    for name, to in (("up", "."), ("one/up", "../"), ("itself.json", "itself.json"), ("no", "x")):
        (tmp_path / "in" / name).symlink_to(to)

    assert found(tmp_path, pattern) == without

    (tmp_path / "in/one/other").symlink_to("../two")
    (tmp_path / "in/two/other").symlink_to("../one")
    deep = ["in/one/other/c.json", "in/two/other/b.json"] if "**" in pattern else []
    assert found(tmp_path, pattern) == sorted([*without, *deep])


def test_each_folder_is_listed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A listing reads each folder once, however many files there are."""
    for folder in range(20):
        (tmp_path / f"in/{folder}").mkdir(parents=True)
        for file in range(50):
            os.close(os.open(tmp_path / f"in/{folder}/{file}.json", os.O_CREAT))
    calls: list[str] = []
    scandir = os.scandir

    def counted(path: str) -> object:
        calls.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counted)
    assert len(matching_files(tmp_path, files("in/**/*.json"), 0)[0]) == 1_000

    assert len(calls) == 21


@pytest.mark.parametrize("pattern", ["in/*.json", "in/**/*.json", "in"])
def test_a_folder_without_permission_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, pattern: str
) -> None:
    """A folder that may not be listed is an error: its files would be taken for removed."""
    touch(tmp_path, *TREE)
    real = os.open

    def opened(path: str, *how: int) -> int:
        if path.endswith("2024") or pattern == "in/*.json":
            raise PermissionError(13, "Permission denied", path)
        return real(path, *how)

    monkeypatch.setattr(os, "open", opened)
    with pytest.raises(errors.InfoldError) as raised:
        found(tmp_path, pattern)
    assert raised.value.slug == "unreadable-folder"
    assert raised.value.facts[1] == ("why", "Permission denied")


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
    """
    Then all files are found, as in a whole listing, where the date is a pattern like another. Of a
    store the names of folders are asked, and the objects of those that are not left out; a place
    that is not there is the error that a whole listing has.
    """
    whole, _ = list_files(place.project, place.source("in/*/dt={date}/*.json"), 0)
    listed = place.without("in/*/dt={date}/*.json", "in/eu/dt=2020-01-01")
    assert place.names([file.path for file in whole]) == ALL
    assert list(listed.files) == list(whole)
    assert (listed.folders, listed.left_out) == (4, frozenset())

    place.asked.clear()
    place.without("in/eu/dt={date}/*.json", "in/eu/dt=2024-03-07")
    if place.before:
        assert place.asked[0] == "names in in/eu"
        days = ("2024-03-08", "2024-13-77")
        assert sorted(place.asked[1:]) == [f"all of in/eu/dt={day}" for day in days]
    with pytest.raises(InfoldError) as off:
        list_files(place.project, place.source("off/dt={date}/*.json"), 0)
    with pytest.raises(InfoldError) as some:
        place.without("off/dt={date}/*.json", "off/dt=2024-03-07")
    assert str(some.value) == str(off.value)


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


def in_place(file: Path, new: bytes) -> None:
    """Write over it."""
    file.write_bytes(new)


def by_another(file: Path, new: bytes) -> None:
    """Put another file in its place, as rsync does."""
    other = file.with_name(".new")
    other.write_bytes(new)
    other.rename(file)


def by_its_folder(file: Path, new: bytes) -> None:
    """Put another folder in the place of its own."""
    other = file.parent.with_name("other")
    other.mkdir()
    (other / file.name).write_bytes(new)
    file.parent.rename(file.parent.with_name("old"))
    other.rename(file.parent)


def by_a_link(file: Path, new: bytes) -> None:
    """Have its name lead elsewhere."""
    other = file.parent.with_name("elsewhere")
    other.write_bytes(new)
    file.unlink()
    file.symlink_to(other)


@pytest.mark.parametrize("replace_", [in_place, by_another, by_its_folder, by_a_link])
def test_a_file_of_equal_size_and_time_is_another_one(
    tmp_path: Path, replace_: Callable[[Path, bytes], None]
) -> None:
    """However it came into its place: its writer sets the size and the time, and nothing else."""
    touch(tmp_path, "in/a.json")
    file = tmp_path / "in/a.json"
    file.write_bytes(b"old")
    before = file.stat()
    [first], _ = matching_files(tmp_path, files("in/*.json"), 0)

    replace_(file, b"new")
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    [second], _ = matching_files(tmp_path, files("in/*.json"), 0)

    assert (second.size, second.modified_at) == (first.size, first.modified_at)
    assert second.fingerprint != first.fingerprint


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


LINES = b"a\nb\n"
GOOD = {
    "no bytes": (b"", b""),
    "one member": (gzip.compress(LINES, mtime=0), LINES),
    "two members": (gzip.compress(LINES, mtime=0) * 2, LINES * 2),
    "an empty member": (gzip.compress(b"", mtime=0), b""),
    "an empty member first": (gzip.compress(b"", mtime=0) + gzip.compress(LINES, mtime=0), LINES),
}
BAD = {
    "cut off": gzip.compress(LINES, mtime=0)[:-3],
    "half of a header": b"\x1f\x8b",
    "a byte": b"\x1f",
    "zeros behind it": gzip.compress(LINES, mtime=0) + b"\0" * 512,
    "a zero behind it": gzip.compress(LINES, mtime=0) + b"\0",
    "more behind it": gzip.compress(LINES, mtime=0) + b"more and more",
    "another sum": gzip.compress(LINES, mtime=0)[:-8]
    + b"\0" * 4
    + gzip.compress(LINES, mtime=0)[-4:],
    "zlib": zlib.compress(LINES),
    "not packed": LINES,
}


def put(folder: Path, name: str, content: bytes) -> SourceFile:
    """A file."""
    at = folder / name
    at.write_bytes(content)
    return SourceFile(str(at), len(content))


def test_gzip_is_unpacked(tmp_path: Path) -> None:
    """All of it, whatever it was put together from, and line by line."""
    for name, (packed, content) in GOOD.items():
        file = put(tmp_path, "a.json.gz", packed)
        with file.unpacked() as opened:
            assert opened.read() == content, name
        with file.unpacked() as opened:
            assert list(opened) == content.splitlines(keepends=True), name


def test_damaged_gzip_is_refused(tmp_path: Path) -> None:
    """What Hadoop refuses is refused here too, so that a file's size does not matter."""
    for packed in BAD.values():
        file = put(tmp_path, "a.json.gz", packed)
        with pytest.raises(OSError), file.unpacked() as opened:
            opened.read()


@pytest.mark.parametrize(
    ("ending", "packed"),
    [
        *((ending, gzip.compress(LINES, mtime=0)) for ending in (".gz", ".gzip", ".GZ", ".GZip")),
        *((ending, LINES) for ending in (".lz4", ".snappy", ".deflate", ".gz2", "gz")),
    ],
)
def test_the_ending_says_how_it_is_packed(tmp_path: Path, ending: str, packed: bytes) -> None:
    """In letters of any case, as Spark takes it. A file with another one is what it is."""
    with put(tmp_path, f"a.json{ending}", packed).unpacked() as opened:
        assert opened.read() == LINES


@given(st.sampled_from(["/data/shop", "/"]), st.text(alphabet="a ./é:_", min_size=1))
def test_it_is_pathlibs(root: str, path: str) -> None:
    """Below the folder of the project, above it or elsewhere, the quick way gives what pathlib
    does.
    """
    assert location(Path(root), path) == str(Path(root) / path)


CASES: list[tuple[str, list[str]]] = [
    ("", []),
    (" \n", []),
    ("[]", []),
    ("[ \n ]\n", []),
    ("[][]", []),
    ('{"a": 1}', ['{"a": 1}']),
    ('\ufeff{"a":\n 1}\n', ['{"a":\n 1}']),
    ('{"a": 1}{"b": 2}\n[{"c": 3}, {"d": 4}]', ['{"a": 1}', '{"b": 2}', '{"c": 3}', '{"d": 4}']),
    ('[{"a": "]}\\"[{,"}, {"b": [1, {"c": 2}]}]', ['{"a": "]}\\"[{,"}', '{"b": [1, {"c": 2}]}']),
    ('[1, "a,b", null, [{"a": 1}]]', ["1", '"a,b"', "null", '[{"a": 1}]']),
    ('null {"a": 1} true', ["null", '{"a": 1}', "true"]),
    ('{"a": 1}, {"b": 2}', ['{"a": 1}', ",", '{"b": 2}']),
    ('[{"a": 1}, , {"b": 2},]', ['{"a": 1}', ",", '{"b": 2}', ","]),
    ("[,]", [",", ","]),
    ('[{"a": 1,}, {"b": 2}]', ['{"a": 1,}', '{"b": 2}']),
    ('[{"a": 1} x, {"b": 2}]', ['{"a": 1} x', '{"b": 2}']),
    ('[{"a": 1}, {"b": 2}', ['{"a": 1}', '{"b": 2}', "["]),
    ('[{"a": 1},', ['{"a": 1}', "["]),
    ('[{"a": 1}, {"b": [2', ['{"a": 1}', '{"b": [2', "["]),
    ('[{"a": 1}, {"b": "2}]', ['{"a": 1}', '{"b": "2}]', "["]),
    ('[{"a": 1]}, {"b": 2}]', ['{"a": 1]}, {"b": 2}]', "["]),
    ('{"a": 1}]{"b": 2}', ['{"a": 1}', "]", '{"b": 2}']),
    ('{"a": "', ['{"a": "']),
    ("[", ["["]),
    ("<html>", ["<html>"]),
]


@pytest.mark.parametrize(("text", "parts"), CASES)
def test_parts(text: str, parts: list[str]) -> None:
    """Each part is there as it is written, and whatever is not in its place is a part too."""
    assert [part.decode() for part in json_values(text.encode())] == parts


_TEXTS = st.text(max_size=5)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=4,
)


@given(
    st.lists(
        st.dictionaries(_TEXTS, _VALUES, max_size=3) | st.lists(_VALUES, max_size=3), max_size=5
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
    st.text(alphabet='[]{},"\\a1 \n'),
)
def test_what_is_written_comes_back(
    values: list[Any], indent: int | None, plain: bool, other: str
) -> None:
    """Whole JSON has its objects and the parts of its lists, however they are laid out. Of any text
    all letters but blanks, commas and the brackets of lists are in some part.
    """
    text = "\n".join(json.dumps(one, indent=indent, ensure_ascii=plain) for one in values)
    wanted = [part for one in values for part in (one if isinstance(one, list) else [one])]
    assert [json.loads(part) for part in json_values(text.encode())] == wanted

    found = b"".join(json_values(other.encode())).decode()
    assert [one for one in found if one in '{}"\\a1'] == [one for one in other if one in '{}"\\a1']
