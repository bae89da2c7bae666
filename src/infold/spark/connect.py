"""
Sessions on a server of Spark Connect: made, checked for what they need, and ended.

Settings of SQL are a session's own, and are set. All else is the server's, and is looked at: where
the server has something otherwise than exactness allows, or lacks it, nothing is done there. What
a server cannot be asked is how the JVM of its driver was started; see docs/clusters.md.

Sessions of dead processes are ended as well. What a client asked for goes on when the client has
died: the server finishes it, commits included. Two things end that. Asked to, a server interrupts
what a session does; and then its answer ends, which whoever knows the session may wait for, as it
is kept for a client that was cut off. A session that is released takes no further work.
"""

from __future__ import annotations

import atexit
import logging
import os
import re
import socket
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from threading import Thread
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from infold.core.target import Engine, changed_settings
from infold.messages import faults
from infold.messages.errors import InfoldError
from infold.spark.jvm.cluster import package
from infold.spark.jvm.session_settings import REDACTED, Size, common_settings, size_settings
from infold.system import failures, signals

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

ANSWER_SECONDS = 5
WAIT_SECONDS = 60.0
"""How long the end of what was interrupted is waited for."""

PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")

_sent: WeakSet[SparkSession] = WeakSet()
_open: dict[SparkSession, tuple[RemoteSession, str]] = {}
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
    refuse_missing_packages()
    refuse_unreachable(engine, given)
    # An error is reported once, by infold.
    logging.getLogger("SQLQueryContextLogger").disabled = True
    warnings.filterwarnings("ignore", category=UserWarning, module=r"pyspark\.sql\.connect\.")
    before = os.environ.get(CONNECT_MODE)
    os.environ[CONNECT_MODE] = "1"
    session = None
    try:
        session = _new_session(url)
        with as_errors(engine, given):
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
    _open[session] = RemoteSession.of(engine, session), url
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

    def quietly(open_session: RemoteSession, url: str) -> None:
        with suppress(Exception):
            interrupt(open_session, url)

    threads = [Thread(target=quietly, args=known, daemon=True) for known in _open.values()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(ANSWER_SECONDS)


def _new_session(url: str) -> SparkSession:
    from pyspark.sql.connect.session import SparkSession as RemoteSession

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


_UNKNOWN = re.compile(
    r"SESSION_NOT_FOUND|SESSION_CLOSED|SESSION_CHANGED|OPERATION_NOT_FOUND|OPERATION_ABANDONED"
)
"""What a server says that knows nothing of a session, or of a piece of work, any more."""


@dataclass(frozen=True, slots=True)
class RemoteSession:
    """A session on a server, so that another process can end it."""

    server: str
    user: str
    session: str

    @staticmethod
    def of(engine: Engine, session: Any) -> RemoteSession:
        """A session of this process."""
        return RemoteSession(engine.server, session.client._user_id or "", session.session_id)  # noqa: SLF001

    def as_json(self) -> dict[str, str]:
        """As the ledger keeps it."""
        return asdict(self)


def refuse_missing_packages() -> None:
    """Raise ``engine_faults.connect_not_installed`` unless PySpark can be a client here."""
    from importlib.util import find_spec

    for name in PACKAGES:
        spec = None
        with suppress(ModuleNotFoundError):
            spec = find_spec(name)
        if spec is None:
            raise faults.connect_not_installed(package=name)


def refuse_unreachable(engine: Engine, given: str) -> None:
    """Raise ``engine_faults.server_unreachable`` if nobody listens at the server's address."""
    for host, port in engine.addresses:
        try:
            socket.create_connection((host.strip("[]"), port), ANSWER_SECONDS).close()
        except OSError as error:
            raise faults.server_unreachable(
                server=engine.server, given=given, why=str(error)
            ) from error


@contextmanager
def as_errors(engine: Engine, given: str) -> Iterator[None]:
    """What a server says at the start of a session, as errors that name the target's key."""
    from pyspark.errors import PySparkException

    try:
        yield
    except PySparkException as error:
        text = str(error)
        if re.search("UNAUTHENTICATED|PERMISSION_DENIED", text):
            raise faults.server_refuses(server=engine.server, given=given) from error
        if known := failures.known_failure(error):
            raise known from error
        why = failures.in_a_line(error)
        raise faults.server_unreachable(server=engine.server, given=given, why=why) from error


def end(session: RemoteSession, url: str) -> None:
    """
    Interrupt whatever a session does, wait until that has ended, and release the session.

    ``url`` has the secrets of the server. Raises OSError, or what PySpark raises, where the server
    cannot be reached.
    """
    for host, port in Engine(remote=session.server).addresses:  # PySpark would try for a minute
        socket.create_connection((host.strip("[]"), port), ANSWER_SECONDS).close()
    with _client(session, url) as client:
        while interrupted := client.interrupt_all():
            for operation in interrupted:
                _await_end(client, operation)
        client.release_session()


def interrupt(session: RemoteSession, url: str) -> None:
    """Interrupt whatever a session does, and do not wait."""
    with _client(session, url) as client:
        client.interrupt_all()


@contextmanager
def _client(session: RemoteSession, url: str) -> Iterator[Any]:
    """A client for another one's session; nothing is wrong where that is not there any more."""
    from pyspark.sql.connect.client import SparkConnectClient

    client_url = re.sub(r";(?:user_id|session_id)=[^;]*", "", url)
    client_url += ("" if "/;" in client_url else "/") + f";session_id={session.session}"
    client = SparkConnectClient(client_url)
    client._user_id = session.user or None  # noqa: SLF001 (else it may be that of this process)
    client.set_retry_policies([Retries()])
    try:
        yield client
    except Exception as error:
        if not _UNKNOWN.search(str(error)):
            raise
    finally:
        client.close()


def _await_end(client: Any, operation: str) -> None:
    """
    Wait until a piece of work has ended: its answer ends then, however it did.

    Of one whose answer the dead client had read a part of there is no such answer. It is no write:
    those say nothing before their end (``session.SETTINGS``).
    """
    import grpc  # type: ignore[import-untyped]
    from pyspark.sql.connect.proto import ReattachExecuteRequest

    request = ReattachExecuteRequest(
        session_id=client._session_id,  # noqa: SLF001 (PySpark reattaches to its own work only)
        operation_id=operation,
        client_type=client._builder.userAgent,  # noqa: SLF001
    )
    request.user_context.user_id = client._user_id or ""  # noqa: SLF001
    while True:
        try:
            metadata = client._builder.metadata()  # noqa: SLF001
            said = client._stub.ReattachExecute(request, metadata=metadata, timeout=WAIT_SECONDS)  # noqa: SLF001
            if any(response.HasField("result_complete") for response in said):
                return
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise faults.server_busy(seconds=int(WAIT_SECONDS)) from error
            if error.code() is grpc.StatusCode.UNAVAILABLE:
                raise
            if "INVALID_CURSOR.DISCONNECTED" not in str(error):
                return  # it has failed, was interrupted, or is not known


MOST = 8
"""With waits of up to ten seconds, as many as fit into about a minute."""


class Retries(DefaultPolicy):
    """
    A call that did not reach the server is made again; once one never did, none is made again.

    PySpark asks the server to drop what a checkpoint of a frame left there when the frame goes, and
    waits for its answer wherever Python happens to be. A run that lost its server has dozens of
    such frames, and each would be waited for as long as the server was.
    """

    def __init__(self) -> None:
        super().__init__(max_retries=MOST, max_backoff=10_000)
        self.given_up = False

    def can_retry(self, e: BaseException) -> bool:
        """Whether a call that ended so is made again."""
        return not self.given_up and super().can_retry(e)

    def to_state(self) -> RetryPolicyState:
        """The retries of one call."""
        return _OfACall(self)


class _OfACall(RetryPolicyState):
    def __init__(self, retries: Retries) -> None:
        super().__init__(retries)
        self._retries = retries

    def next_attempt(self, exception: BaseException | None = None) -> int | None:
        """Milliseconds to wait, or None: the call is given up."""
        wait = super().next_attempt(exception)
        if wait is None:
            self._retries.given_up = True
        return wait
