"""What was typed and cannot be done: names, times, filters, folders, targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from infold.messages.errors import ExitCode, InfoldError, Message, Near


def _nearest(name: str, known: Sequence[str]) -> str:
    """The known names that look most like ``name``, or all of a few, or how many there are."""
    from difflib import get_close_matches

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
        "Tags are listed in a model's front matter: `tags: [finance]`.",
    )


def unknown_table(name: str, known: Sequence[str]) -> InfoldError:
    """``infold show`` names a table that is not there."""
    return InfoldError(
        "unknown-table",
        f"there is no table {name}",
        (("nearest", _nearest(name, known)),),
        "Models, sources that models read directly, `set_aside`, `audit_failures` and the manifest "
        "tables can be shown.",
    )


not_built = Message(
    "not-built",
    "{name} has not been built yet",
    todo="`infold run --select +{name}` builds it and what it reads.",
)

# A view over the rows of files that are in no table.
not_landed = Message(
    "not-built",
    "{view} is evaluated over files of {source} when they are ingested, and not stored",
    todo="Show a model that ingests it, or name {source} in a `table`, which lands it.",
)

compiled_sqlglot = Message(
    "compiled-sqlglot",
    "sqlglot is installed with its compiled modules, and infold cannot extend their parser",
    {"file": "{file}"},
    "`pip uninstall sqlglotc`: sqlglot then runs as Python. What needs it compiled gets an "
    "environment of its own.",
)

package_missing = Message(
    "package-missing",
    "{method} needs {package}, which is not installed",
    todo="Install it: pip install {package}",
)

bad_certificate_key = Message(
    "bad-certificate-key",
    "the key that `erasure_certificate_key` names cannot sign",
    {"key": "{reference}", "why": "{why}"},
    "Nothing was looked at. A key is made by `openssl genpkey -algorithm ed25519 -out FILE`.",
)

not_laid_out = Message(
    "not-formatted",
    "{file} is left as it is: sqlfmt cannot read its query",
    {"why": "{why}"},
    "Put `-- fmt: off` above what it cannot read and `-- fmt: on` below, or lay it out by hand.",
)

not_formatted = Message(
    "not-formatted",
    "{file} is left as it is: laid out, {why} would differ",
    todo="Put `-- fmt: off` above what changes and `-- fmt: on` below, or lay it out by hand.",
)

not_an_instant = Message(
    "not-an-instant",
    "{option} is not a date or a time: {text}",
    todo="Write 2024-03-09, or 2024-03-09T12:00; without an offset it is UTC.",
)


def window_empty(
    start: str, end: str, options: tuple[str, str] = ("--start", "--end")
) -> InfoldError:
    """The window ends before it starts; ``options`` are the command's own."""
    first, last = options
    return InfoldError(
        "window-empty",
        "the window is empty",
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


not_a_cell = Message(
    "not-a-cell",
    "{model} is not divided into cells: {text}",
    todo="`infold explain {model}` explains it as a whole.",
)


def not_sessions(model: str, known: Sequence[str]) -> InfoldError:
    """Something of sessions was asked of another kind of model."""
    return InfoldError(
        "not-sessions",
        f"{model} is not a table of sessions",
        todo=f"There are: {', '.join(known)}." if known else "This project has none.",
    )


def not_events(models: Sequence[str], known: Sequence[str]) -> InfoldError:
    """How late rows came was asked of models in which none arrive."""
    verb = "is not a table" if len(models) == 1 else "are not tables"
    return InfoldError(
        "not-events",
        f"{', '.join(models)} {verb} of events, in which rows arrive",
        todo=f"There are: {', '.join(known)}." if known else "This project has none.",
    )


nothing_to_plot = Message(
    "nothing-to-plot",
    "{table} has no column of times or of numbers to draw",
    {"columns": "{columns}"},
    "Name others with --columns, or leave out --plot.",
)

no_time_for_lines = Message(
    "no-time-for-lines",
    "{table} has no column of times to draw lines over",
    {"columns": "{columns}"},
    "Name one with --columns, or draw a bar for each row with --plot.",
)


unknown_session = Message(
    "unknown-session",
    "{model} has no session {session}",
    todo=(
        "`infold show {model}` shows the ids of those in the table, `infold quarantine list` those "
        "in quarantine. --user means all sessions of a user."
    ),
)

# No session of a user or identifier, and no manual entry for one.
unknown_owner = Message(
    "unknown-session",
    "{model} has no session of the {what} {value}",
    todo=(
        "`infold show {model}` shows those in the table, `infold quarantine list` those in "
        "quarantine. With --force it is written down for sessions to come."
    ),
)


def unknown_entry(model: str, number: int, known: Sequence[int]) -> InfoldError:
    """There is no manual entry of that number."""
    return InfoldError(
        "unknown-entry",
        f"there is no manual entry {number} of {model}",
        (("entries", ", ".join(map(str, known)) or "none"),),
        "`infold quarantine list` shows them with their numbers.",
    )


# Sessions by identifier are not those of one user.
sessions_by_identifier = Message(
    "sessions-by-identifier",
    "{model} has sessions by identifier, so a user does not identify them",
    todo="Name identifiers in place of --user.",
)

no_sessions_models = Message(
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


folder_in_use = Message(
    "folder-in-use", "{folder} is not empty", todo="Name a folder that does not exist yet."
)

nothing_to_import = Message(
    "nothing-to-import",
    "{folder} has no project of {tool}",
    {"looked for": "{files}"},
    "Name the folder that has one of these files.",
)

export_folder_in_use = Message(
    "folder-in-use",
    "{folder} cannot take an export",
    {"why": "{why}"},
    "Name a folder that is empty, does not exist yet, or has an earlier export.",
)

port_unavailable = Message(
    "port-unavailable",
    "port {port} of this machine cannot be listened at",
    {"why": "{why}"},
    "Leave --port out: then one that is free is chosen.",
)

bad_filter = Message(
    "bad-filter",
    "--where cannot be understood",
    {"where": "{where}", "why": "{why}"},
    "Compare columns with values: day >= '2024-03-09' and user_id = 'ann'.",
)

unknown_erasure = Message(
    "unknown-erasure",
    "nothing called {name!r} can be asked to be erased",
    {"there are": Near("{name}")},
    "Name the columns that hold such keys in `erasures` of infold.yml, by source.",
)

bad_erasure = Message(
    "bad-erasure",
    "{what}",
    {"allowed": "{fact}"},
    "Nothing was recorded.",
)


def erasure_over_budget(*, rows: Mapping[str, int | None], max_rows: int) -> InfoldError:
    """More stored rows would be erased than is allowed; None of a table: nobody knows how many."""
    known = sum(number or 0 for number in rows.values())
    more, todo = "", "Look whose rows they are (`infold show`), correct the keys, or allow more."
    if None in rows.values():
        more = ", and others that cannot be counted"
        todo += " A table without the keys as they are needs a request without --max-rows."
    counts = ((name, "unknown" if n is None else f"{n:,}") for name, n in rows.items())
    return InfoldError(
        "erasure-over-budget",
        f"this request would erase {known:,} rows{more}",
        (*counts, ("allowed", f"{max_rows:,} (--max-rows)")),
        f"Nothing was recorded. {todo}",
        exit_code=ExitCode.REFUSED,
    )


unknown_columns = Message("unknown-column", "there is no column {names}", {"columns": "{known}"})

not_sortable = Message(
    "unknown-column",
    "rows cannot be sorted by {names}",
    todo="Lists, maps and structs have no order: name other columns.",
)

crashed = Message(
    "internal", "{what} (a mistake in infold; the traceback is in {log})", exit_code=ExitCode.FAILED
)


no_project = Message(
    "no-project",
    "there is no infold.yml here",
    {"folder": "{path}"},
    "Go to the project's folder, or start one: infold init DIR.",
)

unknown_target = Message(
    "unknown-target", "infold.yml has no target {name!r}", {"targets": "{targets}"}
)


command_missing = Message(
    "infold-not-started",
    "the command {command} cannot be started",
    {"why": "{why}"},
    "Give the path of the command in the environment that infold is installed in "
    "(infold_command='/srv/shop/.venv/bin/infold').",
)

no_graph = Message(
    "no-graph",
    "{command} did not print the graph of a project",
    {"why": "{why}"},
    "Try it by hand; `infold check` lists all mistakes of a project.",
)

bad_graph_file = Message(
    "bad-graph-file",
    "{file} is not the graph of a project",
    {"why": "{why}"},
    "Write it again where the project is: infold dag --json > graph.json",
)

no_such_field = Message(
    "no-such-field",
    "a connection has no field {field}",
    {"variable": "{variable}", "fields": Near("{field}")},
    "Write it as CONNECTION.FIELD; of `extra` as CONNECTION.extra.KEY.",
)
