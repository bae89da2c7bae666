"""The examples on the page about readers run in order, on tables that a run made."""

from __future__ import annotations

import re
import warnings
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from infold import api
from infold.cli import cli
from infold.spark.tables.iceberg.adapters import JARS

PAGE = (Path(__file__).parents[2] / "docs" / "reading.md").read_text(encoding="utf-8")
EXAMPLES = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


def test_the_jars_of_the_page_are_those_that_infold_takes() -> None:
    """A session of another version of Iceberg may not read what this one wrote."""
    named = re.findall(r'"([\w.]+:[\w.-]+:[\w.]+)"', PAGE)

    assert named == [jar.coordinates for jar in JARS]


@pytest.mark.spark
def test_all_readers_find_the_same_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `infold show` prints them; and no column with an underscore where none is wanted."""
    from pyspark.sql import SparkSession

    monkeypatch.chdir(tmp_path)
    assert CliRunner().invoke(cli, ["init", "shop"]).exit_code == 0
    monkeypatch.chdir(tmp_path / "shop")
    result = api.run(api.open_project("."))
    shown = api.show(api.open_project("."), "daily").to_pylist()
    # The one that the builder takes for the process's: with the page's settings, in this JVM.
    active = SparkSession.getActiveSession()
    assert active is not None
    other = active.newSession()
    for key in other.conf.getAll:
        if key.startswith("spark.sql.catalog.infold"):
            other.conf.unset(key)
    monkeypatch.setattr(SparkSession, "_instantiatedSession", other)
    names: dict[str, Any] = {}

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of Polars: there is a faster plugin
        for example in EXAMPLES:
            # The JVM may be in another folder: that of the test that started it.
            here = example.replace("jdbc:sqlite:", f"jdbc:sqlite:{Path.cwd()}/")
            exec(compile(here, "docs/reading.md", "exec"), names)

    recent = [
        {"day": row["day"], "sessions": row["sessions"]}
        for row in sorted(shown, key=lambda row: row["day"])
        if row["day"] >= date(2024, 3, 8)
    ]
    assert recent
    assert sorted(names["arrow"].to_pylist(), key=lambda row: row["day"]) == recent
    assert len(names["frame"]) == len(recent)
    assert names["found"].to_dicts() == recent
    assert names["top"][0][1] == max(row["sessions"] for row in shown)
    days = [(row["day"], row["sessions"]) for row in shown]
    assert [tuple(row) for row in names["days"]] == sorted(days)
    assert names["columns"] == names["rows"].column_names
    assert "session_id" in names["columns"]
    assert not [name for name in names["columns"] if name.startswith("_")]
    assert names["run"] == result.run
    assert names["as_it_was"].num_rows == len(shown)
