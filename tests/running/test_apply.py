"""Targets where `infold apply` applies definitions: saved plans, and what takes something away."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from click.testing import CliRunner
from tests.declare.shop import SHOP, write
from tests.running.commands import infold, said
from tests.running.production import (
    EVENT,
    TARGET,
    applied,
    as_json,
    change,
    production,
    shop_in_production,
    with_applied,
)
from tests.running.promoted import MORE, QUERY, at, with_environment
from tests.running.standing_tables import DECLARED, commit, in_ledger, leased, new_folder

from infold import api
from infold.cli import cli, output
from infold.core.erasure import ErasureRequest
from infold.core.interval import Interval
from infold.core.plan import PlanOptions
from infold.core.project import Project
from infold.core.record import Outcome
from infold.core.saved_plan import KEYS, SavedFiles, SavedPlan, plan_of_text, text_of
from infold.core.sessions import ManualEntry
from infold.core.target import Target
from infold.messages.errors import InfoldError
from infold.running.execute import DestructiveChanges

COMMENT = ("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
OTHER_COMMENT = ("models/sessions.sql", "count(*) AS", "count(*) /* all */ AS")
READS_MORE = ("models/daily.sql", "sum(revenue)", "sum(dearest) AS dearest, sum(revenue)")
BROKEN = ("models/daily.sql", "GROUP BY 1", "GROUP BY")
LEFT = (
    "1 model has changes that are not applied: daily; `infold --target prod plan` shows them, "
    "`infold --target prod apply` carries them out"
)


shop = with_applied


def test_tables_of_an_earlier_infold_count_as_applied(tmp_path: Path) -> None:
    """A run goes on by them and records them; a changed one is not applied."""
    shop = production(tmp_path / "shop")
    assert applied(shop) == {}
    change(shop, QUERY)

    done = as_json(shop, "run")

    assert done["unapplied"] == ["daily"]
    assert applied(shop).keys() == {"clicks", "sessions"}
    assert api.ledger_of(shop).traces()["daily"].definition == ""


@pytest.mark.parametrize(
    ("words", "code"),
    [
        *((words, 3) for words in (
            "run", "status", "plan", "restate daily", "explain daily", "show daily", "history",
            "verify", "apply --yes", "quarantine list", "lateness clicks", "dag",
        )),
        *((words, 0) for words in ("forget daily --yes", "teardown --yes", "repair --yes")),
    ],
)  # fmt: skip
def test_a_lost_ledger(shop: Project, words: str, code: int) -> None:
    """Commands say what became of it: this is no target before its first apply. Those that there
    are to do work without it.
    """
    (shop.root / "prod.db").unlink()

    printed = said(shop, *words.split(), code=code)

    assert printed.startswith("ledger-behind") is bool(code)
    assert ("infold --target prod repair\n" in printed) is bool(code)


def test_before_the_first_apply_nothing_runs(tmp_path: Path) -> None:
    """What builds tables is refused, with the models' names; the plan is what `apply` would do."""
    root = write(tmp_path / "shop", {**SHOP, "infold.yml": DECLARED + TARGET})
    (root / "landing" / "clicks").mkdir(parents=True)
    (root / "countries.csv").write_text("code,country\n", encoding="utf-8")
    shop = api.open_project(root, "prod")

    for words in (("run",), ("restate", "daily"), ("run", "daily")):
        printed = said(shop, *words, code=3)
        assert printed.startswith("nothing-applied:")
        assert "clicks, sessions, daily" in printed
    with pytest.raises(InfoldError, match="nothing-applied"):
        api.run(shop)
    assert not (root / "prod.db").exists()
    planned = infold(shop, "plan")[1]
    assert "`infold --target prod apply` carries this out" in planned
    assert "says why" not in planned
    for words in (("explain", "daily"), ("show", "daily"), ("history", "daily")):
        assert "daily: `infold --target prod apply daily` applies it" in said(shop, *words, code=2)
    assert as_json(shop, "status")["unapplied"] == ["clicks", "sessions", "daily"]
    last = infold(shop, "status")[1].splitlines()[-1]
    assert last.startswith(
        "Nothing is applied in prod yet: `infold --target prod apply` applies 3 models"
    )


