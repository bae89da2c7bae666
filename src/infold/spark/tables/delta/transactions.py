"""
Versions of a Delta table inside the JVM: rows of files that are known, and commits of rows.

They go by what Delta's readers and writers go by themselves. Its public ways look for the files of
a version with jobs of Spark, for each plan; those here are told them.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from infold.lake.delta.commit import Action
from infold.lake.delta.files import as_json

_ADDED = "org.apache.spark.sql.delta.actions.AddFile"
_REMOVED = "org.apache.spark.sql.delta.actions.RemoveFile"


def rows_of_version(
    spark: SparkSession, folder: str, version: int, files: Iterable[Action] | None
) -> DataFrame:
    """The rows of a version: of these files of it, or None, of those that a plan may need."""
    jvm: Any = spark._jvm  # noqa: SLF001 (as all here: no public way)
    log = _log(spark, folder)
    snapshot, nothing = _snapshot(jvm, log, version), jvm.scala.Option.empty()
    if files is None:
        no_filters = jvm.org.apache.spark.api.python.PythonUtils.toSeq(jvm.java.util.ArrayList())
        of_version = jvm.scala.Option.apply(snapshot)
        relation = log.createRelation(no_filters, of_version, nothing, True)
        rows = spark._jsparkSession.baseRelationToDataFrame(relation)  # noqa: SLF001
    else:
        chosen = _actions(jvm, _ADDED, ({**file, "stats": None} for file in files))
        rows = log.createDataFrame(snapshot, chosen, False, nothing)
    return DataFrame(rows, spark)


def commit(
    rows: DataFrame,
    folder: str,
    version: int,
    *,
    removed: Iterable[Mapping[str, Any]] = (),
    added: Iterable[Action] = (),
    changes: bool = True,
) -> None:
    """
    Write rows and commit them after a version, with files that go, and some that have other rows.

    It is refused where others removed one of the files that go, or rows of it, meanwhile. What else
    they did, who commits finds in the log.

    Without ``changes`` the commit says that the table has the rows that it had.
    """
    spark = rows.sparkSession
    jvm: Any = spark._jvm  # noqa: SLF001
    log = _log(spark, folder)
    nothing = jvm.scala.Option.empty()
    before = jvm.scala.Option.apply(_snapshot(jvm, log, version))
    transaction = log.startTransaction(nothing, before)
    actions = transaction.writeFiles(rows._jdf)  # noqa: SLF001
    if not changes:
        text = jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper().writeValueAsString(actions)
        same = ({**file, "dataChange": False} for file in json.loads(text))
        actions = _actions(jvm, _ADDED, same)
    actions = actions.appendedAll(_actions(jvm, _REMOVED, removed))
    actions = actions.appendedAll(_actions(jvm, _ADDED, added))
    operations = jvm.org.apache.spark.sql.delta
    mode = jvm.org.apache.spark.sql.SaveMode.Append
    operation = getattr(operations, "DeltaOperations$Write")(mode, *[nothing] * 8)
    transaction.commit(actions, operation)


def _log(spark: SparkSession, folder: str) -> Any:
    jvm: Any = spark._jvm  # noqa: SLF001
    session = spark._jsparkSession  # noqa: SLF001
    # Delta plans in the session that is active in this thread.
    jvm.org.apache.spark.sql.classic.SparkSession.setActiveSession(session)
    return jvm.org.apache.spark.sql.delta.DeltaLog.forTable(session, folder)


def _snapshot(jvm: Any, log: Any, version: int) -> Any:
    """A version; where the JVM knows none as new, it looks at the log again."""
    known = log.unsafeVolatileSnapshot()
    if known.version() == version:
        return known
    nothing = jvm.scala.Option.empty()
    return log.getSnapshotAt(version, nothing, nothing, False)


def _actions(jvm: Any, kind: str, actions: Iterable[Mapping[str, Any]]) -> Any:
    """Actions of one kind for the JVM, all in one call."""
    mapper = jvm.org.apache.spark.sql.delta.util.JsonUtils.mapper()
    listed = mapper.getTypeFactory().constructFromCanonical(
        f"scala.collection.immutable.List<{kind}>"
    )
    return mapper.readValue(as_json(actions), listed)
