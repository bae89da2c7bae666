"""The demo's data is complete and small, and its acts do what their texts say."""

from __future__ import annotations

import csv
import gzip
import io
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

import infold.demo
from infold.demo import acts

DATA = Path(infold.demo.__file__).parent / "data"
DAY = 86_400


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a gzipped CSV file; most files are the same in every act."""
    return parsed(path.read_bytes())


@cache
def parsed(content: bytes) -> list[dict[str, str]]:
    """The rows in the bytes of a gzipped CSV file."""
    return list(csv.DictReader(io.StringIO(gzip.decompress(content).decode(), newline="")))


def late(some: list[dict[str, str]], days: int) -> list[dict[str, str]]:
    """Those rows that arrived more than so many days after their event time."""
    return [row for row in some if int(row["received_ts"]) - int(row["event_ts"]) > days * DAY]


@pytest.mark.deep
def test_the_data_is_complete_and_late_as_its_readme_says() -> None:
    """No row is missing or repeated, the counts of late rows are those of the README; and it is
    small.
    """
    everything = [row for path in sorted(DATA.glob("*.gz")) for row in rows(path)]
    readme = (DATA / "README.md").read_text()

    assert len(everything) == len({row["event_id"] for row in everything}) == 76_743
    for days in (1, 7, 365):
        assert f"{len(late(everything, days)):,}" in readme
    assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_500_000


def test_june_is_as_late_as_its_text_says() -> None:
    """The numbers in the text about June are those of its file."""
    june = rows(DATA / "received-2026-06.csv.gz")

    assert [len(late(june, days)) for days in (7, 365)] == [19_342, 2_607]
    assert len({int(row["event_ts"]) // DAY for row in june}) == 342


def test_each_act_does_what_its_text_says(tmp_path: Path) -> None:
    """
    The first lays out a project with ten years, each adds its rows, a correction moves one commit
    by 26 minutes and drops another; in the end all is as before, July there once, and no August.
    """
    landing, counts, mays = tmp_path / "landing", [], []
    for number, act in enumerate(acts(tmp_path)):
        act.apply()
        there = [row for path in sorted(landing.iterdir()) for row in rows(path)]
        counts.append(len(there))
        if number == 0:
            assert len([*landing.iterdir()]) == 10
        if (may := landing / "received-2026-05.csv.gz").exists():
            mays.append({row["event_id"]: row for row in rows(may)})

    assert {"infold.yml", "DATA.md"} <= {path.name for path in tmp_path.iterdir()}
    models = {path.stem for path in (tmp_path / "models").iterdir()}
    assert models == {"events", "sessions", "daily"}
    every = 49_508 + 1_673 + 22_118 + 3_444 + 1_187
    assert counts[:3] == [49_508, 49_508 + 1_673, 49_508 + 1_673 + 22_118]
    assert counts[3:] == [every, every - 33, every - 3_444, every - 3_444]
    before, after, again = mays[-4:-1]
    gone = before.keys() - after.keys()
    assert (len(gone), len({before[one]["commit_id"] for one in gone})) == (33, 1)
    moved = [row for key, row in after.items() if row != before[key]]
    assert {row["commit_id"] for row in moved} == {"22c4b591f7e8"}
    by = {int(before[row["event_id"]]["event_ts"]) - int(row["event_ts"]) for row in moved}
    assert by == {26 * 60}
    assert again == before
    ids = Counter(row["event_id"] for row in there)
    assert all(ids[row["event_id"]] == 1 for row in rows(DATA / "received-2026-07.csv.gz"))
    assert not list(landing.glob("*2026-08*"))
    withdrawn = {path.name for path in (tmp_path / "withdrawn").iterdir()}
    assert withdrawn == {f"received-2026-{month}.csv.gz" for month in ("07", "08")}
