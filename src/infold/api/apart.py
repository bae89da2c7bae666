"""
Changed tables that take more than a run: what is built apart, and when it replaces what is read.

A run goes by the project that :func:`project_to_run` makes. After it, tables that are complete take
the place of those that readers have, and another run brings their readers up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from infold.api.opening import lake_of, ledger_of, observer_of, with_chosen
from infold.core.definition import Redefinition
from infold.core.environment import BUILT_APART
from infold.core.plan import Destroyed, Observations, PlanOptions
from infold.core.ports import Lake, Ledger
from infold.core.project import Node, Project
from infold.core.report import BuiltApart
from infold.core.swap import Swap, SwapKind
from infold.core.target import Apply
from infold.inspecting.tables_apart import TablesApart, exceeds_limit, progress_apart, tables_apart
from infold.messages import apply_errors
from infold.messages.errors import InfoldError
from infold.planning.destructive import policy, refuse_destructive
from infold.render.definitions import apart_note, waiting_notes
from infold.running.forget import Dropper
from infold.running.keep_definitions import keep_definitions
from infold.running.observe import Observer
from infold.running.table_names import drop_left_tables

Observe = Callable[[Project], Observer]
"""Observes a project as a command asked for it."""


def once_complete(project: Project) -> Project:
    """A project by the definitions that are wanted, whatever is built apart."""
    return project.once_complete or project


def project_to_run(
    project: Project,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
    as_of: int | None = None,
) -> Project:
    """The project as a run goes by it, with what it would begin to build apart."""
    base = once_complete(project)
    asked = with_chosen(base, asked, select, exclude)
    observer = observer_of(base, as_of, asked=asked)
    may = may_build_apart(observer, asked, allowed=False)
    return tables_apart(base, observer.ledger, observer.lake, may, asked).project


def with_apart(project: Project) -> Project:
    """The project with the tables that are being built apart."""
    base, ledger = once_complete(project), ledger_of(project)
    return (
        tables_apart(base, ledger, lake_of(base)).project
        if BUILT_APART in ledger.own_tables()
        else base
    )


def notes_apart(project: Project, observed: Observations) -> tuple[str, ...]:
    """What is said of the tables of a project that are, or would be, built apart."""
    if not project.apart:
        return ()
    found = progress_apart(project, observed, ledger_of(project), lake_of(project))
    return (*map(apart_note, found), *waiting_notes(project))


def lost_by_beginning(
    project: Project, observed: Observations, asked: PlanOptions
) -> Iterator[Destroyed]:
    """What readers lose by tables that would begin to be built apart."""
    new = {model for key, model in project.apart.items() if observed.models[key].trace is None}
    yield from _destroyed(project, observed.redefinitions, new, asked)


def may_build_apart(
    observer: Observer, asked: PlanOptions, *, allowed: bool
) -> Callable[[Sequence[Node]], Collection[str]]:
    """Which changed models begin to be built apart: those that take more than one run."""
    target = observer.project.target

    def may_begin(nodes: Sequence[Node]) -> Collection[str]:
        limited = [
            node
            for node in nodes
            if node.backfill_limit is not None
            and (asked.selected is None or node.name in asked.selected)
        ]
        if not limited or (target.protected and target.apply is not Apply.MANUAL and not allowed):
            return ()
        seen = observer.observe_all()
        return [node.name for node in limited if exceeds_limit(node, seen.models[node.name], asked)]

    return may_begin


def with_own_tables(project: Project, asked: PlanOptions) -> PlanOptions:
    """What is asked for, with the tables that are built apart of the models that are asked for."""
    if not project.apart or asked.selected is None:
        return asked
    own = {key for key, model in project.apart.items() if model in asked.selected}
    return replace(asked, selected=(asked.selected - project.apart.keys()) | own)


def choose_models(
    project: Project, asked: PlanOptions | None, select: Sequence[str], exclude: Sequence[str]
) -> PlanOptions:
    """What is asked for of a project with tables that are built apart."""
    return with_own_tables(project, with_chosen(project, asked, select, exclude))


@dataclass
class ApartRun:
    """
    What a run does about tables that are built apart; ``again`` finds them under the lease.

    ``changes`` are the definitions with the same rows as before, which tables adopt.
    """

    found: TablesApart
    ledger: Ledger
    lake: Lake
    asked: PlanOptions
    again: Callable[[], TablesApart]
    changes: Callable[[], Mapping[str, Redefinition]] = dict
    allowed: bool = False

    def refuse_moved(self) -> None:
        """
        Raise ``applied_meanwhile`` where another run changed what this one follows from.

        Raises ``destructive_change`` where what begins now would take something from readers.
        """
        if self.again().follows_from != self.found.follows_from:
            raise apply_errors.applied_meanwhile(
                target=self.found.project.target.name,
                models=sorted({one.model for one in self.found.tables}),
            )
        begun = self.found.begun
        models = {one.model for one in begun}
        lost = _destroyed(self.found.project, begun, models, self.asked)
        refuse_destructive(self.found.once_complete, tuple(lost))

    def record(self) -> Mapping[str, str]:
        """
        Keep the definitions, and record what is built apart; the digests by model and by key.

        The definitions come first: whoever is killed before that has applied nothing.
        """
        from infold.declare.definitions import definitions_of

        digests = keep_definitions(
            *(self.found.project, self.ledger, definitions_of(self.found.once_complete)),
            changes=self.changes(),
            rebuilds_allowed=self.allowed,
            forward_only=self.asked.forward_only,
        )
        if self.found.tables != self.ledger.own_tables().get(BUILT_APART, ()):
            self.ledger.put_own_tables(BUILT_APART, self.found.tables)
        return {**digests, **self.found.digests}

    def at_end(self, run: str) -> Iterator[str]:
        """Drop what is not built apart any more; yields notes."""
        return drop_left_tables(self.ledger, self.lake, run, BUILT_APART)


def _destroyed(
    project: Project, changes: Sequence[Redefinition], models: Collection[str], asked: PlanOptions
) -> Iterator[Destroyed]:
    """What changes of some models destroy, unless `infold apply` has permitted it before."""
    base = once_complete(project)
    permitted = base.target.apply is Apply.MANUAL
    for one in changes:
        asks = one.model in base.applies or not permitted
        if asks and one.model in models and one.destroys:
            yield Destroyed(one.model, one.destroys, policy(base, one.model, asked, one))


def next_swap(
    base: Project,
    ledger: Ledger,
    lake: Lake,
    observer: Observe,
    selected: frozenset[str] | None = None,
) -> tuple[Swap | None, tuple[BuiltApart, ...]]:
    """The swap of the tables that are complete, if there is one, and how far the others are."""
    from infold.inspecting.swaps import swap_of_complete  # parsers: most runs need none

    found = tables_apart(base, ledger, lake)
    if not found.project.apart:
        return None, ()
    observed = observer(found.project).observe_all()
    swap = swap_of_complete(found, observed, ledger, lake, selected)
    done = {one.model for one in swap.tables}
    progress = progress_apart(found.project, observed, ledger, lake)
    left = tuple(one for one in progress if one.model not in done)
    return (swap if swap.tables else None), left


def swap_complete_tables(
    base: Project, by: Dropper, observer: Observe, wait: float, selected: frozenset[str] | None
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """
    Let complete tables take the place of those that readers have; these models, and notes.

    Of ``selected`` models alone, None for all. Another run may hold the lease by now: then it does
    that.
    """
    if BUILT_APART not in by.ledger.own_tables():
        return (), ()

    def found() -> tuple[Swap | None, tuple[BuiltApart, ...]]:
        return next_swap(base, by.ledger, by.lake, observer, selected)

    swap, left = found()
    notes = tuple(map(apart_note, left))
    if swap is None:
        return (), notes
    nothing, command = replace(swap, tables=()), SwapKind.BUILT_APART.value
    try:
        done = by.swap(lambda: found()[0] or nothing, command=command, wait=wait)
    except InfoldError as error:
        if error.slug != "locked":
            raise
        return (), notes
    models = tuple(one.model for one in done.tables)
    return models, (*notes, *map("{}: what was built apart has replaced its table".format, models))
