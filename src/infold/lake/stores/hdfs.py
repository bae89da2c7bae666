"""How an HDFS is reached: by WebHDFS here, by Hadoop's own client in Spark, as the same user."""

from __future__ import annotations

import os
import pwd
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from infold.core.object_store import Stores, split
from infold.lake.stores.bucket import ANSWER_SECONDS, CONNECT_SECONDS, TRIES
from infold.lake.stores.settings import HDFS_USER
from infold.messages import faults, store_errors

if TYPE_CHECKING:
    from infold.lake.stores.webhdfs import WebHdfs

PORT = 9870
"""Where a NameNode has its HTTP server, unless it is told otherwise."""


@dataclass(frozen=True, slots=True)
class HdfsAccess:
    """The HTTP servers of the NameNodes, one of which is active, and the user infold says it is."""

    addresses: tuple[str, ...]
    user: str

    def open(self, bucket: str) -> WebHdfs:  # noqa: ARG002 (of other stores)
        """The NameNodes by WebHDFS."""
        from infold.lake.stores.webhdfs import WebHdfs

        return WebHdfs(self.addresses, self.user)

    def pyiceberg_properties(self) -> Mapping[str, str]:
        """For the files of tables, read by pyiceberg: nothing, as infold reads them for it."""
        return {}

    def deltalake_options(self) -> Mapping[str, str]:
        """Nothing: tables of Delta Lake are not in HDFS."""
        return {}


def access_of(stores: Stores, bucket: str, root: Path) -> HdfsAccess:  # noqa: ARG001 (of others)
    """How an HDFS is reached now. Raises where the machine has no name for its user."""
    options = stores.of(bucket)
    host = split(bucket)[0].partition(":")[0]
    named = options.endpoint or f"http://{host}:{PORT}"
    addresses = tuple(one.strip().rstrip("/") for one in named.split(",") if one.strip())
    return HdfsAccess(addresses, options.user or os.environ.get(HDFS_USER) or _user_of_machine())


def _user_of_machine() -> str:
    """As Java knows it, which does not ask the environment."""
    try:
        return pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        raise faults.nameless_user(number=os.geteuid()) from None


HADOOP_COMMON: Mapping[str, str] = {
    # By itself it would ask for a quarter of an hour.
    "ipc.client.connect.timeout": str(CONNECT_SECONDS * 1000),
    "ipc.client.connect.max.retries": str(TRIES),
    "ipc.client.connect.max.retries.on.timeouts": str(TRIES),
    "ipc.client.rpc-timeout.ms": str(ANSWER_SECONDS * 1000),
}


def hadoop_settings(stores: Stores, buckets: Sequence[str], root: Path) -> Mapping[str, str]:
    """
    For files and tables, by Spark, which has the client.

    A JVM is one user for all: others are refused.
    """
    users = {bucket: access_of(stores, bucket, root).user for bucket in buckets}
    for bucket, user in users.items():
        if user != users[buckets[0]]:
            scope = "all of HDFS"
            raise store_errors.one_key_for_all(what=scope, bucket=bucket, other=buckets[0])
    return HADOOP_COMMON
