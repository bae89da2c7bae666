"""
What can be wrong with what was written: names, types, keys, SQL that cannot be read.

Each is a mistake (exit code 2), with its place. What is refused because of what it means is in
``refusals``.
"""

from __future__ import annotations

from collections.abc import Iterable

from infold.messages import other_tools
from infold.messages.errors import Finding, InfoldError, Message, Near, Spot, nearest, nearest_fact

# --- the files of a project

bad_yaml = Finding("bad-yaml", "this is not valid YAML", {"why": "{why}"})

not_utf8 = Finding(
    "not-utf8", "this file is not UTF-8 text", {"byte": "{byte}"}, "Save it as UTF-8."
)

no_front_matter = Finding(
    "no-front-matter", "the front matter has no end", todo="Close it with a line that is just ---."
)

bad_model_name = Finding(
    "bad-name",
    "{name!r} cannot be the name of a table",
    todo="Use letters, digits and underscores, a letter first: a model is named by its file.",
)

# A name in infold.yml.
bad_name = Finding("bad-name", "{name!r} cannot be the name of a {what}", {"form": "{form}"})

duplicate_name = Finding(
    "duplicate-name",
    "there is another {name}",
    {"other": "{other}"},
    "Names are compared without regard to case, and dots count as two underscores.",
)


# --- keys and their values


def unknown_key(at: Spot, key: str, where: str, known: Iterable[str]) -> InfoldError:
    """A key that is not there; of a key of another tool it shows what that is here."""
    meant = other_tools.infold_key(key)
    fact = ("here", meant) if meant else nearest_fact(key, known, "keys")
    return InfoldError("unknown-key", f"{where} has no key {key!r}", (fact,), at=at)


def keys_meant_by(key: str, known: Iterable[str]) -> frozenset[str]:
    """The known keys that an unknown one seems to mean."""
    here = other_tools.infold_key(key)
    if here is not None:
        return frozenset({here.partition(" ")[0].partition(".")[0].rstrip(":,")})
    return frozenset(nearest(key, tuple(known))[:1])


later_key = Finding(
    "not-supported-yet", "{key!r} of {where} is not supported yet", todo="Leave it out."
)

later_value = Finding(
    "not-supported-yet", "{key}: {value} is not supported yet", {"supported": "{known}"}
)

bad_secret = Finding(
    "bad-secret",
    "{key} has {value}, which is no secret that infold can read",
    {"forms": "${{env:NAME}}, ${{file:PATH}}"},
    "Write one of these: an environment variable, or a file with nothing else in it.",
)

password_written_out = Finding(
    "password-written-out",
    "{key} has a password in it, where everybody can read it who sees this file",
    {"such as": "postgresql+psycopg://USER:${{env:LEDGER_PASSWORD}}@HOST/DATABASE"},
    "Write `${{env:NAME}}` or `${{file:PATH}}` in its place, or leave it out: PGPASSWORD and "
    "~/.pgpass are read too.",
)

duplicate_key = Finding("duplicate-key", "{key!r} is here twice", {"first": "{first}"})


def missing_key(at: Spot, key: str, where: str, why: str = "") -> InfoldError:
    """A key that must be there."""
    return InfoldError("missing-key", f"{where} needs {key!r}", (("why", why),), at=at)


def needless_key(at: Spot, key: str, where: str, todo: str = "") -> InfoldError:
    """A key that means nothing where it is written."""
    return InfoldError("needless-key", f"{key!r} means nothing for {where}", todo=todo, at=at)


wrong_type = Finding("wrong-type", "{key} takes {wanted}, and this is {found}")

bad_value = Finding("bad-value", "{key} cannot be {value!r}", {"one of": Near("{value}")})

bad_pattern = Finding(
    "bad-value",
    "timestamp_format cannot be {value!r}",
    {"one of": Near("{value}"), "as a pattern": "{why}"},
)

not_shared = Finding(
    "not-shared",
    "executors of a cluster read files and write tables, and nothing says that they have the "
    "folders of {target}",
    todo="If the folders of the project and its tables are at the same paths on all machines, say "
    "so by `shared_disk: true` in `engine`.",
)

incremental_table = Finding(
    "bad-value",
    "a table that is built cell by cell is of materialization table",
    todo="Write `materialization: table`, with `timeseries` and `incremental: {{}}`. Rows that are "
    "known by a key are `events` or a `cumulative_aggregate`.",
)

