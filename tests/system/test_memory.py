"""Memory is short when little of the machine's, or of the container's, is left."""

from __future__ import annotations

import os

import pytest

from infold.cli.warm_engine import keeper


@pytest.mark.parametrize(
    ("machine", "container", "short"),
    [
        ((800, 1000), (None, 0), False),
        ((60, 1000), (None, 0), True),
        ((800, 1000), (100, 50), False),
        ((800, 1000), (100, 96), True),
    ],
)
def test_when_it_is_short(
    monkeypatch: pytest.MonkeyPatch,
    machine: tuple[int, int],
    container: tuple[int | None, int],
    short: bool,
) -> None:
    """Either is enough."""
    monkeypatch.setattr(keeper, "_of_machine", lambda: machine)
    monkeypatch.setattr(keeper, "_of_container", lambda: container)

    assert keeper.is_memory_short() is short


def test_what_a_process_has() -> None:
    """A Python has some megabytes; a process that is gone has nothing."""
    assert keeper.memory_of_process(os.getpid()) > 1_000_000
    assert keeper.memory_of_process(2**22 + 1) == 0
    left, total = keeper._of_machine()
    assert 0 < left < total
