"""
The graph of models in a terminal: a line for each, and a lane for each table that is still read.

A lane goes down from a table to the last that reads it. A reader's line begins at the lane of what
it reads: ``├`` if others read it further down, ``└`` if not; ``┼`` and ``┴`` are further tables
that it reads, and a lane that it only crosses stays whole.
"""

from __future__ import annotations

from dataclasses import dataclass

from infold.core.graph import SOURCE, Graph, GraphNode
from infold.core.project import Project
from infold.render import formatting
from infold.render.pictures.look import Look

_SIGNS = {False: "├└┼┴─│●○", True: "|`+'-|*o"}


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
        return look.screen([*lines, *(_listed(node, look) for node in graph.nodes)])
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


def _listed(node: GraphNode, look: Look) -> str:
    reads = f" < {', '.join(node.reads)}" if node.reads else ""
    return formatting.clip(f"{node.name}{reads}", look.width)


def _lanes(graph: Graph, look: Look) -> list[tuple[str, GraphNode]]:
    """The signs before each node."""
    lanes: list[_Lane | None] = []
    drawn = []
    for node in graph.nodes:
        read = [i for i, lane in enumerate(lanes) if lane and node.name in lane.readers]
        after = _without(lanes, node.name)
        first = read[-1] + 1 if read else 0
        place = next((i for i in range(first, len(lanes)) if lanes[i] is None), len(lanes))
        drawn.append((_line(lanes, after, read, place, node, look), node))
        lanes = after + [None] * (place + 1 - len(after))
        readers = frozenset(graph.readers[node.name])
        lanes[place] = _Lane(node.name, readers) if readers else None
        while lanes and lanes[-1] is None:
            lanes.pop()
    return drawn


def _without(lanes: list[_Lane | None], reader: str) -> list[_Lane | None]:
    """The lanes once a node is drawn: those that it read last end."""
    found: list[_Lane | None] = []
    for lane in lanes:
        left = lane.readers - {reader} if lane else frozenset()
        found.append(_Lane(lane.name, left) if lane and left else None)
    return found


def _line(
    lanes: list[_Lane | None],
    after: list[_Lane | None],
    read: list[int],
    place: int,
    node: GraphNode,
    look: Look,
) -> str:
    """The signs of one node: its lane is ``place``, and ``read`` are those of what it reads."""
    goes_on, ends, more, last, across, down, model, source = tuple(_SIGNS[look.plain])
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
