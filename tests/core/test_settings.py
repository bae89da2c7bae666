"""Settings and engines of a target, names of models, and audits."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.errors import PySparkException
from tests.declare.shop import INFOLD, SHOP, write

from infold.core.audits import AuditReport, AuditResult, AuditState, Severity
from infold.core.environment import with_model_names
from infold.core.interval import Ranges
from infold.core.model import Kind
from infold.core.plan import Action, Plan, Reason, Skipped, Step
from infold.core.target import FIXED, MASTER, REMOTE, Engine, changed_settings
from infold.core.trace import Cause
from infold.declare import check
from infold.messages.errors import InfoldError
from infold.spark.jvm.session_settings import (
    refuse_connect,
    refuse_environment,
    refuse_given,
    refuse_session,
)
from infold.spark.tables.iceberg.catalogs import refuse_without_catalog

WRONG = {
    "spark.sql.session.timeZone": "America/New_York", "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true", "spark.sql.storeAssignmentPolicy": "LEGACY",
    "spark.sql.mapKeyDedupPolicy": "LAST_WIN", "spark.sql.timestampType": "TIMESTAMP_NTZ",
    "spark.sql.decimalOperations.allowPrecisionLoss": "false",
    "spark.sql.files.ignoreCorruptFiles": "true", "spark.sql.files.ignoreMissingFiles": "true",
    "spark.files.ignoreCorruptFiles": "true", "spark.sql.legacy.timeParserPolicy": "LEGACY",
    "spark.sql.legacy.sizeOfNull": "true", "spark.sql.parquet.datetimeRebaseModeInRead": "LEGACY",
    "spark.sql.parquet.int96RebaseModeInRead": "LEGACY", "spark.sql.parquet.binaryAsString": "true",
    "spark.sql.iceberg.handle-timestamp-without-timezone": "true",
    "spark.sql.parser.escapedStringLiterals": "true", "spark.sql.extensions": "com.example.Mine",
    "spark.sql.catalog.infold.cache-enabled": "true", "spark.sql.defaultCatalog": "spark_catalog",
    "spark.speculation": "true", "spark.sql.variable.substitute": "true",
    "spark.sql.groupByOrdinal": "false", "spark.sql.runSQLOnFiles": "true",
}  # fmt: skip
SPECULATION = ("spark.speculation", "true", "false")
FREE = {
    "spark.sql.shuffle.partitions": "7",
    "spark.driver.memory": "4g",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.parquet.compression.codec": "zstd",
    "spark.sql.catalog.other": "org.apache.iceberg.spark.SparkCatalog",
    "spark.local.dir": "/scratch",
    "spark.databricks.delta.lastCommitVersionInSession": "4",
    "spark.sql.session.timeZone": "utc",
    "spark.sql.iceberg.snapshot-property.infold.step": "r-1",
}


def test_settings_that_change_rows_are_refused() -> None:
    """A setting that changes rows is a finding of `check` at its line in infold.yml. Memory,
    parallelism, compression, what a storage notes in a session, and a fixed setting at its fixed
    value, are accepted; one in another case is not, because Spark would ignore it.
    """
    for key, value in WRONG.items():
        assert [name for name, _, _ in changed_settings({key: value})] == [key]
    assert list(changed_settings(FREE)) == []
    assert list(changed_settings({"spark.sql.session.timezone": "UTC"}))
    assert list(changed_settings(FIXED)) == []


@pytest.mark.parametrize(
    ("target", "key", "value", "fixed"),
    [
        ("", "spark.sql.session.timeZone", "America/New_York", "UTC"),
        ("engine: {master: spark://a:7077, shared_disk: true}, ", *SPECULATION),
        ("engine: {submitted: true, shared_disk: true}, ", *SPECULATION),
    ],
)
def test_in_a_target(target: str, key: str, value: str, fixed: str, tmp_path: Path) -> None:
    """With file and line; on a cluster too, where several attempts of a task would write."""
    spark = f"  night: {{{target}spark: {{{key}: {value}}}}}\n"
    write(tmp_path, {**SHOP, "infold.yml": INFOLD.replace("targets:\n", f"targets:\n{spark}")})

    (error,) = check(tmp_path)

    assert (error.slug, error.exit_code) == ("fixed-setting", 2)
    assert error.what == f"{key} cannot be {value}"
    assert dict(error.facts)["it is"] == fixed


def _submit(text: str) -> Callable[[Path, Any], None]:
    return lambda _, patch: patch.setenv("PYSPARK_SUBMIT_ARGS", text)


def _defaults(text: str) -> Callable[[Path, Any], None]:
    def made(folder: Path, patch: Any) -> None:
        (folder / "spark-defaults.conf").write_text(text)
        patch.setenv("SPARK_CONF_DIR", str(folder))

    return made


@pytest.mark.parametrize(
    "given",
    [
        _submit("--conf spark.sql.ansi.enabled=false pyspark-shell"),
        _submit('--conf "spark.sql.ansi.enabled = false" --driver-memory 1g pyspark-shell'),
        _submit("--conf=spark.sql.ansi.enabled=false pyspark-shell"),
        _submit("-c spark.sql.ansi.enabled=false pyspark-shell"),
        _defaults("# mine\nspark.sql.ansi.enabled   false\n"),
        _defaults("spark.sql.ansi.enabled=false\n"),
    ],
)
def test_in_the_environment(
    given: Callable[[Path, Any], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every form in which spark-submit reads it from the environment."""
    monkeypatch.delenv("PYSPARK_SUBMIT_ARGS", raising=False)
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    refuse_environment(tmp_path)
    given(tmp_path, monkeypatch)

    with pytest.raises(InfoldError, match=r"spark\.sql\.ansi\.enabled cannot be false") as caught:
        refuse_environment(tmp_path)

    assert (caught.value.slug, caught.value.exit_code) == ("fixed-setting", 2)


