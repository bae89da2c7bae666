"""Plans that are saved, read again, and carried out as they were reviewed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from infold.api.asked import with_chosen
from infold.api.opening import ledger
from infold.core.plan import Observations, Plan, PlanOptions
from infold.core.project import Project
from infold.core.saved_plan import SavedPlan, plan_of_text
from infold.messages import apply_errors, run_errors
from infold.planning.destructive import refuse_destructive
from infold.planning.planner import plan
from infold.planning.removals import refuse_removals
from infold.running import carry_out_saved
from infold.running.observe import Observer


def plan_to_save(
    project: Project,
    observed: Observations,
    made: Plan,
    asked: PlanOptions | None = None,
    *,
    select: Sequence[str] = (),
    exclude: Sequence[str] = (),
) -> SavedPlan:
    """A plan with everything that it follows from; the arguments are those of ``make_plan``."""
    asked = with_chosen(project, asked, select, exclude)
    book = ledger(project)
    return carry_out_saved.plan_to_save(project, book, observed, made, asked, _digests(project))


def read_saved(path: Path) -> SavedPlan:
    """The plan in a file; raises ``apply_errors.bad_plan_file`` where there is none."""
    try:
        return plan_of_text(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise apply_errors.bad_plan_file(path=str(path), why=why) from error


def project_of_saved(declared: Project, saved: SavedPlan) -> Project:
    """
    The project that a saved plan is carried out by.

    Raises ``apply_errors.plan_of_another`` if it is a plan of another one.
    """
    from infold.core.target import Apply
    from infold.inspecting.applied_project import project_to_apply

    carry_out_saved.refuse_plan_of_another(saved, declared)
    if declared.target.apply is not Apply.MANUAL:
        return declared
    return project_to_apply(declared, ledger(declared), saved.asked.selected)


def refuse_if_outdated(
    looking: Observer, saved: SavedPlan, *, max_rows: int | None, allow_removals: bool
) -> None:
    """
    Raise ``apply_errors.plan_outdated`` where a saved plan does not fit what is there now.

    Raises what a run would raise for its limits too, before anything is applied.
    """
    project = looking.project
    observed = carry_out_saved.refuse_outdated(
        saved, looking.ledger, looking.observe_all, _digests(project)
    )
    refuse_too_much(
        project,
        plan(project, observed, saved.asked),
        max_rows=max_rows,
        allow_removals=allow_removals,
    )


def refuse_too_much(
    project: Project, made: Plan, *, max_rows: int | None, allow_removals: bool
) -> None:
    """Refuse what a run would refuse for its limits, before anything is applied."""
    if max_rows is not None and made.rows_to_read > max_rows:
        raise run_errors.over_budget(rows=made.rows_to_read, max_rows=max_rows)
    refuse_destructive(project, made.destroyed)
    refuse_removals(project, made, allowed=allow_removals)


def _digests(project: Project) -> Mapping[str, str]:
    """The digests of the definitions that a plan goes by, and of those that wait or are apart."""
    from infold.core.definition_text import digest_of
    from infold.declare.definitions import definitions_of

    found = {name: digest_of(one) for name, one in definitions_of(project).items()}
    if project.wanted is not None:
        for name, one in definitions_of(project.wanted).items():
            if found.get(name) != digest_of(one):
                found[f"{name}, as it is wanted"] = digest_of(one)
    return found
