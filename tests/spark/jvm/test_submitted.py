"""What an application of spark-submit takes from it, and what it refuses."""

from __future__ import annotations

import re
from contextlib import nullcontext
from typing import Any

import pytest

from infold.core.engines import FIXED, Engine
from infold.messages.errors import InfoldError
from infold.spark.jvm import cluster, submitted
from infold.spark.jvm.session_settings import REDACTED, common_settings
from infold.spark.storages import common_jars

OPTIONS = "spark.executor.extraJavaOptions"
SUBMITTED, HERE = Engine(submitted=True, shared_disk=True), Engine()


@pytest.fixture
def as_application(monkeypatch: pytest.MonkeyPatch) -> None:
    """As spark-submit starts an application."""
    monkeypatch.setenv("PYSPARK_GATEWAY_PORT", "1")


def test_what_was_submitted_goes_before_infolds_own_and_after_the_targets() -> None:
    """As Spark has it: the application first, then options of spark-submit, then defaults."""
    ours = {**FIXED, "spark.a": "ours", "spark.b": "ours", "spark.c": "ours"}
    given = {"spark.master": "yarn", "spark.b": "given", "spark.c": "given"}
    given["spark.speculation"] = "true"  # a fixed one

    found = submitted.application_settings(ours, given, {"spark.c": "target"})

    assert {key: found[f"spark.{key}"] for key in ("a", "b", "c", "master")} == {
        "a": "ours",
        "b": "given",
        "c": "target",
        "master": "yarn",
    }
    assert {key: found[key] for key in FIXED} == FIXED


def test_the_catalog_is_infolds_own() -> None:
    """Its place follows from the target, whatever a file of defaults has."""
    key = "spark.sql.catalog.infold.warehouse"

    found = submitted.application_settings({key: "/ours"}, {key: "/theirs"}, {})

    assert found[key] == "/ours"


def test_jars_and_options_of_executors_are_joined() -> None:
    """None takes the place of another; infold's options come last, so that they win."""
    given = {"spark.jars": "a.jar", OPTIONS: "-Dx=1 -Duser.timezone=CET"}

    found = submitted.application_settings({}, given, {"spark.jars": "b.jar", OPTIONS: "-Dy=2"})

    assert found["spark.jars"] == "a.jar,b.jar"
    assert found[OPTIONS].startswith("-Dx=1 -Duser.timezone=CET -Dy=2 -Duser.timezone=UTC ")


def test_what_is_secret_is_shown_to_nobody() -> None:
    """Neither what the submit hides nor what catalogs need."""
    found = submitted.application_settings(common_settings(), {REDACTED: "pin"}, {})

    hidden = re.compile(found[REDACTED].replace("(?i)", ""))
    names = ("pin", "catalog.infold.credential", "catalog.infold.token", "jdbc.password")
    assert all(map(hidden.search, names))
    assert not hidden.search("spark.app.name")


@pytest.mark.usefixtures("as_application")
def test_a_target_with_another_engine_is_refused_in_an_application() -> None:
    """Its JVM would be a second one, and the cluster's would do nothing."""
    submitted.refuse_other(SUBMITTED, "prod")
    with pytest.raises(InfoldError, match=r"target dev computes on local\[\*\]") as caught:
        submitted.refuse_other(HERE, "dev")

    assert caught.value.slug == "submitted"


def test_a_submitted_target_is_refused_elsewhere() -> None:
    """Nobody has given a Spark."""
    submitted.refuse_other(HERE, "dev")
    with pytest.raises(InfoldError, match="target prod computes with") as caught:
        submitted.refuse_other(SUBMITTED, "prod")

    assert caught.value.slug == "not-submitted"


@pytest.mark.parametrize("given", ["4.0.1", "3.5.6", "4.2.0", "4.10.0"])
def test_another_spark_is_refused(given: str) -> None:
    """The jars of Iceberg are for one version of Spark."""
    with pytest.raises(InfoldError, match=rf"of Spark {given}, .* for 4\.1") as caught:
        submitted.refuse_version(given)

    assert caught.value.slug == "other-spark"


def test_the_version_is_that_of_the_jars() -> None:
    """Which have it in their names; a patch of it is the same Spark."""
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
