"""A store that only lists: its objects in pages of a thousand, and what was asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from urllib.parse import parse_qs, urlparse

import pytest

from infold.core.object_store import StorageOptions

PAGE = 1000


class ListingStore(ThreadingHTTPServer):
    """``keys`` are its objects in order; ``asked`` are the prefixes that it was asked for."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Lister)
        self.keys: Sequence[str] = ()
        self.asked: list[str] = []

    @property
    def options(self) -> StorageOptions:
        """How it is reached."""
        at, key = f"http://127.0.0.1:{self.server_address[1]}", "${env:STORE_KEY}"
        return StorageOptions(at, access_key_id=key, secret_access_key=key)


class _Lister(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: ListingStore

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """A page of the objects with a prefix, and where the next one begins."""
        query = parse_qs(urlparse(self.path).query)
        prefix = query.get("prefix", [""])[0]
        at = int(query.get("continuation-token", ["0"])[0])
        self.server.asked.append(prefix)
        keys = [key for key in self.server.keys if key.startswith(prefix)]
        found = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-03-09T12:00:00.000Z</LastModified>"
            f"<ETag>&quot;{number}&quot;</ETag><Size>9</Size></Contents>"
            for number, key in enumerate(keys[at : at + PAGE], at)
        )
        more = at + PAGE < len(keys)
        token = f"<NextContinuationToken>{at + PAGE}</NextContinuationToken>" if more else ""
        page = f"<IsTruncated>{str(more).lower()}</IsTruncated>{found}{token}"
        answer = f"<ListBucketResult>{page}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)


@contextmanager
def listing_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingStore]:
    """One without objects that runs."""
    monkeypatch.setenv("STORE_KEY", "a")
    found = ListingStore()
    Thread(target=found.serve_forever, args=(0.01,), daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()
