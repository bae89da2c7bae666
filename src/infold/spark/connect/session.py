"""
Sessions on a server of Spark Connect: made, checked for what they need, and ended.

Settings of SQL are a session's own, and are set. All else is the server's, and is looked at: where
the server has something otherwise than exactness allows, or lacks it, nothing is done there. What
a server cannot be asked is how the JVM of its driver was started; see docs/clusters.md.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from infold.core.target import Engine, changed_settings
from infold.messages import faults
from infold.messages.errors import InfoldError
from infold.spark.connect import clients
from infold.spark.jvm.cluster import package
from infold.spark.jvm.session_settings import REDACTED, Size, common_settings, size_settings
from infold.system import signals

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from infold.spark.storages import StorageAdapters
    from infold.spark.tables.catalog import SparkCatalog

SETTINGS = {
    # A plan is read as text: fields must not be left out of it.
    "spark.sql.debug.maxToStringFields": "100000",
    # Then a command that writes says nothing before its end, so that its end can be waited for.
    "spark.connect.progress.reportInterval": "-1",
}
"""Settings of every session there."""

DEFAULTS = {
    "spark.files.ignoreCorruptFiles": "false",
    "spark.files.ignoreMissingFiles": "false",
    "spark.speculation": "false",
}
"""What settings of a server are that it does not name."""

SPARK_HIDES = "(?i)secret|password|token|access[.]?key"
"""What Spark hides by itself of settings."""

CONNECT_MODE = "SPARK_CONNECT_MODE_ENABLED"
"""The variable by which PySpark's functions know that they are for a server."""

_sent: WeakSet[SparkSession] = WeakSet()
_open: dict[SparkSession, tuple[clients.RemoteSession, str]] = {}
"""The sessions of this process, and by what another client speaks to them."""


def start(
    engine: Engine,
    url: str,
    catalog: SparkCatalog,
    *,
    size: Size,
    extra: Mapping[str, str],
    adapters: StorageAdapters,
    given: str,
) -> SparkSession:
    """
    A new session on the server of an ``engine``, whose ``url`` has its secrets in it.

    ``given`` is what names the server in infold.yml. Raises where the server cannot be reached,
    refuses the token, is of another version, or has not what tables need.
    """
    clients.refuse_missing_packages()
    clients.refuse_unreachable(engine, given)
    # An error is reported once, by infold.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.")
    before = os.environ.get(CONNECT_MODE)
    os.environ[CONNECT_MODE] = "1"
    session = None
    try:
        session = _new_session(url)
        with clients.as_errors(engine, given):
            _refuse_version(session, engine)
            _set_settings(session, catalog, size, extra, engine)
            _refuse_without_storage(session, adapters, engine)
            _refuse_jvm(session, engine)
    except BaseException:
        if session is not None:
            _stop(session)
        if before is None and not _open:
            del os.environ[CONNECT_MODE]
        raise
    atexit.register(_stop, session)  # before what PySpark has registered for it
    if not _open:
        signals.end_with_process(_interrupt)
    _open[session] = clients.RemoteSession.of(engine, session), url
    return session


def close() -> None:
    """End all sessions of this process; the servers go on."""
    while _open:
        _stop(_open.popitem()[0])
    os.environ.pop(CONNECT_MODE, None)


def in_use() -> bool:
    """Whether this process has a session on a server."""
    return bool(_open)


def is_lost(session: SparkSession) -> bool:
    """Whether a server does not know a session any more, or does not answer."""
    try:
        session.conf.get("spark.sql.session.timeZone")
    except Exception:  # noqa: BLE001 (whatever it is, this session is of no use)
        _open.pop(session, None)
        _stop(session)
        return True
    return False


def activate(session: Any) -> None:
    """
    Let PySpark ask this session's server where it asks any: what type a text names, say.

    It would go on to ask that of its first session, which may be another project's and lost.
    """
    of_all = type(session)
    with of_all._lock:  # noqa: SLF001 (there is no public way)
        of_all._default_session = session  # noqa: SLF001
    of_all._active_session.session = session  # noqa: SLF001


def _stop(session: Any) -> None:
    """
    End a session, if its server answers at once.

    A server that is gone would be asked again for a minute, by PySpark itself once more when the
    process ends.
    """
    with suppress(Exception):
        session.client.set_retry_policies([])
        session.stop()


