"""
A target's environment as its files and its ledger make it: what is its own, and its project.

:func:`variant` is made before a run, and once more when the run has the lease: everything that it
follows from has to be the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from infold.analysis.renamed_tables import renamed
from infold.core.definition import Definition
from infold.core.definition_text import digest_of
from infold.core.environment import Environment, OwnTable, set_aside_of, tables_from_now_on
from infold.core.model import table_name
from infold.core.plan import Observations, Plan
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.target import Apply
from infold.core.trace import Trace
from infold.inspecting.own_models import OwnModels, own_models
from infold.messages import environment_errors
from infold.messages.errors import InfoldErrors
from infold.running.table_locations import table_keys
from infold.running.table_names import free_key

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
    same = {name for name, one in kept.items() if definitions.get(name) == one}
    if len(same) == len(kept):
        found: Project | None = replace(
            declared, nodes=tuple(node for node in declared if node.name in kept)
        )
    else:
        found = _compiled(declared, kept)
    if found is None:  # together they are not understood; those in the files are
        found = replace(declared, nodes=tuple(node for node in declared if node.name in same))
    there = _with_tables(found, traces)
    digests = {node.name: digest_of(kept[node.name]) for node in there}
    stretched = {name: traces[name] for name in digests if name in traces and traces[name].earlier}
    return Production(there, digests, stretched)


def _kept(
    ledger: Ledger, traces: Mapping[str, Trace], definitions: Mapping[str, Definition]
) -> dict[str, Definition]:
    """The definition of each table and view of production, as far as it is known."""
    own = table_keys(ledger)
    digests = {name: entry.digest for name, entry in ledger.applied().items()}
    built = {name: one for name, one in traces.items() if name not in own}
    digests |= {name: one.definition for name, one in built.items() if one.definition}
    by_digest = {digest_of(one): one for one in definitions.values()}
    by_digest |= ledger.definitions(frozenset(digests.values()) - by_digest.keys())
    found = {name: by_digest[one] for name, one in digests.items() if one in by_digest}
    for name, trace in built.items():  # of an infold that kept no definition
        declared = definitions.get(name)
        if not trace.definition and declared and declared.fingerprint == trace.fingerprint:
            found[name] = declared
    return found


def _compiled(declared: Project, kept: Mapping[str, Definition]) -> Project | None:
    from infold.declare.from_definitions import project_of_definitions

    try:
        found = project_of_definitions(declared, kept, {})
    except InfoldErrors:
        return None
    return replace(found, nodes=tuple(node for node in found if _as_kept(node, kept)))


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
        return {one.model: one.key for one in self.tables if one.current}

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
        found = set()
        for model, identity in self.decided.identities.items():
            key = self.own[model]
            trace = observed.models[key].trace
            there = trace is not None and trace.fingerprint == self.project[key].fingerprint
            if there and trace is not None and not trace.pending and key not in busy:
                found.add(identity)
        return frozenset(found)


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
    there = production(declared, definitions, ledger)
    tables_before = ledger.own_tables().get(name, ())
    had = {one.identity: one for one in tables_before}

    def equal_rows(model: str, identity: str) -> bool | None:
        if identity not in up_to_date or identity not in had:
            return None
        return same_contents(ledger, lake, model, had[identity].key)

    decided = own_models(
        declared, there.project, equal_rows, assume=assume, stretched=there.stretched
    )
    digests = {model: digest_of(definitions[model]) for model in definitions}
    names = {node.name for project in (declared, there.project) for node in project}
    tables = tables_from_now_on(
        decided.identities,
        tables_before,
        digests,
        there.digests,
        partial(free_key, ledger=ledger, lake=lake, names=names),
        decided.waiting,
    )
    keys = {one.model: one.key for one in tables if one.model in decided.identities and one.current}
    project = in_environment(name, declared, there.project, keys)
    return Variant(project, declared, definitions, there, decided, tables)


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
    there = production(declared, definitions, ledger)
    tables = known[name].tables
    own = {model: key for model, key in known[name].own.items() if model in declared}
    decided = OwnModels({one.model: one.identity for one in tables if one.model in own})
    project = in_environment(name, declared, there.project, own)
    return Variant(project, declared, definitions, there, decided, tables)


def same_contents(ledger: Ledger, lake: Lake, model: str, key: str) -> bool:
    """Whether two tables have the same columns, and cells with the same rows."""
    one, two = ({c.cell: (c.rows, c.content) for c in ledger.cells(t)} for t in (model, key))
    return one == two and _columns(lake, model) == _columns(lake, key)


def _columns(lake: Lake, model: str) -> Sequence[tuple[str, str]]:
    schema = lake.rows(table_name(model), limit=0).schema
    return [(field.name, str(field.type)) for field in schema]


def recorded(
    found: Variant, known: Environment | None, owner: str, now: int, lifetime: int | None
) -> Environment:
    """The environment as the ledger keeps it when a run of it begins."""
    name = found.project.environment
    made = known or Environment(name, owner, now)
    return replace(
        made,
        expires_at=None if lifetime is None else now + lifetime,
        last_run_at=now,
        built_at=None,
        tables=found.tables,
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
    found: dict[str, str] = {}
    for node in declared:
        if node.model.kind.is_stored:
            continue
        same = node.name in production and production[node.name] == node
        if not same or any(name in own or name in found for name in node.reads):
            found[node.name] = f"{node.name}__{node.fingerprint[:8]}"
    return found


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
