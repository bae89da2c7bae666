"""Places in HDFS without Spark: listings, what tells files apart, and what is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.servers.hdfs import Hdfs
from tests.servers.in_store import Shop, shop_in

from infold import api
from infold.core.files import ListedFile
from infold.core.project import Project
from infold.lake.reading.dated_folders import list_without
from infold.lake.reading.listing import list_files
from infold.lake.reading.object_listing import changed_objects
from infold.lake.reading.source_file import source_file
from infold.lake.stores import places
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


class Landing:
    """The starter's project, and what lies below ``in`` of a folder of its own."""

    def __init__(self, hdfs: Hdfs, root: Path) -> None:
        self.hdfs = hdfs
        self.shop: Shop = shop_in(hdfs, root)
        self.project: Project = api.open_project(root)
        self.base = hdfs.url_of(self.shop.bucket)
        places.use(self.project)

    def put(self, name: str, content: bytes = b"x") -> str:
        """Have a file; its URL."""
        url = f"{self.base}/{name}"
        self.hdfs.put(url, content)
        return url

    def files(self, path: str = "in/*.json", **how: Any) -> list[ListedFile]:
        """What a source with a path has."""
        source = replace(self.project.sources["raw.clicks"], path=f"{self.base}/{path}", **how)
        return list(list_files(self.project, source, 0)[0])

    def names(self, path: str) -> list[str]:
        """The same, by names in the folder."""
        return [file.path.removeprefix(f"{self.base}/") for file in self.files(path)]

    def changed(self, *files: ListedFile) -> list[str]:
        """Those that are no longer what they were, or where."""
        return changed_objects(self.project, self.project.sources["raw.clicks"], files)


@pytest.fixture
def landing(hdfs: Hdfs, tmp_path: Path) -> Iterator[Landing]:
    """An empty folder beside the starter's."""
    yield Landing(hdfs, tmp_path / "shop")
    places.forget_ways()


PATTERNS = (
    *("in/*.json", "in/[ab].json", "in/b.json", "in/dt=2024-*/*.json", "in/**/*.json"),
    *("in/dt=2024-01-02", "in/none-*", "in/* *", "in/*%*", "in/**/deep/*/*"),
)


def test_a_pattern_means_what_it_means_for_files(landing: Landing, tmp_path: Path) -> None:
    """Files are listed as those of the same names on a disk; names are as they are."""
    names = [
        *("in/a.json", "in/a.json.gz", "in/b.json", "in/_c.json", "in/.d.json", "in/x.csv"),
        *("in/dt=2024-01-01/c d.json", "in/dt=2024-01-02/é.json", "in/_dt=2024-01-03/e.json"),
        *("in/dt=2024-01-02/deep/er/f.json", "inner/g.json", "in/a%20b+c.json", "in/#?&=;.json"),
        "in/[x] {y},'z'.json",
    ]
    for name in names:
        landing.put(name)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    here = replace(landing.project, root=tmp_path)
    for pattern in PATTERNS:
        source = replace(here.sources["raw.clicks"], path=pattern)
        local = [file.path for file in list_files(here, source, 0)[0]]
        assert sorted(landing.names(pattern)) == sorted(local), pattern
    for file in landing.files("in/**/*"):
        opened = source_file(landing.project.root, file, landing.project.target.stores)
        assert opened.raw().read() == b"x"


def test_what_a_listing_costs(landing: Landing) -> None:
    """A request for each folder, and one more for each page of a big one."""
    for number in range(45):
        landing.put(f"in/big/{number:02}.json")
    for name in ("in/a/1.json", "in/a/b/1.json"):
        landing.put(name)
    landing.hdfs.seen.clear()
    assert len(landing.files("in/**/*.json")) == 47
    assert landing.hdfs.seen == {"GET": 1 + 3 + 1 + 1}


def test_dated_folders_are_left_out(landing: Landing) -> None:
    """Names of folders are one request, and each folder that is listed is one."""
    for name in ("2024-01-01", "2024-01-02", "2024-01-03"):
        landing.put(f"in/dt={name}/a.json")
    path = f"{landing.base}/in/dt={{date}}/*.json"
    source = replace(landing.project.sources["raw.clicks"], path=path, full_listing="daily")
    whole, _ = list_files(landing.project, source, 0)
    out = f"{landing.base}/in/dt=2024-01-02"
    landing.hdfs.seen.clear()

    listed = list_without(landing.project, source, 0, {out, f"{landing.base}/in/dt=2023-01-01"})

    assert landing.hdfs.seen == {"GET": 1 + 2}
    assert list(listed.files) == [file for file in whole if not file.path.startswith(out)]
    assert (len(whole), listed.folders, listed.left_out) == (3, 2, frozenset({out}))


