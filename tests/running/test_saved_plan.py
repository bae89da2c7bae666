"""Plans that are saved: carried out exactly as they are, or refused with what changed."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest
from tests.running.commands import said
from tests.running.production import EVENT, applied, as_json, change, shop_in_production
from tests.running.promoted import QUERY
from tests.running.standing_tables import commit, leased, new_folder

from infold import api
from infold.core.interval import Interval
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.saved_plan import KEYS, SavedFiles, SavedPlan, plan_of_text, text_of
from infold.core.session_rules import ManualEntry

COMMENT = ("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
OTHER = ("models/daily.sql", "FROM sessions", "FROM sessions /* every one */")

PLAN = SavedPlan(
    project="shop",
    target="prod",
    warehouse="tables",
    as_of=17,
    asked=PlanOptions(
        window=Interval(1, 2),
        selected=frozenset({"daily"}),
        batch_size=3,
        ignore_cron=True,
        forward_only={"daily": 5, "weekly": None},
    ),
    applied={"daily": "a"},
    definitions={"daily": "b"},
    versions={"daily": 4},
    entries={"sessions": 5},
    files={"clicks": SavedFiles((("a", "1"),), (("b", "2"),), (("c", "3"),))},
)


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The shop in production, with a comment in a model that is not applied."""
    found = shop_in_production(tmp_path / "shop")
    change(found, COMMENT)
    return found


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The plan of that, saved."""
    path = tmp_path / "plan.json"
    path.write_text(_text(), encoding="utf-8")
    return path


@cache
def _text() -> str:
    shop = shop_in_production(new_folder())
    change(shop, COMMENT)
    return saved(shop, shop.root / "plan.json").read_text(encoding="utf-8")


def saved(shop: Project, path: Path) -> Path:
    """The plan of what there is now."""
    said(shop, "plan", "--save", str(path))
    return path


def refused(shop: Project, file: Path, *words: str, code: int = 3) -> str:
    """A saved plan is refused, and nothing is applied; what is printed."""
    before = applied(shop)
    printed = said(shop, "apply", str(file), *words, code=code)
    assert applied(shop) == before
    return printed


def test_a_plan_as_text_loses_nothing() -> None:
    """What is written is read again as it was."""
    for plan in (PLAN, replace(PLAN, asked=PlanOptions())):
        assert plan_of_text(text_of(plan)) == plan


def test_a_saved_plan_is_carried_out_once_without_a_question(shop: Project, file: Path) -> None:
    """Its definitions are applied, and it has the clock of the plan. A second time there is
    something else to apply it to.
    """
    before = applied(shop)

    assert "applied: daily" in said(shop, "apply", str(file))
    assert applied(shop) != before
    newest = api.history(shop)[0]
    assert (newest.command, newest.as_of) == ("apply", plan_of_text(file.read_text()).as_of)

    printed = refused(shop, file)
    assert printed.startswith("plan-outdated:")
    assert "daily:  another definition was applied" in printed


def test_a_plan_without_its_ending_is_known_by_its_mark(shop: Project, file: Path) -> None:
    """A file is a plan by what is in it, whatever it is called."""
    said(shop, "apply", str(file.rename(file.with_name("plan"))), "--yes")
    assert as_json(shop, "run")["unapplied"] == []


def test_the_screen_names_the_file(shop: Project, tmp_path: Path) -> None:
    """The last line of a saved plan with steps says how to carry it out."""
    change(shop, QUERY)
    path = tmp_path / "plan.json"

    printed = said(shop, "plan", "--save", str(path))

    assert f"Saved: `infold apply {path}` carries this out" in printed
    [step] = json.loads(path.read_text())["steps"]
    assert (step["model"], step["action"]) == ("daily", "build")


def landing(shop: Project) -> Path:
    """The folder of the source."""
    return shop.root / "landing" / "clicks"


def happens(shop: Project, what: str) -> None:
    """Something changes after the plan was saved."""
    match what:
        case "definition":
            change(shop, OTHER)
        case "applied":  # another definition, and the file is put back
            change(shop, OTHER)
            said(shop, "apply", "--yes")
            change(shop, COMMENT)
        case "table":
            commit(shop, Outcome("daily", 2, api.ledger(shop).traces()["daily"], whole=True), "r9")
        case "no file":
            (shop.root / "models" / "daily.sql").unlink()
        case "forgotten":  # the ledger is one of before the table was built, put back from a copy
            with leased(shop, "r9") as book:
                book.begin_run("r9", "forget", 0, {})
                book.begin_step("r9", "r9-1", 1, "daily", "forget", {})
                book.forget("daily", step="r9-1")
                book.close_step("r9-1", "done")
        case "entries":
            api.ledger(shop).add_entries("sessions", [ManualEntry(0, "u", in_quarantine=True)])
        case "replaced":
            (landing(shop) / "a.json").write_text(json.dumps(EVENT) * 2, encoding="utf-8")
        case "gone":
            (landing(shop) / "a.json").unlink()


FACTS = {
    "definition": "daily:  its definition changed",
    "applied": "daily:  another definition was applied",
    "table": "daily:  its table changed",
    "no file": "daily:  its definition changed",
    "forgotten": "daily:  its table changed",
    "entries": "sessions:  entries were made by hand",
    "replaced": "landing/clicks/a.json:  it was replaced",
    "gone": "landing/clicks/a.json:  it is gone",
}


@pytest.mark.parametrize("what", FACTS)
def test_what_changed_since_refuses(shop: Project, file: Path, what: str) -> None:
    """A plan of what is no longer there is refused, with what changed by name; nothing is
    applied, and the run is in the history as refused.
    """
    happens(shop, what)

    printed = refused(shop, file)

    assert printed.startswith("plan-outdated:")
    assert FACTS[what] in printed
    assert api.history(shop)[0].state == "refused"


@pytest.mark.parametrize(
    ("key", "value", "slug"),
    [
        ("definitions", {}, "plan-outdated"),
        ("applied", {}, "plan-outdated"),
        ("versions", {"daily": 7}, "plan-outdated"),
        ("files", {"clicks": {"new": [["x", "1"]], "removed": [], "due": []}}, "plan-outdated"),
        ("project", "another", "plan-of-another"),
        ("target", "another", "plan-of-another"),
        ("warehouse", "another", "plan-of-another"),
        ("steps", 7, "bad-plan-file"),
        ("asked", {}, "bad-plan-file"),
        ("definitions", ["daily"], "bad-plan-file"),
    ],
)
def test_a_plan_that_was_edited(
    shop: Project, file: Path, key: str, value: object, slug: str
) -> None:
    """A plan that follows from something else than what is there is refused, and so is one of
    another project, target or warehouse.
    """
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, key: value}), encoding="utf-8")

    assert refused(shop, file, code=2 if slug == "bad-plan-file" else 3).startswith(f"{slug}:")


def land(shop: Project, name: str) -> Path:
    """A new file."""
    path = landing(shop) / name
    path.write_text(json.dumps(EVENT), encoding="utf-8")
    return path


def test_files_that_arrived_since_are_left(shop: Project, file: Path) -> None:
    """A file that came after the plan is neither taken in nor a reason to refuse."""
    land(shop, "b.json")

    assert "Nothing to do" in said(shop, "apply", str(file))
    steps = as_json(shop, "plan")["steps"]
    assert isinstance(steps, list)
    [step] = [step for step in steps if step["model"] == "clicks"]
    assert step["files"]["new"] == ["landing/clicks/b.json"]


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "gone"])
def test_a_planned_file_has_to_stay(shop: Project, tmp_path: Path, *, replaced: bool) -> None:
    """A new file that the plan covers has to be there as it was."""
    path = land(shop, "b.json")
    file = saved(shop, tmp_path / "plan.json")
    if replaced:
        os.utime(path, (1, 1))
    else:
        path.unlink()

    why = "it was replaced" if replaced else "it is gone"
    assert f"landing/clicks/b.json:  {why}" in refused(shop, file)


def test_a_removed_file_that_is_back(shop: Project, tmp_path: Path) -> None:
    """A plan that takes a file out is refused once the file is there again."""
    path = landing(shop) / "a.json"
    away = path.rename(tmp_path / "a.json")
    land(shop, "b.json")  # otherwise the source shrank too much
    file = saved(shop, tmp_path / "plan.json")
    away.rename(path)

    assert "landing/clicks/a.json:  it is back" in refused(shop, file)


def test_a_limit_refuses_before_anything_is_applied(shop: Project, tmp_path: Path) -> None:
    """--max-rows and the limit of removals count for an apply, and for that of a saved plan."""
    change(shop, QUERY)
    file = saved(shop, tmp_path / "plan.json")
    before = applied(shop)

    assert "over-budget" in refused(shop, file, "--max-rows", "1")
    assert "over-budget" in said(shop, "apply", "--yes", "--max-rows", "1", code=3)
    (landing(shop) / "a.json").unlink()
    assert "source-shrank" in refused(shop, saved(shop, file))
    assert applied(shop) == before


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, ""),
        ("{", "it is no JSON"),
        ("[]", "it has no key infold_plan"),
        ('{"infold_plan": 2}', "its form is 2, and this infold knows 1"),
        ('{"infold_plan": 1}', f"it lacks {', '.join(KEYS[1:])}"),
        (text_of(PLAN).replace('"as_of": 17', '"as_of": "17"'), "a value is of another kind"),
        (text_of(PLAN).replace('"window": [', '"window": [0, '), "a value is of another kind"),
    ],
)
def test_a_file_that_is_no_plan(shop: Project, tmp_path: Path, text: str | None, why: str) -> None:
    """A file that is no plan, or is not there, is refused with what is wrong with it."""
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    printed = refused(shop, path, code=2)

    assert printed.startswith("bad-plan-file:")
    assert why in printed


def test_a_saved_plan_has_its_own_options(shop: Project, file: Path) -> None:
    """Models, windows and clocks beside a saved plan are a mistake; and none is saved in a folder
    that is not there.
    """
    for words in (("daily",), ("--select", "daily"), ("--as-of", "2024-03-01")):
        refused(shop, file, *words, code=2)
    said(shop, "plan", "--save", str(file / "none" / "plan.json"), code=2)


def test_an_automatic_target_carries_out_saved_plans_too(shop: Project, tmp_path: Path) -> None:
    """With `apply: auto` a saved plan is carried out or refused in the same way."""
    auto = ("infold.yml", "protected: true", "protected: true, apply: auto")
    change(shop, auto, COMMENT)
    file = saved(shop, tmp_path / "plan.json")
    change(shop, auto, OTHER)
    refused(shop, file)
    change(shop, auto, COMMENT)

    said(shop, "apply", str(file))
