"""
The graph of models in a terminal: a line for each, and a lane for each table that is still read.

A lane goes down from a table to the last that reads it. A reader's line begins at the lane of what
it reads: ``├`` if others read it further down, ``└`` if not; ``┼`` and ``┴`` are further tables
that it reads, and a lane that it only crosses stays whole.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any

from infold.core.project import Project
from infold.render import formatting
from infold.render.formatting import iso
from infold.render.pictures.look import Look

_LANE_SIGNS = {False: "├└┼┴─│●○", True: "|`+'-|*o"}


@dataclass(frozen=True, slots=True)
class _Lane:
    """A table that is read further down, and by whom."""

    name: str
    readers: frozenset[str]


def graph_screen(project: Project, graph: Graph, look: Look) -> str:
    """The whole graph, as wide as it may be; a list where the lanes have no room."""
    lines = [f"infold dag · {project.name} · {project.target.name}", ""]
    if not graph.nodes:
        return look.screen([*lines, "There are no models to draw."])
    drawn = _lanes(graph, look)
    widest = max(len(lane) for lane, _ in drawn)
    if widest > look.width - _LEAST_NAME:
        return look.screen([*lines, *(_listed_line(node, look) for node in graph.nodes)])
    for lane, node in drawn:
        room = look.width - len(lane) - 1
        name = formatting.clip(node.name, room)
        kind = f"  {node.kind}"
        kind = kind if len(name) + len(kind) <= room else ""
        lines.append(
            look.tinted(lane, "blue")
            + f" {look.tinted(name, 'strong')}{look.tinted(kind, 'faint')}"
        )
    return look.screen(lines)


_LEAST_NAME = 16
"""How much room a name needs beside the lanes."""


def _listed_line(node: GraphNode, look: Look) -> str:
    reads = f" < {', '.join(node.reads)}" if node.reads else ""
    return formatting.clip(f"{node.name}{reads}", look.width)


def _lanes(graph: Graph, look: Look) -> list[tuple[str, GraphNode]]:
    """The signs before each node."""
    lanes: list[_Lane | None] = []
    drawn = []
    for node in graph.nodes:
        read = [i for i, lane in enumerate(lanes) if lane and node.name in lane.readers]
        after = _lanes_after(lanes, node.name)
        first = read[-1] + 1 if read else 0
        place = next((i for i in range(first, len(lanes)) if lanes[i] is None), len(lanes))
        drawn.append((_line(lanes, after, read, place, node, look), node))
        lanes = after + [None] * (place + 1 - len(after))
        readers = frozenset(graph.readers[node.name])
        lanes[place] = _Lane(node.name, readers) if readers else None
        while lanes and lanes[-1] is None:
            lanes.pop()
    return drawn


def _lanes_after(lanes: list[_Lane | None], reader: str) -> list[_Lane | None]:
    """The lanes once a node is drawn: those that it read last end."""
    left_lanes: list[_Lane | None] = []
    for lane in lanes:
        readers = lane.readers - {reader} if lane else frozenset()
        left_lanes.append(_Lane(lane.name, readers) if lane and readers else None)
    return left_lanes


def _line(
    lanes: list[_Lane | None],
    after: list[_Lane | None],
    read: list[int],
    place: int,
    node: GraphNode,
    look: Look,
) -> str:
    """The signs of one node: its lane is ``place``, and ``read`` are those of what it reads."""
    goes_on, ends, more, last, across, down, model, source = tuple(_LANE_SIGNS[look.plain])
    text = ""
    for i in range(max(len(lanes), place + 1)):
        inside = bool(read) and read[0] <= i < place
        if i == place:
            sign = source if node.kind == SOURCE else model
        elif i in read:
            begins = i == read[0]
            sign = (goes_on if begins else more) if after[i] else (ends if begins else last)
        elif i < len(lanes) and lanes[i]:
            sign = down
        else:
            sign = across if inside else " "
        text += sign + (across if inside else " ")
    return text.rstrip()


_WIDE, _HIGH, _ASIDE, _BELOW, _EDGE = 176, 46, 58, 14, 8
_LETTERS = 23
"""How many letters of a name a box has room for."""

_STYLE = (
    "text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:#1f2933}"
    ".kind{font-size:11px;fill:#52606d}"
    "rect.model{fill:#e0f0e3;stroke:#52606d}rect.source{fill:#eef2f7;stroke:#52606d}"
    "path{fill:none;stroke:#7b8794;stroke-width:1.4}"
)


def svg(project: Project, graph: Graph) -> str:
    """The whole picture, which needs no other file."""
    layers = _layers(graph)
    tallest = max(map(len, layers), default=0)
    places = {
        node.name: (
            _EDGE + column * (_WIDE + _ASIDE),
            _EDGE + (tallest - len(layer)) * (_HIGH + _BELOW) // 2 + row * (_HIGH + _BELOW),
        )
        for column, layer in enumerate(layers)
        for row, node in enumerate(layer)
    }
    width = max(1, len(layers) * (_WIDE + _ASIDE) - _ASIDE + 2 * _EDGE)
    height = max(1, tallest * (_HIGH + _BELOW) - _BELOW + 2 * _EDGE)
    edges = [_edge(places[read], places[node.name]) for node in graph.nodes for read in node.reads]
    boxes = [_box(node, places[node.name]) for node in graph.nodes]
    title = escape(f"The sources and models of {project.name}, and what reads what")
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img">'
    )
    return "\n".join(
        [
            head,
            f"<title>{title}</title>",
            f"<style>{_STYLE}</style>",
            '<rect width="100%" height="100%" rx="6" fill="#fff"/>',
            *edges,
            *boxes,
            "</svg>",
        ]
    )


def _layers(graph: Graph) -> list[list[GraphNode]]:
    """Columns of nodes, each node beside the middle of what it reads."""
    depth: dict[str, int] = {}
    layers: list[list[GraphNode]] = []
    for node in graph.nodes:
        depth[node.name] = 1 + max((depth[read] for read in node.reads), default=-1)
        while len(layers) <= depth[node.name]:
            layers.append([])
        layers[depth[node.name]].append(node)
    row: dict[str, int] = {}
    for layer in layers:
        layer.sort(key=lambda node: sum(row[one] for one in node.reads) / max(1, len(node.reads)))
        row.update({node.name: number for number, node in enumerate(layer)})
    return layers


def _edge(begin: tuple[int, int], end: tuple[int, int]) -> str:
    """A curve from the right of one box to the left of another."""
    x1, y1, x2, y2 = begin[0] + _WIDE, begin[1] + _HIGH // 2, end[0], end[1] + _HIGH // 2
    bend = (x2 - x1) // 2
    return f'<path d="M{x1},{y1} C{x1 + bend},{y1} {x2 - bend},{y2} {x2},{y2}"/>'


def _box(node: GraphNode, place: tuple[int, int]) -> str:
    x, y = place
    kind = "source" if node.kind == SOURCE else "model"
    name = escape(formatting.clip(node.name, _LETTERS))
    return (
        f'<g><title>{escape(node.name)}</title><rect class="{kind}" x="{x}" y="{y}" '
        f'width="{_WIDE}" height="{_HIGH}" rx="6"/>'
        f'<text x="{x + 12}" y="{y + 20}">{name}</text>'
        f'<text class="kind" x="{x + 12}" y="{y + 36}">{escape(node.kind)}</text></g>'
    )


def mermaid(graph: Graph) -> str:
    """A flow chart for Markdown."""
    lines = ["flowchart LR"]
    ids = {node.name: f"n{number}" for number, node in enumerate(graph.nodes)}
    for node in graph.nodes:
        start, end = ("([", "])") if node.kind == SOURCE else ("[", "]")
        lines.append(f'  {ids[node.name]}{start}"{_escaped_for_mermaid(node.name)}"{end}')
    lines += [f"  {ids[read]} --> {ids[node.name]}" for node in graph.nodes for read in node.reads]
    return "\n".join(lines)


_MERMAID_ENTITIES = {ord(sign): f"#{ord(sign)};" for sign in '#"<>&`\\'}


def _escaped_for_mermaid(text: str) -> str:
    return " ".join(text.split()).translate(_MERMAID_ENTITIES)


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
    declared = project[node.name]
    model = declared.model
    return {
        "description": model.description,
        "tags": list(model.tags),
        "file": str(model.place),
        "columns": list(declared.columns),
        "incremental": model.kind.is_by_cell,
        "granularity": model.granularity.value if model.granularity else None,
        "start": None if declared.start is None else iso(declared.start),
        "audits": [
            {"name": audit.name, "severity": audit.severity.value} for audit in model.audits
        ],
    }


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
        by_name: dict[str, tuple[str, ...]] = {node.name: () for node in self.nodes}
        for node in self.nodes:
            for name in node.reads:
                by_name[name] = (*by_name[name], node.name)
        return by_name


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
        for input_name in node.reads:
            readers[input_name].append(name)
    ready = [name for name, many in reversed(waiting.items()) if not many]
    ordered = []
    while ready:
        name = ready.pop()
        ordered.append(nodes[name])
        for reader in reversed(readers[name]):
            waiting[reader] -= 1
            if not waiting[reader]:
                ready.append(reader)
    return ordered
