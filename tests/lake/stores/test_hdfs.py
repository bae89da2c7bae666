"""How an HDFS is reached, and what is no NameNode."""

from __future__ import annotations

import os
import pwd
from pathlib import Path
from typing import Any

import pytest

from infold.core.object_store import StorageOptions, Stores
from infold.lake.stores.hdfs import HdfsAccess
from infold.lake.stores.hdfs_bucket import HdfsBucket
from infold.lake.stores.settings import access_of, hadoop_settings, hadoop_user
from infold.messages.errors import InfoldError

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
