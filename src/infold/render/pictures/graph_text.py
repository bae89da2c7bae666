"""The graph of models in the languages of other tools: Mermaid, Graphviz, and JSON."""

from __future__ import annotations

from typing import Any

from infold.core.graph import SOURCE, Graph, GraphNode
from infold.core.model import Kind
from infold.core.project import Project
from infold.render.formatting import iso


def mermaid(graph: Graph) -> str:
    """A flow chart for Markdown."""
    lines = ["flowchart LR"]
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        start, end = ("([", "])") if node.kind == SOURCE else ("[", "]")
        lines.append(f'  {ids[node.name]}{start}"{_escaped_for_mermaid(node.name)}"{end}')
    lines += [f"  {ids[read]} --> {ids[node.name]}" for node in graph.nodes for read in node.reads]
    return "\n".join(lines)


_OF_MERMAID = {ord(sign): f"#{ord(sign)};" for sign in '#"<>&`\\'}


def _escaped_for_mermaid(text: str) -> str:
    return " ".join(text.split()).translate(_OF_MERMAID)


def dot(project: Project, graph: Graph) -> str:
    """A program for Graphviz."""
    lines = [
        f"digraph {_quoted(project.name)} {{",
        "  rankdir=LR;",
        '  node [shape=box, style=rounded, fontname="sans-serif"];',
    ]
    for node in graph.nodes:
        shape = " [shape=cylinder, style=solid]" if node.kind == SOURCE else ""
        lines.append(f"  {_quoted(node.name)}{shape};")
    lines += [
        f"  {_quoted(read)} -> {_quoted(node.name)};" for node in graph.nodes for read in node.reads
    ]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def graph_json(project: Project, graph: Graph) -> dict[str, Any]:
    """The graph for programs."""
    return {
        "project": project.name,
        "target": project.target.name,
        "nodes": [
            {"name": node.name, "kind": node.kind, "reads": list(node.reads)}
            | _declared(project, node)
            for node in graph.nodes
        ],
    }


def _declared(project: Project, node: GraphNode) -> dict[str, Any]:
    """What is declared of a model, so that a scheduler knows its cells and checks; of a source."""
    if node.kind == SOURCE:
        return {"columns": [column.name for column in project.sources[node.name].columns]}
    found = project[node.name]
    model = found.model
    return {
        "description": model.description,
        "tags": list(model.tags),
        "file": str(model.place),
        "columns": list(found.columns),
        "incremental": model.kind is Kind.INCREMENTAL_TABLE,
        "granularity": model.granularity.value if model.granularity else None,
        "start": None if found.start is None else iso(found.start),
        "audits": [
            {"name": audit.name, "severity": audit.severity.value} for audit in model.audits
        ],
    }
