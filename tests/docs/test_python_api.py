"""The examples on the page about the Python API run in order, in one process."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from tests.docs.pages import DOCS, code

import infold
from infold import api
from infold.cli import cli
from infold.messages.errors import InfoldError

PAGE = (DOCS / "python-api.md").read_text(encoding="utf-8")
EXAMPLES = code(PAGE, "python")
NOTEBOOK_EXAMPLES = code(DOCS / "notebooks.md", "python")


def test_every_name_of_the_page_exists() -> None:
    """Every function, argument and error that the page names exists."""
    named = set(re.findall(r"\bapi\.(\w+)", PAGE))
    takes = set(inspect.signature(api.run).parameters)
    raised = re.findall(r"raises `([a-z-]+)`", PAGE)
    known = "".join(page.read_text(encoding="utf-8") for page in (DOCS / "errors").glob("*.md"))

    assert [name for name in named if not hasattr(api, name)] == []
    for name in ("select", "exclude", "window", "as_of", "asked"):
        assert name in takes & set(inspect.signature(api.plan).parameters)
    for name in ("jobs", "max_rows", "wait", "allow_refresh", "allow_removals", "fail_fast"):
        assert f"`{name}`" in PAGE
        assert name in takes
    assert raised
    assert [slug for slug in raised if f"## {slug}\n" not in known] == []


def test_examples_without_spark(tmp_path: Path) -> None:
    """Terms and windows of a plan; unknown tables and columns; `close` without Spark."""
    assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
    project = api.open_project(str(tmp_path / "shop"))
    window = api.window_of(project, "2024-03-09", "2024-03-10")

    plan = api.plan(project, select=["+daily"], window=window)

    assert [step.model for step in plan.steps] == ["clicks", "sessions", "daily"]
    assert plan.steps[-1].cells.span == window
    assert not (tmp_path / "shop" / ".infold" / "ledger.db").exists()
    manifest = api.show(project, "incremental_manifest", columns=["model"], limit=3)
    assert manifest.to_pylist() == []
    for words, slug in (
        ({"table": "daily"}, "not-built"),
        ({"table": "dialy"}, "unknown-table"),
        ({"table": "incremental_manifest", "columns": ["x"]}, "unknown-column"),
    ):
        with pytest.raises(InfoldError, match=slug):
            api.show(project, **words)
    api.close()


@pytest.mark.spark
def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As one program, with those about notebooks before Spark is closed. A later run starts it."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "shop"]).exit_code == 0
    names: dict[str, object] = {}
    of_notebook: dict[str, object] = {}
    *examples, last = EXAMPLES

    for example in examples:
        exec(compile(example, "docs/python-api.md", "exec"), names)
    assert getattr(names["result"], "steps", None) == ()

    for example in NOTEBOOK_EXAMPLES:
        exec(compile(example, "docs/notebooks.md", "exec"), of_notebook)
    project = infold.open("shop")
    assert project.table("daily").to_arrow().equals(api.show(api.open_project("shop"), "daily"))
    assert project.verify("daily")
    assert not project.plan()

    exec(compile(last, "docs/python-api.md", "exec"), names)
    later = Path("shop/later/2024-03-10.json")
    later.rename(Path("shop/landing/clicks") / later.name)
    again = api.run(api.open_project("shop"), select=["clicks"])
    assert (again.state, len(again.steps)) == ("done", 1)
