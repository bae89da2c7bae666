"""
What ends a command: one function for each error.

What is wrong with a project is in ``findings`` and ``refusals``, with ledger and tables in
``mismatches``, with the machine in ``faults``. A message has three parts: a slug and what is wrong,
the facts aligned, and what to do about it. No module outside of this folder writes such a text, so
that the tone is one and the tests compare whole messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Self


@dataclass(frozen=True, slots=True)
class Spot:
    """
    Where a mistake stands: file (relative to the project), 1-based line and column.

    ``text`` is that whole line and ``width`` how many characters of it are meant, so that a
    caret can be drawn under them; without ``text`` none is drawn.
    """

    file: str
    line: int = 1
    column: int = 1
    text: str = ""
    width: int = 1

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"

    @property
    def caret(self) -> str:
        """The line and a caret under what is meant, indented by four, or nothing."""
        if not self.text.strip():
            return ""
        indent = len(self.text) - len(self.text.lstrip())
        shown = self.text.strip().replace("\t", " ")
        before = max(0, self.column - 1 - indent)
        width = max(1, min(self.width, len(shown) - before))
        return f"    {shown}\n    {' ' * before}{'^' * width}"


class InfoldError(Exception):
    """
    A mistake or a refusal that the user can do something about.

    ``exit_code`` follows the command line: 1 a step failed, 2 the project, the command or the
    machine is wrong, 3 refused, 4 a difference was found. ``at`` is where it stands, for those
    that stand somewhere.
    """

    def __init__(
        self,
        slug: str,
        what: str,
        facts: tuple[tuple[str, str], ...] = (),
        todo: str = "",
        exit_code: int = 2,
        at: Spot | None = None,
    ) -> None:
        super().__init__(slug, what)
        self.slug = slug
        self.what = what
        self.facts = facts if at is None else (("at", str(at)), *facts)
        self.todo = todo
        self.exit_code = exit_code
        self.at = at

    def __str__(self) -> str:
        """The parts as they are shown, without a final newline."""
        parts = [f"{self.slug}: {self.what}"]
        if self.facts:
            width = max(len(name) for name, _ in self.facts) + 1
            parts.append("\n".join(f"  {name + ':':<{width}}  {text}" for name, text in self.facts))
        if self.at is not None and self.at.caret:
            parts.append(self.at.caret)
        if self.todo:
            parts.append(self.todo)
        return "\n\n".join(parts)

    def saying(self, *facts: tuple[str, str]) -> Self:
        """The same with more facts."""
        found = copy(self)
        found.facts = (*self.facts, *facts)
        return found

    @property
    def record(self) -> dict[str, object]:
        """The same as plain values, for ``--json``."""
        found: dict[str, object] = {"slug": self.slug, "what": self.what, "facts": dict(self.facts)}
        if self.at is not None:
            found |= {"file": self.at.file, "line": self.at.line, "column": self.at.column}
        return found | {"todo": self.todo, "exit_code": self.exit_code}


class InfoldErrors(InfoldError):  # noqa: N818 (it is what its name says: several)
    """
    Several at once: all that is wrong with a project, so that it is put right in one go.

    The exit code is the least of theirs: 2 as soon as the project is wrong, and 3 only where all
    are refusals of a command.
    """

    def __init__(self, errors: Iterable[InfoldError]) -> None:
        self.errors = tuple(errors)
        first = self.errors[0]
        code = min(error.exit_code for error in self.errors)
        super().__init__(first.slug, first.what, first.facts, first.todo, code, None)

    def __str__(self) -> str:
        """Every one of them, and how many there are when there are several."""
        shown = [str(error) for error in self.errors]
        if len(shown) > 1:
            shown.append(f"{len(shown)} errors.")
        return "\n\n\n".join(shown)

    @property
    def record(self) -> dict[str, object]:
        """All of them as plain values, for ``--json``."""
        return {"errors": [error.record for error in self.errors], "exit_code": self.exit_code}


# --- the machine


JAVA_TODO = (
    "Install a Java runtime (apt-get install openjdk-17-jre-headless, brew install openjdk@17), "
    "or set JAVA_HOME to one."
)


def java_missing(looked: tuple[tuple[str, str], ...]) -> InfoldError:
    """No Java at all; ``looked`` says where it was looked for."""
    return InfoldError(
        "java-missing", "Java 17 or newer is needed and none was found", looked, JAVA_TODO
    )


def java_too_old(version: str, path: str) -> InfoldError:
    """A Java was found, and it is older than Spark needs."""
    return InfoldError(
        "java-too-old",
        f"Java 17 or newer is needed and {version} was found",
        (("found", path),),
        JAVA_TODO,
    )


def jars_unresolved(coordinates: tuple[str, ...], cache: str, why: str) -> InfoldError:
    """The jars for Iceberg and SQLite could not be downloaded."""
    return InfoldError(
        "jars-unresolved",
        "the jars that Spark needs for Iceberg could not be downloaded",
        (*(("jar", c) for c in coordinates), ("cache", cache), ("why", why)),
        "Check that this machine reaches Maven Central (once is enough: later runs use the cache), "
        "or set INFOLD_CACHE to a cache that has them.",
        exit_code=1,
    )


def spark_failed_to_start(why: str, log: str) -> InfoldError:
    """The JVM or the Spark session did not come up."""
    return InfoldError(
        "spark-start",
        "Spark did not start",
        (("why", why), ("log", log)),
        "The log has the details. A machine short of memory can set INFOLD_MEMORY (now 2g).",
        exit_code=1,
    )


# --- the command line


def _nearest(name: str, known: Sequence[str]) -> str:
    """The known names that look most like ``name``, or all of a few, or how many there are."""
    close = get_close_matches(name, known, n=3, cutoff=0.5)
    if close:
        return ", ".join(close)
    return ", ".join(known) if len(known) <= 8 else f"none of {len(known)} is near"


def unknown_model(name: str, known: Sequence[str]) -> InfoldError:
    """A command names a model, or a glob, that no model matches."""
    return InfoldError(
        "unknown-model",
        f"there is no model {name}",
        (("nearest", _nearest(name, known)),),
        "`infold status` lists the models of the project.",
    )


def unknown_tag(name: str, known: Sequence[str]) -> InfoldError:
    """``--select tag:…`` names a tag that no model has."""
    return InfoldError(
        "unknown-tag",
        f"no model has the tag {name}",
        (("nearest", _nearest(name, known) or "no model has any tag"),),
        "Tags stand in a model's front matter: `tags: [finance]`.",
    )


def unknown_table(name: str, known: Sequence[str]) -> InfoldError:
    """``infold show`` names a table that is not there."""
    return InfoldError(
        "unknown-table",
        f"there is no table {name}",
        (("nearest", _nearest(name, known)),),
        "Models, sources that models read directly, `set_aside`, and the manifest tables can be "
        "shown.",
    )


def not_built(name: str) -> InfoldError:
    """A table is declared and was never built."""
    return InfoldError(
        "not-built",
        f"{name} has not been built yet",
        todo=f"`infold run --select +{name}` builds it and what it reads.",
    )


def no_table(view: str, source: str) -> InfoldError:
    """A view over the rows of files that are in no table of their own."""
    return InfoldError(
        "not-built",
        f"{view} is evaluated over files of {source} when they are taken in, and not stored",
        todo=f"Show a model that takes it in, or name {source} in a `table`, which lands it.",
    )


def not_an_instant(option: str, text: str) -> InfoldError:
    """A date or time on the command line cannot be read."""
    return InfoldError(
        "not-an-instant",
        f"{option} is not a date or a time: {text}",
        todo="Write 2024-03-09, or 2024-03-09T12:00; without an offset it is UTC.",
    )


def window_empty(
    start: str, end: str, options: tuple[str, str] = ("--start", "--end")
) -> InfoldError:
    """The window ends before it starts; ``options`` are the command's own."""
    first, last = options
    return InfoldError(
        "window-empty",
        "the window holds no time",
        ((first, start), (last, end)),
        "A window reaches from its start up to, not including, its end: "
        f"for one day write {first} 2024-03-09 {last} 2024-03-10.",
    )


