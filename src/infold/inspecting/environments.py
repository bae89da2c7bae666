"""
A target's environment as its files and its ledger make it: what is its own, and its project.

A model is production's if its definition gives the same rows, and if what it reads is production's
as far as it reads it. That is proven by definitions (columns that a change is proven to keep), or
seen by contents, once the environment's table of an input is up to date: equal cells have equal
rows. Until then its readers wait (:func:`own_models`).

:func:`variant` is made before a run, and once more when the run has the lease: everything that it
follows from has to be the same.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from hashlib import sha256
from types import MappingProxyType
from typing import TYPE_CHECKING

from infold.analysis.renamed_tables import renamed
from infold.core.definition import Category, Definition, How, Redefinition, digest_of
from infold.core.environment import Environment, OwnTable, set_aside_of, tables_from_now_on
from infold.core.model import table_name
from infold.core.plan import Observations, Plan
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.target import Apply
from infold.core.trace import Trace
from infold.messages import environment_errors
from infold.messages.errors import InfoldErrors
from infold.planning.forward_only import without_earlier_cells
from infold.running.table_names import free_key, table_keys

if TYPE_CHECKING:
    from infold.analysis.definitions.columns_read import ColumnsRead
    from infold.analysis.definitions.meanings import Meanings

# A table counts only if the definition that built it is known, and is understood here as it was
# then. One that does not count is, to an environment, as if it were not there.


@dataclass(frozen=True, slots=True)
class Production:
    """
    Production's tables that are there: ``project`` has no other, and the views between them.

    ``digests`` are those of the definitions that built them, by model. ``stretched`` are the traces
    of tables with cells of earlier definitions: what is proven of a definition is not, of these.
    """

    project: Project
    digests: Mapping[str, str]
    stretched: Mapping[str, Trace]


def production(
    declared: Project, definitions: Mapping[str, Definition], ledger: Ledger
) -> Production:
    """
    What there is in production; ``definitions`` are those of the ``declared`` project.

    Where both have the same definitions, nothing is compiled.
    """
    traces = ledger.traces()
    kept = _kept(ledger, traces, definitions)
    equal = {name for name, one in kept.items() if definitions.get(name) == one}
    if len(equal) == len(kept):
        project: Project | None = replace(
            declared, nodes=tuple(node for node in declared if node.name in kept)
        )
    else:
        project = _compiled(declared, kept)
    if project is None:  # together they are not understood; those in the files are
        project = replace(declared, nodes=tuple(node for node in declared if node.name in equal))
    with_tables = _with_tables(project, traces)
    digests = {node.name: digest_of(kept[node.name]) for node in with_tables}
    stretched = {name: traces[name] for name in digests if name in traces and traces[name].earlier}
    return Production(with_tables, digests, stretched)


def _kept(
    ledger: Ledger, traces: Mapping[str, Trace], definitions: Mapping[str, Definition]
) -> dict[str, Definition]:
    """The definition of each table and view of production, as far as it is known."""
    keys = table_keys(ledger)
    digests = {name: entry.digest for name, entry in ledger.applied().items()}
    built = {name: one for name, one in traces.items() if name not in keys}
    digests |= {name: one.definition for name, one in built.items() if one.definition}
    by_digest = {digest_of(definition): definition for definition in definitions.values()}
    by_digest |= ledger.definitions(frozenset(digests.values()) - by_digest.keys())
    known = {name: by_digest[one] for name, one in digests.items() if one in by_digest}
    for name, trace in built.items():  # of an infold that kept no definition
        declared = definitions.get(name)
        if not trace.definition and declared and declared.fingerprint == trace.fingerprint:
            known[name] = declared
    return known


def _compiled(declared: Project, kept: Mapping[str, Definition]) -> Project | None:
    from infold.declare.from_definitions import project_of_definitions

    try:
        project = project_of_definitions(declared, kept, {})
    except InfoldErrors:
        return None
    return replace(project, nodes=tuple(node for node in project if _as_kept(node, kept)))


def _as_kept(node: Node, kept: Mapping[str, Definition]) -> bool:
    definition = kept.get(node.name)
    return definition is not None and definition.fingerprint == node.fingerprint


def _with_tables(project: Project, traces: Mapping[str, Trace]) -> Project:
    """The tables that are as their definitions say, and views, if all that they read is there."""
    there: list[Node] = []
    names: set[str] = set()
    for node in project:
        reads = {name for name in node.reads if name not in project.sources}
        if node.model.kind.is_stored:
            trace = traces.get(node.name)
            if trace is None or trace.fingerprint != node.fingerprint:
                continue
            reads |= {entry.name for entry in node.stored_inputs}
        if reads <= names:
            there.append(node)
            names.add(node.name)
    return replace(project, nodes=tuple(there))


@dataclass(frozen=True)
class Variant:
    """
    An environment: its project, and how that was decided.

    ``tables`` are its own now; those of an earlier time that it still has are not ``current``.
    """

    project: Project
    declared: Project
    definitions: Mapping[str, Definition]
    production: Production
    decided: OwnModels
    tables: tuple[OwnTable, ...]

    @property
    def models(self) -> Mapping[str, str]:
        """The names of its models, by the keys of their tables and the names of its views."""
        views = view_names(self.declared, self.production.project, self.own)
        return {key: model for model, key in (*self.own.items(), *views.items())}

    @property
    def own(self) -> Mapping[str, str]:
        """The keys of its tables, by model."""
        return {table.model: table.key for table in self.tables if table.current}

    @property
    def to_build(self) -> frozenset[str]:
        """The keys of the tables that are decided on."""
        return frozenset(self.own[model] for model in self.decided.identities)

    @property
    def follows_from(self) -> object:
        """Everything that another run might have changed."""
        return self.production.digests, self.decided.identities, self.tables

    def up_to_date(self, observed: Observations, plan: Plan) -> frozenset[str]:
        """The identities of its tables for which a plan has nothing to do."""
        busy = {*plan.refused, *(step.model for step in plan.steps)}
        identities = set()
        for model, identity in self.decided.identities.items():
            key = self.own[model]
            trace = observed.models[key].trace
            is_built = trace is not None and trace.fingerprint == self.project[key].fingerprint
            if is_built and trace is not None and not trace.pending and key not in busy:
                identities.add(identity)
        return frozenset(identities)


def variant(
    name: str,
    declared: Project,
    ledger: Ledger,
    lake: Lake,
    up_to_date: Collection[str] = (),
    *,
    assume: bool = False,
) -> Variant:
    """
    An environment by the ``declared`` definitions.

    ``up_to_date`` are the identities of tables with contents that can be compared with
    production's. With ``assume``, other tables count as different.
    """
    from infold.declare.definitions import definitions_of

    definitions = definitions_of(declared)
    live = production(declared, definitions, ledger)
    tables_before = ledger.own_tables().get(name, ())
    known = {one.identity: one for one in tables_before}

    def equal_rows(model: str, identity: str) -> bool | None:
        if identity not in up_to_date or identity not in known:
            return None
        return same_contents(ledger, lake, model, known[identity].key)

    decided = own_models(
        declared, live.project, equal_rows, assume=assume, stretched=live.stretched
    )
    digests = {model: digest_of(definitions[model]) for model in definitions}
    names = {node.name for project in (declared, live.project) for node in project}
    tables = tables_from_now_on(
        decided.identities,
        tables_before,
        digests,
        live.digests,
        partial(free_key, ledger=ledger, lake=lake, names=names),
        decided.waiting,
    )
    keys = {one.model: one.key for one in tables if one.model in decided.identities and one.current}
    project = in_environment(name, declared, live.project, keys)
    return Variant(project, declared, definitions, live, decided, tables)


def stored_variant(name: str, declared: Project, ledger: Ledger) -> Variant:
    """
    An environment as it was run last, whatever the files have since.

    Raises ``unknown_environment``, or ``environment_unknown``.
    """
    from infold.declare.definitions import definitions_of
    from infold.declare.from_definitions import project_of_definitions

    known = ledger.environments()
    if name not in known:
        target = declared.target.name
        raise environment_errors.unknown_environment(name=name, target=target, known=known)
    digests = {model: entry.digest for model, entry in ledger.applied(name).items()}
    kept = ledger.definitions(digests.values())
    definitions = {model: kept[digest] for model, digest in digests.items() if digest in kept}
    if definitions != definitions_of(declared):
        try:
            declared = project_of_definitions(declared, definitions, {})
        except InfoldErrors as error:
            raise environment_errors.environment_unknown(name=name, why=error.what) from error
    live = production(declared, definitions, ledger)
    tables = known[name].tables
    own = {model: key for model, key in known[name].own.items() if model in declared}
    decided = OwnModels({table.model: table.identity for table in tables if table.model in own})
    project = in_environment(name, declared, live.project, own)
    return Variant(project, declared, definitions, live, decided, tables)


def same_contents(ledger: Ledger, lake: Lake, model: str, key: str) -> bool:
    """Whether two tables have the same columns, and cells with the same rows."""
    old, new = ({c.cell: (c.rows, c.content) for c in ledger.cells(t)} for t in (model, key))
    return old == new and _columns(lake, model) == _columns(lake, key)


def _columns(lake: Lake, model: str) -> Sequence[tuple[str, str]]:
    schema = lake.rows(table_name(model), limit=0).schema
    return [(field.name, str(field.type)) for field in schema]


def recorded(
    variant: Variant, known: Environment | None, owner: str, now: int, lifetime: int | None
) -> Environment:
    """The environment as the ledger keeps it when a run of it begins."""
    name = variant.project.environment
    environment = known or Environment(name, owner, now)
    return replace(
        environment,
        expires_at=None if lifetime is None else now + lifetime,
        last_run_at=now,
        built_at=None,
        tables=variant.tables,
    )


# It is a project like any other, so whatever plans, builds, verifies and shows a project does that
# to an environment. Production's models are in it as far as own ones read them; they are `shared`.


def in_environment(
    name: str, declared: Project, production: Project, own: Mapping[str, str]
) -> Project:
    """
    The project of the environment ``name``; ``own`` has the keys of its tables by model.

    The other models that those read are as ``production`` has them.
    """
    views = view_names(declared, production, own)
    names = {**own, **views}
    nodes = [
        copy for node in declared if node.name in names for copy in _copies(node, names, declared)
    ]
    shared = tuple(_shared(production, nodes))
    target = replace(declared.target, protected=False, apply=Apply.AUTO)
    return replace(
        declared,
        sources={**production.sources, **declared.sources},
        nodes=(*shared, *nodes),
        target=target,
        applied=None,
        environment=name,
        shared=frozenset(node.name for node in shared),
        set_aside=set_aside_of(name),
    )


def view_names(declared: Project, production: Project, own: Mapping[str, str]) -> Mapping[str, str]:
    """New names for the views that are not production's, or that read own tables."""
    names: dict[str, str] = {}
    for node in declared:
        if node.model.kind.is_stored:
            continue
        is_shared = node.name in production and production[node.name] == node
        if not is_shared or any(name in own or name in names for name in node.reads):
            names[node.name] = f"{node.name}__{node.fingerprint[:8]}"
    return names


