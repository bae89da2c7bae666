"""
The project of an environment: its own models under the keys of their tables, over production's.

It is a project like any other, so whatever plans, builds, verifies and shows a project does that to
an environment. Production's models are in it as far as own ones read them; they are ``shared``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from infold.analysis.renamed_tables import renamed
from infold.core.environment import set_aside_of
from infold.core.model import Kind
from infold.core.project import Node, Project
from infold.core.target import Apply


def in_environment(
    name: str, declared: Project, production: Project, own: Mapping[str, str]
) -> Project:
    """
    The project of the environment ``name``; ``own`` has the keys of its tables by model.

    The other models that those read are as ``production`` has them.
    """
    views = view_names(declared, production, own)
    names = {**own, **views}
    nodes = [
        copy for node in declared if node.name in names for copy in _copies(node, names, declared)
    ]
    shared = tuple(_shared(production, nodes))
    target = replace(declared.target, protected=False, apply=Apply.AUTO)
    return replace(
        declared,
        sources={**production.sources, **declared.sources},
        nodes=(*shared, *nodes),
        target=target,
        applied=None,
        environment=name,
        shared=frozenset(node.name for node in shared),
        set_aside=set_aside_of(name),
    )


def view_names(declared: Project, production: Project, own: Mapping[str, str]) -> Mapping[str, str]:
    """New names for the views that are not production's, or that read own tables."""
    found: dict[str, str] = {}
    for node in declared:
        if node.model.kind is not Kind.VIEW:
            continue
        same = node.name in production and production[node.name] == node
        if not same or any(name in own or name in found for name in node.reads):
            found[node.name] = f"{node.name}__{node.fingerprint[:8]}"
    return found


def _copies(node: Node, names: Mapping[str, str], declared: Project) -> Iterator[Node]:
    """
    A model under its new name.

    Of an events model, before it come copies of the views that it reads its source through. They
    read the source itself; to all others these views show the table that it lands in.
    """
    views = _views_of_source(node, declared) if node.source in names else []
    inside = {one.name: f"{one.name}__{names[node.name]}" for one in views}
    without_source = {old: new for old, new in names.items() if old != node.source} | inside
    for view in views:
        yield renamed(view, inside[view.name], without_source)
    yield renamed(node, names[node.name], without_source if views else names)


def _views_of_source(node: Node, declared: Project) -> list[Node]:
    """The views through which an events model reads its source."""
    if node.source is None or node.source in node.reads:
        return []
    upstream = declared.upstream([node.name])
    return [
        one
        for one in declared
        if one.name in upstream
        and one.model.kind is Kind.VIEW
        and any(entry.name == node.source for entry in one.inputs)
    ]


def _shared(production: Project, nodes: Iterable[Node]) -> Iterator[Node]:
    """The tables of production that some nodes read, with the views in between, in order."""
    needed = {name for node in nodes for name in node.reads}
    needed |= {entry.name for node in nodes for entry in node.stored_inputs}
    needed |= {name for node in nodes for one in node.model.audits for name in one.reads(node.name)}
    for node in reversed(production.nodes):  # readers before what they read
        if node.name in needed and node.model.kind is Kind.VIEW:
            needed |= {*node.reads, *(entry.name for entry in node.stored_inputs)}
    return (node for node in production if node.name in needed)
