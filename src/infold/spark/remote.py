"""Whether a session is one of Spark Connect: then no JVM is at hand, nor its objects."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def is_remote(session: SparkSession) -> bool:
    """Whether a session is one of Spark Connect."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def make_active(session: SparkSession) -> None:
    """
    Let a remote session be that of this thread, which PySpark gives what checkpoints keep.

    Each thread of a run has a session of its own.
    """
    if is_remote(session):
        from pyspark.sql.connect.session import SparkSession as RemoteSession

        RemoteSession._active_session.session = session  # noqa: SLF001 (no public way)
