"""Requests to erase persons: how they are made and kept, and what they must fit."""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from infold.core.erasure import (
    ErasedColumn,
    ErasureRequest,
    KeyForm,
    KeyHasher,
    KnownErasures,
    as_number,
)
from infold.core.interval import DAY, EVER, MAX, Interval, Ranges, instants_of
from infold.core.model import ERASURES, Kind, table_name
from infold.core.project import Node, Project
from infold.core.queries import quoted, text_literal
from infold.messages import command_errors, mismatches
from infold.planning.staleness import affected_cells
from infold.system import secrets

if TYPE_CHECKING:
    from infold.core.ports import Lake, Ledger
    from infold.core.trace import Trace

MOST_KEYS = 1_000_000
"""Up to so many keys are asked for at once: each becomes a row of the ledger, and of a join."""

_LINES = re.compile(r"\r\n|\n|\r")


GIVEN: dict[frozenset[str], tuple[str, ...]] = {}
"""
The keys that this process was given, by their hashes in a request; kept nowhere else.

A run of the same process finds rows by them, before it compares hashes: it is quicker by far.
"""

_AT_ONCE = 500
"""So many keys are looked for by one predicate."""


@dataclass(frozen=True, slots=True)
class StoredRows:
    """
    The rows of persons that an events table has, and the cells that they are in.

    ``rows`` None: the table does not have their keys as they are, so files would be read again.
    ``readers`` are the tables that follow from it.
    """

    model: str
    rows: int | None
    cells: Ranges
    readers: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RewrittenFiles:
    """About how many data files of a table a purge writes again, and their bytes now."""

    model: str
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class AskedErasure:
    """
    A request, the models that have not applied it yet, and whether no file has its rows.

    ``purge_by`` is the instant by which that is to be; None where nothing says it.
    """

    request: ErasureRequest
    pending: tuple[str, ...]
    purged: bool = False
    purge_by: int | None = None


def hasher_of(project: Project, fingerprint: str = "") -> KeyHasher:
    """
    Hashes keys as the target's secret says.

    Raises ``mismatches.erasure_no_secret`` where it names none, ``run_errors.secret_missing`` where
    that is not there, and ``mismatches.erasure_secret_changed`` where it has another
    ``fingerprint`` than the one that is given.
    """
    target = project.target
    if not target.erasure_secret:
        raise mismatches.erasure_no_secret(target=target.name)
    secret = secrets.resolve(target.erasure_secret, project.root, "erasure_secret")
    hasher = KeyHasher.of_secret(secret)
    if fingerprint not in ("", hasher.fingerprint):
        raise mismatches.erasure_secret_changed(target=target.name)
    return hasher


def newest_request(project: Project, known: KnownErasures, node: Node) -> int:
    """The number of the newest request about rows that a model ingests; 0 for none."""
    source = node.source or node.name
    if node.model.kind is not Kind.EVENTS:
        return 0
    return known.newest_of(source, project.erased_columns.get(source, ()))


def unapplied_requests(
    project: Project, node: Node, trace: Trace | None, requests: Iterable[ErasureRequest]
) -> tuple[ErasureRequest, ...]:
    """Those of some requests that a model has yet to apply; none before it is built."""
    source = node.source or node.name
    names = {entry.erasure for entry in project.erased_columns.get(source, ())}
    if trace is None or node.model.kind is not Kind.EVENTS:
        return ()
    return tuple(
        request
        for request in requests
        if request.number > trace.applied_entry
        and request.erasure in names
        and request.is_about(source)
    )


def declared_columns(project: Project) -> Mapping[tuple[str, str], str]:
    """The columns with keys of persons, by erasure and source."""
    return {
        (entry.erasure, source): entry.column
        for source, columns in project.erased_columns.items()
        for entry in columns
    }


def refuse_other_erasures(project: Project, known: KnownErasures) -> None:
    """
    Raise an error where persons were asked to be erased by other columns than are declared now.

    Those that are declared no longer would bring rows back with the next rebuild; those that are
    new have rows of persons that nobody has looked for.
    """
    _refuse_undeclared(project, known)
    asked = {erasure for erasure, _ in known.newest}
    for (erasure, source), column in declared_columns(project).items():
        if erasure in asked and (erasure, source) not in known.columns:
            raise mismatches.erasure_not_applied(erasure=erasure, source=source, column=column)


def _refuse_undeclared(project: Project, known: KnownErasures) -> None:
    declared = declared_columns(project)
    for (erasure, source), column in known.columns.items():
        if source in project.sources and declared.get((erasure, source)) != column:
            raise mismatches.erasure_not_declared(erasure=erasure, source=source, column=column)


