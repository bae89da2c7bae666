"""The ledger on a real PostgreSQL server: what a file has no counterpart of."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from tests.crash.scenario import SHAPE, DryScenario, first_delivered
from tests.ledger.conftest import Place
from tests.ledger.drawn import DAYS
from tests.ledger.steps import change, outcome
from tests.servers.postgresql import Postgresql

from infold.core.interval import SECOND
from infold.core.record import Receipt
from infold.core.sessions import ManualEntry
from infold.ledger import SqlLedger, database, postgresql, store
from infold.ledger.database import FORMAT, FORMAT_ROW
from infold.ledger.lease import Holder
from infold.ledger.postgresql import PostgresqlDatabase
from infold.messages.errors import InfoldError
from infold.system.signals import Stopped

pytestmark = pytest.mark.servers

AWAY = Holder("away", "away:boot:ns", 1, "1")


@pytest.fixture
def place(postgresql: Postgresql) -> Iterator[Place]:
    """A schema that is not there."""
    found = Place(postgresql.url(), postgresql.schema())
    yield found
    with suppress(InfoldError):
        found.close()


def begun(place: Place, run: str = "r1", **how: object) -> SqlLedger:
    """A ledger with a run that has the lease and goes on."""
    ledger = place.open(**how)
    ledger.acquire(run)
    ledger.begin_run(run, "run", 0, {})
    return ledger


class TestMaking:
    """The first write makes a schema with the tables; nothing else is touched."""

    def test_reading_creates_nothing(self, place: Place, postgresql: Postgresql) -> None:
        """Before the first run there is nothing to read, and nothing is made."""
        ledger = place.open()

        assert not ledger.exists()
        assert (ledger.runs(), ledger.traces(), ledger.owner()) == ((), {}, None)
        assert not has_schema(postgresql, place)

        begun(place)  # the connection that found no ledger finds it once there is one
        assert [run.id for run in ledger.runs()] == ["r1"]

    def test_trying_leaves_nothing(self, place: Place, postgresql: Postgresql) -> None:
        """What `infold doctor` tries is undone."""
        place.open().try_create()

        assert not has_schema(postgresql, place)

    def test_one_that_is_gone_before_it_is_written_is_named(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Somebody tears down what this one made or found: nothing goes on without a ledger."""
        monkeypatch.setattr(PostgresqlDatabase, "_create", lambda *_: None)

        with pytest.raises(InfoldError, match="ledger-unusable") as raised:
            place.open().acquire("r1")
        assert dict(raised.value.facts)["why"] == "somebody removed it meanwhile"

    @pytest.mark.parametrize(
        "table", ["songs (x int)", "meta (x int)", "meta (name text, value text)"]
    )
    def test_a_schema_of_something_else_is_left_alone(
        self, place: Place, postgresql: Postgresql, table: str
    ) -> None:
        """A schema with other tables is neither read nor written."""
        postgresql.run(f"CREATE SCHEMA {place.schema}", f"CREATE TABLE {place.schema}.{table}")

        with pytest.raises(InfoldError, match="not-a-ledger"):
            place.open().acquire("r1")
        assert len(tables(postgresql, place)) == 1

    def test_a_newer_ledger_is_refused_at_once(self, place: Place, postgresql: Postgresql) -> None:
        """An older infold neither reads nor writes it, also over a connection that it has."""
        ledger = begun(place)
        meta = f"{place.schema}.meta"
        postgresql.run(f"UPDATE {meta} SET value = '{FORMAT + 1}' WHERE name = '{FORMAT_ROW}'")

        for use in (ledger.runs, lambda: ledger.finish_run("r1", "done", Receipt())):
            with pytest.raises(InfoldError, match="ledger-newer"):
                use()

        postgresql.run(f"UPDATE {meta} SET value = '{FORMAT}' WHERE name = '{FORMAT_ROW}'")
        assert [run.state for run in ledger.runs()] == ["running"]


