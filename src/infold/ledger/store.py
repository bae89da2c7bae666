"""
The ledger in a database: ``ports.Ledger`` over :class:`Database`.

Every method is one transaction. A writing one starts at the fence: it renews the lease under the
token that this process was given, and finds nothing to renew once somebody else has taken over.
Where there is no ledger yet, reading finds nothing and creates nothing.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from infold.core.files import FileCell, FileKnown, FileSeen
from infold.core.interval import Interval, Ranges, moment
from infold.core.manual_entry import ManualEntry
from infold.core.model import table_name
from infold.core.ports import Clock
from infold.core.record import Arrival, Outcome, QuarantinedSession, Receipt, RunRecord, StepRecord
from infold.core.trace import Cause, CellChange, CellState, Pending, Trace, Version
from infold.ledger import codec
from infold.ledger.apply_outcome import apply, drop_trace
from infold.ledger.database import PROJECT_ROW, WAREHOUSE_ROW, Database, Query
from infold.ledger.lease import NAME, Heartbeat, Holder, Watch, this_process
from infold.ledger.prune import KEEP, prune
from infold.messages import errors

FEW = 200
"""Up to so many keys are asked for one by one; above, everything is read and sifted here."""


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """The present instant."""
        return time.time_ns() // 1000


def open_ledger(url: str, root: Path) -> SqlLedger:
    """
    The ledger at ``url``; a relative path is the project's (``root``).

    Nothing is opened or created before it is needed.
    """
    scheme, _, place = url.partition("://")
    if scheme not in ("sqlite", "sqlite+pysqlite") or not place.startswith("/") or place == "/":
        raise errors.ledger_unsupported(url)
    return SqlLedger(root / place[1:])


class SqlLedger:
    """
    The ledger in the SQLite file ``path``, written by ``holder`` (this process).

    ``keep`` versions of each table keep their changes when nothing needs them any more.
    """

    def __init__(
        self,
        path: Path,
        *,
        clock: Clock | None = None,
        holder: Holder | None = None,
        keep: int = KEEP,
    ) -> None:
        self.path = path
        self._database = Database(path)
        self._clock: Clock = clock or SystemClock()
        self._holder = holder
        self._keep = keep
        self._token = 0
        self._run = ""
        self._heartbeat: Heartbeat | None = None

    # -- the lease

    def acquire(self, run: str, *, wait: float = 0.0) -> None:
        """Take the lease for ``run``, or raise ``errors.locked`` after ``wait`` seconds."""
        me = self._holder = self._holder or this_process()
        until, watch = time.monotonic() + wait, Watch()
        while (holder := self._try_acquire(run, me, watch)) is not None:
            if time.monotonic() >= until:
                raise errors.locked(**holder)
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._heartbeat = Heartbeat(self.path, self._token, self._clock.now)
        self._heartbeat.start()

    def _try_acquire(self, run: str, me: Holder, watch: Watch) -> dict[str, Any] | None:
        """Take the lease; the row of the living holder when somebody else has it."""
        now = self._clock.now()
        taken = {
            "run": run,
            "host": me.host,
            "place": me.place,
            "pid": me.pid,
            "process": me.process,
            "since": now,
            "heartbeat_at": now,
        }
        with self._database.write("acquire") as query:
            row = query.one("lease", name=NAME)
            token = 1
            if row is None:
                query.run("add_lease", name=NAME, token=token, **taken)
            else:
                _, held, by_run, host, place, pid, process, since, heartbeat_at = row
                mine = held == self._token
                if by_run is not None and not mine:
                    holder = Holder(host, place, pid, process)
                    if holder.alive(me, heartbeat_at, now, watch.still(held, heartbeat_at)):
                        there = {"run": by_run, "host": host, "pid": pid, "since": _clock(since)}
                        return there | holder.told(me, heartbeat_at, now)
                token = held + 1
                self._take(query, held, token, taken)
                query.run(
                    "bury_runs",
                    of_run=run,
                    new_finished_at=heartbeat_at if by_run is not None else None,
                )
        self._token, self._run = token, run
        return None

    def _take(self, query: Query, held: int, token: int, values: Mapping[str, Any]) -> None:
        query.run(
            "take_lease",
            of_name=NAME,
            of_token=held,
            new_token=token,
            **{f"new_{name}": value for name, value in values.items()},
        )

    def release(self) -> None:
        """Give the lease back; a no-op when it is not held."""
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        if self._token:
            columns = ("run", "host", "place", "pid", "process", "since", "heartbeat_at")
            with self._database.write("release") as query:
                self._take(query, self._token, self._token, dict.fromkeys(columns))
            self._token, self._run = 0, ""

    def close(self) -> None:
        """Release the lease and close the file."""
        self.release()
        self._database.close()

    @contextmanager
    def _writing(self, point: str) -> Iterator[Query]:
        if not self._token:
            raise errors.lease_lost(self._run)
        with self._database.write(point) as query:
            now = self._clock.now()
            if not query.run("beat", of_name=NAME, of_token=self._token, new_heartbeat_at=now):
                raise errors.lease_lost(self._run)
            yield query

    # -- runs and steps

    def begin_run(self, run: str, command: str, as_of: int, detail: Mapping[str, Any]) -> None:
        """Record a run as running; others that say so are of dead holders: ``died``."""
        with self._writing("begin_run") as query:
            query.run("bury_runs", of_run=run, new_finished_at=None)
            (last,) = query.one("last_run_number")
            query.run(
                "add_run",
                id=run,
                number=(last or 0) + 1,
                command=command,
                state="running",
                as_of=as_of,
                started_at=self._clock.now(),
                finished_at=None,
                detail=codec.dump(detail),
                receipt=codec.dump_receipt(Receipt()),
                error=None,
            )

    def finish_run(self, run: str, state: str, receipt: Receipt, error: str | None = None) -> None:
        """Close a run, and drop what is no longer needed (see ``prune``)."""
        with self._writing("finish_run") as query:
            query.run(
                "close_run",
                of_run=run,
                new_state=state,
                new_finished_at=self._clock.now(),
                new_receipt=codec.dump_receipt(receipt),
                new_error=error,
            )
            prune(query, keep=self._keep)

    def begin_step(
        self, run: str, step: str, seq: int, model: str, action: str, detail: Mapping[str, Any]
    ) -> None:
        """Record the intent of a step."""
        with self._writing("begin_step") as query:
            query.run(
                "add_step",
                id=step,
                run=run,
                seq=seq,
                model=model,
                action=action,
                state="intent",
                detail=codec.dump(detail),
                outcome=None,
                started_at=self._clock.now(),
                finished_at=None,
                error=None,
            )

    def prepare_step(self, step: str, outcome: Outcome) -> None:
        """Keep the whole outcome, just before the table's commit."""
        with self._writing("prepare_step") as query:
            text = codec.dump_outcome(outcome)
            if not query.run("prepare_step", of_step=step, new_outcome=text):
                raise ValueError(f"step {step!r} is not open")

    def finish_step(self, step: str, outcome: Outcome) -> None:
        """
        The step is done: all that its outcome says holds from here on, in one transaction.

        A step that is done already stays as it is; nothing is applied twice.
        """
        with self._writing("finish_step") as query:
            row = query.one("step", id=step)
            if row is None:
                raise ValueError(f"no step {step!r}")
            _, run, _, _, _, state, *_ = row
            if state == "done":
                return
            now = self._clock.now()
            text = codec.dump_outcome(codec.slim(outcome))
            if not query.run("finish_step", of_step=step, new_outcome=text, new_finished_at=now):
                raise ValueError(f"step {step!r} is {state}")
            record = query.one("run", id=run)
            started = now if record is None else record[5]
            apply(query, outcome, step=step, run=run, started=started, now=now)

    def close_step(self, step: str, state: str, error: str | None = None) -> None:
        """Mark an open step ``failed`` or ``forgotten``."""
        with self._writing("close_step") as query:
            query.run(
                "close_step",
                of_step=step,
                new_state=state,
                new_finished_at=self._clock.now(),
                new_error=error,
            )

    def step_models(self, steps: Iterable[str]) -> Mapping[str, str]:
        """The models of those of these steps that are known."""
        with self._database.read() as query:
            found = {step: query.one("step", id=step) for step in steps}
        return {step: row[3] for step, row in found.items() if row is not None}

    def belongs(self) -> tuple[str, str] | None:
        """The project whose ledger this is, and its warehouse; None before its first run."""
        with self._database.read() as query:
            found = [query.one("meta", name=name) for name in (PROJECT_ROW, WAREHOUSE_ROW)]
        return (str(found[0][0]), str(found[1][0])) if all(found) else None

    def belong_to(self, project: str, warehouse: str) -> None:
        """Be the ledger of this project, with its tables there, from now on."""
        with self._writing("belong_to") as query:
            for name, value in ((PROJECT_ROW, project), (WAREHOUSE_ROW, warehouse)):
                if query.one("meta", name=name) is None:
                    query.run("add_meta", name=name, value=value)

    def unfinished(self) -> Sequence[StepRecord]:
        """Steps of earlier runs that are neither done nor closed, oldest first."""
        with self._database.read() as query:
            return tuple(_step(row) for row in query.all("unfinished", run=self._run))

    def runs(
        self, limit: int = 10, model: str | None = None, run: str | None = None
    ) -> Sequence[RunRecord]:
        """
        Past runs with their steps, newest first; those with a step of ``model``, or one ``run``.

        The outcome of a step that is done comes without changes and files: ask ``changes``.
        """
        with self._database.read() as query:
            if run is not None:
                rows = query.all("run", id=run)
            elif model is not None:
                rows = query.all("runs_of_model", model=model, limit=limit)
            else:
                rows = query.all("runs", limit=limit)
            return tuple(_run(row, query.all("steps_of_run", run=row[0])) for row in rows)

    # -- files

    def register_files(self, source: str, files: Iterable[FileSeen]) -> Mapping[str, int]:
        """Ids for these versions of files, given on first sight and kept for good."""
        files = tuple(files)
        with self._writing("register_files") as query:
            known = self._known_files(query, source, files)
            (last,) = query.one("last_file_id")
            missing = [file for file in files if (file.path, file.fingerprint) not in known]
            rows = []
            for number, file in enumerate(missing, start=(last or 0) + 1):
                known[file.path, file.fingerprint] = number
                rows.append(
                    {
                        "id": number,
                        "source": source,
                        "path": file.path,
                        "fingerprint": file.fingerprint,
                        "size": file.size,
                    }
                )
            query.many("add_file", rows)
        return {file.path: known[file.path, file.fingerprint] for file in files}

    @staticmethod
    def _known_files(
        query: Query, source: str, files: Sequence[FileSeen]
    ) -> dict[tuple[str, str], int]:
        if len(files) > FEW:
            return {
                (path, fingerprint): id_
                for path, fingerprint, id_ in query.all("files_of_source", source=source)
            }
        found = {}
        for file in files:
            row = query.one("file_id", source=source, path=file.path, fingerprint=file.fingerprint)
            if row is not None:
                found[file.path, file.fingerprint] = row[0]
        return found

    def files(self, model: str) -> Sequence[FileKnown]:
        """The files that a model's table holds now."""
        with self._database.read() as query:
            return tuple(FileKnown(*row) for row in query.all("files", model=model))

    def file_cells(self, model: str, files: Iterable[int] | None = None) -> Sequence[FileCell]:
        """Which cells files hold; all of the model's files when ``files`` is None."""
        wanted = None if files is None else sorted(set(files))
        with self._database.read() as query:
            if wanted is not None and len(wanted) <= FEW:
                rows = [
                    row
                    for file in wanted
                    for row in query.all("cells_of_file", model=model, file=file)
                ]
            else:
                rows = query.all("file_cells", model=model)
                if wanted is not None:
                    keep = frozenset(wanted)
                    rows = [row for row in rows if row[0] in keep]
        return tuple(
            FileCell(file, Interval(start, end), count, dropped)
            for file, start, end, count, dropped in rows
        )

    # -- tables and traces

    def traces(self) -> Mapping[str, Trace]:
        """The trace of every model that was ever built."""
        with self._database.read() as query:
            found = {model: Trace(model, text) for model, text in query.all("traces")}
            for model, newest in query.all("trace_entries"):
                found[model] = replace(found[model], entries=newest)
            for model, name, version in query.all("trace_inputs"):
                found[model].inputs[name] = version
            pending: dict[str, dict[int, tuple[Cause, list[Interval]]]] = {}
            for model, seq, start, end, cause in query.all("trace_pending"):
                entry = pending.setdefault(model, {}).setdefault(seq, (Cause(cause), []))
                entry[1].append(Interval(start, end))
        for model, entries in pending.items():
            parts = tuple(Pending(cause, Ranges(tuple(at))) for cause, at in entries.values())
            found[model] = replace(found[model], pending=parts)
        return found

    def heads(self) -> Mapping[str, Version]:
        """The newest version of every table."""
        with self._database.read() as query:
            return {row[0]: _version(row) for row in query.all("heads")}

    def versions(self, table: str, since: int = 0) -> Sequence[Version]:
        """Versions of a table newer than ``since``, oldest first."""
        with self._database.read() as query:
            rows = query.all("versions", table_name=table, since=since)
            return tuple(_version(row) for row in rows)

    def changes(self, table: str, since: int) -> Sequence[CellChange]:
        """Changes by versions newer than ``since``, in version order (not netted)."""
        with self._database.read() as query:
            rows = query.all("changes", table_name=table, since=since)
        return tuple(CellChange(Interval(start, end), *rest) for start, end, *rest in rows)

    def losing(self, table: str, within: Interval) -> Sequence[int]:
        """The versions with which cells that overlap ``within`` lost rows, oldest first."""
        with self._database.read() as query:
            rows = query.all("losing", table_name=table, since=within.start, until=within.end)
        return tuple(version for (version,) in rows)

    def cells(self, table: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells of a table now, in order; those that overlap ``within``."""
        with self._database.read() as query:
            if within is not None and len(within) <= FEW:
                # A cell that two ranges touch is found twice, and kept once.
                found = {
                    row[:2]: row
                    for part in within
                    for row in query.all(
                        "cells_between", table_name=table, since=part.start, until=part.end
                    )
                }
                rows = [found[key] for key in sorted(found)]
            else:
                rows = query.all("cells", table_name=table)
        cells = (
            CellState(Interval(start, end), count, content, last)
            for start, end, count, content, last in rows
        )
        return tuple(cell for cell in cells if within is None or within.overlaps(cell.cell))

    def arrivals(self, model: str, limit: int = 1000) -> Sequence[Arrival]:
        """What arrived when and for which cells, newest first."""
        with self._database.read() as query:
            rows = query.all("arrivals", model=model, limit=limit)
        return tuple(
            Arrival(model, version, Interval(begin, until), Interval(start, end), count)
            for _, version, start, end, begin, until, count in rows
        )

    def quarantined(self, model: str) -> Sequence[QuarantinedSession]:
        """A model's sessions in quarantine, by start."""
        with self._database.read() as query:
            return tuple(QuarantinedSession(*row) for row in query.all("quarantined", model=model))

    def left_out(self) -> Mapping[str, int]:
        """How many rows of what they read are in no session, by sessions model."""
        with self._database.read() as query:
            return dict(query.all("left_out"))

    def entries(self, model: str) -> Sequence[ManualEntry]:
        """The manual entries of a model's quarantine, by number."""
        with self._database.read() as query:
            rows = query.all("entries", model=model)
        return tuple(
            ManualEntry(number, of, None if held is None else bool(held), *rest)
            for number, of, held, *rest in rows
        )

    def newest_entries(self) -> Mapping[str, int]:
        """The number of the newest manual entry of each model that has any."""
        with self._database.read() as query:
            return dict(query.all("newest_entries"))

    def add_entries(self, model: str, entries: Iterable[ManualEntry]) -> None:
        """Add manual entries; needs no lease."""
        now = self._clock.now()
        with self._database.write("add_entries") as query:
            last = dict(query.all("newest_entries")).get(model, 0)
            query.many(
                "add_entry",
                [
                    {
                        "model": model,
                        "number": number,
                        "session_of": entry.of,
                        "held": entry.held,
                        "session_start": entry.start,
                        "session_end": entry.end,
                        "reason": entry.reason,
                        "made_at": now,
                    }
                    for number, entry in enumerate(entries, last + 1)
                ],
            )

    def locations(self) -> Mapping[str, str]:
        """Where the metadata of tables was when a run last ended."""
        with self._database.read() as query:
            return dict(query.all("locations"))

    def remember_locations(self, locations: Mapping[str, str]) -> None:
        """Keep where metadata is now; names that are not given stay as they were."""
        with self._writing("remember_locations") as query:
            query.many("drop_location", [{"name": name} for name in locations])
            query.many(
                "add_location",
                [{"name": name, "location": location} for name, location in locations.items()],
            )

    def forget(self, model: str, *, step: str | None = None) -> None:
        """Drop a model's trace, cells and files; versions and history stay."""
        with self._writing("forget") as query:
            head = next((row for row in query.all("heads") if row[0] == model), None)
            if step is not None and head is not None:
                now = self._clock.now()
                gone = Outcome(model, head[1] + 1, Trace(model, ""), whole=True)
                apply(query, gone, step=step, run=self._run, started=now, now=now)
            drop_trace(query, model)
            query.run("drop_cells", table_name=model)
            query.run("drop_all_quarantined", model=model)
            query.run("drop_left_out", model=model)
            query.run("drop_location", name=table_name(model))
            if step is None:
                query.run("drop_ingests", model=model)
                query.run("drop_file_cells", model=model)

    def destroy(self) -> None:
        """Delete the ledger's file; who waits for the lease in it finds that it is gone."""
        if not self._token:
            raise errors.lease_lost(self._run)
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        self._token, self._run = 0, ""
        self._database.remove()


def _clock(at: int) -> str:
    return moment(at).strftime("%Y-%m-%d %H:%M:%S")


def _version(row: Sequence[Any]) -> Version:
    table, number, snapshot, step, run, committed_at, rows, whole = row
    return Version(table, number, snapshot, step, run, committed_at, rows, bool(whole))


def _run(row: Sequence[Any], steps: Iterable[Sequence[Any]]) -> RunRecord:
    id_, _, command, state, as_of, started_at, finished_at, _, receipt, error = row
    return RunRecord(
        id=id_,
        command=command,
        state=state,
        as_of=as_of,
        started_at=started_at,
        finished_at=finished_at,
        receipt=codec.load_receipt(receipt),
        error=error,
        steps=tuple(_step(step) for step in steps),
    )


def _step(row: Sequence[Any]) -> StepRecord:
    id_, run, seq, model, action, state, detail, outcome, started_at, finished_at, error = row
    return StepRecord(
        id=id_,
        run=run,
        seq=seq,
        model=model,
        action=action,
        state=state,
        detail=json.loads(detail),
        outcome=None if outcome is None else codec.load_outcome(outcome),
        started_at=started_at,
        finished_at=finished_at,
        error=error,
    )