def tune(session: SparkSession, size: Size, given: Mapping[str, str]) -> None:
    """Give a session the SQL settings for a run of another size, but those ``given``."""
    from infold.spark.session_facts import parallelism

    for key, value in size_settings(size, parallelism(session)).items():
        session.conf.set(key, given.get(key, value))


def send_package(session: SparkSession) -> None:
    """Send infold's package to the server, once: it calls functions in Python there."""
    if session not in _sent:
        session.addArtifacts(str(package()), pyfile=True)
        _sent.add(session)


def _interrupt() -> None:
    """Let the servers end what this process waits for, as it is stopped."""

    def quietly(open_session: clients.RemoteSession, url: str) -> None:
        with suppress(Exception):
            clients.interrupt(open_session, url)

    threads = [Thread(target=quietly, args=known, daemon=True) for known in _open.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(clients.ANSWER_SECONDS)


def _new_session(url: str) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

    from infold.spark.connect.clients import Retries

    session = RemoteSession.builder.remote(url).create()
    session.client.set_retry_policies([Retries()])
    return session  # type: ignore[return-value]  # PySpark has two classes of sessions


def _refuse_version(session: SparkSession, engine: Engine) -> None:
    from pyspark import __version__

    if session.version.split(".")[:2] != __version__.split(".")[:2]:
        raise faults.other_server_spark(
            server=engine.server, given=session.version, ours=__version__
        )


def _set_settings(
    session: SparkSession,
    catalog: SparkCatalog,
    size: Size,
    extra: Mapping[str, str],
    engine: Engine,
) -> None:
    """Set what can be set. Raises ``engine_faults.server_settings`` for what is otherwise there."""
    expected = {
        **common_settings(),
        **SETTINGS,
        **catalog.settings,
        **size_settings(size),
        **extra,
        **catalog.secrets,
    }
    own = {
        key: value
        for key, value in expected.items()
        if key.startswith("spark.sql.catalog.") or session.conf.isModifiable(key)
    }
    current = dict(session.conf.getAll)
    for key in expected.keys() - own.keys():
        current[key] = session.conf.get(key, None) or DEFAULTS.get(key, "")
    differing = [
        *((key, is_, to) for key, is_, to in changed_settings(current) if key not in own),
        *((key, current[key], to) for key, to in extra.items() - own.items() if current[key] != to),
        *_shown_secrets(current, catalog),
    ]
    if differing:
        settings = "; ".join(f"{key} is {is_ or 'not set'}, not {to}" for key, is_, to in differing)
        raise faults.server_settings(server=engine.server, settings=settings)
    for key, value in own.items():
        session.conf.set(key, value)


def _shown_secrets(
    there: Mapping[str, str], catalog: SparkCatalog
) -> Iterator[tuple[str, str, str]]:
    """The server's words for what it hides, if they leave out a secret that infold's hide."""
    pattern = common_settings()[REDACTED]
    words = there[REDACTED] or SPARK_HIDES
    if any(re.search(pattern, key) and not re.search(words, key) for key in catalog.secrets):
        yield REDACTED, words, pattern


def _refuse_without_storage(
    session: SparkSession, adapters: StorageAdapters, engine: Engine
) -> None:
    try:
        adapters.refuse_session(session)
    except InfoldError as error:
        if error.slug != "no-iceberg":
            raise
        why = dict(error.facts).get("why", "")
        raise faults.server_without_iceberg(server=engine.server, why=why) from error
    [jar, *_], there = adapters.jars(), adapters.version_there(session)
    if there.split(".")[:2] != jar.version.split(".")[:2]:
        raise faults.other_server_jar(
            server=engine.server, given=there, ours=jar.version, jar=jar.artifact
        )


def _refuse_jvm(session: SparkSession, engine: Engine) -> None:
    """Raise where the server's JVMs lack the storage's classes, or live in another time zone."""
    # One row.
    row = session.range(1).selectExpr(f"{_ZONE} AS zone").collect()[0]
    if not _UTC.search(str(row["zone"])):
        zone = re.search(r'id="([^"]+)"', str(row["zone"]))
        raise faults.server_zone(server=engine.server, zone=zone[1] if zone else str(row["zone"]))


_ZONE = "reflect('java.util.TimeZone', 'getDefault')"
_UTC = re.compile(r"offset=0,dstSavings=0,useDaylight=false")
