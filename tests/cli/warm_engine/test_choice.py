"""Which commands use an engine, and what a client and an engine say to each other."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from infold.cli.main import COMMANDS, cli
from infold.cli.warm_engine import choice
from infold.cli.warm_engine.choice import Typed, is_on
from infold.system import circumstances, engine_socket
from infold.system.engine_socket import Request
from infold.system.installed_code import installed


@pytest.mark.parametrize(
    ("line", "root", "target", "command", "off"),
    [
        ("run", ".", None, "run", False),
        ("-C shop run --target x", "shop", None, "run", False),
        ("--project=shop --target prod verify -s a", "shop", "prod", "verify", False),
        ("--no-engine --project shop test", "shop", None, "test", True),
        ("--help run", ".", None, "", False),
        ("-Cshop run", ".", None, "", False),
        ("-C", "", None, "", False),
        ("", ".", None, "", False),
    ],
)
def test_a_command_line_is_read(
    line: str, root: str, target: str | None, command: str, off: bool
) -> None:
    """Only its global options are; where one is unknown there is no command."""
    found = Typed(line.split())

    assert (found.root, found.target, found.command, found.off) == (root, target, command, off)


@pytest.mark.parametrize(
    ("environment", "terminal", "expected"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"CI": "true"}, True, False),
        ({"CI": "true", "INFOLD_ENGINE": "on"}, False, True),
        ({"INFOLD_ENGINE": "off"}, True, False),
        ({"INFOLD_ENGINE": "ON"}, False, True),
        ({"INFOLD_ENGINE": "on", "PYSPARK_GATEWAY_PORT": "1"}, True, False),
    ],
)
def test_where_an_engine_is_used(
    environment: dict[str, str], terminal: bool, expected: bool
) -> None:
    """Where a person waits, unless something else is said; by commands that there are."""
    assert COMMANDS.keys() >= choice.COMMANDS
    assert is_on(Typed(["run"]), environment, terminal=terminal) is expected
    assert not is_on(Typed(["--no-engine", "run"]), environment, terminal=terminal)
    assert not is_on(Typed(["history"]), environment, terminal=terminal)


TEXT = st.binary(max_size=8).filter(lambda text: b"\0" not in text)
NAME = TEXT.filter(lambda text: text != b"" and b"=" not in text)


@given(st.lists(TEXT), TEXT, st.dictionaries(NAME, TEXT))
def test_a_request_comes_as_it_was_sent(
    words: list[bytes], place: bytes, environment: dict[bytes, bytes]
) -> None:
    """Whatever words and variables there are."""
    here, there = socket.socketpair()
    with here, there:
        engine_socket.send(here, Request(b"run", words, place, environment))
        found = engine_socket.receive(there)

    expected = b"run", tuple(words), place, environment
    assert (found.kind, found.words, found.place, found.environment) == expected


@pytest.mark.parametrize("data", [b"", b"\0\0", b"\0\0\0\5run", b"\0\0\0\3run", b"\xff" * 8])
def test_what_is_no_request_is_refused(data: bytes) -> None:
    """It ends early, is too long, or makes no sense."""
    here, there = socket.socketpair()
    with there:
        here.sendall(data)
        here.close()
        with pytest.raises((ValueError, OSError)):
            engine_socket.receive(there)


def test_only_the_owner_reaches_a_socket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else may open it, and a client trusts no other user's."""
    file = tmp_path / ("x" * 90) / "engine.sock"
    file.parent.mkdir()
    with engine_socket.listen(str(file)):
        assert file.stat().st_mode & 0o777 == 0o600
        with engine_socket.connect(str(file)) as made:
            assert engine_socket.peer(made) == (os.getpid(), os.geteuid())
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        with pytest.raises(PermissionError):
            engine_socket.connect(str(file))
    with pytest.raises(OSError):
        engine_socket.connect(str(file))


@pytest.mark.parametrize("word", ["status", "stop", "restart"])
def test_elsewhere_than_on_linux_there_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, word: str
) -> None:
    """Where the system lacks what one needs, it is asked for nothing of that."""
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.delattr(os, "O_PATH")
    monkeypatch.delattr(os, "pidfd_open")

    done = CliRunner().invoke(cli, ["-C", str(tmp_path), "engine", word])

    assert done.exit_code == 0
    assert done.output.startswith(f"No engine {'is' if word == 'status' else 'was'} running")


def test_what_differs_between_terminals_does_not_matter() -> None:
    """Everything else does."""
    one = {b"TERM": b"xterm", b"SSH_CLIENT": b"1", b"HOME": b"/root"}
    other = {b"COLUMNS": b"80", b"HOME": b"/root", b"INFOLD_ENGINE": b"on"}

    assert circumstances.that_matters(one) == circumstances.that_matters(other)
    assert circumstances.that_matters({**one, b"AWS_REGION": b"x"}) != circumstances.that_matters(
        one
    )


def test_a_place_is_what_a_process_cannot_change_for_a_jvm(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another folder, mask, or path of modules is another place."""
    here = circumstances.place(["a"])
    mask = os.umask(0o027)
    try:
        masked = circumstances.place(["a"])
    finally:
        os.umask(mask)
    other_path, again = circumstances.place(["b"]), circumstances.place(["a"])
    monkeypatch.chdir(tmp_path)

    assert here == again
    assert len({here, masked, other_path, circumstances.place(["a"])}) == 4


def test_a_changed_file_of_the_program_is_seen(tmp_path: Path) -> None:
    """Written, made, or removed."""
    (tmp_path / "part").mkdir()
    file = tmp_path / "part" / "one.py"
    file.write_text("x = 1")
    first = installed(tmp_path)
    again = installed(tmp_path)
    file.write_text("x = 22")
    written = installed(tmp_path)
    (tmp_path / "two.py").touch()
    made = installed(tmp_path)

    assert first == again
    assert len({first, written, made}) == 3
