"""Rows set aside are exactly those of the ingested files, whatever failed on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.spark.events.clicks_project import MODEL, SOURCE, ClicksProject, shop_with

from infold import api
from infold.core.model import SET_ASIDE
from infold.core.report import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GOOD, BAD = "2,2024-03-01,7", "3,never,7"
LATE = ("infold.spark.events.build._commit", "infold.spark.events.ingest.Ingest.tidy_set_aside")
"""Just before the commit of a step, and just after it."""


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """A project with one good file taken in."""
    found = shop_with(tmp_path, warehouse)
    found.put("a.csv", "1,2024-03-01,7")
    found.run()
    return found


def run_failing(shop: ClicksProject, place: str) -> None:
    """A run that fails at ``place``."""

    def fail(*_: object) -> NoReturn:
        raise RuntimeError("failed here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, fail)
        with pytest.raises(RunFailed) as caught:
            shop.run()
    assert "failed here" in caught.value.result.failures[0].error.what


@pytest.mark.parametrize("place", LATE)
def test_a_file_corrected_after_a_failure_has_none(shop: ClicksProject, place: str) -> None:
    """Rows that a failed step set aside disappear when the file is corrected before the next
    run.
    """
    shop.put("b.csv", GOOD, BAD)
    run_failing(shop, place)
    shop.put("b.csv", GOOD, "3,2024-03-02,777")
    shop.run()
    assert shop.aside() == []
    assert shop.proven()


@pytest.mark.parametrize("place", LATE)
def test_a_file_ingested_after_a_failure_has_them_once(shop: ClicksProject, place: str) -> None:
    """A step that is repeated, or was already done, leaves one copy of each row set aside."""
    shop.put("b.csv", GOOD, BAD)
    run_failing(shop, place)
    shop.put("c.csv", "4,never,7")
    shop.run()
    assert [file for file, _ in shop.aside()] == ["b.csv", "c.csv"]
    assert shop.proven()


def test_a_file_that_could_not_be_removed_keeps_them(shop: ClicksProject) -> None:
    """While the ledger has a file, a step that fails to remove it keeps its rows set aside."""
    shop.put("b.csv", GOOD, BAD)
    shop.run()
    there, away = shop.root / "landing" / "b.csv", shop.root / "b.csv"
    there.rename(away)
    run_failing(shop, "infold.spark.events.build._commit")
    away.rename(there)
    shop.run()
    assert [file for file, _ in shop.aside()] == ["b.csv"]
    assert shop.proven()


@pytest.mark.parametrize("rows", [(GOOD, BAD), (BAD,)], ids=["some", "all"])
def test_rows_of_a_deleted_file_are_removed_by_the_next_step(
    shop: ClicksProject, rows: tuple[str, ...]
) -> None:
    """When a step fails after its commit, or had nothing to commit, the next step removes the
    rows.
    """
    shop.put("b.csv", *rows)
    shop.run()
    shop.drop("b.csv")
    run_failing(shop, "infold.spark.events.ingest.Ingest.tidy_set_aside")
    assert len(shop.aside()) == 1
    shop.put("c.csv", "4,2024-03-02,7")
    shop.run()
    assert shop.aside() == []
    assert shop.proven()


def test_a_repeated_load(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """Rows set aside by a failed load are there once after the next load."""
    shop = shop_with(tmp_path, warehouse)
    shop.put("a.csv", GOOD, BAD)
    run_failing(shop, "infold.spark.events.ingest.Ingest.tidy_set_aside")
    shop.run()
    assert [file for file, _ in shop.aside()] == ["a.csv"]


def test_a_changed_declaration_removes_them(shop: ClicksProject, tmp_path: Path) -> None:
    """A file that is read under a changed declaration keeps no row that the old one set aside."""
    project = tmp_path / "infold.yml"
    strict, right = SOURCE.replace("v: int", "V: int"), SOURCE
    assert strict != right
    text = project.read_text()
    project.write_text(text.replace(right, strict + "    on_drift: set_aside\n"))
    shop.run()
    assert [file for file, _ in shop.aside()] == ["a.csv"]
    project.write_text(text.replace(right, right + "    on_drift: set_aside\n"))
    shop.run()
    assert shop.rows() == [("1", "2024-03-01", 7)]
    assert shop.aside() == []


def test_each_model_has_its_own(shop: ClicksProject) -> None:
    """Two models over the same files with other keys set rows aside independently."""
    shop.model("landed", MODEL.replace("[id]", "[v]"))
    shop.put("b.csv", ",2024-03-01,7")
    shop.run()
    assert shop.aside() == [("b.csv", "null key: id")]
    shop.put("c.csv", GOOD)
    shop.run()
    assert shop.aside() == [("b.csv", "null key: id")]
    shop.drop("b.csv")
    shop.run()
    assert shop.aside() == []


@pytest.mark.parametrize("plain", [True, False])
def test_their_texts_are_there_however_their_file_is_read(
    tmp_path: Path, warehouse: Path, spark: SparkSession, plain: bool
) -> None:
    """Rows that Spark's own reader of JSON gives have no text; a row that is set aside gets it."""
    shop = shop_with(tmp_path, warehouse)
    declared = shop.root / "infold.yml"
    declared.write_text(declared.read_text().replace("*.csv", "*.json").replace("csv", "json"))
    good = '{"id": "1", "at": "2024-03-01", "v": 1, "a.b`c": null, "order": 1}'
    bad = [
        good.replace('"1"', "null"),  # by the model's rule
        good.replace('"2024-03-01"', "null"),
        good.replace('"v": 1', '"v":  1.5'),  # by its type
    ]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("infold.spark.reading.json_lines.IN_PROCESS", -1)
        patch.setattr("infold.spark.reading.json_lines.worth_keeping", lambda _: False)
        if not plain:
            patch.setattr("infold.spark.reading.json_plain.may_be_plain", lambda *_: False)
        for number in range(2):  # a first load, and a fold
            lines = [good.replace('"1"', f'"{number}"'), *bad]
            (shop.root / "landing" / f"{number}.json").write_text("\n".join(lines))
            shop.run()

    found = api.lake(api.open_project(shop.root)).rows(SET_ASIDE).to_pylist()
    assert sorted((row["file"], row["raw"]) for row in found) == sorted(
        (f"landing/{number}.json", line) for number in range(2) for line in bad
    )
    assert [row[0] for row in shop.rows()] == ["0", "1"]
    assert shop.proven()
