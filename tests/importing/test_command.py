"""`infold import`: its screen, its files, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from infold.cli import cli

SCREENS = Path(__file__).parents[1] / "cli" / "screens"


def theirs(tmp_path: Path) -> Path:
    """A project of dbt with a model that comes over, and one that does not."""
    root = tmp_path / "shop"
    (root / "models").mkdir(parents=True)
    (root / "dbt_project.yml").write_text("name: shop\n")
    (root / "models/sources.yml").write_text("sources: [{name: raw, tables: [{name: clicks}]}]\n")
    (root / "models/clicks.sql").write_text(
        "{{ config(materialized='incremental') }}\n"
        "select click_id, clicked_at from {{ source('raw', 'clicks') }}\n"
        "{% if is_incremental() %}\n"
        "where clicked_at > (select max(clicked_at) from {{ this }})\n"
        "{% endif %}\n"
    )
    (root / "models/other.sql").write_text("select {{ dbt_utils.star(ref('clicks')) }}\n")
    return root


def run(*words: str | Path) -> Result:
    """The command, in this process."""
    return CliRunner().invoke(cli, ["import", *map(str, words)])


def test_the_screen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest
) -> None:
    """Counts, what somebody has to look at, and what to do next."""
    theirs(tmp_path)
    monkeypatch.chdir(tmp_path)
    screen = SCREENS / "import.txt"

    result = run("dbt", "shop")

    if request.config.getoption("--rewrite"):
        screen.write_text(result.output)
    assert result.exit_code == 0
    assert result.output == screen.read_text()
    files = [path for path in (tmp_path / "shop_infold").rglob("*") if path.is_file()]
    assert sorted(path.name for path in files) == [
        ".gitignore",
        "clicks.sql",
        "import-report.md",
        "infold.yml",
    ]
    assert CliRunner().invoke(cli, ["-C", "shop_infold", "check"]).exit_code == 0


def test_every_line_is_in_the_report(tmp_path: Path) -> None:
    """As a page in the folder, and as JSON."""
    result = run("dbt", theirs(tmp_path), "--into", tmp_path / "new", "--json")

    lines = json.loads(result.output)["report"]
    page = (tmp_path / "new/import-report.md").read_text()
    assert {line["outcome"] for line in lines} == {"came over", "changed", "to fill in", "left out"}
    assert all(line["what"] in page for line in lines)


def test_a_folder_with_files_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    """Nothing is written over, whatever its name."""
    full = tmp_path / "full"
    full.mkdir()
    (full / "infold.yml").write_text("mine")

    result = run("dbt", theirs(tmp_path), "--into", full)

    assert result.exit_code == 2
    assert f"folder-in-use: {full} is not empty" in result.output
    assert [(path.name, path.read_text()) for path in full.iterdir()] == [("infold.yml", "mine")]


@pytest.mark.parametrize("tool", ["dbt", "sqlmesh", "snowplow"])
def test_a_folder_without_a_project_is_refused(tmp_path: Path, tool: str) -> None:
    """The message names the files that were looked for."""
    result = run(tool, tmp_path)

    assert result.exit_code == 2
    assert "nothing-to-import" in result.output


def test_a_missing_package_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Templates of dbt need Jinja, which infold does not bring along."""
    monkeypatch.setattr("infold.importing.sources.find_spec", lambda _: None)

    result = run("dbt", theirs(tmp_path))

    assert result.exit_code == 2
    assert "pip install jinja2" in result.output


def test_an_unknown_dialect_is_refused(tmp_path: Path) -> None:
    """With all that are known."""
    result = run("dbt", theirs(tmp_path), "--dialect", "oracel")

    assert result.exit_code == 2
    assert "snowflake" in result.output
