"""The newest version of a table that others write, of a log in a store: what is asked of that."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from infold.lake.delta.log import DROPPED, Newest, newest
from infold.lake.stores import places

FOLDER = "s3://lake/orders"
LOG = f"{FOLDER}/_delta_log"


def commits(*versions: int) -> list[str]:
    """The files of versions."""
    return [f"{version:020}.json" for version in versions]


def look(
    monkeypatch: pytest.MonkeyPatch, names: list[str], checkpoint: bytes | None
) -> tuple[Newest | None, list[str]]:
    """What is found in a log with these files, and after which names it was listed."""
    asked = []

    def marks(folder: str, after: str) -> Mapping[str, str]:
        assert folder == LOG
        asked.append(after)
        return {name: f"e-{name[18:20]}" for name in names if name > after}

    def read(location: str) -> bytes:
        assert location == f"{LOG}/_last_checkpoint"
        if checkpoint is None:
            raise FileNotFoundError(location)
        return checkpoint

    monkeypatch.setattr(places, "marks", marks)
    monkeypatch.setattr(places, "read", read)
    return newest(FOLDER), asked


def test_what_comes_after_the_last_checkpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more is listed, however long the log is; the commit's ETag tells it from another one."""
    found, asked = look(monkeypatch, commits(*range(50)), b'{"version": 40}')

    assert found == Newest(FOLDER, 49, f"{LOG}/{49:020}.json:e-49")
    assert asked == [f"{40:020}"]


@pytest.mark.parametrize(
    "checkpoint",
    [None, b"{", b"[]", b"{}", b'{"version": "x"}', b'{"version": 99}'],
    ids=["none", "damaged", "a list", "without it", "a text", "of no version"],
)
def test_a_checkpoint_that_says_nothing(
    monkeypatch: pytest.MonkeyPatch, checkpoint: bytes | None
) -> None:
    """All of the log is listed."""
    found, asked = look(monkeypatch, [*commits(3, 5), f"{9:020}.checkpoint.parquet"], checkpoint)

    assert found is not None
    assert found.version == 5
    assert asked[-1] == ""


@pytest.mark.parametrize("names", [[], ["x.json"], [*commits(0, 1), DROPPED]])
def test_no_table(monkeypatch: pytest.MonkeyPatch, names: list[str]) -> None:
    """Nothing that is a version, or a table of infold's that is being deleted."""
    found, _ = look(monkeypatch, names, b'{"version": 1}')

    assert found is None
