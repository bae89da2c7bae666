"""What is wrong with a target's catalog: its declaration, the way to it, what may be done there."""

from __future__ import annotations

from infold.messages.errors import ExitCode, Finding, Message

_FORM = "postgresql://USER:${{env:NAME}}@HOST:PORT/DATABASE"
_DOCTOR = "`infold doctor` tries it again."

driver_missing = Message(
    "catalog-driver-missing",
    "a catalog in PostgreSQL needs psycopg, which is not installed",
    {"key": "{key}"},
    "Install it: pip install 'infold[postgresql]'",
)

thrift_missing = Message(
    "catalog-driver-missing",
    "a catalog of type hive needs thrift, which is not installed",
    {"key": "{key}"},
    "Install it: pip install 'infold[hive]'",
)

bad_url = Message(
    "catalog-url",
    "the catalog's URL cannot be used",
    {"key": "{key}", "why": "{why}"},
    "Correct it. It is not shown here, as a secret may be in it. That of a database has the form "
    + _FORM
    + "; what is neither a letter nor a digit is percent-encoded, but in ${{env:NAME}} and "
    "${{file:PATH}}.",
)

bad_secret = Message(
    "catalog-secret",
    "a secret of the catalog cannot be sent to its server",
    {"key": "{key}", "secret": "{secret}", "why": "{why}"},
    "Correct what `catalog` of the target names for it by `${{env:NAME}}` or `${{file:PATH}}`: "
    "letters, digits and signs of ASCII, in one line. Nothing was sent.",
)

unreachable = Message(
    "catalog-unreachable",
    "the server of the catalog cannot be reached",
    {"key": "{key}", "catalog": "{at}", "why": "{why}"},
    "Nothing was changed. Check host and port, and that the server runs and takes connections from "
    "this machine. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

login_refused = Message(
    "catalog-login-refused",
    "the server of the catalog does not let this user in",
    {"key": "{key}", "catalog": "{at}", "server": "{why}"},
    "Nothing was changed. Check who you are there, and the secret that `catalog` of the target "
    "names by `${{env:NAME}}` or `${{file:PATH}}`. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

database_missing = Message(
    "catalog-database-missing",
    "the server of the catalog has no such database",
    {"key": "{key}", "catalog": "{at}", "server": "{why}"},
    "Create it, or correct `uri`. The first run makes the catalog's tables in it, and never a "
    "database.",
    exit_code=ExitCode.FAILED,
)

not_permitted = Message(
    "catalog-not-permitted",
    "this user may not do in the catalog what infold has to do there",
    {"key": "{key}", "catalog": "{at}", "server": "{why}"},
    "What was asked for was not done; all that was done before it is kept. A run needs the right "
    "to list, read, create, commit to, rename and drop tables in its namespace; `plan`, `status` "
    "and `show` those to list and to read. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

server_too_old = Message(
    "catalog-server-too-old",
    "the server of the catalog is PostgreSQL {found}, and {oldest} is the oldest that works",
    {"key": "{key}", "catalog": "{at}"},
    "Use a newer server. Nothing was changed.",
)

other_encoding = Message(
    "catalog-encoding",
    "the catalog's database has the encoding {found}, which cannot store every name",
    {"key": "{key}", "catalog": "{at}"},
    "Create a database with ENCODING 'UTF8' (and TEMPLATE template0). Nothing was changed.",
)

answer_lost = Message(
    "catalog-answer-lost",
    "the catalog's server did not answer, so it is not known whether it did what it was asked for",
    {"key": "{key}", "catalog": "{at}", "why": "{why}"},
    "Run again once it answers: the next run finds out from the tables what was committed, and "
    "nothing is lost or counted twice. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

failed = Message(
    "catalog-failed",
    "the catalog cannot be used",
    {"key": "{key}", "catalog": "{at}", "why": "{why}"},
    "All that was done before is kept; the next run finds out from the tables whether the last "
    "change was made. " + _DOCTOR,
    exit_code=ExitCode.FAILED,
)

not_together = Message(
    "catalog-not-together",
    "this catalog cannot change several tables at one instant",
    {"catalog": "{catalog}"},
    "Nothing was published. `publish: together` needs a catalog of type sqlite or jdbc.",
)

not_published_together = Finding(
    "catalog-not-together",
    "a catalog of type {type} cannot change several tables at one instant, as `publish: together` "
    "has to",
    todo="Use `publish: each`, or a catalog of type sqlite or jdbc.",
)

without_views = Message(
    "catalog-without-views",
    "the server of this catalog has no views, as `hide_technical: views` asks for",
    {"key": "{key}", "catalog": "{at}", "why": "{why}"},
    "Nothing was changed. Leave `hide_technical` out, or use a server that has views.",
)

shared_namespace = Message(
    "catalog-shared-namespace",
    "namespace {namespace} would have the views of one project among the tables of another",
    {"catalog": "{catalog}", "there are": "the {what} {names}"},
    "Nothing was changed. `hide_technical: views` puts the views of NAME into NAME_views. Give one "
    "of the two another `namespace` in `catalog`, or leave `hide_technical` out and make the views "
    "go with the next `infold run`.",
)

name_taken = Message(
    "catalog-name-taken",
    "the metastore has something else under names that {what} of this target are to have",
    {"key": "{key}", "catalog": "{catalog}", "namespace": "{namespace}", "there are": "{found}"},
    "Nothing was changed. Give the target another `namespace` in `catalog`, or drop there what is "
    "not needed. An entry for tables that this target had in another warehouse is dropped by hand: "
    "`DROP TABLE` of an external table deletes no file, and nor does `DROP VIEW`.",
)

not_registered = Message(
    "catalog-not-registered",
    "the tables are as they should be, but the metastore does not have all of their names or views",
    {"key": "{key}", "catalog": "{catalog}", "why": "{why}"},
    "No row was lost: who reads the tables by their folders sees all of them. The next `infold "
    "run`, or `infold repair`, makes names and views right. `infold doctor` says whether the "
    "metastore answers.",
    exit_code=ExitCode.FAILED,
)

secret_written_out = Finding(
    "secret-written-out",
    "{key} has a secret in it, where everybody can read it who sees this file",
    {"such as": "{form}"},
    "Write `${{env:NAME}}` or `${{file:PATH}}` in its place.",
)

same_tables = Finding(
    "catalog-same-tables",
    "targets {one} and {other} would have the same tables: those of one namespace of one catalog",
    {"namespace": "{namespace}"},
    todo="Each target has tables and a ledger of its own. Give one of them another `namespace` in "
    "`catalog`, or another file of type sqlite.",
)

same_warehouse = Finding(
    "catalog-same-tables",
    "targets {one} and {other} would have the same tables, and {what}",
    {"warehouse": "{warehouse}"},
    todo="Give one of them another `warehouse`, and another `ledger`. Targets with the same tables "
    "differ only in what computes: `engine`, `spark`.",
)

other_jars = Message(
    "catalog-other-jars",
    "the Spark of this process was started without what the catalog of target {target} needs",
    {"missing": "{jars}"},
    "A process has one Spark. Call `infold.api.close()` before this target is used, or use it in "
    "another process.",
)
