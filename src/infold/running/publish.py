"""
What readers see of what a run builds: when, under which names, and with which columns.

Where a target publishes together, tables are held back from readers while they are written. A run
without failures publishes them at its end, and with them what runs before it left unpublished.
Names of tables in a metastore, and views, follow the tables at the end of every command.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from infold.core.environment import PRODUCTION
from infold.core.model import table_name
from infold.core.ports import Lake, Ledger
from infold.core.project import Project
from infold.core.target import Publish
from infold.running.run_progress import RunProgress

NOT_PUBLISHED = "Nothing was published: readers see all tables as they were before"
"""The note of a run that failed in a target where all tables are published together."""

_RUNS = 5
"""How many of the newest runs are looked at for one that was not refused."""

NAME_TAKEN = (
    "{0} is not registered: the metastore has something else under its name, which infold did not "
    "make"
)

NO_VIEW = "no view of {0} was made: something else has its name there, which infold did not make"


def hold_back(project: Project, ledger: Ledger, lake: Lake) -> None:
    """
    At the begin of a run: hold tables back where the target says so, and none elsewhere.

    Raises ``run_errors.published_elsewhere`` where somebody else committed to a table that is; see
    also :func:`check_readers`.
    """
    check_readers(project, lake)
    if project.target.publish is Publish.TOGETHER:
        lake.hold_back([*map(table_name, ledger.newest_versions()), project.set_aside])
    else:
        lake.publish(hold_back=False)


def publish(progress: RunProgress, lake: Lake) -> bool:
    """
    At the end of a run: publish what is held back; whether readers see all that was built.

    A run of an environment shows its own tables alone, and nothing that production has yet to
    publish.
    """
    if progress.project.target.publish is not Publish.TOGETHER:
        return True
    if progress.failures:
        progress.notes = (*progress.notes, NOT_PUBLISHED)
        return False
    project = progress.project
    tables = [table_name(node.name) for node in project if node.name not in project.shared]
    of_environment = project.environment != PRODUCTION
    lake.publish(hold_back=True, tables=(*tables, project.set_aside) if of_environment else None)
    return True


def refresh_after_run(progress: RunProgress, ledger: Ledger, lake: Lake) -> None:
    """At the end of a run, after what it drops: as :func:`refresh_readers`, with fewer looks."""
    notes = register(lake)
    if progress.done or progress.project.target.hide_technical:
        known = not progress.done and _ended_well(ledger, progress.run)
        notes = [*notes, *refresh_views(progress.project, lake, only_new=known)]
    progress.notes = (*progress.notes, *notes)


def _ended_well(ledger: Ledger, run: str) -> bool:
    """
    Whether the command before this run ended well, and so left the views right.

    One that died, or failed, may have changed tables after which no view was looked at.
    """
    before = (one for one in ledger.runs(_RUNS) if one.id != run and one.state != "refused")
    last = next(before, None)
    return last is not None and last.state == "done"


def check_readers(project: Project, lake: Lake) -> Collection[str]:
    """
    Before anything is written: raise where readers are to have names and views, and cannot.

    The tables that have their names already in a metastore. See ``Lake.check_names`` and
    :func:`check_views`.
    """
    check_views(project, lake)
    return check_names(project, lake)


def check_names(project: Project, lake: Lake) -> Collection[str]:
    """Raise where somebody else has names of tables; the tables that have theirs already."""
    stored = [table_name(node.name) for node in project if node.model.kind.is_stored]
    return lake.check_names([*stored, project.set_aside])


def refresh_readers(project: Project, lake: Lake) -> Sequence[str]:
    """
    After a command: let readers have names and views; notes about those that they have not.

    Names come first: a view may read a table by one.
    """
    return [*register(lake), *refresh_views(project, lake)]


def register(lake: Lake) -> Sequence[str]:
    """Let readers find the tables by their names, once nothing drops one; notes as above."""
    return [NAME_TAKEN.format(name) for name in lake.register()]


def check_views(project: Project, lake: Lake) -> None:
    """
    Before anything is written: raise where readers are to have views and cannot, or where those of
    another project are in the namespace of the tables.
    """
    hide = project.target.hide_technical is not None and project.environment == PRODUCTION
    lake.check_views(_tables_with_views(project) if hide else None)


def refresh_views(project: Project, lake: Lake, *, only_new: bool = False) -> Sequence[str]:
    """
    Let readers have the views that the target says, or none; notes about those that they have not.

    Views are of production's tables: an environment's come and go.
    """
    if project.environment != PRODUCTION:
        return ()
    tables = _tables_with_views(project) if project.target.hide_technical else ()
    taken = lake.refresh_views(tables, only_new=only_new)
    return [NO_VIEW.format(name) for name in taken]


def _tables_with_views(project: Project) -> Sequence[str]:
    """The tables that have views, where a target has any."""
    return [
        table_name(node.name)
        for node in project.once_complete or project
        if node.model.kind.is_stored
    ]