def ask_to_erase(
    project: Project,
    ledger: Ledger,
    erasure: str,
    keys: Collection[str],
    *,
    source: str | None = None,
    before: int | None = None,
    reason: str = "",
    id_: str = "",
) -> ErasureRequest:
    """
    Record that the rows with some keys are to be erased; the next run erases them.

    Without keys, all earlier requests apply to the columns that are declared now. Of a ``source``
    alone, and of rows dated ``before`` an instant (µs), where these are given.

    Raises ``command_errors.unknown_erasure``, ``bad_erasure``, and what :func:`hasher_of` and, with
    keys, :func:`refuse_other_erasures` raise.
    """
    _checked(project, erasure, keys, source, before)
    known = ledger.known_erasures()
    (refuse_other_erasures if keys else _refuse_undeclared)(project, known)
    if id_ and any(request.id == id_ for request in ledger.erasures()):
        raise command_errors.bad_erasure(what=f"there is a request {id_} already", fact="")
    hasher = hasher_of(project, known.secret)
    hashes = tuple(text for key in keys for text in hasher.hashes_of(erasure, key))
    request = ErasureRequest(0, id_ or uuid4().hex[:12], erasure, hashes, source, before, reason)
    [kept] = record_requests(project, ledger, hasher, erasure, [(request, tuple(keys))])
    return kept


def record_requests(
    project: Project,
    ledger: Ledger,
    hasher: KeyHasher,
    erasure: str,
    asked: Sequence[tuple[ErasureRequest, tuple[str, ...]]],
) -> Sequence[ErasureRequest]:
    """Give the ledger requests about one erasure, each with the keys that this process knows."""
    known, declared = ledger.known_erasures(), declared_columns(project)
    # Of sources that the project has no longer, the ledger goes on knowing the columns.
    others = {name for name, _ in known.newest} - {erasure}
    columns = {**known.columns, **{k: name for k, name in declared.items() if k[0] not in others}}
    kept = ledger.add_erasures([request for request, _ in asked], columns, hasher.fingerprint)
    if known.columns.items() >= declared.items() or not known.newest:
        for request, keys in asked:
            GIVEN[frozenset(request.keys)] = keys  # else earlier ones are about more columns
    return kept


def stored_rows_of(
    project: Project,
    ledger: Ledger,
    lake: Lake,
    erasure: str,
    keys: Collection[str],
    *,
    source: str | None = None,
    before: int | None = None,
) -> Sequence[StoredRows]:
    """
    The stored rows that a request would erase, by events table; nothing is recorded.

    Rows of files that wait or are set aside are not among them.
    """
    _checked(project, erasure, keys, source, before)
    traces = ledger.traces()
    found = []
    for node in project:
        of = node.source or node.name
        columns = [e for e in project.erased_columns.get(of, ()) if e.erasure == erasure]
        if node.model.kind is not Kind.EVENTS or node.name not in traces or not columns:
            continue
        if source is not None and of != source:
            continue
        readers = project.downstream([node.name])
        stored = tuple(
            one.name for one in project if one.name in readers and one.model.kind.is_stored
        )
        rows = _rows_with_keys(project, lake, node, columns[0], keys, before)
        cells = Ranges.of(rows or ())
        found.append(StoredRows(node.name, None if rows is None else len(rows), cells, stored))
    return found


def rewritten_files(
    project: Project, lake: Lake, stored: Iterable[StoredRows]
) -> Sequence[RewrittenFiles]:
    """
    What a purge writes again once some rows are gone, of the tables that follow too.

    Of these it is as near as a plan is: by the cells that rows at the times of others may be in.
    Rows that are not counted are in no cell.
    """
    touched = {one.model: one.cells for one in stored}
    found = []
    for node in project:
        if not node.model.kind.is_stored:
            continue
        reach = (node.query.gap or 0) if node.query is not None else 0
        times = touched.get(node.name, Ranges()) | Ranges.of(
            part
            for entry in node.stored_inputs
            if touched.get(entry.name)
            for part in affected_cells(node, entry.name, touched[entry.name], reach)
        )
        touched[node.name] = times
        sizes = lake.file_sizes(table_name(node.name), times)
        if sizes:
            found.append(RewrittenFiles(node.name, len(sizes), sum(sizes)))
    return found


def refuse_more_rows(stored: Iterable[StoredRows], max_rows: int) -> None:
    """Raise ``command_errors.erasure_over_budget`` for more rows, or if nobody knows how many."""
    rows = {one.model: one.rows for one in stored}
    if None in rows.values() or sum(number or 0 for number in rows.values()) > max_rows:
        raise command_errors.erasure_over_budget(rows=rows, max_rows=max_rows)


def _rows_with_keys(
    project: Project,
    lake: Lake,
    node: Node,
    erased: ErasedColumn,
    keys: Collection[str],
    before: int | None,
) -> list[Interval] | None:
    """The cell of each stored row that has one of some keys; None where that cannot be seen."""
    from infold.analysis.definitions.column_sources import columns_passed

    source = project.sources[node.source or node.name]
    passed = columns_passed(project, node, source)
    name, series = passed.get(erased.column.lower()), node.model.timeseries
    time = series.event_time_column if series is not None else None
    if name is None or (before is not None and time is None):
        return None
    texts = [text for key in keys if (text := _literal(erased.form, key)) is not None]
    cells: list[Interval] = []
    for at in range(0, len(texts), _AT_ONCE):
        where = f"{quoted(name)} IN ({', '.join(texts[at : at + _AT_ONCE])})"
        table = lake.rows(table_name(node.name), columns=[time or name], where=where)
        if time is None:
            cells += [EVER] * table.num_rows
            continue
        times = instants_of(table, time)
        cells += [_cell(node, one) for one in times if one < (before or MAX)]
    return cells