def window_unaligned(
    option: str, at: str, models: Mapping[str, tuple[str, str, str]]
) -> InfoldError:
    """An end of the window lies inside a cell; of each model its unit and the nearest ends."""
    names = ", ".join(models)
    if len(models) == 1:
        ((unit, before, after),) = models.values()
        facts = [("cells", f"one {unit} each"), ("nearest", f"{before} or {after}")]
        todo = f"Give {option} one of these two, or name other models."
    else:
        facts = [
            (name, f"one {unit} each, nearest {before} or {after}")
            for name, (unit, before, after) in models.items()
        ]
        todo = f"Give {option} an instant that suits all, or name only models that it suits."
    return InfoldError(
        "window-unaligned", f"{option} {at} lies inside a cell of {names}", tuple(facts), todo
    )


def not_a_cell(model: str, text: str) -> InfoldError:
    """A cell was named for a table that is a single cell."""
    return InfoldError(
        "not-a-cell",
        f"{model} is not divided into cells: {text}",
        todo=f"`infold explain {model}` explains it as a whole.",
    )


def not_sessions(model: str, known: Sequence[str]) -> InfoldError:
    """Something of sessions was asked of another kind of model."""
    return InfoldError(
        "not-sessions",
        f"{model} is not a table of sessions",
        todo=f"There are: {', '.join(known)}." if known else "This project has none.",
    )


