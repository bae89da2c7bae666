"""
The ledger in a database, read: what was built from what, one transaction for each question.

Where there is no ledger yet, reading finds nothing and creates nothing.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

from infold.core.audits import JudgedAudit
from infold.core.definition import Definition
from infold.core.environment import PRODUCTION, Environment, OwnTable, model_of_key
from infold.core.erasure import ErasureRequest, KnownErasures
from infold.core.files import FileCell, IngestedFile
from infold.core.interval import EVER, Interval, Ranges
from infold.core.record import (
    Applied,
    Arrival,
    ForwardOnly,
    QuarantinedSession,
    RunRecord,
    StepRecord,
)
from infold.core.sessions import ManualEntry
from infold.core.swap import DoneSwap
from infold.core.trace import (
    Cause,
    CellChange,
    CellState,
    EarlierCells,
    Pending,
    Retention,
    StoredCells,
    Trace,
    Unchanged,
    Version,
    merge_earlier,
)
from infold.ledger import codec
from infold.ledger.database import (
    ERASURES_ROW,
    PROJECT_ROW,
    PURGED_ROW,
    WAREHOUSE_ROW,
    LedgerDatabase,
    Query,
)
from infold.ledger.lease import refuse_moved
from infold.ledger.table_names import environments, own_tables, swaps

FEW = 200
"""Up to so many keys are asked for one by one; above, everything is read and sifted here."""


class SqlLedgerReader:
    """The queries of ``ports.Ledger``; steps of ``run`` itself are not unfinished ones."""

    def __init__(self, database: LedgerDatabase, run: str = "") -> None:
        self._database = database
        self._run = run

    @property
    def database(self) -> LedgerDatabase:
        """The file or server with the ledger, for what has no statement here (copies, upgrades)."""
        return self._database

    def exists(self) -> bool:
        """Whether there is a ledger."""
        with self._database.read() as query:
            return query.exists

    def step_models(self, steps: Iterable[str]) -> Mapping[str, str]:
        """The models of these steps, as far as they are known."""
        with self._database.read() as query:
            rows = {step: query.one("step", id=step) for step in steps}
        return {step: row[3] for step, row in rows.items() if row is not None}

    def contradictions(self) -> Mapping[str, str]:
        """The tables with rows that contradict each other: what is wrong."""
        with self._database.read() as query:
            return contradictions(query)

    def closed_steps(self, steps: Iterable[str]) -> frozenset[str]:
        """Those that failed or were forgotten: as far as the ledger knows they never happened."""
        with self._database.read() as query:
            rows = [query.one("step", id=step) for step in steps]
        return frozenset(row[0] for row in rows if row and row[5] in ("failed", "forgotten"))

    def owner(self) -> tuple[str, str] | None:
        """
        The project that the ledger belongs to, and its warehouse; None before its first run.

        Raises ``ledger_errors.moved`` for a ledger that was copied to another place.
        """
        with self._database.read() as query:
            refuse_moved(query)
            rows = [query.one("meta", name=name) for name in (PROJECT_ROW, WAREHOUSE_ROW)]
        return (str(rows[0][0]), str(rows[1][0])) if all(rows) else None

    def unfinished(self) -> Sequence[StepRecord]:
        """Steps of earlier runs that are neither done nor closed, oldest first."""
        with self._database.read() as query:
            return tuple(step_of(row) for row in query.all("unfinished", run=self._run))

    def runs(
        self,
        limit: int = 10,
        model: str | None = None,
        run: str | None = None,
        command: str | None = None,
    ) -> Sequence[RunRecord]:
        """
        Past runs with their steps, newest first: those with a step of ``model``, one ``run``, or
        those of a ``command``.

        The outcome of a step that is done comes without changes and files: ask ``changes``.
        """
        with self._database.read() as query:
            if run is not None:
                rows = query.all("run", id=run)
            elif command is not None:
                rows = query.all("runs_of_command", command=command, limit=limit)
            elif model is not None:
                rows = query.all("runs_of_model", model=model, limit=limit)
            else:
                rows = query.all("runs", limit=limit)
            return tuple(run_of(row, query.all("steps_of_run", run=row[0])) for row in rows)

    def files(self, model: str, ids: Iterable[int] | None = None) -> Sequence[IngestedFile]:
        """The files with rows in a model's table now, or those with these ids, by id."""
        chosen = None if ids is None else sorted(set(ids))
        with self._database.read() as query:
            if chosen is not None and len(chosen) <= FEW:
                rows = [row for id_ in chosen for row in query.all("file", model=model, file=id_)]
            else:
                rows = query.all("files", model=model)
                if chosen is not None:
                    keep = frozenset(chosen)
                    rows = [row for row in rows if row[0] in keep]
        return tuple(IngestedFile(*row) for row in rows)

    def file_versions(self, model: str) -> Mapping[str, tuple[str, int]]:
        """The fingerprint and the id of each file with rows in a model's table, by path."""
        with self._database.read() as query:
            rows = query.all("file_versions", model=model)
        return {path: (fingerprint, id_) for path, fingerprint, id_ in rows}

    def files_due(self, model: str, until: int) -> tuple[IngestedFile, ...]:
        """The files with rows that wait for an instant up to ``until``, by id."""
        with self._database.read() as query:
            rows = query.all("files_due", model=model, until=until)
        return tuple(IngestedFile(*row) for row in rows)

    def files_set_aside(self, model: str) -> Sequence[IngestedFile]:
        """The files with rows that are set aside, by id."""
        with self._database.read() as query:
            rows = query.all("files_set_aside", model=model)
        return tuple(IngestedFile(*row) for row in rows)

    def file_cells(self, model: str, files: Iterable[int] | None = None) -> Sequence[FileCell]:
        """The cells that files have rows in; all of the model's files when ``files`` is None."""
        chosen = None if files is None else sorted(set(files))
        with self._database.read() as query:
            if chosen is not None and len(chosen) <= FEW:
                rows = [
                    row
                    for file in chosen
                    for row in query.all("cells_of_file", model=model, file=file)
                ]
            else:
                rows = query.all("file_cells", model=model)
                if chosen is not None:
                    keep = frozenset(chosen)
                    rows = [row for row in rows if row[0] in keep]
        return tuple(
            FileCell(file, Interval(start, end), count, dropped)
            for file, start, end, count, dropped in rows
        )

    def traces(self) -> Mapping[str, Trace]:
        """The trace of every model that was ever built."""
        with self._database.read() as query:
            traces = {model: Trace(model, text) for model, text in query.all("traces")}
            definitions: dict[str, list[tuple[Interval, str]]] = {}
            # A table that was replaced still has inputs and the like, as long as it is kept.
            for model, start, end, digest in _rows_of(traces, query.all("trace_definitions")):
                definitions.setdefault(model, []).append((Interval(start, end), digest))
            for model, parts in definitions.items():
                traces[model] = _with_definitions(traces[model], parts)
            for model, newest in _rows_of(traces, query.all("trace_entries")):
                traces[model] = replace(traces[model], applied_entry=newest)
            for model, *instants in _rows_of(traces, query.all("trace_retention")):
                traces[model] = replace(traces[model], retention=Retention(*instants))
            for model, name, version in _rows_of(traces, query.all("trace_inputs")):
                traces[model].inputs[name] = version
            pending: dict[str, dict[int, tuple[Cause, list[Interval]]]] = {}
            for model, seq, start, end, cause in _rows_of(traces, query.all("trace_pending")):
                entry = pending.setdefault(model, {}).setdefault(seq, (Cause(cause), []))
                entry[1].append(Interval(start, end))
        for model, entries in pending.items():
            ranges = tuple(Pending(cause, Ranges(tuple(at))) for cause, at in entries.values())
            traces[model] = replace(traces[model], pending=ranges)
        return traces

    def definitions(self, digests: Iterable[str]) -> Mapping[str, Definition]:
        """The definitions with these digests, as far as they were kept."""
        from infold.core.definition import definition_of_text

        with self._database.read() as query:
            rows = {digest: query.one("definition", digest=digest) for digest in digests}
        return {
            digest: definition_of_text(row[0]) for digest, row in rows.items() if row is not None
        }

    def kept_at(self, digest: str) -> int | None:
        """When a definition was first kept."""
        with self._database.read() as query:
            row = query.one("definition_kept_at", digest=digest)
        return None if row is None else int(row[0])

    def applied(self, environment: str = PRODUCTION) -> Mapping[str, Applied]:
        """The definition that runs use for each model, and since when."""
        with self._database.read() as query:
            rows = query.all("applied", environment=environment)
        return {model: Applied(digest, at) for model, digest, at in rows}

    def forward_only(self) -> Mapping[str, ForwardOnly]:
        """The forward-only changes that are yet to be carried out."""
        with self._database.read() as query:
            rows = query.all("forward_only")
        return {model: ForwardOnly(digest, at) for model, digest, at in rows}

    def environments(self) -> Mapping[str, Environment]:
        """All environments with their tables, by name; what is built apart is none of them."""
        with self._database.read() as query:
            return environments(query)

    def own_tables(self) -> Mapping[str, tuple[OwnTable, ...]]:
        """The tables with keys of their own, by environment, and those that are built apart."""
        with self._database.read() as query:
            return own_tables(query)

    def swaps(self) -> Sequence[DoneSwap]:
        """The swaps whose replaced tables are kept, newest first."""
        with self._database.read() as query:
            return swaps(query)

    def newest_versions(self) -> Mapping[str, Version]:
        """The newest version of every table."""
        with self._database.read() as query:
            return {row[0]: _version_of(row) for row in query.all("heads")}

    def versions(self, table: str, since: int = 0) -> Sequence[Version]:
        """Versions of a table newer than ``since``, oldest first."""
        with self._database.read() as query:
            rows = query.all("versions", table_name=table, since=since)
            return tuple(_version_of(row) for row in rows)

    def changes(self, table: str, since: int) -> Sequence[CellChange]:
        """Changes by versions newer than ``since``, in version order (not netted)."""
        by_version = self.changes_by_version(table, since)
        return tuple(change for changes in by_version.values() for change in changes)

    def changes_by_version(self, table: str, since: int) -> Mapping[int, Sequence[CellChange]]:
        """Changes by versions newer than ``since``, by version (not netted)."""
        with self._database.read() as query:
            rows = query.all("changes", table_name=table, since=since)
        by_version: dict[int, list[CellChange]] = {}
        for version, start, end, *rest in rows:
            by_version.setdefault(version, []).append(CellChange(Interval(start, end), *rest))
        return by_version

    def unchanged(self, table: str, since: int) -> Mapping[int, Sequence[Unchanged]]:
        """What versions newer than ``since`` left unchanged, by version."""
        with self._database.read() as query:
            rows = query.all("unchanged", table_name=table, since=since)
        parts: dict[tuple[int, str], list[Interval]] = {}
        for version, columns, start, end in rows:
            parts.setdefault((version, columns), []).append(Interval(start, end))
        by_version: dict[int, list[Unchanged]] = {}
        for (version, columns), cells in parts.items():
            entry = Unchanged(frozenset(json.loads(columns)), Ranges(tuple(cells)))
            by_version.setdefault(version, []).append(entry)
        return by_version

    def versions_losing_rows(self, table: str, within: Interval) -> Sequence[int]:
        """The versions with which cells that overlap ``within`` lost rows, oldest first."""
        with self._database.read() as query:
            rows = query.all("losing", table_name=table, since=within.start, until=within.end)
        return tuple(version for (version,) in rows)

    def cells(self, table: str, within: Ranges | None = None) -> Sequence[CellState]:
        """The non-empty cells of a table now, in order; those that overlap ``within``."""
        with self._database.read() as query:
            if within is not None and len(within) <= FEW:
                # A cell that two ranges touch is found twice, and kept once.
                by_cell = {
                    row[:2]: row
                    for part in within
                    for row in query.all(
                        "cells_between", table_name=table, since=part.start, until=part.end
                    )
                }
                rows = [by_cell[key] for key in sorted(by_cell)]
            else:
                rows = query.all("cells", table_name=table)
        cells = (
            CellState(Interval(start, end), count, content, last)
            for start, end, count, content, last in rows
        )
        return tuple(cell for cell in cells if within is None or within.overlaps(cell.cell))

    def stored(self) -> Mapping[str, StoredCells]:
        """
        The non-empty cells of each table in short; of those that have any.

        They are added up by the database, but of tables with gaps between them, and of damaged
        ones, whose sums are no whole numbers.
        """
        with self._database.read() as query:
            sums = query.all("stored")
        by_table = {}
        for table, start, end, length, rows, last in sums:
            if length == end - start and not isinstance(rows, float):
                by_table[table] = StoredCells(Ranges((Interval(start, end),)), int(rows), last)
                continue
            cells = self.cells(table)
            by_table[table] = StoredCells(
                Ranges.of(cell.cell for cell in cells),
                sum(cell.rows for cell in cells),
                max((cell.last for cell in cells if cell.last is not None), default=None),
            )
        return by_table

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

    def entries(self, model: str) -> Sequence[ManualEntry]:
        """The manual entries of a model's quarantine, by number."""
        with self._database.read() as query:
            rows = query.all("entries", model=model)
        return tuple(
            ManualEntry(number, owner, None if held is None else bool(held), *rest)
            for number, owner, held, *rest in rows
        )

    def audits(self) -> Sequence[JudgedAudit]:
        """What audits found of the rows that steps write, and of stored rows, by model."""
        from infold.ledger.codec import all_audits

        with self._database.read() as query:
            return all_audits(query)

    def newest_entries(self) -> Mapping[str, int]:
        """The number of the newest manual entry of each model that has any."""
        with self._database.read() as query:
            return dict(query.all("newest_entries"))

    def known_erasures(self) -> KnownErasures:
        """What is known of requests to erase, without their keys."""
        with self._database.read() as query:
            newest = query.all("newest_erasures")
            if not newest:
                return KnownErasures({}, {})
            columns = query.all("erasure_columns")
            secret = query.one("meta", name=ERASURES_ROW)
            purged = query.one("meta", name=PURGED_ROW)
        return KnownErasures(
            {(erasure, source): number for erasure, source, number in newest},
            {(erasure, source): column for erasure, source, column in columns},
            "" if secret is None else secret[0],
            () if purged is None else codec.load_purges(purged[0]),
        )

    def erasures(self, after: int = 0) -> Sequence[ErasureRequest]:
        """The requests to erase with a greater number, with their keyed hashes, by number."""
        with self._database.read() as query:
            keys: dict[int, list[str]] = defaultdict(list)
            for number, key in query.all("erased_keys", after=after):
                keys[number].append(key)
            return tuple(
                ErasureRequest(number, id_, erasure, tuple(keys.get(number, ())), *rest)
                for number, id_, erasure, *rest in query.all("erasures", after=after)
            )

    def locations(self) -> Mapping[str, str]:
        """Where the metadata of tables was when a run last ended."""
        with self._database.read() as query:
            return dict(query.all("locations"))

    def run_heads(self, limit: int) -> Sequence[RunRecord]:
        """The newest runs, without their steps."""
        with self._database.read() as query:
            return tuple(run_of(row, ()) for row in query.all("runs", limit=limit))

    def steps_by_id(self, ids: Iterable[str]) -> Mapping[str, StepRecord]:
        """The steps with these ids, as far as they are known."""
        with self._database.read() as query:
            rows = {id_: query.one("step", id=id_) for id_ in dict.fromkeys(ids)}
        return {id_: step_of(row) for id_, row in rows.items() if row is not None}

    def definition_history(self) -> Sequence[tuple[str, str, int]]:
        """Every definition that was kept: its model, its digest, and since when; oldest first."""
        with self._database.read() as query:
            return tuple((name, digest, at) for name, digest, at in query.all("definition_history"))