class TestTexts:
    """What a database stores of a text comes in the order of a file's ledger."""

    def test_texts_are_in_the_order_of_their_bytes(
        self, postgresql: Postgresql, tmp_path: Path
    ) -> None:
        """Whatever order the database has by itself."""
        postgresql.run(
            "DROP DATABASE IF EXISTS ordered",
            "CREATE DATABASE ordered TEMPLATE template0 ENCODING 'UTF8' LOCALE 'C'"
            " LOCALE_PROVIDER icu ICU_LOCALE 'en-US'",
        )
        names = {name: name for name in ("b", "B", "a", "_", "ä", "A", "a_", "aB")}
        places = [
            Place(postgresql.url(rest="ordered"), "books"),
            Place(f"sqlite:///{tmp_path / 'ledger.db'}", ""),
        ]
        found = []
        for place in places:
            ledger = begun(place)
            ledger.remember_locations(names)
            found.append(list(ledger.locations()))
            ledger.close()

        assert found[0] == found[1] == sorted(names)
        assert found[0] != sorted(names, key=str.lower)


class TestExchanges:
    """A question takes three exchanges with the server: begin, ask, end."""

    def test_nothing_is_checked_apart(self, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
        """Format and time come with the beginning of the transaction."""
        ledger = begun(place)
        asked: list[object] = []
        real = psycopg.Connection.execute

        def execute(self: object, text: object, *rest: object, **how: object) -> object:
            asked.append(text)
            return real(self, text, *rest, **how)  # type: ignore[call-overload]

        monkeypatch.setattr(psycopg.Connection, "execute", execute)

        ledger.locations()
        assert len(asked) == 3
        asked.clear()
        ledger.remember_locations({})
        assert len(asked) == 3  # begin, the fence, commit: nothing was to be written

    def test_connections_are_closed_at_the_end(self, place: Place, postgresql: Postgresql) -> None:
        """What a process opened is closed when it ends, as for a file."""
        others = connections(postgresql)  # catalogs in a JVM keep theirs
        ledger = place.open()
        ledger.locations()
        assert connections(postgresql) - others

        database.close_all()

        until = time.monotonic() + 10
        while connections(postgresql) - others and time.monotonic() < until:
            time.sleep(0.05)
        assert not connections(postgresql) - others
        assert ledger.locations() == {}


class TestConcurrency:
    """Readers wait for nobody, writers for each other, runs are refused by name."""

    def test_readers_do_not_wait(self, place: Place) -> None:
        """Status and history are read while a run is writing; they see what is committed."""
        ledger, reader = begun(place), place.open()

        with ledger._database.write(None) as query:
            query.run("bury_runs", of_run="r9", new_finished_at=1)
            assert [run.state for run in reader.runs()] == ["running"]

        assert [run.state for run in reader.runs()] == ["died"]

    def test_a_reader_sees_one_state(self, place: Place) -> None:
        """What is committed while it reads is for the next one."""
        ledger, reader = begun(place), place.open()

        with reader._database.read() as query:
            before = query.all("locations")
            ledger.remember_locations({"daily": "there"})
            assert query.all("locations") == before == []

        assert reader.locations() == {"daily": "there"}

    def test_writers_without_a_lease_wait_in_line(self, place: Place) -> None:
        """Entries by hand from two machines at once get numbers of their own."""
        entry = ManualEntry(0, "ann", True, 1, 2, "")
        ledger, other = place.open(), place.open()
        ledger.add_entries("m", [entry])
        writer = threading.Thread(target=other.add_entries, args=("m", [entry]))

        with ledger._database.write(None) as query:
            writer.start()
            writer.join(0.5)
            assert writer.is_alive()
            assert dict(query.all("newest_entries")) == {"m": 1}

        writer.join()
        assert [entry.number for entry in ledger.entries("m")] == [1, 2]

    def test_the_lease_goes_by_the_servers_clock(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Machines whose clocks differ by hours agree about who was heard of last."""
        real = store.SystemClock.now
        theirs = place.open(holder=AWAY)
        monkeypatch.setattr(store.SystemClock, "now", lambda self: real(self) - 3 * 3600 * SECOND)
        theirs.acquire("theirs")
        monkeypatch.setattr(store.SystemClock, "now", lambda self: real(self) + 3 * 3600 * SECOND)

        with pytest.raises(InfoldError) as raised:
            place.open().acquire("mine")

        facts = dict(raised.value.facts)
        assert raised.value.slug == "locked"
        assert (facts["run"], facts["host"]) == ("theirs", "away")
        assert facts["last heard"] in ("0 seconds ago", "1 second ago", "2 seconds ago")

    def test_a_process_that_stands_still_loses_its_transaction(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A machine that sleeps in the middle of a write keeps nobody waiting for ever."""
        ledger, other = begun(place), place.open(holder=AWAY)
        monkeypatch.setattr(postgresql, "FROZEN_SECONDS", 1)

        def sleep() -> None:
            with ledger._database.write(None) as query:
                query.run("bury_runs", of_run="r9", new_finished_at=1)
                time.sleep(2)

        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            sleep()
        other.add_entries("m", [ManualEntry(0, "ann", True, 1, 2, "")])

        assert [run.state for run in other.runs()] == ["running"]


class TestSignals:
    """What a signal interrupts is undone, and the ledger can be used after it."""

    def test_while_the_server_is_asked(self, place: Place) -> None:
        """The end of a run is recorded, though the server had still to answer a question."""
        ledger, started = begun(place), time.monotonic()
        before = signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.2)

        def ask() -> None:
            with ledger._database.write(None) as query:
                query.run("bury_runs", of_run="r9", new_finished_at=1)
                connection(ledger).execute("SELECT pg_sleep(20)")

        try:
            with pytest.raises(Stopped):
                ask()
        finally:
            signal.signal(signal.SIGALRM, before)
        assert [run.state for run in ledger.runs()] == ["running"]
        ledger.finish_run("r1", "failed", Receipt(), "stopped")

        assert [run.state for run in ledger.runs()] == ["failed"]
        assert time.monotonic() - started < 10  # what was asked had been cancelled
        ledger.close()


def stop(*_: object) -> None:
    """What a signal does."""
    raise Stopped


def connection(ledger: SqlLedger) -> psycopg.Connection[tuple[object, ...]]:
    """The connection of a ledger."""
    found = ledger._database
    assert isinstance(found, PostgresqlDatabase)
    return found._open()


class TestLostConnections:
    """A run that lost its connection writes no more, and nothing is half known."""

    def test_in_the_middle_of_a_write(self, place: Place, postgresql: Postgresql) -> None:
        """Nothing of the transaction is kept."""
        ledger = begun(place)

        def write() -> None:
            with ledger._writing("begin_step") as query:
                query.run("bury_runs", of_run="r9", new_finished_at=1)
                postgresql.disconnect_all()
                query.run("bury_runs", of_run="r9", new_finished_at=1)

        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            write()

        assert [run.state for run in ledger.runs()] == ["running"]

    def test_a_read_that_fails_ends_it_too(self, place: Place, postgresql: Postgresql) -> None:
        """Whichever way a run learns of it."""
        ledger = begun(place)
        postgresql.disconnect_all()
        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            ledger.traces()

        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            ledger.begin_step("r1", "s", 2, "events", "fold", {})
        ledger.close()

    def test_another_server_over_the_same_connection(
        self, place: Place, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pooler keeps the connection, whichever server is behind it."""
        ledger = begun(place)
        monkeypatch.setattr(postgresql, "SERVER", "7::bigint")

        for _ in range(2):
            with pytest.raises(InfoldError, match="ledger-connection-lost"):
                ledger.begin_step("r1", "s", 2, "events", "fold", {})
        ledger.finish_run("r1", "failed", Receipt(), "the connection was lost")
        ledger.release()

        [run] = ledger.runs()
        assert (run.state, run.steps) == ("failed", ())
        begun(place, "r2").close()

    def test_a_server_that_ends_idle_connections(self, postgresql: Postgresql) -> None:
        """A run has nothing to write for as long as a step takes."""
        url = f"{postgresql.url()}?options={quote('-c idle_session_timeout=200')}"
        ledger = begun(Place(url, postgresql.schema()))
        time.sleep(0.5)

        assert [run.state for run in ledger.runs()] == ["running"]
        ledger.close()

    def test_a_restart_and_the_next_run(self, place: Place, postgresql: Postgresql) -> None:
        """The run stops, its lease cannot be given back, and the next one takes over at once."""
        ledger = begun(place, "lost")
        ledger.begin_step("lost", "s", 1, "events", "fold", {})
        postgresql.stop()
        with pytest.raises(InfoldError, match="ledger-connection-lost"):
            ledger.prepare_step("s", outcome(1, change(DAYS[3], 3)))
        with pytest.raises(InfoldError, match="ledger-unreachable"):
            ledger.finish_run("lost", "failed", Receipt())
        ledger.release()
        postgresql.start()

        after = begun(place, "r2")  # of the same process, which is alive

        assert [(run.id, run.state) for run in after.runs()] == [
            ("r2", "running"),
            ("lost", "died"),
        ]
        assert [step.id for step in after.unfinished()] == ["s"]
        with pytest.raises(InfoldError, match="lease-lost"):
            ledger.prepare_step("s", outcome(1, change(DAYS[3], 3)))
        after.close()


@dataclass(kw_only=True)
class OnServer(DryScenario):
    """A scenario whose ledger is on the server."""

    place: Place

    @property
    def ledger(self) -> SqlLedger:
        """Another connection each time."""
        return self.place.open()


def test_runs_that_lose_their_connection(
    place: Place, postgresql: Postgresql, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """
    They stop just before each of their writes, though the server answers again, and write no more
    than that they failed; the next run makes all tables right.
    """
    where = tmp_path / "lost", "lost", tmp_path / "warehouse"
    scenario = first_delivered(OnServer(SHAPE, *where, 8, place=place))
    scenario.settle()
    left = {"begin_step": [], "prepare_step": ["failed"], "finish_step": ["prepared"]}
    for seed, (write, states) in enumerate(left.items(), start=3):
        scenario.deliver(seed)
        real = getattr(SqlLedger, write)

        def lose(ledger: SqlLedger, *words: object, real: Any = real) -> None:
            postgresql.disconnect_all()
            real(ledger, *words)

        with monkeypatch.context() as patch:
            patch.setattr(SqlLedger, write, lose)
            with pytest.raises(InfoldError, match="ledger-connection-lost"):
                scenario.go()
        [run] = scenario.ledger.runs(1)
        assert run.state == "failed"
        assert [step.state for step in run.steps] == states, write
        scenario.settle()


class TestRemoving:
    """A ledger is removed by who has the lease, whole or not at all."""

    def test_the_schema_goes_too(self, place: Place, postgresql: Postgresql) -> None:
        """Nothing is left of it, and the next run makes it anew; what others put there stays."""
        begun(place).destroy()
        assert not has_schema(postgresql, place)

        ledger = begun(place)
        postgresql.run(f"CREATE TABLE {place.schema}.songs (x int)")
        ledger.destroy()
        assert tables(postgresql, place) == {"songs"}


def tables(server: Postgresql, place: Place) -> set[str]:
    """The tables of a schema."""
    text = f"SELECT tablename FROM pg_tables WHERE schemaname = '{place.schema}'"
    return {name for (name,) in server.run(text)}


def has_schema(server: Postgresql, place: Place) -> bool:
    """Whether a schema is there."""
    return server.run(f"SELECT to_regnamespace('{place.schema}') IS NOT NULL") == [(True,)]


def connections(server: Postgresql) -> set[int]:
    """The connections of infold's that a server has, by the processes that serve them."""
    processes = (
        "SELECT pid FROM pg_stat_activity WHERE application_name = 'infold'"
        " AND pid <> pg_backend_pid()"
    )
    return {pid for (pid,) in server.run(processes)}
