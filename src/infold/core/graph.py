"""The graph of a project's sources and models, as it is drawn."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property

from infold.core.project import Project

SOURCE = "source"


@dataclass(frozen=True, slots=True)
class GraphNode:
    """A source or a model with the names that it reads; ``kind`` is a model's materialization."""

    name: str
    kind: str
    reads: tuple[str, ...] = ()


@dataclass(frozen=True)
class Graph:
    """Sources and models, each after all that it reads."""

    nodes: tuple[GraphNode, ...]

    @cached_property
    def readers(self) -> dict[str, tuple[str, ...]]:
        """Who reads each node, in their order."""
        found: dict[str, tuple[str, ...]] = {node.name: () for node in self.nodes}
        for node in self.nodes:
            for name in node.reads:
                found[name] = (*found[name], node.name)
        return found


def graph_of(project: Project, names: Collection[str]) -> Graph:
    """
    The graph of some models, with the sources that they read.

    A source that is landed as a table is a node once, as a source. Nodes come as close to what
    they read as their order allows, so that lines are short.
    """
    chosen = {
        node.name: tuple(one for one in node.reads if one != node.name)
        for node in project
        if node.name in names
    }
    kinds = {
        node.name: SOURCE if node.landed else node.model.kind.materialization.value
        for node in project
    }
    sources = dict.fromkeys(
        one for reads in chosen.values() for one in reads if one in project.sources
    )
    nodes = {name: GraphNode(name, SOURCE) for name in sources if name not in chosen}
    for name, reads in chosen.items():
        known = tuple(one for one in reads if one in nodes or one in chosen)
        nodes[name] = GraphNode(name, kinds[name], known)
    return Graph(tuple(_in_depth(nodes)))


def _in_depth(nodes: dict[str, GraphNode]) -> list[GraphNode]:
    """Each node after all that it reads, and if possible at once after the last of these."""
    readers: dict[str, list[str]] = {name: [] for name in nodes}
    waiting = {name: len(node.reads) for name, node in nodes.items()}
    for name, node in nodes.items():
        for one in node.reads:
            readers[one].append(name)
    ready = [name for name, many in reversed(waiting.items()) if not many]
    found = []
    while ready:
        name = ready.pop()
        found.append(nodes[name])
        for reader in reversed(readers[name]):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return found
