"""
A real Hive metastore for tests, and a gate before it that loses answers.

It is Hive 2.3's, whose jars come with pyspark: nothing more is downloaded. Its database is Derby's.
It makes its tables there by itself, but those of locks, which Hive's ``schematool`` makes.
"""

from __future__ import annotations

import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from tests.servers.gate import free_port
from tests.servers.program import SMALL, java, program, site

from infold.spark.jvm.java import spark_home

_MAIN = "org.apache.hadoop.hive.metastore.HiveMetaStore"
_LOCKS = """
CONNECT 'jdbc:derby:metastore;create=true';
CREATE TABLE TXNS (TXN_ID BIGINT PRIMARY KEY, TXN_STATE CHAR(1) NOT NULL,
  TXN_STARTED BIGINT NOT NULL, TXN_LAST_HEARTBEAT BIGINT NOT NULL, TXN_USER VARCHAR(128) NOT NULL,
  TXN_HOST VARCHAR(128) NOT NULL, TXN_AGENT_INFO VARCHAR(128), TXN_META_INFO VARCHAR(128),
  TXN_HEARTBEAT_COUNT INTEGER);
CREATE TABLE HIVE_LOCKS (HL_LOCK_EXT_ID BIGINT NOT NULL, HL_LOCK_INT_ID BIGINT NOT NULL,
  HL_TXNID BIGINT, HL_DB VARCHAR(128) NOT NULL, HL_TABLE VARCHAR(128), HL_PARTITION VARCHAR(767),
  HL_LOCK_STATE CHAR(1) NOT NULL, HL_LOCK_TYPE CHAR(1) NOT NULL, HL_LAST_HEARTBEAT BIGINT NOT NULL,
  HL_ACQUIRED_AT BIGINT, HL_USER VARCHAR(128) NOT NULL, HL_HOST VARCHAR(128) NOT NULL,
  HL_HEARTBEAT_COUNT INTEGER, HL_AGENT_INFO VARCHAR(128), HL_BLOCKEDBY_EXT_ID BIGINT,
  HL_BLOCKEDBY_INT_ID BIGINT, PRIMARY KEY (HL_LOCK_EXT_ID, HL_LOCK_INT_ID));
CREATE TABLE NEXT_LOCK_ID (NL_NEXT BIGINT NOT NULL);
INSERT INTO NEXT_LOCK_ID VALUES (1);
CREATE TABLE AUX_TABLE (MT_KEY1 VARCHAR(128) NOT NULL, MT_KEY2 BIGINT NOT NULL,
  MT_COMMENT VARCHAR(255), PRIMARY KEY (MT_KEY1, MT_KEY2));
EXIT;
"""
"""For Derby's own client, which comes with pyspark, too."""

_OPTIONS = (*SMALL, "-Dderby.system.durability=test")


@dataclass
class HiveMetastore:
    """A metastore behind its gate; how many have their answers lost is told by what they ask."""

    port: int
    url: str = ""
    lost: dict[str, int] = field(default_factory=dict)
    seen: bytearray = field(default_factory=bytearray)
    """All that was asked."""

    @contextmanager
    def losing(self, request: str, times: int = 1) -> Iterator[None]:
        """What is asked for is done, and the connection ends in place of an answer."""
        self.lost[request] = times
        yield
        del self.lost[request]

    def loses(self, sent: bytes) -> bool:
        """Whether the answer to this is to be lost."""
        for request, times in self.lost.items():
            if times and request.encode() in sent:
                self.lost[request] = times - 1
                return True
        return False


@contextmanager
def running(folder: Path) -> Iterator[HiveMetastore]:
    """A metastore for the block; it ends with this process, too."""
    port = free_port()
    settings = {
        "javax.jdo.option.ConnectionURL": f"jdbc:derby:{folder / 'metastore'}",
        "datanucleus.schema.autoCreateAll": "true",
        "datanucleus.connectionPoolingType": "HikariCP",
        "hive.metastore.schema.verification": "false",
        "hive.metastore.warehouse.dir": str(folder / "warehouse"),
        "hive.async.log.enabled": "false",
    }
    (folder / "hive-site.xml").write_text(site(settings))
    jars = f"{spark_home() / 'jars'}/*"
    made = subprocess.run(
        [java(), *_OPTIONS, "-cp", jars, "org.apache.derby.tools.ij"],
        input=_LOCKS.encode(),
        cwd=folder,
        capture_output=True,
        check=True,
    )
    assert b"ERROR" not in made.stdout, made.stdout

    def answers() -> bool:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
        return True

    words = (f"-Dhive.log.dir={folder}", "-cp", f"{folder}:{jars}", _MAIN, "-p", str(port))
    server = HiveMetastore(port)
    with (
        program([java(), *_OPTIONS, *words], folder / "metastore.log", answers, cwd=folder),
        socket.create_server(("127.0.0.1", 0)) as gate,
    ):
        server.url = f"thrift://127.0.0.1:{gate.getsockname()[1]}"
        Thread(target=_serve, args=(gate, server), daemon=True).start()
        yield server


def _serve(gate: socket.socket, server: HiveMetastore) -> None:
    with suppress(OSError):  # it is closed
        while True:
            near, _ = gate.accept()
            Thread(target=_pass_on, args=(near, server), daemon=True).start()


def _pass_on(near: socket.socket, server: HiveMetastore) -> None:
    """One connection; each request comes in one piece that begins with what it asks for."""
    far = socket.create_connection(("127.0.0.1", server.port))
    losing = [False]

    def answers() -> None:
        with suppress(OSError):
            while (piece := far.recv(1 << 16)) and not losing[0]:
                near.sendall(piece)
        with suppress(OSError):
            near.shutdown(socket.SHUT_RDWR)

    Thread(target=answers, daemon=True).start()
    with suppress(OSError):
        while piece := near.recv(1 << 16):
            server.seen += piece
            losing[0] = losing[0] or server.loses(piece)
            far.sendall(piece)
    with suppress(OSError):
        far.shutdown(socket.SHUT_RDWR)
