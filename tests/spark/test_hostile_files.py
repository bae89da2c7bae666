"""
Files of data that nobody should deliver: each row is stored, set aside or waits, and none is lost.

The files of one format lie in one folder, and one run takes all of them in; then each is counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from tests.hostile import contents
from tests.hostile.contents import COLUMNS, File
from tests.hostile.outcome import judged

from infold import api, interval
from infold.errors import InfoldErrors

pytestmark = pytest.mark.spark

ENDINGS = {"csv": "csv", "packed": "csv.gz", "json": "json", "parquet": "parquet", "named": "csv"}
NAMED = [File(n, contents.table(contents.line("a")), "a") for n in contents.NAMES]
FILES: dict[str, Sequence[File]] = {
    "csv": contents.CSV,
    "packed": contents.PACKED,
    "json": contents.JSON,
    "parquet": contents.PARQUET,
    "named": NAMED,
}
SOURCE = """
  raw.{0}:
    path: landing/{0}/*.{1}
    format: {2}
    event_time_column: ts
    on_drift: set_aside
    on_unreadable: set_aside
    columns: {3}"""
MODEL = "---\nmaterialization: table\n---\nSELECT count(*) AS n FROM raw.{}"


def named(format_: str, file: File) -> str:
    """A file's name in its folder."""
    return file.name if format_ == "named" else f"{file.name}.{ENDINGS[format_]}"


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A project that took in all files by one run, and how many rows wait."""
    root = tmp_path_factory.mktemp("hostile")
    (root / "models").mkdir()
    said = "name: hostile\nsources:"
    for format_, ending in ENDINGS.items():
        read_as = ending.removesuffix(".gz")
        said += SOURCE.format(format_, ending, read_as, COLUMNS)
        (root / "models" / f"of_{format_}.sql").write_text(MODEL.format(format_))
        (root / "landing" / format_).mkdir(parents=True)
        for file in FILES[format_]:
            (root / "landing" / format_ / named(format_, file)).write_bytes(file.content)
    (root / "infold.yml").write_text(said)
    try:
        result = api.run(api.open_project(root), as_of=interval.instant("2024-04-01"))
    except InfoldErrors as failed:
        pytest.fail("\n\n".join(map(str, failed.errors)))
    return root, result.receipt.waiting


@pytest.mark.parametrize("format_", ENDINGS)
def test_each_file_is_accounted_for(
    format_: str, taken: tuple[Path, int], record_property: Callable[[str, object], None]
) -> None:
    """Its good rows are stored, and all others are set aside, one by one or with their file."""
    root, _ = taken
    project = api.open_project(root)
    lake, book = api.lake(project), api.ledger(project)
    paths = {file.id: file.path for file in book.files(f"raw.{format_}")}
    stored: dict[str, list[str]] = {}
    query = f"SELECT id, _source_file AS file FROM infold.hostile.raw__{format_}"
    for row in api.session(project).sql(query).toArrow().to_pylist():
        stored.setdefault(paths[row["file"]].rpartition("/")[2], []).append(row["id"])
    aside = Counter(
        row["file"].rpartition("/")[2]
        for row in lake.rows("infold__set_aside").to_pylist()
        if row["source"] == f"raw.{format_}"
    )
    wrong = {}
    for file in FILES[format_]:
        name = named(format_, file)
        good, bad = sorted(stored.get(name, [])), aside[name]
        if (good, bad) != (sorted(file.good), 1 if file.whole else file.aside):
            shown = [f"{one[:20]!a}" for one in good[:20]]
            wrong[f"{file.name!a}"[:60]] = f"stored {len(good)}: {shown}, {bad} set aside"
    record_property("hostile", len(FILES[format_]))

    judged(f"data {format_}", wrong, [f"{file.name!a}"[:60] for file in FILES[format_]])


def test_rows_of_the_future_wait(taken: tuple[Path, int]) -> None:
    """As many as there are, whatever their format."""
    assert taken[1] == sum(file.waiting for files in FILES.values() for file in files)