def _copies(node: Node, names: Mapping[str, str], declared: Project) -> Iterator[Node]:
    """
    A model under its new name.

    Of an events model, before it come copies of the views that it reads its source through. They
    read the source itself; to all others these views show the table that it lands in.
    """
    views = _views_of_source(node, declared) if node.source in names else []
    inside = {one.name: f"{one.name}__{names[node.name]}" for one in views}
    without_source = {old: new for old, new in names.items() if old != node.source} | inside
    for view in views:
        yield renamed(view, inside[view.name], without_source)
    yield renamed(node, names[node.name], without_source if views else names)


def _views_of_source(node: Node, declared: Project) -> list[Node]:
    """The views through which an events model reads its source."""
    if node.source is None or node.source in node.reads:
        return []
    upstream = declared.upstream([node.name])
    return [
        one
        for one in declared
        if one.name in upstream
        and one.model.kind.is_view
        and any(entry.name == node.source for entry in one.inputs)
    ]


def _shared(production: Project, nodes: Iterable[Node]) -> Iterator[Node]:
    """The tables of production that some nodes read, with the views in between, in order."""
    needed = {name for node in nodes for name in node.reads}
    needed |= {entry.name for node in nodes for entry in node.stored_inputs}
    needed |= {name for node in nodes for one in node.model.audits for name in one.reads(node.name)}
    for node in reversed(production.nodes):  # readers before what they read
        if node.name in needed and node.model.kind.is_view:
            needed |= {*node.reads, *(entry.name for entry in node.stored_inputs)}
    return (node for node in production if node.name in needed)