def test_an_empty_folder_is_there(landing: Landing) -> None:
    """One that is not there is an error; nothing may have been delivered yet."""
    with pytest.raises(InfoldError, match="no-such-folder"):
        landing.files("nothing/*.json")
    landing.hdfs.files.mkdirs(landing.hdfs.path_of(f"{landing.base}/nothing"))
    assert landing.files("nothing/*.json") == []
    path = f"{landing.base}/nothing/dt={{date}}/*.json"
    source = replace(landing.project.sources["raw.clicks"], path=path, full_listing="daily")
    assert not list_without(landing.project, source, 0, ()).files


def test_a_file_that_is_being_put(landing: Landing) -> None:
    """It is not there until it has its name."""
    url = landing.put("in/a.json._COPYING_")
    assert landing.names("in/*") == []
    to = landing.hdfs.path_of(url.removesuffix("._COPYING_"))
    landing.hdfs.own_files.rename(landing.hdfs.path_of(url), to)
    assert landing.names("in/*") == ["in/a.json"]


def replaced(landing: Landing, url: str) -> None:
    """The same bytes once more, at the same time: another file has the name."""
    time = landing.hdfs.status(url).getModificationTime()
    landing.put("in/other", b"0123456789")
    landing.hdfs.files.setTimes(landing.hdfs.path_of(f"{landing.base}/in/other"), time, -1)
    landing.hdfs.files.delete(landing.hdfs.path_of(url), False)
    landing.hdfs.files.rename(
        landing.hdfs.path_of(f"{landing.base}/in/other"), landing.hdfs.path_of(url)
    )


def appended(landing: Landing, url: str) -> None:
    """More bytes, and the time is put back."""
    time = landing.hdfs.status(url).getModificationTime()
    landing.hdfs.append(url, b"more")
    landing.hdfs.files.setTimes(landing.hdfs.path_of(url), time, -1)


def cut_and_filled(landing: Landing, url: str) -> None:
    """Its end is another one, of the same length: its time is later."""
    assert landing.hdfs.files.truncate(landing.hdfs.path_of(url), 0)
    landing.hdfs.append(url, b"9876543210")


def touched(landing: Landing, url: str) -> None:
    """Another time, be it earlier: whether the content is the same is not known."""
    landing.hdfs.files.setTimes(landing.hdfs.path_of(url), 1_000, -1)


@pytest.mark.parametrize("change", [replaced, appended, cut_and_filled, touched])
def test_another_content_has_another_mark(
    landing: Landing, change: Callable[[Landing, str], None]
) -> None:
    """In a listing, in a look at one file, and for whoever is reading the earlier one."""
    url = landing.put("in/a.json", b"0123456789")
    (first,) = landing.files()
    opened = source_file(landing.project.root, first, landing.project.target.stores)
    part = opened.arrow_file()
    assert (part.seek(4), part.read(3)) == (4, b"456")
    assert landing.changed(first) == []
    assert landing.files() == [first]

    change(landing, url)

    (now,) = landing.files()
    assert now.fingerprint != first.fingerprint
    assert landing.changed(first) == [url]
    with pytest.raises(ReplacedError):
        part.read(2)
    assert landing.changed(now) == []


def test_a_file_that_went(landing: Landing) -> None:
    """It is gone under its name, and there under the one that it was given."""
    url = landing.put("in/a.json", b"0123456789")
    (first,) = landing.files()
    to = landing.hdfs.path_of(f"{landing.base}/in/b.json")
    landing.hdfs.files.rename(landing.hdfs.path_of(url), to)
    assert landing.names("in/*.json") == ["in/b.json"]
    assert landing.changed(first) == [url]
    opened = source_file(landing.project.root, first, landing.project.target.stores)
    assert not opened.exists()
    with pytest.raises(FileNotFoundError):
        opened.raw().read()


def test_a_file_is_written_as_a_whole(landing: Landing) -> None:
    """In place of another one; what cannot get its name leaves nothing."""
    at = f"{landing.base}/out/a b%+.csv"
    places.write(at, b"one")
    places.write(at, b"two")
    assert places.read(at) == b"two"
    (found,) = places.sizes(f"{landing.base}/out")
    assert found == ("a b%+.csv", 3)
    with pytest.raises(InfoldError):
        places.write(f"{landing.base}/out", b"a folder has this name")
    assert {*places.names(landing.base)} == {"landing", "out"}


def test_an_answer_that_is_lost(landing: Landing) -> None:
    """What is asked once more finds done what it asks for."""
    at = f"{landing.base}/out/a"
    for what in ("CREATE", "RENAME", "DELETE"):
        with landing.hdfs.rule("PUT|DELETE", f"op={what}", lost=True, times=1) as lost:
            places.write(at, what.encode())
            assert places.read(at) == what.encode()
            places.delete(at)
        assert lost.times == 0
    assert [*places.names(f"{landing.base}/out")] == []


