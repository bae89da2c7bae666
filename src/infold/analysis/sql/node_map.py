"""Values by the nodes of a syntax tree."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from typing import TypeVar

from sqlglot import exp

Value = TypeVar("Value")


class NodeMap(MutableMapping[exp.Expr, Value]):
    """
    Values by nodes: the node itself, not any that is written like it.

    sqlglot compares nodes by what they say, so in a dict the ``ts`` of one side of a join would be
    the ``ts`` of the other. The map keeps its nodes alive, so no other node gets the id of one.
    """

    def __init__(self) -> None:
        self._entries: dict[int, tuple[exp.Expr, Value]] = {}

    def __getitem__(self, node: exp.Expr) -> Value:
        """The value of a node."""
        try:
            return self._entries[id(node)][1]
        except KeyError:
            raise KeyError(node) from None

    def __setitem__(self, node: exp.Expr, value: Value) -> None:
        """Give a node its value."""
        self._entries[id(node)] = (node, value)

    def __delitem__(self, node: exp.Expr) -> None:
        """Forget a node."""
        del self._entries[id(node)]

    def __iter__(self) -> Iterator[exp.Expr]:
        """The nodes, in the order in which they came."""
        return (node for node, _ in self._entries.values())

    def __len__(self) -> int:
        """How many nodes there are."""
        return len(self._entries)

    def __contains__(self, node: object) -> bool:
        """Whether this very node has a value."""
        return id(node) in self._entries
