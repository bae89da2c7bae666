"""A Delta table of somebody else's in the place of one of infold's: refused, whatever it has."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from tests.declare.shop import INFOLD, SHOP, write
from tests.lake.delta.made import Made
from tests.running.commands import infold

from infold import api
from infold.core.project import Project
from infold.core.trace import Version
from infold.running.ledger_consistency import foreign_tables

FIELD = {"name": "n", "type": "long", "nullable": True}
IDENTITY = {"delta.identity.start": 1, "delta.identity.step": 1}
MAPPED = {"delta.columnMapping.id": 1, "delta.columnMapping.physicalName": "col-1"}


def least(reader: int, writer: int, *features: str) -> Mapping[str, Any]:
    """A protocol."""
    found: dict[str, Any] = {"minReaderVersion": reader, "minWriterVersion": writer}
    if features:
        found |= {"readerFeatures": [*features], "writerFeatures": [*features]}
    return found


FEATURES: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any], Mapping[str, str]]] = {
    "newer version": (least(4, 8), {}, {}),
    "newer feature": (least(3, 7, "fromTheFuture"), {}, {}),
    "column mapping": (least(2, 5), MAPPED, {"delta.columnMapping.mode": "name"}),
    "identity columns": (least(1, 6), IDENTITY, {}),
    "nothing special": (least(1, 2), {}, {}),
}
"""Protocol, what the column has, and the table's settings."""


@pytest.fixture(params=FEATURES)
def shop(tmp_path: Path, request: pytest.FixtureRequest) -> Project:
    """A project in Delta Lake, with a table of others in the place of ``daily``."""
    target = "  lake: {warehouse: lake, storage: delta, ledger: 'sqlite:///l.db'}\n"
    write(tmp_path, {**SHOP, "infold.yml": INFOLD + target})
    (tmp_path / "landing" / "clicks").mkdir(parents=True)
    (tmp_path / "countries.csv").write_text("code,country\n", encoding="utf-8")
    found = api.open_project(tmp_path, "lake")
    protocol, column, settings = FEATURES[request.param]
    metadata = {
        "id": "1",
        "format": {"provider": "parquet", "options": {}},
        "schemaString": json.dumps({"type": "struct", "fields": [{**FIELD, "metadata": column}]}),
        "partitionColumns": [],
        "configuration": settings,
    }
    made = Made(found.warehouse)
    made.write("daily", {"n": [1]}, None)
    shutil.rmtree(made.folder("daily") / "_delta_log")
    (made.folder("daily") / "_delta_log").mkdir()
    actions = [{"protocol": protocol}, {"metaData": metadata}, {"commitInfo": {"timestamp": 1}}]
    (made.folder("daily") / "_delta_log" / f"{0:020}.json").write_text(
        "\n".join(map(json.dumps, actions)), encoding="utf-8"
    )
    return found


def test_it_is_left_alone(shop: Project) -> None:
    """The error says where the table is; to a ledger with its versions it is a foreign write."""
    before = sorted((shop.warehouse / "shop" / "daily").rglob("*"))

    code, printed = infold(shop, "plan")
    book, lake = api.ledger_of(shop), api.lake_of(shop)
    heads = {"daily": Version("daily", 1, 7, "r-1", "r", 0, rows=3)}
    moved = lake.moved_tables({"daily": "where it was"})
    refused = foreign_tables(shop, book, lake, heads, moved)

    assert "table-name-taken" in printed
    assert str(shop.warehouse / "shop" / "daily") in printed
    assert "Traceback" not in printed
    assert code in (0, 1, 2, 3)
    assert sorted((shop.warehouse / "shop" / "daily").rglob("*")) == before
    assert {name: error.slug for name, error in refused.items()} == {"daily": "foreign-write"}
