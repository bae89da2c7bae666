"""Fixed settings that an extension of Spark changes by itself, in every session of its JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from infold.core.fixed_settings import FIXED
from infold.core.storages import STORAGE_SETTINGS, Storage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXTENSIONS = "spark.sql.extensions"
DELTA = STORAGE_SETTINGS[Storage.DELTA].extension
CHANGED = "spark.sql.parquet.fieldId.read.enabled"
"""
Delta Lake turns it on for tables that map columns by ids. Infold makes none of those, and reads
files of others by the names that the ids have in each.
"""


def put_back_fixed(session: SparkSession) -> None:
    """
    Let a session have the fixed value again.

    The extension changes it when the session makes its analyser, for its first query. So that is
    made now.
    """
    if DELTA in (session.conf.get(EXTENSIONS, "") or ""):
        java: Any = session._jsparkSession  # noqa: SLF001 (no public way)
        java.sessionState().analyzer()
        session.conf.set(CHANGED, FIXED[CHANGED])
