"""What is wrong with a source in a database: the way to it, its columns, values that do not fit."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Finding, Message, Near

_FORM = "postgresql://USER:${{env:NAME}}@HOST:PORT/DATABASE"
_NOTHING = "Nothing of the table was taken in. "

driver_missing = Message(
    "source-driver-missing",
    "a source in PostgreSQL needs psycopg, which is not installed",
    {"key": "{key}"},
    "Install it: pip install 'infold[postgresql]'",
)

bad_url = Message(
    "source-url",
    "the URL of the source's database cannot be used",
    {"key": "{key}", "why": "{why}", "form": _FORM},
    "Correct it. It is not shown here, as a password may be in it. What is neither a letter nor a "
    "digit is percent-encoded, but in ${{env:NAME}} and ${{file:PATH}}.",
)

unreachable = Message(
    "source-unreachable",
    "the database of a source cannot be reached",
    {"key": "{key}", "database": "{at}", "why": "{why}"},
    _NOTHING + "Check host and port, or the path of the file, and that the server runs and takes "
    "connections from this machine. The next run tries it again.",
    exit_code=ExitCode.FAILED,
)

login_refused = Message(
    "source-login-refused",
    "the database of a source does not let this user in",
    {"key": "{key}", "database": "{at}", "server": "{why}"},
    _NOTHING + "Check the user, and the password: `${{env:NAME}}` or `${{file:PATH}}` in the URL, "
    "PGPASSWORD, or ~/.pgpass.",
    exit_code=ExitCode.FAILED,
)

database_missing = Message(
    "source-database-missing",
    "the server of a source has no such database",
    {"key": "{key}", "database": "{at}", "server": "{why}"},
    "Correct the URL. infold only reads there.",
    exit_code=ExitCode.FAILED,
)

not_permitted = Message(
    "source-not-permitted",
    "this user may not read the table of a source",
    {"key": "{key}", "database": "{at}", "server": "{why}"},
    _NOTHING + "The user needs CONNECT on the database, USAGE on the schema, and SELECT on the "
    "table.",
    exit_code=ExitCode.FAILED,
)

table_missing = Message(
    "source-table-missing",
    "the database of {key} has no table or view {table}",
    {"database": "{at}"},
    "Write `table` as the database stores it, capital letters too: SCHEMA.NAME, or NAME alone.",
    exit_code=ExitCode.FAILED,
)

column_missing = Message(
    "source-column-missing",
    "the table of {key} has no column {column}",
    {"table": "{table}", "columns": Near("{column}")},
    _NOTHING + "If the column went, or has another name now: change `columns` in infold.yml, or "
    "let a view of the database have the old name, and name the view by `table`.",
    exit_code=ExitCode.FAILED,
)

column_type = Message(
    "source-column-type",
    "column {column} of {key} has the type {type}, which cannot be read as {declared}",
    {"table": "{table}", "types that fit": "{fits}"},
    _NOTHING + "Declare a type that fits, or let a view of the database cast the column, and name "
    "the view by `table`.",
    exit_code=ExitCode.FAILED,
)

bad_value = Message(
    "source-value",
    "column {column} of {key} has a value that is no {declared}",
    {"table": "{table}", "value": "{value}"},
    _NOTHING + "Correct the row in the database, or declare a type that has room for it.",
    exit_code=ExitCode.FAILED,
)

key_null = Message(
    "source-key-null",
    "the key {column} of {key} is NULL in some rows, which would never be read",
    {"table": "{table}"},
    _NOTHING + "Give the rows a key, let a view leave them out, or read the whole table (without "
    "`key`).",
    exit_code=ExitCode.FAILED,
)

read_failed = Message(
    "source-read-failed",
    "the table of {key} could not be read to its end",
    {"database": "{at}", "why": "{why}"},
    _NOTHING + "The next run reads it again from where the last whole one ended.",
    exit_code=ExitCode.FAILED,
)

# An environment shares what is extracted with production, which has to find its own columns there.
declared_otherwise = Message(
    "source-declared-otherwise",
    "{key} is not declared as production reads it, and both share the rows that are extracted",
    {"differs": "{what}"},
    _NOTHING + "Give the table another name under `sources` for the environment: it is then read "
    "into files of its own, also after `infold promote`. Or let production read it so first.",
    exit_code=ExitCode.FAILED,
)

damaged_state = Message(
    "extracted-files-damaged",
    "what was extracted of {key} cannot be told: its list of files is damaged",
    {"file": "{file}", "why": "{why}"},
    "Put the file back from a backup. Or delete its folder: the next run reads the table from its "
    "beginning.",
    exit_code=ExitCode.FAILED,
)

bad_key = Finding(
    "bad-source-key",
    "{column} cannot be the key that new rows are found by: {why}",
    todo="Name a column that only grows, and that every row has: a serial number, the time at "
    "which a row was made or changed. Without `key` the whole table is read each time.",
)

not_beside_store = Finding(
    "extracts-in-store",
    "{source} is read from a database into files beside the warehouse, which is in an object store",
    todo="Name a folder of a disk as `warehouse` of this target. Or have another tool write the "
    "table into the store, and name its files by `path`.",
)
