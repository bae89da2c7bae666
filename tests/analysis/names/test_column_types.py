"""Types are followed through nested queries, a column at a time."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from infold.analysis.names import column_types
from infold.declare.load import check

DEPTH = 12


def test_each_level_of_nested_queries_is_asked_once_for_each_column(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A chain of CTEs with two columns is not asked for 2^12 of them."""
    ctes = [f"c{i} AS (SELECT a, b FROM {f'c{i - 1}' if i else 'raw.t'})" for i in range(DEPTH)]
    (tmp_path / "models").mkdir()
    (tmp_path / "infold.yml").write_text(
        "name: deep\nsources: {raw.t: {path: t/*.json, columns: {a: string, b: string}}}\n"
    )
    query = f"WITH {', '.join(ctes)} SELECT a, b FROM c{DEPTH - 1}"
    (tmp_path / "models/m.sql").write_text(f"---\nmaterialization: table\n---\n{query}\n")
    asked = 0
    real: Callable[..., str | None] = column_types._of_origin

    def counted(*words: object) -> str | None:
        nonlocal asked
        asked += 1
        return real(*words)

    monkeypatch.setattr(column_types, "_of_origin", counted)

    assert check(tmp_path) == []
    assert 0 < asked < 200