def unknown_session(model: str, session: str) -> InfoldError:
    """There is no such session, neither in the table nor in quarantine."""
    return InfoldError(
        "unknown-session",
        f"{model} has no session {session}",
        todo=f"`infold show {model}` shows the ids of those in the table, "
        "`infold quarantine list` those in quarantine. --user means all sessions of a user.",
    )


def nobody_known(model: str, what: str, value: str) -> InfoldError:
    """There are no sessions of a user or identifier, and none were spoken of."""
    return InfoldError(
        "unknown-session",
        f"{model} has no session of the {what} {value}",
        todo=f"`infold show {model}` shows those in the table, `infold quarantine list` those in "
        "quarantine. With --force it is written down for sessions to come.",
    )


def unknown_entry(model: str, number: int, known: Sequence[int]) -> InfoldError:
    """There is no manual entry of that number."""
    return InfoldError(
        "unknown-entry",
        f"there is no manual entry {number} of {model}",
        (("entries", ", ".join(map(str, known)) or "none"),),
        "`infold quarantine list` shows them with their numbers.",
    )


def sessions_by_identifier(model: str) -> InfoldError:
    """Sessions by identifier are not a user's."""
    return InfoldError(
        "sessions-by-identifier",
        f"{model} has sessions by identifier, and these are not told apart by user",
        todo="Name identifiers in place of --user.",
    )


def no_sessions_models() -> InfoldError:
    """The history of a session was asked for, in a project (or of a model) without sessions."""
    return InfoldError(
        "no-sessions",
        "no model of the project makes sessions",
        todo="`infold explain MODEL` explains a model, `infold explain MODEL CELL` a cell of it.",
    )


def session_nowhere(id_: str, models: Sequence[str]) -> InfoldError:
    """No session, and none in quarantine, has an id (or an identifier)."""
    return InfoldError(
        "unknown-session",
        f"there is no session {id_}",
        (("looked in", ", ".join(models)),),
        "An id is made of a user and a first event, so an earlier event gives a session another "
        f"one.\n`infold show {models[0]} --columns session_id,session_start` shows ids, and "
        f"`infold show {models[0]} --where TEXT` picks rows.",
    )


def folder_in_use(folder: str) -> InfoldError:
    """``init`` or ``demo`` was pointed at a folder that holds something else."""
    return InfoldError(
        "folder-in-use",
        f"{folder} is not empty",
        todo="Name a folder that does not exist yet.",
    )


def bad_filter(where: str, why: str) -> InfoldError:
    """``show --where`` cannot be understood."""
    return InfoldError(
        "bad-filter",
        "--where cannot be understood",
        (("where", where), ("why", why)),
        "Compare columns with values: day >= '2024-03-09' and user_id = 'ann'.",
    )


def unknown_columns(names: Sequence[str], known: Sequence[str]) -> InfoldError:
    """``show --columns`` names columns that the table does not have."""
    return InfoldError(
        "unknown-column",
        f"there is no column {', '.join(names)}",
        (("columns", ", ".join(known)),),
    )


def crashed(what: str, log: str) -> InfoldError:
    """A mistake of the program's own; the traceback is in the log."""
    return InfoldError(
        "internal", f"{what} (a mistake in infold; the traceback is in {log})", exit_code=1
    )


# --- the ledger


def locked(
    *, run: str, host: str, pid: int, since: str, heard: str = "", ahead: bool = False
) -> InfoldError:
    """
    Another run holds the target's lease; ``since`` is a time in UTC.

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
        exit_code=3,
    )


def lease_lost(run: str) -> InfoldError:
    """The process no longer holds the lease that its run was given."""
    return InfoldError(
        "lease-lost",
        f"run {run or '(none)'} no longer holds this target's lease, so it must not write",
        (),
        "Another run has taken over, because this one seemed dead (it was suspended, or its "
        "machine slept). Run again: nothing of it is lost or counted twice.",
        exit_code=1,
    )


def ledger_unsupported(url: str) -> InfoldError:
    """A ledger URL of a kind that is not there yet."""
    return InfoldError(
        "ledger-unsupported",
        "this ledger URL is of a kind that is not supported",
        (("ledger", url),),
        "Use a SQLite file: sqlite:///.infold/ledger.db (relative to the project), or "
        "sqlite:////absolute/path.",
    )


def not_a_ledger(path: str, why: str) -> InfoldError:
    """The ledger's file is there and is something else."""
    return InfoldError(
        "not-a-ledger",
        "the ledger's file is not a ledger, and is left alone",
        (("file", path), ("why", why)),
        "Point `ledger` in infold.yml somewhere else, or move that file away.",
    )


