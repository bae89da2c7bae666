"""A project that is imported says nothing of this machine but what is in its folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.importing.conftest import Import, Imported

from infold.importing.draft import Outcome
from infold.importing.fit import Fitted, fit
from infold.importing.sources import reader_of
from infold.render.imported import report_page

SECRET = "s3cret"
FILES = {
    "dbt": {
        "dbt_project.yml": "name: shop\nmodel-paths: [models, ../out]\nseed-paths: [seeds]\n",
        "models/a.sql": "select 1 as x",
        "seeds/s.csv": "a\n1\n",
        "macros/m.sql": "{% macro m() %}1{% endmacro %}",
        "snapshots/s.sql": "",
        "tests/t.sql": "select 1 as x",
    },
    "sqlmesh": {
        "config.yaml": "model_defaults: {dialect: spark}\n",
        "models/a.sql": "MODEL (name shop.a, kind FULL); SELECT 1 AS x",
        "models/s.sql": "MODEL (name shop.s, kind SEED (path '../seeds/linked.csv'))",
        "seeds/s.csv": "a\n1\n",
        "audits/a.sql": "AUDIT (name one); SELECT * FROM @this_model WHERE x = 2",
        "tests/t.yaml": "",
        "external_models/e.yaml": "[]",
    },
    "snowplow": {
        "dbt_project.yml": "vars: {}\nmodel-paths: [models]\n",
        "models/a.sql": "select 1",
    },
}


def in_all(found: Fitted, tool: str) -> str:
    """All that is written of a project."""
    texts = [report_page(tool, "shop", found.lines)]
    return "\n".join((*texts, *(content.decode() for content in found.files.values())))


@pytest.mark.parametrize("tool", FILES)
def test_no_link_is_followed_out_of_the_folder(tool: str, imported: Import, tmp_path: Path) -> None:
    """In each folder of each tool: links to a file of each kind, and to a folder, are named."""
    out = tmp_path / "out"
    out.mkdir()
    imported(tool, FILES[tool])
    shop = tmp_path / "shop"
    endings = (".sql", ".csv", ".yml", ".yaml", ".py", ".md")
    for ending in endings:
        (out / f"linked{ending}").write_text(f"{SECRET}: {{{SECRET}")
    for folder in (path for path in shop.iterdir() if path.is_dir()):
        for ending in endings:
            (folder / f"linked{ending}").symlink_to(out / f"linked{ending}")
        (folder / "folder").symlink_to(out)
    for name in ("external_models.yaml", "schema.yaml", "packages.yml"):
        (shop / name).symlink_to(out / "linked.yml")

    found = fit(reader_of(tool)(shop, ""), tool)

    assert SECRET not in in_all(found, tool)
    told = {line.what for line in found.lines if "leads out" in line.why or "link" in line.why}
    assert {"file models/linked.sql", "folder models/folder"} <= told
    if tool == "dbt":
        assert {"folder ../out", "file seeds/linked.csv", "file macros/linked.sql"} <= told
    if tool == "sqlmesh":
        assert {"file tests/linked.yaml", "file external_models.yaml"} <= told
        assert "seed s" in {line.what for line in found.lines if line.outcome is Outcome.LEFT}


@pytest.mark.parametrize("tool", FILES)
def test_a_project_file_that_is_a_link_is_not_read(tool: str, tmp_path: Path) -> None:
    """What a message quotes of a file that is no YAML would be of somebody else's."""
    (tmp_path / "secrets").write_text(f"{SECRET}: {{{SECRET}")
    shop = tmp_path / "shop"
    shop.mkdir()
    (shop / next(iter(FILES[tool]))).symlink_to(tmp_path / "secrets")

    assert SECRET not in in_all(fit(reader_of(tool)(shop, ""), tool), tool)


def test_links_inside_of_the_folder_are_files(imported: Import, tmp_path: Path) -> None:
    """And the folder itself may be a link."""
    imported("dbt", FILES["dbt"])
    (tmp_path / "shop/models/b.sql").symlink_to(tmp_path / "shop/models/a.sql")
    (tmp_path / "linked").symlink_to(tmp_path / "shop")

    found = fit(reader_of("dbt")(tmp_path / "linked", ""), "dbt")

    assert "models/b.sql" in found.files


def test_no_value_of_the_environment_is_copied(
    imported: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project chooses the names, in models, macros, tests and settings: a default is text of
    the project, and what has none is to be filled in.
    """
    monkeypatch.setenv("STORE_PASSWORD", SECRET)
    asked = "{{ env_var('STORE_PASSWORD') }}"
    found: Imported = imported(
        "dbt",
        {
            "dbt_project.yml": f'name: shop\nvars: {{p: "{asked}"}}\n',
            "models/a.sql": f"select '{asked}' as x",
            "models/b.sql": 'select \'{{ env_var("STORE_PASSWORD", "none") }}\' as x',
            "models/c.sql": "select '{{ m() }}' as x",
            "models/d.sql": "select '{{ var(\"p\") }}' as x",
            "models/e.sql": "{{ config(alias=env_var('STORE_PASSWORD')) }} select 1 as x",
            "models/s.yml": f'models: [{{name: b, description: "{asked}"}}]\n'
            f'sources: [{{name: "{asked}", tables: [t]}}]\n',
            "macros/m.sql": f"{{% macro m() %}}{asked}{{% endmacro %}}",
            "seeds/s.csv": f"a\n{asked}\n",
        },
    )

    assert SECRET not in in_all(found.fitted, "dbt")
    assert found.query("b") == "select 'none' as x"
    assert found.outcomes("model a") == found.outcomes("model c") == {Outcome.LEFT}
    assert found.outcomes("env_var STORE_PASSWORD") == {Outcome.TO_FILL}
