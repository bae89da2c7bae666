"""Places in an object store without Spark: listings, what a store refuses, and where it fails."""

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
from tests.docs.pages import DOCS
from tests.docs.test_how_to import code
from tests.lake.conftest import TABLES
from tests.servers.object_store import ObjectStore
from tests.servers.store_gate import Rule
from tests.servers.store_server import move_to_store

from infold import api
from infold.cli import cli
from infold.core.files import ListedFile
from infold.core.formats import Format
from infold.core.project import Project
from infold.lake.iceberg.sqlite_catalog import sqlite_catalog
from infold.lake.iceberg.tables import IcebergLake
from infold.lake.reading.dated_folders import list_without
from infold.lake.reading.listing import list_files
from infold.lake.reading.object_listing import changed_objects
from infold.lake.reading.source_file import source_file
from infold.lake.stores import places
from infold.lake.stores.bucket import ReplacedError
from infold.messages.errors import InfoldError

pytestmark = pytest.mark.servers


@pytest.fixture
def catalog_db(tmp_path: Path) -> Path:
    """An empty catalog in a file."""
    path = tmp_path / "views.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(TABLES)
    return path


class Landing:
    """The starter's project, and what lies below ``in`` of a bucket of its own."""

    def __init__(self, store: ObjectStore, root: Path) -> None:
        self.store, self.bucket = store, store.new_bucket()
        assert CliRunner().invoke(cli, ["init", str(root)]).exit_code == 0
        move_to_store(root, store, self.bucket)
        self.project: Project = api.open_project(root)
        places.use(self.project)

    @property
    def base(self) -> str:
        """The URL of the bucket."""
        return f"s3://{self.bucket}"

    def put(self, name: str, content: bytes = b"x") -> None:
        """Have an object."""
        self.store.put(f"{self.base}/{name}", content)

    def files(self, path: str, now: int = 0, **how: Any) -> list[ListedFile]:
        """What a source with a path has."""
        source = replace(self.project.sources["raw.clicks"], path=f"{self.base}/{path}", **how)
        return list(list_files(self.project, source, now)[0])

    def names(self, path: str) -> list[str]:
        """The same, by names in the bucket."""
        return [file.path.removeprefix(f"{self.base}/") for file in self.files(path)]


@pytest.fixture
def landing(object_store: ObjectStore, tmp_path: Path) -> Landing:
    """An empty bucket."""
    return Landing(object_store, tmp_path / "shop")


def test_a_listing_that_is_cut(landing: Landing) -> None:
    """It is asked for again, and has each object once; one that is cut always is an error."""
    for n in range(3):
        landing.put(f"in/{n}.json")
    with landing.store.rule("GET", "list-type", cut=True, times=2) as cut:
        assert landing.names("in/*.json") == ["in/0.json", "in/1.json", "in/2.json"]
        assert {*places.names(f"{landing.base}/in")} == {"0.json", "1.json", "2.json"}
    assert cut.met == 2
    with landing.store.rule("GET", "list-type", cut=True), pytest.raises(InfoldError) as failed:
        landing.names("in/*.json")
    assert failed.value.slug == "store-failed"


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("in/*.json", ["in/a.json", "in/a.json.gz", "in/b.json"]),
        ("in/[ab].json", ["in/a.json", "in/a.json.gz", "in/b.json"]),
        ("in/b.json", ["in/b.json"]),
        ("in/dt=2024-*/*.json", ["in/dt=2024-01-01/c d.json", "in/dt=2024-01-02/é.json"]),
        (
            "in/**/*.json",
            [
                "in/a.json",
                "in/a.json.gz",
                "in/b.json",
                "in/dt=2024-01-01/c d.json",
                "in/dt=2024-01-02/deep/er/f.json",
                "in/dt=2024-01-02/é.json",
            ],
        ),
        ("in/dt=2024-01-02", ["in/dt=2024-01-02/deep/er/f.json", "in/dt=2024-01-02/é.json"]),
        ("in/none-*", []),
    ],
)
def test_a_pattern_means_what_it_means_for_files(
    landing: Landing, tmp_path: Path, pattern: str, expected: list[str]
) -> None:
    """Objects are listed as files in folders of the same names are."""
    names = [
        *("in/a.json", "in/a.json.gz", "in/b.json", "in/_c.json", "in/.d.json", "in/x.csv"),
        *("in/dt=2024-01-01/c d.json", "in/dt=2024-01-02/é.json", "in/_dt=2024-01-03/e.json"),
        *("in/dt=2024-01-02/deep/er/f.json", "inner/g.json"),
    ]
    for name in names:
        landing.put(name)
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    landing.store.put_marker(landing.bucket, "in/dt=2024-01-04")
    assert sorted(landing.names(pattern)) == sorted(expected)
    here = replace(landing.project, root=tmp_path)
    source = replace(here.sources["raw.clicks"], path=pattern)
    local = [file.path for file in list_files(here, source, 0)[0]]
    assert sorted(local) == sorted(expected)


