"""One Spark session for all tests of this folder, with a warehouse of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.events.clicks_project import NewShop, shop_with

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of the session's tables; the catalog lies in it as ``catalog.db``."""
    return tmp_path_factory.mktemp("warehouse")


@pytest.fixture(scope="session")
def spark(warehouse: Path) -> SparkSession:
    """A small local session."""
    from infold.spark.jvm.spark_session import start

    return start(warehouse, warehouse / "catalog.db", size="small")


@pytest.fixture(scope="session", autouse=True)
def _frames_are_checked() -> None:
    """Every frame that a fold hands on has the columns that its schema declares."""
    from infold.spark import frame_schema

    frame_schema.CHECKED = True


@pytest.fixture
def quick_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What Spark refuses raises py4j's error: for its own PySpark asks a dozen times in the JVM."""
    from py4j import java_gateway, protocol

    monkeypatch.setattr(java_gateway, "get_return_value", protocol.get_return_value)
    monkeypatch.setattr("pyspark.sql.session.install_exception_handler", lambda: None)


@pytest.fixture
def new_shop(tmp_path: Path, warehouse: Path) -> NewShop:
    """A project of clicks in the folder of a test."""
    return partial(shop_with, tmp_path, warehouse)
