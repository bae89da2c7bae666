"""
How a bucket is reached, from ``storage_options`` and the environment: found once, told to all.

infold, pyiceberg, deltalake and Spark each have a library of their own for a store, and each would
look for credentials in another order. So they are found here, and given to all. Where there are
none, each library asks the machine that it runs on: a role of a container or of an instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from infold.core.object_store import StoreKind, Stores, kind_of

HDFS_USER = "HADOOP_USER_NAME"
"""The variable by which Hadoop's programs are told who they are."""

HDFS_USER_SETTING = f"spark.executorEnv.{HDFS_USER}"
"""The setting that has the user: a JVM of infold's takes it over, and so do executors elsewhere."""


class Access(Protocol):
    """The way to a bucket: a server, and a key or a role. Two that are equal are the same way."""

    def open(self, bucket: str) -> Any:
        """The bucket by obstore, which is installed, or by WebHDFS. Raises obstore's errors."""

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg; nothing where pyarrow is not used."""

    def deltalake_options(self) -> Mapping[str, str]:
        """For tables of Delta Lake, opened by deltalake."""


def _module(kind: StoreKind) -> Any:
    """What knows a kind of store; most projects have none, and import none of them."""
    return import_module(f"infold.lake.stores.{kind.name.lower()}")


def access_of(stores: Stores, bucket: str, root: Path) -> Access:
    """How the bucket of a URL is reached now. Raises where a secret or a profile is not there."""
    access: Access = _module(kind_of(bucket)).access_of(stores, bucket, root)
    return access


def hadoop_user(stores: Stores, buckets: Sequence[str], root: Path) -> str:
    """Who Spark is in HDFS; empty if no bucket is there."""
    in_hdfs = (one for one in buckets if kind_of(one) is StoreKind.HDFS)
    return next((_module(StoreKind.HDFS).access_of(stores, one, root).user for one in in_hdfs), "")


def hadoop_settings(stores: Stores, buckets: Sequence[str], root: Path) -> Mapping[str, str]:
    """For files and tables, read and written by Spark; there are secrets among them."""
    by_kind: dict[StoreKind, list[str]] = {}
    for bucket in buckets:
        by_kind.setdefault(kind_of(bucket), []).append(bucket)
    settings: dict[str, str] = {}
    for kind, own in by_kind.items():
        settings |= _module(kind).hadoop_settings(stores, own, root)
    return settings