def test_dated_prefixes_are_left_out(landing: Landing) -> None:
    """Names of prefixes are one request, and each prefix that is listed is one."""
    for name in ("2024-01-01", "2024-01-02", "2024-01-03"):
        landing.put(f"in/dt={name}/a.json")
    landing.put("in/z.json")
    path = f"{landing.base}/in/dt={{date}}/*.json"
    source = replace(landing.project.sources["raw.clicks"], path=path, full_listing="daily")
    whole, _ = list_files(landing.project, source, 0)
    out = f"{landing.base}/in/dt=2024-01-02"

    before = landing.store.seen["GET"]

    listed = list_without(landing.project, source, 0, {out, f"{landing.base}/in/dt=2023-01-01"})

    assert landing.store.seen["GET"] - before == 1 + 2
    assert list(listed.files) == [file for file in whole if not file.path.startswith(out)]
    assert (len(whole), listed.folders, listed.left_out) == (3, 2, frozenset({out}))


def test_an_object_is_told_by_its_content(landing: Landing) -> None:
    """The same bytes once more are the same object; others of the same length are not."""
    landing.put("in/a.json", b"1")
    (first,) = landing.files("in/*.json")
    time.sleep(1.1)  # the time of an object has whole seconds
    landing.put("in/a.json", b"1")
    (same,) = landing.files("in/*.json")
    assert same.fingerprint == first.fingerprint
    assert same.modified_at > first.modified_at
    source = landing.project.sources["raw.clicks"]
    assert changed_objects(landing.project, source, [same]) == []
    assert changed_objects(landing.project, source, [first]) == [first.path], "it was replaced"
    landing.put("in/a.json", b"2")
    (other,) = landing.files("in/*.json")
    assert other.fingerprint != first.fingerprint
    opened = source_file(landing.project.root, first, landing.project.target.stores)
    with pytest.raises(ReplacedError):
        opened.raw().read()
    landing.store.delete(first.path)
    assert changed_objects(landing.project, source, [other]) == [other.path]


def test_its_time_counts_where_it_is_a_column(landing: Landing) -> None:
    """Then the same bytes at another time are other rows."""
    landing.put("in/a.json", b"1")
    (first,) = landing.files("in/*.json", file_time_column="at")
    time.sleep(1.1)
    landing.put("in/a.json", b"1")
    (other,) = landing.files("in/*.json", file_time_column="at")
    assert other.fingerprint != first.fingerprint


def test_a_listing_has_pages(landing: Landing) -> None:
    """Of a thousand objects each, and all of them are there."""
    folder = landing.store.folder / landing.bucket / "in"
    folder.mkdir()
    for number in range(2_500):
        (folder / f"{number:05}.json").write_text("x")
    landing.store.seen.clear()
    assert len(landing.files("in/*.json")) == 2_500
    assert landing.store.seen["GET"] == 3


def test_a_listing_that_misses_a_fresh_object(landing: Landing) -> None:
    """Then it arrives with the next one."""
    landing.put("in/a.json")
    landing.put("in/fresh.json")
    with landing.store.rule("GET", "list-type", hide="fresh", times=1):
        assert landing.names("in/*.json") == ["in/a.json"]
        assert landing.names("in/*.json") == ["in/a.json", "in/fresh.json"]