def test_runs_go_on_by_the_applied_definitions(shop: Project) -> None:
    """`run` and `status` say what is changed, and the plan what `apply` would do."""
    before = applied(shop)
    change(shop, QUERY)

    for words in (("run",), ("status",), ("run", "daily")):
        assert LEFT in said(shop, *words)
    done, plan = as_json(shop, "run"), as_json(shop, "plan")

    assert (done["steps"], done["unapplied"], plan["unapplied"]) == ([], ["daily"], ["daily"])
    steps = plan["steps"]
    assert isinstance(steps, list)
    assert [step["model"] for step in steps] == ["daily"]
    printed = said(shop, "plan")
    run = "`infold --target prod run` leaves these changes alone"
    assert f"`infold --target prod apply` carries this out; {run}" in printed
    assert "--allow-refresh" not in printed
    ran = api.run(api.open_project(shop.root, "prod", declared=True))
    assert (ran.steps, ran.unapplied, applied(shop)) == ((), ("daily",), before)


@pytest.mark.parametrize("answer", ["y", "n", ""])
def test_apply_asks_on_a_terminal(
    shop: Project, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    """Whoever says no, or ends the input, has applied nothing and is told so."""
    before = applied(shop)
    change(shop, COMMENT)
    monkeypatch.setattr(output, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True)))
    root = ("-C", str(shop.root), "--target", "prod", "apply")
    done = CliRunner().invoke(cli, root, input=answer and f"{answer}\n")

    yes = answer == "y"
    assert done.exit_code == (0 if yes else 3)
    assert "\nApply? [y/N]" in done.stdout
    assert ("\nNothing was applied." in done.stderr) != yes
    assert (applied(shop) != before) == yes


def test_some_models_are_applied(shop: Project) -> None:
    """Not without --yes; with a term only the chosen ones; and what builds nothing is recorded."""
    before = applied(shop)
    change(shop, COMMENT, OTHER_COMMENT)

    assert "`infold --target prod apply` applies these definitions" in said(shop, "plan")
    for words in (("apply",), ("apply", "--json")):
        assert "apply-not-confirmed" in said(shop, *words, code=3)
    assert applied(shop) == before
    assert "applied: daily\n" in said(shop, "apply", "daily", "--yes")

    after = applied(shop)
    assert {name for name in after if after[name] != before[name]} == {"daily"}
    assert api.history(shop)[0].command == "apply"
    assert as_json(shop, "run")["unapplied"] == ["sessions"]
    assert "applied: sessions\n" in said(shop, "apply", "--yes")
    assert as_json(shop, "run")["unapplied"] == []
    assert "Nothing to do" in said(shop, "apply")  # nothing to confirm


def test_definitions_that_do_not_fit_are_not_applied(shop: Project) -> None:
    """A reader of a column that is in a change upstream alone; with its place and the column."""
    before = applied(shop)
    change(shop, MORE, READS_MORE)

    for words in (("apply", "daily", "--yes"), ("plan", "daily")):
        printed = said(shop, *words, code=3)
        assert printed.startswith("apply-incomplete:")
        assert "models/daily.sql:6:" in printed
        assert "dearest" in printed

    assert applied(shop) == before
    assert as_json(shop, "plan", "sessions", "daily")["unapplied"] == ["sessions", "daily"]


