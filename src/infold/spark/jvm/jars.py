"""
The jars beside Spark's own, which each storage pins; they are fetched once.

Spark can fetch jars itself at every start (``spark.jars.packages``), which costs seconds even when
nothing is missing. So it does that a single time, in a process of its own, into a scratch folder;
the jars are checked against the hashes below and renamed into the cache. A jar in the cache is
therefore complete, and two processes that fetch at once do no harm.
"""

from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from infold.messages.errors import InfoldError
from infold.messages.faults import jars_unresolved
from infold.spark.jvm.java import find_java
from infold.spark.storages import common_jars
from infold.spark.tables.catalog import Jar
from infold.system.kept_files import cache_dir, is_own

FETCH_SECONDS = 600


JARS = common_jars()
"""What every JVM has."""

_EXCLUDED = (
    # What sqlite-jdbc would bring along. Spark has a newer slf4j, which must stay the only one.
    "org.slf4j:slf4j-api",
    # What Hadoop's connector would bring along: all of the AWS SDK in one jar of 600 MB.
    "software.amazon.awssdk:bundle",
    "software.amazon.awssdk:netty-nio-client",
    "software.amazon.s3.analyticsaccelerator:analyticsaccelerator-s3",
    "org.wildfly.openssl:wildfly-openssl",
    # What Delta Lake would bring along for catalogs of Unity.
    "io.unitycatalog:*",
    # What that for Azure would bring along for an older protocol.
    "com.microsoft.azure:*",
    "org.apache.hadoop.thirdparty:*",
    "org.eclipse.jetty:*",
    # What Google's connector would bring along for gRPC, and for what it is compiled with.
    "com.google.api:api-common",
    "com.google.api:gax-*",
    "com.google.api.grpc:*",
    "com.google.auto.value:*",
    "com.google.cloud:*",
    "com.google.code.findbugs:*",
    "com.google.errorprone:*",
    "com.google.j2objc:*",
    "com.google.protobuf:*",
    "io.grpc:grpc-[b-bd-z]*",
    "io.grpc:grpc-alts",
    "io.grpc:grpc-auth",
    "io.grpc:grpc-census",
    "io.grpc:grpc-core",
    "io.opencensus:opencensus-contrib-[a-gi-z]*",
    "io.opencensus:opencensus-exporter-*",
    "io.opencensus:opencensus-impl*",
    "io.opentelemetry*:*",
    "javax.annotation:*",
    "org.checkerframework:*",
    "org.conscrypt:*",
    "org.threeten:*",
    # Spark has these.
    "com.fasterxml.jackson.core:*",
    "com.google.code.gson:*",
    "com.google.guava:*",
    "org.apache.httpcomponents:*",
    "commons-codec:commons-codec",
    "commons-logging:commons-logging",
    "io.netty:*",
)


def spark_home() -> Path:
    """The Spark that came with the pyspark of this interpreter."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:  # pragma: no cover - it is a dependency
        raise ModuleNotFoundError("pyspark", name="pyspark")
    return Path(spec.origin).parent


def settings_folder(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the Spark at ``home`` looks for its ``spark-defaults.conf`` and ``spark-env.sh``."""
    return Path(environ.get("SPARK_CONF_DIR") or home / "conf")


def jar_paths(more: tuple[Jar, ...] = ()) -> tuple[Path, ...]:
    """The jars as files, then ``more``; they are fetched the first time on a machine."""
    folder, jars = cache_dir() / "jars", (*JARS, *more)
    paths = tuple(folder / jar.file_name for jar in jars)
    if all(_is_there(folder, jar) for jar in jars):
        return paths
    folder.mkdir(parents=True, exist_ok=True)
    with _file_lock(folder / ".lock"):
        # Another process may have fetched them while this one waited.
        if not all(_is_there(folder, jar) for jar in jars):
            _fetch(folder, jars)
    return paths


def _is_there(folder: Path, jar: Jar) -> bool:
    """Whether a jar was fetched. One that another user could change is compared each time."""
    path = folder / jar.file_name
    return path.is_file() and (is_own(folder) or _sha256(path) == jar.sha256)


@contextmanager
def _file_lock(lock: Path) -> Iterator[None]:
    """Lock a file for the block; the system unlocks it if this process dies."""
    with lock.open("w") as opened:
        fcntl.flock(opened, fcntl.LOCK_EX)
        yield


def _fetch(folder: Path, jars: tuple[Jar, ...]) -> None:
    """Let Spark resolve the coordinates, then move the checked jars into ``folder``."""
    scratch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    try:
        output = _resolve(scratch, jars)
        for jar in jars:
            fetched = scratch / "jars" / jar.file_name
            if not fetched.is_file():
                raise _unresolved(folder, jars, _reason(output))
            if _sha256(fetched) != jar.sha256:
                why = f"{jar.file_name} is not the file that was published"
                raise _unresolved(folder, jars, why)
            fetched.replace(folder / jar.file_name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _resolve(ivy: Path, jars: tuple[Jar, ...]) -> str:
    """
    Run spark-submit on an empty program, which fetches ``jars`` into ``ivy``; its output.

    Ivy's settings are Spark's own, so a company's mirror set in ``spark-defaults.conf``
    (``spark.jars.ivySettings``) is used here too.
    """
    java, home = find_java(), spark_home()
    nothing = ivy / "nothing.py"
    nothing.touch()
    command = [
        str(home / "bin" / "spark-submit"),
        *("--master", "local[1]"),
        *("--packages", ",".join(jar.coordinates for jar in jars)),
        *("--exclude-packages", ",".join(_EXCLUDED)),
        *("--conf", f"spark.jars.ivy={ivy}"),
        str(nothing),
    ]
    env = {
        **os.environ,
        "JAVA_HOME": str(java.home),
        "SPARK_HOME": str(home),
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        # Asks no resolver who we are: it may not know.
        "SPARK_LOCAL_IP": os.environ.get("SPARK_LOCAL_IP", "127.0.0.1"),
    }
    try:
        ran = subprocess.run(
            command,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=FETCH_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"no answer within {FETCH_SECONDS} seconds"
    return ran.stderr


def _reason(output: str) -> str:
    """The most useful line of Ivy's report: a refused connection before its consequences."""
    lines = [line.strip(" :\t") for line in output.splitlines() if line.strip(" :\t")]
    for sign in ("Server access error", "no answer", "Exception", "not found", "ERROR"):
        for line in lines:
            if sign in line:
                return line
    return lines[-1] if lines else "there was no output"


def _unresolved(folder: Path, jars: tuple[Jar, ...], why: str) -> InfoldError:
    return jars_unresolved(tuple(jar.coordinates for jar in jars), str(folder), why)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