def test_names_that_spark_does_not_read(landing: Landing) -> None:
    """They are errors, and never passed over."""
    landing.put("in/a:b.json")
    with pytest.raises(InfoldError, match="cannot be read by Spark"):
        landing.files("in/*.json")
    landing.put("at/_a.json")
    assert landing.names("at/*.json") == []
    with pytest.raises(InfoldError, match="cannot be read by Spark"):
        landing.files("at/_*.json")


def test_nothing_is_there(landing: Landing) -> None:
    """A path below which there is no object is an error; an empty object stands for a folder."""
    with pytest.raises(InfoldError, match="there is no object below the path"):
        landing.files("nothing/*.json")
    landing.store.put_marker(landing.bucket, "nothing")
    assert landing.files("nothing/*.json") == []


REFUSED: list[tuple[Callable[[Landing], Rule], str]] = [
    (lambda _: Rule("GET", "list-type", status=403, code="AccessDenied"), "store-access-denied"),
    (
        lambda _: Rule("GET", "list-type", status=403, code="InvalidAccessKeyId"),
        "store-credentials-refused",
    ),
    (
        lambda _: Rule("GET", "list-type", status=400, code="ExpiredToken"),
        "store-credentials-refused",
    ),
    (
        lambda _: Rule("GET", "list-type", status=301, code="PermanentRedirect"),
        "store-wrong-region",
    ),
    (
        lambda _: Rule("GET", "list-type", status=400, code="AuthorizationHeaderMalformed"),
        "store-wrong-region",
    ),
    (lambda _: Rule("GET", "list-type", status=404, code="NoSuchBucket"), "store-bucket-missing"),
    (lambda _: Rule("GET", "list-type", status=503, code="SlowDown"), "store-failed"),
]


@pytest.mark.parametrize(("rule", "slug"), REFUSED)
def test_what_a_store_refuses_has_a_name(
    landing: Landing, rule: Callable[[Landing], Rule], slug: str
) -> None:
    """It says which key of infold.yml, which place, and what the store said."""
    landing.put("in/a.json")
    landing.store.rules.append(made := rule(landing))
    try:
        with pytest.raises(InfoldError) as refused:
            landing.files("in/*.json")
    finally:
        landing.store.rules.remove(made)
    assert refused.value.slug == slug
    facts = dict(refused.value.facts)
    assert facts["key"] == "storage_options of the target"
    assert facts["at"] == f"{landing.base}/in"
    assert made.code in facts["store"] or "region" in facts["store"]


def test_what_passes_is_tried_again(landing: Landing) -> None:
    """A store that is busy or fails now and then, or cuts connections, costs time and no more."""
    landing.put("in/a.json", b"abc" * 1000)
    (file,) = landing.files("in/*.json")
    opened = source_file(landing.project.root, file, landing.project.target.stores)
    for how in ({"status": 503, "code": "SlowDown"}, {"status": 500, "code": "InternalError"}):
        with landing.store.rule("GET", "", times=2, **how) as rule:
            assert landing.files("in/*.json") == [file]
            assert rule.times == 0
    with landing.store.rule("GET", "a.json", cut=True, times=1) as rule:
        assert opened.raw().read() == b"abc" * 1000
        assert rule.times == 0


@pytest.mark.parametrize(
    ("options", "slug"),
    [
        ({"endpoint": "http://127.0.0.1:1"}, "store-unreachable"),
        ({"access_key_id": "nobody"}, "store-credentials-refused"),
        ({"secret_access_key": "wrong"}, "store-credentials-refused"),
        ({"access_key_id": "", "secret_access_key": "", "profile": "none"}, "store-profile"),
        ({"secret_access_key": "${env:NOT_THERE}"}, "secret-missing"),
    ],
)
def test_a_declaration_that_does_not_fit(
    landing: Landing, options: dict[str, Any], slug: str
) -> None:
    """An endpoint that is none, a wrong key, a profile or a secret that is not there."""
    stores = landing.project.target.stores
    common = replace(stores.common, **options)
    target = replace(landing.project.target, stores=replace(stores, common=common))
    landing.project = replace(landing.project, target=target)
    with pytest.raises(InfoldError) as refused:
        landing.files("in/*.json")
    assert refused.value.slug == slug


