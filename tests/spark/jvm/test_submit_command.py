"""The JVM is started with the words and the environment that spark-submit would start it with."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from infold.spark.jvm import gateway as module
from infold.spark.jvm.gateway import submit_command
from infold.spark.jvm.jars import spark_home
from infold.spark.jvm.java import Java, find_java

pytestmark = pytest.mark.spark

JAVA = """\
#!/bin/sh
case "$*" in
  *org.apache.spark.launcher.Main*) exec {java} "$@";;
esac
printf '%s\\0' "$0" "$@" > {said}
env -0 > {said}.env
"""
ARGUMENTS = [
    *("--conf", "spark.driver.memory=777m"),
    *("--conf", "spark.driver.extraClassPath=/jars/a.jar:/jars/b c.jar"),
    *("--conf", 'spark.driver.extraJavaOptions=-Da=b "-Dwith=two words" -Dlast=1'),
    *("--conf", "spark.empty="),
    "pyspark-shell",
]


@pytest.fixture
def environ(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """An environment in which Java says how it was started, unless it makes a command."""
    real, home = find_java(), tmp_path / "java"
    (home / "bin").mkdir(parents=True)
    script = home / "bin" / "java"
    script.write_text(JAVA.format(java=real.binary, said=tmp_path / "said"))
    script.chmod(0o755)
    monkeypatch.setattr(module, "find_java", lambda _: Java(home, real.version))
    return {**os.environ, "JAVA_HOME": str(home), "SPARK_HOME": str(spark_home())}


def started(
    folder: Path, command: list[str], environ: dict[str, str]
) -> tuple[list[str], set[str]]:
    """The words that a command starts Java with, and what its environment says to Spark."""
    subprocess.run(command, env=environ, check=True)
    words = (folder / "said").read_text().split("\0")[:-1]
    found = (folder / "said.env").read_text().split("\0")[:-1]
    return words, {one for one in found if one.startswith(("SPARK_CONF", "PYTHON", "JAVA"))}


def by_script(environ: dict[str, str], arguments: list[str]) -> list[str]:
    """The script and its arguments."""
    return [f"{environ['SPARK_HOME']}/bin/spark-submit", *arguments]


def test_it_is_what_the_scripts_start(tmp_path: Path, environ: dict[str, str]) -> None:
    """Words with spaces, the memory, the class path and the hash of texts."""
    command, env = submit_command(ARGUMENTS, environ)
    assert command[0] == f"{tmp_path}/java/bin/java"  # no script any more

    ours, our_env = started(tmp_path, command, env)
    theirs, their_env = started(tmp_path, by_script(environ, ARGUMENTS), environ)

    assert ours == theirs
    assert "-Xmx777m" in ours
    assert "-Dwith=two words" in ours
    conf = f"SPARK_CONF_DIR={spark_home() / 'conf'}"  # where Spark looks if nothing is said
    assert our_env | {conf} == their_env


def test_settings_of_a_folder_of_ones_own_count(tmp_path: Path, environ: dict[str, str]) -> None:
    """The memory of a spark-defaults.conf, which the program reads itself."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.driver.memory 555m\n")
    environ["SPARK_CONF_DIR"] = str(tmp_path / "conf")

    ours, _ = started(tmp_path, *submit_command(["pyspark-shell"], environ))

    assert "-Xmx555m" in ours
    assert ours == started(tmp_path, by_script(environ, ["pyspark-shell"]), environ)[0]


def test_a_script_that_sets_variables_is_run(tmp_path: Path, environ: dict[str, str]) -> None:
    """Whatever is in a spark-env.sh counts."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-env.sh").write_text("SPARK_DRIVER_MEMORY=333m\n")
    environ["SPARK_CONF_DIR"] = str(tmp_path / "conf")

    command, env = submit_command(["pyspark-shell"], environ)

    assert command == by_script(environ, ["pyspark-shell"])
    assert "-Xmx333m" in started(tmp_path, command, env)[0]


def test_a_command_that_cannot_be_made_is_left_to_the_script(environ: dict[str, str]) -> None:
    """The script says what is wrong, where everybody looks for it."""
    wrong = ["--conf", "no value", "pyspark-shell"]

    command, env = submit_command(wrong, {**environ, "SPARK_HOME": "/nothing"})

    assert command == by_script(environ, wrong)
    assert env["SPARK_HOME"] == "/nothing"
