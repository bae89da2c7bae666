"""The contract of stores, without Spark, and what only HDFS and stores of S3's protocol do."""

from __future__ import annotations

import json
import re
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyiceberg.io import load_file_io
from tests.docs.pages import DOCS, code
from tests.lake.conftest import TABLES
from tests.servers.azure_store import HOST, KEY, AzureStore
from tests.servers.google_store import GoogleStore, key_of
from tests.servers.hdfs import Hdfs
from tests.servers.moved import Landing, retarget
from tests.servers.object_store import ObjectStore
from tests.servers.store_server import StoreServer

from infold.cli import cli
from infold.core.object_store import split
from infold.lake.iceberg.sql_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading.listing import list_files
from infold.lake.stores import places
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers

LISTS = r"list-type|comp=list|op=(LIST|GET)"
"""How a request is told that lists, in each protocol."""

OBJECTS = ["object_store", "google_store", "azure_store"]


@pytest.fixture
def landing(store: StoreServer, tmp_path: Path) -> Landing:
    """A bucket of its own in each of the stores."""
    return Landing(store, tmp_path / "shop")


NAMES = (
    *("in/a.json", "in/a.json.gz", "in/b.json", "in/_c.json", "in/.d.json", "in/x.csv"),
    *("in/dt=2024-01-01/c d.json", "in/dt=2024-01-02/é.json", "in/_dt=2024-01-03/e.json"),
    *("in/dt=2024-01-02/deep/er/f.json", "inner/g.json", "in/a%20b+c.json", "in/#?&=;.json"),
    "in/[x] {y},'z'.json",
)
PATTERNS = (
    *("in/*.json", "in/[ab].json", "in/b.json", "in/dt=2024-*/*.json", "in/**/*.json"),
    *("in/dt=2024-01-02", "in/none-*", "in/* *", "in/*%*", "in/**/deep/*/*"),
)


def test_a_pattern_means_what_it_means_for_files(landing: Landing, tmp_path: Path) -> None:
    """Objects are listed as files of the same names on a disk, and read by them."""
    for name in NAMES:
        landing.put(name)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    landing.store.make_folder(landing.shop.bucket, "in/dt=2024-01-04")
    here = replace(landing.project, root=tmp_path)
    for pattern in PATTERNS:
        source = replace(here.sources["raw.clicks"], path=pattern)
        local = [file.path for file in list_files(here, source, 0)[0]]
        assert sorted(landing.names(pattern)) == sorted(local), pattern
    for file in landing.files("in/**/*"):
        assert landing.opened(file).raw().read() == b"x"


def test_dated_folders_are_left_out(landing: Landing) -> None:
    """Names of folders are one request, and each folder that is listed is one."""
    for name in ("dt=2024-01-01/a", "dt=2024-01-02/a", "dt=2024-01-03/a"):
        landing.put(f"in/{name}.json")
    whole = landing.without("in/dt={date}/*.json").files
    landing.store.seen.clear()

    listed = landing.without("in/dt={date}/*.json", "in/dt=2024-01-02", "in/dt=2023-01-01")

    assert landing.store.seen == {"GET": 1 + 2}
    out = f"{landing.base}/in/dt=2024-01-02"
    assert list(listed.files) == [file for file in whole if not file.path.startswith(out)]
    assert (len(whole), listed.folders, listed.left_out) == (3, 2, frozenset({out}))


@pytest.mark.parametrize("store", ["object_store", "google_store", "hdfs"], indirect=True)
def test_an_empty_folder_is_there(landing: Landing) -> None:
    """One that is not there is an error; nothing may have been delivered yet."""
    assert "nothing" in str(landing.refused("nothing/*.json"))
    landing.store.make_folder(landing.shop.bucket, "nothing")
    assert landing.files("nothing/*.json") == []
    assert not landing.without("nothing/dt={date}/*.json").files


def test_another_content_has_another_mark(landing: Landing) -> None:
    """In a listing, in a look at one object, and for whoever is reading the earlier one."""
    url = landing.put("in/a b.json", b"0123456789")
    landing.put("in/c.json")
    before = first, _ = landing.files()
    part = landing.opened(first).arrow_file()
    assert (part.seek(4), part.read(3)) == (4, b"456")
    assert landing.changed(*before) == []
    assert landing.files() == before

    landing.put("in/a b.json", b"9876543210")

    now, _ = landing.files()
    assert now.fingerprint != first.fingerprint
    assert landing.changed(*before) == [url]
    with pytest.raises(ReplacedError):
        part.read(2)
    landing.store.delete(url)
    assert landing.changed(now) == [url]
    assert not landing.opened(now).exists()


