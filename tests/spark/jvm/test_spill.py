"""The folders that Spark spills into are private, and removed when no process uses them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from infold.spark.jvm.spark_session import new_spill_folder


def test_only_its_owner_may_look_into_it(tmp_path: Path) -> None:
    """Others can read neither the spill folder nor the one around it, whatever the umask."""
    before = os.umask(0)
    try:
        folder, held = new_spill_folder(tmp_path / "spill")
    finally:
        os.umask(before)
    os.close(held)

    assert [path.stat().st_mode & 0o777 for path in (folder, folder.parent)] == [0o700, 0o700]


def test_the_next_process_removes_unused_folders(tmp_path: Path) -> None:
    """The next process removes folders of killed processes and keeps those in use."""
    one, held_by_one = new_spill_folder(tmp_path)
    two, held_by_two = new_spill_folder(tmp_path)
    (one / "rows").write_text("ann")
    (two / "rows").write_text("bob")
    os.close(held_by_one)

    three, held_by_three = new_spill_folder(tmp_path)

    assert not one.exists()
    assert (two / "rows").read_text() == "bob"
    assert three.is_dir()
    os.close(held_by_two)
    os.close(held_by_three)


def test_a_folder_of_anything_else_is_left_alone(tmp_path: Path) -> None:
    """A project may come with a link in the place of the folder, and it may lead home."""
    home = tmp_path / "home"
    for name in ("documents", "2024-taxes"):
        (home / name).mkdir(parents=True)
        (home / name / "kept").touch()
    home.chmod(0o755)
    (tmp_path / "spill").symlink_to(home)

    _, held = new_spill_folder(tmp_path / "spill")
    os.close(held)

    assert sorted(path.parent.name for path in home.glob("*/kept")) == ["2024-taxes", "documents"]
    assert home.stat().st_mode & 0o777 == 0o755


def test_the_lock_is_inherited(tmp_path: Path) -> None:
    """A process that inherits the lock keeps it, because a
    JVM outlives its killed parent by a moment.
    """
    folder, held = new_spill_folder(tmp_path)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(held,)
    )
    os.close(held)
    _, other = new_spill_folder(tmp_path)
    os.close(other)
    assert folder.exists()

    child.communicate(b"\n")
    _, last = new_spill_folder(tmp_path)
    os.close(last)

    assert not folder.exists()
