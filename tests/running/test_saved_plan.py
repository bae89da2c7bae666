"""Plans that are saved: carried out exactly as they are, or refused with what changed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.running.commands import infold
from tests.running.production import EVENT, applied, as_json, change, shop_in_production

from infold import api
from infold.core.interval import Interval
from infold.core.manual_entry import ManualEntry
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.saved_plan import KEYS, SavedFiles, SavedPlan, plan_of_text, text_of

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
def file(shop: Project, tmp_path: Path) -> Path:
    """The plan of that, saved."""
    path = tmp_path / "plan.json"
    assert infold(shop, "plan", "--save", str(path))[0] == 0
    return path


def test_a_plan_as_text_loses_nothing() -> None:
    """What is written is read again as it was."""
    assert plan_of_text(text_of(PLAN)) == PLAN
    none = replace(PLAN, asked=PlanOptions())
    assert plan_of_text(text_of(none)) == none


def test_a_saved_plan_is_carried_out_without_a_question(shop: Project, file: Path) -> None:
    """Its definitions are applied, and it has the clock of the plan."""
    before = applied(shop)

    code, printed = infold(shop, "apply", str(file))

    assert (code, "applied: daily" in printed) == (0, True), printed
    assert applied(shop) != before
    newest = api.history(shop)[0]
    assert (newest.command, newest.as_of) == ("apply", plan_of_text(file.read_text()).as_of)


def test_a_plan_without_its_ending_is_known_by_its_mark(shop: Project, file: Path) -> None:
    """A file is a plan by what is in it, whatever it is called."""
    other = file.rename(file.with_name("plan"))

    assert infold(shop, "apply", str(other), "--yes")[0] == 0
    assert as_json(shop, "run")["unapplied"] == []


def test_the_screen_names_the_file(shop: Project, tmp_path: Path) -> None:
    """The last line of a saved plan with steps says how to carry it out."""
    change(shop, ("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions"))
    path = tmp_path / "plan.json"

    printed = infold(shop, "plan", "--save", str(path))[1]

    assert f"Saved: `infold apply {path}` carries this out" in printed
    [step] = json.loads(path.read_text())["steps"]
    assert (step["model"], step["action"]) == ("daily", "build")


def redefine(shop: Project) -> None:
    """Another change of the same model."""
    change(shop, OTHER)


def apply_another(shop: Project) -> None:
    """Somebody applies another definition, and puts the file back."""
    change(shop, OTHER)
    assert infold(shop, "apply", "--yes")[0] == 0
    change(shop, COMMENT)


def build(shop: Project) -> None:
    """Somebody's run commits a table."""
    book = api.ledger(shop)
    book.acquire("r9")
    book.begin_run("r9", "run", 0, {})
    trace = book.traces()["daily"]
    book.begin_step("r9", "r9-1", 1, "daily", "build", {})
    book.finish_step("r9-1", Outcome("daily", 2, trace, whole=True))
    book.release()
    book.close()


def remove_model(shop: Project) -> None:
    """The file of an applied definition goes."""
    (shop.root / "models" / "daily.sql").unlink()


def forget(shop: Project) -> None:
    """The ledger is one of before the table was built, put back from a copy."""
    book = api.ledger(shop)
    book.acquire("r9")
    book.begin_run("r9", "forget", 0, {})
    book.begin_step("r9", "r9-1", 1, "daily", "forget", {})
    book.forget("daily", step="r9-1")
    book.close_step("r9-1", "done")
    book.release()
    book.close()


def enter(shop: Project) -> None:
    """Somebody puts a session into quarantine by hand."""
    api.ledger(shop).add_entries("sessions", [ManualEntry(0, "u", in_quarantine=True)])


def landing(shop: Project) -> Path:
    """The folder of the source."""
    return shop.root / "landing" / "clicks"


def replace_file(shop: Project) -> None:
    """A file that was ingested is written again."""
    (landing(shop) / "a.json").write_text(json.dumps(EVENT) * 2, encoding="utf-8")


def remove_file(shop: Project) -> None:
    """A file that was ingested goes."""
    (landing(shop) / "a.json").unlink()


