"""A store that only lists: its objects in pages of a thousand, and what was asked of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlparse

import pytest
from tests.lake.answering import answering

from infold.core.object_store import StorageOptions

PAGE = 1000


@dataclass
class ListingStore:
    """``keys`` are its objects in order; ``asked`` are the prefixes that it was asked for."""

    url: str = ""
    keys: Sequence[str] = ()
    asked: list[str] = field(default_factory=list)

    @property
    def options(self) -> StorageOptions:
        """How it is reached."""
        key = "${env:STORE_KEY}"
        return StorageOptions(self.url, access_key_id=key, secret_access_key=key)

    def answer(self, _method: str, path: str, _content: bytes) -> tuple[int, bytes]:
        """A page of the objects with a prefix, and where the next one begins."""
        query = parse_qs(urlparse(path).query)
        prefix = query.get("prefix", [""])[0]
        at = int(query.get("continuation-token", ["0"])[0])
        self.asked.append(prefix)
        keys = [key for key in self.keys if key.startswith(prefix)]
        found = "".join(
            f"<Contents><Key>{key}</Key><LastModified>2024-03-09T12:00:00.000Z</LastModified>"
            f"<ETag>&quot;{number}&quot;</ETag><Size>9</Size></Contents>"
            for number, key in enumerate(keys[at : at + PAGE], at)
        )
        more = at + PAGE < len(keys)
        token = f"<NextContinuationToken>{at + PAGE}</NextContinuationToken>" if more else ""
        page = f"<IsTruncated>{str(more).lower()}</IsTruncated>{found}{token}"
        return 200, f"<ListBucketResult>{page}</ListBucketResult>".encode()


@contextmanager
def listing_store(monkeypatch: pytest.MonkeyPatch) -> Iterator[ListingStore]:
    """One without objects that runs."""
    monkeypatch.setenv("STORE_KEY", "a")
    found = ListingStore()
    with answering(found.answer) as found.url:
        yield found