def test_folders_of_tables(landing: Landing) -> None:
    """Names, sizes, what is missing, deletion, and what is inside of what."""
    a_folder_of_a_table(landing)


def test_folders_of_tables_in_an_account_with_real_folders(
    azure_store: AzureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same: those are deleted once they are empty."""
    monkeypatch.setattr(azure_store, "hierarchy", True)
    a_folder_of_a_table(Landing(azure_store, tmp_path / "shop"))


def a_folder_of_a_table(landing: Landing) -> None:
    """A table with two files, and another one whose name begins as its name."""
    folder, other = f"{landing.base}/w/a", f"{landing.base}/w/ab/data/1"
    for name, content in (("a/data/d=1/x", b"1"), ("a/metadata/m", b"22"), ("ab/data/1", b"3")):
        places.write(f"{landing.base}/w/{name}", content)
    store, bucket = landing.store, landing.shop.bucket
    if isinstance(store, AzureStore):  # as Spark's connector makes them
        for name in ("w", "w/a", "w/a/data", "w/a/data/d=1", "w/a/metadata"):
            store.make_folder(bucket, name)
    found = {name: size for name, size in places.sizes(folder) if size}
    assert found == {"data/d=1/x": 1, "metadata/m": 2}
    assert {*places.names(folder)} == {"data", "metadata"}
    lost = f"{folder}/data/2"
    assert places.missing([f"{folder}/data/d=1/x", lost, other]) == (lost,)
    assert places.is_inside(f"{folder}/data/d=1/x".replace("s3:", "s3a:"), folder)
    assert not places.is_inside(other, folder)
    places.delete_folder(folder)
    assert not places.is_folder(folder)
    assert {*places.names(f"{landing.base}/w")} == {"ab"}
    if isinstance(store, AzureStore):
        assert not [one for one in store.objects(bucket) if f"{one}/".startswith("w/a/")]


def test_what_is_written_is_there_as_a_whole(landing: Landing) -> None:
    """In place of another one; a big one in parts. Of those to be deleted some may be gone."""
    at = f"{landing.base}/out/a b%+.csv"
    content = bytes(range(256)) * 4096 * 12
    for one in (content, b"two"):
        places.write(at, one)
        assert places.read(at) == one
    assert list(places.sizes(f"{landing.base}/out")) == [("a b%+.csv", 3)]
    landing.put("out/z")
    urls = [f"{landing.base}/out/{name}" for name in ("a b%+.csv", "none", "z")]
    landing.store.bucket(split(landing.base)[0]).delete([split(url)[1] for url in urls])
    assert list(places.file_names(f"{landing.base}/out")) == []


@pytest.mark.parametrize("store", ["google_store", "azure_store", "hdfs"], indirect=True)
def test_a_file_of_a_table(landing: Landing) -> None:
    """As pyiceberg reads it by infold: from anywhere, of one version, or it is not there."""
    at = f"{landing.base}/w/a"
    places.write(at, b"0123456789")
    files = load_file_io(dict(places.properties(at)), at)
    found = files.new_input(at)
    with found.open() as opened:
        assert (len(found), opened.seek(2), opened.read(3)) == (10, 2, b"234")
        assert (opened.seek(-2, 2), opened.read()) == (8, b"89")
        assert opened.read() == b""
        opened.seek(0)
        places.write(at, b"9876543210")
        with pytest.raises(ReplacedError):
            opened.read(1)
    gone = files.new_input(f"{at}b")
    assert (found.exists(), gone.exists()) == (True, False)
    with pytest.raises(FileNotFoundError):
        gone.open()


@pytest.mark.usefixtures("short_pauses")
def test_what_passes_is_asked_again(landing: Landing) -> None:
    """A store that is busy, fails now and then, or cuts connections, costs time and no more."""
    landing.put("in/a.json", b"abc" * 1000)
    (file,) = landing.files()
    passes: list[dict[str, Any]] = [{"status": 503, "code": "SlowDown"}, {"cut": True}]
    in_hdfs = isinstance(landing.store, Hdfs)
    passes.append(
        {"status": 403, "code": "RetriableException"}
        if in_hdfs
        else {"status": 500, "code": "InternalError"}
    )
    for how in passes:
        with landing.store.rule("GET", LISTS, times=2, **how) as rule:
            assert landing.files() == [file]
            assert rule.times == 0
    if not in_hdfs:  # whose files do not come from where one is asked
        with landing.store.rule("GET", r"a(\.|%2E)json", cut=True, times=1) as rule:
            assert landing.opened(file).raw().read() == b"abc" * 1000
            assert rule.times == 0


Refusal = tuple[dict[str, Any], str]
OF_ALL: list[Refusal] = [
    ({"status": 403, "code": "AccessDenied"}, "store-access-denied"),
    ({"status": 403, "code": "AuthorizationPermissionMismatch"}, "store-access-denied"),
    ({"status": 403, "code": "AuthenticationFailed"}, "store-credentials-refused"),
    ({"status": 401, "code": "AuthenticationRequired"}, "store-credentials-refused"),
    ({"status": 404, "code": "NoSuchBucket"}, "store-bucket-missing"),
    ({"status": 404, "code": "ContainerNotFound"}, "store-bucket-missing"),
    ({"status": 503, "code": "ServerBusy"}, "store-failed"),
]
REFUSED: dict[str, list[Refusal]] = {
    "s3": [
        ({"status": 403, "code": "AccessDenied"}, "store-access-denied"),
        ({"status": 403, "code": "InvalidAccessKeyId"}, "store-credentials-refused"),
        ({"status": 400, "code": "ExpiredToken"}, "store-credentials-refused"),
        ({"status": 301, "code": "PermanentRedirect"}, "store-wrong-region"),
        ({"status": 400, "code": "AuthorizationHeaderMalformed"}, "store-wrong-region"),
        ({"status": 404, "code": "NoSuchBucket"}, "store-bucket-missing"),
        ({"status": 503, "code": "SlowDown"}, "store-failed"),
        ({"cut": True}, "store-failed"),
    ],
    "gs": OF_ALL,
    "abfss": OF_ALL,
    "hdfs": [
        ({"status": 403, "code": "AccessControlException"}, "store-access-denied"),
        ({"status": 403, "code": "StandbyException"}, "store-standby"),
        ({"status": 401, "code": "AuthenticationException"}, "not-supported-yet"),
        ({"status": 403, "code": "SafeModeException"}, "store-failed"),
        ({"lost": True}, "store-unreachable"),
    ],
}


@pytest.mark.usefixtures("short_pauses")
def test_what_a_store_refuses_has_a_name(landing: Landing) -> None:
    """It says which key of infold.yml, which place, and what the store said."""
    landing.put("in/a.json")
    for how, slug in REFUSED[landing.store.scheme]:
        with landing.store.rule("GET", LISTS, **how) as rule:
            error = landing.refused()
        assert (error.slug, rule.met > 0) == (slug, True), how
        facts = dict(error.facts)
        assert facts["key"] == "storage_options of the target"
        assert facts["at"] == f"{landing.base}/in"
        if "code" in how:
            assert how["code"] in facts["store"] or "region" in facts["store"]


@pytest.mark.parametrize("store", OBJECTS, indirect=True)
def test_a_bucket_that_is_not_there(landing: Landing) -> None:
    """By the server's own word."""
    in_azure = f"@{HOST}" if isinstance(landing.store, AzureStore) else ""
    landing.base = landing.store.url_of(f"no-such-bucket{in_azure}")
    assert landing.refused().slug == "store-bucket-missing"


NOBODY = {"endpoint": "http://127.0.0.1:1"}
Wrong = tuple[dict[str, Any], Callable[[str], str], str]


def same(_: str) -> str:
    """The key as it is."""
    return KEY


WRONG: dict[str, list[Wrong]] = {
    "s3": [
        (NOBODY, same, "store-unreachable"),
        ({"access_key_id": "nobody"}, same, "store-credentials-refused"),
        ({"secret_access_key": "wrong"}, same, "store-credentials-refused"),
        (
            {"access_key_id": "", "secret_access_key": "", "profile": "none"},
            same,
            "store-profile",
        ),
        ({"secret_access_key": "${env:NOT_THERE}"}, same, "secret-missing"),
    ],
    "gs": [
        (NOBODY, key_of, "store-unreachable"),
        ({}, lambda url: key_of(url, "another"), "store-credentials-refused"),
        ({}, lambda url: key_of(url).replace("BEGIN", "END"), "store-credentials-refused"),
        ({}, lambda _: "", "secret-missing"),
        ({}, lambda _: "no JSON", "store-profile"),
        ({}, lambda _: '{"type": "authorized_user"}', "store-profile"),
        ({}, lambda _: '{"type": "service_account"}', "store-profile"),
    ],
    "abfss": [
        (NOBODY, same, "store-unreachable"),
        ({}, lambda _: "AAAA", "store-credentials-refused"),
        ({}, lambda _: "no base64", "store-credentials-refused"),
        ({}, lambda _: "", "secret-missing"),
    ],
}


@pytest.mark.parametrize("store", OBJECTS, indirect=True)
def test_a_declaration_that_does_not_fit(landing: Landing, monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that is none, a wrong key, one that is none; and no part of it is shown."""
    target = landing.project.target
    for options, key, slug in WRONG[landing.store.scheme]:
        monkeypatch.setenv("GOOGLE_KEY", key(landing.store.url))
        monkeypatch.setenv("AZURE_KEY", key(landing.store.url))
        common = replace(target.stores.common, **options)
        stores = replace(target.stores, common=common)
        landing.project = replace(landing.project, target=replace(target, stores=stores))
        error = landing.refused()
        assert error.slug == slug, options
        assert "PRIVATE" not in str(error)


def test_googles_key_of_the_environment(
    google_store: GoogleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that Google's own tools read, where infold.yml names no key."""
    landing = Landing(google_store, tmp_path / "shop", service_account_key="")
    assert landing.refused().slug == "store-profile"
    file = tmp_path / "key.json"
    file.write_text(key_of(google_store.url), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert len(landing.files("landing/clicks/*.json")) == 2


def test_amazons_keys_of_the_environment(
    object_store: ObjectStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys, endpoint and region may come from where the AWS tools have them."""
    none = {"endpoint": "", "access_key_id": "", "secret_access_key": ""}
    landing = Landing(object_store, tmp_path / "shop", **none, profile="shop")
    landing.put("in/a.json")
    user, secret = "tester", "s3cret/Key+1"
    (tmp_path / "credentials").write_text(
        f"[shop]\naws_access_key_id = {user}\naws_secret_access_key = {secret}\n"
    )
    (tmp_path / "config").write_text(f"[profile shop]\nendpoint_url = {object_store.url}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    assert landing.names() == ["in/a.json"]

    target = landing.project.target
    stores = replace(target.stores, common=replace(target.stores.common, profile=""))
    landing.project = replace(landing.project, target=replace(target, stores=stores))
    monkeypatch.setenv("AWS_ENDPOINT_URL", object_store.url)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    assert landing.names() == ["in/a.json"]


def test_doctor_finds_a_right_that_is_missing(landing: Landing) -> None:
    """Of a warehouse: to write, to list, to read and to delete, each alone."""
    in_hdfs = isinstance(landing.store, Hdfs)
    code = "AccessControlException" if in_hdfs else "AuthorizationPermissionMismatch"
    warehouse = f"{landing.base}/warehouse"
    places.try_out(warehouse)
    deletes = "POST|DELETE" if isinstance(landing.store, ObjectStore) else "DELETE"
    for method, path in (("PUT", ""), ("GET", LISTS), ("GET", "doctor"), (deletes, "")):
        with (
            landing.store.rule(method, path, status=403, code=code),
            pytest.raises(InfoldError) as refused,
        ):
            places.try_out(warehouse)
        assert refused.value.slug == "store-access-denied"
        assert {key for key, _ in refused.value.facts} == {"key", "at", "store"}


@pytest.fixture
def in_hdfs(hdfs: Hdfs, tmp_path: Path) -> Landing:
    """An empty folder beside the starter's."""
    return Landing(hdfs, tmp_path / "shop")


def test_what_a_listing_costs(in_hdfs: Landing) -> None:
    """A request for each folder, and one more for each page of a big one."""
    for number in range(45):
        in_hdfs.put(f"in/big/{number:02}.json")
    for name in ("in/a/1.json", "in/a/b/1.json"):
        in_hdfs.put(name)
    in_hdfs.store.seen.clear()
    assert len(in_hdfs.files("in/**/*.json")) == 47
    assert in_hdfs.store.seen == {"GET": 1 + 3 + 1 + 1}


def test_a_file_that_is_being_put(in_hdfs: Landing, hdfs: Hdfs) -> None:
    """It is not there until it has its name."""
    url = in_hdfs.put("in/a.json._COPYING_")
    assert in_hdfs.names("in/*") == []
    hdfs.own_files.rename(hdfs.path_of(url), hdfs.path_of(url.removesuffix("._COPYING_")))
    assert in_hdfs.names("in/*") == ["in/a.json"]


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
def test_a_change_in_hdfs_has_another_mark(
    in_hdfs: Landing, hdfs: Hdfs, change: Callable[[Hdfs, str], None]
) -> None:
    """In a listing, in a look at one file, and for whoever is reading the earlier one."""
    url = in_hdfs.put("in/a.json", b"0123456789")
    (first,) = in_hdfs.files()
    part = in_hdfs.opened(first).arrow_file()
    assert part.read(3) == b"012"

    change(hdfs, url)

    (now,) = in_hdfs.files()
    assert now.fingerprint != first.fingerprint
    assert in_hdfs.changed(first) == [url]
    with pytest.raises(ReplacedError):
        part.read(2)
    assert in_hdfs.changed(now) == []


def test_a_file_that_went(in_hdfs: Landing, hdfs: Hdfs) -> None:
    """It is gone under its name, and there under the one that it was given."""
    url = in_hdfs.put("in/a.json", b"0123456789")
    (first,) = in_hdfs.files()
    hdfs.files.rename(hdfs.path_of(url), hdfs.path_of(f"{in_hdfs.base}/in/b.json"))
    assert in_hdfs.names() == ["in/b.json"]
    assert in_hdfs.changed(first) == [url]
    with pytest.raises(FileNotFoundError):
        in_hdfs.opened(first).raw().read()


def test_what_cannot_be_written_leaves_nothing(in_hdfs: Landing) -> None:
    """A folder has the name."""
    places.write(f"{in_hdfs.base}/out/a", b"one")
    with pytest.raises(InfoldError):
        places.write(f"{in_hdfs.base}/out", b"two")
    assert {*places.names(in_hdfs.base)} == {"landing", "out"}


def test_an_answer_that_is_lost(in_hdfs: Landing) -> None:
    """What is asked once more finds done what it asks for."""
    at = f"{in_hdfs.base}/out/a"
    for what in ("CREATE", "RENAME", "DELETE"):
        with in_hdfs.store.rule("PUT|DELETE", f"op={what}", lost=True, times=1) as lost:
            places.write(at, what.encode())
            assert places.read(at) == what.encode()
            places.delete(at)
        assert lost.times == 0
    assert [*places.names(f"{in_hdfs.base}/out")] == []


@pytest.mark.usefixtures("short_pauses")
def test_a_declaration_that_does_not_fit_hdfs(in_hdfs: Landing, hdfs: Hdfs) -> None:
    """A port where nobody listens, or no HTTP server, and somebody who has no right."""
    wrong = {
        "store-unreachable": {"endpoint": "http://no-such-host.invalid:9870"},
        "store-no-webhdfs": {"endpoint": f"http://{hdfs.authority}"},
        "store-access-denied": {"user": "eve"},
        "store-failed": {"user": "no user!"},
    }
    for slug, options in wrong.items():
        places.forget_ways()
        retarget(in_hdfs.shop.root, {"storage_options": hdfs.options | options})
        with hdfs.forbidding(f"{in_hdfs.base}/landing", 0o700):
            assert slug in in_hdfs.shop("plan", code=1)


def test_a_folder_that_may_not_be_read(in_hdfs: Landing, hdfs: Hdfs) -> None:
    """It is an error, and never passed over; so is a file."""
    in_hdfs.put("in/a/1.json")
    url = in_hdfs.put("in/b/2.json")
    files = in_hdfs.files("in/*/*.json")
    with hdfs.forbidding(f"{in_hdfs.base}/in/b", 0o000):
        assert in_hdfs.refused("in/*/*.json").slug == "store-access-denied"
        with pytest.raises(InfoldError, match="store-access-denied"):
            in_hdfs.changed(*files)
    with hdfs.forbidding(url, 0o200), pytest.raises(InfoldError) as refused:
        in_hdfs.opened(files[1]).raw().read()
    assert refused.value.slug == "store-access-denied"


def test_content_that_cannot_be_reached(in_hdfs: Landing, hdfs: Hdfs) -> None:
    """The NameNode answers, and no DataNode has the file."""
    in_hdfs.put("in/a.json", b"abc")
    (file,) = in_hdfs.files()
    opened = in_hdfs.opened(file)
    stopped = hdfs.cluster.stopDataNode(0)
    try:
        with pytest.raises(InfoldError) as failed:
            opened.raw().read()
        assert failed.value.slug in {"store-unreachable", "store-failed"}
    finally:
        hdfs.cluster.restartDataNode(stopped, True)
        hdfs.cluster.waitActive()
    assert opened.raw().read() == b"abc"


@pytest.fixture
def in_amazon(object_store: ObjectStore, tmp_path: Path) -> Landing:
    """A bucket of its own."""
    return Landing(object_store, tmp_path / "shop")


def test_the_same_bytes_are_the_same_object(in_amazon: Landing) -> None:
    """Whenever they were written; where that time is a column they are other rows."""
    in_amazon.put("in/a.json", b"1")
    (first,), (timed,) = in_amazon.files(), in_amazon.files(file_time_column="at")
    time.sleep(1.1)  # the time of an object has whole seconds
    in_amazon.put("in/a.json", b"1")
    (same,), (other,) = in_amazon.files(), in_amazon.files(file_time_column="at")
    assert same.fingerprint == first.fingerprint
    assert same.modified_at > first.modified_at
    assert in_amazon.changed(same) == []
    assert in_amazon.changed(first) == [first.path], "it was replaced"
    assert other.fingerprint != timed.fingerprint


def test_names_that_spark_does_not_read(in_amazon: Landing) -> None:
    """They are errors, and never passed over."""
    in_amazon.put("in/a:b.json")
    assert "cannot be read by Spark" in str(in_amazon.refused())
    in_amazon.put("at/_a.json")
    assert in_amazon.names("at/*.json") == []
    assert "cannot be read by Spark" in str(in_amazon.refused("at/_*.json"))


def test_views_for_readers(in_amazon: Landing, tmp_path: Path) -> None:
    """Their metadata is in the store; old versions and those of dropped tables are deleted."""
    with closing(sqlite3.connect(catalog_db := tmp_path / "views.db")) as catalog:
        catalog.execute(TABLES)
    lake = IcebergLake(sqlite_catalog(catalog_db), "shop", f"{in_amazon.base}/w")
    table = f"{in_amazon.base}/w/shop/daily/metadata/1.metadata.json"
    for columns in (["day"], ["day", "n"], ["day", "n", "m"]):
        fields = [{"id": at, "name": name, "type": "long"} for at, name in enumerate(columns)]
        schema = {"schema-id": 0, "fields": fields}
        places.write(table, json.dumps({"current-schema-id": 0, "schemas": [schema]}).encode())
        with closing(sqlite3.connect(catalog_db)) as catalog, catalog:
            catalog.execute(
                "INSERT OR REPLACE INTO iceberg_tables"
                " VALUES ('infold', 'shop', 'daily', ?, NULL, 'TABLE')",
                (table,),
            )
        assert lake.refresh_views(["daily"]) == []

    location = lake.catalog.locations("shop_views")["daily"]
    folder = places.folder_of(location)
    assert folder.startswith(f"{in_amazon.base}/w/shop_views/daily__")
    assert len([*places.file_names(folder)]) == 2
    assert b"SELECT `day`, `n`, `m` FROM" in places.read(location)
    lake.refresh_views([])
    assert not places.is_folder(folder)


def with_options(declared: str, options: str) -> str:
    """A project whose target reaches its stores in another way."""
    indented = "".join(f"    {line}\n" for line in options.splitlines())
    return declared[: declared.index("    storage_options")] + indented


def test_what_the_page_declares(tmp_path: Path) -> None:
    """`check` accepts the projects of the page, each with the options for its store."""
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    s3, profile, google, azure, hdfs = code(DOCS / "object-stores.md", "yaml")
    in_azure = re.sub("gs://(landing|lake)", r"abfss://\1@shop.dfs.core.windows.net", google)
    (tmp_path / "shop" / "models" / "daily.sql").unlink()
    (tmp_path / "shop" / "models" / "sessions.sql").unlink()
    clicks = tmp_path / "shop" / "models" / "clicks.sql"
    clicks.write_text(clicks.read_text().replace(", amount", ""))
    for text in (s3, with_options(s3, profile), google, with_options(in_azure, azure), hdfs):
        (tmp_path / "shop" / "infold.yml").write_text(f"name: shop\n{text}")
        done = CliRunner().invoke(cli, ["-C", str(tmp_path / "shop"), "check"])
        assert done.exit_code == 0, done.output
