"""The examples on the page about readers run in order, on tables that runs made."""

from __future__ import annotations

import re
import shutil
import warnings
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from pyiceberg.exceptions import NoSuchTableError
from tests.docs.pages import DOCS, code

from infold import api
from infold.cli import cli
from infold.core.report import RunResult
from infold.spark.tables.delta.adapters import JARS as DELTA_JARS
from infold.spark.tables.iceberg.adapters import JARS

PAGE = (DOCS / "reading.md").read_text(encoding="utf-8")
OF_ICEBERG, _, OF_DELTA = PAGE.partition("## Tables in Delta Lake\n")
OF_DELTA, _, BY_NAME = OF_DELTA.partition("## By name, in a Hive metastore\n")
"""The example by names is run where there is a metastore: ``servers/test_delta_in_hive``."""
DEV = "dev: {storage: iceberg"


def test_the_jars_of_the_page_are_those_that_infold_takes() -> None:
    """A session of another version of Iceberg or Delta may not read what this one wrote."""
    of_iceberg, of_delta, by_name = (
        re.findall(r'"([\w.]+:[\w.-]+:[\w.]+)"', part) for part in (OF_ICEBERG, OF_DELTA, BY_NAME)
    )

    assert of_iceberg == [jar.coordinates for jar in JARS]
    assert (
        of_delta
        == by_name
        == [jar.coordinates for jar in DELTA_JARS if jar.artifact.startswith("delta-sp")]
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The project of the page, which is the present folder."""
    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "shop"]).exit_code == 0
    monkeypatch.chdir(tmp_path / "shop")
    return tmp_path / "shop"


def run_twice(folder: Path, target: str) -> RunResult:
    """Two runs with this target; the second one, with late rows, deletes rows of the first."""
    file = folder / "infold.yml"
    text = file.read_text(encoding="utf-8")
    assert DEV in text
    file.write_text(text.replace(DEV, target), encoding="utf-8")
    api.run(api.open_project("."))
    for late in (folder / "later").iterdir():
        shutil.copy(late, folder / "landing" / "clicks")
    return api.run(api.open_project("."))


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Callable[[], Any]:
    """
    Lets the builder of the examples get a session of its own, in this JVM, with their settings.

    It is made by the call: the JVM is there once infold has run.
    """
    from pyspark.sql import SparkSession

    def another() -> Any:
        active = SparkSession.getActiveSession()
        assert active is not None
        other = active.newSession()
        own = ("spark.sql.catalog.infold", "spark.sql.defaultCatalog", "spark.sql.runSQLOnFiles")
        for key in other.conf.getAll:
            if key.startswith(own):
                other.conf.unset(key)
        monkeypatch.setattr(SparkSession, "_instantiatedSession", other)
        return other

    return another


def run_examples(text: str) -> dict[str, Any]:
    """What the examples of a part of the page call their results."""
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Polars: there is a faster plugin
        for example in code(text, "python"):
            # The JVM may be in another folder: that of the test that started it.
            here = re.sub(
                r"jdbc:sqlite:|(?<=delta\.`)|(?<=load\(\")", rf"\g<0>{Path.cwd()}/", example
            )
            exec(compile(here, "docs/reading.md", "exec"), names)
    return names


def check_the_same_rows(names: dict[str, Any], result: RunResult) -> None:
    """All readers found what `infold show` prints, and no column with an underscore."""
    shown = api.show(api.open_project("."), "daily").to_pylist()
    days = sorted((row["day"], row["sessions"]) for row in shown)
    recent = [one for one in days if one[0] >= date(2024, 3, 8)]

    assert recent
    assert sorted((row["day"], row["sessions"]) for row in names["arrow"].to_pylist()) == recent
    assert len(names["frame"]) == len(recent)
    assert names["found"].rows() == recent
    assert names["top"][0][1] == max(count for _, count in days)
    assert [tuple(row) for row in names["days"]] == days
    assert "session_id" in names["columns"]
    assert not [name for name in names["columns"] if name.startswith("_")]
    assert names["run"] == result.run
    assert names["as_it_was"].num_rows == len(shown)


@pytest.mark.spark
def test_readers_of_iceberg(folder: Path, session: Callable[[], Any]) -> None:
    """Those of tables, and those of the views beside them."""
    result = run_twice(folder, "dev: {hide_technical: views, storage: iceberg")
    session()

    names = run_examples(OF_ICEBERG)

    check_the_same_rows(names, result)
    assert names["columns"] == names["rows"].column_names
    sessions = api.show(api.open_project("."), "sessions")
    assert names["rows"].num_rows == sessions.num_rows
    assert [*Path("warehouse/shop/sessions").rglob("*.puffin")]  # or that would show nothing
    assert names["view"].columns == sessions.column_names
    assert names["view"].count() == sessions.num_rows
    listed = names["spark"].sql("SHOW VIEWS IN infold.shop_views").toArrow()
    assert listed["viewName"].to_pylist() == ["clicks", "daily", "sessions"]
    with pytest.raises(NoSuchTableError):  # it reads no views, as the page says
        names["catalog"].load_table("shop_views.sessions")


@pytest.mark.spark
def test_readers_of_delta_lake(folder: Path, session: Callable[[], Any]) -> None:
    """Of the same project, stored in Delta Lake: rows are deleted in files that are there."""
    result = run_twice(folder, "dev: {storage: delta")
    session()

    names = run_examples(OF_DELTA)

    check_the_same_rows(names, result)
    sessions = api.show(api.open_project("."), "sessions")
    assert names["own"].columns == sessions.column_names
    assert names["own"].count() == sessions.num_rows
    stored = names["DeltaTable"]("warehouse/shop/sessions")
    assert [*stored.deletion_vectors()]  # or it would show nothing that they agree
    assert (
        names["polars"].scan_delta("warehouse/shop/sessions").collect().height == sessions.num_rows
    )
