"""Hostile data files: each row is stored, set aside or waits, and none is lost.

The files of one format are in one folder, and one run ingests all of them; then each is counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hostile import contents
from tests.hostile.contents import ENDINGS, FILES, named
from tests.hostile.outcome import judged

from infold import api
from infold.core import interval
from infold.messages.errors import InfoldErrors

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def taken(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A project that took in all files by one run, and how many rows wait."""
    root = tmp_path_factory.mktemp("hostile")
    contents.write(root, aside=True)
    for model in (root / "models").iterdir():
        model.unlink()  # one that reads all sources will do
    counts = " UNION ALL ".join(f"SELECT count(*) AS n FROM raw.{format_}" for format_ in ENDINGS)
    (root / "models" / "all.sql").write_text(f"---\nmaterialization: table\n---\n{counts}")
    try:
        result = api.run(api.open_project(root), as_of=interval.parse_instant_text("2024-04-01"))
    except InfoldErrors as failed:
        pytest.fail("\n\n".join(map(str, failed.errors)))
    return root, result.receipt.waiting


@pytest.mark.parametrize("format_", ENDINGS)
def test_each_file_is_accounted_for(format_: str, taken: tuple[Path, int]) -> None:
    """The good rows of each hostile file are stored, and
    all others are set aside, singly or with their file.
    """
    root, _ = taken
    project = api.open_project(root)
    lake, book = api.lake_of(project), api.ledger_of(project)
    paths = {file.id: file.path for file in book.files(f"raw.{format_}")}
    stored: dict[str, list[str]] = {}
    query = f"SELECT id, _source_file AS file FROM infold.hostile.raw__{format_}"
    for row in api.session(project).sql(query).toArrow().to_pylist():
        stored.setdefault(paths[row["file"]].rpartition("/")[2], []).append(row["id"] or "")
    aside: dict[str, list[str]] = {}
    for row in lake.rows("infold__set_aside").to_pylist():
        if row["source"] == f"raw.{format_}":
            aside.setdefault(row["file"].rpartition("/")[2], []).append(row["reason"])
    wrong = {}
    for file in FILES[format_]:
        name = named(format_, file)
        good, bad = sorted(stored.get(name, [])), aside.get(name, [])
        if (good, len(bad)) != (sorted(file.good), 1 if file.whole else file.aside):
            shown = [f"{one[:20]!a}" for one in good[:20]]
            wrong[f"{file.name!a}"[:60]] = (
                f"stored {len(good)}: {shown}, {len(bad)} set aside: {bad[:3]}"
            )

    judged(f"data {format_}", wrong)


def test_rows_of_the_future_wait(taken: tuple[Path, int]) -> None:
    """Rows dated in the future wait in every format, all of them counted."""
    assert taken[1] == sum(file.waiting for files in FILES.values() for file in files)
