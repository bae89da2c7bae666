"""
A stand-in for Azure Data Lake: what infold and Spark ask of it, with objects in memory.

infold speaks the protocol of blobs, Hadoop's connector that of the data lake. Both sign requests by
the key of the account, which is checked.

It is an account without a hierarchy of folders, unless it is told otherwise. There, too, the
protocol of the data lake makes folders above each file that it creates: empty objects, which the
protocol of blobs lists. What is written by it is there once it is flushed; before, the file is
empty.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator, Mapping, MutableMapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_string
from email.message import Message
from email.utils import formatdate
from itertools import count
from threading import RLock
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit
from xml.sax.saxutils import escape

from tests.servers.gate import Answer, Gate, Passing, as_json, handler, new_name, opened
from tests.servers.store_server import StoreServer

ACCOUNT = "tests"
HOST = f"{ACCOUNT}.dfs.core.windows.net"
KEY = base64.b64encode(b"a key of tests, which opens nothing").decode()
_SIGNED = (
    *("content-encoding", "content-language", "content-length", "content-md5", "content-type"),
    *("date", "if-modified-since", "if-match", "if-none-match", "if-unmodified-since", "range"),
)

_RENAMED = "x-ms-rename-source"


@dataclass
class Blob:
    """An object, and which of its versions it is."""

    content: bytes
    etag: str
    written: str = field(default_factory=lambda: formatdate(usegmt=True))
    folder: bool = False
    waiting: dict[int, bytes] = field(default_factory=dict)
    """By position, what was appended and is not flushed."""


Objects = MutableMapping[str, Blob]


@dataclass
class AzureStore(StoreServer):
    """A running server."""

    scheme = "abfss"
    hierarchy: bool = False
    """Whether folders are what they are called: the protocol of blobs tells them from objects."""
    containers: dict[str, dict[str, Blob]] = field(default_factory=dict)
    blocks: dict[tuple[str, str], bytes] = field(default_factory=dict)
    """Parts of objects, by key and by what each is called, until they are put together."""
    lock: Any = field(default_factory=RLock)
    _versions: Iterator[int] = field(default_factory=count)

    def new(self, content: bytes = b"", *, folder: bool = False) -> Blob:
        """A version of an object that none was before."""
        return Blob(content, f"0x{next(self._versions):X}", folder=folder)

    def new_bucket(self) -> str:
        """A container that nobody used, as URLs name it."""
        name = new_name("container-")
        self.containers[name] = {}
        return f"{name}@{HOST}"

    def objects(self, bucket: str) -> dict[str, Blob]:
        """What a container has, by key."""
        return self.containers[bucket.partition("@")[0]]

    def make_folder(self, bucket: str, key: str) -> None:
        """As the protocol of the data lake makes it."""
        self.objects(bucket)[key] = self.new(folder=True)

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        return {"endpoint": self.url, "account_key": "${env:AZURE_KEY}"}


class AzurePassing(Passing):
    """A request."""

    store: AzureStore

    def _forward(self, content: bytes) -> Answer:
        place = urlsplit(self.path)
        query = dict(parse_qsl(place.query, keep_blank_values=True))
        if not self._is_signed(place.path, query):
            return self._says(403, "AuthenticationFailed")
        if query.get("comp") == "batch":
            return self._batch(content)
        _, container, *names = unquote(place.path).lstrip("/").split("/", 2)
        objects, key = self.store.containers.get(container), "".join(names).rstrip("/")
        lake = bool({"resource", "action", "recursive"} & query.keys())
        lake = lake or _RENAMED in self.headers
        if objects is None:
            return self._says(404, "FilesystemNotFound" if lake else "ContainerNotFound")
        with self.store.lock:
            if self.command in ("GET", "HEAD"):
                return self._shown(objects, key, query)
            if lake:
                return self._lake(objects, key, query, content)
            return self._changed(objects, key, query, content)

    def _batch(self, content: bytes) -> Answer:
        """Several requests at once, each with a signature of its own."""
        mark = re.search('boundary="?([^";]+)', self.headers["Content-Type"])
        assert mark is not None
        answers = []
        for part in content.decode().split(f"--{mark[1]}")[1:-1]:
            outer, request, head = part.lstrip("\r\n").split("\r\n\r\n", 1)[0], *_request(part)
            own = self.command, self.path, self.headers
            self.command, self.path, self.headers = *request, head
            try:
                rule = next((one for one in self.store.rules if self._fits(one)), None)
                refused = rule is not None and rule.status
                status, headers, _ = (
                    self._says(rule.status, rule.code) if rule and refused else self._forward(b"")
                )
            finally:
                self.command, self.path, self.headers = own
            lines = [f"HTTP/1.1 {status} Said", *(f"{k}: {v}" for k, v in headers.items())]
            number = re.search(r"(?i)content-id: *(\d+)", outer)
            assert number is not None
            own_head = f"Content-Type: application/http\r\nContent-ID: {number[1]}"
            answers.append(f"--answers\r\n{own_head}\r\n\r\n" + "\r\n".join(lines) + "\r\n\r\n")
        body = "".join(answers) + "--answers--"
        return 202, {"Content-Type": "multipart/mixed; boundary=answers"}, body.encode()

    def _shown(self, objects: Objects, key: str, query: Mapping[str, str]) -> Answer:
        if query.get("comp") == "list":
            return self._listed(objects, query)
        if "resource" in query and self.command == "GET":
            return self._paths(objects, query.get("directory", "").strip("/"))
        if query.get("action") == "getAccessControl":
            return self._says(400, "BadRequest")  # as of an account without real folders
        return self._read(objects.get(key))

    def _changed(
        self, objects: Objects, key: str, query: Mapping[str, str], content: bytes
    ) -> Answer:
        """As the protocol of blobs writes and deletes."""
        if self.command == "DELETE":
            if self.store.hierarchy and any(name.startswith(f"{key}/") for name in objects):
                return self._says(409, "DirectoryIsNotEmpty")
            return (202, {}, b"") if objects.pop(key, None) else self._says(404, "BlobNotFound")
        if query.get("comp") == "block":
            self.store.blocks[key, query["blockid"]] = content
            return 201, {}, b""
        if self.headers.get("If-None-Match") == "*" and key in objects:
            return self._says(409, "BlobAlreadyExists")
        if query.get("comp") == "blocklist":
            names = re.findall(r"<(?:Uncommitted|Latest)>([^<]*)<", content.decode())
            content = b"".join(self.store.blocks.pop((key, name)) for name in names)
        if source := self.headers.get("x-ms-copy-source"):
            found = objects.get("".join(unquote(urlsplit(source).path).split("/", 3)[3:]))
            if found is None:
                return self._says(404, "BlobNotFound")
            content = found.content
        objects[key] = self.store.new(content)
        return 201, self._head(objects[key]), b""

    def _lake(self, objects: Objects, key: str, query: Mapping[str, str], content: bytes) -> Answer:
        """As the protocol of the data lake does: a file is made, appended to, and flushed."""
        found = objects.get(key)
        if self.command == "DELETE":
            return self._deleted(objects, key, whole=query["recursive"] == "true")
        if source := self.headers.get(_RENAMED):
            return self._renamed(objects, unquote(source).split("/", 2)[2], key)
        if "resource" in query:
            return self._created(objects, key, folder=query["resource"] == "directory")
        if found is None or found.folder:
            return self._says(404, "PathNotFound")
        position = int(query["position"])
        if query["action"] == "append":
            found.waiting[position] = content
            position += len(content)
            if query.get("flush") != "true":
                return 202, {}, b""
        whole = found.content
        while len(whole) in found.waiting and len(whole) < position:
            whole += found.waiting.pop(len(whole))
        if len(whole) != position:
            return self._says(400, "InvalidFlushPosition")
        objects[key] = self.store.new(whole)
        return 200, self._head(objects[key]), b""

    def _created(self, objects: Objects, key: str, *, folder: bool) -> Answer:
        found = objects.get(key)
        if found and (self.headers.get("If-None-Match") == "*" or found.folder != folder):
            return self._says(409, "PathAlreadyExists")
        above = key.split("/")[:-1]
        for depth in range(len(above)):
            one = objects.setdefault("/".join(above[: depth + 1]), self.store.new(folder=True))
            if not one.folder:
                return self._says(409, "ParentIsNotDirectory")
        if not (found and folder):
            objects[key] = self.store.new(folder=folder)
        return 201, self._head(objects[key]), b""

    def _renamed(self, objects: Objects, source: str, key: str) -> Answer:
        """A file has another name, at one instant; another one of that name is in its way."""
        if source not in objects:
            return self._says(404, "SourcePathNotFound")
        if self.headers.get("If-None-Match") == "*" and key in objects:
            return self._says(409, "PathAlreadyExists")
        objects[key] = objects.pop(source)
        return 201, self._head(objects[key]), b""

    def _deleted(self, objects: Objects, key: str, *, whole: bool) -> Answer:
        below = [name for name in objects if name.startswith(f"{key}/")]
        if key not in objects and not below:
            return self._says(404, "PathNotFound")
        if below and not whole:
            return self._says(409, "DirectoryNotEmpty")
        for name in (key, *below):
            objects.pop(name, None)
        return 200, {}, b""

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
            "x-ms-resource-type": "directory" if blob.folder else "file",
            "x-ms-request-id": "1",
        }

    def _listed(self, objects: Mapping[str, Blob], query: Mapping[str, str]) -> Answer:
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        found, folders = [], set()
        for key, blob in sorted(objects.items()):
            rest = key.removeprefix(prefix)
            if not key.startswith(prefix) or key < query.get("startFrom", ""):
                continue
            real = self.store.hierarchy and blob.folder
            if delimiter and (delimiter in rest or real):
                folders.add(prefix + rest.partition(delimiter)[0] + delimiter)
                continue
            found.append(
                f"<Blob><Name>{escape(key)}</Name><Properties>"
                f"<Last-Modified>{blob.written}</Last-Modified><Etag>{blob.etag}</Etag>"
                f"<Content-Length>{len(blob.content)}</Content-Length>"
                f"<ResourceType>{'directory' if real else 'file'}</ResourceType>"
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
                "isDirectory": str(blob.folder).lower(),
            }
            for key, blob in sorted(objects.items())
            if (key == folder and not blob.folder) or key.rpartition("/")[0] == folder
        ]
        if not found and folder not in objects:
            return self._says(404, "PathNotFound")
        return as_json(200, {"paths": found}, **self._head(Blob(b"", "0")))

    def _says(self, status: int, code: str) -> Answer:
        head = {"x-ms-error-code": code, "x-ms-request-id": "1"}
        if re.search("resource=|action=|recursive=", self.path) or _RENAMED in self.headers:
            return as_json(status, {"error": {"code": code, "message": "a rule says so"}}, **head)
        _, more, body = super()._says(status, code)
        return status, head | more, body

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


def _request(part: str) -> tuple[tuple[str, str], Message]:
    """A request of several in one: its method and path, and its headers."""
    text = part.strip("\r\n").split("\r\n\r\n", 1)[1]
    first, _, rest = text.partition("\r\n")
    command, path, _ = first.split(" ")
    return (command, path), message_from_string(rest)


@contextmanager
def running() -> Iterator[AzureStore]:
    """A server for the block."""
    store = AzureStore()
    gate = Gate(("127.0.0.1", 0), handler(store, 0, AzurePassing))
    with opened(gate) as store.url:
        yield store
