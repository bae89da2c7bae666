"""What ends a run, or a part of it: the lease and the ledger, sources and tables, steps."""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, Finding, InfoldError, Message

# --- the ledger


def locked(
    *, run: str, host: str, pid: int, since: str, heard: str = "", ahead: bool = False
) -> InfoldError:
    """
    Another run has the target's lease; ``since`` is a time in UTC.

    ``heard`` says when a holder on another machine was last heard of, and ``ahead`` that this lies
    in the future.
    """
    todo = "Wait for it to end, or stop that process: the next run takes over what it left."
    if ahead:
        todo = (
            "The clocks of the two machines differ, or this one's was set back, so nobody can say "
            "how long it has been silent. If that process is gone, run with --wait 90: that "
            "watches it, and takes over once it has been silent for a minute."
        )
    elif heard:
        todo = (
            "Wait for it to end, or stop that process there. If that machine is gone, run with "
            "--wait 90: a run that has been silent for a minute is taken over."
        )
    return InfoldError(
        "locked",
        f"run {run} is working on this target",
        (
            ("run", run),
            ("host", host),
            ("process", str(pid)),
            ("since", f"{since} UTC"),
            *((("last heard", heard),) if heard else ()),
        ),
        todo,
        exit_code=ExitCode.REFUSED,
    )


def lease_lost(run: str) -> InfoldError:
    """The process no longer has the lease of its run."""
    return InfoldError(
        "lease-lost",
        f"run {run or '(none)'} no longer has this target's lease, so it must not write",
        (),
        "It could not renew it for too long (it was suspended, its machine slept, or the ledger "
        "was out of reach), so another run may have taken over. Run again: nothing of it is lost "
        "or counted twice.",
        exit_code=ExitCode.FAILED,
    )


ledger_unsupported = Message(
    "ledger-unsupported",
    "this ledger URL is of a kind that is not supported",
    {"key": "{key}", "ledger": "{url}"},
    "Use a SQLite file: sqlite:///.infold/ledger.db (relative to the project), or "
    "sqlite:////absolute/path; or a server: postgresql+psycopg://USER@HOST:PORT/DATABASE.",
)

secret_missing = Message(
    "secret-missing",
    "a secret that infold.yml names is not there",
    {"key": "{key}", "secret": "{reference}", "why": "{why}"},
    "Set the environment variable where infold runs, or write the file (relative to the project). "
    "Nothing was read or written.",
)

not_a_ledger = Message(
    "not-a-ledger",
    "the ledger's file is not a ledger, and is left alone",
    {"file": "{path}", "why": "{why}"},
    "Point `ledger` in infold.yml somewhere else, or move that file away. If it is this target's "
    "ledger, and damaged, `infold repair` puts it aside and begins a new one.",
)

ledger_newer = Message(
    "ledger-newer",
    "the ledger was written by a newer infold",
    {"ledger": "{path}", "its format": "{found}", "known here": "up to {known}"},
    "Upgrade infold on this machine. Nothing was read or written.",
)

# Permissions, a full disk, a long lock.
ledger_unusable = Message(
    "ledger-unusable",
    "the ledger cannot be used",
    {"file": "{path}", "why": "{why}"},
    "Check that the file and its folder can be written and that the disk has room; `infold doctor` "
    "tries it.",
    exit_code=ExitCode.FAILED,
)


# --- sources and tables as they are stored

# Its rows would vanish from the table at the next publish, as infold commits beside it.
published_elsewhere = Message(
    "published-elsewhere",
    "somebody else committed to {table}, which infold publishes",
    {"table": "{table}"},
    "Nothing was written or published. Copy the rows of that commit elsewhere, then drop the table "
    "with `infold forget` and the name of its model: the next run builds it again, from its "
    "inputs.",
    exit_code=ExitCode.REFUSED,
)

no_such_folder = Message(
    "no-such-folder",
    "the folder of source {source} does not exist",
    {"path": "{pattern}", "folder": "{folder}"},
    "Create it (it may be empty), or correct `path` in infold.yml.",
)

no_file_matches = Message(
    "no-file-matches",
    "no file matches the path of source {source}",
    {"path": "{pattern}", "files": "{there}"},
    "Correct `path` in infold.yml. If nothing has been delivered yet, `may_be_empty: true` of the "
    "source lets its tables be built without rows.",
)

bad_file_name = Message(
    "bad-file-name",
    "a file of source {source} has a name that is not valid UTF-8",
    {"file": "{path}"},
    "Rename it, or start its name with _ to leave it out.",
)

no_such_table = Message(
    "no-such-table",
    "the table of source {source} is not in its catalog",
    {"table": "{table}", "catalog": "{catalog}"},
    "Correct `table` or `catalog` in infold.yml.",
)

_ALL_ROWS = (
    "source {source} would read the files of {table}, with rows that the table no longer has"
)
_OF_TABLE = {"path": "{pattern}", "table": "{folder}", "file": "{file}"}