def ledger_newer(path: str, found: int, known: int) -> InfoldError:
    """The ledger was written by a newer infold."""
    return InfoldError(
        "ledger-newer",
        "the ledger was written by a newer infold",
        (("file", path), ("its format", str(found)), ("known here", f"up to {known}")),
        "Upgrade infold on this machine. Nothing was read or written.",
    )


def ledger_unusable(path: str, why: str) -> InfoldError:
    """The ledger's file cannot be read or written now: permissions, a full disk, a long lock."""
    return InfoldError(
        "ledger-unusable",
        "the ledger cannot be used",
        (("file", path), ("why", why)),
        "Check that the file and its folder can be written and that the disk has room.",
        exit_code=1,
    )


# --- sources and tables as they are stored


def no_such_folder(source: str, pattern: str, folder: str) -> InfoldError:
    """The folder of a files source is not there."""
    return InfoldError(
        "no-such-folder",
        f"the folder of source {source} does not exist",
        (("path", pattern), ("folder", folder)),
        "Create it (it may be empty), or correct `path` in infold.yml.",
    )


def bad_file_name(source: str, path: str) -> InfoldError:
    """A file's name is not valid UTF-8, so no table could hold it."""
    return InfoldError(
        "bad-file-name",
        f"a file of source {source} has a name that is not valid UTF-8",
        (("file", path),),
        "Rename it, or start its name with _ to leave it out.",
    )


def no_such_table(source: str, table: str, catalog: str) -> InfoldError:
    """An Iceberg source's table is not in its catalog."""
    return InfoldError(
        "no-such-table",
        f"the table of source {source} is not in its catalog",
        (("table", table), ("catalog", catalog)),
        "Correct `table` or `catalog` in infold.yml.",
    )


def equality_deletes(location: str) -> InfoldError:
    """An Iceberg source has deletes by value, which cannot be read by file and position."""
    return InfoldError(
        "equality-deletes",
        "the source table has equality deletes, which cannot be read yet",
        (("metadata", location),),
        "Compact it with the engine that wrote them (rewrite_data_files), or write it with "
        "position deletes or copy-on-write.",
    )


def catalog_unreadable(path: str, why: str) -> InfoldError:
    """The catalog's SQLite file cannot be read."""
    return InfoldError(
        "catalog-unreadable",
        "the Iceberg catalog cannot be read",
        (("file", path), ("why", why)),
        "It has to be the SQLite file of an Iceberg catalog, readable by you.",
        exit_code=1,
    )


def metadata_missing(path: str, why: str) -> InfoldError:
    """The catalog names a metadata file that is not there."""
    return InfoldError(
        "metadata-missing",
        "the catalog names a metadata file that cannot be read",
        (("file", path), ("why", why)),
        "Was the warehouse moved, or files in it deleted? Its files name each other by full path.",
        exit_code=1,
    )


# --- the project


def no_project(path: str) -> InfoldError:
    """A folder without infold.yml."""
    return InfoldError(
        "no-project",
        "there is no infold.yml here",
        (("folder", path),),
        "Go to the project's folder, or start one: infold init DIR.",
    )


def unknown_target(name: str, targets: Iterable[str]) -> InfoldError:
    """A target that infold.yml does not declare."""
    return InfoldError(
        "unknown-target",
        f"infold.yml has no target {name!r}",
        (("targets", ", ".join(targets)),),
    )


# --- refusals and failures of a run


def rows_without_cell(model: str, column: str, rows: int) -> InfoldError:
    """Rows whose partition column is NULL, of a model of which nothing proves that it has none."""
    return InfoldError(
        "null-cell",
        f"{column} is NULL in rows that {model} yields, and no cell holds them",
        (("rows", f"{rows:,}"),),
        f"Say what becomes of them: SELECT * FROM (…) WHERE {column} IS NOT NULL leaves them out, "
        f"coalesce({column}, …) gives them a time.",
    )


