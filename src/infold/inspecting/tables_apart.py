"""
Changed tables that are built in tables of their own, beside those that readers have.

A changed definition of a table that is built cell by cell needs all of its cells. Where that is
more than its ``backfill_limit`` lets one run build, they are built in another table, over as many
runs as it takes. Readers have the old table meanwhile, which goes on by the old definition.

The project that is run then is made of two definitions of such a model. Under the model's name
stands the one that built its table, which goes on by it; so do all that read the table, as only the
old definitions are known to fit it. Under the key of a table of its own stands the wanted one. Both
are ordinary models over the same inputs, so whatever plans, builds and verifies does that to both.

Where the definitions do not fit together like that, nothing is built apart.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from hashlib import sha256
from typing import TYPE_CHECKING

from infold.core.definition import Definition, How, Redefinition, digest_of
from infold.core.environment import BUILT_APART, OwnTable, tables_from_now_on
from infold.core.interval import Interval, Ranges
from infold.core.model import DefinitionChange, table_name
from infold.core.plan import ModelObservation, Observations, PlanOptions, Reason
from infold.core.project import Node, Project
from infold.core.trace import UNKNOWN, Cause, CellState, Trace
from infold.inspecting.changed_definitions import ChangedDefinitions
from infold.messages.errors import InfoldErrors
from infold.planning.buildable_cells import (
    BACKLOG,
    cells_with_rows,
    completed_range,
    continued_build,
    retained_range,
)
from infold.planning.planner import plan

if TYPE_CHECKING:
    from infold.core.ports import Lake, Ledger
    from infold.core.report import BuiltApart

MayBegin = Callable[[Sequence[Node]], Collection[str]]
"""Of changed models that are not built apart yet, those that may be from now on."""


@dataclass(frozen=True)
class TablesApart:
    """
    A project as it is run, with what is built apart in it.

    ``tables`` are those that the ledger is to have: of a model that is not built apart any more,
    and by definitions that nobody wants any more, they are not ``current``, and are dropped.
    ``digests`` are those of the definitions in ``project``, by its names and keys. ``begun`` are
    the changes of models that are not built apart so far.
    """

    project: Project
    tables: tuple[OwnTable, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)
    begun: tuple[Redefinition, ...] = ()

    @property
    def once_complete(self) -> Project:
        """The project as it will be when all of them are complete."""
        return self.project.once_complete or self.project

    @property
    def recorded(self) -> bool:
        """Whether the ledger has, or is to have, anything about tables that are built apart."""
        return bool(self.tables)

    def other_changes(self, changes: Sequence[Redefinition]) -> tuple[Redefinition, ...]:
        """Those of some changes that the project goes by: not of what is built apart, or waits."""
        later = {*self.project.apart.values(), *self.project.waits}
        return tuple(change for change in changes if change.model not in later)

    @property
    def follows_from(self) -> object:
        """Everything that another run might have changed."""
        return self.tables, self.digests, dict(self.project.apart)


def tables_apart(
    project: Project,
    ledger: Ledger,
    lake: Lake,
    may_begin: MayBegin = lambda _: (),
    options: PlanOptions | None = None,
) -> TablesApart:
    """What is built apart of a project, and what may begin to be."""
    options = options or PlanOptions()
    earlier = ledger.own_tables().get(BUILT_APART, ())
    traces = ledger.traces()
    old = [node for node in project if may_be_apart(node, traces.get(node.name))]
    if not old:
        return TablesApart(project, tuple(replace(one, current=False) for one in earlier))
    from infold.declare.definitions import definitions_of  # parsers: most runs need none
    from infold.running.table_names import free_key

    redefinitions = ChangedDefinitions(project, ledger, options.forward_only)(traces)
    changes = {
        node.name: redefinitions[node.name]
        for node in old
        if is_rebuilt(redefinitions.get(node.name))
    }
    live = {one.identity: one for one in earlier if one.current}
    not_begun = [project[name] for name in changes if _identity(project[name]) not in live]
    chosen = set(may_begin(not_begun) if not_begun else ())
    chosen |= {name for name in changes if _identity(project[name]) in live}
    chosen -= {name for name in chosen if name in options.restated}
    chosen -= project.downstream(chosen)  # one after the other
    names = {node.name for node in project}
    definitions = definitions_of(project) if chosen else {}
    tables = tables_from_now_on(
        {name: _identity(project[name]) for name in sorted(chosen)},
        earlier,
        {name: digest_of(definitions[name]) for name in chosen},
        {name: traces[name].definition for name in chosen},
        partial(free_key, ledger=ledger, lake=lake, names=names),
    )
    combined = _Combined(project, ledger, traces, {one.model: one for one in tables if one.current})
    below = project.downstream(chosen)
    run_project = None if below & options.forward_only.keys() else combined.project()
    if run_project is None:
        known_identities = {one.identity for one in earlier}
        return TablesApart(
            project, tuple(table for table in tables if table.identity in known_identities)
        )
    begun = tuple(changes[one.model] for one in tables if one.current and one.identity not in live)
    return TablesApart(run_project, tuple(tables), combined.digests, begun)


def progress_apart(
    project: Project, observed: Observations, ledger: Ledger, lake: Lake
) -> Iterator[BuiltApart]:
    """How far each table is that is built apart."""
    from infold.core.report import BuiltApart

    for key, model in project.apart.items():
        node, observed_table = project[key], observed.models[key]
        built, cells = built_part(node, observed_table, ledger.cells(model))
        size = lake.size(table_name(key)) if observed_table.trace is not None else 0
        yield BuiltApart(model, key, built, cells, node.model.granularity, size)


def _identity(node: Node) -> str:
    return sha256(json.dumps([node.name, node.fingerprint]).encode()).hexdigest()


@dataclass
class _Combined:
    """The definitions of a project together with those that go on for the time being."""

    new: Project
    ledger: Ledger
    traces: Mapping[str, Trace]
    own: Mapping[str, OwnTable]
    digests: dict[str, str] = field(default_factory=dict)
    waiting: list[str] = field(default_factory=list)

    def project(self) -> Project | None:
        """All of them compiled; None where they do not fit, and ``new`` if there is nothing."""
        from infold.declare.definitions import definitions_of
        from infold.declare.from_definitions import project_of_definitions

        if not self.own:
            return self.new
        definitions = definitions_of(self.new)
        in_force = self._tables_of(definitions)
        if in_force is None or not self._add_views(in_force, definitions):
            return None
        try:
            compiled = project_of_definitions(self.new, in_force, {})
        except InfoldErrors:
            return None
        if any(node.fingerprint != in_force[node.name].fingerprint for node in compiled):
            return None
        if len(compiled.nodes) != len(in_force):
            return None
        self.digests = {name: digest_of(one) for name, one in in_force.items()}
        own_nodes = [*self._beside(definitions, in_force)]
        self.digests |= {one.key: one.definition for one in self.own.values()}
        # Views may be earlier ones, too, with everything that reads them.
        others = {*self.own, *(name for name, one in in_force.items() if one != definitions[name])}
        others |= self.new.downstream(others)
        nodes = (node if node.name in others else self.new[node.name] for node in compiled)
        return replace(
            self.new,
            sources={**compiled.sources, **self.new.sources},
            nodes=(*nodes, *own_nodes),
            apart={one.key: one.model for one in self.own.values()},
            waits=tuple(self.waiting),
            once_complete=self.new,
        )

    def _tables_of(self, definitions: Mapping[str, Definition]) -> dict[str, Definition] | None:
        """The definition that is in force of each table; None where one is not known."""
        below = self.new.downstream(self.own)
        in_force: dict[str, Definition] = {}
        for node in self.new:
            trace = self.traces.get(node.name)
            if node.downgraded:
                return None
            if node.model.kind.is_view:
                continue
            if node.name not in below and node.name not in self.own:
                in_force[node.name] = definitions[node.name]
            elif trace is None:
                self.waiting.append(node.name)
            elif trace.fingerprint == node.fingerprint:
                in_force[node.name] = definitions[node.name]
            else:
                definition = self.ledger.definitions([trace.definition]).get(trace.definition)
                if definition is None or definition.fingerprint != trace.fingerprint:
                    return None
                if definition.source != definitions[node.name].source:
                    return None  # a project has one declaration of each source
                in_force[node.name] = definition
                if node.name in below:
                    self.waiting.append(node.name)
        return in_force

    def _add_views(
        self, in_force: dict[str, Definition], definitions: Mapping[str, Definition]
    ) -> bool:
        """
        Add the views as all these definitions read them; whether they read no view as two.

        Views that no table reads are the wanted ones, if they read nothing that is replaced.
        """
        digests: dict[str, str] = {}
        for definition in in_force.values():
            for name, digest in definition.views.items():
                if digests.setdefault(name, digest) != digest:
                    return False
        by_digest = {digest_of(definition): definition for definition in definitions.values()}
        by_digest |= self.ledger.definitions(set(digests.values()) - by_digest.keys())
        if not by_digest.keys() >= set(digests.values()):
            return False
        in_force |= {name: by_digest[digest] for name, digest in digests.items()}
        below = self.new.downstream(self.own)
        for node in self.new:
            alone = node.model.kind.is_view and node.name not in in_force
            if alone and node.name not in below and in_force.keys() >= self._models(node):
                in_force[node.name] = definitions[node.name]
        return True

    def _models(self, node: Node) -> frozenset[str]:
        return frozenset(name for name in node.reads if name in self.new)

    def _beside(
        self, definitions: Mapping[str, Definition], in_force: Mapping[str, Definition]
    ) -> Iterator[Node]:
        """The wanted models under the keys of their tables, after the views that only they read."""
        from infold.analysis.renamed_tables import renamed

        above = self.new.upstream(self.own)
        views: dict[str, str] = {}
        for node in self.new:
            if node.name not in above or node.model.kind.is_stored:
                continue
            differs = in_force.get(node.name) != definitions[node.name]
            if differs or any(name in views for name in node.reads):
                name = f"{node.name}__{node.fingerprint[:8]}"
                yield renamed(node, name, views)
                views[node.name] = name
                self.digests[name] = digest_of(definitions[node.name])
        for table in self.own.values():
            yield renamed(self.new[table.model], table.key, views)


# Which changes that may be, and when such a table can replace the one that readers have: pure.


def may_be_apart(node: Node, trace: Trace | None) -> bool:
    """
    Whether a model's table has the rows of an earlier definition, and may keep them for some runs.

    Not where the table has rows of several definitions, or of one that nobody knows.
    """
    incremental = node.model.incremental
    return (
        trace is not None
        and node.model.kind.is_by_cell
        and incremental is not None
        and incremental.on_definition_change is DefinitionChange.COMPLETE
        and trace.fingerprint not in (node.fingerprint, UNKNOWN)
        and not (trace.mixed or trace.earlier or node.downgraded)
    )


def is_rebuilt(change: Redefinition | None) -> bool:
    """Whether a changed definition has rows that follow from nothing stored, and both are known."""
    return (
        change is not None
        and change.how is How.REBUILD
        and None not in (change.before, change.after)
        and change.effective_from is None
        and change.refused is None
    )


def exceeds_limit(node: Node, model: ModelObservation, options: PlanOptions) -> bool:
    """
    Whether building all cells of a model takes more than one run, by its ``backfill_limit``.

    Whoever names a window, or has all of a table built again, overrides the limit.
    """
    if node.name in options.restated:
        return False
    first = Reason(Cause.MISSING, "", Ranges.ever())
    cells, _ = continued_build(node, model, [first], retained_range(node), options)
    return cells != Ranges.ever()


def built_part(
    node: Node, model: ModelObservation, replaced: Sequence[CellState]
) -> tuple[int, int]:
    """How many cells with rows a table has that is built apart, and how many it will have."""
    filled = _cells_with_rows(node, model, replaced)
    if model.trace is None:
        return 0, len(filled)
    return sum(not model.trace.pending_ranges.overlaps(cell) for cell in filled), len(filled)


def complete(
    project: Project, observed: Observations, replaced: Mapping[str, Sequence[CellState]]
) -> tuple[str, ...]:
    """
    The keys of the tables that can replace those that readers have, with these cells by model.

    They are up to date, and have all cells that readers have, or may have by now.
    """
    return tuple(key for key in project.apart if _is_complete(project, key, observed, replaced))


def _is_complete(
    project: Project,
    key: str,
    observed: Observations,
    replaced: Mapping[str, Sequence[CellState]],
) -> bool:
    name = project.apart[key]
    node, model, old = project[key], observed.models[key], observed.models[name]
    if model.trace is None or model.trace.fingerprint != node.fingerprint or old.trace is None:
        return False
    if {key, name} & observed.refused.keys():
        return False
    remaining = plan(project, observed, PlanOptions(selected=frozenset((key,))))
    if any(reason.cause not in BACKLOG for step in remaining.steps for reason in step.reasons):
        return False
    backlog = [one.ranges for one in old.trace.pending if one.cause is Cause.MISSING]
    never_built = Ranges.of(part for ranges in backlog for part in ranges)
    never_built -= Ranges.of(state.cell for state in replaced[name])
    missing = (model.trace.pending_ranges - never_built) & completed_range(node, observed.as_of)
    return not any(missing.overlaps(cell) for cell in _cells_with_rows(node, model, replaced[name]))


def _cells_with_rows(
    node: Node, model: ModelObservation, replaced: Sequence[CellState]
) -> Sequence[Interval]:
    """The cells that have rows, in the inputs or in the table that is replaced."""
    granularity = node.model.granularity
    assert granularity is not None, "it is built cell by cell"
    filled = Ranges.of((*cells_with_rows(node, model), *(s.cell for s in replaced if s.rows)))
    whole = granularity.cover(filled & retained_range(node))
    return [cell for part in whole for cell in granularity.cells(part)]
