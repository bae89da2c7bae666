"""A file that is replaced while it is read is never taken for what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.events.clicks_project import ClicksProject, shop_with

from infold.core.report import RunFailed
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

MODEL = """---
materialization: events
unique_key: [id]
prefer: [v desc]
timeseries: {event_time_column: at, granularity: day}
---
SELECT id, at, v FROM raw.clicks"""
KEPT, LOST, OTHER = "1,2024-03-01,3", "1,2024-03-01,2", "1,2024-03-01,1"


@pytest.fixture
def shop(tmp_path: Path, warehouse: Path, spark: SparkSession) -> ClicksProject:
    """Two copies of an event: the one of b.csv has lost."""
    found = shop_with(tmp_path, warehouse, MODEL)
    found.put("a.csv", KEPT)
    found.put("b.csv", LOST)
    found.run()
    return found


def replacing(shop: ClicksProject, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, before which b.csv is replaced by a file of the same length."""

    def replaced(*words: Any) -> Any:
        shop.put("c.csv", OTHER)
        (shop.root / "landing" / "c.csv").replace(shop.root / "landing" / "b.csv")
        return call(*words)

    return replaced


def test_a_copy_that_returns(shop: ClicksProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the file that it is read from is replaced meanwhile, nothing is committed."""
    from infold.spark.events import copies

    shop.drop("a.csv")
    with monkeypatch.context() as patch:
        patch.setattr(copies, "copy_fates", replacing(shop, copies.copy_fates))
        with pytest.raises(RunFailed) as caught:
            shop.run()

    assert [one.error.slug for one in caught.value.result.failures] == ["source-changed"]
    assert [row[-1] for row in shop.rows()] == [3]
    shop.run()
    assert [row[-1] for row in shop.rows()] == [1]
    assert shop.proven()


def test_verify(shop: ClicksProject, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that is replaced while it is compared is no difference of a table."""
    from infold.spark.verify.compare import compare

    shop.drop("a.csv")
    shop.run()
    monkeypatch.setattr("infold.spark.verify.verify.compare", replacing(shop, compare))

    with pytest.raises(InfoldError) as caught:
        shop.proven()

    assert caught.value.slug == "source-changed"
