"""When one table is refused, plan, status, restate and explain still describe the others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.running.standing_tables import in_catalog, stand_up

from infold import api
from infold.cli import cli
from infold.core.project import Project
from infold.messages.errors import InfoldError


@pytest.fixture
def shop(tmp_path: Path) -> Project:
    """The sessions were changed by others; a file has come, and a table that reads clicks."""
    made = stand_up(tmp_path / "shop")
    in_catalog(
        made,
        "UPDATE iceberg_tables SET metadata_location = (SELECT metadata_location "
        "FROM iceberg_tables WHERE table_name = 'clicks') WHERE table_name = 'sessions'",
    )
    (made.root / "landing" / "clicks" / "b.json").write_text("{}\n", encoding="utf-8")
    text = "---\nmaterialization: table\n---\nSELECT count(*) AS n FROM clicks"
    (made.root / "models" / "totals.sql").write_text(text, encoding="utf-8")
    return api.open_project(made.root)


def run_command(shop: Project, *words: str) -> tuple[int, str, str]:
    """A command's exit code, what it prints, and its errors."""
    done = CliRunner().invoke(cli, ["-C", str(shop.root), *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_plan_has_steps_of_all_models_that_do_not_read_it(shop: Project) -> None:
    """Refused models and their readers are skipped by name; others can be planned alone."""
    todo = api.plan(shop)

    assert [step.model for step in todo.steps] == ["clicks", "totals"]
    assert list(todo.refused) == ["sessions"]
    assert {entry.model: entry.why for entry in todo.skipped} == {
        "sessions": "refused: sessions was changed by something other than infold",
        "daily": "waits for sessions, which is refused",
    }
    others = api.plan(shop, select=["totals", "clicks"])
    assert [step.model for step in others.steps] == ["clicks", "totals"]
    assert not others.refused


def test_the_plan_ends_with_the_error_and_its_cure(shop: Project) -> None:
    """Exit code 1, or 3 where nothing else is to be done; as JSON it is one object."""
    code, out, errors = run_command(shop, "plan")
    assert code == 1
    assert "waits for sessions, which is refused" in out
    assert errors.startswith("\nforeign-write: sessions was changed")
    assert "Roll the table back" in errors

    code, out, _ = run_command(shop, "plan", "sessions")
    assert code == 3
    assert out.startswith("Nothing can be done: ")

    code, out, errors = run_command(shop, "plan", "--json")
    found = json.loads(out)
    assert (code, errors) == (1, "")
    assert [step["model"] for step in found["steps"]] == ["clicks", "totals"]
    [refused] = found["refused"]
    assert (refused["model"], refused["error"]["slug"]) == ("sessions", "foreign-write")


def test_status_shows_the_others(shop: Project) -> None:
    """With the refused model and the readers that wait: exit code 1; in its JSON at its model."""
    code, out, errors = run_command(shop, "status")

    assert code == 1
    rows = {line.split()[0]: line for line in out.splitlines() if line.startswith("  ")}
    assert " refused " in rows["sessions"]
    assert "sessions: refused: sessions was changed by something other than infold" in out
    assert "daily: waits for sessions, refused" in out
    assert "totals" in rows
    assert errors.startswith("\nforeign-write: ")
    assert run_command(shop, "status", "clicks")[0] == 0
    assert run_command(shop, "status", "sessions")[0] == 3

    code, out, errors = run_command(shop, "status", "--json")
    found = {entry["model"]: entry for entry in json.loads(out)["models"]}
    assert (code, errors) == (1, "")
    assert found["sessions"]["refused"]["slug"] == "foreign-write"
    assert (found["daily"]["refused"], found["daily"]["waits_for"]) == (None, ["sessions"])
    assert (found["clicks"]["refused"], found["clicks"]["waits_for"]) == (None, [])


def test_explain_and_restate_of_another_model(shop: Project) -> None:
    """They are refused for the refused model alone."""
    for term, code in (("totals", 0), ("sessions", 3)):
        assert run_command(shop, "restate", term, "--dry-run")[0] == code
    assert api.explain(shop, "clicks").version == 1
    with pytest.raises(InfoldError, match="foreign-write"):
        api.explain(shop, "sessions")
