"""The graph of models: its order, its lanes, and the languages of other tools."""

from __future__ import annotations

import re
from itertools import pairwise
from textwrap import dedent
from xml.etree import ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.cli import sample

from infold.render.pictures import graph as graph_text
from infold.render.pictures.graph import (
    SOURCE,
    Graph,
    GraphNode,
    _in_depth,
    graph_of,
    graph_screen,
    svg,
)
from infold.render.pictures.look import Look

PROJECT = sample.project()


def graph(text: str) -> Graph:
    """A graph of lines such as ``daily: sessions users``; a name with a dot is a source."""
    nodes = {}
    for line in text.split("\n"):
        name, _, reads = line.partition(":")
        kind = SOURCE if "." in name else "table"
        nodes[name.strip()] = GraphNode(name.strip(), kind, tuple(reads.split()))
    return Graph(tuple(_in_depth(nodes)))


SHOP = graph(
    """raw.clicks
raw.users
clicks: raw.clicks
users: raw.users
sessions: clicks
errors: clicks
daily: sessions errors
by_country: sessions users
report: daily by_country clicks"""
)


def drawn(of: Graph, look: Look) -> str:
    """The picture without its head and colours."""
    text = re.sub(r"\x1b\[\d+m", "", graph_screen(PROJECT, of, look))
    return "\n".join(line.removesuffix("  table") for line in text.split("\n")[2:])


def test_lanes_show_who_reads_what() -> None:
    """A lane goes on until the last reader; a plain picture is ASCII."""
    plain = graph_screen(PROJECT, SHOP, Look(60))
    assert plain.isascii()
    assert "`-----'-'-* report  table" in plain
    assert (
        drawn(SHOP, Look(60, plain=False))
        == dedent(
            """
            ○ raw.clicks  source
            └─● clicks
              ├─● sessions
              ├─│─● errors
              │ ├─┴─● daily
            ○ │ │   │ raw.users  source
            └─│─│─● │ users
              │ └─┴─│─● by_country
              └─────┴─┴─● report
            """
        ).strip()
    )


def test_a_wide_graph_is_a_list() -> None:
    """Where the lanes have no room, each model is listed with what it reads."""
    names = [f"m{number}" for number in range(30)]
    wide = graph("\n".join([*names, f"last: {' '.join(names)}"]))

    lines = graph_screen(PROJECT, wide, Look(40)).split("\n")

    assert max(map(len, lines)) <= 40
    assert lines[-1].startswith("last < m0, m1, ")


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """Models that read some of those before them."""
    nodes = {}
    for number in range(draw(st.integers(1, 12))):
        some = draw(st.lists(st.integers(0, 9), max_size=4))
        known = tuple(f"m{one}" for one in dict.fromkeys(some) if one < number)
        nodes[f"m{number}"] = GraphNode(f"m{number}", "table", known)
    return Graph(tuple(_in_depth(nodes)))


@given(graphs(), st.integers(40, 120), st.booleans())
def test_any_graph_is_drawn(found: Graph, width: int, plain: bool) -> None:
    """Each model has one line, below all that it reads, and no line is too wide."""
    lines = drawn(found, Look(width, plain=plain)).split("\n")

    order = [node.name for node in found.nodes]
    assert len(order) == len({*order})
    for node in found.nodes:
        assert all(order.index(one) < order.index(node.name) for one in node.reads)
    assert [re.findall(r"m\d+", line)[0] for line in lines] == order
    assert max(map(len, lines)) <= width


@given(graphs())
def test_lines_can_be_followed(found: Graph) -> None:
    """Who follows the lanes by their signs finds for each model exactly what it reads."""
    picture = drawn(found, Look(200, plain=False)).split("\n")

    lanes: dict[int, str] = {}
    for line, node in zip(picture, found.nodes, strict=True):
        signs = line.removesuffix(f" {node.name}")
        read = {lanes[at] for at, sign in enumerate(signs) if sign in "├└┼┴"}
        for at, sign in enumerate(signs):
            if sign in "└┴":
                del lanes[at]
        assert read == set(node.reads)
        assert all(signs[at] in "│├┼" for at in lanes)
        if found.readers[node.name]:
            lanes[signs.index("●")] = node.name
    assert lanes == {}


def test_the_graph_of_some_models_has_their_sources() -> None:
    """Models that are not chosen are left out, and so are the lines to them."""
    every = graph_of(PROJECT, {node.name for node in PROJECT})
    some = graph_of(PROJECT, {"daily", "clicks"})

    assert [(node.name, node.kind) for node in some.nodes] == [
        ("raw.clicks", "source"),
        ("clicks", "events"),
        ("daily", "table"),
    ]
    assert some.nodes[-1].reads == ()
    assert {node.name for node in every.nodes} == {
        "raw.clicks",
        *("clicks", "sessions", "daily", "countries", "latest"),
    }


def test_no_models() -> None:
    """A project without models has a sentence."""
    assert "There are no models to draw." in graph_screen(PROJECT, Graph(()), Look())
    ET.fromstring(svg(PROJECT, Graph(())))


EVIL = graph('a"b<i>&#\\: raw.x\nraw.x')


def test_mermaid() -> None:
    """Nodes have numbers, so that any name is a label; signs of Mermaid's own are escaped."""
    assert graph_text.mermaid(EVIL) == dedent(
        """\
        flowchart LR
          n0(["raw.x"])
          n1["a#34;b#60;i#62;#38;#35;#92;"]
          n0 --> n1"""
    )


def test_dot() -> None:
    """Names are quoted as Graphviz wants them."""
    assert graph_text.dot(PROJECT, EVIL).split("\n")[3:-1] == [
        '  "raw.x" [shape=cylinder, style=solid];',
        '  "a\\"b<i>&#\\\\";',
        '  "raw.x" -> "a\\"b<i>&#\\\\";',
    ]


@pytest.mark.parametrize("of", [SHOP, EVIL], ids=["shop", "evil"])
def test_a_picture_has_each_model_and_line(of: Graph) -> None:
    """A box a node, a path a line, each left of who reads it, none over another."""
    root = ET.fromstring(svg(PROJECT, of))
    space = "{http://www.w3.org/2000/svg}"

    titles = [one.findtext(f"{space}title") for one in root.iter(f"{space}g")]
    assert titles == [node.name for node in of.nodes]
    assert len(list(root.iter(f"{space}path"))) == sum(len(node.reads) for node in of.nodes)
    left = {
        one.findtext(f"{space}title"): int(one.find(f"{space}rect").attrib["x"])  # type: ignore[union-attr]
        for one in root.iter(f"{space}g")
    }
    for node in of.nodes:
        assert all(left[read] < left[node.name] for read in node.reads)
    boxes = sorted(
        (int(one.attrib["x"]), int(one.attrib["y"]), int(one.attrib["height"]))
        for one in root.iter(f"{space}rect")
        if "x" in one.attrib
    )
    assert all(a[0] != b[0] or a[1] + a[2] < b[1] for a, b in pairwise(boxes))