def _with_definitions(trace: Trace, digests: Iterable[tuple[Interval, str]]) -> Trace:
    """A trace with its definitions: the newest is the one that holds for times without end."""
    digests = tuple(digests)
    newest = next((digest for part, digest in digests if part.end == EVER.end), "")
    cells = (EarlierCells(Ranges((part,)), digest) for part, digest in digests)
    return replace(trace, definition=newest, earlier=merge_earlier(cells, newest))


def _rows_of(models: Container[str], rows: Iterable[Sequence[Any]]) -> Iterator[Sequence[Any]]:
    """The rows of these models, which come first in them."""
    return (row for row in rows if row[0] in models)


def _version_of(row: Sequence[Any]) -> Version:
    table, number, snapshot, step, run, committed_at, rows, whole = row
    return Version(table, number, snapshot, step, run, committed_at, rows, bool(whole))


def run_of(row: Sequence[Any], steps: Iterable[Sequence[Any]]) -> RunRecord:
    """A row of ``runs`` with those of its steps, as a value."""
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
        steps=tuple(step_of(step) for step in steps),
    )


def step_of(row: Sequence[Any]) -> StepRecord:
    """A row of ``steps`` as a value."""
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


# What is written twice is compared, by sums: a table's rows are in its cells and in its newest
# version, and what a version changed adds up to the difference to the one before. That finds rows
# that are gone. It is no proof that none is: `infold verify` compares the tables themselves.

