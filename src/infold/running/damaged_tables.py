"""
Stored tables with files that are missing, or cannot be read.

A damaged table is refused, as its files may come back from a backup. It is given up where its
definition changed: then it was to be replaced anyway, and all of it is built. The ledger forgets
it first, so that readers do not compare with rows that cannot be read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from infold.core.definition import How, Redefinition
from infold.core.model import table_name
from infold.core.plan import Step
from infold.core.project import Project
from infold.core.record import FILES
from infold.core.trace import Version
from infold.messages import mismatches
from infold.messages.errors import InfoldError

if TYPE_CHECKING:
    from infold.core.ports import Lake, Ledger
    from infold.running.run_progress import RunProgress

DAMAGED = "{0}: its table is damaged; as its definition changed, all of it is rebuilt"
"""The note on a damaged table that a rebuild replaces."""


@dataclass
class Damage:
    """Finds tables that lost files without a commit; those of one table are checked once."""

    ledger: Ledger
    lake: Lake
    _missing: dict[str, Sequence[str]] = field(default_factory=dict)
    """Tables with files that were checked one by one -> the missing files."""
    _complete: set[str] = field(default_factory=set)
    """Tables with the same file names as when the ledger last looked."""

    def find(
        self, project: Project, heads: Mapping[str, Version], moved: Mapping[str, str | None]
    ) -> Mapping[str, InfoldError]:
        """The damaged tables, each with the error; found by comparing file names."""
        known, damaged = self.ledger.locations(), {}
        for name in heads:
            table = table_name(name)
            before = known.get(FILES.format(table))
            if table in moved or before is None or name not in project or name in self._complete:
                continue
            if name not in self._missing:
                present = self.lake.file_list_id(table)
                if present and present == before:
                    self._complete.add(name)
                    continue
                self._missing[name] = self.lake.lost_files(table)
            if missing := self._missing[name]:
                damaged[name] = mismatches.damaged_table(name, missing[0], len(missing))
        return damaged

    @property
    def tables(self) -> frozenset[str]:
        """Tables that have lost files; their state is not recorded."""
        return frozenset(name for name, missing in self._missing.items() if missing)

    @property
    def checked_closely(self) -> bool:
        """
        Whether the files of a table were checked one by one and are complete: then
        once is enough.
        """
        return any(not missing for missing in self._missing.values())


def given_up_if_damaged(project: Project, change: Redefinition | None) -> bool:
    """Whether a table with this change of its definition is built again where it is damaged."""
    if change is None or project.target.protected or change.model in project.shared:
        return False
    stays = change.how is How.RESTAMP or change.effective_from is not None
    return not stays and change.refused is None


def give_up_damaged(
    project: Project, ledger: Ledger, progress: RunProgress, step: Step, error: InfoldError
) -> bool:
    """
    Whether a step failed as the rows are damaged that a changed definition was to follow from.

    Then the table is forgotten, and the next plan builds it.
    """
    from infold.running.table_names import forget_table

    forward = step.trace is not None and step.trace.earlier
    if project.target.protected or forward or not step.action.of_own_rows:
        return False
    if not mismatches.is_damage_of(step.model, error):
        return False
    progress.given_up += 1
    id_ = f"{progress.run}-lost{progress.given_up}"
    forget_table(ledger, None, run=progress.run, step=id_, seq=0, model=step.model)
    progress.notes = (*progress.notes, DAMAGED.format(step.model))
    return True