files_of_delta_table = Message(
    "files-of-a-table",
    _ALL_ROWS.replace("{table}", "a Delta table"),
    _OF_TABLE,
    "Let infold read the table: `format: delta` and `path: {folder}`.",
)

files_of_iceberg_table = Message(
    "files-of-a-table",
    _ALL_ROWS.replace("{table}", "an Iceberg table"),
    _OF_TABLE,
    "Let infold read the table: `format: iceberg`, `table: NAMESPACE.NAME` and the `catalog` that "
    "has it, in place of `path`.",
)

files_of_hudi_table = Message(
    "files-of-a-table",
    _ALL_ROWS.replace("{table}", "a Hudi table"),
    _OF_TABLE,
    "infold does not read tables of Hudi. Let its owner offer it as a table of Iceberg or Delta "
    "Lake too (Apache XTable does it), or land its rows as files of their own.",
)

equality_deletes = Message(
    "equality-deletes",
    "the source table has equality deletes, which cannot be read yet",
    {"metadata": "{location}"},
    "Compact it with the engine that wrote them (rewrite_data_files), or write it with position "
    "deletes or copy-on-write.",
)

table_of_two_catalogs = Message(
    "table-of-two-catalogs",
    "the table of source {source} is in several catalogs of one file",
    {"table": "{table}", "file": "{catalog}", "catalogs": "{names}"},
    "A source names a file and a table. Take one of the tables out of its catalog, or give it "
    "another name.",
)

catalog_unreadable = Message(
    "catalog-unreadable",
    "the Iceberg catalog cannot be read",
    {"file": "{path}", "why": "{why}"},
    "It has to be the SQLite file of an Iceberg catalog, readable by you.",
    exit_code=ExitCode.FAILED,
)

METADATA_MISSING = "metadata-missing"

metadata_missing = Message(
    METADATA_MISSING,
    "the catalog names a metadata file that cannot be read",
    {"file": "{path}", "why": "{why}"},
    "Was the warehouse moved, or files in it deleted? Its files name each other by full path. Put "
    "the file back from a backup. The table of a model can be built again in its place: `infold "
    "forget MODEL`, and run.",
    exit_code=ExitCode.FAILED,
)


# --- refusals and failures of a run

# The partition column is NULL, in a model for which nothing proves that it cannot be.
rows_without_cell = Message(
    "null-cell",
    "{column} is NULL in rows that {model} yields, so they are in no cell",
    {"rows": "{rows:,}"},
    "Say what becomes of them: SELECT * FROM (…) WHERE {column} IS NOT NULL leaves them out, "
    "coalesce({column}, …) gives them a time.",
)

append_would_repeat = Message(
    "append-would-repeat",
    "{model} has the strategy append, and {cells:,} of the cells to build already have rows",
    {"the first": "{first}"},
    "Use delete_insert, which replaces what is in the cells, in one commit.",
    exit_code=ExitCode.REFUSED,
)


def protected(target: str, what: str, found: Sequence[tuple[str, str]]) -> InfoldError:
    """Something that would drop or rebuild tables of a protected target."""
    return InfoldError(
        "protected",
        f"{target} is protected, and this would {what} "
        + ("one of its tables" if len(found) == 1 else f"{len(found):,} of its tables"),
        tuple(found),
        "They are as they were. --allow-refresh allows it, for this once.",
        exit_code=ExitCode.REFUSED,
    )


def destructive_change(target: str, found: Sequence[tuple[str, str]]) -> InfoldError:
    """A plan that takes something from stored tables: each model with what it would lose."""
    models = tuple(dict.fromkeys(model for model, _ in found))
    options = " ".join(f"--allow-destructive {model}" for model in models)
    return InfoldError(
        "destructive-change",
        "a stored table would lose what its readers may use"
        if len(models) == 1
        else f"{len(models):,} stored tables would lose what their readers may use",
        (("target", target), *found),
        f"Nothing was changed, in no table. {options} allows it, for this once; "
        "`on_destructive_change: warn` in a model allows it for good.",
        exit_code=ExitCode.REFUSED,
    )


# Something that drops tables, where nobody can be asked.
unconfirmed = Message(
    "unconfirmed",
    "this would {what}, and it was not confirmed",
    todo="Nothing was written. --yes confirms it.",
    exit_code=ExitCode.REFUSED,
)

frozen_cells = Message(
    "frozen-cells",
    "{model} may have cells that nobody can build again, and {what}",
    todo="Rows that they were made from are no longer kept, so its table was left alone. Where the "
    "ledger was lost, put back one that knows them. `infold run --allow-refresh` builds it from "
    "the rows that are there.",
    exit_code=ExitCode.REFUSED,
)

over_budget = Message(
    "over-budget",
    "this run would read about {rows:,} rows",
    {"allowed": "{max_rows:,} (--max-rows)"},
    "Nothing was written. `infold plan` says which cells cost what; narrow it by --select, "
    "--start and --end (a saved plan: save it again with these), or allow more.",
    exit_code=ExitCode.REFUSED,
)


