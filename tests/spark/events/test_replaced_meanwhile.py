"""A file that is replaced while it is read is never taken for what it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from tests.spark.events.clicks_project import ClicksProject, having, shop_with

from infold.core.report import RunFailed
from infold.messages.errors import InfoldError
from infold.spark.events import copies
from infold.spark.verify.compare import compare

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def replacing(shop: ClicksProject, row: str, call: Callable[..., Any]) -> Callable[..., Any]:
    """The same call, before which b.csv is replaced by a file of the same length."""

    def replaced(*words: Any, **options: Any) -> Any:
        shop.put("c.csv", row)
        (shop.root / "landing" / "c.csv").replace(shop.root / "landing" / "b.csv")
        return call(*words, **options)

    return replaced


def test_a_file_that_is_replaced(
    tmp_path: Path, warehouse: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    Where a copy that returns is read from it, nothing is committed; where it is replaced while it
    is compared, that is no difference of a table.
    """
    shop = shop_with(tmp_path, warehouse, having("prefer: [v desc]"))
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
