"""
A project compiled: sources, models in dependency order, and the facts about each model's SQL.

:class:`Node` is a model with its inputs resolved (views expanded) and its fingerprint. A source
that models read directly, other than through an ``events`` model, is *landed*: it has a node of its
own (kind ``events``, no unique key, the source's name), so that every other model reads tables
alone. ``analysis`` makes nodes; this file has the values and the graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import reduce
from pathlib import Path

from infold.core.environment import PRODUCTION
from infold.core.erasure import ErasedColumn, RequestColumns
from infold.core.interval import MIN, Ranges
from infold.core.model import SET_ASIDE, Kind, Model, Override, Source
from infold.core.object_store import bucket_url, is_url, split
from infold.core.queries import GroupedQuery, SessionsQuery, VersionedQuery
from infold.core.storages import CATALOG_FILE, SQLITE_FILE, CatalogType
from infold.core.target import Target


@dataclass(frozen=True, slots=True, order=True)
class Bound:
    """
    How far around its cell an output reads an input, in microseconds.

    A cell ``[start, end)`` is made from the input's rows of ``[start - before, end + after)``.
    Either may be negative: a query that shifts times reads a range beside the cell.
    """

    before: int = 0
    after: int = 0

    def widest(self, other: Bound) -> Bound:
        """The wider of two in both directions."""
        return Bound(max(self.before, other.before), max(self.after, other.after))

    def times_read(self, cells: Ranges) -> Ranges:
        """The times of the input that the output's ``cells`` are made from."""
        return cells.widen(self.before, self.after)

    def times_affected(self, times: Ranges) -> Ranges:
        """The times of the output that rows at these times of the input can affect."""
        return times.widen(self.after, self.before)


@dataclass(frozen=True, slots=True)
class Input:
    """
    A stored table (or, for ``events``, a source) that a model reads, views expanded.

    The model's cells depend on ``time_column`` within ``bounds`` (one for each way in which the
    query reads the input). None for a lookup, which is read whole.
    """

    name: str
    time_column: str | None = None
    bounds: tuple[Bound, ...] = (Bound(),)

    def times_read(self, cells: Ranges) -> Ranges:
        """The times of the input that the output's ``cells`` are made from."""
        return Ranges.of(part for bound in self.bounds for part in bound.times_read(cells))

    def times_affected(self, times: Ranges) -> Ranges:
        """The times of the output that rows at these times of the input can affect."""
        return Ranges.of(part for bound in self.bounds for part in bound.times_affected(times))

    @property
    def bound(self) -> Bound:
        """The widest of its bounds in both directions."""
        return reduce(Bound.widest, self.bounds)


@dataclass(frozen=True, slots=True)
class Validity:
    """
    The stretch of time ``[start, end)`` in which a row of a lookup is found, besides by its key.

    ``time`` is SQL over a stored row of the input; ``start`` and ``end`` are columns of the lookup.
    Where ``end`` is NULL, the stretch has no end if it is ``open``, else no time at all.
    """

    time: str
    start: str
    end: str
    open: bool
    passed_on: bool
    """Whether the query makes any other use of ``start`` and ``end``."""


@dataclass(frozen=True, slots=True)
class Match:
    """
    How rows of an input find a row of a lookup: by equal values.

    ``pairs`` are SQL over a stored row of the ``input``, and SQL over one of the ``lookup``, which
    are equal. A row of a lookup that no row of the input matches affects nothing.
    """

    lookup: str
    input: str
    pairs: tuple[tuple[str, str], ...]
    validity: Validity | None = None


@dataclass(frozen=True, slots=True)
class Reference:
    """
    Where a table is named in a model's SQL: ``sql[start:end]`` is the name as written.

    ``bound`` is how much of an input with a time column is read here; None for all that the model
    reads of it anywhere (and for a lookup: all).
    """

    name: str
    start: int
    end: int
    bound: Bound | None = None