_SELECT_VERSIONS = (
    "SELECT table_name, number, rows, snapshot FROM versions ORDER BY table_name, number"
)
_SELECT_CELLS = 'SELECT table_name, sum("rows") FROM cells GROUP BY table_name'
_SELECT_CHANGES = (
    "SELECT table_name, version, sum(added) - sum(removed) FROM changes "
    "GROUP BY table_name, version"
)
_SELECT_KEPT = "SELECT table_key FROM kept_tables WHERE table_key IS NOT NULL"
_SELECT_TRACES = "SELECT model, fingerprint FROM traces"
_SELECT_INPUTS = "SELECT model, input, version FROM trace_inputs"
_SELECT_FILES = "SELECT DISTINCT model FROM ingests WHERE file NOT IN (SELECT id FROM files)"
_SELECT_CELLS_OF_FILES = (
    "SELECT DISTINCT of.model FROM file_cells AS of LEFT JOIN ingests AS taken "
    "ON taken.model = of.model AND taken.file = of.file WHERE taken.file IS NULL"
)

Versions = Mapping[str, list[tuple[int, int, Any]]]
"""Number, rows and snapshot of each version, by table."""


def contradictions(query: Query) -> Mapping[str, str]:
    """The tables with rows that contradict each other: what is wrong, in words."""
    wrong: dict[str, str] = {}
    versions: dict[str, list[tuple[int, int, Any]]] = defaultdict(list)
    for table, number, rows, snapshot in query.stream(_SELECT_VERSIONS):
        versions[table].append((number, rows, snapshot))
    # Of a table that was replaced and is kept, versions and trace are elsewhere.
    kept_tables = {key for (key,) in query.stream(_SELECT_KEPT)}
    for table, why in (
        *_of_versions(query, versions),
        *_of_traces(query, versions),
        *_of_files(query),
    ):
        if table not in kept_tables:
            wrong.setdefault(table, why)
    return wrong


