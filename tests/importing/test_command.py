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
    """Counts, what to look at and to do next; every line is in the report, also as JSON."""
    theirs(tmp_path)
    monkeypatch.chdir(tmp_path)
    screen = SCREENS / "import.txt"

    result = run("dbt", "shop")

    if request.config.getoption("--rewrite"):
        screen.write_text(result.output)
    assert result.exit_code == 0
    assert result.output == screen.read_text()
    written = [path for path in (tmp_path / "shop_infold").rglob("*") if path.is_file()]
    names = [".gitignore", "clicks.sql", "import-report.md", "infold.yml"]
    assert sorted(path.name for path in written) == names
    assert CliRunner().invoke(cli, ["-C", "shop_infold", "check"]).exit_code == 0
    lines = json.loads(run("dbt", "shop", "--into", "new", "--json").output)["report"]
    page = Path("new/import-report.md").read_text()
    assert {line["outcome"] for line in lines} == {"came over", "changed", "to fill in", "left out"}
    assert all(line["what"] in page for line in lines)


def test_what_cannot_be_imported_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the reason: a folder without a project, one to write into that is not empty, a dialect
    that is not known, and a package that infold does not bring along. Nothing is written over.
    """
    shop, full = theirs(tmp_path), tmp_path / "full"
    full.mkdir()
    (full / "infold.yml").write_text("mine")
    refused: list[tuple[str, tuple[str | Path, ...]]] = [
        *(("nothing-to-import", (tool, full)) for tool in ("dbt", "sqlmesh", "snowplow")),
        (f"folder-in-use: {full} is not empty", ("dbt", shop, "--into", full)),
        ("snowflake", ("dbt", shop, "--dialect", "oracel")),
    ]

    results = [(said, run(*words)) for said, words in refused]
    monkeypatch.setattr("infold.importing.sources.find_spec", lambda _: None)
    results.append(("pip install jinja2", run("dbt", shop)))

    for said, result in results:
        assert (result.exit_code, said in result.output) == (2, True), said
    assert [(path.name, path.read_text()) for path in full.iterdir()] == [("infold.yml", "mine")]