def test_a_removed_model_is_built_until_that_is_applied(shop: Project) -> None:
    """Shown and explained too; an `apply` of all that may takes it, and leaves its table."""
    (shop.root / "models" / "daily.sql").unlink()

    done = as_json(shop, "run")
    assert (done["unapplied"], done["notes"]) == (["daily"], [LEFT])
    for words in ("status", "explain daily", "history daily"):
        assert "daily" in said(shop, *words.split())
    said(shop, "plan", "--env", "dev")
    removed = as_json(shop, "plan")["definitions"]
    assert isinstance(removed, list)
    assert [(one["model"], one["category"]) for one in removed] == [("daily", "removed")]
    refused = said(shop, "apply", "--yes", code=3)
    assert "destructive-change" in refused
    assert "its table is no longer kept up to date (models/daily.sql)" in refused
    assert applied(shop).keys() == {"clicks", "sessions", "daily"}

    assert "applied: daily" in said(shop, "apply", "--yes", "--allow-destructive", "daily")

    assert applied(shop).keys() == {"clicks", "sessions"}
    assert api.lake_of(shop).metadata("daily") is not None
    assert "daily" in api.ledger_of(shop).traces()  # and what is known of it
    assert as_json(shop, "run")["unapplied"] == []


def test_a_new_model_waits(shop: Project) -> None:
    """A model that was never applied has no step yet."""
    text = SHOP["models/daily.sql"].replace("sum(revenue) AS revenue", "1 AS one")
    (shop.root / "models" / "extra.sql").write_text(text, encoding="utf-8")

    assert as_json(shop, "run")["unapplied"] == ["extra"]
    assert "extra: `infold --target prod apply extra` applies it" in said(
        shop, "run", "extra", code=2
    )
    assert "extra" not in api.open_project(shop.root, "prod")
    assert "extra" in api.open_project(shop.root, "prod", declared=True)


def test_mistakes_in_the_files_stop_no_run(shop: Project) -> None:
    """`check`, `plan` and `apply` refuse them; a run goes on by what is applied, and says so. Where
    infold.yml has a mistake, nobody knows what is meant, also in a manual target.
    """
    change(shop, BROKEN)
    assert "the files have a mistake, which `infold check` shows" in said(shop, "run")
    for command in ("check", "plan", "apply"):
        said(shop, command, code=2)
    for mistake in ("protected: maybe", "protected: true, storage: paper"):
        change(shop, ("infold.yml", "protected: true", mistake))
        assert infold(shop, "run")[0] == 2