bad_duration = Finding(
    "bad-duration",
    "{key} takes a length of time, and {value!r} is none",
    {"such as": "30 minutes, 1 hour 30 minutes, 2 days"},
)

bad_percent = Finding(
    "bad-value", "{key} is not a part in percent: {value}", todo="Write 10% or 100%, with the sign."
)

bad_dated_path = Finding(
    "bad-value",
    "path cannot have {date} as it is here: {path}",
    todo="Write it once, in the name of a folder, without a pattern beside it or `**` before it: "
    "s3://bucket/clicks/dt=2024-03-09/*.json is dt={date}/*.json.",
)

bad_instant = Finding(
    "bad-date",
    "{key} takes a date or a time, and {value!r} is none",
    {"such as": "2024-01-31, 2024-01-31T09:00"},
)


def bad_column_type(
    at: Spot, column: str, type_: str, alike: str | None, known: Iterable[str]
) -> InfoldError:
    """A column type that Spark SQL does not have."""
    return InfoldError(
        "bad-type",
        f"{type_!r} (of {column}) is not a type of Spark SQL",
        (("nearest", alike) if alike else nearest_fact(type_, known, "such as"),),
        at=at,
    )


not_a_time = Finding(
    "not-a-time",
    "{key} has to be a timestamp or a date, and {column} is {type_}",
    todo="Declare it as timestamp; timestamp_format says how it is written.",
)

optional_time = Finding(
    "optional-time",
    "{key} names {column}, which is optional",
    todo="A row without its time cannot be placed: leave `optional` out.",
)

kept_name = Finding(
    "bad-value",
    "renamed_from.{new} cannot be {old!r}, which is a column still",
    todo="It says what a column of the stored table was called that has another name now. Leave it "
    "out where none has, or once the table has the new name.",
)

renamed_twice = Finding(
    "bad-value",
    "renamed_from.{new} cannot be {old!r}, which {other} was called",
    todo="A column of the stored table has one new name. Leave one of both out.",
)

# A key in a file names it.
no_such_column = Finding(
    "unknown-column",
    "{key} names {column!r}, and there is no such column",
    {"columns": Near("{column}")},
)

frozen_without_forward_only = Finding(
    "retain-forward-only",
    "{name} keeps cells for longer than {read} keeps the rows that they are made from",
    {"such as": "incremental: {{forward_only: true}}"},
    "Such cells cannot be built again. Say `forward_only: true`, so that a changed definition "
    "leaves them as they are, or keep rows for as long.",
)

not_a_key = Finding(
    "erasure-column",
    "{key} names {column}, which is {type_}, and keys of persons are texts or whole numbers",
    todo="Name a column of type string, or of a type of whole numbers.",
)

optional_key = Finding(
    "erasure-column",
    "{key} names {column}, which is optional, so it may not be read",
    todo="Leave `optional` out: which rows are to be erased has to be known of every row.",
)

computed_key = Finding(
    "erasure-column",
    "{key} names {column}, which {model} does not pass on as {source} has it",
    todo="Name the column of the source in place of the model's: `{source}: …`.",
)

two_erased_columns = Finding(
    "erasure-column",
    "{of} has two columns of {source}: {columns}",
    todo="Name one of them. A source has one column with the keys of an erasure.",
)

not_erasable = Finding(
    "erasure-column",
    "{name} is no model of events, and keys of persons are looked for in rows as they come",
    {"models of events": Near("{name}")},
    "Name the source that the rows come from, or the model of events that reads it.",
)

reserved_column = Finding(
    "reserved-column",
    "{column!r} starts with an underscore, and such columns are infold's own",
    todo="Give it another name.",
)

reserved_column_of_source = Finding(
    "reserved-column",
    "{source} has a column {column!r}, and such names are of infold's own columns",
    todo="Read it in a model of materialization `events` that gives it another name "
    "(SELECT {column} AS other), and let other models read that one.",
)


# --- a query's names

bad_sql = Finding("bad-sql", "this SQL cannot be read", {"why": "{why}"})

template = Finding(
    "bad-sql", "this is a template of dbt, and a model is plain SQL", {"instead": "{instead}"}
)

