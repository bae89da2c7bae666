"""What an application of spark-submit takes from it, and the words that start a JVM."""

from __future__ import annotations

import os
import re
import subprocess
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from infold.core.target import FIXED, Engine
from infold.messages.errors import InfoldError
from infold.spark.jvm import cluster, submitted
from infold.spark.jvm import java as module
from infold.spark.jvm.java import Java, find_java, spark_home, submit_command
from infold.spark.jvm.session_settings import REDACTED, common_settings
from infold.spark.storages import common_jars

OPTIONS = "spark.executor.extraJavaOptions"
SUBMITTED, HERE = Engine(submitted=True, shared_disk=True), Engine()


def test_what_was_submitted_goes_before_infolds_own_and_after_the_targets() -> None:
    """
    As Spark has it: the application first, then options of spark-submit, then defaults. The catalog
    is infold's own, as its place follows from the target.
    """
    catalog = "spark.sql.catalog.infold.warehouse"
    ours = {**FIXED, "spark.a": "ours", "spark.b": "ours", "spark.c": "ours", catalog: "/ours"}
    given = {"spark.master": "yarn", "spark.b": "given", "spark.c": "given", catalog: "/theirs"}
    given["spark.speculation"] = "true"  # a fixed one

    found = submitted.application_settings(ours, given, {"spark.c": "target"})

    wanted = {"spark.a": "ours", "spark.b": "given", "spark.c": "target", "spark.master": "yarn"}
    assert {**found, **FIXED, **wanted, catalog: "/ours"} == found


def test_what_both_give_is_joined() -> None:
    """Jars, and options of executors: infold's come last, so that they win. What is secret to the
    submit or to catalogs is shown to nobody.
    """
    given = {"spark.jars": "a.jar", OPTIONS: "-Dx=1 -Duser.timezone=CET", REDACTED: "pin"}
    of_target = {"spark.jars": "b.jar", OPTIONS: "-Dy=2"}

    found = submitted.application_settings(common_settings(), given, of_target)

    assert found["spark.jars"] == "a.jar,b.jar"
    assert found[OPTIONS].startswith("-Dx=1 -Duser.timezone=CET -Dy=2 -Duser.timezone=UTC ")
    hidden = re.compile(found[REDACTED].replace("(?i)", ""))
    names = ("pin", "catalog.infold.credential", "catalog.infold.token", "jdbc.password")
    assert all(map(hidden.search, names))
    assert not hidden.search("spark.app.name")


def test_another_engine_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """In an application its JVM would be a second one; elsewhere nobody has given a Spark."""
    submitted.refuse_other(HERE, "dev")
    with pytest.raises(InfoldError, match="not-submitted: target prod computes with"):
        submitted.refuse_other(SUBMITTED, "prod")

    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")  # as spark-submit starts an application
    submitted.refuse_other(SUBMITTED, "prod")
    with pytest.raises(InfoldError, match=r"^submitted: .* target dev computes on local\[\*\]"):
        submitted.refuse_other(HERE, "dev")


def test_another_spark_is_refused() -> None:
    """The jars of Iceberg are for one version of Spark, which they have in their names; a patch of
    it is the same Spark.
    """
    for given in ("4.0.1", "3.5.6", "4.2.0", "4.10.0"):
        with pytest.raises(InfoldError, match=rf"other-spark: .*of Spark {given}, .* for 4\.1"):
            submitted.refuse_version(given)

    submitted.refuse_version("4.1.9")
    names = [jar.artifact for jar in common_jars() if "spark-runtime" in jar.artifact]
    assert [f"-{submitted.SPARK}_" in name for name in names] == [True]


def test_nothing_is_asked_of_a_spark_that_nobody_gave() -> None:
    """An ordinary process has no settings of a spark-submit."""
    submitted.given_settings.cache_clear()

    assert submitted.given_settings() == {}


class Running:
    """A Spark that runs in the process."""

    def __init__(self, master: str) -> None:
        self.sparkContext = self
        self.master = master


SHARED: dict[str, Any] = {"shared_disk": True}
HOST = "spark://host:7077"


