"""A source that loses many files or rows at once is refused, as when a share is not mounted."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import parquet
from tests.declare.shop import INFOLD, SHOP, write
from tests.planning.taken_in import take_in

from infold import api
from infold.core.files import IngestedFile, ListedFile
from infold.core.formats import Format
from infold.core.model import Column, Source
from infold.core.plan import FileDiff
from infold.messages.errors import InfoldError, InfoldErrors
from infold.planning.removals import excessive_removals, refuse_lost_rows, refuse_removals


class Share:
    """A project over a folder of files, each of ten rows, that a model has taken in."""

    def __init__(self, root: Path, files: int, limit: str | None = None) -> None:
        text = INFOLD.replace(
            "    format: json\n",
            f"    format: json\n    removal_limit: {limit}\n" if limit else "    format: json\n",
        )
        write(root, {**SHOP, "infold.yml": text})
        (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
        self.folder = root / "landing" / "clicks"
        self.folder.mkdir(parents=True)
        for number in range(files):
            self.land(f"{number}.json")
        self.project = api.open_project(root)
        self.take_in()

    def land(self, name: str, text: str = "{}") -> None:
        """A file; only its size is read."""
        (self.folder / name).write_text(text, encoding="utf-8")

    def take_in(self) -> None:
        """What is there is what clicks holds."""
        take_in(self.project, "clicks", "raw.clicks")

    def lose(self, *numbers: int) -> None:
        """Files that are gone."""
        for number in numbers:
            (self.folder / f"{number}.json").unlink()

    def lost(self) -> str:
        """What a run is refused for; empty when it is not."""
        todo = api.make_plan(self.project, api.observe(self.project), select=["clicks"])
        found = dict(excessive_removals(self.project, todo))
        assert set(found) <= {"raw.clicks"}
        return found.get("raw.clicks", "")


def share(tmp_path: Path, files: int, limit: str | None = None) -> Share:
    """So many files, all taken in."""
    return Share(tmp_path / "shop", files, limit)


def test_an_emptied_folder_is_refused_until_it_is_allowed(tmp_path: Path) -> None:
    """A run refuses an emptied folder before anything is
    written, exit code 3, and the option allows it.
    """
    clicks = share(tmp_path, 3)
    clicks.lose(0, 1, 2)
    todo = api.make_plan(clicks.project, api.observe(clicks.project), select=["clicks"])

    with pytest.raises(InfoldError) as caught:
        api.run(clicks.project)

    assert (caught.value.slug, caught.value.exit_code) == ("source-shrank", 3)
    assert caught.value.facts == (("raw.clicks", "3 of 3 files gone, with 30 of 30 rows"),)
    assert api.history(clicks.project)[0].state == "refused"
    assert len(api.ledger(clicks.project).files("clicks")) == 3
    assert todo.notes == (
        "raw.clicks: 3 of 3 files gone, with 30 of 30 rows; a run needs --allow-removals",
    )
    refuse_removals(clicks.project, todo, allowed=True)


@pytest.mark.parametrize(
    ("files", "gone", "limit", "refused"),
    [
        (1, 1, None, True),
        (20, 19, None, False),
        (21, 10, None, False),
        (21, 11, None, True),
        (22, 11, None, False),  # half is not more than half
        (20, 2, "10%", False),
        (20, 3, "10%", True),
        (3, 3, "100%", False),
        (3, 1, "0%", True),
    ],
)
def test_how_much_may_be_removed(
    tmp_path: Path, files: int, gone: int, limit: str | None, refused: bool
) -> None:
    """By default not all files, and of more than 20 at most half, may be removed, or as
    declared.
    """
    clicks = share(tmp_path, files, limit)
    clicks.lose(*range(gone))

    assert bool(clicks.lost()) is refused


def test_rows_count_like_files(tmp_path: Path) -> None:
    """Removing one large file among many small ones removes most of the source's rows."""
    clicks = share(tmp_path, 4, "50%")
    clicks.lose(0)
    seen = api.observe(clicks.project)
    assert not clicks.lost()

    files = seen.models["clicks"].files
    assert files is not None
    [gone] = files.lost
    large = replace(gone, rows=31)
    known = tuple(large if file == gone else file for file in files.ingested)
    model = replace(seen.models["clicks"], files=replace(files, lost=(large,), ingested=known))
    todo = api.make_plan(
        clicks.project, replace(seen, models={**seen.models, "clicks": model}), select=["clicks"]
    )

    assert dict(excessive_removals(clicks.project, todo)) == {
        "raw.clicks": "1 of 4 files gone, with 31 of 61 rows"
    }


def test_files_in_their_place_compensate(tmp_path: Path) -> None:
    """A renamed file or the next full copy compensates for a removed one; fewer rows do not."""
    clicks = share(tmp_path, 2)
    clicks.lose(0, 1)
    clicks.land("a.json")
    assert clicks.lost()
    clicks.land("b.json")
    assert not clicks.lost()


