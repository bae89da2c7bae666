"""What a command leaves when it ends."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from infold.api import spark_sessions
from infold.api.spark_sessions import Home
from infold.cli.warm_engine import leaving
from infold.spark.jvm import lasting
from infold.spark.jvm.gateway import Jvm
from infold.spark.jvm.lasting import OfAnother, Offer
from infold.system.circumstances import Began


@pytest.mark.parametrize(
    ("words", "found"), [(("run",), True), (("--target", "dev", "run"), False)]
)
def test_an_engine_that_stays_is_found_without_a_target(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], found: bool
) -> None:
    """One that a command with a target left, too, once a command without one knows which it is."""
    socket = tmp_path / ".infold" / "engine-dev.sock"
    socket.parent.mkdir()
    offer = Offer(Jvm(OfAnother(0, 0), 0, "1", "secret"), "needs", large=False)
    monkeypatch.setattr(sys, "argv", ["infold", *words])
    monkeypatch.setenv("INFOLD_ENGINE", "on")
    monkeypatch.setattr(spark_sessions, "home", lambda: Home("dev", str(socket), 1))
    monkeypatch.setattr(lasting, "to_leave", lambda: offer)
    monkeypatch.setattr(leaving, "_may_replace", lambda *_: False)

    said = leaving.leave(Began())

    link = socket.with_name("engine.sock")
    assert (said, link.is_symlink()) == ("", found)
    assert not found or str(link.readlink()) == socket.name