def foreign_write(table: str, snapshot: int | None) -> InfoldError:
    """A table was changed by something other than infold."""
    return InfoldError(
        "foreign-write",
        f"{table} was changed by something other than infold",
        (("snapshot", "unknown" if snapshot is None else str(snapshot)),),
        "It is left alone, and so is what reads it: that would build on rows that nobody can vouch "
        "for. Roll the table back to the snapshot before this one; or `infold forget` its model, "
        "and the next run builds it again.",
        exit_code=ExitCode.REFUSED,
    )


def late_commit(table: str, snapshot: int | None, step: str) -> InfoldError:
    """A run committed to a table after another one had taken over its lease."""
    return InfoldError(
        "foreign-write",
        f"{table} has a commit of a run that another one had taken over",
        (("snapshot", "unknown" if snapshot is None else str(snapshot)), ("by", f"step {step}")),
        "It is left alone, and so is what reads it: both runs may have written the same rows. "
        "`infold repair` takes this commit back.",
        exit_code=ExitCode.REFUSED,
    )


# ``what`` are Spark's own words.
step_failed = Message(
    "step-failed",
    "{model} could not be built",
    {"why": "{what}", "condition": "{condition}"},
    "Nothing of this step was written. Once the cause is gone, run again.",
    exit_code=ExitCode.FAILED,
)

# ``what`` it raised or returned; the place is the last line of the project that was executed.
function_failed = Finding(
    "function-failed",
    "the function {function} {what}",
    {"arguments": "{arguments}"},
    "Nothing of this step was written. Correct the function or the rows, and run again.",
    exit_code=ExitCode.FAILED,
)

# A step after which the cells that it built are stale again.
still_stale = Message(
    "step-failed",
    "{model} could not be built",
    {"why": "it is still stale after being built"},
    "That is a mistake in infold: please report it with what `infold plan --json` says.",
    exit_code=ExitCode.FAILED,
)


def drift(source: str, files: Sequence[tuple[str, str]]) -> InfoldError:
    """New files with other columns than the declared ones; each with how they differ."""
    one = len(files) == 1
    return InfoldError(
        "drift",
        f"{'a file' if one else f'{len(files)} files'} of {source} "
        f"{'does' if one else 'do'} not have the declared columns",
        tuple(files),
        "Nothing was ingested. Correct the files, change `columns` in infold.yml, "
        "or set such files aside: on_drift: set_aside.",
        exit_code=ExitCode.FAILED,
    )


# None of its files can be set aside.
table_drift = Message(
    "drift",
    "the table of source {source} does not have the declared columns",
    {"table": "{place}", "how": "{how}"},
    "Nothing was ingested. Change `columns` in infold.yml, or the table.",
    exit_code=ExitCode.FAILED,
)

# Not even its first row.
unreadable_file = Message(
    "unreadable-file",
    "a file of a source cannot be read",
    {"file": "{path}", "why": "{why}"},
    "Nothing was ingested. Correct the file or remove it, or let such files be set aside: "
    "on_unreadable: set_aside. One that is still being written is left alone while its name "
    "starts with _.",
    exit_code=ExitCode.FAILED,
)

# Where the source sets new ones aside.
unreadable_known_file = Message(
    "unreadable-file",
    "a file of a source that was ingested before cannot be read",
    {"file": "{path}", "why": "{why}"},
    "Put the file back as it was, or remove it: then its rows go. Only new files are set aside by "
    "`on_unreadable`.",
    exit_code=ExitCode.FAILED,
)

avro_extra_missing = Message(
    "avro-library-missing",
    "Avro files need fastavro, which is not installed",
    {"at": "{at}"},
    "Nothing was ingested. Install it: pip install 'infold[avro]'",
    exit_code=ExitCode.FAILED,
)

avro_jar_missing = Message(
    "avro-jar-missing",
    "{source} has Avro files, and this Spark has no reader for them",
    {"jar": "{jar}"},
    "Nothing was ingested. Let infold start Spark: it brings the jar. A Spark that others start "
    "has to have it on its class path.",
    exit_code=ExitCode.FAILED,
)

unreadable_folder = Message(
    "unreadable-folder",
    "a folder of {source} cannot be read",
    {"folder": "{path}", "why": "{why}"},
    "Nothing was ingested, and nothing was removed. Make it readable, or leave it out of "
    "`path` in infold.yml.",
    exit_code=ExitCode.FAILED,
)

source_changed = Message(
    "source-changed",
    "a file of {source} changed while it was read",
    {"file": "{path}"},
    "Nothing of this step was written. Run again.",
    exit_code=ExitCode.FAILED,
)

# The JVM of a run that died still writes, or hangs.
engine_busy = Message(
    "engine-busy",
    "the Spark process of a run that died has not ended",
    {"lock": "{lock}"},
    "Run again in a minute; if it stays, find the java process with the lock and end it.",
    exit_code=ExitCode.REFUSED,
)
