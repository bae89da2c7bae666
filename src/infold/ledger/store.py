"""
The ledger in a database, written: ``ports.Ledger`` over :class:`Database`.

Every method is one transaction. A writing one starts at the fence: it renews the lease under the
token that this process was given, and finds nothing to renew once somebody else has taken over.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import asdict, replace
from hashlib import md5
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from infold.core.audits import AuditResult
from infold.core.definition import Definition
from infold.core.environment import PRODUCTION, Environment, OwnTable
from infold.core.erasure import ErasureRequest
from infold.core.files import ListedFile, is_as_listed, with_listed
from infold.core.interval import datetime_of, now
from infold.core.model import table_name
from infold.core.project import Project
from infold.core.record import FULL_LISTING, LISTED, ForwardOnly, Outcome, Receipt
from infold.core.sessions import ManualEntry
from infold.core.swap import Swap
from infold.core.target import LONGEST_SCHEMA
from infold.core.trace import Trace, merge_earlier
from infold.ledger import codec
from infold.ledger.database import (
    ERASURES_ROW,
    PROJECT_ROW,
    PURGED_ROW,
    WAREHOUSE_ROW,
    Database,
    LedgerDatabase,
    Query,
)
from infold.ledger.lease import (
    NAME,
    Heartbeat,
    HeartbeatWatch,
    Holder,
    beat,
    held_by,
    refuse_moved,
    this_process,
    time_of,
)
from infold.ledger.reader import FEW, SqlLedgerReader
from infold.ledger.table_names import (
    apply_swap,
    erase_rows,
    forget_swap,
    put_environment,
    put_own_tables,
    remove_environment,
)
from infold.messages import run_errors
from infold.messages.errors import InfoldError
from infold.system import signals

if TYPE_CHECKING:
    from infold.core.ports import Clock


# Changes are read to find what is stale: those that every trace has read are only history. Arrivals
# are only history. Of both, the newest :data:`KEEP` versions of each table stay; older ones go,
# oldest first, at most :data:`BUDGET` rows in one run. A change that a trace has still to read is
# never dropped. Versions, runs and steps stay for good (a few hundred bytes each: a step that is
# done keeps no changes).

KEEP = 100
BUDGET = 20_000


def prune_history(query: Query, *, keep: int, budget: int = BUDGET) -> int:
    """Drop what no trace needs and nobody is likely to ask for; the number of rows dropped."""
    read = {name: int(version) for name, version in query.all("oldest_inputs")}
    dropped = 0
    for table, head, *_ in query.all("heads"):
        limit = head - keep
        for kind, bound in (("changes", min(limit, read.get(table, limit))), ("arrivals", limit)):
            dropped += _drop_oldest(query, kind, table, bound, budget - dropped)
    return dropped


def _drop_oldest(query: Query, kind: str, table: str, bound: int, budget: int) -> int:
    rows, last = 0, None
    for version, count in query.all(f"old_{kind}", table_name=table, upto=bound, limit=100):
        if rows and rows + count > budget:
            break
        rows, last = rows + count, version
    if last is None or budget <= 0:
        return 0
    query.run(f"drop_{kind}", table_name=table, upto=last)
    if kind == "changes":
        query.run("drop_unchanged", table_name=table, upto=last)
    return rows


LAST_WORDS = frozenset({"close_step", "finish_run"})
"""
What a run writes after it lost its connection, if the server answers again: that something failed.

It writes no more than that: a server that took the place of another may lack the last second.
"""


_runs_with_lease: set[str] = set()
"""
Runs of this process that may have the lease and do not work: it takes that over from itself.

