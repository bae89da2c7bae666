"""Changes that take something from production's tables: refused before anything is written."""

from __future__ import annotations

import hashlib
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from tests.running.commands import said
from tests.running.production import applied, as_json, change, shop_in_production

from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.target import Target
from infold.running.execute import DestructiveChanges

DROP = ("models/daily.sql", ", sum(revenue) AS revenue", "")
WINDOW = ("--start", "2024-03-04", "--end", "2024-03-06")
FOR_GOOD = ("models/daily.sql", "incremental: {}", "incremental: {on_destructive_change: allow}")


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production; the first run has recorded what is applied."""
    return shop_in_production(tmp_path / "shop")


def bytes_of(shop: Project) -> dict[str, str]:
    """The digests of all files of the tables and the catalog."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(shop.warehouse.rglob("*"))
        if path.is_file()
    }


def test_the_plan_says_what_will_be_refused(shop: Project) -> None:
    """A dropped column is shown as lost, with its place and the option that allows it; with that
    option it is shown as lost alone.
    """
    change(shop, DROP)

    printed = said(shop, "plan")
    assert "  daily  revenue  refused" in printed
    assert (
        "daily: column revenue is dropped (models/daily.sql:6): refused; "
        "--allow-destructive daily allows it"
    ) in printed
    assert (
        "`infold apply` refuses this, `infold apply --allow-destructive daily` carries it out."
    ) in printed
    printed = said(shop, "plan", "--save", str(shop.root / "plan.json"))
    assert "Saved, and it will be refused: save it again with --allow-destructive daily." in printed
    place = {"before": "", "after": "", "file": "models/daily.sql", "line": 6}
    lost = {"part": "column", "name": "revenue", **place}
    assert as_json(shop, "plan")["destructive"] == [
        {"model": "daily", "on": "error", "losses": [lost]}
    ]

    printed = said(shop, "plan", "--allow-destructive", "daily")
    assert ("refuse" in printed, "  daily  revenue" in printed) == (False, True)
    assert "infold apply --allow-destructive daily" in printed
    saved = shop.root / "p.json"
    said(shop, "plan", "--save", str(saved), "--allow-destructive", "daily")
    assert json.loads(saved.read_text())["asked"]["allow_destructive"] == ["daily"]


def test_apply_refuses_it_and_nothing_is_done(shop: Project) -> None:
    """No definition is applied, no table and no file of one is touched, and runs go on as before;
    also if nothing was asked first, and by a saved plan.
    """
    before, tables = applied(shop), bytes_of(shop)
    change(shop, DROP)
    saved = str(shop.root / "p.json")
    said(shop, "plan", "--save", saved)

    for words in (("apply", "--yes"), ("apply", "--json", "--yes"), ("apply", saved, "--yes")):
        printed = said(shop, *words, code=3)
        assert "destructive-change" in printed
        assert "models/daily.sql:6" in printed
        assert "--allow-destructive daily" in printed

    assert (applied(shop), bytes_of(shop)) == (before, tables)
    assert as_json(shop, "run")["unapplied"] == ["daily"]


@pytest.mark.parametrize("column", [True, False], ids=["key", "defaults"])
def test_the_key_allows_it_for_good(shop: Project, column: bool) -> None:
    """In the model, or in the project's defaults."""
    change(shop, DROP, *([FOR_GOOD] if column else []))
    if not column:
        with (shop.root / "infold.yml").open("a") as file:
            file.write("defaults: {on_destructive_change: allow}\n")
    printed = said(shop, "plan")
    assert ("  daily  revenue" in printed, "refuse" in printed) == (True, False), printed


def test_the_last_word_of_a_removed_model_counts(shop: Project) -> None:
    """A model that was applied with the key may be removed without the option."""
    change(shop, FOR_GOOD)
    said(shop, "apply", "--yes")
    (shop.root / "models" / "daily.sql").unlink()

    said(shop, "apply", "--yes")
    assert applied(shop).keys() == {"clicks", "sessions"}


def test_an_unknown_model_is_an_error(shop: Project) -> None:
    """A misspelled name would allow nothing, and nobody would know why."""
    change(shop, DROP)
    names = ("plan", "apply", "run", "restate daily", "backbuild daily")
    for words in map(str.split, names):
        window = WINDOW if words[0] == "backbuild" else ()
        assert "unknown-model" in said(shop, *words, *window, "--allow-destructive=dayly", code=2)


def test_types_are_asked_for_where_columns_are_stored(shop: Project) -> None:
    """Of models without a table the engine analyses nothing."""
    asked: list[list[str]] = []
    stored: dict[str, dict[str, str]] = {"daily": {"revenue": "decimal(18,2)"}}

    def column_types(models: list[str]) -> dict[str, Any]:
        asked.append(models)
        return {name: {"revenue": "decimal(28,2)"} for name in models}

    lake = cast("Any", SimpleNamespace(columns=lambda table: stored.get(table, {})))
    engine = cast("Any", SimpleNamespace(column_types=column_types))
    changes = DestructiveChanges(replace(shop, target=Target("dev")), lake)

    assert changes.refuse_types(engine, {"clicks", "sessions"}, PlanOptions()) == ()
    assert asked == []
    assert changes.refuse_types(engine, {"clicks", "daily"}, PlanOptions()) == ()
    assert asked == [["daily"]]
