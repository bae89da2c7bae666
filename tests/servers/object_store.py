"""
A real S3 server for tests, s3proxy, which keeps objects in a folder; and a gate before it.

The gate counts requests, and can do what stores and networks do: refuse, be busy, be slow, cut a
connection, lose an answer, and leave an object out of a listing.
"""

from __future__ import annotations

import http.client
import os
import re
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import yaml
from tests.servers.gated import behind
from tests.servers.jars import fetched_jars
from tests.servers.ports import free_port

from infold.core.object_store import StorageOptions, Stores
from infold.lake.stores.bucket import Bucket, bucket_of

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
class Rule:
    """What the gate does with requests of a method to paths that match, so many ``times``."""

    method: str
    path: str
    status: int = 0
    """Refuse with this status."""
    code: str = "Refused"
    """What S3 calls that."""
    seconds: float = 0.0
    """Wait before."""
    lost: bool = False
    """Do the request, and close the connection without an answer."""
    cut: bool = False
    """Send half of the answer, and close the connection."""
    every: int = 1
    """Only every so many-th request."""
    hide: str = ""
    """Leave out of a listing the objects that have this in their names."""
    first: Callable[[], None] | None = None
    """What happens before the request is done, once."""
    times: int = 1_000_000
    met: int = 0


@dataclass
class ObjectStore:
    """A running server."""

    folder: Path
    url: str = ""
    """The gate."""
    direct: str = ""
    """
    The server behind it: for what keeps this process from answering at the gate while it waits for
    that (some of deltalake's functions).
    """
    rules: list[Rule] = field(default_factory=list)
    seen: Counter[str] = field(default_factory=Counter)
    """How many requests came to the gate, by method."""
    sent: int = 0
    """Bytes of their answers."""
    received: int = 0
    """Bytes of what was put."""

    def new_bucket(self) -> str:
        """A bucket that nobody used; by its folder, as nothing of infold's makes one."""
        self._buckets = getattr(self, "_buckets", 0) + 1
        name = f"bucket-{os.getpid()}-{self._buckets}"
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

    def bucket(self, name: str) -> Bucket:
        """A bucket, by infold's own hands."""
        stores = Stores(StorageOptions(**self.options))
        return bucket_of(f"s3://{name}/", stores, self.folder)

    def put(self, url: str, content: bytes) -> None:
        """Have an object."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        self.bucket(bucket).write(key, content)

    def delete(self, url: str) -> None:
        """Have it no more."""
        bucket, _, key = url.removeprefix("s3://").partition("/")
        self.bucket(bucket).delete([key])

    def put_marker(self, bucket: str, folder: str) -> None:
        """Have an empty object with a slash at the end of its name, as tools make them."""
        from pyarrow.fs import S3FileSystem

        made = S3FileSystem(
            endpoint_override=self.url, access_key=USER, secret_key=SECRET, region="us-east-1"
        )
        made.create_dir(f"{bucket}/{folder}")

    @contextmanager
    def rule(self, method: str, path: str, **how: Any) -> Iterator[Rule]:
        """A rule for the block."""
        rule = Rule(method, path, **how)
        self.rules.append(rule)
        try:
            yield rule
        finally:
            self.rules.remove(rule)


def move_to_store(folder: Path, store: ObjectStore, bucket: str) -> None:
    """Have a project's tables, and the files of its sources, in a bucket."""
    file = folder / "infold.yml"
    project = yaml.safe_load(file.read_text(encoding="utf-8"))
    for source in project["sources"].values():
        if "path" in source:
            source["path"] = f"s3://{bucket}/{source['path']}"
    for target in project["targets"].values():
        target["warehouse"] = f"s3://{bucket}/warehouse"
        if target.get("storage") != "delta":
            target["catalog"] = {"type": "sqlite", "uri": "sqlite:///.infold/catalog.db"}
        target["storage_options"] = store.options
    file.write_text(yaml.safe_dump(project, sort_keys=False), encoding="utf-8")