model_header = Finding(
    "no-front-matter",
    "this is the header of a model of SQLMesh",
    {
        "name": "the file's own",
        "kind": "materialization: view, table, events, sessions, cumulative_aggregate, scd_type_2",
        "by time range": "timeseries and incremental, of a table",
    },
    "Say it in front matter, between two lines of --- at the beginning of the file.",
)

# No SELECT, another statement, or several.
not_one_select = Finding("not-one-select", "a model is one SELECT, and this is {what}")

# SQL that Spark knows and the analysis does not.
unsupported_sql = Finding(
    "unsupported-sql",
    "{what} cannot be analysed",
    todo="Say the same without it, or build the table outside and read it as a source.",
)

not_in_spark = Finding("unsupported-sql", "Spark SQL has no {what}", todo="{instead}")

unknown_function = Finding(
    "unknown-function",
    "Spark has no function {name}",
    {"functions": Near("{name}")},
    "A query calls Spark's built-in functions and those in the project's folder functions/: what "
    "a session has of its own is not known to every run.",
)

long_column = Finding(
    "unsupported-sql",
    "{name}: a column is named with the last part of its table's name at most",
    todo="Write {shorter}, or give the table an alias.",
)

column_too_far = Finding(
    "unknown-column",
    "{name} is a column two queries around this one, and Spark lets a subquery name columns of the "
    "query directly around it",
    todo="Join the two inner ones in one subquery, in whose WHERE both name it (EXISTS (SELECT 1 "
    "FROM b JOIN c ON … WHERE …)); or say how far each is from the one around it (c.ts BETWEEN "
    "b.ts AND …, b.ts BETWEEN a.ts AND …).",
)

unknown_table = Finding(
    "unknown-table", "there is no model or source {name!r}", {"there are": Near("{name}")}
)


def unknown_column(at: Spot, name: str, known: Iterable[str], tables: Iterable[str]) -> InfoldError:
    """A column that none of the tables in FROM has."""
    where = " or ".join(dict.fromkeys(tables))
    return InfoldError(
        "unknown-column",
        f"there is no column {name!r}" + (f" in {where}" if where else " here"),
        (nearest_fact(name.rpartition(".")[2], known, "columns"),),
        at=at,
    )


dependency_cycle = Finding(
    "cycle",
    "these models depend on each other in a circle",
    {"cycle": "{path}"},
    "One of them has to read something else.",
)

protected_dev = Finding(
    "protected-dev",
    "{target} is the target for development, which is free, and is marked protected",
    todo="Remove `protected`, or name another target as `dev_target`.",
)

needless_lookback = Finding(
    "needless-lookback",
    "late rows make exactly the right cells stale, so there is no lookback to set",
    todo=(
        "Remove it. A window that a query reads beyond its cell is derived from the query; one "
        "that cannot be is declared by `bounds`."
    ),
)

downgrade_is_an_option = Finding(
    "unknown-key",
    "allow_downgrade is for one run, so it is an option of the command and no key",
    todo="Remove it, and type `infold run --allow-downgrade` (in a target with `apply: auto`); or "
    "leave out `incremental`.",
)

bad_cron = Finding(
    "bad-cron",
    "{key} is {text!r}, and that is no cron expression",
    {"why": "{why}"},
    "Five fields (`0 5 * * *`), or @hourly, @daily, @weekly, @monthly, @yearly.",
)

bad_zone = Finding(
    "bad-zone",
    "{key} is {text!r}, and there is no such time zone",
    todo="A name such as UTC, Europe/Berlin or America/New_York.",
)

not_of_one_event = Finding(
    "not-of-one-event",
    "{key} is {sql!r}, which is no value of one event: {why}",
    todo="Name a column, a field of one, or an expression over the columns of one event.",
)


def bound_of_no_input(at: Spot, name: str, inputs: Iterable[str]) -> InfoldError:
    """A declared bound of something that the model does not read by time."""
    return InfoldError(
        "unknown-table",
        f"incremental.bounds names {name!r}, and the model reads no such table by time",
        (("by time", ", ".join(inputs) or "nothing"),),
        at=at,
    )


# ``@name`` in a query; each of ``known`` is written with its @.
unknown_variable = Finding(
    "unknown-variable",
    "{name} has no meaning here",
    {"known": "{known}"},
    "Remove it: infold filters each input to what the cells in hand are made from.",
)