def test_definitions_that_are_not_understood(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an applied definition comes out as another one, nothing is run by it."""
    change(shop, COMMENT)
    monkeypatch.setattr(
        "infold.declare.from_definitions.with_start_and_limit", lambda node, *_, **__: node
    )

    printed = said(shop, "run", code=3)

    assert printed.startswith("applied-unknown:")
    assert "daily" in printed


def test_a_lost_text_stops_what_goes_by_it(shop: Project) -> None:
    """With its name, and nothing is written; a plan shows what `apply` would do."""
    with_environment(shop, QUERY)
    in_ledger(shop, "DELETE FROM definitions WHERE digest = ?", applied(shop)["daily"])
    before = (applied(shop), at(shop, ("daily",)))

    for words in ("run", "promote dev --yes", "rollback --yes"):
        printed = said(shop, *words.split(), code=3)
        assert printed.startswith("applied-unknown:")
        assert "daily" in printed
        assert "the ledger does not have them" in printed

    assert "`infold --target prod apply` carries this out" in said(shop, "plan")
    assert (applied(shop), at(shop, ("daily",))) == before
    assert api.ledger_of(shop).swaps() == ()


def test_what_was_applied_meanwhile_is_not_taken_back(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that read its project before an `apply` does not go on after it."""
    monkeypatch.setattr("infold.api.building.engine", lambda *_: pytest.fail("a step begins"))
    change(shop, OTHER_COMMENT)
    waiting = api.open_project(shop.root, "prod")
    late = api.to_apply(api.open_project(shop.root, "prod", declared=True))
    change(shop, COMMENT)
    said(shop, "apply", "--yes")
    after = applied(shop)

    for project in (waiting, late):
        with pytest.raises(InfoldError, match="applied-meanwhile"):
            api.run(project)

    assert applied(shop) == after


def test_cells_that_keep_their_rows_are_left_alone(shop: Project) -> None:
    """The strip of a forward-only change has what is built from its instant on alone. An option
    that names none of the changed models is noted, as it changes nothing.
    """
    change(shop, QUERY)
    words = ("--forward-only", "daily", "--effective-from", "2024-03-02")

    lines = said(shop, "plan", *words).splitlines()

    [strip] = [line for line in lines if line.split()[:3] == ["daily", "-", "B"]]
    assert strip.endswith("forward-only: cells before 2024-03-02 keep their rows")
    assert "  1. daily  derive  cells from 2024-03-02 on" in lines
    note = "--forward-only: no definition changed of sessions"
    for others, noted in ((["sessions"], True), (["sessions", *words[:2]], False), (["*"], False)):
        assert (note in infold(shop, "plan", "--forward-only", *others)[1]) is noted


def test_a_model_cannot_be_built_whole_for_once(shop: Project) -> None:
    """--allow-downgrade makes a definition that could not be applied."""
    for command in ("run", "plan", "apply"):
        said(shop, command, "--allow-downgrade", code=2)
    printed = said(shop, "run", "--forward-only", "daily", code=2)
    assert "`infold apply --forward-only` does" in printed
    printed = said(shop, "apply", "--effective-from", "2024-03-01", code=2)
    assert "name its models too" in printed


def test_an_automatic_target_takes_the_files(shop: Project) -> None:
    """With `apply: auto` a comment is applied by the next run, and `apply` asks first."""
    change(shop, ("infold.yml", "protected: true", "protected: true, apply: auto"), COMMENT)
    before = applied(shop)

    assert "Nothing to do" in infold(shop, "apply")[1]
    assert as_json(shop, "run")["unapplied"] == []
    assert applied(shop) != before


# -- plans that are saved


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
def commented(tmp_path: Path) -> Project:
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
    commented = shop_in_production(new_folder())
    change(commented, COMMENT)
    return saved(commented, commented.root / "plan.json").read_text(encoding="utf-8")


def saved(commented: Project, path: Path) -> Path:
    """The plan of what there is now."""
    said(commented, "plan", "--save", str(path))
    return path


def refused(commented: Project, file: Path, *words: str, code: int = 3) -> str:
    """A saved plan is refused, and nothing is applied; what is printed."""
    before = applied(commented)
    printed = said(commented, "apply", str(file), *words, code=code)
    assert applied(commented) == before
    return printed


def test_a_plan_as_text_loses_nothing() -> None:
    """What is written is read again as it was."""
    for plan in (PLAN, replace(PLAN, asked=PlanOptions())):
        assert plan_of_text(text_of(plan)) == plan


def test_a_saved_plan_is_carried_out_once_without_a_question(
    commented: Project, file: Path
) -> None:
    """By the clock of the plan; a second time there is something else to apply it to."""
    before = applied(commented)

    assert "applied: daily" in said(commented, "apply", str(file))
    assert applied(commented) != before
    newest = api.history(commented)[0]
    assert (newest.command, newest.as_of) == ("apply", plan_of_text(file.read_text()).as_of)

    printed = refused(commented, file)
    assert printed.startswith("plan-outdated:")
    assert "daily:  another definition was applied" in printed


def test_the_screen_names_the_file(commented: Project, tmp_path: Path) -> None:
    """The last line of a saved plan with steps says how to carry it out. A file is a plan by what
    is in it, whatever it is called.
    """
    path = saved(commented, tmp_path / "plan")
    said(commented, "apply", str(path), "--yes")
    assert as_json(commented, "run")["unapplied"] == []
    change(commented, QUERY)
    path = tmp_path / "plan.json"

    printed = said(commented, "plan", "--save", str(path))

    assert f"Saved: `infold --target prod apply {path}` carries this out" in printed
    [step] = json.loads(path.read_text())["steps"]
    assert (step["model"], step["action"]) == ("daily", "build")


def landing(commented: Project) -> Path:
    """The folder of the source."""
    return commented.root / "landing" / "clicks"


def happens(commented: Project, what: str) -> None:
    """Something changes after the plan was saved."""
    match what:
        case "definition":
            change(commented, OTHER)
        case "applied":  # another definition, and the file is put back
            change(commented, OTHER)
            said(commented, "apply", "--yes")
            change(commented, COMMENT)
        case "table":
            commit(
                commented,
                Outcome("daily", 2, api.ledger_of(commented).traces()["daily"], whole=True),
                "r9",
            )
        case "no file":
            (commented.root / "models" / "daily.sql").unlink()
        case "forgotten":  # the ledger is one of before the table was built, put back from a copy
            with leased(commented, "r9") as book:
                book.begin_run("r9", "forget", 0, {})
                book.begin_step("r9", "r9-1", 1, "daily", "forget", {})
                book.forget("daily", step="r9-1")
                book.close_step("r9-1", "done")
        case "entries":
            api.ledger_of(commented).add_entries(
                "sessions", [ManualEntry(0, "u", in_quarantine=True)]
            )
        case "request":
            asked = ErasureRequest(0, "r", "person", ("some hash",))
            api.ledger_of(commented).add_erasures([asked], {}, "a fingerprint")
        case "replaced":
            (landing(commented) / "a.json").write_text(json.dumps(EVENT) * 2, encoding="utf-8")
        case "gone":
            (landing(commented) / "a.json").unlink()


FACTS = {
    "definition": "daily:  its definition changed",
    "applied": "daily:  another definition was applied",
    "table": "daily:  its table changed",
    "no file": "daily:  its definition changed",
    "forgotten": "daily:  its table changed",
    "entries": "sessions:  entries were made by hand",
    "request": "erasures.person:  entries were made by hand",
    "replaced": "landing/clicks/a.json:  it was replaced",
    "gone": "landing/clicks/a.json:  it is gone",
}


@pytest.mark.parametrize("what", FACTS)
def test_what_changed_since_refuses(commented: Project, file: Path, what: str) -> None:
    """With what changed by name; nothing is applied, and the run is in the history as refused."""
    happens(commented, what)

    printed = refused(commented, file)

    assert printed.startswith("plan-outdated:")
    assert FACTS[what] in printed
    assert api.history(commented)[0].state == "refused"


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
    commented: Project, file: Path, key: str, value: object, slug: str
) -> None:
    """What follows from something else, and one of another project, target or warehouse."""
    found = json.loads(file.read_text())
    file.write_text(json.dumps({**found, key: value}), encoding="utf-8")

    assert refused(commented, file, code=2 if slug == "bad-plan-file" else 3).startswith(f"{slug}:")