@contextmanager
def running(folder: Path) -> Iterator[ObjectStore]:
    """A server for the block."""
    store = ObjectStore(folder / "buckets")
    store.folder.mkdir()
    port, log, configuration = free_port(), folder / "server.log", folder / "s3proxy.conf"
    text = CONFIGURATION.replace("PORT", str(port)).replace("FOLDER", str(store.folder))
    configuration.write_text(text, encoding="utf-8")
    [jar] = fetched_jars([S3PROXY])
    gate = _Gate(("127.0.0.1", 0), _handler(store, port))
    store.direct = f"http://127.0.0.1:{port}"
    words = ("-jar", str(jar), "--properties", str(configuration))
    with behind(gate, words, port, log) as store.url:
        yield store


class _Gate(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: object) -> None:
        """A client that went away is none."""


def _handler(store: ObjectStore, port: int) -> Callable[..., BaseHTTPRequestHandler]:
    class Gate(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        _behind: http.client.HTTPConnection | None = None

        def log_message(self, *_: object) -> None:
            """Nothing."""

        def _serve(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            store.seen[self.command] += 1
            store.received += len(content)
            rule = next((one for one in store.rules if self._fits(one)), None)
            if rule is not None:
                rule.times -= 1
                time.sleep(rule.seconds)
                if rule.first is not None:
                    first, rule.first = rule.first, None
                    first()
                if rule.status:
                    return self._refuse(rule)
            status, headers, answer = self._forward(content)
            if rule is not None and rule.lost:
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
                return None
            if rule is not None and rule.hide:
                pattern = rf"<Contents><Key>[^<]*{re.escape(rule.hide)}.*?</Contents>"
                answer = re.sub(pattern.encode(), b"", answer)
            return self._answer(status, answer, headers, cut=rule is not None and rule.cut)

        do_GET = do_POST = do_PUT = do_DELETE = do_HEAD = _serve  # noqa: N815 (its names)

        def _fits(self, rule: Rule) -> bool:
            here = re.fullmatch(rule.method, self.command) and re.search(rule.path, self.path)
            if not here or rule.times <= 0:
                return False
            rule.met += 1
            return rule.met % rule.every == 0

        def _refuse(self, rule: Rule) -> None:
            body = f"<Error><Code>{rule.code}</Code><Message>a rule says so</Message></Error>"
            self._answer(rule.status, body.encode(), {"Content-Type": "application/xml"})

        def _forward(self, content: bytes) -> tuple[int, dict[str, str], bytes]:
            used, self._behind = self._behind, None
            if used is not None:
                try:
                    return self._asked(used, content)
                except (http.client.HTTPException, OSError):
                    used.close()  # the server closes connections that nobody used for a while
            new = http.client.HTTPConnection("127.0.0.1", port, timeout=120)
            return self._asked(new, content)

        def _asked(
            self, behind: http.client.HTTPConnection, content: bytes
        ) -> tuple[int, dict[str, str], bytes]:
            behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():
                if name.lower() not in ("connection", "expect"):
                    behind.putheader(name, value)
            behind.endheaders(content or None)
            answer = behind.getresponse()
            body = answer.read()
            headers = {
                name: value
                for name, value in answer.getheaders()
                if name.lower() not in ("connection", "transfer-encoding", "date", "server")
            }
            self._behind = behind
            return answer.status, headers, body

        def _answer(
            self, status: int, body: bytes, headers: Mapping[str, str], *, cut: bool = False
        ) -> None:
            self.send_response(status)
            for name, value in headers.items():
                if name.lower() != "content-length":
                    self.send_header(name, value)
            head = self.command == "HEAD"
            size = next((n for k, n in headers.items() if k.lower() == "content-length"), None)
            if status not in (204, 304):
                self.send_header("Content-Length", str(size or 0) if head else str(len(body)))
            self.end_headers()
            store.sent += len(body)
            if cut:
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                self.close_connection = True
                self.connection.shutdown(socket.SHUT_RDWR)
            elif not head and status not in (204, 304):
                self.wfile.write(body)

    return Gate
