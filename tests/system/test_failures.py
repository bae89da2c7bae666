"""Failures from outside have names: disks, permissions, memory, stores, a killed JVM."""

from __future__ import annotations

import errno
import os
import sqlite3
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from infold.messages import run_errors
from infold.spark.damaged_tables import damaged_table
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


# -- what Spark says of an object store has a name, the place, and what to do


HADOOP = "org.apache.hadoop.fs.s3a"
SDK = "software.amazon.awssdk"
REFUSED = f"{SDK}.services.s3.model.S3Exception: a reason (Service: S3, Status Code"
AT = "s3://lake/a"
DENIED = f"java.nio.file.AccessDeniedException: {AT}: open {AT}: {REFUSED}: 403)"
SILENT = f"{SDK}.core.exception.SdkClientException: Unable to execute HTTP request: timed out"

GOOGLE = "com.google.api.client"
AT_GOOGLE = "gs://landing/a.json"
SAID = f"java.io.IOException: Error accessing {AT_GOOGLE}. reason="

AZURE = 'Operation failed: "Said", '
AT_AZURE = "https://a.dfs.core.windows.net/c/in/a.json"

IN_HDFS = "org.apache.hadoop"
OF_EVE = 'Permission denied: user=eve, access=WRITE, inode="/lake/a":etl:etl:drwxr-xr-x'

LINES = {
    f"{IN_HDFS}.security.AccessControlException: {OF_EVE}": "store-access-denied",
    f"{IN_HDFS}.ipc.RemoteException({IN_HDFS}.security.AccessControlException): {OF_EVE}": (
        "store-access-denied"
    ),
    f"{IN_HDFS}.security.AccessControlException: SIMPLE authentication is not enabled.  "
    "Available:[TOKEN, KERBEROS]": "not-supported-yet",
    "java.net.ConnectException: Call From vm/127.0.0.1 to nn:8020 failed on connection exception: "
    "java.net.ConnectException: Connection refused": "store-unreachable",
    "java.lang.IllegalArgumentException: java.net.UnknownHostException: shop": "store-unreachable",
    f"{IN_HDFS}.ipc.RemoteException({IN_HDFS}.ipc.StandbyException): Operation category READ is "
    "not supported in state standby": "store-standby",
    f"{IN_HDFS}.hdfs.BlockMissingException: Could not obtain block: BP-1 file=/lake/a": (
        "store-failed"
    ),
    f"{IN_HDFS}.hdfs.server.namenode.SafeModeException: Cannot create file/lake/a. Name node is "
    "in safe mode.": "store-failed",
    f"java.nio.file.AccessDeniedException: {AZURE}403, GET, {AT_AZURE}?x=1": "store-access-denied",
    f"java.nio.file.AccessDeniedException: {AZURE}401, GET, {AT_AZURE}?x=1": (
        "store-credentials-refused"
    ),
    f"{AZURE}403, HEAD, {AT_AZURE}, , AuthenticationFailed": "store-credentials-refused",
    f"java.io.FileNotFoundException: {AZURE}404, GET, {AT_AZURE}?x, , FilesystemNotFound": (
        "store-bucket-missing"
    ),
    f"{AZURE}503, GET, {AT_AZURE}?x=1": "store-failed",
    "Status code: -1 error code: null error message: java.net.ConnectException: refused": (
        "store-unreachable"
    ),
    "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.azurebfs.X not found": (
        "store-jars-missing"
    ),
    f"{SAID}403 Forbidden": "store-access-denied",
    f"{SAID}401 Unauthorized": "store-credentials-refused",
    f"{GOOGLE}.auth.oauth2.TokenResponseException: 400 Bad Request": "store-credentials-refused",
    f"{SAID}Connection refused": "store-unreachable",
    f"{SAID}500 Internal Server Error": "store-failed",
    f"{GOOGLE}.http.HttpResponseException: 403 Forbidden": "store-access-denied",
    "java.io.IOException: Error getting access token from metadata server at: 'http://…'": (
        "store-credentials-missing"
    ),
    "java.lang.ClassNotFoundException: Class com.google.cloud.hadoop.fs.gcs.X not found": (
        "store-jars-missing"
    ),
    f"{HADOOP}.UnknownStoreException: `{AT}': getFileStatus: NoSuchBucket": "store-bucket-missing",
    DENIED: "store-access-denied",
    f"{DENIED}: InvalidAccessKeyId": "store-credentials-refused",
    f"{HADOOP}.AWSBadRequestException: PUT on {AT}: {REFUSED}: 400): ExpiredToken": (
        "store-credentials-refused"
    ),
    f"{HADOOP}.AWSRedirectException: getFileStatus on {AT}: {REFUSED}: 301)": "store-wrong-region",
    f"{HADOOP}.auth.NoAuthWithAWSException: on {AT}: No AWS Credentials provided": (
        "store-credentials-missing"
    ),
    f"java.net.ConnectException: getFileStatus on {AT}: {SILENT}": "store-unreachable",
    f"{HADOOP}.AWSServiceThrottledException: PUT on {AT}: {REFUSED}: 503): SlowDown": (
        "store-failed"
    ),
    "org.apache.http.ConnectionClosedException: Premature end of a message body": "store-failed",
    f"java.lang.ClassNotFoundException: Class {HADOOP}.S3AFileSystem not found": (
        "store-jars-missing"
    ),
    "java.nio.file.AccessDeniedException: /srv/warehouse/a.parquet": "not-permitted",
}


PLACES = {
    OF_EVE: "hdfs:///lake/a",
    "nn:8020": "hdfs://nn:8020",
    AT_AZURE: AT_AZURE,
    AT_GOOGLE: AT_GOOGLE,
    AT: AT,
}
"""The place that is told, by what is in the line."""


class Py4JJavaError(Exception):
    """Named as py4j's, which is recognized by its name."""


@pytest.mark.parametrize(("line", "slug"), LINES.items())
def test_a_failure_of_a_store_has_a_name(line: str, slug: str) -> None:
    """By its last cause, whatever is around it; that of a disk stays one of a disk."""
    trace = (
        f"An error occurred while calling o1.sql.\n: java.lang.X: y\nCaused by: {line}\n\tat a.b"
    )
    found = known_failure(Py4JJavaError(trace))
    assert found is not None
    assert found.slug == slug
    places = [place for said, place in PLACES.items() if said in line]
    if places and slug != "store-bucket-missing":
        assert dict(found.facts)["at"] == places[0]


@pytest.mark.parametrize(
    ("line", "damaged"),
    [
        ("org.apache.http.ConnectionClosedException: Premature end of a message body", False),
        (f"{HADOOP}.AWSServiceIOException: open {AT}: {REFUSED}: 500)", False),
        ("java.lang.RuntimeException: expected magic number at tail", True),
    ],
)
def test_a_table_is_not_damaged_by_a_store_that_fails(line: str, damaged: bool) -> None:
    """A cut connection says nothing of the table: nobody is told to build it again."""
    whole: Any = SimpleNamespace(lost_files=lambda table: (), has_file=lambda table, path: True)
    error = Py4JJavaError(f"Error while reading {AT}/b.parquet\nCaused by: {line}")
    found = damaged_table(whole, whole, ["daily"], error)
    assert (found is not None) == damaged
