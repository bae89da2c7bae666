"""A keeper goes on, whoever asks it for something."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from infold.cli.warm_engine.keeper import Keeper
from infold.system import engine_socket as wire


@pytest.fixture
def keeper(tmp_path: Path) -> Iterator[Keeper]:
    """One in this process, which has no JVM."""
    file = str(tmp_path / "engine.sock")
    given = {"pid": os.getpid(), "target": "dev", "idle": 1, "socket": file}
    with wire.listen(file) as listening:
        yield Keeper(given, "", listening)


@pytest.mark.parametrize("kind", [wire.STATUS, wire.STOP, wire.RUN, b"nonsense"])
def test_a_client_that_goes_away_costs_nothing(keeper: Keeper, kind: bytes) -> None:
    """It does not wait for its answer."""
    for _ in range(2):
        with wire.connect(keeper.given["socket"]) as client:
            wire.send(client, wire.Request(kind))
        keeper._accept()

    assert keeper.waiting == []