def test_emptied_files_count_as_removed(tmp_path: Path) -> None:
    """Files cut to no bytes count as removed, and corrected ones do not. When a folder is mounted
    again, no file is new and none is removed.
    """
    clicks = share(tmp_path, 2)
    away = shutil.move(clicks.folder, tmp_path / "away")
    clicks.folder.mkdir()
    assert clicks.lost()
    clicks.folder.rmdir()
    shutil.move(away, clicks.folder)
    seen = clicks.project
    assert not api.make_plan(seen, api.observe(seen), select=["clicks"]).steps

    clicks.land("0.json", "")
    clicks.land("1.json", "{} {}")
    assert not clicks.lost()
    clicks.land("1.json", "")
    assert clicks.lost()


def replaced(
    files: int, rows: int, *, after: int, iceberg: bool = False, came: int = 0, grown: int = 0
) -> str:
    """The refusal when files have another number of rows, and some new rows arrived."""
    columns = (Column("id", "string"),)
    source = Source("raw.clicks", Format.ICEBERG if iceberg else Format.CSV, columns, path="*.csv")
    known = tuple(IngestedFile(at, f"{at}.csv", 9, "old", 0, rows=rows) for at in range(files))
    counted = {file.path: after for file in known} | ({"more.csv": came} if came else {})
    counted |= {"0.csv": grown} if grown else {}
    diff = FileDiff(source.name, removed=known, ingested=known, row_counts=counted)
    refuse_lost_rows(source, replace(diff, removals_allowed=True))
    try:
        refuse_lost_rows(source, diff)
    except InfoldError as error:
        return dict(error.facts)["raw.clicks"]
    return ""


def test_rows_of_replaced_files_count() -> None:
    """Rows that replaced files lost count as removed; as many rows or more are a correction. Rows
    that an Iceberg update moves to other files are not removed, and missing ones are.
    """
    assert replaced(30, 10, after=0) == (
        "30 of 30 files replaced by ones with fewer rows: 300 of 300 rows gone"
    )
    assert replaced(30, 10, after=4)
    assert replaced(1, 10, after=0)
    assert replaced(30, 10, after=0, grown=1000), "one that grew does not stand for the others"
    assert replaced(30, 10, after=0, came=300), "of files, others do not stand for them"
    assert not replaced(20, 10, after=1)
    assert not any(replaced(30, 10, after=after) for after in (5, 10, 11))
    assert not replaced(30, 10, after=0, iceberg=True, came=300)
    assert replaced(30, 10, after=0, iceberg=True, came=1)


def test_parquet_footers_give_row_counts(tmp_path: Path) -> None:
    """The plan knows rows of Parquet files from their footers without starting Spark."""
    clicks = share(tmp_path, 2)
    source = replace(clicks.project.sources["raw.clicks"], format=Format.PARQUET)
    clicks.project = replace(
        clicks.project, sources={**clicks.project.sources, source.name: source}
    )
    ten = pa.table({"id": list(range(10))})
    for rows, refused in ((10, False), (1, False), (0, True)):
        for number in range(2):
            parquet.write_table(ten.slice(0, rows), clicks.folder / f"{number}.json")
        assert bool(clicks.lost()) is refused, rows
    with pytest.raises(InfoldError, match="more than may go in one run"):
        api.run(clicks.project, select=["clicks"])


def test_a_changed_definition_hides_nothing(tmp_path: Path) -> None:
    """A changed definition, which ingests everything again, still refuses missing files."""
    clicks = share(tmp_path, 3)
    model = clicks.project.root / "models" / "clicks.sql"
    model.write_text(model.read_text().replace("WHERE", "WHERE true AND"), encoding="utf-8")
    clicks.project = api.open_project(clicks.project.root)
    assert not clicks.lost()
    clicks.lose(0, 1, 2)
    assert clicks.lost()


def test_a_compacted_iceberg_table_lost_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compacted Iceberg table lost nothing, though few
    files replace many; without files it is empty.
    """
    clicks = share(tmp_path, 3)
    source = replace(
        clicks.project.sources["raw.clicks"], format=Format.ICEBERG, path=None, table="lake.clicks"
    )
    project = replace(clicks.project, sources={**clicks.project.sources, source.name: source})
    clicks.project = project
    now: list[ListedFile] = [ListedFile("data/all.parquet", 2_500_000, 0, "9")]
    monkeypatch.setattr("infold.lake.reading.iceberg_table.table_files", lambda *_: tuple(now))

    assert not clicks.lost()
    seen = api.observe(clicks.project)
    (note,) = api.make_plan(clicks.project, seen, select=["clicks"]).notes
    assert note.startswith("clicks: raw.clicks has rows in other files than before; all rows")
    assert "(1 file, 2.5 MB) are read and compared" in note
    now.clear()
    assert clicks.lost()


@pytest.mark.parametrize("text", ["half", "10", "101%", "-1%"])
def test_the_share_is_written_in_percent(tmp_path: Path, text: str) -> None:
    """The allowed share is written in percent, and anything else is a mistake at its place."""
    with pytest.raises(InfoldErrors, match="removal_limit is not a part in percent"):
        share(tmp_path, 0, json.dumps(text))
