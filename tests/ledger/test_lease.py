"""Who may write to the ledger: real processes that take the lease, die and lose it."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from multiprocessing.synchronize import Event
from typing import Any

import pytest
from tests.ledger.conftest import FORK, Place

from infold.core import write_points
from infold.core.interval import SECOND
from infold.core.record import Receipt
from infold.ledger import SqlLedger, lease, store
from infold.ledger.lease import SILENT, Holder, process_started, this_process
from infold.messages import errors, run_errors


@dataclass
class Other:
    """Another process, which holds the lease for run ``held`` until it is told to give it back."""

    place: Place
    over: Event = field(default_factory=FORK.Event)
    ready: Event = field(default_factory=FORK.Event)

    def hold(self) -> None:
        """What it does."""
        ledger = self.place.open()
        ledger.acquire("held")
        ledger.begin_run("held", "run", 0, {})
        self.ready.set()
        self.over.wait()
        ledger.release()

    def __post_init__(self) -> None:
        self.process = FORK.Process(target=self.hold)
        self.process.start()
        assert self.ready.wait(30)

    def kill(self) -> None:
        """SIGKILL, and gone."""
        self.process.kill()
        self.process.join()


@pytest.fixture
def holder(place: Place) -> Iterator[Other]:
    """One of them."""
    found = Other(place)
    yield found
    found.kill()


class Waiting:
    """The time of who waits for a lease: it passes at once, and something happens meanwhile."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at, self.meanwhile = 0.0, lambda: None
        for module in (store, lease):
            monkeypatch.setattr(module, "time", self)

    def __getattr__(self, name: str) -> Any:
        return getattr(time, name)

    def monotonic(self) -> float:
        """What has passed."""
        return self.at

    def sleep(self, seconds: float) -> None:
        """Nobody really waits."""
        self.at += seconds
        self.meanwhile()


@pytest.fixture
def waiting(monkeypatch: pytest.MonkeyPatch) -> Waiting:
    """One of these, for whoever waits in this process."""
    return Waiting(monkeypatch)


class TestProcesses:
    """On one machine, the owner of a lease is alive as long as its process is."""

    def test_a_living_owner_is_named(self, place: Place, holder: Other, waiting: Waiting) -> None:
        """Also after `--wait`; who looks may, and who waits starts once it is released."""
        with pytest.raises(errors.InfoldError) as raised:
            place.open().acquire("mine", wait=7)

        assert waiting.at >= 7
        facts = dict(raised.value.facts)
        assert (raised.value.slug, raised.value.exit_code) == ("locked", 3)
        assert (facts["run"], facts["process"]) == ("held", str(holder.process.pid))
        assert facts["host"] == os.uname().nodename
        assert facts["since"].startswith("20")
        ledger = place.open()
        assert [(run.id, run.state) for run in ledger.runs()] == [("held", "running")]

        def give_back() -> None:
            holder.over.set()
            holder.process.join()

        waiting.meanwhile = give_back
        ledger.acquire("mine", wait=20)
        ledger.begin_run("mine", "run", 0, {})
        ledger.close()

    def test_a_killed_owner_is_replaced_at_once(self, place: Place, holder: Other) -> None:
        """Without waiting for its heartbeat, and its run is marked died."""
        holder.kill()
        ledger = place.open()

        started = time.monotonic()
        ledger.acquire("mine")
        assert time.monotonic() - started < 30  # a heartbeat would be waited for for 60

        assert [(run.id, run.state) for run in ledger.runs()] == [("held", "died")]
        assert ledger.runs()[0].finished_at is not None
        ledger.close()

    def test_a_reused_pid_is_another_process(self, place: Place) -> None:
        """A process with the owner's pid and another start time is not the owner."""
        me = this_process()
        place.open(holder=replace(me, process="long ago")).acquire("dead")

        place.open().acquire("mine")

    def test_a_zombie_is_dead(self) -> None:
        """A killed process that its parent has not reaped yet counts as dead."""
        process = subprocess.Popen(["sleep", "60"])
        assert process_started(process.pid) is not None
        process.kill()
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)

        assert process_started(process.pid) is None
        process.wait()


class Hands:
    """A clock whose hands a test moves."""

    def __init__(self) -> None:
        self.at = 1_000 * SECOND

    def now(self) -> int:
        """Where the hands are."""
        return self.at


AWAY = Holder("away", "away:boot:ns", 1, "1")
"""Somebody on another machine."""


