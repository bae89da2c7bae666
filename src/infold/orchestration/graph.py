"""The models of a project as a scheduler sees them: what ``infold dag --json`` prints."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

SOURCE, VIEW = "source", "view"


@dataclass(frozen=True, slots=True)
class GraphModel:
    """
    A source, a view or a table of the project.

    ``granularity`` is the length of a table's cells; of an ``incremental`` one a window chooses
    which are built. ``audits`` are name and severity.
    """

    name: str
    kind: str
    reads: tuple[str, ...] = ()
    description: str = ""
    tags: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    incremental: bool = False
    granularity: str | None = None
    start: str | None = None
    audits: tuple[tuple[str, str], ...] = ()

    @property
    def is_table(self) -> bool:
        """Whether a run builds it."""
        return self.kind not in (SOURCE, VIEW)


@dataclass(frozen=True)
class ProjectGraph:
    """A project's sources and models, each after all that it reads."""

    project: str
    nodes: tuple[GraphModel, ...]

    @classmethod
    def of(cls, document: Mapping[str, Any]) -> ProjectGraph:
        """What the JSON says; keys that it lacks have defaults."""
        return cls(document["project"], tuple(map(_model_of, document["nodes"])))

    @property
    def tables(self) -> tuple[GraphModel, ...]:
        """The models that runs build."""
        return tuple(node for node in self.nodes if node.is_table)

    @property
    def sources(self) -> tuple[GraphModel, ...]:
        """What they are built from."""
        return tuple(node for node in self.nodes if node.kind == SOURCE)

    def reads(self, name: str) -> tuple[str, ...]:
        """The tables and sources that a model reads, also through views."""
        by_name = {node.name: node for node in self.nodes}

        def found(one: str) -> Iterator[str]:
            for read in by_name[one].reads:
                if read not in by_name:
                    continue
                if by_name[read].kind == VIEW:
                    yield from found(read)
                else:
                    yield read

        return tuple(dict.fromkeys(found(name)))


def _model_of(node: Mapping[str, Any]) -> GraphModel:
    return GraphModel(
        node["name"],
        node["kind"],
        tuple(node["reads"]),
        node.get("description") or "",
        tuple(node.get("tags") or ()),
        tuple(node.get("columns") or ()),
        bool(node.get("incremental")),
        node.get("granularity"),
        node.get("start"),
        tuple((audit["name"], audit["severity"]) for audit in node.get("audits") or ()),
    )
