"""``infold explain`` and ``infold history`` in an environment."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.running.commands import said
from tests.running.production import as_json, shop_in_production
from tests.running.promoted import OWN, QUERY, with_environment

from infold import api
from infold.core.environment import model_of_key
from infold.core.project import Project


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production, and an environment with a daily table of its own."""
    found = shop_in_production(tmp_path / "shop")
    with_environment(found, QUERY)
    return found


def test_a_model_with_a_table_of_its_own(shop: Project) -> None:
    """It is explained by its own table, under the model's name, and by the declared query; a cell
    is one of its own table.
    """
    printed = said(shop, "explain", "daily", "--env", "dev")

    assert printed.startswith("daily\n")
    assert OWN["daily"] not in printed
    assert "version 1, 9 rows in 3 cells" in printed
    assert "count(events) AS sessions" in printed
    assert "Not stale" in printed, printed
    assert "version 1, 6 rows in 2 cells" in said(shop, "explain", "daily")
    cell = as_json(shop, "explain", "daily", "2024-03-03", "--env", "dev")
    assert (cell["model"], cell["rows"]) == ("daily", 9)
    said(shop, "explain", "daily", "yesterday", "--env", "dev", code=2)


def test_a_shared_model(shop: Project) -> None:
    """A model without a table of the environment's own is production's, and that is said."""
    printed = said(shop, "explain", "sessions", "--env", "dev")

    assert "production's: dev has none of its own" in printed
    assert "differs from the files" not in printed
    assert "Not stale" in printed, printed


def test_what_is_refused(shop: Project) -> None:
    """Unknown names are refused as elsewhere, and sessions are not explained in an environment."""
    for words, why in (
        ("explain dayly --env dev", "unknown-model"),
        ("explain daily --env nobody", "unknown-environment"),
        ("history --env ../x", "bad-environment-name"),
        ("history dayly --env dev", "unknown-model"),
        ("explain session 1 --env dev", "not for sessions"),
    ):
        assert why in said(shop, *words.split(), code=2)


def test_its_runs(shop: Project) -> None:
    """The history has the environment's runs alone, by the names of its models."""
    runs = as_json(shop, "history", "--env", "dev")["runs"]

    assert isinstance(runs, list)
    assert [run["command"] for run in runs] == ["run --env dev"]
    assert [step["model"] for step in runs[0]["steps"]] == ["daily"]
    assert as_json(shop, "history", "daily", "--env", "dev")["runs"] == runs
    assert as_json(shop, "history", "sessions", "--env", "dev")["runs"] == []
    assert "No runs of sessions" in said(shop, "history", "sessions", "--env", "dev")
    assert len(api.history(shop)) > 1


@pytest.mark.parametrize(
    ("key", "model"),
    [
        ("daily__0123abcd", "daily"),
        ("raw.clicks__" + "a" * 64, "raw.clicks"),
        ("daily", "daily"),
        ("daily__more", "daily__more"),
        ("daily__0123abc", "daily__0123abc"),
    ],
)
def test_models_of_keys(key: str, model: str) -> None:
    """The model of a table that an environment no longer has is in its key."""
    assert model_of_key(key) == model
