"""
The archive of loaded classes (AppCDS) that halves a small run's time.

A JVM can write the classes it loaded into a file as it exits; later JVMs map that file instead of
finding, parsing and verifying some fifteen thousand classes. Writing is expensive: the JVM that
records is slower by half, and takes many seconds to exit. So no ordinary run records. The first run
that finds no archive leaves behind a process of lowest priority that does what runs do
(``infold.api.warm_up``) and ends.

The rules that keep this harmless:
- The file's name carries everything it depends on: Java, pyspark, jars, this program's version.
- One process records at a time, and moves the file into place when its JVM has ended well.
- ``-Xshare:auto`` makes a JVM that cannot use an archive start without it.
- ``INFOLD_ARCHIVE=off`` neither uses nor makes one.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from infold import __version__
from infold.spark.jvm.gateway import is_submitted
from infold.spark.jvm.jars import jar_paths
from infold.spark.jvm.java import Java, find_java, settings_folder, spark_home
from infold.system.kept_files import cache_dir, is_own

LOWEST = 19
"""The lowest priority of a process."""

# No warnings about an archive that does not fit: a JVM then starts without it.
QUIET = ("-Xshare:auto", "-Xlog:cds=off", "-Xlog:cds+dynamic=off", "-Xlog:class+path=off")


def reading_options(java: Java, jars: Iterable[Path]) -> tuple[str, ...]:
    """The options for a JVM that is to use the archive; none when there is no archive."""
    file = _file(java, jars)
    if not (file and file.is_file()):
        return ()
    base = "" if _has_base(java) else f"{_base(file)}{os.pathsep}"
    return (f"-XX:SharedArchiveFile={base}{file}", *QUIET)


def recording_options(written: Path) -> tuple[str, ...]:
    """
    The options for a JVM that is to write its classes into ``written`` as it exits.

    An archive is added to that of Java's own classes, which is made first where Java has none.
    """
    options = (f"-XX:ArchiveClassesAtExit={written}", *QUIET)
    java = find_java()
    file = _file(java, jar_paths())
    if _has_base(java) or file is None:
        return options
    base = _base(file)
    subprocess.run(
        [java.binary, "-Xshare:dump", f"-XX:SharedArchiveFile={base}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return (f"-XX:SharedArchiveFile={base}", *options)


def _has_base(java: Java) -> bool:
    return (java.home / "lib" / "server" / "classes.jsa").is_file()


def _base(file: Path) -> Path:
    """The archive of Java's own classes that another one is added to."""
    return file.with_suffix(".base")


def make_later() -> bool:
    """
    Start a process that makes the archive and outlives this one; False when it is not needed.

    It starts Spark once, at the lowest priority, and ends by itself.
    """
    if is_submitted():  # its JVM is none of infold's
        return False
    file = _file(find_java(), jar_paths())
    if file is None or file.is_file() or _is_being_made(file):
        return False
    subprocess.Popen(
        ["nice", "-n", f"{LOWEST}", sys.executable, "-m", "infold.api.warm_up"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    return True


@contextmanager
def archive_to_make() -> Iterator[Path | None]:
    """
    Where to write the archive, which is moved into place afterwards; None when not needed.

    A second process waits for the first and then finds the archive.
    """
    file = _file(find_java(), jar_paths())
    if file is None or file.is_file():
        yield None
        return
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if file.is_file():
            yield None
            return
        for left in file.parent.glob("*.part"):
            left.unlink()
        written = file.with_suffix(f".{os.getpid()}.part")
        try:
            yield written
        finally:  # even a part of the classes is better than trying again after every run
            if written.is_file():
                written.replace(file)
                _forget_older(file)


def _file(java: Java, jars: Iterable[Path]) -> Path | None:
    """The file of the archive for this JVM; None if it can have none."""
    if os.environ.get("INFOLD_ARCHIVE") == "off":
        return None
    # The JVM takes no archive with a folder of files on its class path, such as Spark's conf.
    settings = settings_folder(spark_home())
    if settings.is_dir() and any(settings.iterdir()):
        return None
    folder = cache_dir() / "classes"
    if folder.exists() and not is_own(folder):  # the JVM believes what is in an archive
        return None
    return folder / f"{_key(java, jars)}.jsa"


def _key(java: Java, jars: Iterable[Path]) -> str:
    """A digest of everything that makes an archive unusable when it changes."""
    home = spark_home()
    facts = [
        "each jar once",  # how a class path is made, which has to be the same
        __version__,
        java.version,
        str(java.home),
        str(home),
        str((home / "jars").stat().st_mtime_ns),
        *(f"{jar}:{jar.stat().st_mtime_ns}" for jar in jars),
    ]
    return hashlib.sha256("\n".join(facts).encode()).hexdigest()[:16]


def _is_being_made(file: Path) -> bool:
    """Whether another process is recording now."""
    try:
        with file.with_suffix(".lock").open() as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def _forget_older(newest: Path) -> None:
    """Keep this archive and the one before; each takes some 200 MB."""
    others = [file for file in newest.parent.glob("*.jsa") if file != newest]
    for file in sorted(others, key=lambda each: each.stat().st_mtime)[:-1]:
        for each in (file, _base(file), file.with_suffix(".lock")):
            each.unlink(missing_ok=True)
