"""Sources in stores besides S3: listed, peeked into and read, and what is refused has a name."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from pyiceberg.io import load_file_io
from tests.servers.azure_store import HOST, KEY, AzureStore
from tests.servers.google_store import GoogleStore, key_of

from infold import api
from infold.api.spark_sessions import session
from infold.cli import cli
from infold.core.files import ListedFile
from infold.lake.reading.listing import list_files
from infold.lake.reading.object_listing import changed_objects
from infold.lake.reading.source_file import source_file
from infold.lake.stores import places
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError, InfoldErrors

pytestmark = pytest.mark.servers

Store = GoogleStore | AzureStore

EVENT = {"user_id": "ann", "event_ts": "2024-03-08T09:00:00", "url": "/", "amount": None}


class Shop:
    """The starter's project in a folder, with the files of its source in a bucket."""

    def __init__(self, store: Store, root: Path, **options: Any) -> None:
        self.store, self.root, self.bucket = store, root, store.new_bucket()
        assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
        for file in sorted((root / "landing" / "clicks").iterdir()):
            self.put(file.name, file.read_bytes())
        declared = yaml.safe_load((root / "infold.yml").read_text(encoding="utf-8"))
        declared["sources"]["raw.clicks"]["path"] = f"{self.base}/landing/clicks/*.json"
        for target in declared["targets"].values():
            given = store.options | options
            target["storage_options"] = {key: text for key, text in given.items() if text}
        (root / "infold.yml").write_text(yaml.safe_dump(declared), encoding="utf-8")

    @property
    def base(self) -> str:
        """The URL of the bucket."""
        return f"{self.store.scheme}://{self.bucket}"

    def put(self, name: str, content: bytes) -> None:
        """Have an object in the folder of the source."""
        self.store.put(f"{self.base}/landing/clicks/{name}", content)

    def put_events(self, name: str, *ids: str) -> None:
        """Have one with events."""
        lines = (json.dumps({"event_id": one} | EVENT) + "\n" for one in ids)
        self.put(name, "".join(lines).encode())

    def files(self, path: str = "landing/clicks/*.json") -> list[ListedFile]:
        """What a source with a path has."""
        project = api.open_project(self.root)
        source = replace(project.sources["raw.clicks"], path=f"{self.base}/{path}")
        return list(list_files(project, source, 0)[0])

    def __call__(self, *words: str, code: int = 0) -> str:
        """What a command prints."""
        done = CliRunner().invoke(cli, ["-C", str(self.root), *words])
        assert done.exit_code == code, done.output
        return done.output


@pytest.fixture(params=["google_store", "azure_store"])
def store(request: pytest.FixtureRequest) -> Store:
    """Each of the servers."""
    found: Store = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def shop(store: Store, tmp_path: Path) -> Shop:
    """Two files have arrived."""
    return Shop(store, tmp_path / "shop")


def test_objects_are_told_by_their_content(shop: Shop) -> None:
    """Whatever a listing and a look at one object call the ETag; a part is of its own version."""
    shop.put("a b.json", b"abcdef")
    project = api.open_project(shop.root)
    source = project.sources["raw.clicks"]
    before = shop.files()
    one = next(file for file in before if file.path.endswith("a b.json"))
    opened = source_file(shop.root, one, project.target.stores)
    assert len(before) == 3
    assert opened.raw().read() == b"abcdef"
    assert changed_objects(project, source, before) == []

    shop.put("a b.json", b"ghijkl")

    assert changed_objects(project, source, before) == [one.path]
    with pytest.raises(ReplacedError):
        opened.raw().read()
    now = {file.path: file.fingerprint for file in shop.files()}
    assert [file.path for file in before if now[file.path] != file.fingerprint] == [one.path]


def test_deleted_as_far_as_they_are_there(google_store: GoogleStore, tmp_path: Path) -> None:
    """One that is not there keeps none of the others."""
    shop = Shop(google_store, tmp_path / "shop")
    names = [f"landing/clicks/{name}.json" for name in ("x", "none", "y")]
    shop.put_events("x.json", "a")
    shop.put_events("y.json", "b")
    google_store.bucket(shop.bucket).delete(names)
    assert len(shop.files()) == 2


def test_folders_of_tables(shop: Shop) -> None:
    """Names, sizes, deletion."""
    _a_folder_of_a_table(shop)