class Batches(StrEnum):
    """Whether cells of a model may be built together in one query; as the tool smelt names it."""

    FULLY_BATCH_SAFE = "fully batch safe"
    """Any range in one query, which reads each input row once."""
    BOUNDED_SAFE = "bounded safe"
    """Any range in one query; each batch also reads a bounded range around it."""
    PER_PARTITION_ONLY = "per partition only"
    """One cell in one query: the query's meaning depends on the rows it is given."""


CELLS_TOGETHER = 31
"""Up to so many cells that are computed each by itself are one query and one commit."""

ALL_COLUMNS = ("*",)
"""In place of the columns of a table that its inputs do not determine: its rows are not, either."""


@dataclass(frozen=True, slots=True)
class Node:
    """
    A model in its project.

    ``inputs`` are stored tables (and for ``events`` the source) with views expanded. ``references``
    are the names as written in ``model.sql``, including views; ``reads`` are the distinct
    referenced names. ``columns`` are the output columns known from the SQL, in order.
    """

    model: Model
    inputs: tuple[Input, ...]
    references: tuple[Reference, ...]
    fingerprint: str
    columns: tuple[str, ...]
    source: str | None = None
    """For kind ``events``: the source it ingests."""
    query: SessionsQuery | None = None
    grouped: GroupedQuery | None = None
    versions: VersionedQuery | None = None
    landed: bool = False
    start: int | None = None
    """
    The start of an incremental table's cells, of ingested rows, or of the events of sessions: the
    model's own, or (but for sessions) the project's.
    """
    backfill_limit: int | None = None
    """How much event time of its backfill one run builds: the model's limit, or the project's."""
    overrides_used: tuple[Override, ...] = ()
    """Overrides without which the model would be refused."""
    undetermined: tuple[str, ...] = ()
    """Columns that its inputs do not determine, as an override allows; or ``ALL_COLUMNS``."""
    bounds_declared: bool = False
    """Whether each cell is made from the bounds that the model's author declares, and no more."""
    downgraded: tuple[str, ...] = ()
    """Why the model is refused, where a run was told to build it whole instead."""
    matches: tuple[Match, ...] = ()
    """How lookups are matched, for those that are read in no other way."""
    fills_cells: bool = False
    """Whether cells may have rows where no input has any: days of a calendar, say."""
    filters: tuple[str, ...] = ()
    """
    Filters by the interval of a run (``ts >= @start_ts``), which infold's own filters replace.
    """
    unread_columns: tuple[str, ...] = ()
    """Optional columns of its source that its query does not name."""

    @property
    def name(self) -> str:
        """The model's name."""
        return self.model.name

    @property
    def batches(self) -> Batches:
        """How cells may be built together."""
        by_cell = self.bounds_declared or set(self.overrides_used) - {Override.HAVING}
        if by_cell and self.model.kind.is_by_cell:
            return Batches.PER_PARTITION_ONLY
        if any(bound != Bound() for e in self.inputs for bound in e.bounds):
            return Batches.BOUNDED_SAFE
        return Batches.FULLY_BATCH_SAFE

    @property
    def reads(self) -> tuple[str, ...]:
        """The distinct names in FROM, views not expanded."""
        return tuple(dict.fromkeys(reference.name for reference in self.references))

    def input(self, name: str) -> Input:
        """The input called ``name``. Raises StopIteration where the model does not read it."""
        return next(entry for entry in self.inputs if entry.name == name)

    @property
    def stored_inputs(self) -> tuple[Input, ...]:
        """The inputs that are tables: all but the source of an ``events`` model."""
        return tuple(entry for entry in self.inputs if entry.name != self.source)

    def is_lookup(self, name: str) -> bool:
        """Whether an input is read only to look something up for rows of others."""
        if self.model.kind is Kind.EVENTS:
            return name != self.source
        if self.model.kind in (Kind.TABLE, Kind.VIEW):
            return False
        is_only_input = not self.model.kind.is_by_cell and len(self.inputs) == 1
        return not is_only_input and self.input(name).time_column is None

    @property
    def unmatched_lookups(self) -> tuple[str, ...]:
        """The lookups that make all cells stale with any change."""
        names = (entry.name for entry in self.inputs)
        return tuple(name for name in names if self.is_lookup(name) and not self.matches_of(name))

    @property
    def folded_inputs(self) -> tuple[Input, ...]:
        """The inputs with rows that are folded: all but lookups."""
        return tuple(entry for entry in self.inputs if not self.is_lookup(entry.name))

    def starting(self, at: int) -> Node:
        """The model with no row, or cell, from before an instant, where its start is no later."""
        return self if at <= MIN or (self.start or MIN) >= at else replace(self, start=at)

    def matches_of(self, lookup: str) -> tuple[Match, ...]:
        """How a lookup is matched; empty when its changed rows may affect any cell."""
        return tuple(match for match in self.matches if match.lookup == lookup)


