"""A listing of many objects, by a server that only lists."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from urllib.parse import parse_qs, urlparse

import pytest

from infold.core.formats import Format
from infold.core.model import Source
from infold.core.object_store import StorageOptions, Stores
from infold.core.project import Project
from infold.core.target import Target
from infold.lake.reading.listing import list_files
from infold.lake.reading.object_listing import refuse_name
from infold.messages.errors import InfoldError

MANY = 10_000


class _Lister(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked = 0
    folder = "in"

    def log_message(self, *_: object) -> None:
        """Nothing."""

    def do_GET(self) -> None:
        """A page of a thousand objects, and where the next one begins."""
        type(self).asked += 1
        query = parse_qs(urlparse(self.path).query)
        at = int(query.get("continuation-token", ["0"])[0])
        found = "".join(
            f"<Contents><Key>{self.folder}/{number:06}.json</Key><LastModified>2024-03-09T12:00:00.000Z"
            f"</LastModified><ETag>&quot;{number:032x}&quot;</ETag><Size>9</Size></Contents>"
            for number in range(at, at + 1000)
        )
        more = at + 1000 < MANY
        token = f"<NextContinuationToken>{at + 1000}</NextContinuationToken>" if more else ""
        page = (
            f"<ListBucketResult><IsTruncated>{str(more).lower()}</IsTruncated>{found}{token}"
            "</ListBucketResult>"
        ).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Project]:
    """A project with a source of that server."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Lister)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    monkeypatch.setenv("STORE_KEY", "a")
    key = "${env:STORE_KEY}"
    options = StorageOptions(
        f"http://127.0.0.1:{server.server_address[1]}", access_key_id=key, secret_access_key=key
    )
    source = Source("raw.clicks", Format.JSON, (), path="s3://many/in/*.json")
    target = Target("dev", stores=Stores(options))
    yield Project("shop", tmp_path, None, {source.name: source}, (), target)
    server.shutdown()
    server.server_close()


def test_ten_thousand_objects(project: Project) -> None:
    """A request for each thousand, and less than a second of this process."""
    source, _Lister.asked = project.sources["raw.clicks"], 0
    started = time.process_time()
    files, _ = list_files(project, source, 0)
    spent = time.process_time() - started
    assert len(files) == MANY
    assert files[1].path == "s3://many/in/000001.json"
    assert files[1].fingerprint == f'9:"{1:032x}"'
    assert _Lister.asked == MANY // 1000
    assert spent < 1  # of the server, too


@pytest.mark.parametrize("folder", ["in/", "in/..", "in/a\nb"])
def test_an_object_that_obstore_cannot_name(
    project: Project, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    """The error names it and says what to do; the store did not fail."""
    monkeypatch.setattr(_Lister, "folder", folder)
    with pytest.raises(InfoldError, match="begin further down") as refused:
        list_files(project, project.sources["raw.clicks"], 0)
    assert refused.value.slug == "bad-file-name"
    named = repr(f"{folder}/000000.json").strip("'")
    assert refused.value.facts == (("at", "s3://many/in"), ("object", named))


@pytest.mark.parametrize("ending", [".gzip", ".ZSTD", ".lz4", ".snappy", ".deflate"])
def test_an_object_that_spark_unpacks_in_another_way(project: Project, ending: str) -> None:
    """There are no links in a store, so it is refused by its name; an ORC file may have that."""
    source = project.sources["raw.clicks"]
    with pytest.raises(InfoldError) as refused:
        refuse_name(source, f"s3://many/in/a.json{ending}")
    assert refused.value.slug == "bad-file-name"
    refuse_name(source, "s3://many/in/a.json.gz")
    refuse_name(replace(source, format=Format.ORC), f"s3://many/in/a{ending}")


def test_obstore_is_not_installed(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "obstore.store", None)
    source = replace(project.sources["raw.clicks"], path="s3://other/in/*.json")
    with pytest.raises(InfoldError, match=r"infold\[s3\]"):
        list_files(project, source, 0)
