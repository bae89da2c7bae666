"""
A project of which a few models changed since it was kept: only what follows from them is compiled.

A model follows from its file, the project's file and the models that it reads. So the changed
models, those that read them and all that these read are compiled as a project of their own; the
others stay. This holds only while the project is the same in everything that it is as a whole:
which files there are, who reads whom, and so which sources are landed. With views, which are what
their readers make of them, with changed events and with optional columns, all is read again. So it
is where anything is wrong: errors are to be found together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.declare.cache import FILES
from infold.declare.folder import FUNCTIONS, MODELS, PROJECT_FILE, Folder


def changed_project(folder: Folder, cached: Mapping[str, Any]) -> Project | None:
    """The project of a folder, by one that was kept of it; None where all has to be read."""
    changed = _changed_files(folder, cached[FILES])
    before = Project(
        name=cached["name"],
        root=folder.root,
        start=cached["start"],
        sources=cached["sources"],
        nodes=cached["nodes"],
        target=cached["targets"][cached["default"]],
        targets=cached["targets"],
        erased_columns=cached["erased_columns"],
        erasure_requests=cached["erasure_requests"],
    )
    files = {node.model.place.file: node for node in before if not node.landed}
    if not changed or not changed <= files.keys() or _has_optional_columns(before):
        return None
    if any(one.tables or one.to for node in before for one in node.model.audits):
        return None  # an audit may read any model, and its file is none of a model
    models = {files[file].name for file in changed}
    affected = models | before.downstream(models)
    needed = affected | before.upstream(affected)
    if len(needed) * 2 > len(before.nodes) or not _stands_alone(before, models, needed):
        return None
    names = {PROJECT_FILE, *(file for file, node in files.items() if node.name in needed)}
    names.update(name for name in folder.digests if _is_called(name))
    reread = _read(Folder(folder.root, tuple(one for one in folder.files if one[0] in names)))
    if reread is None or {node.name for node in reread} != needed:
        return None
    if not all(_reads_the_same(before[name], reread[name]) for name in models):
        return None
    if any(reread[name] != before[name] for name in needed - affected):
        return None
    nodes = (reread[node.name] if node.name in affected else node for node in before)
    return replace(before, nodes=tuple(nodes))


def _changed_files(folder: Folder, before: Mapping[str, str]) -> frozenset[str]:
    """The files with other bytes than before; none if there are other files, or another project."""
    digests = folder.digests
    if digests.keys() != before.keys() or digests[PROJECT_FILE] != before[PROJECT_FILE]:
        return frozenset()
    return frozenset(name for name, digest in digests.items() if digest != before[name])


def _is_called(file: str) -> bool:
    """Whether models may call what is in a file: functions, and modules that these import."""
    return file.startswith(f"{FUNCTIONS}/") or (
        file.endswith(".py") and not file.startswith(f"{MODELS}/")
    )


def _has_optional_columns(project: Project) -> bool:
    """Whether what is read of a source depends on all who read it."""
    return any(column.optional for one in project.sources.values() for column in one.columns)


def _stands_alone(project: Project, models: set[str], needed: set[str]) -> bool:
    """Whether models mean the same without the others."""
    events = any(project[name].model.kind is Kind.EVENTS for name in models)
    return not events and all(project[name].model.kind.is_stored for name in needed)


def _read(folder: Folder) -> Project | None:
    """The project of some files; None if anything is wrong with it."""
    from infold.declare.project import read_project

    project, _, mistakes = read_project(folder)
    return None if mistakes else project


def _reads_the_same(before: Node, after: Node) -> bool:
    same = before.model.kind is after.model.kind
    return same and {*before.reads} == {*after.reads}
