"""Files of a stranger that are imported, malformed ones among them, and the command."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from tests.importing.conftest import Import, Imported

from infold.cli import cli
from infold.declare import check
from infold.importing import reader_of
from infold.importing.dbt.templates import Names, NotRenderedError, Templates, macros_in
from infold.importing.draft import Outcome
from infold.importing.fit import Fitted, fit
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

    found = fit(reader_of(tool)(shop, ""), tool, check)

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

    assert SECRET not in in_all(fit(reader_of(tool)(shop, ""), tool, check), tool)


def test_links_inside_of_the_folder_are_files(imported: Import, tmp_path: Path) -> None:
    """And the folder itself may be a link."""
    imported("dbt", FILES["dbt"])
    (tmp_path / "shop/models/b.sql").symlink_to(tmp_path / "shop/models/a.sql")
    (tmp_path / "linked").symlink_to(tmp_path / "shop")

    found = fit(reader_of("dbt")(tmp_path / "linked", ""), "dbt", check)

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


NAME = "name: s\n"
DBT: list[dict[str, str]] = [
    {"dbt_project.yml": "- a\n- b\n"},
    {"dbt_project.yml": "name: [1, 2]\nmodels: 5\nvars: x\n", "models/a.sql": "select 1 as a"},
    {
        "dbt_project.yml": NAME,
        "models/a.yml": "models: x\nsources: [1, {name: r, tables: 5}, {tables: [{}]}]\n"
        "unit_tests: [{}, {name: x, given: 5, expect: []}]\nsnapshots: [{relation: 5}]\n",
    },
    {
        "dbt_project.yml": NAME,
        "models/s.yml": "models: [{name: a, columns: [5, {name: x, tests: [5, [1], {a: 5}, "
        "{accepted_values: {}}, {relationships: {}}, {not_null: {config: 5}}]}]}]\n",
        "models/a.sql": "select 1 as x",
    },
    {"dbt_project.yml": NAME, "models/a.sql": "{{ config(5) }} select 1"},
    {"dbt_project.yml": NAME, "models/a.sql": "{% set x = 1/0 %} select 1"},
    {
        "dbt_project.yml": NAME,
        "macros/m.sql": "{% macro a() %}{{ a() }}{% endmacro %}{% macro b( %}{% endmacro %}",
        "models/a.sql": "select {{ a() }}",
        "models/b.sql": "select {{ b() }}",
    },
    {"dbt_project.yml": NAME, "seeds/a.csv": "", "seeds/b.csv": "x,x\n1,2\n"},
    {
        "dbt_project.yml": NAME,
        "models/s.yml": "sources: [{name: 'a b', tables: [{name: 'x-y'}, {name: 'x y'}]}]",
        "models/a.sql": "select z from {{ source('a b', 'x-y') }} "
        "join {{ source('a b', 'x y') }} using (z)",
    },
]
SQLMESH: list[dict[str, str]] = [
    {"config.yaml": "- 1\n"},
    {"config.yaml": "", "models/a.sql": "MODEL (); SELECT 1"},
    {"config.yaml": "", "models/a.sql": "MODEL (name x, kind FULL, dialect foo); SELECT 1 AS a"},
    {"config.yaml": "", "models/a.sql": "MODEL (name x; SELECT '"},
    {
        "config.yaml": "",
        "tests/t.yaml": "t: {model: '', inputs: 5, outputs: {query: 5}}\n"
        "u: {inputs: {'a b;': []}, outputs: {query: []}}\n",
        "external_models.yaml": "5\n",
        "schema.yaml": "- {name: ''}\n- {name: 'a b c'}\n",
    },
]
SNOWPLOW: list[dict[str, str]] = [
    {"dbt_project.yml": "5"},
    {
        "dbt_project.yml": "vars: {snowplow__start_date: [1], snowplow__app_id: {a: b}, "
        "snowplow__session_identifiers: x, snowplow__user_sql: 'x; drop', "
        "snowplow__max_session_days: abc, snowplow__heartbeat: -1, "
        "snowplow__session_timestamp: [a]}"
    },
]
CASES = [
    *(("dbt", files) for files in DBT),
    *(("sqlmesh", files) for files in SQLMESH),
    *(("snowplow", files) for files in SNOWPLOW),
]


@pytest.mark.parametrize(("tool", "files"), CASES)
def test_a_project_comes_out_of_it_that_passes_check(
    imported: Import, tool: str, files: dict[str, str]
) -> None:
    """What cannot be read is left out; `imported` asserts that check finds nothing in the rest."""
    found = imported(tool, files)

    assert "infold.yml" in found.fitted.files


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
    monkeypatch.setattr("infold.importing.find_spec", lambda _: None)
    results.append(("pip install jinja2", run("dbt", shop)))

    for said, result in results:
        assert (result.exit_code, said in result.output) == (2, True), said
    assert [(path.name, path.read_text()) for path in full.iterdir()] == [("infold.yml", "mine")]


HOUR_LONG = (
    "{% for i in range(99999) %}{% for j in range(99999) %}{% set x = j %}{% endfor %}{% endfor %}"
)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (f"SELECT 1 {HOUR_LONG}", "a template without an end"),
        ("{{ long() }}", "a template without an end"),
        ("{% for i in range(9999) %}{{ 'x' * 9999 }}{% endfor %}", "a template without an end"),
        ("{{ 'x' * 9999999999 }}", "a template without an end"),
        ("{{ 9999999999 * ['x'] }}", "a template without an end"),
        ("{{ 9 ** 9999999 }}", "a template without an end"),
        ("{{ again() }}", "maximum recursion depth exceeded"),
        ("{% for i in range(999999999) %}{% endfor %}", "OverflowError: Range too big"),
    ],
)
def test_templates_of_dbt_end(text: str, why: str) -> None:
    """What would run for hours or fill the memory is named, where it stands."""
    macros = [
        *macros_in("macros/long.sql", f"{{% macro long() %}}{HOUR_LONG}{{% endmacro %}}"),
        *macros_in("macros/again.sql", "{% macro again() %}{{ again() }}{% endmacro %}"),
    ]
    templates, traced = Templates(Names({}, {}, {}), macros, "shop"), sys.gettrace()

    with pytest.raises(NotRenderedError) as raised:
        templates.render("models/m.sql", text)

    assert raised.value.what.startswith(why)
    assert sys.gettrace() is traced
