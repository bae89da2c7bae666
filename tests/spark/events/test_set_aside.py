"""Rows set aside are exactly those of the ingested files, whatever failed on the way."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import pyarrow as pa
import pytest
from tests.spark.events.clicks_project import MODEL, ClicksProject, NewShop, having
from tests.spark.reading.written import TABLES

from infold import api
from infold.core.interval import parse_instant_text
from infold.core.model import SET_ASIDE
from infold.core.plan import ChangedKeyRows, PlanOptions
from infold.core.project import Node
from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.events import copies
from infold.spark.inputs import changed_keys
from infold.spark.step_context import Work
from infold.spark.verify.compare import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


GOOD, BAD = "2,2024-03-01,7", "3,never,7"
COMMIT = "infold.spark.step_commit.RowChanges.commit"
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


def test_after_failures(new_shop: NewShop) -> None:
    """
    A step that is repeated, or was already done, leaves one copy of each row set aside, and none of
    a file that was corrected meanwhile. While the ledger has a file, a step that fails to remove it
    keeps its rows; when a step fails after its commit, or had nothing to commit, the next one
    removes them.
    """
    shop = new_shop()
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


def test_their_texts_are_there_however_their_file_is_read(
    new_shop: NewShop, spark: SparkSession
) -> None:
    """Rows that Spark's own reader of JSON gives have no text; a row that is set aside gets it."""
    shop = new_shop()
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

    found = api.lake_of(api.open_project(shop.root)).rows(SET_ASIDE).to_pylist()
    assert sorted((row["file"], row["raw"]) for row in found) == sorted(
        (f"landing/{number}.json", line) for number in range(3) for line in bad
    )
    assert [row[0] for row in shop.rows()] == ["0", "1", "2"]


KEYS = """    event_time_column: at
    columns: {id: string, at: timestamp, v: bigint, cur: string}
    on_drift: set_aside
    on_unreadable: set_aside
"""
SOURCES = f"""{KEYS}  raw.lines:
    path: landing/*.json
{KEYS}  raw.typed:
    path: landing/*.parquet
{KEYS}  raw.rates:
    path: rates.csv
    columns: {{code: string, rate: int}}
"""
JOINED = "FROM raw.clicks e LEFT JOIN raw.rates r ON e.cur = r.code"
PRICED = MODEL.replace("id, at, v FROM raw.clicks", f"e.id, e.at, e.v * r.rate AS worth {JOINED}")
DATED = MODEL.replace(
    "id, at, v FROM raw.clicks", f"e.id, timestamp_seconds(nullif(r.rate, 1)) AS at {JOINED}"
)
"""The time of an event is from the lookup; a rate of 1 has none."""
PLAIN = MODEL.replace("---\nSELECT", "forward_only: true\n---\nSELECT")

Rows = dict[str, list[object]]
USABLE: Rows = {
    "id": ["a", "b"],
    "at": ["2024-03-01T00:00:00Z", "2024-03-02T00:00:00Z"],
    "v": [1, 2],
    "cur": ["EUR", "USD"],
}
MORE = USABLE | {"id": ["c", "d"], "extra": [1, 1]}
OTHER_TYPE = USABLE | {"id": ["c", "d"], "v": ["1", "2"]}


def write(rows: Rows, at: Path) -> None:
    """A file of rows."""
    table = pa.table(rows)
    if at.suffix == ".parquet":
        times = table["at"].cast(pa.timestamp("us", "UTC"))
        table = table.set_column(table.column_names.index("at"), "at", times)
    TABLES[at.suffix](table, at)


def known_but_for(model: str) -> Callable[..., ChangedKeyRows]:
    """For a model it is not known where the rows with changed keys are."""
    real = changed_keys.locate_changed_keys

    def located(work: Work, node: Node, *more: Any) -> ChangedKeyRows:
        if node.name == model:
            return ChangedKeyRows(everywhere=True)
        return real(work, node, *more)

    return located


