"""Environments in the ledger: functions over a :class:`Query` inside one transaction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from infold.core.environment import Environment, OwnTable
from infold.core.model import table_name
from infold.core.record import FILES, FULL_LISTING, LISTED
from infold.ledger.apply_outcome import drop_trace
from infold.ledger.query import Query


def environments(query: Query) -> Mapping[str, Environment]:
    """All environments, by name."""
    tables: dict[str, list[OwnTable]] = {}
    for name, key, model, identity, definition, base, current in query.all("environment_tables"):
        one = OwnTable(model, key, identity, definition, base, bool(current))
        tables.setdefault(name, []).append(one)
    return {
        row[0]: replace(Environment(*row), tables=tuple(tables.get(row[0], ())))
        for row in query.all("environments")
    }


def put_environment(query: Query, environment: Environment) -> None:
    """Record an environment as it is now. What is known of tables that it had is erased."""
    before = environments(query).get(environment.name)
    kept = {one.key for one in environment.tables}
    for one in before.tables if before else ():
        if one.key not in kept:
            erase(query, one.key)
    query.run("drop_environment", name=environment.name)
    query.run(
        "add_environment",
        name=environment.name,
        owner=environment.owner,
        created_at=environment.created_at,
        expires_at=environment.expires_at,
        last_run_at=environment.last_run_at,
        built_at=environment.built_at,
    )
    query.run("drop_environment_tables", environment=environment.name)
    query.many(
        "add_environment_table",
        [
            {
                "environment": environment.name,
                "table_key": one.key,
                "model": one.model,
                "identity": one.identity,
                "definition": one.definition,
                "base": one.base,
                "current": one.current,
            }
            for one in environment.tables
        ],
    )


def remove_environment(query: Query, name: str) -> None:
    """Forget an environment, and everything that is known of its tables."""
    before = environments(query).get(name)
    for one in before.tables if before else ():
        erase(query, one.key)
    query.run("drop_environment_tables", environment=name)
    query.run("drop_environment_applied", environment=name)
    query.run("drop_environment", name=name)


def erase(query: Query, key: str) -> None:
    """Remove everything that is known of a table but the runs that built it."""
    erase_rows(query, key)
    query.run("erase_entries", model=key)


def erase_rows(query: Query, key: str) -> None:
    """The same, but for what people entered."""
    drop_trace(query, key)
    for name in ("drop_cells", "erase_versions", "erase_changes", "erase_unchanged"):
        query.run(name, table_name=key)
    for name in (
        "drop_all_quarantined",
        "drop_left_out",
        "drop_ingests",
        "drop_file_cells",
        "erase_arrivals",
        "erase_audits",
    ):
        query.run(name, model=key)
    own = (LISTED.format(key), FULL_LISTING.format(key))
    for name in (table_name(key), FILES.format(table_name(key)), *own):
        query.run("drop_location", name=name)