@pytest.mark.parametrize(
    ("happens", "fact"),
    [
        (redefine, "daily:  its definition changed"),
        (apply_another, "daily:  another definition was applied"),
        (build, "daily:  its table changed"),
        (remove_model, "daily:  its definition changed"),
        (forget, "daily:  its table changed"),
        (enter, "sessions:  entries were made by hand"),
        (replace_file, "landing/clicks/a.json:  it was replaced"),
        (remove_file, "landing/clicks/a.json:  it is gone"),
    ],
    ids=["definition", "applied", "table", "no file", "forgotten", "entries", "replaced", "gone"],
)
def test_what_changed_since_refuses(
    shop: Project, file: Path, happens: Callable[[Project], None], fact: str
) -> None:
    """A plan of what is no longer there is refused, with what changed by name; nothing is
    applied, and the run is in the history as refused.
    """
    happens(shop)
    before = applied(shop)

    code, printed = infold(shop, "apply", str(file))

    assert (code, printed.split(":")[0]) == (3, "plan-outdated"), printed
    assert fact in printed
    assert applied(shop) == before
    assert api.history(shop)[0].state == "refused"


def test_a_saved_plan_is_carried_out_once(shop: Project, file: Path) -> None:
    """What it applies is applied then; a second time there is something else to apply it to."""
    assert infold(shop, "apply", str(file))[0] == 0
    now = applied(shop)

    code, printed = infold(shop, "apply", str(file))

    assert (code, printed.split(":")[0]) == (3, "plan-outdated"), printed
    assert "daily:  another definition was applied" in printed
    assert applied(shop) == now


def test_two_saved_plans_at_once(shop: Project, file: Path) -> None:
    """While a run has the target, a saved plan is refused, and applies nothing."""
    before = applied(shop)
    book = api.ledger(shop)
    book.acquire("another")
    try:
        code, printed = infold(shop, "apply", str(file))
    finally:
        book.release()
        book.close()

    assert (code, "locked" in printed, applied(shop)) == (3, True, before)


@pytest.mark.parametrize(
    ("key", "value", "slug"),
    [
        ("definitions", {}, "plan-outdated"),
        ("applied", {}, "plan-outdated"),
        ("versions", {"daily": 7}, "plan-outdated"),
        ("files", {"clicks": {"new": [["x", "1"]], "removed": [], "due": []}}, "plan-outdated"),
        ("steps", 7, "bad-plan-file"),
        ("asked", {}, "bad-plan-file"),
        ("definitions", ["daily"], "bad-plan-file"),
    ],
)
def test_a_plan_that_was_edited(
    shop: Project, file: Path, key: str, value: object, slug: str
) -> None:
    """A plan that follows from something else than what is there is refused; nothing is applied."""
    before = applied(shop)
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, key: value}), encoding="utf-8")

    code, printed = infold(shop, "apply", str(file))

    assert (code, printed.split(":")[0]) == (2 if slug == "bad-plan-file" else 3, slug), printed
    assert applied(shop) == before


def land(shop: Project, name: str) -> Path:
    """A new file."""
    path = landing(shop) / name
    path.write_text(json.dumps(EVENT), encoding="utf-8")
    return path


def test_files_that_arrived_since_are_left(shop: Project, file: Path) -> None:
    """A file that came after the plan is neither taken in nor a reason to refuse."""
    land(shop, "b.json")

    code, printed = infold(shop, "apply", str(file))

    assert (code, "Nothing to do" in printed) == (0, True), printed
    [step] = [step for step in as_json_steps(shop) if step["model"] == "clicks"]
    assert step["files"]["new"] == ["landing/clicks/b.json"]


def as_json_steps(shop: Project) -> list[dict[str, Any]]:
    """The steps of a plan."""
    steps = as_json(shop, "plan")["steps"]
    assert isinstance(steps, list)
    return steps


@pytest.mark.parametrize("replaced", [True, False], ids=["replaced", "gone"])
def test_a_planned_file_has_to_stay(shop: Project, tmp_path: Path, *, replaced: bool) -> None:
    """A new file that the plan covers has to be there as it was."""
    path = land(shop, "b.json")
    file = tmp_path / "plan.json"
    assert infold(shop, "plan", "--save", str(file))[0] == 0
    if replaced:
        os.utime(path, (1, 1))
    else:
        path.unlink()

    code, printed = infold(shop, "apply", str(file))

    why = "it was replaced" if replaced else "it is gone"
    assert (code, f"landing/clicks/b.json:  {why}" in printed) == (3, True), printed


