"""Rows set aside are exactly those of the ingested files, whatever failed on the way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest
from tests.spark.events.clicks_project import MODEL, ClicksProject, shop_with

from infold import api
from infold.core.model import SET_ASIDE
from infold.core.report import RunFailed

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

GOOD, BAD = "2,2024-03-01,7", "3,never,7"
COMMIT = "infold.spark.events.build._commit"
TIDY = "infold.spark.events.ingest.Ingest.tidy_set_aside"
"""Just before the commit of a step, and just after it."""


def run_failing(shop: ClicksProject, place: str) -> None:
    """A run that fails at ``place``."""

    def fail(*_: object) -> NoReturn:
        raise RuntimeError("failed here")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, fail)
        with pytest.raises(RunFailed) as caught:
            shop.run()
    assert "failed here" in caught.value.result.failures[0].error.what


def test_after_failures(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """
    A step that is repeated, or was already done, leaves one copy of each row set aside, and none of
    a file that was corrected meanwhile. While the ledger has a file, a step that fails to remove it
    keeps its rows; when a step fails after its commit, or had nothing to commit, the next one
    removes them.
    """
    shop = shop_with(tmp_path, warehouse)
    shop.put("a.csv", GOOD, BAD)
    run_failing(shop, TIDY)
    shop.run()  # repeats a first load
    files = ["a.csv"]
    assert [file for file, _ in shop.aside()] == files
    for place, names in ((COMMIT, "bcd"), (TIDY, "efg")):
        stays, corrected, new = (f"{name}.csv" for name in names)
        for name in (stays, corrected):
            shop.put(name, f"{name},2024-03-01,7", BAD)
        run_failing(shop, place)
        shop.put(corrected, GOOD, "3,2024-03-02,777")
        shop.put(new, BAD)
        shop.run()
        files += [stays, new]
        assert [file for file, _ in shop.aside()] == files

    there, away = shop.root / "landing" / "a.csv", shop.root / "a.csv"
    there.rename(away)
    run_failing(shop, COMMIT)
    away.rename(there)
    shop.put("h.csv", "4,2024-03-01,7")
    shop.run()
    assert [file for file, _ in shop.aside()] == files

    for gone in (stays, new):  # some of its rows were stored, or none
        shop.drop(gone)
        run_failing(shop, TIDY)
        assert gone in [file for file, _ in shop.aside()]
    shop.put("i.csv", "4,2024-03-02,7")
    shop.run()
    assert [file for file, _ in shop.aside()] == files[:-2]
    assert shop.proven()


def test_each_model_has_its_own(tmp_path: Path, warehouse: Path, spark: SparkSession) -> None:
    """Two models over the same files with other keys set rows aside independently."""
    shop = shop_with(tmp_path, warehouse)
    shop.model("landed", MODEL.replace("[id]", "[v]"))
    shop.put("b.csv", ",2024-03-01,7")
    shop.run()
    shop.put("c.csv", GOOD, "4,2024-03-01,")
    shop.run()
    assert shop.aside("clicks") == [("b.csv", "null key: id")]
    assert shop.aside("landed") == [("c.csv", "null key: v")]
    shop.drop("b.csv")
    shop.run()
    assert shop.aside() == [("c.csv", "null key: v")]


def test_their_texts_are_there_however_their_file_is_read(
    tmp_path: Path, warehouse: Path, spark: SparkSession
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
        for number in range(3):  # a first load, a fold, and one that Spark's own reader cannot read
            if number == 2:
                patch.setattr("infold.spark.reading.json_lines.may_be_plain", lambda *_: False)
            lines = [good.replace('"1"', f'"{number}"'), *bad]
            (shop.root / "landing" / f"{number}.json").write_text("\n".join(lines))
            shop.run()

    found = api.lake(api.open_project(shop.root)).rows(SET_ASIDE).to_pylist()
    assert sorted((row["file"], row["raw"]) for row in found) == sorted(
        (f"landing/{number}.json", line) for number in range(3) for line in bad
    )
    assert [row[0] for row in shop.rows()] == ["0", "1", "2"]