def taken_over(place: Place, **how: Any) -> tuple[SqlLedger, SqlLedger]:
    """A lease of run ``theirs`` elsewhere, which was silent for too long, and run ``mine`` took."""
    clock = Hands()
    theirs = place.open(clock=clock, holder=AWAY, **how)
    theirs.acquire("theirs")
    theirs.begin_run("theirs", "run", 0, {})
    clock.at += SILENT + 1
    mine = place.open(clock=clock)
    mine.acquire("mine")
    mine.begin_run("mine", "run", 0, {})
    return theirs, mine


class TestElsewhere:
    """On another machine, the owner of a lease is alive as long as its heartbeat is recent."""

    def test_a_heartbeat_of_a_minute_ago_is_alive(self, place: Place) -> None:
        """Whatever its pid is here; the refusal says when it was heard, and what to do."""
        clock = Hands()
        place.open(clock=clock, holder=AWAY).acquire("theirs")
        for passed, heard in ((12 * SECOND, "12 seconds ago"), (SILENT - 12 * SECOND, "")):
            clock.at += passed

            with pytest.raises(errors.InfoldError, match="run theirs is working") as raised:
                place.open(clock=clock).acquire("mine")

            assert heard in dict(raised.value.facts)["last heard"]
            assert "If that machine is gone, run with --wait 90" in raised.value.todo

    def test_a_silent_owner_is_replaced(self, place: Place) -> None:
        """If it still runs, its writes are refused."""
        theirs, mine = taken_over(place)

        with pytest.raises(errors.InfoldError, match="lease-lost: run theirs"):
            theirs.finish_run("theirs", "done", Receipt())

        theirs.release()
        mine.finish_run("mine", "done", Receipt())
        found = [(run.id, run.state) for run in mine.runs()]
        assert found == [("mine", "done"), ("theirs", "died")]
        mine.close()

    def test_a_ledger_that_was_begun_anew_is_another(self, place: Place) -> None:
        """Only who has the lease removes one; another may have the same token."""
        theirs, mine = taken_over(place)
        with pytest.raises(errors.InfoldError, match="lease-lost"):
            theirs.destroy()
        assert [run.id for run in mine.runs()] == ["mine", "theirs"]
        mine.destroy()
        with pytest.raises(errors.InfoldError, match="lease-lost: run theirs"):
            theirs.begin_run("theirs", "run", 0, {})
        assert not place.open().exists()

        anew = place.open()
        anew.acquire("anew")
        assert anew._token == theirs._token
        with pytest.raises(errors.InfoldError, match="lease-lost: run theirs"):
            theirs.begin_run("theirs", "run", 0, {})
        theirs.release()
        anew.begin_run("anew", "run", 0, {})
        anew.close()

    def test_a_heartbeat_makes_no_ledger(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Where a ledger was removed, the heartbeat of a run that was taken over just ends."""
        monkeypatch.setattr(lease, "BEAT_SECONDS", 0.01)
        heartbeat = lease.Heartbeat(place.open()._database, lease.held_by(1, "r1"), None)
        heartbeat.start()
        heartbeat._threads[0].join(20)
        heartbeat.stop()

        assert not place.open().exists()

    @pytest.mark.parametrize("beats", [False, True])
    def test_a_heartbeat_in_the_future_is_watched(
        self, place: Place, monkeypatch: pytest.MonkeyPatch, waiting: Waiting, beats: bool
    ) -> None:
        """It is alive while it moves, and dead once it stops."""

        class Ahead(Hands):
            """Three hours ahead, and running."""

            def now(self) -> int:
                """A second later each time it is looked at."""
                self.at += SECOND
                return self.at + 3 * 3600 * SECOND

        monkeypatch.setattr(lease, "BEAT_SECONDS", 3600.0)
        ahead = Ahead()
        theirs = place.open(clock=ahead, holder=AWAY)
        theirs.acquire("theirs")
        mine = place.open(clock=Hands())
        with pytest.raises(errors.InfoldError) as raised:
            mine.acquire("mine")
        assert dict(raised.value.facts)["last heard"].endswith("ahead of this machine's clock")
        assert "run with --wait 90: that watches it" in raised.value.todo

        def beat() -> None:
            with theirs.database.write(None) as query:
                lease.beat(query, lease.held_by(theirs._token, "theirs"), ahead)

        if beats:
            waiting.meanwhile = beat
            with pytest.raises(errors.InfoldError, match="locked"):
                mine.acquire("mine", wait=2 * SILENT / SECOND)
        else:
            mine.acquire("mine", wait=2 * SILENT / SECOND)
            assert waiting.at > SILENT / SECOND
            mine.close()
            with pytest.raises(errors.InfoldError, match="lease-lost"):
                theirs.begin_run("theirs", "run", 0, {})
        theirs.close()


class TestGivingUp:
    """A holder ends what works for it before another machine may take over."""

    @pytest.fixture
    def slept(self, monkeypatch: pytest.MonkeyPatch) -> Hands:
        """The clock of the machine that runs; it is looked at all the time, and nobody beats."""
        clock = Hands()
        monkeypatch.setattr(lease, "time_since_boot", lambda: clock.at / SECOND)
        monkeypatch.setattr(lease, "WATCH_SECONDS", 0.01)
        monkeypatch.setattr(lease, "BEAT_SECONDS", 3600.0)
        return clock

    def test_after_half_of_the_silence(self, place: Place, slept: Hands) -> None:
        """Work ends half a minute after the last renewal, which each write of the run is."""
        ended = threading.Event()
        ledger = place.open(end_work=ended.set)
        ledger.acquire("r1")
        slept.at += SILENT // 2 - SECOND
        ledger.begin_run("r1", "run", 0, {})
        ledger.begin_step("r1", "s", 1, "events", "fold", {})
        slept.at += SILENT // 2 - SECOND
        assert not ended.wait(0.05)

        slept.at += 2 * SECOND
        assert ended.wait(10)

        with pytest.raises(errors.InfoldError, match="lease-lost: run r1"):
            ledger.begin_step("r1", "t", 2, "events", "fold", {})
        with pytest.raises(errors.InfoldError, match="lease-lost: run r1"):
            ledger.close_step("s", "failed", "the engine died")
        ledger.finish_run("r1", "failed", Receipt())
        assert [(run.state, run.steps[0].state) for run in ledger.runs()] == [("failed", "failed")]

    def test_a_beat_renews(
        self, place: Place, slept: Hands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A run may work for as long as it likes, as its heartbeat renews the lease."""
        monkeypatch.setattr(lease, "BEAT_SECONDS", 0.01)
        ended = threading.Event()
        ledger = place.open(end_work=ended.set)
        ledger.acquire("r1")

        for _ in range(3):
            assert ledger._heartbeat is not None
            slept.at += SILENT // 2
            until = time.monotonic() + 20
            while ledger._heartbeat._renewed_at < slept.at / SECOND:
                assert time.monotonic() < until
                time.sleep(0.01)

        assert not ended.is_set()

    def test_a_lease_that_another_has(
        self, place: Place, slept: Hands, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whoever wakes up and finds that another has taken over ends its work at once."""
        monkeypatch.setattr(lease, "BEAT_SECONDS", 0.3)
        ended = threading.Event()
        taken_over(place, end_work=ended.set)

        assert ended.wait(10)


class TestLeftBehind:
    """A process that lives is not kept out by a lease which it does not use any more."""

    @staticmethod
    def fail(monkeypatch: pytest.MonkeyPatch, at: str) -> None:
        """Have the ledger fail at a write point."""

        def point(name: str) -> None:
            if name == at:
                raise run_errors.ledger_unusable(path="there", why="it is gone")

        monkeypatch.setattr(write_points, "point", point)

    def test_an_answer_that_was_lost(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """Whoever does not know whether it got the lease takes it over from itself, and only it."""
        self.fail(monkeypatch, "ledger acquire: after commit")
        with pytest.raises(errors.InfoldError, match="ledger-unusable"):
            place.open().acquire("r1")
        monkeypatch.undo()

        mine = place.open()
        mine.acquire("r1")

        with pytest.raises(errors.InfoldError, match="locked"):
            place.open().acquire("r2")
        mine.begin_run("r1", "run", 0, {})

    def test_a_lease_that_could_not_be_given_back(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """That says nothing, as the end of the run matters more, and the next run begins."""
        ledger = place.open()
        ledger.acquire("r1")
        self.fail(monkeypatch, "ledger release: before commit")
        ledger.release()
        monkeypatch.undo()

        with pytest.raises(errors.InfoldError, match="lease-lost"):
            ledger.begin_run("r1", "run", 0, {})
        place.open().acquire("r2")


def test_a_token_is_never_used_twice(place: Place) -> None:
    """A write with an old token is refused, also before another run takes the lease."""
    ledger = place.open()
    for token, run in enumerate(("r1", "r2", "r3"), 1):
        ledger.acquire(run)
        assert ledger._token == token
        ledger.release()
        ledger._token = token
        with pytest.raises(errors.InfoldError, match="lease-lost"):
            ledger.begin_run(run, "run", 0, {})
