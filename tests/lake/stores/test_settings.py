"""How stores are reached: by declaration and by the environment, and the ways that are kept."""

from __future__ import annotations

import json
import os
import pwd
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.iceberg.tables import names_digest
from infold.lake.stores import places
from infold.lake.stores.bucket import refused
from infold.lake.stores.hdfs import HdfsAccess
from infold.lake.stores.settings import access_of, hadoop_settings, hadoop_user
from infold.lake.stores.webhdfs import HdfsBucket
from infold.messages.errors import InfoldError

COMMON = "fs.s3a."


def of_bucket(settings: dict[str, str], bucket: str) -> dict[str, str]:
    """The settings of a bucket by their common names, as S3A has them: its own replace those."""
    own = f"{COMMON}bucket.{bucket}."
    found = {key: text for key, text in settings.items() if not key.startswith(f"{COMMON}bucket.")}
    found |= {COMMON + key.removeprefix(own): text for key, text in settings.items() if own in key}
    return found


def test_a_bucket_takes_nothing_of_the_common_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither a server, nor a token, nor how a bucket is named: in Spark as everywhere."""
    for name in ("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "AWS_REGION", "AWS_ACCESS_KEY_ID"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STORE", "a")
    monkeypatch.setenv("PARTNER", "b")
    store, partner = "${env:STORE}", "${env:PARTNER}"
    stores = Stores(
        StorageOptions("http://127.0.0.1:9000", "eu-central-1", store, store, store),
        (("partner", StorageOptions("", "us-west-2", partner, partner)),),
    )

    settings = dict(hadoop_settings(stores, ("s3://lake", "s3://partner"), tmp_path))

    assert of_bucket(settings, "lake")["fs.s3a.endpoint"] == "http://127.0.0.1:9000"
    found = of_bucket(settings, "partner")
    assert found["fs.s3a.endpoint"] == ""
    assert found["fs.s3a.session.token"] == ""
    assert found["fs.s3a.path.style.access"] == "false"
    assert found["fs.s3a.connection.ssl.enabled"] == "true"
    assert found["fs.s3a.endpoint.region"] == "us-west-2"
    assert found["fs.s3a.access.key"] == "b"
    assert found["fs.s3a.aws.credentials.provider"].endswith("SimpleAWSCredentialsProvider")


GOOGLE_KEY = {
    "type": "service_account",
    "client_email": "a@b",
    "private_key": "PEM",
    "private_key_id": "1",
    "token_uri": "https://tokens",
}


def test_spark_is_told_of_a_service_account(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The parts of its key; and one key for all buckets, or none is right."""
    monkeypatch.setenv("ONE", json.dumps(GOOGLE_KEY))
    monkeypatch.setenv("OTHER", json.dumps(GOOGLE_KEY | {"private_key_id": "2"}))
    one, other = (StorageOptions(service_account_key=f"${{env:{n}}}") for n in ("ONE", "OTHER"))
    buckets = ("gs://a", "gs://b")

    settings = hadoop_settings(Stores(one, (("b", one),)), buckets, tmp_path)

    assert settings["fs.gs.auth.service.account.private.key"] == "PEM"
    assert settings["fs.gs.auth.service.account.email"] == "a@b"
    assert settings["fs.gs.token.server.url"] == "https://tokens"
    with pytest.raises(InfoldError) as refused:
        hadoop_settings(Stores(one, (("b", other),)), buckets, tmp_path)
    assert refused.value.slug == "store-two-ways"


