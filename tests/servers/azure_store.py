"""
A stand-in for Azure Data Lake: what infold and Spark ask of it, with objects in memory.

infold speaks the protocol of blobs, Hadoop's connector that of the data lake. Both sign requests by
the key of the account, which is checked.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from pathlib import Path
from threading import Thread
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers.store_gate import Gate, Gated, Passing, Rule, handler

from infold.core.object_store import StorageOptions, Stores
from infold.lake.stores.bucket import Bucket, bucket_of

ACCOUNT = "tests"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
KEY = base64.b64encode(b"a key of tests, which opens nothing").decode()
_SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type"),
    *("date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)

Answer = tuple[int, dict[str, str], bytes]


@dataclass
class Blob:
    """An object, and which of its versions it is."""

    content: bytes
    etag: str
    written: str = field(default_factory=lambda: formatdate(usegmt=True))


@dataclass
class AzureStore(Gated):
    """A running server."""

    scheme = "abfss"
    containers: dict[str, dict[str, Blob]] = field(default_factory=dict)
    versions: int = 0

    def new_bucket(self) -> str:
        """A container that nobody used, as URLs name it."""
        name = f"container-{len(self.containers)}"
        self.containers[name] = {}
        return f"{name}@{HOST}"

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        return {"endpoint": self.url, "account_key": "${env:AZURE_KEY}"}

    def bucket(self, name: str) -> Bucket:
        """A container, by infold's own hands."""
        stores = Stores(StorageOptions(**self.options))
        return bucket_of(f"abfss://{name}/", stores, Path())

    def put(self, url: str, content: bytes) -> None:
        """Have an object."""
        bucket, _, key = url.removeprefix("abfss://").partition("/")
        self.bucket(bucket).write(key, content)


class AzurePassing(Passing):
    """A request."""

    store: AzureStore

    def _refuse(self, rule: Rule) -> None:
        self._answer(*_turned(self._says(rule.status, rule.code)))

    def _forward(self, content: bytes) -> Answer:
        place = urlsplit(self.path)
        query = dict(parse_qsl(place.query, keep_blank_values=True))
        if not self._is_signed(place.path, query):
            return self._says(403, "AuthenticationFailed")
        _, container, *names = unquote(place.path).lstrip("/").split("/", 2)
        objects, key = self.store.containers.get(container), "".join(names)
        if objects is None:
            lake = "resource" in query or "action" in query
            return self._says(404, "FilesystemNotFound" if lake else "ContainerNotFound")
        if query.get("comp") == "list":
            return self._listed(objects, query)
        if "resource" in query and self.command == "GET":
            return self._paths(objects, query.get("directory", "").strip("/"))
        if query.get("action") == "getAccessControl":
            return self._says(400, "BadRequest")  # as of an account without real folders
        if self.command == "PUT":
            self.store.versions += 1
            objects[key] = Blob(content, f"0x{self.store.versions:X}")
            return 201, self._head(objects[key]), b""
        return self._read(objects.get(key))

    def _read(self, found: Blob | None) -> Answer:
        if found is None:
            return self._says(404, "BlobNotFound")
        wanted = self.headers.get("If-Match", "*")
        if wanted != "*" and wanted.strip('"') != found.etag:
            return self._says(412, "ConditionNotMet")
        head, size = self._head(found), len(found.content)
        spans = self.headers.get("x-ms-range") or self.headers.get("Range") or ""
        span = re.fullmatch(r"bytes=(\d+)-(\d*)", spans)
        if self.command == "HEAD" or span is None:
            return 200, head | {"Content-Length": str(size)}, found.content
        start, end = int(span[1]), min(int(span[2] or size - 1), size - 1)
        return (
            206,
            head | {"Content-Range": f"bytes {start}-{end}/{size}"},
            found.content[start : end + 1],
        )

    def _head(self, blob: Blob) -> dict[str, str]:
        return {
            "ETag": f'"{blob.etag}"',
            "Last-Modified": blob.written,
            "x-ms-resource-type": "file",
            "x-ms-request-id": "1",
        }

    def _listed(self, objects: Mapping[str, Blob], query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found, folders = [], set()
        for key, blob in sorted(objects.items()):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix):
                continue
            if delimiter and delimiter in rest:
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            found.append(
                f"<Blob><Name>{escape(key)}</Name><Properties>"
                f"<Last-Modified>{blob.written}</Last-Modified><Etag>{blob.etag}</Etag>"
                f"<Content-Length>{len(blob.content)}</Content-Length>"
                "<Content-Type>text/plain</Content-Type></Properties></Blob>"
            )
        found += [f"<BlobPrefix><Name>{escape(one)}</Name></BlobPrefix>" for one in sorted(folders)]
        body = (
            f"<EnumerationResults><Blobs>{''.join(found)}</Blobs><NextMarker/></EnumerationResults>"
        )
        return 200, {"Content-Type": "application/xml"}, body.encode()

    def _paths(self, objects: Mapping[str, Blob], folder: str) -> Answer:
        """As the data lake lists: what is right in a folder; of a file, itself."""
        found = [
            {
                "name": key,
                "contentLength": str(len(blob.content)),
                "etag": blob.etag,
                "lastModified": blob.written,
            }
            for key, blob in sorted(objects.items())
            if key == folder or key.rpartition("/")[0] == folder
        ]
        if not found:
            return self._says(404, "PathNotFound")
        content = json.dumps({"paths": found}).encode()
        return 200, self._head(Blob(b"", "0")) | {"Content-Type": "application/json"}, content

    def _says(self, status: int, code: str) -> Answer:
        head = {"x-ms-error-code": code, "x-ms-request-id": "1"}
        if "resource=" in self.path or "action=" in self.path:
            body = json.dumps({"error": {"code": code, "message": "said by the stand-in"}})
            return status, head | {"Content-Type": "application/json"}, body.encode()
        body = f"<Error><Code>{code}</Code><Message>said by the stand-in</Message></Error>"
        return status, head | {"Content-Type": "application/xml"}, body.encode()

    def _is_signed(self, path: str, query: Mapping[str, str]) -> bool:
        lines = [self.command]
        for name in _SIGNED:
            text = self.headers.get(name) or ""
            lines.append("" if (name, text) == ("content-length", "0") else text)
        own = sorted(
            (name.lower(), text.strip())
            for name, text in self.headers.items()
            if name.lower().startswith("x-ms-")
        )
        lines += [f"{name}:{text}" for name, text in own]
        lines.append(f"/{ACCOUNT}{path}")
        lines += [f"{name.lower()}:{text}" for name, text in sorted(query.items())]
        signed = "\n".join(lines).encode()
        found = hmac.digest(base64.b64decode(KEY), signed, hashlib.sha256)
        wanted = f"SharedKey {ACCOUNT}:{base64.b64encode(found).decode()}"
        return self.headers.get("Authorization") == wanted


def _turned(answer: Answer) -> tuple[int, bytes, dict[str, str]]:
    status, headers, body = answer
    return status, body, headers


@contextmanager
def running() -> Iterator[AzureStore]:
    """A server for the block."""
    store = AzureStore()
    gate = Gate(("127.0.0.1", 0), handler(store, 0, AzurePassing))
    Thread(target=gate.serve_forever, daemon=True).start()
    store.url = f"http://127.0.0.1:{gate.server_address[1]}"
    try:
        yield store
    finally:
        gate.shutdown()
        gate.server_close()