def land(commented: Project, name: str) -> Path:
    """A new file."""
    path = landing(commented) / name
    path.write_text(json.dumps(EVENT), encoding="utf-8")
    return path


def test_files_that_arrived_since_are_left(commented: Project, file: Path) -> None:
    """A file that came after the plan is neither taken in nor a reason to refuse."""
    land(commented, "b.json")

    assert "Nothing to do" in said(commented, "apply", str(file))
    steps = as_json(commented, "plan")["steps"]
    assert isinstance(steps, list)
    [step] = [step for step in steps if step["model"] == "clicks"]
    assert step["files"]["new"] == ["landing/clicks/b.json"]


@pytest.mark.parametrize(
    ("what", "why"),
    [("replaced", "b.json:  it was replaced"), ("gone", "b.json:  it is gone"),
     ("back", "a.json:  it is back")],
    ids=["replaced", "gone", "back"],
)  # fmt: skip
def test_a_planned_file_has_to_stay(
    commented: Project, tmp_path: Path, what: str, why: str
) -> None:
    """A new file that the plan covers has to be there as it was; one that it takes out, not."""
    path, new = landing(commented) / "a.json", land(commented, "b.json")
    away = path.rename(tmp_path / "a.json") if what == "back" else path
    file = saved(commented, tmp_path / "plan.json")
    if what == "replaced":
        os.utime(new, (1, 1))
    elif what == "gone":
        new.unlink()
    else:
        away.rename(path)

    assert f"landing/clicks/{why}" in refused(commented, file)