A, B, C = (f"{name}.dfs.core.windows.net" for name in ("one@first", "two@first", "a@second"))


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (StorageOptions(account_key="${env:K}"), {"account.key": "k"}),
        (StorageOptions(sas_token="${env:K}"),
         {"account.auth.type": "SAS", "sas.fixed.token": "k"}),
        (
            StorageOptions(tenant_id="t", client_id="c", client_secret="${env:K}"),
            {
                "account.oauth2.client.id": "c",
                "account.oauth2.client.secret": "k",
                "account.oauth2.client.endpoint": "https://login.microsoftonline.com/t/oauth2/token",
            },
        ),
        (StorageOptions(), {"account.auth.type": "OAuth"}),
    ],
)  # fmt: skip
def test_spark_is_told_of_each_account(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    options: StorageOptions,
    expected: dict[str, str],
) -> None:
    """Who one is there; containers of one account have the same, those of another their own."""
    for name in [name for name in os.environ if name.startswith("AZURE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("K", "k")
    buckets = tuple(f"abfss://{name}" for name in (A, B, C))
    other = StorageOptions(sas_token="${env:K}", endpoint="")

    settings = hadoop_settings(Stores(options, ((C, other),)), buckets, tmp_path)

    for name, text in expected.items():
        assert settings[f"fs.azure.{name}.first.dfs.core.windows.net"] == text
    assert settings["fs.azure.sas.fixed.token.second.dfs.core.windows.net"] == "k"
    assert "fs.azure.account.key.second.dfs.core.windows.net" not in settings
    if not options.sas_token:
        with pytest.raises(InfoldError) as refused:
            hadoop_settings(Stores(options, ((B, other),)), buckets, tmp_path)
        assert refused.value.slug == "store-two-ways"


@pytest.mark.parametrize(
    ("bucket", "options", "expected"),
    [
        ("gs://lake", StorageOptions(service_account_key="${env:ONE}", endpoint="http://a:1/"),
         {"google_service_account_key": json.dumps(GOOGLE_KEY), "google_base_url": "http://a:1"}),
        (f"abfss://{A}", StorageOptions(account_key="${env:K}", endpoint="http://a:1"),
         {"azure_storage_account_key": "k", "azure_storage_endpoint": "http://a:1/first"}),
        (
            f"abfss://{A}",
            StorageOptions(tenant_id="t", client_id="c", client_secret="${env:K}"),
            {
                "azure_storage_client_secret": "k",
                "azure_storage_client_id": "c",
                "azure_storage_tenant_id": "t",
                "azure_storage_account_name": "first",
                "azure_storage_endpoint": "https://first.blob.core.windows.net",
            },
        ),
    ],
)  # fmt: skip
def test_deltalake_is_told_what_obstore_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    bucket: str,
    options: StorageOptions,
    expected: dict[str, str],
) -> None:
    """The server and the key; how long it waits, and that it may do without TLS there."""
    monkeypatch.setenv("ONE", json.dumps(GOOGLE_KEY))
    monkeypatch.setenv("K", "k")

    found = access_of(Stores(options), bucket, tmp_path).deltalake_options()

    assert expected.items() <= found.items()
    assert found["allow_http"] == str(bool(options.endpoint)).lower()
    assert found["timeout"] == "60s"


def test_whose_a_bucket_is_that_no_place_names() -> None:
    """A container has its account in its name; of others, a key of Google's tells."""
    google = StorageOptions(service_account_key="${env:K}")
    stores = Stores(buckets=((A, StorageOptions()), ("b", google), ("c", StorageOptions())))
    assert stores.own == (f"abfss://{A}", "gs://b", "s3://c")


NODE = "hdfs://nn:8020"


def access(tmp_path: Path, **options: Any) -> object:
    """How the NameNode is reached by these options."""
    return access_of(Stores(StorageOptions(**options)), NODE, tmp_path)


def test_who_one_is_and_where(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By the option, the environment, the machine; and WebHDFS is where Hadoop has it."""
    monkeypatch.delenv("HADOOP_USER_NAME", raising=False)
    assert access(tmp_path) == HdfsAccess(("http://nn:9870",), pwd.getpwuid(os.geteuid()).pw_name)
    monkeypatch.setenv("HADOOP_USER_NAME", "ann")
    assert access(tmp_path) == HdfsAccess(("http://nn:9870",), "ann")
    told = access(tmp_path, user="etl", endpoint="https://a:9871/, https://b:9871")
    assert told == HdfsAccess(("https://a:9871", "https://b:9871"), "etl")


def test_spark_is_one_user(tmp_path: Path) -> None:
    """The same one; two are refused, and without HDFS it is nobody's matter."""
    etl, eve = StorageOptions(user="etl"), StorageOptions(user="eve")
    own = Stores(etl, (("other:8020", eve),))
    assert hadoop_user(own, ("s3://a", NODE), tmp_path) == "etl"
    assert hadoop_user(own, ("s3://a",), tmp_path) == ""
    assert "fs.s3a.endpoint" not in hadoop_settings(own, (NODE,), tmp_path)
    with pytest.raises(InfoldError, match="store-two-ways"):
        hadoop_settings(own, (NODE, "hdfs://other:8020"), tmp_path)


def test_a_gateway_is_no_namenode() -> None:
    """HttpFS shows no number of a file, so that a replaced one would be taken for the same."""

    class Gateway:
        def status(self, _: str) -> dict[str, Any]:
            return {"type": "FILE", "length": 1, "modificationTime": 1}

    server: Any = Gateway()
    with pytest.raises(InfoldError, match="not-supported-yet") as refused:
        HdfsBucket(NODE, "storage_options", server).head("a")
    assert dict(refused.value.facts)["at"] == f"{NODE}/a"


KEYS = "Error performing PUT http://169.254.169.254/latest/api/token in 1ms - "


@pytest.mark.parametrize(
    ("said", "slug"),
    [
        (KEYS + "Server returned non-2xx status code: 403 Forbidden", "store-credentials-missing"),
        (KEYS + "error sending request", "store-credentials-missing"),
        ("Server returned non-2xx status code: 403 Forbidden: ", "store-access-denied"),
        ("status code: 403: <Code>ExpiredToken</Code>", "store-credentials-refused"),
        ("status code: 404: <Code>NoSuchBucket</Code>", "store-bucket-missing"),
        ("status code: 301 Moved Permanently", "store-wrong-region"),
        ("error sending request for url (http://127.0.0.1:1/b)", "store-unreachable"),
        ("status code: 401 Unauthorized", "store-credentials-refused"),
        ("Bulk delete request failed for key x: Not allowed. (code: 403)", "store-access-denied"),
        ("status code: 500 Internal Server Error", "store-failed"),
        ("a non-2xx status code\n \x1b[31m↳\x1b[0m 403 Forbidden\n", "store-access-denied"),
        ("a non-2xx status code\n \x1b[31m↳\x1b[0m 503 Slow Down\n", "store-failed"),
    ],
)
def test_a_refused_request_is_named(said: str, slug: str) -> None:
    """By what the store answered; and a refusal of the machine's service of keys is not its."""
    error = refused(OSError(f"Generic S3 error: {said}"), key="storage_options", at="s3://b/k")

    assert error.slug == slug


def test_a_file_that_vanishes_while_a_folder_is_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It has no size; and names alone are known without looking at the files."""
    for name in ("metadata/1.metadata.json", "data/a", "data/b"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    location, vanishing = str(tmp_path / "metadata" / "1.metadata.json"), tmp_path / "data" / "b"
    digest, scandir = names_digest(location), os.scandir

    def listed_then_deleted(folder: str) -> list[os.DirEntry[str]]:
        found = list(scandir(folder))
        if Path(folder) == vanishing.parent:
            vanishing.unlink()
        return found

    with monkeypatch.context() as patch:
        patch.setattr(os, "scandir", listed_then_deleted)
        assert names_digest(location) == digest
        vanishing.touch()
        assert dict(places.sizes(str(vanishing.parent))) == {"a": 6}


ENDPOINT = "s3.endpoint"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ONE", "SAME"):
        monkeypatch.setenv(name, "key")
    monkeypatch.setenv("OTHER", "other")
    monkeypatch.setattr(places, "_ways", {})


def project(root: Path, warehouse: str, key: str = "ONE", port: int = 1) -> Project:
    """A project with this warehouse, and how its store is reached."""
    secret = f"${{env:{key}}}"
    options = StorageOptions(
        f"http://127.0.0.1:{port}", access_key_id=secret, secret_access_key=secret
    )
    target = Target("dev", warehouse=warehouse, stores=Stores(options))
    return Project("shop", root, None, {}, (), target)


def test_each_project_has_its_own_server(tmp_path: Path) -> None:
    """
    Opening a second one does not change where the first one's tables are looked for. Two may share
    a bucket if they reach it in the same way, by whatever name the key has. A target that is opened
    again has the key that it declares now.
    """
    first = project(tmp_path / "a", "s3://a/wh", port=1)
    places.use(first)
    places.use(project(tmp_path / "b", "s3://b/wh", port=2))
    places.use(project(tmp_path / "c", "s3://a/other", key="SAME"))
    for at in (1, 2):
        found = places.properties(f"s3://{' ab'[at]}/wh/shop/x")
        assert found[ENDPOINT] == f"http://127.0.0.1:{at}"
    places.forget_ways()
    places.use(first)
    places.use(replace(first, target=project(tmp_path, "s3://a/wh", key="OTHER").target))
    assert places.properties("s3://a/wh/shop/x")["s3.access-key-id"] == "other"


@pytest.mark.parametrize("how", [{"port": 2}, {"key": "OTHER"}, {"key": "UNSET"}])
def test_another_way_to_the_same_bucket(tmp_path: Path, how: dict[str, Any]) -> None:
    """It is refused, and the first project goes on."""
    places.use(project(tmp_path / "a", "s3://a/wh"))
    with pytest.raises(InfoldError) as refused:
        places.use(project(tmp_path / "b", "s3://a/other", **how))
    assert refused.value.slug == "store-two-ways"
    assert places.properties("s3://a/wh/shop/x")["s3.access-key-id"] == "key"
    places.forget_ways()
    places.use(project(tmp_path / "b", "s3://a/other", **how))
