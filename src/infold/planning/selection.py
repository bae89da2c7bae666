"""
Which models a command means: ``--select`` and ``--exclude``.

A term is a model's name or a glob (``stg_*``), or ``tag:NAME`` (a glob too); a ``+`` before it adds
everything it depends on, a ``+`` after it everything that depends on it. Terms add up.
``--exclude`` wins over any selection.
"""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

from infold.core.project import Project
from infold.messages import command_errors
from infold.messages.errors import InfoldError


def select_models(
    project: Project, select: Sequence[str] = (), exclude: Sequence[str] = ()
) -> frozenset[str]:
    """The names of the models that are meant: all of them when nothing is selected."""
    every = frozenset(node.name for node in project)
    included = _models_of_terms(project, select) if select else every
    return included - _models_of_terms(project, exclude)


def with_landed(
    project: Project, names: frozenset[str], exclude: Sequence[str] = ()
) -> frozenset[str]:
    """
    Models with the landed sources that they read, directly or through views.

    Nobody thinks of a source as something to be built, so who names a model means its rows too.
    """
    reads = {entry.name for node in project if node.name in names for entry in node.stored_inputs}
    landed = {node.name for node in project if node.landed and node.name in reads}
    return names | (landed - _models_of_terms(project, exclude))


def _models_of_terms(project: Project, terms: Sequence[str]) -> frozenset[str]:
    """All models that any term names; a term may list several, with commas between them."""
    names = [name.strip() for term in terms for name in term.split(",")]
    return frozenset().union(*(_models_of_term(project, name) for name in names if name))


def _models_of_term(project: Project, term: str) -> frozenset[str]:
    """The models that one term names; never empty."""
    bare = term.removeprefix("+").removesuffix("+")
    if bare.startswith("tag:"):
        models = _models_with_tag(project, bare.removeprefix("tag:"))
    else:
        models = frozenset(
            node.name for node in project if fnmatchcase(node.name.lower(), bare.lower())
        )
        if not models:
            raise unknown_model(project, bare)
    before = project.upstream(models) if term.startswith("+") else frozenset()
    after = project.downstream(models) if term.endswith("+") else frozenset()
    return models | before | after


def unknown_model(project: Project, name: str) -> InfoldError:
    """No model has this name; one in the files may have it, and not be applied."""
    error = command_errors.unknown_model(name, [node.name for node in project])
    return with_unapplied(error, project, name)


def with_unapplied(error: InfoldError, project: Project, name: str) -> InfoldError:
    """An error about an unknown name, which also says that a model in the files has it."""
    if name in project.unapplied:
        apply = f"{project.target.command} apply {name}"
        return error.with_facts(("not applied", f"{name}: `{apply}` applies it"))
    return error


def _models_with_tag(project: Project, tag: str) -> frozenset[str]:
    models = frozenset(
        node.name for node in project if any(fnmatchcase(known, tag) for known in node.model.tags)
    )
    if not models:
        raise command_errors.unknown_tag(
            tag, sorted({tag for node in project for tag in node.model.tags})
        )
    return models
