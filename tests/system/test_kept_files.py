"""What is kept in a project's folder counts only for the user who kept it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from infold.system.kept_files import cache_dir, keep, kept, open_log, own_key, replace_file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where something is kept, by the key in a cache of its own."""
    monkeypatch.setenv("INFOLD_CACHE", str(tmp_path / "cache"))
    return tmp_path / "kept"


def test_what_was_kept_is_there(file: Path) -> None:
    """In a later process too; the key can be read by nobody else."""
    keep(file, b"this")
    script = "from infold.system.kept_files import kept; from pathlib import Path; import sys; "
    script += "print(kept(Path(sys.argv[1])))"
    later = subprocess.run(
        [sys.executable, "-c", script, file], capture_output=True, text=True, check=True
    )

    assert later.stdout == "b'this'\n"
    assert (cache_dir() / "key").stat().st_mode & 0o777 == 0o600


def test_anything_else_is_as_if_it_were_missing(file: Path) -> None:
    """A file without a digest, cut, longer, of other bytes, and none."""
    keep(file, b"this")
    whole = file.read_bytes()
    for other in (b"", b"this", whole[:-1], whole + b"!", whole.replace(b"this", b"that")):
        file.write_bytes(other)

        assert kept(file) is None
    file.unlink()
    assert kept(file) is None


def test_nothing_is_kept_without_a_key(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where there is no home, the cache is a file, or others can read the key."""
    own_key(cache_dir())
    key = cache_dir() / "key"
    key.chmod(0o644)
    own_key.cache_clear()
    keep(file, b"this")
    monkeypatch.setenv("INFOLD_CACHE", str(key))
    keep(file, b"this")

    assert not file.exists()
    assert kept(file) is None


def test_no_link_is_followed(file: Path) -> None:
    """A project may come with links in the place of what commands write, to anything."""
    precious = file.with_name("precious")
    for write in (
        lambda: keep(file, b"this"),
        lambda: replace_file(file, b"this"),
        lambda: open_log(file).close(),
    ):
        precious.write_text("precious")
        file.unlink(missing_ok=True)
        file.symlink_to(precious)

        write()

        assert precious.read_text() == "precious"
        assert not file.is_symlink()