def test_a_lookup_changes(new_shop: NewShop) -> None:
    """
    Rows that have the changed key, but are in a file with another column, key or type, or in one
    that cannot be read, stay set aside; also where it is not known which files have changed keys.
    A good file without a row that can be used is judged once more, and found good. A rebuild by
    several definitions in force reads every file, and takes no row of such a one. What is corrected
    comes in.
    """
    shop = new_shop(DATED, SOURCES)
    priced = {"lines": ".json", "typed": ".parquet"}
    for name, ending in (("clicks", ".csv"), *priced.items()):
        write(USABLE, shop.root / "landing" / f"good{ending}")
        bad = OTHER_TYPE if ending == ".parquet" else MORE
        write(bad, shop.root / "landing" / f"bad{ending}")
        if name in priced:
            shop.model(name, PRICED.replace("raw.clicks", f"raw.{name}"))
    (shop.root / "landing" / "broken.parquet").write_bytes(b"no such file")
    shop.model("plain", PLAIN)

    def rate(eur: int) -> None:
        (shop.root / "rates.csv").write_text(f"code,rate\nEUR,{eur}\nUSD,1\n")

    rate(1)
    assert ("drift", 2) in shop.run().set_aside_by
    aside = {name: shop.aside(name) for name in priced}
    assert {file for files in aside.values() for file, _ in files} == {
        *("bad.json", "bad.parquet", "broken.parquet")
    }
    assert shop.rows() == []

    rate(3)
    shop.model("plain", PLAIN.replace("v FROM", "v * 2 AS v FROM"))
    since = PlanOptions(forward_only={"plain": parse_instant_text("2024-03-02")})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(changed_keys, "locate_changed_keys", known_but_for("typed"))
        receipts = shop.receipts(asked=since)
    assert receipts["lines"].read == 4, "the rows of the file with the key, and the stored ones"
    assert shop.rows() == [("a", "1970-01-01 00:00:03")]
    assert [file for file, _ in shop.aside("clicks")] == ["bad.csv", "bad.csv", "good.csv"]
    for name in priced:
        assert shop.rows(name) == [("a", "2024-03-01", 3), ("b", "2024-03-02", 2)]
        assert shop.aside(name) == aside[name]
    assert shop.rows("plain") == [("a", "2024-03-01", 1), ("b", "2024-03-02", 4)]

    for ending in (".json", ".parquet"):
        write(USABLE | {"id": ["c", "d"]}, shop.root / "landing" / f"bad{ending}")
    write(USABLE | {"id": ["e", "f"]}, shop.root / "landing" / "broken.parquet")
    shop.run()
    assert {name: [row[0] for row in shop.rows(name)] for name in priced} == {
        "lines": ["a", "b", "c", "d"],
        "typed": ["a", "b", "c", "d", "e", "f"],
    }
    assert [shop.aside(name) for name in priced] == [[], []]


def replacing(shop: ClicksProject, row: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, before which b.csv is replaced by a file of the same length."""

    def replaced(*words: Any, **options: Any) -> Any:
        shop.put("c.csv", row)
        (shop.root / "landing" / "c.csv").replace(shop.root / "landing" / "b.csv")
        return call(*words, **options)

    return replaced


def test_a_file_that_is_replaced(
    new_shop: NewShop, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Where a copy that returns is read from it, nothing is committed; where it is replaced while it
    is compared, that is no difference of a table.
    """
    shop = new_shop(having("prefer: [v desc]"))
    shop.put("a.csv", "1,2024-03-01,3")
    shop.put("b.csv", "1,2024-03-01,2")
    shop.run()

    shop.drop("a.csv")
    with monkeypatch.context() as patch:
        patch.setattr(copies, "copy_fates", replacing(shop, "1,2024-03-01,1", copies.copy_fates))
        with pytest.raises(RunFailed) as failed:
            shop.run()
    assert [one.error.slug for one in failed.value.result.failures] == ["source-changed"]
    assert [row[-1] for row in shop.rows()] == [3]
    shop.run()
    assert [row[-1] for row in shop.rows()] == [1]

    compared = replacing(shop, "1,2024-03-01,4", compare)
    monkeypatch.setattr("infold.spark.verify.verify.compare", compared)
    with pytest.raises(InfoldError) as caught:
        shop.proven()
    assert caught.value.slug == "source-changed"
