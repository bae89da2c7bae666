"""Models that a run forgets at its begin, as their table or their file is gone; each is a note."""

from __future__ import annotations

from collections.abc import Iterator

from infold.core.environment import PRODUCTION
from infold.core.ports import Ledger
from infold.core.project import Project
from infold.running.forget import forget_model
from infold.running.observe import Observer
from infold.running.table_keys import table_keys


def forget_removed_models(project: Project, ledger: Ledger) -> Iterator[str]:
    """Readers no longer wait for models that were removed from the project."""
    if project.environment != PRODUCTION:
        return
    gone = ledger.traces().keys() - table_keys(ledger)
    for name in sorted(name for name in gone if name not in project):
        if project.target.protected:
            yield f"{name} is no longer in the project; what is known of it stays: protected"
        else:
            ledger.forget(name)
            yield f"{name} is no longer in the project; its table stays as it is"


def forget_lost(observer: Observer, run: str) -> Iterator[str]:
    """
    Forget models with a table that somebody dropped, or damaged where it is to be replaced anyway,
    so that readers see its rows go and come back.
    """
    for number, (name, why) in enumerate(observer.lost().items(), 1):
        step = f"{run}-gone{number}"
        forget_model(observer.ledger, None, run=run, step=step, seq=0, model=name)
        yield why