def fixed_setting(at: Spot, key: str, given: str, kept: str) -> InfoldError:
    """A setting of Spark that would change what queries and files mean."""
    return InfoldError(
        "fixed-setting",
        f"{key} cannot be {given or 'empty'}",
        (("it is", kept),),
        "Take it out. Tables equal their definitions only while it stays as it is; whatever "
        "changes no rows (memory, parallelism, compression) is free.",
        at=at,
    )


# Longer than the program reads in seconds.
long_sql = Finding(
    "too-deep",
    "this SQL has {found} words, and a query has {most} at most",
    todo="Values belong into a seed, or a source: join it.",
)

large_file = Finding(
    "too-deep",
    "this file has {found} bytes, and such a file has {most} at most",
    todo="Values belong into a seed, or a source; a table of its own takes a part of a long query.",
)

# Nested deeper than the program can follow.
too_deep = Finding(
    "too-deep",
    "this SQL is nested too deeply",
    todo=(
        "A list (IN (…)) says the same as thousands of ORs; a view or a table of its own takes a "
        "part of a long UNION ALL."
    ),
)

unreadable_seeds = Message(
    "unreadable-seeds",
    "the project's seeds cannot be read",
    {"folder": "{folder}", "why": "{why}"},
    "Seeds are .csv files in the folder seeds/ beside infold.yml, or below it.",
)

bad_seed = Finding(
    "bad-seed",
    "{what}",
    todo="A seed is a CSV file: a line with the names of columns, then a line for each row with a "
    "value for each of them.",
)

bad_seed_value = Finding(
    "bad-seed",
    "{column} is {type_}, and {value!r} is no such value",
    todo="Correct the value, or the type under `seeds` of infold.yml. An empty field is NULL.",
)

bad_seed_type = Finding(
    "bad-seed",
    "a seed has no columns of type {type_}",
    {"such as": "{known}"},
    "Seeds are small tables of simple values. Declare the file as a source for anything else.",
)

large_seed = Finding(
    "bad-seed",
    "this file has {size}, and a seed has {most} at most",
    todo="A seed is a part of the project's definitions. Declare the file as a source without an "
    "event time: it is a lookup, too.",
)

no_models = Message(
    "no-models",
    "the project's models cannot be read",
    {"folder": "{folder}", "why": "{why}"},
    "Models are .sql and .py files in the folder models/ beside infold.yml, or below it.",
)


# The analysis of a query reads what Spark would read; where the two differ, Spark is right.

# In Spark's own words.
refused_by_spark = Finding(
    "refused-by-spark",
    "Spark does not accept the query of {model}",
    {"why": "{why}", "condition": "{condition}"},
    "Change the query, or the `columns` of its source.",
)

# Spark sees something to read that the analysis did not see.
reads_unseen = Finding(
    "reads-unseen",
    "{model} reads what is neither a model nor a source",
    {"reads": "{what}"},
    "Declare it as a source, and write its name in FROM.",
)

# As Spark's analyser types it.
type_not_stored = Finding(
    "not-stored",
    "{column} of {model} is of a type that no table has",
    {"type": "{type_}"},
    "Make it a number or a string, with CAST for example.",
)

# Spark reads less than the analysis saw: a name that is no table there.
not_read = Finding(
    "not-read",
    "Spark does not read {what} in the query of {model}",
    todo="Take it out, or write its name in FROM in a plainer way.",
)

# Something in the session has registered a function under the name of Spark's own.
function_replaced = Finding(
    "function-replaced",
    "{function} in the query of {model} is not Spark's own function in this session",
    {"replaced by": "{class_}"},
    "Register it by another name: what it gives back decides what is in the table.",
)

# A query that Spark itself does not take for deterministic, without the override.
not_determined = Finding(
    "not-deterministic",
    "Spark does not give the same rows twice for the query of {model}",
    {"because of": "{what}"},
    "Take it out. A table may also say that any result will do, in `incremental`: "
    "`safety_overrides: {{allow_nondeterministic: true}}`, with `enabled: false` if it is built "
    "whole.",
)

MISDEFINED = {"bad-audit"} | frozenset(
    finding.slug
    for finding in (
        refused_by_spark,
        reads_unseen,
        type_not_stored,
        not_read,
        function_replaced,
        not_determined,
    )
)
"""What can be wrong with a definition."""
