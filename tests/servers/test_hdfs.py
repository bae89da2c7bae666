"""What only HDFS does, without Spark; what all stores do is in ``test_stores``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.servers.hdfs import Hdfs
from tests.servers.in_store import Landing
from tests.servers.moved import retarget

from infold.lake.stores import places
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


@pytest.fixture
def landing(hdfs: Hdfs, tmp_path: Path) -> Iterator[Landing]:
    """An empty folder beside the starter's."""
    yield Landing(hdfs, tmp_path / "shop")
    places.forget_ways()


def test_what_a_listing_costs(landing: Landing) -> None:
    """A request for each folder, and one more for each page of a big one."""
    for number in range(45):
        landing.put(f"in/big/{number:02}.json")
    for name in ("in/a/1.json", "in/a/b/1.json"):
        landing.put(name)
    landing.store.seen.clear()
    assert len(landing.files("in/**/*.json")) == 47
    assert landing.store.seen == {"GET": 1 + 3 + 1 + 1}


def test_an_empty_folder_of_dated_ones(landing: Landing, hdfs: Hdfs) -> None:
    """Nothing may have been delivered yet."""
    hdfs.make_folder(landing.shop.bucket, "nothing")
    assert not landing.without("nothing/dt={date}/*.json").files


def test_a_file_that_is_being_put(landing: Landing, hdfs: Hdfs) -> None:
    """It is not there until it has its name."""
    url = landing.put("in/a.json._COPYING_")
    assert landing.names("in/*") == []
    hdfs.own_files.rename(hdfs.path_of(url), hdfs.path_of(url.removesuffix("._COPYING_")))
    assert landing.names("in/*") == ["in/a.json"]


def replaced(hdfs: Hdfs, url: str) -> None:
    """The same bytes once more, at the same time: another file has the name."""
    time = hdfs.status(url).getModificationTime()
    hdfs.put(other := f"{url}-other", b"0123456789")
    hdfs.files.setTimes(hdfs.path_of(other), time, -1)
    hdfs.files.delete(hdfs.path_of(url), False)
    hdfs.files.rename(hdfs.path_of(other), hdfs.path_of(url))


def appended(hdfs: Hdfs, url: str) -> None:
    """More bytes, and the time is put back."""
    time = hdfs.status(url).getModificationTime()
    hdfs.append(url, b"more")
    hdfs.files.setTimes(hdfs.path_of(url), time, -1)


def cut_and_filled(hdfs: Hdfs, url: str) -> None:
    """Its end is another one, of the same length: its time is later."""
    assert hdfs.files.truncate(hdfs.path_of(url), 0)
    hdfs.append(url, b"9876543210")


def touched(hdfs: Hdfs, url: str) -> None:
    """Another time, be it earlier: whether the content is the same is not known."""
    hdfs.files.setTimes(hdfs.path_of(url), 1_000, -1)


@pytest.mark.parametrize("change", [replaced, appended, cut_and_filled, touched])
def test_another_content_has_another_mark(
    landing: Landing, hdfs: Hdfs, change: Callable[[Hdfs, str], None]
) -> None:
    """In a listing, in a look at one file, and for whoever is reading the earlier one."""
    url = landing.put("in/a.json", b"0123456789")
    (first,) = landing.files()
    part = landing.opened(first).arrow_file()
    assert part.read(3) == b"012"

    change(hdfs, url)

    (now,) = landing.files()
    assert now.fingerprint != first.fingerprint
    assert landing.changed(first) == [url]
    with pytest.raises(ReplacedError):
        part.read(2)
    assert landing.changed(now) == []


def test_a_file_that_went(landing: Landing, hdfs: Hdfs) -> None:
    """It is gone under its name, and there under the one that it was given."""
    url = landing.put("in/a.json", b"0123456789")
    (first,) = landing.files()
    hdfs.files.rename(hdfs.path_of(url), hdfs.path_of(f"{landing.base}/in/b.json"))
    assert landing.names() == ["in/b.json"]
    assert landing.changed(first) == [url]
    with pytest.raises(FileNotFoundError):
        landing.opened(first).raw().read()


def test_what_cannot_be_written_leaves_nothing(landing: Landing) -> None:
    """A folder has the name."""
    places.write(f"{landing.base}/out/a", b"one")
    with pytest.raises(InfoldError):
        places.write(f"{landing.base}/out", b"two")
    assert {*places.names(landing.base)} == {"landing", "out"}


def test_an_answer_that_is_lost(landing: Landing) -> None:
    """What is asked once more finds done what it asks for."""
    at = f"{landing.base}/out/a"
    for what in ("CREATE", "RENAME", "DELETE"):
        with landing.store.rule("PUT|DELETE", f"op={what}", lost=True, times=1) as lost:
            places.write(at, what.encode())
            assert places.read(at) == what.encode()
            places.delete(at)
        assert lost.times == 0
    assert [*places.names(f"{landing.base}/out")] == []


def test_a_declaration_that_does_not_fit(landing: Landing, hdfs: Hdfs) -> None:
    """A port where nobody listens, or no HTTP server, and somebody who has no right."""
    wrong = {
        "store-unreachable": {"endpoint": "http://no-such-host.invalid:9870"},
        "store-no-webhdfs": {"endpoint": f"http://{hdfs.authority}"},
        "store-access-denied": {"user": "eve"},
        "store-failed": {"user": "no user!"},
    }
    for slug, options in wrong.items():
        places.forget_ways()
        retarget(landing.shop.root, {"storage_options": hdfs.options | options})
        with hdfs.forbidding(f"{landing.base}/landing", 0o700):
            assert slug in landing.shop("plan", code=1)


def test_doctor_finds_a_right_that_is_missing(landing: Landing, hdfs: Hdfs) -> None:
    """Of a warehouse: to write."""
    warehouse = f"{landing.base}/warehouse"
    places.try_out(warehouse)
    assert [*places.names(warehouse)] == []
    with hdfs.forbidding(warehouse, 0o500), pytest.raises(InfoldError) as refused:
        places.try_out(warehouse)
    assert refused.value.slug == "store-access-denied"
    assert "access=WRITE" in dict(refused.value.facts)["store"]


def test_a_folder_that_may_not_be_read(landing: Landing, hdfs: Hdfs) -> None:
    """It is an error, and never passed over; so is a file."""
    landing.put("in/a/1.json")
    url = landing.put("in/b/2.json")
    files = landing.files("in/*/*.json")
    with hdfs.forbidding(f"{landing.base}/in/b", 0o000):
        assert landing.refused("in/*/*.json").slug == "store-access-denied"
        with pytest.raises(InfoldError, match="store-access-denied"):
            landing.changed(*files)
    with hdfs.forbidding(url, 0o200), pytest.raises(InfoldError) as refused:
        landing.opened(files[1]).raw().read()
    assert refused.value.slug == "store-access-denied"


def test_content_that_cannot_be_reached(landing: Landing, hdfs: Hdfs) -> None:
    """The NameNode answers, and no DataNode has the file."""
    landing.put("in/a.json", b"abc")
    (file,) = landing.files()
    opened = landing.opened(file)
    stopped = hdfs.cluster.stopDataNode(0)
    try:
        with pytest.raises(InfoldError) as failed:
            opened.raw().read()
        assert failed.value.slug in {"store-unreachable", "store-failed"}
    finally:
        hdfs.cluster.restartDataNode(stopped, True)
        hdfs.cluster.waitActive()
    assert opened.raw().read() == b"abc"
