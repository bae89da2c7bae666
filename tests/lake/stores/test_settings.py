"""What each library is told of a bucket."""

from __future__ import annotations

from pathlib import Path

import pytest

from infold.core.object_store import StorageOptions, Stores
from infold.lake.stores.settings import hadoop_settings

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