They could not give it back, or do not know whether they got it.
"""


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """The present instant."""
        return now()


class SqlLedger(SqlLedgerReader):
    """
    The ledger in a database, or in the SQLite file at a path, written by ``holder`` (this process).

    ``keep`` versions of each table keep their changes when nothing needs them any more. ``clock``
    is the machine's. The lease goes by the database's, unless another clock is given. ``end_work``
    ends what works for this process, before another machine may take over its lease.
    """

    def __init__(
        self,
        at: Path | LedgerDatabase,
        *,
        clock: Clock | None = None,
        holder: Holder | None = None,
        keep: int = KEEP,
        end_work: Callable[[], object] | None = None,
    ) -> None:
        super().__init__(Database(at) if isinstance(at, Path) else at)
        self._clock: Clock = clock or SystemClock()
        self._lease_clock = clock
        self._holder = holder
        self._keep = keep
        self._end_work = end_work
        self._token = 0
        self._heartbeat: Heartbeat | None = None

    @property
    def place(self) -> str:
        """Where it is, as people may see it: without any password."""
        return self._database.place

    def writing(self, point: str) -> AbstractContextManager[Query]:
        """A transaction of the holder's, for what is no question of a run's."""
        return self._writing(point)

    def try_create(self) -> str:
        """Make a ledger as the first write would, undo that, and say where it was."""
        return self._database.try_create()

    # -- the lease

    def acquire(self, run: str, *, wait: float = 0.0) -> None:
        """Take the lease for ``run``, or raise ``run_errors.locked`` after ``wait`` seconds."""
        me = self._holder = self._holder or this_process()
        until, watch = time.monotonic() + wait, HeartbeatWatch()
        while True:
            try:
                holder = self._try_acquire(run, me, watch)
            except BaseException:  # also after its commit, as when the server's answer was lost
                _runs_with_lease.add(run)
                raise
            if holder is None:
                break
            if time.monotonic() >= until:
                raise run_errors.locked(**holder)
            time.sleep(min(0.2, max(0.0, until - time.monotonic())))
        _runs_with_lease.discard(run)
        if self._heartbeat is not None:
            self._heartbeat.stop()
        self._heartbeat = Heartbeat(
            self._database.another(),
            held_by(self._token, run),
            self._lease_clock,
            self._give_up if self._end_work else None,
        )
        self._heartbeat.start()

    def _give_up(self) -> None:
        """Write no more, and end what would go on to commit: another run may take over."""
        self._database.lost = self._database.lost or run_errors.lease_lost(self._run)
        if self._end_work:
            self._end_work()

    def _try_acquire(self, run: str, me: Holder, watch: HeartbeatWatch) -> dict[str, Any] | None:
        """Take the lease; the row of the living holder when somebody else has it."""
        with self._database.write("acquire") as query:
            refuse_moved(query)
            now = time_of(query, self._lease_clock)
            taken = {
                "run": run,
                "host": me.host,
                "place": me.place,
                "pid": me.pid,
                "process": me.process,
                "since": now,
                "heartbeat_at": now,
            }
            row = query.one("lease", name=NAME)
            token = 1
            if row is None:
                query.run("add_lease", name=NAME, token=token, **taken)
            else:
                _, last_token, by_run, host, place, pid, process, since, heartbeat_at = row
                is_mine = (last_token, by_run) == (self._token, self._run)
                if by_run is not None and not is_mine and by_run not in _runs_with_lease:
                    holder = Holder(host, place, pid, process)
                    if holder.alive(me, heartbeat_at, now, watch.still(last_token, heartbeat_at)):
                        shown = {"run": by_run, "host": host, "pid": pid, "since": _utc_text(since)}
                        return shown | holder.last_heard(me, heartbeat_at, now)
                token = last_token + 1
                query.run(
                    "take_lease",
                    of_name=NAME,
                    of_token=last_token,
                    new_token=token,
                    **{f"new_{name}": value for name, value in taken.items()},
                )
                query.run(
                    "bury_runs",
                    of_run=run,
                    new_finished_at=heartbeat_at if by_run is not None else None,
                )
        self._token, self._run, self._database.lost = token, run, None
        return None

    def release(self) -> None:
        """
        Give the lease back, if this process has it.

        Where that fails, nothing is said: the lease of a process that ended is taken over, and what
        the run has to say matters more.
        """
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        if self._token:
            try:
                with self._database.write("release", create=False) as query:
                    if query.exists:
                        query.run("free_lease", **held_by(self._token, self._run))
            except BaseException as error:
                _runs_with_lease.add(self._run)
                if not isinstance(error, InfoldError):
                    raise
            finally:
                self._token, self._run = 0, ""

    def close(self) -> None:
        """Release the lease and close the file."""
        self.release()
        self._database.close()

    @contextmanager
    def _writing(self, point: str) -> Iterator[Query]:
        if not self._token:
            raise run_errors.lease_lost(self._run)
        if self._database.lost is not None and point not in LAST_WORDS:
            raise self._database.lost
        with self._database.write(point, create=False) as query:
            self._fence(query)
            with self._heartbeat.renewed() if self._heartbeat else nullcontext():
                yield query

    def _fence(self, query: Query) -> None:
        """Renew the lease, or raise an error where somebody else has taken over."""
        if not beat(query, held_by(self._token, self._run), self._lease_clock):
            raise run_errors.lease_lost(self._run)

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
        """Close a run, and drop what is no longer needed (see ``prune_history``)."""
        with self._writing("finish_run") as query:
            query.run(
                "close_run",
                of_run=run,
                new_state=state,
                new_finished_at=self._clock.now(),
                new_receipt=codec.dump_receipt(receipt),
                new_error=error,
            )
            prune_history(query, keep=self._keep)

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
        The step is done: all of its outcome is recorded, in one transaction.

        A step that is done already stays as it is; nothing is applied twice.
        """
        from infold.ledger.apply_outcome import apply_outcome

        with self._writing("finish_step") as query:
            row = query.one("step", id=step)
            if row is None:
                raise ValueError(f"no step {step!r}")
            _, run, _, _, _, state, *_ = row
            if state == "done":
                return
            now = self._clock.now()
            text = codec.dump_outcome(codec.without_rows_of_tables(outcome))
            if not query.run("finish_step", of_step=step, new_outcome=text, new_finished_at=now):
                raise ValueError(f"step {step!r} is {state}")
            record = query.one("run", id=run)
            started = now if record is None else record[5]
            apply_outcome(query, outcome, step=step, run=run, started=started, now=now)

    def close_step(
        self,
        step: str,
        state: str,
        error: str | None = None,
        audits: Sequence[AuditResult] = (),
    ) -> None:
        """
        Mark an open step ``failed`` or ``forgotten``, with what its audits found.

        Raises why this process gave up, if it did: the step failed of that.
        """
        with self._writing("close_step") as query:
            now = self._clock.now()
            ended = {"new_state": state, "new_finished_at": now, "new_error": error}
            query.run("close_step", of_step=step, **ended)
            for model in {audit.model for audit in audits}:
                codec.put_audits(query, model, audits, now=now, run=self._run, step=step)
        if self._database.lost is not None:
            raise self._database.lost

    def record_audits(self, model: str, results: Sequence[AuditResult]) -> None:
        """Record what audits found of stored rows; needs no lease."""
        with self._database.write("record_audits") as query:
            refuse_moved(query)
            codec.put_audits(query, model, results, now=self._clock.now(), run="", step="")

    def set_owner(self, project: str, warehouse: str) -> None:
        """Be the ledger of this project, with its tables there, from now on."""
        with self._writing("belong_to") as query:
            for name, value in ((PROJECT_ROW, project), (WAREHOUSE_ROW, warehouse)):
                if query.one("meta", name=name) is None:
                    query.run("add_meta", name=name, value=value)

    # -- files

    def register_files(self, source: str, files: Iterable[ListedFile]) -> Mapping[str, int]:
        """Ids for these versions of files, assigned when first seen and never changed."""
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

    def replace_file(self, source: str, path: str, before: str, after: str) -> None:
        """Record that a file has another listed fingerprint and is the file that it was."""
        with self._writing("replace_file") as query:
            for id_, known in query.all("files_at", source=source, path=path):
                if is_as_listed(known, before):
                    size = int(after.partition(":")[0])
                    changed = {"new_print": with_listed(known, after), "new_size": size}
                    query.run("refingerprint", of_file=id_, **changed)

    @staticmethod
    def _known_files(
        query: Query, source: str, files: Sequence[ListedFile]
    ) -> dict[tuple[str, str], int]:
        if len(files) > FEW:
            return {
                (path, fingerprint): id_
                for path, fingerprint, id_ in query.all("files_of_source", source=source)
            }
        ids = {}
        for file in files:
            row = query.one("file_id", source=source, path=file.path, fingerprint=file.fingerprint)
            if row is not None:
                ids[file.path, file.fingerprint] = row[0]
        return ids

    # -- tables and traces

    def left_out(self) -> Mapping[str, int]:
        """How many rows each model leaves out, as ``Outcome.left_out`` counts them."""
        with self._database.read() as query:
            return dict(query.all("left_out"))

    def add_entries(self, model: str, entries: Iterable[ManualEntry]) -> None:
        """Add manual entries; needs no lease."""
        now = self._clock.now()
        with self._database.write("add_entries") as query:
            refuse_moved(query)
            last = dict(query.all("newest_entries")).get(model, 0)
            query.many(
                "add_entry",
                [
                    {
                        "model": model,
                        "number": number,
                        "session_of": entry.owner,
                        "held": entry.in_quarantine,
                        "session_start": entry.start,
                        "session_end": entry.end,
                        "reason": entry.reason,
                        "made_at": now,
                    }
                    for number, entry in enumerate(entries, last + 1)
                ],
            )

    def add_erasures(
        self,
        requests: Sequence[ErasureRequest],
        columns: Mapping[tuple[str, str], str],
        secret: str,
    ) -> Sequence[ErasureRequest]:
        """Add requests to erase; needs no lease."""
        now = self._clock.now()
        with self._database.write("add_erasures") as query:
            refuse_moved(query)
            last = max((number for *_, number in query.all("newest_erasures")), default=0)
            added = [
                replace(request, number=request.number or number, made_at=request.made_at or now)
                for number, request in enumerate(requests, last + 1)
            ]
            query.many(
                "add_erasure",
                [
                    {
                        "number": request.number,
                        "id": request.id,
                        "erasure": request.erasure,
                        "source": request.source,
                        "before_at": request.before,
                        "reason": request.reason,
                        "made_at": request.made_at,
                    }
                    for request in added
                ],
            )
            query.many(
                "add_erased_key",
                [
                    {"number": request.number, "key": key}
                    for request in added
                    for key in dict.fromkeys(request.keys)
                ],
            )
            query.run("drop_erasure_columns")
            query.many(
                "add_erasure_column",
                [
                    {"erasure": erasure, "source": source, "column_name": column}
                    for (erasure, source), column in columns.items()
                ],
            )
            _put_meta(query, ERASURES_ROW, secret)
        return added

    def note_purged(self, number: int) -> None:
        """Record that rows of requests up to a number are in no file of a table any more."""
        with self._writing("note_purged") as query:
            before, *_ = query.one("meta", name=PURGED_ROW) or ("",)
            _put_meta(query, PURGED_ROW, f"{before} {number}@{self._clock.now()}".lstrip())

    def forget_texts(self) -> None:
        """Take out why runs and steps failed, and the rows that audits show."""
        with self._writing("forget_texts") as query:
            codec.forget_texts(query)

    def keep_definitions(
        self,
        definitions: Mapping[str, Definition],
        applied: Mapping[str, str],
        adopted: Mapping[str, str],
        forward_only: Mapping[str, ForwardOnly] = MappingProxyType({}),
        environment: str = PRODUCTION,
    ) -> None:
        """Keep definitions, and record which are applied. What is known already costs no write."""
        known = self.applied(environment)
        changes = {**self.forward_only(), **forward_only}
        traces = self.traces() if adopted else {}
        current = {name: entry.digest for name, entry in known.items()}
        with self._database.read() as query:
            missing = {
                digest: definition
                for digest, definition in definitions.items()
                if query.one("definition_kept_at", digest=digest) is None
            }
        if current == applied and not adopted and not missing and changes == self.forward_only():
            return
        from infold.core.definition import definition_text
        from infold.ledger.apply_outcome import put_trace_definitions

        with self._writing("keep_definitions") as query:
            now = self._clock.now()
            query.many(
                "add_definition",
                [
                    {
                        "digest": digest,
                        "model": definition.name,
                        "body": definition_text(definition),
                        "kept_at": now,
                    }
                    for digest, definition in missing.items()
                ],
            )
            for name in known.keys() | applied.keys():
                if current.get(name) == applied.get(name):
                    continue
                query.run("drop_applied", environment=environment, model=name)
                if environment == PRODUCTION:
                    query.run("drop_forward_only", model=name)
                if name in applied:
                    query.run(
                        "add_applied",
                        environment=environment,
                        model=name,
                        digest=applied[name],
                        applied_at=now,
                    )
            for name, change in forward_only.items():
                query.run("drop_forward_only", model=name)
                query.run("add_forward_only", model=name, **asdict(change))
            for name, digest in adopted.items():
                earlier = merge_earlier(traces[name].earlier, digest)
                trace = replace(traces[name], definition=digest, earlier=earlier)
                put_trace_definitions(query, trace)
                fingerprint = definitions[digest].fingerprint
                query.run("restamp_trace", of_model=name, new_fingerprint=fingerprint)

    def put_environment(self, environment: Environment) -> None:
        """Record an environment as it is now, with its tables."""
        with self._writing("put_environment") as query:
            put_environment(query, environment)

    def put_own_tables(self, owner: str, tables: Iterable[OwnTable]) -> None:
        """Record which tables an environment has, or which are built apart."""
        with self._writing("put_own_tables") as query:
            put_own_tables(query, owner, tables)

    def remove_environment(self, name: str) -> None:
        """Forget an environment, with all that is known of its tables."""
        with self._writing("remove_environment") as query:
            remove_environment(query, name)

    def advance(self, inputs: Mapping[str, Mapping[str, int]]) -> None:
        """Record that tables are right for newer versions of their inputs, by model and input."""
        with self._writing("advance") as query:
            for model, versions in inputs.items():
                for name, version in versions.items():
                    query.run("advance_trace", of_model=model, of_input=name, new_version=version)

    def move_snapshot(self, table: str, number: int, snapshot: int) -> None:
        """Record that a version has its rows in another snapshot, and its readers read that."""
        with self._writing("move_snapshot") as query:
            query.run("replace_snapshot", of_table=table, of_number=number, new_snapshot=snapshot)
            for model, name, _ in query.all("trace_inputs"):
                if name == table:
                    query.run("advance_trace", of_model=model, of_input=name, new_version=number)

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
        from infold.ledger.apply_outcome import apply_outcome, drop_trace

        with self._writing("forget") as query:
            head = next((row for row in query.all("heads") if row[0] == model), None)
            if step is not None and head is not None:
                now = self._clock.now()
                emptied = Outcome(model, head[1] + 1, Trace(model, ""), whole=True)
                apply_outcome(query, emptied, step=step, run=self._run, started=now, now=now)
            drop_trace(query, model)
            query.run("drop_forward_only", model=model)
            query.run("drop_cells", table_name=model)
            query.run("drop_all_quarantined", model=model)
            query.run("drop_left_out", model=model)
            query.run("erase_audits", model=model)
            for name in (table_name(model), LISTED.format(model), FULL_LISTING.format(model)):
                query.run("drop_location", name=name)
            if step is None:
                query.run("drop_ingests", model=model)
                query.run("drop_file_cells", model=model)

    def know_steps(self, steps: Mapping[str, str]) -> None:
        """Record steps, with their models, that are in the tables' history and were not known."""
        with self._writing("know_steps") as query:
            now = self._clock.now()
            query.many(
                "add_step",
                [
                    {
                        "id": step,
                        "run": step.rpartition("-")[0],
                        "seq": 0,
                        "model": model,
                        "action": "unknown",
                        "state": "done",
                        "detail": codec.dump({}),
                        "outcome": None,
                        "started_at": now,
                        "finished_at": now,
                        "error": None,
                    }
                    for step, model in steps.items()
                    if query.one("step", id=step) is None
                ],
            )

    def erase_tables(self, tables: Iterable[str]) -> None:
        """Remove what is known of tables; what people entered stays."""
        with self._writing("erase_tables") as query:
            for name in tables:
                erase_rows(query, name)

    def finish_swap(self, step: str, swap: Swap) -> None:
        """Names have moved: all that is known of the tables moves with them, in one transaction."""
        with self._writing("finish_swap") as query:
            row = query.one("step", id=step)
            if row is None:
                raise ValueError(f"no step {step!r}")
            _, run, _, _, _, state, *_ = row
            if state == "done":
                return
            now = self._clock.now()
            ended = {"new_state": "done", "new_finished_at": now, "new_error": None}
            if not query.run("close_step", of_step=step, **ended):
                raise ValueError(f"step {step!r} is {state}")
            apply_swap(query, swap, id_=step, run=run, now=now)

    def forget_swap(self, id_: str) -> None:
        """Forget a swap, and what is known of the tables that it replaced."""
        with self._writing("forget_swap") as query:
            forget_swap(query, id_)

    def destroy(self) -> None:
        """Delete the ledger; who waits for the lease in it finds that it is gone."""
        if not self._token:
            raise run_errors.lease_lost(self._run)
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None
        self._database.remove(self._fence)
        self._token, self._run = 0, ""


