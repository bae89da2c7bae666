"""
The statements with which tables get other keys: see ``statements``, which has all others.

Only ``generate_sql`` and the tests use this file.
"""

from __future__ import annotations

from sqlalchemy import (
    ClauseElement,
    Delete,
    Select,
    Table,
    Update,
    bindparam,
    delete,
    func,
    insert,
    literal_column,
    select,
    update,
)

from infold.ledger import schema as s


def swap_statements() -> dict[str, ClauseElement]:
    """Tables that get another key, and what is kept of those that were replaced."""
    inputs, version = s.trace_inputs.c, s.versions.c
    return {
        **{f"move_{table.name}": _move(table) for table in s.MOVED},
        "trace": select(s.traces.c.fingerprint).where(s.traces.c.model == bindparam("model")),
        "head": select(s.versions)
        .where(version.table_name == bindparam("table_name"))
        .order_by(version.number.desc())
        .limit(literal_column("1"))
        .offset(literal_column("0")),
        "move_trace_input": update(s.trace_inputs)
        .where(inputs.model == bindparam("of_model"), inputs.input == bindparam("of_input"))
        .values(input=bindparam("new_input"), version=bindparam("new_version")),
        "swaps": select(s.swaps).order_by(s.swaps.c.number.desc()),
        "last_swap_number": select(func.max(s.swaps.c.number)),
        "add_swap": insert(s.swaps),
        "drop_swap": _delete(s.swaps, "id"),
        "kept_tables": _where(s.kept_tables, "swap").order_by(s.kept_tables.c.model),
        "kept_table": _where(s.kept_tables, "table_key"),
        "add_kept_table": insert(s.kept_tables),
        "drop_kept_tables": _delete(s.kept_tables, "swap"),
        "swap_definitions": _where(s.swap_definitions, "swap").order_by(s.swap_definitions.c.model),
        "add_swap_definition": insert(s.swap_definitions),
        "drop_swap_definitions": _delete(s.swap_definitions, "swap"),
        "drop_environment_table": _delete(s.environment_tables, "table_key"),
    }


def _move(table: Table) -> Update:
    """All rows of a key get another one."""
    key = table.c["table_name" if "table_name" in table.c else "model"]
    return update(table).where(key == bindparam("of_key")).values({key: bindparam("new_key")})


def _where(table: Table, name: str) -> Select[tuple[object, ...]]:
    return select(table).where(table.c[name] == bindparam(name))


def _delete(table: Table, name: str) -> Delete:
    return delete(table).where(table.c[name] == bindparam(name))