@pytest.mark.parametrize(
    ("master", "engine", "ours", "theirs"),
    [
        ("local[*]", HERE, True, True),
        ("local[2]", HERE, True, True),
        ("local[2]", Engine(HOST, **SHARED), False, False),
        (HOST, HERE, False, False),
        (HOST, Engine(HOST, **SHARED), True, True),
        ("spark://other:7077", Engine(HOST, **SHARED), False, True),
        (HOST, SUBMITTED, False, True),
        ("local[2]", SUBMITTED, False, True),
    ],
)
def test_which_running_spark_is_a_targets(
    monkeypatch: pytest.MonkeyPatch, master: str, engine: Engine, ours: bool, theirs: bool
) -> None:
    """One that infold has started is its target's; one of the program's may be another cluster."""
    for started, accepted in ((True, ours), (False, theirs)):
        monkeypatch.setattr(cluster, "has_started", lambda started=started: started)
        refused = pytest.raises(InfoldError, match="other-engine: ")
        with nullcontext() if accepted else refused:
            cluster.refuse_other(Running(master), engine, "prod")  # type: ignore[arg-type]


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


def each_jar_once(words: list[str]) -> list[str]:
    """The same, but for what the scripts name twice: one jar, and a folder that is not there."""
    at = words.index("-cp") + 1
    named = words[at].split(":")
    kept = [one for one in named if one.endswith("*") or Path(one).is_dir()]
    return [*words[:at], ":".join(kept), *words[at + 1 :]]


def by_script(environ: dict[str, str], arguments: list[str]) -> list[str]:
    """The script and its arguments."""
    return [f"{environ['SPARK_HOME']}/bin/spark-submit", *arguments]


@pytest.mark.spark
def test_it_is_what_the_scripts_start(tmp_path: Path, environ: dict[str, str]) -> None:
    """Words with spaces, the memory, the class path and the hash of texts."""
    command, env = submit_command(ARGUMENTS, environ)
    assert command[0] == f"{tmp_path}/java/bin/java"  # no script any more

    ours, our_env = started(tmp_path, command, env)
    theirs, their_env = started(tmp_path, by_script(environ, ARGUMENTS), environ)

    assert ours == each_jar_once(theirs)
    assert "-Xmx777m" in ours
    assert "-Dwith=two words" in ours
    conf = f"SPARK_CONF_DIR={spark_home() / 'conf'}"  # where Spark looks if nothing is said
    assert our_env | {conf} == their_env


@pytest.mark.spark
def test_settings_of_a_folder_of_ones_own_count(tmp_path: Path, environ: dict[str, str]) -> None:
    """The memory of a spark-defaults.conf, which the program reads itself."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-defaults.conf").write_text("spark.driver.memory 555m\n")
    environ["SPARK_CONF_DIR"] = str(tmp_path / "conf")

    ours, _ = started(tmp_path, *submit_command(["pyspark-shell"], environ))

    assert "-Xmx555m" in ours
    theirs, _ = started(tmp_path, by_script(environ, ["pyspark-shell"]), environ)
    assert ours == each_jar_once(theirs)


@pytest.mark.spark
def test_a_script_that_sets_variables_is_run(tmp_path: Path, environ: dict[str, str]) -> None:
    """Whatever is in a spark-env.sh counts."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "spark-env.sh").write_text("SPARK_DRIVER_MEMORY=333m\n")
    environ["SPARK_CONF_DIR"] = str(tmp_path / "conf")

    command, env = submit_command(["pyspark-shell"], environ)

    assert command == by_script(environ, ["pyspark-shell"])
    assert "-Xmx333m" in started(tmp_path, command, env)[0]


@pytest.mark.spark
def test_a_command_that_cannot_be_made_is_left_to_the_script(environ: dict[str, str]) -> None:
    """The script says what is wrong, where everybody looks for it."""
    wrong = ["--conf", "no value", "pyspark-shell"]

    command, env = submit_command(wrong, {**environ, "SPARK_HOME": "/nothing"})

    assert command == by_script(environ, wrong)
    assert env["SPARK_HOME"] == "/nothing"
