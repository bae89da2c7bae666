"""A connection to a server is kept by the process that made it, and by no other."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from infold.messages.errors import InfoldError
from infold.system.postgresql_server import Fault, KeptConnection, Server


@dataclass
class Connection:
    """Stands for psycopg's: knows whether it was closed."""

    closed: bool = False

    def close(self) -> None:
        """Close it."""
        self.closed = True


@dataclass(frozen=True)
class Servers(Server):
    """A server that counts how often it was connected to."""

    made: list[Connection] = field(default_factory=list)

    def error(self, fault: Fault, place: str = "", why: str = "") -> InfoldError:
        """Nothing fails here."""
        raise NotImplementedError(fault, place, why)

    def connect(self) -> tuple[Any, str]:
        """Another connection."""
        self.made.append(Connection())
        return cast("Any", self.made[-1]), "the server"


def kept() -> tuple[KeptConnection, list[Connection]]:
    """A kept connection, and those that were made for it."""
    server = Servers("", Path(), "ledger")
    return KeptConnection(server), server.made


def test_it_is_made_once_and_again_when_it_was_closed() -> None:
    """The one who opens is told whether it is new; to close twice does no harm."""
    one, made = kept()
    one.close()

    assert [one.open()[1], one.open()[1]] == [True, False]
    one.close()
    one.close()
    assert one.current is None
    assert one.open()[1]
    assert [each.closed for each in made] == [True, False]
    assert one.shown == "the server"


def test_a_forked_child_makes_its_own() -> None:
    """It sees none, and closes its parent's neither by hand nor as it makes one of its own."""
    one, made = kept()
    one.open()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            found = [one.current is None]
            one.close()
            found.append(one.open()[1])
            one.close()
            found += [each.closed for each in made]
            os.write(write, repr(found).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(write)

    with os.fdopen(read) as told:
        assert told.read() == repr([True, True, False, True])
    assert not one.open()[1]