def test_a_profile_and_the_environment(
    landing: Landing, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys, endpoint and region may come from where the AWS tools have them."""
    landing.put("in/a.json")
    common = landing.project.target.stores.common
    user, secret = "tester", "s3cret/Key+1"
    (tmp_path / "credentials").write_text(
        f"[shop]\naws_access_key_id = {user}\naws_secret_access_key = {secret}\n"
    )
    (tmp_path / "config").write_text(f"[profile shop]\nendpoint_url = {common.endpoint}\n")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "credentials"))
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    nothing = replace(common, endpoint="", access_key_id="", secret_access_key="")

    def with_options(**more: Any) -> list[str]:
        stores = replace(landing.project.target.stores, common=replace(nothing, **more))
        target = replace(landing.project.target, stores=stores)
        landing.project = replace(landing.project, target=target)
        return landing.names("in/*.json")

    assert with_options(profile="shop") == ["in/a.json"]
    monkeypatch.setenv("AWS_ENDPOINT_URL", common.endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", user)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", secret)
    assert with_options() == ["in/a.json"]


def test_folders_of_tables(landing: Landing) -> None:
    """Names, sizes, deletion, and what is inside of what."""
    for name, content in (("w/a/data/1", b"1"), ("w/a/metadata/m", b"22"), ("w/ab/data/1", b"3")):
        landing.put(name, content)
    folder = f"{landing.base}/w/a"
    assert sorted(places.sizes(folder)) == [("data/1", 1), ("metadata/m", 2)]
    assert set(places.names(f"{landing.base}/w")) == {"a", "ab"}
    assert places.is_inside(f"s3a://{landing.bucket}/w/a/data/1", folder)
    assert not places.is_inside(f"{landing.base}/w/ab/data/1", folder)
    lost = f"{folder}/data/2"
    assert places.missing([f"{folder}/data/1", lost, f"{landing.base}/w/ab/data/1"]) == (lost,)
    places.delete_folder(folder)
    assert not places.is_folder(folder)
    assert places.is_folder(f"{landing.base}/w/ab")


def test_views_for_readers(landing: Landing, catalog_db: Path) -> None:
    """Their metadata is in the store; old versions and those of dropped tables are deleted."""
    lake = IcebergLake(sqlite_catalog(catalog_db), "shop", f"{landing.base}/w")
    table = f"{landing.base}/w/shop/daily/metadata/1.metadata.json"
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
    assert folder.startswith(f"{landing.base}/w/shop_views/daily__")
    assert len([*places.file_names(folder)]) == 2
    assert b"SELECT `day`, `n`, `m` FROM" in places.read(location)
    lake.refresh_views([])
    assert not places.is_folder(folder)


@pytest.mark.parametrize(
    ("kind", "mark"),
    [
        ("delta", "_delta_log/00000000000000000000.json"),
        ("iceberg", "metadata/00000-80a083e8-7026-4e79-81be-64bd76c43a11.metadata.json"),
    ],
)
def test_files_of_a_table(landing: Landing, kind: str, mark: str) -> None:
    """A pattern that leads to them is refused, from above and from within."""
    for name in (mark, "data/day=1/0.parquet", "day=1/0.parquet"):
        landing.put(f"in/{kind}/{name}")
    for path in ("in/**/*.parquet", f"in/{kind}/data/day=1/*.parquet", f"in/{kind}/day=1/*"):
        with pytest.raises(InfoldError, match="files-of-a-table") as refused:
            landing.files(path, format=Format.PARQUET)
        assert dict(refused.value.facts)["table"] == f"{landing.base}/in/{kind}"


@pytest.mark.parametrize(
    ("method", "path"), [("PUT", ""), ("GET", "list-type"), ("GET", "doctor"), ("POST|DELETE", "")]
)
def test_doctor_finds_a_right_that_is_missing(landing: Landing, method: str, path: str) -> None:
    """Of a warehouse: to write, to list, to read and to delete, each alone."""
    places.try_out(f"{landing.base}/warehouse")
    with (
        landing.store.rule(method, path, status=403, code="AccessDenied"),
        pytest.raises(InfoldError) as refused,
    ):
        places.try_out(f"{landing.base}/warehouse")
    assert refused.value.slug == "store-access-denied"


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
