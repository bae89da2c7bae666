"""The order in which models are compiled: each after what it reads."""

from __future__ import annotations

from collections.abc import Mapping, Sequence


def in_dependency_order(
    reads: Mapping[str, Sequence[str]],
) -> tuple[list[str], list[tuple[str, ...]]]:
    """Names with what they read before them, and each circle once."""
    order: list[str] = []
    cycles: list[tuple[str, ...]] = []
    state: dict[str, int] = {}
    for root in sorted(reads):
        path: list[str] = []
        todo: list[tuple[str, bool]] = [(root, False)]
        while todo:
            name, done = todo.pop()
            if done:
                path.pop()
                state[name] = 2
                order.append(name)
            elif state.get(name) == 1:
                cycles.append(tuple(path[path.index(name) :]))
            elif name not in state:
                state[name] = 1
                path.append(name)
                todo.append((name, True))
                todo.extend((read, False) for read in sorted(set(reads[name]), reverse=True))
    return order, cycles