def _put_meta(query: Query, name: str, value: str) -> None:
    """Give a row of ``meta`` a value, whether it is there or not."""
    query.run("drop_meta", name=name)
    query.run("add_meta", name=name, value=value)


def _utc_text(at: int) -> str:
    return datetime_of(at).strftime("%Y-%m-%d %H:%M:%S")


def ledger_schema(project: Project) -> str:
    """
    The schema of a project's ledger on a server: that of its target, or one of its own.

    So any number of projects and targets can name the same database.
    """
    name = project.target.ledger_schema or f"infold_{project.name}_{project.target.name}"
    if len(name) <= LONGEST_SCHEMA:
        return name
    digest = md5(name.encode(), usedforsecurity=False).hexdigest()[:12]
    return f"{name[: LONGEST_SCHEMA - 13]}_{digest}"


def open_ledger(url: str, root: Path, *, key: str = "ledger", schema: str = "infold") -> SqlLedger:
    """
    The ledger at ``url``; a relative path is the project's (``root``).

    ``key`` is what errors call the place of the URL, and ``schema`` where a ledger on a server is
    in its database. Nothing is opened or created before it is needed.
    """
    plain = url
    if "${" in url:
        from infold.system.secrets import REFERENCE, resolve_url

        # A URL that is a secret as a whole is known only now; others have theirs when they connect.
        plain = resolve_url(url, root, key) if REFERENCE.fullmatch(url.strip()) else url
    scheme, _, place = plain.partition("://")
    if scheme in ("postgresql", "postgresql+psycopg"):
        from infold.ledger.postgresql import LedgerServer, PostgresqlDatabase

        database = PostgresqlDatabase(LedgerServer(url, root, key), schema)
        return SqlLedger(database, end_work=signals.end_children)
    if scheme not in ("sqlite", "sqlite+pysqlite") or not place.startswith("/") or place == "/":
        raise run_errors.ledger_unsupported(key=key, url=url)
    return SqlLedger(root / place[1:])


# A server finishes what a client asked for that has died. So these are in the ledger before
# anything is written by them, and whoever takes the lease over ends them first.

ROW = "infold.remote_sessions"


def kept_sessions(ledger: SqlLedger) -> Sequence[Mapping[str, str]]:
    """Those that may be at work."""
    if not ledger.exists():
        return ()
    with ledger.database.read() as query:
        row = query.one("meta", name=ROW)
    return tuple(json.loads(row[0])) if row else ()


def keep_sessions(ledger: SqlLedger, sessions: Sequence[Mapping[str, str]]) -> None:
    """Let these be the ones that may be at work; with the lease."""
    with ledger.writing("remote_sessions") as query:
        query.run("drop_meta", name=ROW)
        if sessions:
            query.run("add_meta", name=ROW, value=json.dumps(sessions))
