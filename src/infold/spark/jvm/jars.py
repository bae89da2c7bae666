"""
The jars beside Spark's own, which each storage pins; they are fetched once.

Spark can fetch jars itself at every start (``spark.jars.packages``), which costs seconds even when
nothing is missing. So each is downloaded a single time into a scratch folder, checked against its
hash, and renamed into the cache. A jar in the cache is therefore complete, and two processes that
fetch at once do no harm.

They come from Maven Central, or from where the machine's Spark is told to look: the addresses of
``spark.jars.repositories``, and those in the Ivy settings of ``spark.jars.ivySettings``.
"""

from __future__ import annotations

import fcntl
import hashlib
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from pathlib import Path
from urllib import request

from infold.messages.errors import InfoldError
from infold.messages.faults import jars_unresolved
from infold.spark.jvm.java import settings_folder, spark_home
from infold.spark.jvm.session_settings import DEFAULTS, given_settings
from infold.spark.storages import common_jars
from infold.spark.tables.catalog import Jar
from infold.system.kept_files import cache_dir, is_own

LOCAL_FILES = Jar(
    "com.globalmentor",
    "hadoop-bare-naked-local-fs",
    "0.1.0",
    "e0cc30fb0531eb0b59468dc0abf5b257533d2365b5e9f45e795edd707aa78c62",
)
"""Hadoop's local file system, but for the permissions of files: Java sets them itself."""
JARS = (*common_jars(), LOCAL_FILES)
"""What every JVM has."""

CENTRAL = "https://repo1.maven.org/maven2"
MOST_SILENT_SECONDS = 60


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
    """Download what is missing, then move the checked jars into ``folder``."""
    scratch = Path(tempfile.mkdtemp(prefix=".fetch-", dir=folder))
    try:
        for jar in jars:
            if not _is_there(folder, jar):
                fetched = scratch / jar.file_name
                try:
                    download(jar.path, fetched, jar.sha256)
                except (OSError, ValueError) as error:
                    raise _unresolved(folder, jars, str(error)) from None
                fetched.replace(folder / jar.file_name)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def download(path: str, file: Path, sha256: str) -> None:
    """
    Write the file at a path of a Maven repository to ``file``.

    Raises OSError if none has it, ValueError if it is another one.
    """
    repositories, credentials = _repositories()
    passwords = request.HTTPPasswordMgrWithPriorAuth()
    for host, user, password in credentials:
        passwords.add_password(None, host, user, password, is_authenticated=True)
    opener = request.build_opener(request.HTTPBasicAuthHandler(passwords))
    why = ""
    for repository in repositories:
        url = f"{repository.rstrip('/')}/{path}"
        try:
            with opener.open(url, timeout=MOST_SILENT_SECONDS) as sent, file.open("wb") as written:
                shutil.copyfileobj(sent, written)
        except (OSError, HTTPException) as error:
            why = f"{url}: {error}"
            continue
        if _sha256(file) == sha256:
            return
        raise ValueError(f"{url} is not the file that was published")
    raise OSError(why)


def _repositories() -> tuple[list[str], list[tuple[str, str, str]]]:
    """The addresses where jars are looked for, in order; and host, user and password of some."""
    given = dict(given_settings(settings_folder(spark_home()) / DEFAULTS))
    addresses = [word for word in given.get("spark.jars.repositories", "").split(",") if word]
    ivy = given.get("spark.jars.ivySettings")
    if ivy is None:
        return [*addresses, CENTRAL], []
    text = Path(ivy).expanduser().read_text(encoding="utf-8", errors="replace")
    addresses += re.findall(r"""\broot=["']([^"']+)["']""", text)
    marks = re.findall(r"<credentials\b[^>]*>", text)
    each = (dict(re.findall(r"""(\w+)=["']([^"']*)["']""", mark)) for mark in marks)
    return addresses, [
        (one.get("host", ""), one.get("username", ""), one.get("passwd", "")) for one in each
    ]


def _unresolved(folder: Path, jars: tuple[Jar, ...], why: str) -> InfoldError:
    return jars_unresolved(tuple(jar.coordinates for jar in jars), str(folder), why)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
