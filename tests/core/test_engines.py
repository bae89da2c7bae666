"""Which masters are elsewhere, and where they are."""

from __future__ import annotations

import pytest

from infold.core.engines import MASTER, REMOTE, Engine


@pytest.mark.parametrize(
    ("master", "cluster", "addresses"),
    [
        ("local", False, ()),
        ("local[*]", False, ()),
        ("local[4]", False, ()),
        ("yarn", True, ()),
        ("k8s://https://a.example:6443", True, ()),
        ("spark://a:7077", True, (("a", 7077),)),
        ("spark://a:7077,b.example:17077", True, (("a", 7077), ("b.example", 17077))),
        ("spark://[::1]:7077", True, (("[::1]", 7077),)),
    ],
)
def test_masters(master: str, cluster: bool, addresses: tuple[tuple[str, int], ...]) -> None:
    """Only a standalone cluster's addresses are known."""
    assert MASTER.fullmatch(master)
    engine = Engine(master)
    assert (engine.is_cluster, engine.addresses) == (cluster, addresses)


@pytest.mark.parametrize(
    ("url", "server", "addresses"),
    [
        ("sc://a", "sc://a", (("a", 15002),)),
        ("sc://a.example:15003/", "sc://a.example:15003", (("a.example", 15003),)),
        ("sc://[::1]:1/;use_ssl=true;token=${file:a/b c}", "sc://[::1]:1", (("[::1]", 1),)),
    ],
)
def test_servers(url: str, server: str, addresses: tuple[tuple[str, int], ...]) -> None:
    """A server is named without its parameters, and its executors are elsewhere."""
    assert REMOTE.fullmatch(url)
    engine = Engine(remote=url)
    assert (engine.name, engine.server, engine.addresses) == (server, server, addresses)
    assert engine.is_cluster


NO_MASTERS = ["", "spark://a", "spark://a:x", "spark://a:1,b", "local[0x]", "local-cluster[2,1,5]"]
NO_SERVERS = [
    *("", "sc://", "http://a", "sc://a;token=b", "sc://a/b", "sc://a:b", "sc://u@a", "SC://a")
]


def test_what_is_no_address() -> None:
    """Masters of earlier Sparks or its tests are none; a server has no path and no user."""
    assert [text for text in NO_MASTERS if MASTER.fullmatch(text)] == []
    assert not any(map(MASTER.fullmatch, ("mesos://a:5050", "yarn-client", "SPARK://a:1")))
    assert [text for text in NO_SERVERS if REMOTE.fullmatch(text)] == []
