"""Failures from outside have names: disks, permissions, memory, a killed JVM."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from pathlib import Path

import pytest

from infold.messages import run_errors
from infold.system.failures import as_user_error, known_failure


def java(text: str) -> Exception:
    """An error as PySpark raises it, recognised by its name."""
    kind: type[Exception] = type("Py4JJavaError", (Exception,), {})
    return kind(f"An error occurred while calling o1.append.\n: {text}\n\tat java.base/x.y(Z.java)")


def system(number: int, path: str | None = "/data/x") -> OSError:
    """An error of the system's."""
    return OSError(number, os.strerror(number), path)


GONE = type("Py4JNetworkError", (Exception,), {})
UNANSWERED = type("Py4JError", (Exception,), {})
CASES = [
    (system(errno.ENOSPC), "disk-full"),
    (system(errno.EDQUOT), "disk-full"),
    (system(errno.EACCES), "not-permitted"),
    (system(errno.EROFS), "not-permitted"),
    (system(errno.EMFILE), "system-refused"),
    (system(errno.EIO, None), "system-refused"),
    (system(errno.ECONNREFUSED, None), "engine-died"),
    (MemoryError(), "out-of-memory"),
    (RecursionError("maximum recursion depth exceeded"), "too-deep"),
    (sqlite3.OperationalError("database is locked"), "database-unusable"),
    (GONE("Answer from Java side is empty"), "engine-died"),
    (UNANSWERED("An error occurred while calling o171.read"), "engine-died"),
    (java("java.lang.OutOfMemoryError: Java heap space"), "out-of-memory"),
    (
        java("o.a.s.X: gave up\nCaused by: java.io.IOException: No space left on device"),
        "disk-full",
    ),
    (java("java.nio.file.AccessDeniedException: /data/warehouse"), "not-permitted"),
    (java("java.io.FileNotFoundException: /w/x (Read-only file system)"), "not-permitted"),
    (java("java.lang.StackOverflowError"), "too-deep"),
    (
        java(
            "org.apache.spark.SparkException: Job aborted: Total size of serialized results of 999 "
            "tasks (1024.1 MiB) is bigger than spark.driver.maxResultSize 1024.0 MiB."
        ),
        "too-many-parts",
    ),
    (java("[SQLITE_FULL] database or disk is full"), "disk-full"),
    (java("o.a.i.exceptions.CommitStateUnknownException: 502 Bad Gateway"), "catalog-answer-lost"),
    (java("org.apache.iceberg.exceptions.RESTException: Error occurred"), "catalog-answer-lost"),
    (
        java(
            "org.apache.iceberg.jdbc.UncheckedSQLException: Database Connection failed\nCaused by: "
            "org.postgresql.util.PSQLException: An I/O error occurred while sending to the backend."
        ),
        "catalog-answer-lost",
    ),
    (java("org.apache.iceberg.exceptions.ForbiddenException: no"), "catalog-not-permitted"),
    (
        java(
            "org.apache.iceberg.jdbc.UncheckedSQLException: Unknown failure\nCaused by: "
            "org.postgresql.util.PSQLException: ERROR: permission denied for table iceberg_tables"
        ),
        "catalog-not-permitted",
    ),
    (java("org.apache.iceberg.exceptions.NotAuthorizedException: no"), "catalog-login-refused"),
    (java("org.apache.iceberg.exceptions.ServiceUnavailableException: no"), "catalog-failed"),
    (java("org.postgresql.util.PSQLException: ERROR: deadlock detected"), "catalog-failed"),
    (java("o.a.iceberg.hive.RuntimeMetaException: Failed to connect"), "catalog-failed"),
    (java("RuntimeException: Metastore operation failed for shop.daily"), "catalog-failed"),
    (run_errors.locked(run="r", host="h", pid=1, since="now"), "locked"),
]


@pytest.mark.parametrize(("error", "slug"), CASES, ids=lambda case: str(case)[:40])
def test_each_failure_has_its_name(error: BaseException, slug: str) -> None:
    """Each failure has a name, an exit code that no mistake of a project has, and a cure."""
    found = known_failure(error)

    assert found is not None
    assert found.slug == slug
    assert found.todo
    assert found.exit_code == {"too-deep": 2, "locked": 3}.get(slug, 1)


def test_a_dead_engine_that_pyspark_calls_something_else() -> None:
    """PySpark says of any failure to get a schema that its type cannot be parsed."""
    other = type("PySparkValueError", (type("PySparkException", (Exception,), {}),), {})
    raised = other("[CANNOT_PARSE_DATATYPE] Unable to parse datatype. Answer from Java is empty.")
    raised.__context__ = GONE("Answer from Java side is empty")
    found = known_failure(raised)

    assert found is not None
    assert found.slug == "engine-died"
    assert ("why", "Py4JNetworkError: Answer from Java side is empty") in found.facts


def test_the_cause_of_a_full_disk_is_named() -> None:
    """With the line of the stack that says so, and the file if there is one."""
    why = "java.io.IOException: /t/a.parquet: No space left on device"
    found = known_failure(java(f"x\nCaused by: {why}"))

    assert found is not None
    assert found.facts == (("file", "/t/a.parquet"), ("why", why))


def test_an_unknown_failure_is_internal(tmp_path: Path) -> None:
    """With its traceback in the project or another writable place."""
    try:
        raise KeyError("\ud800")
    except KeyError as error:
        found = as_user_error(error, tmp_path)
        (tmp_path / "shut").write_text("no folder")
        other = as_user_error(error, tmp_path / "shut")

    assert found.slug == other.slug == "internal"
    assert "KeyError" in (tmp_path / ".infold" / "last-error.log").read_text()
    assert "infold-last-error-" in other.what
    Path(other.what.rpartition(" in ")[2].rstrip(")")).unlink()


def test_a_query_that_spark_refuses_is_the_steps_failure() -> None:
    """Spark's error about a query is the step's failure, not one of the machine."""
    assert (
        known_failure(java("org.apache.spark.SparkArithmeticException: [DIVIDE_BY_ZERO]")) is None
    )
    assert sys.getrecursionlimit() < 5_000