# Which models need tables of their own.

EqualRows = Callable[[str, str], bool | None]
"""
Whether an environment's table has the rows of production's, by model and identity of the table.

None: that is not known yet, as the table is not up to date.
"""


@dataclass(frozen=True, slots=True)
class OwnModels:
    """
    The models with tables of their own, and the identities of these.

    Of ``waiting`` models that is not known before the tables that they read are built. ``changes``
    are the definitions that give other rows than production's.
    """

    identities: Mapping[str, str]
    waiting: tuple[str, ...] = ()
    changes: tuple[Redefinition, ...] = ()


def own_models(
    declared: Project,
    production: Project,
    equal_rows: EqualRows,
    *,
    assume: bool = False,
    stretched: Mapping[str, Trace] = MappingProxyType({}),
) -> OwnModels:
    """
    Decide in dependency order. With ``assume``, rows not known yet count as different.

    ``stretched`` are traces of production's tables with cells of earlier definitions, which a
    changed model does not have.
    """
    decision = _Decision(declared, production, equal_rows, assume=assume, stretched=stretched)
    for node in declared:
        decision.add(node)
    changes = (*decision.changes.values(), *decision.removed())
    return OwnModels(decision.identities, tuple(decision.waiting), changes)


@dataclass(slots=True)
class _Comparison:
    """The definitions of both projects, compared and looked into when that is needed."""

    declared: Project
    production: Project
    found: dict[str, Redefinition | None] = field(default_factory=dict)
    _meanings: list[Meanings] = field(default_factory=list)
    _reads: list[ColumnsRead] = field(default_factory=list)

    def change(self, node: Node) -> Redefinition | None:
        """What differs from production's definition; None for nothing."""
        from infold.analysis.definitions.compare import redefinition
        from infold.analysis.definitions.meanings import Meanings

        if self._is_same(node.name):
            return None
        if not self._meanings:
            projects = (self.production, self.declared)
            self._meanings += [Meanings.of(one, one.sources) for one in projects]
        old, new = self._meanings
        return redefinition(old[node.name], new[node.name])

    def _is_same(self, name: str) -> bool:
        """Whether a model is the same to the letter, with all views that it reads."""
        known = name in self.production and name in self.declared
        if not known or self.production[name] != self.declared[name]:
            return False
        reads = (self.declared[one] for one in self.declared[name].reads if one in self.declared)
        return all(self._is_same(one.name) for one in reads if one.model.kind.is_view)

    def columns_read(self, reader: str, name: str) -> frozenset[str] | None:
        """The columns that production's model reads of an input; None: all."""
        from infold.analysis.definitions.columns_read import ColumnsRead

        if reader not in self.production:
            return None
        if all(entry.name != name for entry in self.production[reader].stored_inputs):
            return frozenset()
        if not self._reads:
            self._reads.append(ColumnsRead(self.production))
        return self._reads[0](reader, name)


