"""Commands over a source with dated folders: what they list, and what they say of it."""

from __future__ import annotations

import json
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.running.commands import said
from tests.running.production import EVENT, as_json, change, production

from infold import api
from infold.core.project import Project

FULL = ("infold.yml", "path: landing/clicks/*.json", "path: landing/clicks/dt={date}/*.json")
DAILY = (FULL[0], FULL[1], f"{FULL[2]}\n    full_listing: 10000 days")
NAME = "dt=2024-03-01/a.json"


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop with its one file in a dated folder, after a run that listed everything."""
    found = production(tmp_path / "shop")
    landing(found, NAME).parent.mkdir()
    landing(found, "a.json").rename(landing(found, NAME))
    with closing(sqlite3.connect(found.root / "prod.db")) as book, book:
        book.execute("UPDATE files SET path = ?", (f"landing/clicks/{NAME}",))
    change(found, DAILY)
    said(found, "run")
    return api.open_project(found.root, "prod")


def landing(shop: Project, name: str) -> Path:
    """A file that lands."""
    return shop.root / "landing" / "clicks" / name


def planned(shop: Project, *words: str) -> list[dict[str, Any]]:
    """The files of the steps that are planned."""
    steps = as_json(shop, "plan", *words)["steps"]
    assert isinstance(steps, list)
    return [step["files"] for step in steps if step["files"]]


def test_a_plan_says_what_was_left_out(shop: Project) -> None:
    """The run recorded its listing, and a plan leaves out the folder of years ago; a new one is
    planned, and as JSON the folders are counted too.
    """
    left = "1 file as before; 0 dated folders listed, 1 left for a full listing"
    assert left in said(shop, "plan")

    put_new(shop)
    [files] = planned(shop)

    assert files["new"] == ["landing/clicks/dt=2020-01-01/b.json"]
    assert (files["same"], files["folders_listed"], files["folders_left_out"]) == (1, 1, 1)


def put_new(shop: Project) -> None:
    """A file of a new folder."""
    path = landing(shop, "dt=2020-01-01/b.json")
    path.parent.mkdir()
    path.write_text(json.dumps(EVENT), encoding="utf-8")


def test_a_change_in_an_old_folder_is_planned_when_all_is_listed(shop: Project) -> None:
    """By ``--full-listing``, for a table that is built again, and by default: a date in the path
    alone leaves nothing out.
    """
    landing(shop, NAME).write_text(json.dumps(EVENT) * 2, encoding="utf-8")

    assert planned(shop) == []
    [files] = planned(shop, "--full-listing")
    assert (files["new"], files["replaced"]) == ([f"landing/clicks/{NAME}"], 1)
    change(shop, DAILY, ("models/clicks.sql", "event_id, ", "upper(event_id) AS event_id, "))
    [files] = planned(shop)
    assert (files["folders_left_out"], files["replaced"]) == (0, 1)
    change(shop, FULL)
    assert len(planned(shop)) == 1


def test_a_saved_plan_lists_as_it_was_made(shop: Project, tmp_path: Path) -> None:
    """What it did not see of an old folder does not make it outdated; a new file is left."""
    change(shop, DAILY, ("models/daily.sql", "FROM sessions", "FROM sessions /* all */"))
    landing(shop, NAME).write_text(json.dumps(EVENT) * 2, encoding="utf-8")
    plan = tmp_path / "plan.json"
    said(shop, "plan", "--save", str(plan))
    put_new(shop)

    said(shop, "apply", str(plan))

    assert len(planned(shop)) == 1