def _cell(node: Node, at: int) -> Interval:
    granularity = node.model.granularity
    return EVER if granularity is None else granularity.cell(at)


def _literal(form: KeyForm, key: str) -> str | None:
    """A key as SQL has it, in a form; None where it has none."""
    return as_number(key) if form is KeyForm.NUMBER else text_literal(key)


def _checked(
    project: Project,
    erasure: str,
    keys: Collection[str],
    source: str | None,
    before: int | None,
) -> None:
    """Raise the errors of a request that is none."""
    declared = declared_columns(project)
    names = sorted({name for name, _ in declared})
    if erasure not in names:
        raise command_errors.unknown_erasure(name=erasure, known=names)
    sources = sorted(of for name, of in declared if name == erasure)
    if source is not None and source not in sources:
        raise command_errors.bad_erasure(
            what=f"{erasure} has no column of {source}", fact=", ".join(sources)
        )
    if before is not None:
        for of in sources if source is None else [source]:
            if project.sources[of].event_time_column is None:
                raise command_errors.bad_erasure(
                    what=f"rows of {of} have no time, so none is older than another", fact=""
                )
    if len(keys) > MOST_KEYS:
        what = f"{len(keys):,} keys are too many at once"
        raise command_errors.bad_erasure(what=what, fact=f"at most {MOST_KEYS:,}")
    if any(not key for key in keys):
        raise command_errors.bad_erasure(what="an empty text is no key of a person", fact="")


@dataclass(frozen=True, slots=True)
class LostRequests:
    """Requests that their table has and the ledger lacks; their columns, by erasure and source."""

    requests: Sequence[ErasureRequest] = ()
    columns: Mapping[tuple[str, str], str] = field(default_factory=dict)
    secret: str = ""


def lost_requests(ledger: Ledger, lake: Lake) -> LostRequests:
    """What the table of requests has that the ledger does not, as that was lost or put back."""
    if lake.metadata(ERASURES) is None:
        return LostRequests()
    known = {request.number for request in ledger.erasures()}
    keys: dict[int, list[str]] = defaultdict(list)
    rows: dict[int, Mapping[str, Any]] = {}
    for row in lake.rows(ERASURES).to_pylist():
        if row["number"] not in known:
            rows[row["number"]] = row
            keys[row["number"]] += [row["key"]] if row["key"] is not None else []
    if not rows:
        return LostRequests()
    requests = [
        ErasureRequest(
            *(number, row["id"], row["erasure"], tuple(keys[number])),
            *(row["source"], row["before_at"], row["reason"], row["made_at"]),
        )
        for number, row in sorted(rows.items())
    ]
    newest = rows[max(rows)]
    columns = {(erasure, of): column for erasure, of, column in json.loads(newest["columns"])}
    return LostRequests(requests, columns, newest["secret"])


def restore_requests(ledger: Ledger, lost: LostRequests) -> None:
    """Give the ledger the requests that it lacks, with their numbers."""
    columns = {**ledger.known_erasures().columns, **lost.columns}
    ledger.add_erasures(lost.requests, columns, lost.secret)


def keys_in(text: str) -> tuple[str, ...]:
    """The keys of a file, one a line, each once; empty lines are none."""
    return tuple(dict.fromkeys(line for line in _LINES.split(text) if line))


def events_with_keys(project: Project, erasure: str) -> Iterator[tuple[str, str]]:
    """The models that take in rows with keys of an erasure, each with its source."""
    for node in project:
        source = node.source or node.name
        columns = project.erased_columns.get(source, ())
        if node.model.kind is Kind.EVENTS and any(one.erasure == erasure for one in columns):
            yield node.name, source


def list_erasures(project: Project, ledger: Ledger) -> Sequence[AskedErasure]:
    """All requests, the newest first, each with the models that are yet to apply it."""
    traces, requests = ledger.traces(), ledger.erasures()
    pending: dict[int, list[str]] = defaultdict(list)
    for node in project:
        for request in unapplied_requests(project, node, traces.get(node.name), requests):
            pending[request.number].append(node.name)
    purged = ledger.known_erasures().purged
    within = project.target.erasure_purge
    return tuple(
        AskedErasure(
            *(request, tuple(pending[request.number]), request.number <= purged),
            None if within is None or request.number <= purged else request.made_at + within,
        )
        for request in reversed(requests)
    )


def is_purge_due(project: Project, ledger: Ledger, at: int) -> bool:
    """Whether a run that ends at an instant is to purge: a day before a request has to be."""
    within = project.target.erasure_purge
    if within is None:
        return False
    known = ledger.known_erasures()
    if max(known.newest.values(), default=0) <= known.purged:
        return False
    made_at = (one.made_at for one in ledger.erasures() if one.number > known.purged)
    return min(made_at) + within - DAY <= at