def changed_models(
    declared: Project, production: Project, models: Iterable[str]
) -> tuple[Redefinition, ...]:
    """What differs from production's definitions, of those of the models that it has."""
    comparison = _Comparison(declared, production)
    changes = (comparison.change(declared[name]) for name in models if name in production)
    return tuple(change for change in changes if change is not None)


@dataclass
class _Decision:
    declared: Project
    production: Project
    equal_rows: EqualRows
    assume: bool
    stretched: Mapping[str, Trace]
    identities: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)
    changes: dict[str, Redefinition] = field(default_factory=dict)
    _kept: dict[str, frozenset[str]] = field(default_factory=dict)
    """The columns of own tables that are proven to have production's values in the same rows."""

    @cached_property
    def _comparison(self) -> _Comparison:
        return _Comparison(self.declared, self.production)

    def add(self, node: Node) -> None:
        """Decide about one model, after those that it reads."""
        change = self._change(node)
        if change is not None and not same_rows(change):
            self.changes[node.name] = change
        if node.model.kind.is_view:
            return
        is_known = node.name in self.production
        differs = not is_known or (change is not None and not same_rows(change))
        reads = [entry.name for entry in node.stored_inputs]
        are_shared = [] if differs else [self._is_shared(node, name) for name in reads]
        if any(name in self.waiting for name in reads) or (None in are_shared):
            self.waiting.append(node.name)
        elif differs or not all(are_shared):
            self.identities[node.name] = self._identity(node)
            if change is not None and all(self._is_kept(node.name, name) for name in reads):
                self._kept[node.name] = change.columns_kept

    def removed(self) -> tuple[Redefinition, ...]:
        """The models of production that are not declared."""
        return tuple(
            Redefinition(node.name, Category.REMOVED, (), How.NOTHING, node, None)
            for node in self.production
            if node.name not in self.declared
        )

    def _change(self, node: Node) -> Redefinition | None:
        if node.name not in self.production:
            how = How.NOTHING if node.model.kind.is_view else How.REBUILD
            return Redefinition(node.name, Category.NEW, (), how, None, node)
        change, trace = self._comparison.change(node), self.stretched.get(node.name)
        if change is None or trace is None:
            return change
        return without_earlier_cells(change, trace)

    def _is_shared(self, node: Node, name: str) -> bool | None:
        """Whether what a model reads of an input is production's; None: not known yet."""
        if name in self.waiting:
            return None
        if self._is_kept(node.name, name):
            return True
        equal = self.equal_rows(name, self.identities[name])
        return False if equal is None and self.assume else equal

    def _is_kept(self, reader: str, name: str) -> bool:
        """
        Whether an input is production's, or keeps all columns that production's model reads of it.

        Columns that a changed model keeps follow from these, as their forms are the same.
        """
        if name not in self.identities:
            return True
        kept_columns, read = self._kept.get(name), self._comparison.columns_read(reader, name)
        return bool(kept_columns) and (read is not None and read <= (kept_columns or frozenset()))

    def _identity(self, node: Node) -> str:
        """The hash of everything that a table follows from, but for production's tables."""
        inputs = sorted(
            [entry.name, self.identities[entry.name]]
            for entry in node.stored_inputs
            if entry.name in self.identities
        )
        return sha256(json.dumps([node.name, node.fingerprint, inputs]).encode()).hexdigest()


def same_rows(change: Redefinition) -> bool:
    """Whether a changed definition has the same rows, in columns of the same order."""
    return change.category in (Category.NONE, Category.METADATA) and change.how in (
        How.NOTHING,
        How.RESTAMP,
    )