def test_a_removed_file_that_is_back(shop: Project, tmp_path: Path) -> None:
    """A plan that takes a file out is refused once the file is there again."""
    path = landing(shop) / "a.json"
    away = path.rename(tmp_path / "a.json")
    land(shop, "b.json")  # otherwise the source shrank too much
    file = tmp_path / "plan.json"
    assert infold(shop, "plan", "--save", str(file))[0] == 0
    away.rename(path)

    code, printed = infold(shop, "apply", str(file))

    assert (code, "landing/clicks/a.json:  it is back" in printed) == (3, True), printed


def test_a_limit_refuses_a_saved_plan_before_anything_is_applied(
    shop: Project, tmp_path: Path
) -> None:
    """--max-rows and the limit of removals count for a saved plan too."""
    change(shop, ("models/daily.sql", "count(*) AS sessions", "count(events) AS sessions"))
    before = applied(shop)
    file = tmp_path / "plan.json"
    assert infold(shop, "plan", "--save", str(file))[0] == 0

    code, printed = infold(shop, "apply", str(file), "--max-rows", "1")
    assert (code, "over-budget" in printed, applied(shop)) == (3, True, before)

    (landing(shop) / "a.json").unlink()
    assert infold(shop, "plan", "--save", str(file))[0] == 0
    code, printed = infold(shop, "apply", str(file))
    assert (code, "source-shrank" in printed, applied(shop)) == (3, True, before)


@pytest.mark.parametrize("key", ["project", "target", "warehouse"])
def test_a_plan_of_another(shop: Project, file: Path, key: str) -> None:
    """A plan is carried out in its own project, target and warehouse alone."""
    value = json.loads(file.read_text())
    file.write_text(json.dumps({**value, key: "another"}), encoding="utf-8")

    code, printed = infold(shop, "apply", str(file))

    assert (code, printed.split(":")[0]) == (3, "plan-of-another")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "it is no JSON"),
        ("[]", "it has no key infold_plan"),
        ('{"infold_plan": 2}', "its form is 2, and this infold knows 1"),
        ('{"infold_plan": 1}', f"it lacks {', '.join(KEYS[1:])}"),
        (text_of(PLAN).replace('"as_of": 17', '"as_of": "17"'), "a value is of another kind"),
        (text_of(PLAN).replace('"window": [', '"window": [0, '), "a value is of another kind"),
    ],
)
def test_a_file_that_is_no_plan(shop: Project, tmp_path: Path, text: str, why: str) -> None:
    """A file that is no plan is refused with what is wrong with it."""
    path = tmp_path / "other.json"
    path.write_text(text, encoding="utf-8")

    code, printed = infold(shop, "apply", str(path))

    assert (code, printed.split(":")[0]) == (2, "bad-plan-file")
    assert why in printed


def test_no_file(shop: Project, tmp_path: Path) -> None:
    """A file that is not there is no plan; nor is one saved in a folder that is not there."""
    code, printed = infold(shop, "apply", str(tmp_path / "none.json"))
    assert (code, printed.split(":")[0]) == (2, "bad-plan-file")

    assert infold(shop, "plan", "--save", str(tmp_path / "none" / "plan.json"))[0] == 2


@pytest.mark.parametrize("words", [("daily",), ("--select", "daily"), ("--as-of", "2024-03-01")])
def test_a_saved_plan_has_its_own_options(
    shop: Project, file: Path, words: tuple[str, ...]
) -> None:
    """Models, windows and clocks beside a saved plan are a mistake."""
    assert infold(shop, "apply", str(file), *words)[0] == 2


def test_an_automatic_target_carries_out_saved_plans_too(shop: Project, tmp_path: Path) -> None:
    """With `apply: auto` a saved plan is carried out or refused in the same way."""
    auto = ("infold.yml", "protected: true", "protected: true, apply: auto")
    change(shop, auto, COMMENT)
    file = tmp_path / "plan.json"
    assert infold(shop, "plan", "--save", str(file))[0] == 0
    change(shop, auto, OTHER)
    assert infold(shop, "apply", str(file))[0] == 3
    change(shop, auto, COMMENT)

    assert infold(shop, "apply", str(file))[0] == 0
