"""
Carrying out a saved plan: only if everything that it follows from is as it was.

Files that arrived since are left for the next run. So the listing of each source is cut down to the
files that were known or planned, and what is observed then must equal what was saved.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from infold.core.files import Listed, ListedFile
from infold.core.model import Source
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.core.saved_plan import SavedFiles, SavedPlan, files_of, steps_of
from infold.messages import apply_errors
from infold.running.ledger_consistency import warehouse_of
from infold.running.source_listings import DatedLook
from infold.running.table_names import table_keys

Listing = Callable[[Source], tuple[Sequence[ListedFile], Sequence[str]]]


def plan_to_save(
    project: Project,
    ledger: Ledger,
    observed: Observations,
    plan: Plan,
    options: PlanOptions,
    definitions: Mapping[str, str],
) -> SavedPlan:
    """A plan with all that it follows from; ``definitions`` are the digests of the project's."""
    return SavedPlan(
        project=project.name,
        target=project.target.name,
        warehouse=warehouse_of(project),
        as_of=plan.as_of,
        asked=options,
        applied=_applied_digests(ledger),
        definitions=definitions,
        versions=_newest_versions(ledger),
        entries=_newest_entries(ledger),
        files=files_of(observed),
        steps=steps_of(plan),
    )


def refuse_plan_of_another(saved: SavedPlan, project: Project) -> None:
    """Raise ``plan_of_another`` where a plan is that of another project, target or warehouse."""
    of_plan = (saved.project, saved.target, saved.warehouse)
    of_project = (project.name, project.target.name, warehouse_of(project))
    if of_plan != of_project:
        raise apply_errors.plan_of_another(
            project=saved.project,
            target=saved.target,
            warehouse=saved.warehouse,
            here=f"{of_project[0]}, target {of_project[1]}, warehouse {of_project[2]}",
        )


def listing_as_saved(
    saved: SavedPlan, project: Project, ledger: Ledger, listing: Listing
) -> Listing:
    """A listing without the files that arrived since a plan was saved."""

    def listed(source: Source) -> tuple[Sequence[ListedFile], Sequence[str]]:
        files, settling = listing(source)
        return _as_saved(saved, project, ledger, source, files), settling

    return listed


def dated_as_saved(
    saved: SavedPlan, project: Project, ledger: Ledger, look: DatedLook | None
) -> DatedLook | None:
    """The same for sources with dated folders."""
    if look is None:
        return None

    def listed(source: Source, skip: Collection[str]) -> Listed:
        listing = look.listing(source, skip)
        return replace(listing, files=_as_saved(saved, project, ledger, source, listing.files))

    return DatedLook(look.path, listed)


def _as_saved(
    saved: SavedPlan,
    project: Project,
    ledger: Ledger,
    source: Source,
    listed: Sequence[ListedFile],
) -> Sequence[ListedFile]:
    models = [node.name for node in project if node.source == source.name]
    paths = {
        path
        for model in models
        for files in (saved.files.get(model, SavedFiles()),)
        for path, _ in (*files.new, *files.removed)
    }
    paths |= {file.path for model in models for file in ledger.files(model)}
    return [file for file in listed if file.path in paths]


def refuse_outdated(
    saved: SavedPlan,
    ledger: Ledger,
    observe: Callable[[], Observations],
    definitions: Mapping[str, str],
) -> Observations:
    """
    What is observed, which is what the plan was made of.

    Raises ``plan_outdated`` with everything that is not as it was when the plan was saved.
    Files are only compared where the ledger is as it was: they are compared with what it knows.
    """
    changed = [
        *_changed_names(saved.definitions, definitions, "its definition changed"),
        *_changed_names(saved.applied, _applied_digests(ledger), "another definition was applied"),
        *_changed_names(saved.versions, _newest_versions(ledger), "its table changed"),
        *_changed_names(saved.entries, _newest_entries(ledger), "entries were made by hand"),
    ]
    _refuse_changed(changed)
    observed = observe()
    changed = [(name, error.what) for name, error in observed.refused.items()]
    changed += _changed_files(saved.files, files_of(observed))
    _refuse_changed(changed)
    return observed


def _refuse_changed(changed: Sequence[tuple[str, str]]) -> None:
    """Raise ``plan_outdated`` for what changed, everything about one name in one fact."""
    by_name: dict[str, list[str]] = {}
    for name, why in changed:
        by_name.setdefault(name, []).append(why)
    if by_name:
        reasons = tuple((name, "; ".join(dict.fromkeys(whys))) for name, whys in by_name.items())
        raise apply_errors.plan_outdated(found=reasons)


def _changed_names(
    before: Mapping[str, object], after: Mapping[str, object], why: str
) -> Iterator[tuple[str, str]]:
    for name in sorted(before.keys() | after.keys()):
        if before.get(name) != after.get(name):
            yield name, why


def _changed_files(
    before: Mapping[str, SavedFiles], after: Mapping[str, SavedFiles]
) -> Iterator[tuple[str, str]]:
    """The files that are no longer as a plan has them, each with what became of it."""
    for model in sorted(before.keys() | after.keys()):
        old, new = before.get(model, SavedFiles()), after.get(model, SavedFiles())
        if old == new:
            continue
        planned_new, present = dict(old.new), dict(new.new)
        gone, missing = dict(old.removed), dict(new.removed)
        for path in sorted(planned_new.keys() | present.keys() | gone.keys() | missing.keys()):
            if planned_new.get(path) != present.get(path):
                yield path, "it was replaced" if path in present else "it is gone"
            elif gone.get(path) != missing.get(path):
                yield path, "it is gone" if path in missing else "it is back"
        if old.due != new.due:
            yield model, "other rows have come due"


def _applied_digests(ledger: Ledger) -> dict[str, str]:
    return {name: entry.digest for name, entry in ledger.applied().items()}


def _newest_versions(ledger: Ledger) -> dict[str, int]:
    keys = table_keys(ledger)
    heads = ledger.newest_versions().items()
    return {name: version.number for name, version in heads if name not in keys}


def _newest_entries(ledger: Ledger) -> dict[str, int]:
    """The newest manual entry of each model, and the newest request to erase of each erasure."""
    keys, requests = table_keys(ledger), dict[str, int]()
    for (erasure, _), number in ledger.known_erasures().newest.items():
        name = f"erasures.{erasure}"
        requests[name] = max(number, requests.get(name, 0))
    entries = ledger.newest_entries().items()
    return {name: newest for name, newest in entries if name not in keys} | requests
