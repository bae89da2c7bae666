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
from infold.demo import Act, acts

DATA = Path(infold.demo.__file__).parent / "data"
DAY = 86_400


def rows(path: Path) -> list[dict[str, str]]:
    """The rows of a gzipped CSV file; most files are the same in every act."""
    return parsed(path.read_bytes())


@cache
def parsed(content: bytes) -> list[dict[str, str]]:
    """The rows in the bytes of a gzipped CSV file."""
    return list(csv.DictReader(io.StringIO(gzip.decompress(content).decode(), newline="")))


def landed(directory: Path) -> list[dict[str, str]]:
    """The rows of all files in the demo's landing folder."""
    return [row for path in sorted((directory / "landing").iterdir()) for row in rows(path)]


def late(some: list[dict[str, str]], days: int) -> list[dict[str, str]]:
    """Those rows that arrived more than so many days after their event time."""
    return [row for row in some if int(row["received_ts"]) - int(row["event_ts"]) > days * DAY]


@pytest.fixture
def play(tmp_path: Path) -> list[Act]:
    """The acts of a demo in a fresh folder."""
    return list(acts(tmp_path))


class TestData:
    """The data that ships with the package."""

    def test_the_data_is_small(self) -> None:
        """All data files together are smaller than 1.5 MB."""
        assert sum(path.stat().st_size for path in DATA.iterdir()) < 1_500_000

    @pytest.mark.deep
    def test_the_data_is_complete_and_late_as_its_readme_says(self) -> None:
        """No row is missing or repeated, and the counts of late rows are those of the README."""
        everything = [row for path in sorted(DATA.glob("*.gz")) for row in rows(path)]
        readme = (DATA / "README.md").read_text()

        assert len(everything) == 76_743
        assert len({row["event_id"] for row in everything}) == 76_743
        for days in (1, 7, 365):
            assert f"{len(late(everything, days)):,}" in readme


class TestActs:
    """Each act changes the landing folder as its text says."""

    def test_the_first_lays_out_a_project_with_ten_years(
        self, tmp_path: Path, play: list[Act]
    ) -> None:
        """The first act creates the project's files, ten files of rows and their origin."""
        play[0].apply()

        assert (tmp_path / "infold.yml").exists()
        assert (tmp_path / "DATA.md").exists()
        models = {path.stem for path in (tmp_path / "models").iterdir()}
        assert models == {"events", "sessions", "daily"}
        assert len(list((tmp_path / "landing").iterdir())) == 10
        assert len(landed(tmp_path)) == 49_508

    def test_each_act_adds_the_rows_of_its_text(self, tmp_path: Path, play: list[Act]) -> None:
        """After each act the folder has as many rows as the texts add up to."""
        counts = []
        for act in play:
            act.apply()
            counts.append(len(landed(tmp_path)))

        every = 49_508 + 1_673 + 22_118 + 3_444 + 1_187
        assert counts[:3] == [49_508, 49_508 + 1_673, 49_508 + 1_673 + 22_118]
        assert counts[3:] == [every, every - 33, every - 3_444, every - 3_444]

    def test_june_is_as_late_as_its_text_says(self) -> None:
        """The numbers in the text about June are those of its file."""
        june = rows(DATA / "received-2026-06.csv.gz")

        assert len(late(june, 7)) == 19_342
        assert len(late(june, 365)) == 2_607
        assert len({int(row["event_ts"]) // DAY for row in june}) == 342

    def test_the_correction_moves_one_commit_and_drops_another(
        self, tmp_path: Path, play: list[Act]
    ) -> None:
        """It moves one commit by 26 minutes and drops another; in the end all is as before."""
        for act in play[:4]:
            act.apply()
        path = tmp_path / "landing" / "received-2026-05.csv.gz"
        before = {row["event_id"]: row for row in rows(path)}
        play[4].apply()
        after = {row["event_id"]: row for row in rows(path)}
        play[5].apply()

        assert len(before.keys() - after.keys()) == 33
        assert len({before[gone]["commit_id"] for gone in before.keys() - after.keys()}) == 1
        moved = [row for key, row in after.items() if row != before[key]]
        assert {row["commit_id"] for row in moved} == {"22c4b591f7e8"}
        by = {int(before[row["event_id"]]["event_ts"]) - int(row["event_ts"]) for row in moved}
        assert by == {26 * 60}
        assert {row["event_id"]: row for row in rows(path)} == before

    def test_julys_copy_stays_when_its_first_file_is_deleted(
        self, tmp_path: Path, play: list[Act]
    ) -> None:
        """In the end each row of July is there once, and no file of August."""
        for act in play:
            act.apply()
        ids = Counter(row["event_id"] for row in landed(tmp_path))

        assert all(ids[row["event_id"]] == 1 for row in rows(DATA / "received-2026-07.csv.gz"))
        assert not list((tmp_path / "landing").glob("*2026-08*"))
        withdrawn = {path.name for path in (tmp_path / "withdrawn").iterdir()}
        assert withdrawn == {f"received-2026-{month}.csv.gz" for month in ("07", "08")}
