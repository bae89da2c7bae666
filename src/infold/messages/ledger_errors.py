"""What is wrong with a ledger on a server: its URL, the way to it, and what may be done there."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Message

_FORM = "postgresql+psycopg://USER:${{env:NAME}}@HOST:PORT/DATABASE"
_DOCTOR = "`infold doctor` tries it again."

driver_missing = Message(
    "ledger-driver-missing",
    "a ledger in PostgreSQL needs psycopg, which is not installed",
    {"key": "{key}"},
    "Install it: pip install 'infold[postgresql]'",
)

bad_url = Message(
    "ledger-url",
    "the ledger's URL cannot be used",
    {"key": "{key}", "why": "{why}", "form": _FORM},
    "Correct it. It is not shown here, as a password may be in it. In a URL that is written out, "
    "percent-encode what is neither a letter nor a digit; ${{env:NAME}} and ${{file:PATH}} in it "
    "are encoded by infold.",
)

unreachable = Message(
    "ledger-unreachable",
    "the server of the ledger cannot be reached",
    {"key": "{key}", "ledger": "{ledger}", "why": "{why}"},
    "Nothing was written. Check host and port, and that the server runs and takes connections from "
    "this machine. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

login_refused = Message(
    "ledger-login-refused",
    "the server of the ledger does not let this user in",
    {"key": "{key}", "ledger": "{ledger}", "server": "{why}"},
    "Nothing was written. Check the user, and the password: `${{env:NAME}}` or `${{file:PATH}}` in "
    "the URL, PGPASSWORD, or ~/.pgpass. The server's pg_hba.conf has to admit the user from this "
    "machine. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

database_missing = Message(
    "ledger-database-missing",
    "the server of the ledger has no such database",
    {"key": "{key}", "ledger": "{ledger}", "server": "{why}"},
    "Create it (CREATE DATABASE … ENCODING 'UTF8'), or correct the URL. infold makes a schema in "
    "it, and never a database.",
    exit_code=ExitCode.FAILED,
)

not_permitted = Message(
    "ledger-not-permitted",
    "this user may not do in the ledger's database what infold has to do there",
    {"key": "{key}", "ledger": "{ledger}", "server": "{why}"},
    "Nothing was written. To create a ledger, the user needs CREATE on the database, or USAGE and "
    "CREATE on a schema that is there; for runs, all rights to its tables; to read, USAGE and "
    "SELECT. See docs/deploying.md.",
    exit_code=ExitCode.FAILED,
)

read_only = Message(
    "ledger-read-only",
    "the ledger's database is read-only",
    {"key": "{key}", "ledger": "{ledger}", "server": "{why}"},
    "Nothing was written. It is a standby, or set to be read-only. Name the primary in the URL "
    "(HOST1,HOST2 with ?target_session_attrs=read-write finds it). Commands that only read go on.",
    exit_code=ExitCode.FAILED,
)

server_too_old = Message(
    "ledger-server-too-old",
    "the server of the ledger is PostgreSQL {found}, and {oldest} is the oldest that works",
    {"key": "{key}", "ledger": "{ledger}"},
    "Use a newer server. Nothing was written.",
)

other_encoding = Message(
    "ledger-encoding",
    "the ledger's database has the encoding {found}, which cannot store every text",
    {"key": "{key}", "ledger": "{ledger}"},
    "Create a database with ENCODING 'UTF8' (and TEMPLATE template0). Nothing was written.",
)

connection_lost = Message(
    "ledger-connection-lost",
    "the connection to the ledger was lost",
    {"key": "{key}", "ledger": "{ledger}", "why": "{why}"},
    "A run stops before its next commit. Run again once the server answers: the next run finds out "
    "what was committed, and nothing is lost or counted twice.",
    exit_code=ExitCode.FAILED,
)

server_failed = Message(
    "ledger-unusable",
    "the ledger cannot be used",
    {"key": "{key}", "ledger": "{ledger}", "why": "{why}"},
    "What was being written was not. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

other_schema = Message(
    "not-a-ledger",
    "the schema {schema} has something else than a ledger in it, and is left alone",
    {"ledger": "{ledger}", "why": "{why}"},
    "Name another one by `ledger_schema` of the target in infold.yml.",
)

newer = Message(
    "ledger-newer",
    "the ledger was written by a newer infold",
    {"ledger": "{place}", "its format": "{found}", "known here": "up to {known}"},
    "Upgrade infold on this machine. Nothing was read or written.",
)

moved = Message(
    "ledger-moved",
    "this ledger was copied to another place, and is not used any more",
    {"copied to": "{copy}"},
    "Nothing was written. Name the copy by `ledger` of the target in infold.yml. If there is no "
    "such copy any more: `infold ledger export` still saves what is here; move this ledger away, "
    "and `infold ledger import` makes one of the file in its place.",
    exit_code=ExitCode.REFUSED,
)

nothing_to_copy = Message(
    "ledger-missing",
    "the target {target} has no ledger yet",
    {"ledger": "{ledger}"},
    "There is nothing to take elsewhere. `ledger` of the target in infold.yml names the one to "
    "copy: it is changed after the copy was made.",
)

not_empty = Message(
    "ledger-not-empty",
    "there is a ledger already, and nothing is written over it",
    {"ledger": "{place}"},
    "Nothing was written. Name a place without a ledger; or, if that one is not needed any more, "
    "move its file away, or drop its schema.",
    exit_code=ExitCode.REFUSED,
)

copy_differs = Message(
    "ledger-copy-differs",
    "the copy of the ledger is not what was copied",
    {"ledger": "{place}", "tables": "{tables}"},
    "Nothing was kept of the copy, and the ledger is as it was. Read back, these tables have other "
    "rows than were written: the database may have triggers, rules or defaults on them.",
    exit_code=ExitCode.FAILED,
)

other_file = Message(
    "not-a-ledger-file",
    "the file is no exported ledger",
    {"file": "{file}", "why": "{why}"},
    "Nothing was written. `infold ledger export FILE` writes one.",
)

other_file_owner = Message(
    "ledger-file-elsewhere",
    "the file is the ledger of the project {found} and its warehouse {at}",
    {"file": "{file}", "project": "{project}", "warehouse": "{warehouse}"},
    "Nothing was written. Import it in the project, and for the target, whose tables it tells of.",
    exit_code=ExitCode.REFUSED,
)

newer_file = Message(
    "ledger-file-newer",
    "the file was exported by a newer infold",
    {
        "file": "{file}",
        "exported by": "infold {version}",
        "its format": "{found}",
        "known here": "up to {newest}",
    },
    "Nothing was written. Upgrade infold on this machine.",
)

damaged_file = Message(
    "ledger-file-damaged",
    "the exported ledger is damaged",
    {"file": "{file}", "line": "{line}", "why": "{why}"},
    "Nothing was written. Take another copy of the file, or export the ledger again.",
)
