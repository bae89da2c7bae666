"""The examples on the page about the Python API run in order, in one process."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

import infold
from infold import api
from infold.cli import cli
from infold.messages.errors import InfoldError

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "python-api.md").read_text(encoding="utf-8")
NOTEBOOK = (DOCS / "notebooks.md").read_text(encoding="utf-8")
EXAMPLES, NOTEBOOK_EXAMPLES = (
    re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    for page in (PAGE, NOTEBOOK)
)


def test_every_name_of_the_page_exists() -> None:
    """Every function and argument that the page names exists."""
    named = set(re.findall(r"\bapi\.(\w+)", PAGE))
    takes = set(inspect.signature(api.run).parameters)

    assert [name for name in named if not hasattr(api, name)] == []
    for name in ("select", "exclude", "window", "as_of", "asked"):
        assert name in takes & set(inspect.signature(api.plan).parameters)
    for name in ("jobs", "max_rows", "wait", "allow_refresh", "allow_removals", "fail_fast"):
        assert f"`{name}`" in PAGE
        assert name in takes


def test_every_error_of_the_page_is_there() -> None:
    """Every error that the page names exists under the name that a program would compare."""
    folder = Path(__file__).parents[2] / "docs" / "errors"
    known = "".join(page.read_text(encoding="utf-8") for page in folder.glob("*.md"))
    named = re.findall(r"raises `([a-z-]+)`", PAGE)

    assert named
    assert [slug for slug in named if f"## {slug}\n" not in known] == []


class TestWithoutSpark:
    """Examples of the Python API that need no JVM."""

    @pytest.fixture
    def shop(self, tmp_path: Path) -> Path:
        """The project that `infold init` writes."""
        assert CliRunner().invoke(cli, ["init", str(tmp_path / "shop")]).exit_code == 0
        return tmp_path / "shop"

    def test_a_plan(self, shop: Path) -> None:
        """A plan takes terms and a window, and a path may be a text."""
        project = api.open_project(str(shop))
        window = api.window_of(project, "2024-03-09", "2024-03-10")

        plan = api.plan(project, select=["+daily"], window=window)

        assert [step.model for step in plan.steps] == ["clicks", "sessions", "daily"]
        assert plan.steps[-1].cells.span == window
        assert not (shop / ".infold" / "ledger.db").exists()

    def test_rows(self, shop: Path) -> None:
        """Unknown tables and columns of `rows` raise errors."""
        project = api.open_project(shop)
        manifest = api.show(project, "incremental_manifest", columns=["model"], limit=3)

        assert manifest.to_pylist() == []
        for words, slug in (
            ({"table": "daily"}, "not-built"),
            ({"table": "dialy"}, "unknown-table"),
            ({"table": "incremental_manifest", "columns": ["x"]}, "unknown-column"),
        ):
            with pytest.raises(InfoldError) as raised:
                api.show(project, **words)
            assert raised.value.slug == slug

    def test_close_without_a_session(self) -> None:
        """`close` does nothing if Spark was not started or is not infold's own."""
        api.close()


@pytest.mark.spark
def test_the_examples(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """
    The page's examples run as one program; after Spark is closed, another run works, and so do
    the examples of the page about notebooks.
    """
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "shop"]).exit_code == 0
    names: dict[str, object] = {}

    for example in EXAMPLES:
        exec(compile(example, "docs/python-api.md", "exec"), names)

    result = names["result"]
    assert getattr(result, "steps", None) == ()
    later = Path("shop/later/2024-03-10.json")
    later.rename(Path("shop/landing/clicks") / later.name)
    again = api.run(api.open_project("shop"))
    assert (again.state, len(again.steps)) == ("done", 3)

    for example in NOTEBOOK_EXAMPLES:
        exec(compile(example, "docs/notebooks.md", "exec"), names)
    project = infold.open("shop")
    assert project.table("daily").to_arrow().equals(api.show(api.open_project("shop"), "daily"))
    assert project.verify("daily")
    assert not project.plan()
