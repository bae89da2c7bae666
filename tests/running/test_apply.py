"""Targets where `infold apply` applies definitions: no command takes them from the files."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner
from tests.declare.shop import SHOP, write
from tests.running.commands import infold, said
from tests.running.production import (
    TARGET,
    applied,
    as_json,
    change,
    production,
    with_applied,
)
from tests.running.promoted import MORE, QUERY, at, with_environment
from tests.running.standing_tables import DECLARED, in_ledger

from infold import api
from infold.cli import cli, output
from infold.core.project import Project
from infold.messages.errors import InfoldError

COMMENT = ("models/daily.sql", "FROM sessions", "FROM sessions /* all */")
OTHER_COMMENT = ("models/sessions.sql", "count(*) AS", "count(*) /* all */ AS")
READS_MORE = ("models/daily.sql", "sum(revenue)", "sum(dearest) AS dearest, sum(revenue)")
BROKEN = ("models/daily.sql", "GROUP BY 1", "GROUP BY")
LEFT = (
    "1 model has changes that are not applied: daily; `infold plan` shows them, "
    "`infold apply` carries them out"
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
    assert api.ledger(shop).traces()["daily"].definition == ""


@pytest.mark.parametrize(
    "words",
    ["run", "status", "plan", "restate daily", "explain daily", "show daily", "history", "verify",
     "apply --yes", "quarantine list", "lateness clicks", "dag"],
)  # fmt: skip
def test_a_lost_ledger(shop: Project, words: str) -> None:
    """All commands say what became of it: this is no target before its first apply."""
    (shop.root / "prod.db").unlink()

    printed = said(shop, *words.split(), code=3)

    assert printed.startswith("ledger-behind")
    assert "infold repair\n" in printed


@pytest.mark.parametrize("words", ["forget daily --yes", "teardown --yes", "repair --yes"])
def test_what_works_without_a_ledger(shop: Project, words: str) -> None:
    """These are what there is to do."""
    (shop.root / "prod.db").unlink()

    said(shop, *words.split())


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
    assert "`infold apply` carries this out" in planned
    assert "says why" not in planned
    for words in (("explain", "daily"), ("show", "daily"), ("history", "daily")):
        assert "daily: `infold apply daily` applies it" in said(shop, *words, code=2)
    assert as_json(shop, "status")["unapplied"] == ["clicks", "sessions", "daily"]
    last = infold(shop, "status")[1].splitlines()[-1]
    assert last.startswith("Nothing is applied in prod yet: `infold apply` applies 3 models")


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
    assert "`infold apply` carries this out; `infold run` leaves these changes alone" in printed
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

    assert "`infold apply` applies these definitions" in said(shop, "plan")
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
    assert api.lake(shop).metadata("daily") is not None
    assert "daily" in api.ledger(shop).traces()  # and what is known of it
    assert as_json(shop, "run")["unapplied"] == []


def test_a_new_model_waits(shop: Project) -> None:
    """A model that was never applied has no step yet."""
    text = SHOP["models/daily.sql"].replace("sum(revenue) AS revenue", "1 AS one")
    (shop.root / "models" / "extra.sql").write_text(text, encoding="utf-8")

    assert as_json(shop, "run")["unapplied"] == ["extra"]
    assert "extra: `infold apply extra` applies it" in said(shop, "run", "extra", code=2)
    assert "extra" not in api.open_project(shop.root, "prod")
    assert "extra" in api.open_project(shop.root, "prod", declared=True)


def test_mistakes_in_the_files_stop_no_run(shop: Project) -> None:
    """`check`, `plan` and `apply` refuse them; a run goes on by what is applied, and says so."""
    change(shop, BROKEN)

    assert "the files have a mistake, which `infold check` shows" in said(shop, "run")
    for command in ("check", "plan", "apply"):
        said(shop, command, code=2)


def test_mistakes_in_infold_yml_stop_runs(shop: Project) -> None:
    """Where infold.yml has a mistake, nobody knows what is meant, also in a manual target."""
    for mistake in ("protected: maybe", "protected: true, storage: paper"):
        change(shop, ("infold.yml", "protected: true", mistake))

        assert infold(shop, "run")[0] == 2


def test_definitions_that_are_not_understood(
    shop: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where an applied definition comes out as another one, nothing is run by it."""
    change(shop, COMMENT)
    monkeypatch.setattr(
        "infold.declare.from_definitions.with_start_and_limit", lambda node, *_: node
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

    assert "`infold apply` carries this out" in said(shop, "plan")
    assert (applied(shop), at(shop, ("daily",))) == before
    assert api.ledger(shop).swaps() == ()


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
    """The strip of a forward-only change has what is built from its instant on alone."""
    change(shop, QUERY)
    words = ("--forward-only", "daily", "--effective-from", "2024-03-02")

    lines = said(shop, "plan", *words).splitlines()

    [strip] = [line for line in lines if line.split()[:3] == ["daily", "-", "B"]]
    assert strip.endswith("forward-only: cells before 2024-03-02 keep their rows")
    assert "  1. daily  derive  cells from 2024-03-02 on" in lines


def test_forward_only_of_a_model_that_did_not_change(shop: Project) -> None:
    """An option that names none of the changed models is noted, as it changes nothing."""
    change(shop, QUERY)
    note = "--forward-only: no definition changed of sessions"

    assert note in infold(shop, "plan", "--forward-only", "sessions")[1]
    for words in (["sessions", "--forward-only", "daily"], []):
        assert note not in infold(shop, "plan", "--forward-only", *(words or ["*"]))[1]


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
