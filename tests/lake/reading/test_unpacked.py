"""Where a file is, and the bytes of packed ones, which Spark unpacks to the same or refuses."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.lake.reading.source_file import SourceFile, location

LINES = b"a\nb\n"
GOOD = {
    "no bytes": (b"", b""),
    "one member": (gzip.compress(LINES, mtime=0), LINES),
    "two members": (gzip.compress(LINES, mtime=0) * 2, LINES * 2),
    "an empty member": (gzip.compress(b"", mtime=0), b""),
    "an empty member first": (gzip.compress(b"", mtime=0) + gzip.compress(LINES, mtime=0), LINES),
}
BAD = {
    "cut off": gzip.compress(LINES, mtime=0)[:-3],
    "half of a header": b"\x1f\x8b",
    "a byte": b"\x1f",
    "zeros behind it": gzip.compress(LINES, mtime=0) + b"\0" * 512,
    "a zero behind it": gzip.compress(LINES, mtime=0) + b"\0",
    "more behind it": gzip.compress(LINES, mtime=0) + b"more and more",
    "another sum": gzip.compress(LINES, mtime=0)[:-8]
    + b"\0" * 4
    + gzip.compress(LINES, mtime=0)[-4:],
    "zlib": zlib.compress(LINES),
    "not packed": LINES,
}


def put(folder: Path, name: str, content: bytes) -> SourceFile:
    """A file."""
    at = folder / name
    at.write_bytes(content)
    return SourceFile(str(at), len(content))


@pytest.mark.parametrize("name", GOOD)
def test_gzip_is_unpacked(tmp_path: Path, name: str) -> None:
    """All of it, whatever it was put together from, and line by line."""
    packed, content = GOOD[name]
    file = put(tmp_path, "a.json.gz", packed)

    with file.unpacked() as opened:
        assert opened.read() == content
    with file.unpacked() as opened:
        assert list(opened) == content.splitlines(keepends=True)


@pytest.mark.parametrize("name", BAD)
def test_damaged_gzip_is_refused(tmp_path: Path, name: str) -> None:
    """What Hadoop refuses is refused here too, so that a file's size does not matter."""
    file = put(tmp_path, "a.json.gz", BAD[name])

    with pytest.raises(OSError), file.unpacked() as opened:
        opened.read()


@pytest.mark.parametrize(
    ("ending", "packed"),
    [
        *((ending, gzip.compress(LINES, mtime=0)) for ending in (".gz", ".gzip", ".GZ", ".GZip")),
        *((ending, LINES) for ending in (".lz4", ".snappy", ".deflate", ".gz2", "gz")),
    ],
)
def test_the_ending_says_how_it_is_packed(tmp_path: Path, ending: str, packed: bytes) -> None:
    """In letters of any case, as Spark takes it. A file with another one is what it is."""
    with put(tmp_path, f"a.json{ending}", packed).unpacked() as opened:
        assert opened.read() == LINES


@given(st.sampled_from(["/data/shop", "/"]), st.text(alphabet="a ./é:_", min_size=1))
def test_it_is_pathlibs(root: str, path: str) -> None:
    """Below the folder of the project, above it or elsewhere, the quick way gives what pathlib
    does.
    """
    assert location(Path(root), path) == str(Path(root) / path)