def test_what_passes_is_asked_again(landing: Landing) -> None:
    """A server that is busy or fails now and then, or cuts connections, costs time and no more."""
    landing.put("in/a.json", b"abc" * 1000)
    (file,) = landing.files()
    for how in ({"status": 503}, {"status": 403, "code": "RetriableException"}, {"cut": True}):
        with landing.hdfs.rule("GET", "", times=2, **how) as rule:
            assert landing.files() == [file]
            assert rule.times == 0


Refusal = tuple[dict[str, Any], str, str]


@pytest.mark.parametrize(
    "refusal",
    [
        ({"status": 403, "code": "AccessControlException"}, "store-access-denied", "store"),
        ({"status": 403, "code": "StandbyException"}, "store-standby", "store"),
        ({"status": 401, "code": "AuthenticationException"}, "not-supported-yet", "store"),
        ({"status": 403, "code": "SafeModeException"}, "store-failed", "store"),
        ({"lost": True}, "store-unreachable", "why"),
    ],
)
def test_what_hdfs_refuses_has_a_name(landing: Landing, refusal: Refusal) -> None:
    """It says which key of infold.yml, which place, and what was said."""
    how, slug, said = refusal
    with landing.hdfs.rule("GET", "", **how), pytest.raises(InfoldError) as refused:
        landing.files()
    assert refused.value.slug == slug
    facts = dict(refused.value.facts)
    assert facts["key"] == "storage_options of the target"
    assert facts["at"] == f"{landing.base}/in"
    assert how.get("code", "127.0.0.1") in facts[said]


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"endpoint": "http://no-such-host.invalid:9870"}, "store-unreachable"),
        ({"endpoint": "http://{authority}"}, "store-no-webhdfs"),
        ({"user": "eve"}, "store-access-denied"),
        ({"user": "no user!"}, "store-failed"),
    ],
)
def test_a_declaration_that_does_not_fit(
    landing: Landing, options: dict[str, str], slug: str
) -> None:
    """A port where nobody listens, or no HTTP server, and somebody who has no right."""
    file = landing.project.root / "infold.yml"
    declared = yaml.safe_load(file.read_text(encoding="utf-8"))
    given = {key: text.format(authority=landing.hdfs.authority) for key, text in options.items()}
    for target in declared["targets"].values():
        target["storage_options"] |= given
    file.write_text(yaml.safe_dump(declared), encoding="utf-8")
    with landing.hdfs.forbidding(f"{landing.base}/landing", 0o700):
        done = landing.shop("plan", code=1 if slug != "store-two-ways" else 2)
    assert slug in done


def test_doctor_finds_a_right_that_is_missing(landing: Landing) -> None:
    """Of a warehouse: to write."""
    warehouse = f"{landing.base}/warehouse"
    places.try_out(warehouse)
    assert [*places.names(warehouse)] == []
    with landing.hdfs.forbidding(warehouse, 0o500), pytest.raises(InfoldError) as refused:
        places.try_out(warehouse)
    assert refused.value.slug == "store-access-denied"
    assert "access=WRITE" in dict(refused.value.facts)["store"]


def test_a_folder_that_may_not_be_read(landing: Landing) -> None:
    """It is an error, and never passed over; so is a file."""
    landing.put("in/a/1.json")
    url = landing.put("in/b/2.json")
    files = landing.files("in/*/*.json")
    stores = landing.project.target.stores
    with landing.hdfs.forbidding(f"{landing.base}/in/b", 0o000):
        with pytest.raises(InfoldError, match="store-access-denied"):
            landing.files("in/*/*.json")
        with pytest.raises(InfoldError, match="store-access-denied"):
            landing.changed(*files)
    with landing.hdfs.forbidding(url, 0o200), pytest.raises(InfoldError) as refused:
        source_file(landing.project.root, files[1], stores).raw().read()
    assert refused.value.slug == "store-access-denied"


def test_content_that_cannot_be_reached(landing: Landing) -> None:
    """The NameNode answers, and no DataNode has the file."""
    landing.put("in/a.json", b"abc")
    (file,) = landing.files()
    opened = source_file(landing.project.root, file, landing.project.target.stores)
    stopped = landing.hdfs.cluster.stopDataNode(0)
    try:
        with pytest.raises(InfoldError) as failed:
            opened.raw().read()
        assert failed.value.slug in {"store-unreachable", "store-failed"}
    finally:
        landing.hdfs.cluster.restartDataNode(stopped, True)
        landing.hdfs.cluster.waitActive()
    assert opened.raw().read() == b"abc"
