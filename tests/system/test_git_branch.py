"""The environment of git's branch, read from git's files."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.declare.shop import INFOLD, SHOP, write

from infold.declare.branch_environment import branch_of, environment_of, environment_of_branch


@pytest.mark.parametrize(
    ("branch", "name"),
    [
        (None, None),
        ("main", None),
        ("master", None),
        ("feature/new totals", "feature-new-totals"),
        ("1-fix", "_1-fix"),
        ("über", "_-ber"),
        ("-x", "_-x"),
        ("a" * 60, "a" * 40),
    ],
)
def test_the_name_follows_from_the_branch(branch: str | None, name: str | None) -> None:
    """Whatever is in no name becomes a dash; the main branch is production."""
    assert environment_of(branch) == name


def test_where_the_branch_is_written(tmp_path: Path) -> None:
    """A folder inside of a repository or of a worktree of one has its branch; others have none."""
    inner = tmp_path / "repo" / "shop"
    inner.mkdir(parents=True)
    assert branch_of(inner) is None
    git = tmp_path / "repo" / ".git"
    git.mkdir()
    (git / "HEAD").write_text("ref: refs/heads/a/b\n", encoding="utf-8")
    assert branch_of(inner) == "a/b"
    (git / "HEAD").write_text("1234abcd\n", encoding="utf-8")
    assert branch_of(inner) is None

    (git / "worktrees" / "one").mkdir(parents=True)
    (git / "worktrees" / "one" / "HEAD").write_text("ref: refs/heads/c\n", encoding="utf-8")
    tree = tmp_path / "one"
    tree.mkdir()
    (tree / ".git").write_text(f"gitdir: {git}/worktrees/one\n", encoding="utf-8")
    assert branch_of(tree) == "c"


def test_only_where_the_target_asks_for_it(tmp_path: Path) -> None:
    """A branch means an environment in targets that say so, and nowhere else."""
    write(tmp_path, {**SHOP, "infold.yml": INFOLD + "  own: {environment_from_branch: true}\n"})
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/fix\n", encoding="utf-8")

    assert environment_of_branch(tmp_path, "own") == "fix"
    assert environment_of_branch(tmp_path, None) is None
    assert environment_of_branch(tmp_path / "models", "own") is None
