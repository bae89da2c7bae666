"""
One writer of a target at a time, whatever may outlive a dead one: a JVM here, a server elsewhere.

A server of Spark Connect goes on for a client that has died. Each session that may write is in the
ledger, so the next holder of the lease ends it, and waits for that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from infold.core.ports import Ledger
from infold.core.project import Project
from infold.messages import faults
from infold.messages.errors import InfoldError
from infold.system.process_lock import writer_lock

if TYPE_CHECKING:
    from infold.ledger import SqlLedger


def remote_url(project: Project) -> str:
    """The address of the server that a project's target computes on, with its secrets."""
    from infold.system.secrets import resolve_url

    key = f"engine of target {project.target.name}"
    return resolve_url(project.target.engine.remote, project.root, key)


@contextmanager
def sole_writer(project: Project, ledger: Ledger) -> Iterator[None]:
    """
    Keep every other writer of the target out until the end of the block, which has the lease.

    Raises ``engine_faults.session_left`` where what a dead run left at a server cannot be ended.
    """
    with writer_lock(project.root, project.target.name):
        _end_kept(project, ledger)
        try:
            yield
        except BaseException:
            if project.target.engine.remote:
                # What this process asked for goes on too. What cannot be ended now, the next
                # writer ends.
                with suppress(InfoldError):
                    _end_kept(project, ledger)
            raise
        if project.target.engine.remote:
            _keep_sessions(ledger, ())


def announce(project: Project, ledger: Ledger, session: Any) -> None:
    """Let a session be known to whoever takes the lease over, before it writes."""
    from infold.spark.connect import RemoteSession

    own, known = RemoteSession.of(project.target.engine, session).as_json(), _sessions(ledger)
    if own not in known:
        _keep_sessions(ledger, (*known, own))


def _end_kept(project: Project, ledger: Ledger) -> None:
    kept = _sessions(ledger)
    if not kept:
        return
    from infold.spark.connect import RemoteSession, end

    for session in (RemoteSession(**each) for each in kept):
        is_this_server = project.target.engine.server == session.server
        try:
            end(session, remote_url(project) if is_this_server else session.server)
        except InfoldError:
            raise
        except Exception as error:
            from infold.system import failures

            why = failures.in_a_line(error)
            raise faults.session_left(server=session.server, why=why) from error
    _keep_sessions(ledger, ())


def _sessions(ledger: Ledger) -> Sequence[Mapping[str, str]]:
    from infold.ledger.store import kept_sessions

    return kept_sessions(_sql_ledger(ledger))


def _keep_sessions(ledger: Ledger, sessions: Sequence[Mapping[str, str]]) -> None:
    from infold.ledger.store import keep_sessions

    keep_sessions(_sql_ledger(ledger), sessions)


def _sql_ledger(ledger: Ledger) -> SqlLedger:
    from infold.ledger import SqlLedger

    assert isinstance(ledger, SqlLedger), "a project's ledger is in a database"
    return ledger
