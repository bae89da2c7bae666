"""
Who may write: one lease for a ledger, with a heartbeat and a token that only grows.

A holder is a process: its host, its pid and when it started (so that a pid used again is another
process). On the same machine a holder is alive as long as that process is; on another machine, as
long as its heartbeat is younger than :data:`SILENT`. A taken-over holder may still be running
somewhere, so every write names its token and its run, and finds no row once the token has grown, or
the ledger is another one.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from infold.core.interval import SECOND, show_duration
from infold.ledger.database import MOVED_ROW, LedgerDatabase, Query
from infold.messages import ledger_errors
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.ports import Clock

NAME = "target"
BEAT_SECONDS = 5.0  # twelve beats are missed before a holder counts as dead
WATCH_SECONDS = 1.0  # a run whose beats fail has to end before another takes over
SILENT = 60 * SECOND
"""A holder on another machine that was silent for this long is taken to be dead."""


@dataclass(frozen=True, slots=True)
class Holder:
    """
    A process, so that it can be named to a person and recognised again.

    ``place`` is where pids mean the same: machine, boot, and pid namespace (containers).
    """

    host: str
    place: str
    pid: int
    process: str

    def alive(self, seen_from: Holder, heartbeat_at: int, now: int, still: int = 0) -> bool:
        """
        Whether it still runs, as far as ``seen_from`` can tell.

        ``still`` is for how long its heartbeat was seen not to move, by the clock of whoever looks:
        the clock of another machine may differ, so that its heartbeat may lie in the future.
        """
        if self.place == seen_from.place:
            return process_started(self.pid) == self.process
        return now - heartbeat_at <= SILENT and still < SILENT

    def last_heard(self, seen_from: Holder, heartbeat_at: int, now: int) -> dict[str, Any]:
        """When a holder on another machine was last heard of, as ``locked`` shows it."""
        if self.place == seen_from.place:
            return {}
        ago = (now - heartbeat_at) // SECOND * SECOND
        if ago > -SILENT:  # clocks of machines that are set by the network differ by less
            return {"heard": f"{show_duration(max(ago, 0))} ago"}
        return {"heard": f"{show_duration(-ago)} ahead of this machine's clock", "ahead": True}


class HeartbeatWatch:
    """For how long a heartbeat has not moved, by a monotonic clock of this process."""

    def __init__(self) -> None:
        self._last: tuple[int, int] | None = None
        self._since = 0.0

    def still(self, token: int, heartbeat_at: int) -> int:
        """How long it has been what it is, in microseconds, since it was first looked at."""
        now = time.monotonic()
        if self._last != (token, heartbeat_at):
            self._last, self._since = (token, heartbeat_at), now
        return int((now - self._since) * SECOND)


def this_process() -> Holder:
    """This process, told from one with its number after a restart or in another container."""
    host, pid = os.uname().nodename, os.getpid()
    place = ":".join((host, _first_line("/proc/sys/kernel/random/boot_id"), _pid_namespace()))
    return Holder(host, place, pid, process_started(pid) or "")


def process_started(pid: int) -> str | None:
    """When a process of this machine started, as its system tells it; None when there is none."""
    if Path("/proc/self/stat").exists():
        try:
            stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
        except OSError:
            return None
        # The name, in parentheses, may hold anything; field 3 is the state, 22 the start.
        fields = stat.rpartition(")")[2].split()
        return None if fields[0] in "ZX" else fields[19]
    import subprocess  # macOS has no /proc; elsewhere nobody pays for the import

    shown = subprocess.run(
        ["ps", "-o", "lstart=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return shown or None


def time_of(query: Query, clock: Clock | None) -> int:
    """
    The time that goes into the lease: by the database's clock, as machines may differ in theirs.

    ``clock`` is another one, in tests.
    """
    return query.now if clock is None else clock.now()


def held_by(token: int, run: str) -> Mapping[str, Any]:
    """What finds the lease as long as it is that of this run."""
    return {"of_name": NAME, "of_token": token, "of_run": run}


def refuse_moved(query: Query) -> None:
    """
    Raise where the ledger was copied to another place: nobody gets the lease of this one again.

    Two ledgers of one warehouse would each know a part of what happened to its tables.
    """
    row = query.one("meta", name=MOVED_ROW)
    if row is not None:
        raise ledger_errors.moved(copy=row[0])


def beat(query: Query, held: Mapping[str, Any], clock: Clock | None) -> bool:
    """Renew a lease; False if another has it, or the ledger is gone."""
    return query.exists and bool(query.run("beat", **held, new_heartbeat_at=time_of(query, clock)))


class Heartbeat:
    """
    A daemon thread that renews the lease every few seconds, over its own connection.

    ``give_up`` is called once the lease is lost, and when it could not be renewed for half of
    :data:`SILENT`: so whatever works for the holder ends before another machine takes over. A
    second thread sees to that, since the first may be waiting for a server that does not answer.
    """

    def __init__(
        self,
        database: LedgerDatabase,
        holder_values: Mapping[str, Any],
        clock: Clock | None,
        give_up: Callable[[], object] | None = None,
    ) -> None:
        self._database, self._holder_values, self._clock = database, holder_values, clock
        self._give_up = give_up
        self._renewed_at, self._writing = time_since_boot(), False
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=work, name=f"ledger-{name}", daemon=True)
            for name, work in (("heartbeat", self._beat), ("watch", self._watch))
            if give_up is not None or name == "heartbeat"
        ]

    def start(self) -> None:
        """Renew the lease in the background, beginning now."""
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, and wait until the thread has closed its connection."""
        self._stop.set()
        for thread in self._threads:
            thread.join()

    @contextmanager
    def renewed(self) -> Iterator[None]:
        """A write of the holder, which has renewed the lease: nobody takes over before its end."""
        self._writing = True
        try:
            yield
            self._renewed_at = time_since_boot()
        finally:
            self._writing = False

    def _beat(self) -> None:
        database = self._database
        try:
            while not self._stop.wait(BEAT_SECONDS):
                began = time_since_boot()
                try:
                    with database.write(None, create=False) as query:
                        is_held = beat(query, self._holder_values, self._clock)
                except InfoldError:  # busy or gone: the next write of the run will say so
                    continue
                if not is_held:
                    self._end()
                    return
                self._renewed_at = began
        finally:
            database.close()

    def _watch(self) -> None:
        while not self._stop.wait(WATCH_SECONDS):
            silent = (time_since_boot() - self._renewed_at) * SECOND
            if silent > SILENT / 2 and not self._writing:
                self._end()
                return

    def _end(self) -> None:
        if self._give_up is not None and not self._stop.is_set():
            self._give_up()


def time_since_boot() -> float:
    """Seconds that also pass while the machine sleeps; Linux's CLOCK_MONOTONIC stands still."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


def _first_line(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def _pid_namespace() -> str:
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""
