"""Hostile data files: each row is stored, set aside or waits, and none is lost.

One run ingests all of them, those of one format as one source; then each is counted.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.hostile import contents
from tests.hostile.contents import FILES, KINDS, path_of
from tests.hostile.outcome import judged

from infold import api
from infold.core import interval
from infold.core.model import SET_ASIDE, table_name
from infold.messages.errors import InfoldErrors

pytestmark = pytest.mark.spark


def test_each_file_is_accounted_for(tmp_path: Path) -> None:
    """
    The good rows of each hostile file are stored, and all others are set aside, singly or with
    their file. Rows dated in the future wait.
    """
    contents.write(tmp_path, aside=True)
    project = api.open_project(tmp_path)
    try:
        result = api.run(project, as_of=interval.parse_instant_text("2024-04-01"))
    except InfoldErrors as failed:
        pytest.fail("\n\n".join(map(str, failed.errors)))
    lake, book = api.lake_of(project), api.ledger_of(project)
    paths: dict[tuple[str, int], str] = {}
    queries = []
    for source in {source for source, _ in KINDS.values()}:
        paths |= {(source, file.id): file.path for file in book.files(f"raw.{source}")}
        table = f"infold.hostile.{table_name(f'raw.{source}')}"
        queries.append(f"SELECT '{source}' AS source, _source_file AS file, id FROM {table}")
    stored: dict[str, list[str]] = {}
    for row in api.session(project).sql(" UNION ALL ".join(queries)).toArrow().to_pylist():
        stored.setdefault(paths[row["source"], row["file"]], []).append(row["id"] or "")
    aside: dict[str, list[str]] = {}
    for row in lake.rows(SET_ASIDE, columns=["file", "reason"]).to_pylist():
        aside.setdefault(row["file"], []).append(row["reason"])
    wrong = {}
    for kind, files in FILES.items():
        for file in files:
            path = path_of(kind, file)
            good, bad = sorted(stored.get(path, [])), aside.get(path, [])
            if (good, len(bad)) != (sorted(file.good), 1 if file.whole else file.aside):
                shown = [f"{one[:20]!a}" for one in good[:20]]
                said = f"stored {len(good)}: {shown}, {len(bad)} set aside: {bad[:3]}"
                wrong[f"{kind} {file.name!a}"[:60]] = said

    judged("data", wrong)
    assert result.receipt.waiting == sum(one.waiting for files in FILES.values() for one in files)