@dataclass(frozen=True, slots=True)
class Stretch:
    """
    Cells of a table that keep the rows of an earlier definition of their model.

    ``project`` has the model by that definition, and the views that the definition reads.
    """

    cells: Ranges
    model: str
    project: Project

    @property
    def node(self) -> Node:
        """The model by the definition in force in these cells."""
        return self.project[self.model]


def starting(stretches: Iterable[Stretch], at: int) -> tuple[Stretch, ...]:
    """Earlier definitions of a model, each as by :meth:`Node.starting`."""
    return tuple(replace(one, project=one.project.starting(one.model, at)) for one in stretches)


@dataclass(frozen=True, slots=True)
class AppliedDefinitions:
    """
    The applied definitions of a target in which `infold apply` applies them.

    ``digests`` are those that the ledger had when the project was read. Of a project that is to be
    applied, ``applies`` are the models with another definition since, new and removed ones among
    them. ``unapplied`` are those with another definition in the files than in the project.
    ``mistakes`` is how many mistakes the files have: then nobody knows which models differ.
    """

    digests: Mapping[str, str]
    applies: tuple[str, ...] = ()
    unapplied: tuple[str, ...] = ()
    mistakes: int = 0


@dataclass(frozen=True, slots=True)
class Project:
    """A whole project, models in dependency order (inputs first)."""

    name: str
    root: Path
    start: int | None
    sources: Mapping[str, Source]
    nodes: tuple[Node, ...]
    target: Target
    targets: Mapping[str, Target] = field(default_factory=dict)
    applied: AppliedDefinitions | None = None
    """Where the definitions come from the ledger: which. None: all come from the files."""
    environment: str = PRODUCTION
    """The environment whose tables are built by it."""
    shared: frozenset[str] = frozenset()
    """Of an environment: the models with tables of production, which are read and not written."""
    set_aside: str = SET_ASIDE
    """The storage name of the table of rows that could not be used."""
    apart: Mapping[str, str] = field(default_factory=dict)
    """
    The models whose changed definition is built in a table of its own, by the key of that table.
    The model itself is by the definition of the table that readers have; so are its readers.
    """
    waits: tuple[str, ...] = ()
    """The models with a wanted definition that waits for one of these: changed readers, and new."""
    erased_columns: Mapping[str, tuple[ErasedColumn, ...]] = field(default_factory=dict)
    """The columns with keys of persons, by source: whoever is erased has no row in it."""
    erasure_requests: tuple[RequestColumns, ...] = ()
    """The sources with rows that are requests to erase."""
    once_complete: Project | None = None
    """The project as it will be when the tables that are built ``apart`` are; None without any."""
    _by_name: Mapping[str, Node] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {node.name: node for node in self.nodes})

    @property
    def applies(self) -> tuple[str, ...]:
        """The models with definitions that are to be applied; see :class:`AppliedDefinitions`."""
        return self.applied.applies if self.applied is not None else ()

    @property
    def unapplied(self) -> tuple[str, ...]:
        """The models with other definitions in the files, which are left alone."""
        return self.applied.unapplied if self.applied is not None else ()

    def retain_of(self, node: Node) -> int | None:
        """How long a model keeps rows after their time, in µs: itself, its source, the target."""
        lengths, source = [node.model.retain], self.sources.get(node.source or node.name)
        if node.model.kind is Kind.EVENTS and source is not None:
            lengths += [source.retain, self.target.retain]
        return min((length for length in lengths if length is not None), default=None)

    def outlived_by(self, node: Node) -> str | None:
        """The events, if any, with rows that are kept for less than a table made of them says."""
        own = node.model.retain
        if own is None or not node.model.kind.is_by_cell:
            return None
        above = self.upstream([node.name])
        for read in (one for one in self if one.name in above and one.model.kind is Kind.EVENTS):
            length = self.retain_of(read)
            if length is not None and length < own:
                return read.name
        return None

    def starting(self, name: str, at: int) -> Project:
        """The project with one of its models as by :meth:`Node.starting`."""
        node = self[name].starting(at)
        if node is self[name]:
            return self
        return replace(self, nodes=tuple(node if one.name == name else one for one in self.nodes))

    def __getitem__(self, name: str) -> Node:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Node]:
        return iter(self.nodes)

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    @property
    def warehouse(self) -> Path:
        """The folder of the tables, absolute; only of a target whose tables are in a folder."""
        assert not self.target.in_store, "its tables are in an object store"
        return (self.root / self.target.warehouse).resolve()

    @property
    def warehouse_location(self) -> str:
        """Where the tables are: an absolute folder, or a URL."""
        return self.target.warehouse if self.target.in_store else str(self.warehouse)

    @property
    def catalog_db(self) -> Path:
        """The SQLite file of a catalog of that type, absolute; by default where the tables are."""
        uri = self.target.catalog.uri
        if self.target.catalog.type is CatalogType.SQLITE and uri:
            return (self.root / uri.removeprefix(SQLITE_FILE)).resolve()
        if self.target.in_store:
            return self.root / ".infold" / "catalog.db"  # of no use: the catalog is a server's
        return self.warehouse / CATALOG_FILE

    @property
    def uses_stores(self) -> bool:
        """Whether tables or files of sources are in an object store."""
        return bool(self.buckets)

    @property
    def buckets(self) -> tuple[str, ...]:
        """The buckets of the tables and of the sources, as URLs."""
        paths = (self.target.warehouse, *(source.path or "" for source in self.sources.values()))
        urls = {bucket_url(path) for path in paths if is_url(path)}
        named = {split(url)[0] for url in urls}
        more = (url for url in self.target.stores.own if split(url)[0] not in named)
        return tuple(sorted({*urls, *more}))

    @property
    def namespace(self) -> str:
        """Where the tables are in their catalog, or in the warehouse if they are found there."""
        return self.name if self.target.by_folders else self.catalog_namespace

    @property
    def catalog_namespace(self) -> str:
        """Where whoever looks into the catalog finds the tables."""
        return self.target.catalog.namespace or self.name

    def upstream(self, names: Iterable[str]) -> frozenset[str]:
        """The models that ``names`` depend on, directly or not, views included."""
        return self._reachable(
            names, lambda name: self._by_name[name].reads if name in self._by_name else ()
        )

    def downstream(self, names: Iterable[str]) -> frozenset[str]:
        """The models that depend on ``names``, directly or not, views included."""
        readers: dict[str, list[str]] = {}
        for node in self.nodes:
            for name in node.reads:
                readers.setdefault(name, []).append(node.name)
        return self._reachable(names, lambda name: readers.get(name, ()))

    def _reachable(
        self, names: Iterable[str], edges: Callable[[str], Iterable[str]]
    ) -> frozenset[str]:
        reached: set[str] = set()
        todo = list(names)
        while todo:
            for name in edges(todo.pop()):
                if name in self._by_name and name not in reached:
                    reached.add(name)
                    todo.append(name)
        return frozenset(reached)