def test_a_limit_refuses_before_anything_is_applied(commented: Project, tmp_path: Path) -> None:
    """--max-rows and the limit of removals count for an apply, and for that of a saved plan."""
    change(commented, QUERY)
    file = saved(commented, tmp_path / "plan.json")
    before = applied(commented)

    assert "over-budget" in refused(commented, file, "--max-rows", "1")
    assert "over-budget" in said(commented, "apply", "--yes", "--max-rows", "1", code=3)
    (landing(commented) / "a.json").unlink()
    assert "source-shrank" in refused(commented, saved(commented, file))
    assert applied(commented) == before


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
def test_a_file_that_is_no_plan(
    commented: Project, tmp_path: Path, text: str | None, why: str
) -> None:
    """A file that is no plan, or is not there, is refused with what is wrong with it."""
    path = tmp_path / "other.json"
    if text is not None:
        path.write_text(text, encoding="utf-8")

    printed = refused(commented, path, code=2)

    assert printed.startswith("bad-plan-file:")
    assert why in printed


def test_a_saved_plan_has_its_own_options(commented: Project, file: Path) -> None:
    """Models, windows and clocks beside one are a mistake; and so is a folder that is not there."""
    for words in (("daily",), ("--select", "daily"), ("--as-of", "2024-03-01")):
        refused(commented, file, *words, code=2)
    said(commented, "plan", "--save", str(file / "none" / "plan.json"), code=2)


def test_an_automatic_target_carries_out_saved_plans_too(
    commented: Project, tmp_path: Path
) -> None:
    """With `apply: auto` a saved plan is carried out or refused in the same way."""
    auto = ("infold.yml", "protected: true", "protected: true, apply: auto")
    change(commented, auto, COMMENT)
    file = saved(commented, tmp_path / "plan.json")
    change(commented, auto, OTHER)
    refused(commented, file)
    change(commented, auto, COMMENT)

    said(commented, "apply", str(file))


# -- changes that take something from production's tables


DROP = ("models/daily.sql", ", sum(revenue) AS revenue", "")
WINDOW = ("--start", "2024-03-04", "--end", "2024-03-06")
FOR_GOOD = ("models/daily.sql", "incremental: {}", "incremental: {on_destructive_change: allow}")


def bytes_of(shop: Project) -> dict[str, str]:
    """The digests of all files of the tables and the catalog."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(shop.warehouse.rglob("*"))
        if path.is_file()
    }


def test_the_plan_says_what_will_be_refused(shop: Project) -> None:
    """With its place and the option that allows it; with that option it is shown as lost alone."""
    change(shop, DROP)

    printed = said(shop, "plan")
    assert "  daily  revenue  refused" in printed
    assert (
        "daily: column revenue is dropped (models/daily.sql:6): refused; "
        "--allow-destructive daily allows it"
    ) in printed
    assert (
        "`infold --target prod apply` refuses this, "
        "`infold --target prod apply --allow-destructive daily` carries it out."
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
    assert "infold --target prod apply --allow-destructive daily" in printed
    saved = shop.root / "p.json"
    said(shop, "plan", "--save", str(saved), "--allow-destructive", "daily")
    assert json.loads(saved.read_text())["asked"]["allow_destructive"] == ["daily"]


def test_apply_refuses_it_and_nothing_is_done(shop: Project) -> None:
    """No definition is applied, no file touched, and runs go on; also by a saved plan."""
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
    """A model that was applied with the key may be removed without the option. A misspelled name
    would allow nothing, and nobody would know why.
    """
    for words in map(str.split, ("plan", "apply", "run", "restate daily", "backbuild daily")):
        window = WINDOW if words[0] == "backbuild" else ()
        assert "unknown-model" in said(shop, *words, *window, "--allow-destructive=dayly", code=2)
    change(shop, FOR_GOOD)
    said(shop, "apply", "--yes")
    (shop.root / "models" / "daily.sql").unlink()

    said(shop, "apply", "--yes")
    assert applied(shop).keys() == {"clicks", "sessions"}


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
