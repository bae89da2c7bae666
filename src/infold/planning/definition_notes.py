"""What is said about definitions where `infold apply` applies them, and when nothing is applied."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from infold.core.project import Project
from infold.messages import apply_errors


def definition_notes(project: Project) -> Iterator[str]:
    """What a run applies, and which changes in the files it leaves alone."""
    if project.applies:
        yield f"applied: {', '.join(project.applies)}"
    yield from unapplied_notes(project)


def unapplied_notes(project: Project) -> Iterator[str]:
    """Which changes in the files are not applied, and who applies them."""
    applied = project.applied
    if applied is None:
        return
    if applied.unapplied:
        models = _models(applied.unapplied)
        yield f"{models}; `infold plan` shows them, `infold apply` carries them out"
    if applied.mistakes:
        many = applied.mistakes > 1
        found = f"{applied.mistakes:,} mistakes" if many else "a mistake"
        yield (
            f"the files have {found}, which `infold check` shows: this goes on by the applied "
            "definitions"
        )


def not_yet_applied(project: Project) -> tuple[str, ...]:
    """The models with changes that runs leave alone until they are applied."""
    return (*project.applies, *project.unapplied)


def refuse_nothing_applied(project: Project) -> None:
    """Raise ``nothing_applied`` where the files have models, and none of them was ever applied."""
    if project.unapplied and not project.nodes:
        raise apply_errors.nothing_applied(target=project.target.name, models=project.unapplied)


def _models(names: Sequence[str]) -> str:
    """How many models have changes that are not applied, and which these are."""
    many = f"{len(names):,} models have" if len(names) > 1 else "1 model has"
    return f"{many} changes that are not applied: {', '.join(names)}"
