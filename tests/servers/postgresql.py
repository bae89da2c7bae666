"""A real PostgreSQL server for tests: its own, in a temporary folder, on a free port."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.servers.gate import free_port, new_name
from tests.servers.program import awaited, begin, end

NOBODY = 65534
"""The server refuses to run as root."""

SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "fsync": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_connections": "60",
    "lc_messages": "C",
}


class Postgresql:
    """A running server, and its superuser ``infold``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.data = folder, folder / "data"
        self.password = f"s3cret/{secrets.token_hex(4)}?@:%"
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None

    def create(self) -> None:
        """Make the server's files."""
        self.folder.chmod(0o755)
        self.data.mkdir()
        secret = self.folder / "password"
        secret.write_text(self.password, encoding="utf-8")
        if os.getuid() == 0:
            os.chown(self.data, NOBODY, NOBODY)
        command = [program("initdb"), "--no-sync", f"--pgdata={self.data}", "--username=infold"]
        command += ["--encoding=UTF8", "--locale=C", "--auth=scram-sha-256", f"--pwfile={secret}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, **self._as_nobody())

    def start(self) -> None:
        """Start it, and wait until it answers."""
        settings = SETTINGS | {"port": str(self.port), "unix_socket_directories": str(self.data)}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        command, log = [program("postgres"), "-D", str(self.data), *options], self.folder / "log"
        self._process = begin(command, log, ended_by="QUIT", **self._as_nobody())
        awaited(self._answers, log)

    def _answers(self) -> bool:
        import psycopg

        try:
            self.admin().close()
        except psycopg.Error:
            return False
        return True

    def stop(self) -> None:
        """Stop it at once, whoever is connected."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def admin(self, database: str = "postgres") -> Any:
        """A connection of the superuser, in autocommit."""
        import psycopg

        return psycopg.connect(
            host="127.0.0.1",
            port=self.port,
            user="infold",
            password=self.password,
            dbname=database,
            autocommit=True,
            connect_timeout=5,
        )

    def run(self, *statements: str, database: str = "postgres") -> list[tuple[Any, ...]]:
        """Statements of the superuser, one transaction each; the rows of the last one."""
        with self.admin(database) as connection:
            for text in statements:
                found = connection.execute(text)
            return found.fetchall() if found.description else []

    def url(self, user: str = "infold", password: str | None = None, rest: str = "postgres") -> str:
        """The URL of a ledger as one that is a secret as a whole has it."""
        secret = quote(self.password if password is None else password, safe="")
        return f"postgresql+psycopg://{user}:{secret}@127.0.0.1:{self.port}/{rest}"

    def schema(self) -> str:
        """The name of a schema that nobody used."""
        return new_name("ledger_")

    def disconnect_all(self) -> None:
        """End every connection but the one that does so."""
        self.run(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
        )

    def _as_nobody(self) -> dict[str, Any]:
        who = dict(user=NOBODY, group=NOBODY, extra_groups=[]) if os.getuid() == 0 else {}
        return {"cwd": self.folder, **who}


@contextmanager
def running() -> Iterator[Postgresql]:
    """A server that runs until the end of the block."""
    folder = Path(tempfile.mkdtemp(prefix="infold-postgresql-"))
    server = Postgresql(folder)
    try:
        server.create()
        server.start()
        yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def program(name: str) -> str:
    """A program of PostgreSQL's; Debian has those of servers outside of PATH."""
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"))
    found = str(places[-1]) if places else shutil.which(name)
    if found is None:
        raise RuntimeError(f"{name} of PostgreSQL is needed: make test-servers installs it")
    return found
