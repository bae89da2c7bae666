"""The graph of models as an SVG: sources on the left, each model right of all that it reads."""

from __future__ import annotations

from html import escape

from infold.core.graph import SOURCE, Graph, GraphNode
from infold.core.project import Project
from infold.render import formatting

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