def test_folders_of_tables_in_an_account_with_real_folders(
    azure_store: AzureStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same: those are deleted once they are empty."""
    monkeypatch.setattr(azure_store, "hierarchy", True)
    _a_folder_of_a_table(Shop(azure_store, tmp_path / "shop"))


def _a_folder_of_a_table(shop: Shop) -> None:
    places.use(api.open_project(shop.root))
    folder = f"{shop.base}/w/a"
    for name, content in (("a/data/d=1/x", b"1"), ("a/metadata/m", b"22"), ("ab/data/1", b"3")):
        places.write(f"{shop.base}/w/{name}", content)
    if isinstance(shop.store, AzureStore):  # as Spark's connector makes them
        objects = shop.store.containers[shop.bucket.partition("@")[0]]
        for name in ("w", "w/a", "w/a/data", "w/a/data/d=1", "w/a/metadata"):
            objects[name] = shop.store.new(folder=True)
    found = {name: size for name, size in places.sizes(folder) if size}
    assert found == {"data/d=1/x": 1, "metadata/m": 2}
    assert {*places.names(folder)} == {"data", "metadata"}
    lost = f"{folder}/data/2"
    assert places.missing([f"{folder}/data/d=1/x", lost, f"{shop.base}/w/ab/data/1"]) == (lost,)
    places.delete_folder(folder)
    assert not places.is_folder(folder)
    assert {*places.names(f"{shop.base}/w")} == {"ab"}
    if isinstance(shop.store, AzureStore):
        assert not [name for name in objects if name == "w/a" or name.startswith("w/a/")]


def test_a_big_export(shop: Shop) -> None:
    """It is written in parts, and is there as a whole."""
    places.use(api.open_project(shop.root))
    content = bytes(range(256)) * 4096 * 12
    places.write(f"{shop.base}/out/export", content)
    assert places.read(f"{shop.base}/out/export") == content


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", ""),
        ("GET", "list-type|comp=list"),
        ("GET", "doctor"),
        ("DELETE", ""),
    ],
)
def test_doctor_finds_a_right_that_is_missing(shop: Shop, method: str, path: str) -> None:
    """Of a warehouse: to write, to list, to read and to delete, each alone."""
    places.use(api.open_project(shop.root))
    places.try_out(f"{shop.base}/warehouse")
    with (
        shop.store.rule(method, path, status=403, code="AuthorizationPermissionMismatch"),
        pytest.raises(InfoldError) as refused,
    ):
        places.try_out(f"{shop.base}/warehouse")
    assert refused.value.slug == "store-access-denied"
    assert {key for key, _ in refused.value.facts} == {"key", "at", "store"}


def test_a_file_of_a_table(shop: Shop) -> None:
    """As pyiceberg reads it: from anywhere, of one version, or it is not there."""
    places.use(api.open_project(shop.root))
    at = f"{shop.base}/w/a"
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


def test_a_plan_looks_into_objects(shop: Shop) -> None:
    """Without a JVM, which days the rows of new ones are of."""
    assert "2 new files" in shop("plan")


LISTINGS = "list-type|comp=list"


@pytest.mark.parametrize(
    ("status", "code", "slug"),
    [
        (403, "AccessDenied", "store-access-denied"),
        (403, "AuthorizationPermissionMismatch", "store-access-denied"),
        (403, "AuthenticationFailed", "store-credentials-refused"),
        (401, "AuthenticationRequired", "store-credentials-refused"),
        (404, "NoSuchBucket", "store-bucket-missing"),
        (404, "ContainerNotFound", "store-bucket-missing"),
        (503, "ServerBusy", "store-failed"),
    ],
)
def test_what_a_store_refuses_has_a_name(shop: Shop, status: int, code: str, slug: str) -> None:
    """It says which key of infold.yml, which place, and what the store said."""
    with (
        shop.store.rule("GET", LISTINGS, status=status, code=code),
        pytest.raises(InfoldError) as refused,
    ):
        shop.files()
    assert refused.value.slug == slug
    facts = dict(refused.value.facts)
    assert facts["key"] == "storage_options of the target"
    assert facts["at"] == f"{shop.base}/landing/clicks"
    assert code in facts["store"]


def test_a_bucket_that_is_not_there(shop: Shop) -> None:
    """By the server's own word."""
    shop.bucket = "no-such-bucket" + (f"@{HOST}" if isinstance(shop.store, AzureStore) else "")
    with pytest.raises(InfoldError) as refused:
        shop.files()
    assert refused.value.slug == "store-bucket-missing"


Wrong = tuple[dict[str, Any], Callable[[str], str], str]
WRONG_OF_GOOGLE: list[Wrong] = [
    ({"endpoint": "http://127.0.0.1:1"}, key_of, "store-unreachable"),
    ({}, lambda url: key_of(url, "another"), "store-credentials-refused"),
    ({}, lambda url: key_of(url).replace("BEGIN", "END"), "store-credentials-refused"),
    ({}, lambda _: "", "secret-missing"),
    ({}, lambda _: "no JSON", "store-profile"),
    ({}, lambda _: '{"type": "authorized_user"}', "store-profile"),
    ({}, lambda _: '{"type": "service_account"}', "store-profile"),
]
WRONG_OF_AZURE: list[Wrong] = [
    ({"endpoint": "http://127.0.0.1:1"}, lambda _: KEY, "store-unreachable"),
    ({}, lambda _: "AAAA", "store-credentials-refused"),
    ({}, lambda _: "no base64", "store-credentials-refused"),
    ({}, lambda _: "", "secret-missing"),
]


@pytest.mark.parametrize(
    ("server", "wrong"),
    [
        *(("google_store", one) for one in WRONG_OF_GOOGLE),
        *(("azure_store", one) for one in WRONG_OF_AZURE),
    ],
)
def test_a_declaration_that_does_not_fit(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    server: str,
    wrong: Wrong,
) -> None:
    """An endpoint that is none, a wrong key, one that is none; and no part of it is shown."""
    store: Store = request.getfixturevalue(server)
    options, key, slug = wrong
    shop = Shop(store, tmp_path / "shop", **options)
    monkeypatch.setenv("GOOGLE_KEY", key(store.url))
    monkeypatch.setenv("AZURE_KEY", key(store.url))
    with pytest.raises(InfoldError) as refused:
        shop.files()
    assert refused.value.slug == slug
    assert "PRIVATE" not in str(refused.value)


def test_a_key_of_the_environment(
    google_store: GoogleStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file that Google's own tools read, where infold.yml names no key."""
    shop = Shop(google_store, tmp_path / "shop", service_account_key="")
    with pytest.raises(InfoldError) as refused:
        shop.files()
    assert refused.value.slug == "store-profile"
    file = tmp_path / "key.json"
    file.write_text(key_of(google_store.url), encoding="utf-8")
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(file))
    assert len(shop.files()) == 2


@pytest.fixture(scope="module")
def jvm(
    google_store: GoogleStore, azure_store: AzureStore, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[None]:
    """A JVM that has both connectors; that of other tests lacks them."""
    api.close()
    options = {"buckets": {azure_store.new_bucket(): azure_store.options}}
    session(
        api.open_project(Shop(google_store, tmp_path_factory.mktemp("a") / "s", **options).root)
    )
    yield
    api.close()


def run_fails(shop: Shop) -> InfoldError:
    """A run that fails; why."""
    with pytest.raises((InfoldError, InfoldErrors)) as failed:
        api.run(api.open_project(shop.root))
    return failed.value.each[0]


READS = "alt=media|timeout="
"""Of Spark: infold's own of Google's are of another protocol."""


@pytest.mark.spark
@pytest.mark.usefixtures("jvm")
def test_a_day_of_the_starter(shop: Shop) -> None:
    """It is run, shown and verified; what Spark is refused has a name, and is read afterwards."""
    shop("run")
    late = shop.root / "later" / "2024-03-10.json"
    shop.put("a b[1]{x},é+%20.json", late.read_bytes())
    assert "1 new file; 2 files as before" in shop("plan")
    with shop.store.rule("GET", READS, status=403, code="forbidden"):
        error = run_fails(shop)
        assert error.slug == "store-access-denied", str(error)
    shop("run")
    assert "equal a full rebuild" in shop("verify")
    shop.put_events("more.json", "c")
    with shop.store.rule("GET", READS, first=lambda: shop.put_events("more.json", "d", "e")):
        error = run_fails(shop)
        assert error.slug == "source-changed", str(error)
    shop("run")
    rows = shop("show", "clicks", "--columns", "event_id", "--where", "url = '/'", "--json")
    assert {"d", "e"} <= {json.loads(line)["event_id"] for line in rows.splitlines()}
    assert "equal a full rebuild" in shop("verify")
    assert "Nothing to do" in shop("run")
