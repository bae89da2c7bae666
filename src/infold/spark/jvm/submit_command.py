"""The command that starts a JVM with Spark in it, as ``spark-submit`` makes it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence

from infold.spark.jvm.jars import settings_folder, spark_home
from infold.spark.jvm.java import find_java

CLASS = "org.apache.spark.deploy.SparkSubmit"
_OF_SCRIPTS = ("SPARK_LAUNCHER_OPTS", "SPARK_PREPEND_CLASSES", "SPARK_TESTING")


def submit_command(
    arguments: Sequence[str], environ: Mapping[str, str]
) -> tuple[list[str], dict[str, str]]:
    """
    The words that ``spark-submit`` would start for its ``arguments``, and the environment for them.

    Its scripts ask a Java program of Spark's for them, with all of Spark's jars on its class path.
    One of the jars is enough, which makes every start of Spark 0.2 s shorter. Where a
    ``spark-env.sh`` may change anything, and where that program has no answer, it is the script.
    """
    home = spark_home()
    script = [str(home / "bin" / "spark-submit"), *arguments]
    launchers = [*(home / "jars").glob("spark-launcher_*.jar")]
    variables = settings_folder(home, environ) / "spark-env.sh"
    changed = variables.is_file() or any(map(environ.get, _OF_SCRIPTS))
    if changed or len(launchers) != 1:
        return script, dict(environ)
    [launcher] = launchers
    scala = launcher.name.removeprefix("spark-launcher_").partition("-")[0]
    # What the scripts set: a Python worker has to hash texts as every other one does.
    env = {**environ, "SPARK_SCALA_VERSION": scala, "PYTHONHASHSEED": "0"}
    asked = subprocess.run(
        [
            *(str(find_java(environ).binary), "-Xmx128m"),
            *("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
            *("-cp", str(launcher), "org.apache.spark.launcher.Main", CLASS),
            *arguments,
        ],
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    # A line that separates them from what a JVM may print first; each word ends with a zero.
    _, separator, words = os.fsdecode(asked.stdout).partition("\0\n")
    if asked.returncode or not separator or not words:
        return script, dict(environ)
    return words.removesuffix("\0").split("\0"), env