@pytest.mark.parametrize("name", ["SPARK_REMOTE", "SPARK_CONNECT_MODE_ENABLED"])
def test_spark_connect_is_refused(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Whatever turns PySpark to a server is named, without the token of its URL."""
    refuse_connect("dev", "local[*]")
    monkeypatch.setenv(name, "sc://a:15002/;token=secret")

    with pytest.raises(InfoldError, match=f"spark-connect: {name} turns") as caught:
        refuse_connect("dev", "local[*]")

    assert caught.value.facts == (("is", "sc://a:15002/"),)


def test_several_are_all_named() -> None:
    """Of several fixed settings the sentence names the first, and the facts name each."""
    with pytest.raises(InfoldError) as caught:
        refuse_given("here", WRONG)

    assert {name for name, _ in caught.value.facts} == {"where", *WRONG}


class _Conf(dict[str, str]):
    @property
    def _jconf(self) -> SimpleNamespace:
        return SimpleNamespace(getAllAsJava=lambda: self)


class _Session:
    """A session that was made by somebody else, with as much of a JVM as is asked for."""

    _mapper = SimpleNamespace(writeValueAsString=json.dumps)
    _databind = SimpleNamespace(ObjectMapper=lambda: _Session._mapper)
    _jackson = SimpleNamespace(jackson=SimpleNamespace(databind=_databind))
    _jvm = SimpleNamespace(com=SimpleNamespace(fasterxml=_jackson))

    def __init__(self, **more: str) -> None:
        fixed = {key: FIXED[key] for key in ("spark.sql.extensions",)}
        self.conf = _Conf({**fixed, "spark.sql.catalogImplementation": "in-memory", **more})


def test_in_an_existing_session() -> None:
    """What changes rows is refused, and its defaults are accepted."""
    refuse_session(_Session(), ours=False)  # type: ignore[arg-type]

    there: Any = _Session(**{"spark.sql.session.timeZone": "Asia/Tokyo"})

    with pytest.raises(InfoldError, match="timeZone cannot be Asia/Tokyo"):
        refuse_session(there, ours=False)


class WithoutJars:
    """A session in which a catalog cannot be opened, or can."""

    def __init__(self, why: str) -> None:
        self.why = why

    def sql(self, text: str) -> None:
        """Spark loads a catalog when it is first named."""
        assert text == "USE infold"
        if self.why:
            raise PySparkException(self.why)


def test_a_session_without_the_jars_is_refused_by_name() -> None:
    """An existing session without the jars is refused by name, as they cannot be added later."""
    refuse_without_catalog(WithoutJars(""))  # type: ignore[arg-type]
    why = "Cannot find catalog plugin class for catalog 'infold': org.apache.iceberg.spark.Spark"

    for text in (f"\n{why}\nat x", f"An error occurred while calling o1.sql.\n: {why}\n\tat x"):
        with pytest.raises(InfoldError) as caught:
            refuse_without_catalog(WithoutJars(text))  # type: ignore[arg-type]

        assert (caught.value.slug, caught.value.exit_code) == ("no-iceberg", 2)
        assert caught.value.facts == (("why", why),)


@pytest.mark.parametrize(
    ("master", "cluster", "addresses"),
    [
        ("local", False, ()),
        ("local[*]", False, ()),
        ("local[4]", False, ()),
        ("yarn", True, ()),
        ("k8s://https://a.example:6443", True, ()),
        ("spark://a:7077", True, (("a", 7077),)),
        ("spark://a:7077,b.example:17077", True, (("a", 7077), ("b.example", 17077))),
        ("spark://[::1]:7077", True, (("[::1]", 7077),)),
    ],
)
def test_masters(master: str, cluster: bool, addresses: tuple[tuple[str, int], ...]) -> None:
    """Only a standalone cluster's addresses are known."""
    assert MASTER.fullmatch(master)
    engine = Engine(master)
    assert (engine.is_cluster, engine.addresses) == (cluster, addresses)


@pytest.mark.parametrize(
    ("url", "server", "addresses"),
    [
        ("sc://a", "sc://a", (("a", 15002),)),
        ("sc://a.example:15003/", "sc://a.example:15003", (("a.example", 15003),)),
        ("sc://[::1]:1/;use_ssl=true;token=${file:a/b c}", "sc://[::1]:1", (("[::1]", 1),)),
    ],
)
def test_servers(url: str, server: str, addresses: tuple[tuple[str, int], ...]) -> None:
    """A server is named without its parameters, and its executors are elsewhere."""
    assert REMOTE.fullmatch(url)
    engine = Engine(remote=url)
    assert (engine.name, engine.server, engine.addresses) == (server, server, addresses)
    assert engine.is_cluster


NO_MASTERS = ["", "spark://a", "spark://a:x", "spark://a:1,b", "local[0x]", "local-cluster[2,1,5]"]
NO_SERVERS = [
    *("", "sc://", "http://a", "sc://a;token=b", "sc://a/b", "sc://a:b", "sc://u@a", "SC://a")
]


def test_what_is_no_address() -> None:
    """Masters of earlier Sparks or its tests are none; a server has no path and no user."""
    assert [text for text in NO_MASTERS if MASTER.fullmatch(text)] == []
    assert not any(map(MASTER.fullmatch, ("mesos://a:5050", "yarn-client", "SPARK://a:1")))
    assert [text for text in NO_SERVERS if REMOTE.fullmatch(text)] == []


@pytest.mark.parametrize(
    ("severity", "state", "fails"),
    [
        (Severity.ERROR, AuditState.FAILED, True),
        (Severity.WARN, AuditState.FAILED, False),
        (Severity.ERROR, AuditState.PASSED, False),
        (Severity.ERROR, AuditState.WAITING, False),
    ],
)
def test_a_failure_of_severity_error_fails_a_step(
    severity: Severity, state: AuditState, fails: bool
) -> None:
    """One of severity warn is only told, and one that waits has found nothing."""
    found = AuditResult("daily", "unique(id)", severity, state)

    assert found.fails is fails
    assert AuditReport((found,)).passed is not fails


KEYS = {"daily__1234abcd": "daily", "raw.x__1234abcd": "raw.x", "daily__1234abcdffffffff": "other"}


def test_every_text_of_a_value_is_changed() -> None:
    """Keys are replaced in texts, keys of mappings and errors; all else stays as it was. A key that
    begins with another one is replaced as a whole, and no longer word is touched.
    """
    reason = Reason(Cause.LATE, "because daily__1234abcd changed", Ranges.ever(), 3)
    step = Step("raw.x__1234abcd", Action.BUILD, Ranges(), (reason,), {"daily__1234abcd": (0, 1)})
    error = InfoldError("slug", "what of daily__1234abcd", (("at", "raw.x__1234abcd"),))
    left = (Skipped("sessions", "up to date"),)
    plan = Plan((step,), left, 7, refused={"raw.x__1234abcd": error})

    found = with_model_names(plan, KEYS)

    assert found.steps[0].model == "raw.x"
    assert found.steps[0].reasons[0].detail == "because daily changed"
    assert found.steps[0].inputs == {"daily": (0, 1)}
    assert found.skipped == plan.skipped
    refused = found.refused["raw.x"]
    assert (refused.what, refused.facts) == ("what of daily", (("at", "raw.x"),))
    assert error.what == "what of daily__1234abcd"
    assert with_model_names(plan, {}) is plan
    text = "daily__1234abcdffffffff daily__1234abcd daily__1234abcde"
    assert with_model_names(text, KEYS) == "other daily daily__1234abcde"
    assert with_model_names(Kind.TABLE, {"table": "x"}) is Kind.TABLE
