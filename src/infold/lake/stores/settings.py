"""
How a bucket is reached, from ``storage_options`` and the environment: found once, told to all.

infold, pyiceberg, deltalake and Spark each have a library of their own for a store, and each would
look for credentials in another order. So they are found here, and given to all. Where there are
none, each library asks the machine that it runs on: a role of a container or of an instance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from infold.core.object_store import StoreKind, Stores, kind_of
from infold.lake.stores import azure, gcs, hdfs, s3


class Access(Protocol):
    """The way to a bucket: a server, and a key or a role. Two that are equal are the same way."""

    def open(self, bucket: str) -> Any:
        """The bucket by obstore, which is installed, or by WebHDFS. Raises obstore's errors."""

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg; nothing where pyarrow is not used."""

    def deltalake_options(self) -> Mapping[str, str]:
        """For tables of Delta Lake, opened by deltalake."""


_KINDS: Mapping[StoreKind, Any] = {
    StoreKind.S3: s3,
    StoreKind.GCS: gcs,
    StoreKind.AZURE: azure,
    StoreKind.HDFS: hdfs,
}


def access_of(stores: Stores, bucket: str, root: Path) -> Access:
    """How the bucket of a URL is reached now. Raises where a secret or a profile is not there."""
    access: Access = _KINDS[kind_of(bucket)].access_of(stores, bucket, root)
    return access


def hadoop_user(stores: Stores, buckets: Sequence[str], root: Path) -> str:
    """Who Spark is in HDFS; empty if no bucket is there."""
    in_hdfs = (one for one in buckets if kind_of(one) is StoreKind.HDFS)
    return next((hdfs.access_of(stores, one, root).user for one in in_hdfs), "")


def hadoop_settings(stores: Stores, buckets: Sequence[str], root: Path) -> Mapping[str, str]:
    """For files and tables, read and written by Spark; there are secrets among them."""
    by_kind: dict[StoreKind, list[str]] = {}
    for bucket in buckets:
        by_kind.setdefault(kind_of(bucket), []).append(bucket)
    settings: dict[str, str] = {}
    for kind, own in by_kind.items():
        settings |= _KINDS[kind].hadoop_settings(stores, own, root)
    return settings