def _of_versions(query: Query, versions: Versions) -> Iterator[tuple[str, str]]:
    """Versions that are missing, or that cells and changes do not add up to."""
    traces = {model for model, _ in query.stream(_SELECT_TRACES)}
    cells = {table: int(rows) for table, rows in query.stream(_SELECT_CELLS)}
    changed: dict[str, dict[int, int]] = defaultdict(dict)
    for table, number, rows in query.stream(_SELECT_CHANGES):
        changed[table][number] = int(rows)
    read: dict[str, int] = {}
    for _, name, version in query.stream(_SELECT_INPUTS):
        read[name] = min(version, read.get(name, version))
    for table, own in versions.items():
        in_cells, rows = cells.get(table, 0), own[-1][1]
        if in_cells != rows and table in traces:  # a model that left the project has no cells
            yield table, f"its cells have {in_cells:,} rows, and its newest version {rows:,}"
        since = read.get(table, own[-1][0])
        for (_, before, _), (number, rows, _) in pairwise(own):
            if number > since and changed[table].get(number, 0) != rows - before:
                yield table, f"the changes of version {number} do not add up"
    for table in (cells.keys() | changed.keys()) - versions.keys():
        yield table, "its versions are missing"


def _of_traces(query: Query, versions: Versions) -> Iterator[tuple[str, str]]:
    """Traces that are missing, or that name versions which are not there."""
    traces = {model for model, _ in query.stream(_SELECT_TRACES)}
    newest = {table: own[-1][0] for table, own in versions.items()}
    for model, name, version in query.stream(_SELECT_INPUTS):
        # An environment that got another table erases what was known of the one before.
        erased = name not in newest and model_of_key(name) != name
        if version > newest.get(name, 0) and not erased:
            yield model, f"it was built from version {version} of {name}, which is missing"
        if model not in traces:
            yield model, "its trace is missing"


def _of_files(query: Query) -> Iterator[tuple[str, str]]:
    """Files that are missing where something else is known of them."""
    for (model,) in query.stream(_SELECT_FILES):
        yield model, "files that it was built from are missing"
    for (model,) in query.stream(_SELECT_CELLS_OF_FILES):
        yield model, "files with rows in it are missing"


# `reader.runs` reads every step of each run, which is what a history prints and more than a list of
# runs needs.