def append_would_repeat(model: str, cells: int, first: str) -> InfoldError:
    """A cell that holds rows, of a model whose strategy only adds rows."""
    return InfoldError(
        "append-would-repeat",
        f"{model} has the strategy append, and {cells:,} of the cells to build hold rows already",
        (("the first", first),),
        "Use delete_insert, which replaces what is in the cells, in one commit.",
        exit_code=3,
    )


def protected(target: str, what: str, found: Sequence[tuple[str, str]]) -> InfoldError:
    """Something that would drop or rebuild tables of a protected target."""
    return InfoldError(
        "protected",
        f"{target} is protected, and this would {what} "
        + ("one of its tables" if len(found) == 1 else f"{len(found):,} of its tables"),
        tuple(found),
        "They are as they were. --allow-refresh allows it, for this once.",
        exit_code=3,
    )


def unconfirmed(what: str) -> InfoldError:
    """Something that drops tables, neither confirmed nor asked about."""
    return InfoldError(
        "unconfirmed",
        f"this would {what}, and nobody is there to ask",
        todo="Nothing was written. --yes says that it is meant.",
        exit_code=3,
    )


def over_budget(rows: int, max_rows: int) -> InfoldError:
    """A run that would read more rows than ``--max-rows`` allows."""
    return InfoldError(
        "over-budget",
        f"this run would read about {rows:,} rows",
        (("allowed", f"{max_rows:,} (--max-rows)"),),
        "Nothing was written. `infold plan` says which cells cost what; "
        "narrow it by --select, --start and --end, or allow more.",
        exit_code=3,
    )


def foreign_write(table: str, snapshot: int | None) -> InfoldError:
    """A table was changed by something other than infold."""
    return InfoldError(
        "foreign-write",
        f"{table} was changed by something other than infold",
        (("snapshot", "unknown" if snapshot is None else str(snapshot)),),
        "It is left alone, and so is what reads it: that would build on rows that nobody can vouch "
        "for. Roll the table back to the snapshot before this one, "
        "or drop it: the next run builds it anew.",
        exit_code=3,
    )


def step_failed(model: str, what: str, condition: str) -> InfoldError:
    """A step of a run did not succeed; ``what`` are Spark's own words."""
    return InfoldError(
        "step-failed",
        f"{model} could not be built",
        (("why", what), *((("condition", condition),) if condition else ())),
        "Nothing of this step was written. Once the cause is gone, run again.",
        exit_code=1,
    )


def still_stale(model: str) -> InfoldError:
    """A step that leaves just what it was to put right."""
    return InfoldError(
        "step-failed",
        f"{model} could not be built",
        (("why", "it is still stale after being built"),),
        "That is a mistake in infold: please report it with what `infold plan --json` says.",
        exit_code=1,
    )


def drift(source: str, files: Sequence[tuple[str, str]]) -> InfoldError:
    """New files whose columns are not the declared ones; each with how they differ."""
    one = len(files) == 1
    return InfoldError(
        "drift",
        f"{'a file' if one else f'{len(files)} files'} of {source} "
        f"{'does' if one else 'do'} not have the declared columns",
        tuple(files),
        "Nothing was taken in. Put the files right, change `columns` in infold.yml, "
        "or set such files aside: on_drift: set_aside.",
        exit_code=1,
    )


def unreadable_file(path: str, why: str) -> InfoldError:
    """A source's file cannot be read at all."""
    return InfoldError(
        "unreadable-file",
        "a file of a source cannot be read",
        (("file", path), ("why", why)),
        "Nothing was taken in. Put the file right or take it away, or let such files be set aside: "
        "on_unreadable: set_aside. One that is still being written is left alone while its name "
        "starts with _.",
        exit_code=1,
    )


def unreadable_folder(source: str, path: str, why: str) -> InfoldError:
    """A folder of a source cannot be listed."""
    return InfoldError(
        "unreadable-folder",
        f"a folder of {source} cannot be read",
        (("folder", path), ("why", why)),
        "Nothing was taken in, and nothing was taken out. Make it readable, or leave it out of "
        "`path` in infold.yml.",
        exit_code=1,
    )


def source_changed(source: str, path: str) -> InfoldError:
    """A file is no longer what the run's listing, or the last run, saw."""
    return InfoldError(
        "source-changed",
        f"a file of {source} changed while it was read",
        (("file", path),),
        "Nothing of this step was written. Run again.",
        exit_code=1,
    )


def engine_busy(lock: str) -> InfoldError:
    """The JVM of a run that died still writes, or hangs."""
    return InfoldError(
        "engine-busy",
        "the Spark process of a run that died has not ended",
        (("lock", lock),),
        "Run again in a minute; if it stays, find the java process that holds the lock and end it.",
        exit_code=3,
    )
