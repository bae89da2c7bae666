"""A real S3 server for tests, s3proxy, which keeps objects in a folder; and a gate before it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.servers.gate import Gate, behind, free_port, handler, new_name
from tests.servers.jars import fetched_jars
from tests.servers.store_server import StoreServer

S3PROXY = (
    "org/gaul/s3proxy",
    "4.1.0",
    "jar-with-dependencies",
    "a4d025969aaf796616ed4b1e2491d87d455ce84bb28cb9db086b2e6aaa68b48d",
)
USER, SECRET = "tester", "s3cret/Key+1"
ENVIRONMENT = {"STORE_KEY": USER, "STORE_SECRET": SECRET}
"""The variables that ``options`` names."""

CONFIGURATION = f"""
s3proxy.authorization=aws-v2-or-v4
s3proxy.endpoint=http://127.0.0.1:PORT
s3proxy.identity={USER}
s3proxy.credential={SECRET}
jclouds.provider=filesystem
jclouds.filesystem.basedir=FOLDER
"""


@dataclass
class ObjectStore(StoreServer):
    """A running server."""

    scheme = "s3"

    folder: Path = field(default_factory=Path)
    direct: str = ""
    """
    The server behind it: for what keeps this process from answering at the gate while it waits for
    that (some of deltalake's functions).
    """

    def new_bucket(self) -> str:
        """A bucket that nobody used; by its folder, as nothing of infold's makes one."""
        name = new_name("bucket-")
        (self.folder / name).mkdir()
        return name

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        return {
            "endpoint": self.url,
            "access_key_id": "${env:STORE_KEY}",
            "secret_access_key": "${env:STORE_SECRET}",
        }

    def make_folder(self, bucket: str, key: str) -> None:
        """An empty object with a slash at the end of its name, as tools make them."""
        from pyarrow.fs import S3FileSystem

        made = S3FileSystem(
            endpoint_override=self.url, access_key=USER, secret_key=SECRET, region="us-east-1"
        )
        made.create_dir(f"{bucket}/{key}")


@contextmanager
def running(folder: Path) -> Iterator[ObjectStore]:
    """A server for the block."""
    store = ObjectStore(folder=folder / "buckets")
    store.folder.mkdir()
    port, log, configuration = free_port(), folder / "server.log", folder / "s3proxy.conf"
    text = CONFIGURATION.replace("PORT", str(port)).replace("FOLDER", str(store.folder))
    configuration.write_text(text, encoding="utf-8")
    [jar] = fetched_jars([S3PROXY])
    gate = Gate(("127.0.0.1", 0), handler(store, port))
    store.direct = f"http://127.0.0.1:{port}"
    words = ("-jar", str(jar), "--properties", str(configuration))
    with behind(gate, words, port, log) as store.url:
        yield store
