"""
Finding Java before Spark needs it.

Spark would fail late and with a long message; this looks where Spark will look (``JAVA_HOME``, then
``PATH``) and reads the version from the ``release`` file beside the binary, which costs no JVM.
``python -m infold.spark.jvm.java`` is the same check for scripts, and imports nothing but the
standard library.
"""

from __future__ import annotations

import os
import pwd
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from infold.messages.errors import InfoldError
from infold.messages.faults import java_missing, java_too_new, java_too_old, nameless_user

OLDEST = 17  # Spark 4 needs it
# Hadoop 3.4.2 in Spark asks for the user by Subject.getSubject, which fails since Java 23
# (HADOOP-19212), and Arrow for memory that Java 24 no longer hands out.
NEWEST = 22


@dataclass(frozen=True)
class Java:
    """A Java runtime: its folder (what ``JAVA_HOME`` means) and its full version, ``17.0.15``."""

    home: Path
    version: str

    @property
    def binary(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """17 for ``17.0.15``, and 8 for the old ``1.8.0_292``."""
        numbers = [int(n) for n in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """
    The Java that Spark will use; an error with what to install if there is none.

    A ``JAVA_HOME`` without a working ``bin/java`` is skipped; one that is too old or too new is an
    error, because it was set on purpose.
    """
    env = os.environ if environ is None else environ
    looked: list[tuple[str, str]] = []
    java = _from_java_home(env, looked) or _from_path(env, looked)
    if java is None:
        raise java_missing(tuple(looked))
    if java.major < OLDEST:
        raise java_too_old(version=java.version, path=str(java.binary))
    if java.major > NEWEST:
        raise java_too_new(version=java.version, path=str(java.binary))
    _refuse_nameless_user()
    return java


def _refuse_nameless_user() -> None:
    """Raise if the system has no name for this user: then Hadoop in Spark has no login."""
    try:
        pwd.getpwuid(os.geteuid())
    except KeyError:
        raise nameless_user(number=os.geteuid()) from None


def _from_java_home(env: Mapping[str, str], looked: list[tuple[str, str]]) -> Java | None:
    home = env.get("JAVA_HOME", "")
    if not home:
        looked.append(("JAVA_HOME", "not set"))
        return None
    java = _java_of(Path(home) / "bin" / "java", env)
    if java is None:
        looked.append(("JAVA_HOME", f"{home}, which has no working bin/java"))
    return java


def _from_path(env: Mapping[str, str], looked: list[tuple[str, str]]) -> Java | None:
    program = shutil.which("java", path=env.get("PATH", ""))
    # macOS has a /usr/bin/java that only offers a download: it has no version.
    java = _java_of(Path(program), env) if program else None
    if java is None:
        looked.append(("PATH", f"{program}, which does not work" if program else "no java"))
    return java


def _java_of(binary: Path, env: Mapping[str, str]) -> Java | None:
    if not os.access(binary, os.X_OK):
        return None
    home = binary.resolve().parent.parent
    version = _released(home)
    if version is not None:
        return Java(home, version)
    return _ask_jvm(binary, env)


def _released(home: Path) -> str | None:
    """The version in the ``release`` file that every JDK since 9 carries."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    match = re.search(r'^JAVA_VERSION="?(\d[^"\n]*)"?', text, re.MULTILINE)
    return match[1] if match else None


def _ask_jvm(binary: Path, env: Mapping[str, str]) -> Java | None:
    """
    Version and home as the JVM itself prints them: for wrappers such as jenv's, and stripped
    images.

    The binary of a wrapper is in another folder than the Java it starts.
    """
    try:
        printed = subprocess.run(
            [str(binary), "-XshowSettings:properties", "-version"],
            env=dict(env),
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    text = printed.stderr + printed.stdout
    version = re.search(r'version "(\d[^"]*)"', text)
    if printed.returncode != 0 or version is None:
        return None
    home = re.search(r"^\s*java\.home = (.+)$", text, re.MULTILINE)
    return Java(Path(home[1].strip()) if home else binary.resolve().parent.parent, version[1])


def _main() -> int:
    try:
        find_java()
    except InfoldError as error:
        print(error, file=sys.stderr)  # noqa: T201 - the check for scripts
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(_main())
