"""What the tests of readers share."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from tests.spark.reading.folder import Folder

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Folder:
    """An empty folder."""
    return Folder(tmp_path, spark)
