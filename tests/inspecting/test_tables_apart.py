"""The project of a run while a changed table is built apart."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.declare.shop import SHOP, project
from tests.inspecting.test_as_built import built

from infold.core.ports import Lake
from infold.inspecting.tables_apart import tables_apart

VIEW = "---\nmaterialization: view\n---\nSELECT * FROM sessions WHERE events > {}\n"
OVER_VIEW = {"models/daily.sql": SHOP["models/daily.sql"].replace("FROM sessions", "FROM long")}


def test_both_definitions_have_their_own_view() -> None:
    """Readers have what the earlier view gives; the changed one is for what is built apart."""
    before = {**SHOP, **OVER_VIEW, "models/long.sql": VIEW.format(1)}
    wanted = project({**before, "models/long.sql": VIEW.format(2)})
    lake = cast("Lake", SimpleNamespace(is_free=lambda table: True))

    found: Any = tables_apart(
        wanted, built(project(before)), lake, lambda nodes: [node.name for node in nodes]
    ).project

    [key] = [key for key, model in found.apart.items() if model == "daily"]
    [view] = found[key].reads
    assert "events > 2" in found[view].model.sql
    assert found["daily"].reads == ("long",)
    assert "events > 1" in found["long"].model.sql
    assert found["daily"].fingerprint == project(before)["daily"].fingerprint
    assert found[key].fingerprint == wanted["daily"].fingerprint
