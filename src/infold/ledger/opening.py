"""Which database a target's ledger is in: by its URL in infold.yml."""

from __future__ import annotations

from hashlib import md5
from pathlib import Path

from infold.core.project import Project
from infold.core.target import LONGEST_SCHEMA
from infold.ledger.store import SqlLedger
from infold.messages import run_errors
from infold.system import signals


def ledger_schema(project: Project) -> str:
    """
    The schema of a project's ledger on a server: that of its target, or one of its own.

    So any number of projects and targets can name the same database.
    """
    name = project.target.ledger_schema or f"infold_{project.name}_{project.target.name}"
    if len(name) <= LONGEST_SCHEMA:
        return name
    digest = md5(name.encode(), usedforsecurity=False).hexdigest()[:12]
    return f"{name[: LONGEST_SCHEMA - 13]}_{digest}"


def open_ledger(url: str, root: Path, *, key: str = "ledger", schema: str = "infold") -> SqlLedger:
    """
    The ledger at ``url``; a relative path is the project's (``root``).

    ``key`` is what errors call the place of the URL, and ``schema`` where a ledger on a server is
    in its database. Nothing is opened or created before it is needed.
    """
    plain = url
    if "${" in url:
        from infold.system.secrets import REFERENCE, resolve_url

        # A URL that is a secret as a whole is known only now; others have theirs when they connect.
        plain = resolve_url(url, root, key) if REFERENCE.fullmatch(url.strip()) else url
    scheme, _, place = plain.partition("://")
    if scheme in ("postgresql", "postgresql+psycopg"):
        from infold.ledger.postgresql import LedgerServer, PostgresqlDatabase

        database = PostgresqlDatabase(LedgerServer(url, root, key), schema)
        return SqlLedger(database, end_work=signals.end_children)
    if scheme not in ("sqlite", "sqlite+pysqlite") or not place.startswith("/") or place == "/":
        raise run_errors.ledger_unsupported(key=key, url=url)
    return SqlLedger(root / place[1:])
