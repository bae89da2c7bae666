"""
Clients of servers of Spark Connect, by which also sessions of dead processes are ended.

What a client asked for goes on when the client has died: the server finishes it, commits included.
Two things end that. Asked to, a server interrupts what a session does; and then its answer ends,
which whoever knows the session may wait for, as it is kept for a client that was cut off. A session
that is released takes no further work.
"""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from typing import Any

from pyspark.sql.connect.client.retries import DefaultPolicy, RetryPolicyState

from infold.core.target import Engine
from infold.messages import faults
from infold.system import failures

ANSWER_SECONDS = 5
WAIT_SECONDS = 60.0
"""How long the end of what was interrupted is waited for."""

PACKAGES = ("grpc", "grpc_status", "google.rpc", "zstandard", "pandas")

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
