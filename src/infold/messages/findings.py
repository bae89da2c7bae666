"""
What can be wrong with what was written: names, types, keys, SQL that cannot be read.

Each is built by one function, with its place, is a mistake (exit code 2) and has a section in
docs/errors.md. What is refused because of what it means stands in ``refusals``.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from infold.messages import other_tools
from infold.messages.errors import InfoldError, Spot


def nearest(word: str, names: Iterable[str], count: int = 3) -> tuple[str, ...]:
    """The names most like ``word``, best first, without regard to case."""
    by_lower = {name.lower(): name for name in names}
    found = get_close_matches(word.lower(), by_lower, n=count, cutoff=0.5)
    return tuple(by_lower[name] for name in found)


def _near(word: str, names: Iterable[str], all_of: str) -> tuple[tuple[str, str], ...]:
    """The fact that names the nearest right ones, or all when nothing is near and few are."""
    names = tuple(dict.fromkeys(names))
    close = nearest(word, names)
    if close:
        return (("nearest", ", ".join(close)),)
    if 0 < len(names) <= 12:
        return ((all_of, ", ".join(names)),)
    return ()


# --- the files of a project


def bad_yaml(at: Spot, why: str) -> InfoldError:
    """A file that is not YAML."""
    return InfoldError("bad-yaml", "this is not valid YAML", (("why", why),), at=at)


def not_utf8(at: Spot, byte: int) -> InfoldError:
    """A file with bytes that are not UTF-8."""
    return InfoldError(
        "not-utf8",
        "this file is not UTF-8 text",
        (("byte", str(byte)),),
        "Save it as UTF-8.",
        at=at,
    )


def no_front_matter(at: Spot) -> InfoldError:
    """A model's file whose front matter does not end."""
    return InfoldError(
        "no-front-matter",
        "the front matter has no end",
        todo="Close it with a line that is just ---.",
        at=at,
    )


def bad_model_name(at: Spot, name: str) -> InfoldError:
    """A model's file whose name cannot be a table's."""
    return InfoldError(
        "bad-name",
        f"{name!r} cannot be the name of a table",
        todo="Use letters, digits and underscores, a letter first: a model is named by its file.",
        at=at,
    )


def bad_name(at: Spot, what: str, name: str, form: str) -> InfoldError:
    """A name in infold.yml that does not have the form it must have."""
    return InfoldError(
        "bad-name", f"{name!r} cannot be the name of a {what}", (("form", form),), at=at
    )


def duplicate_name(at: Spot, name: str, other: str) -> InfoldError:
    """Two declarations under one name."""
    return InfoldError(
        "duplicate-name",
        f"there is another {name}",
        (("other", other),),
        "Names are compared without regard to case, and dots count as two underscores.",
        at=at,
    )


def python_model(at: Spot) -> InfoldError:
    """A model written in Python."""
    return InfoldError(
        "not-supported-yet",
        "models in Python are not supported yet",
        todo="Write it as SQL.",
        at=at,
    )


# --- keys and their values


def unknown_key(at: Spot, key: str, where: str, known: Iterable[str]) -> InfoldError:
    """A key that nobody knows."""
    meant = other_tools.here(key)
    facts = (("here", meant),) if meant else _near(key, known, "keys")
    return InfoldError("unknown-key", f"{where} has no key {key!r}", facts, at=at)


def meant_by(key: str, known: Iterable[str]) -> frozenset[str]:
    """The keys that one which nobody knows seems to stand for."""
    here = other_tools.here(key)
    if here is not None:
        return frozenset({here.partition(" ")[0].partition(".")[0].rstrip(":,")})
    return frozenset(nearest(key, tuple(known))[:1])


def later_key(at: Spot, key: str, where: str) -> InfoldError:
    """A key that a later version will know."""
    return InfoldError(
        "not-supported-yet",
        f"{key!r} of {where} is not supported yet",
        todo="Leave it out.",
        at=at,
    )


def later_value(at: Spot, key: str, value: str, known: Iterable[str]) -> InfoldError:
    """A value that a later version will know."""
    return InfoldError(
        "not-supported-yet",
        f"{key}: {value} is not supported yet",
        (("supported", ", ".join(known)),),
        at=at,
    )


def duplicate_key(at: Spot, key: str, first: Spot) -> InfoldError:
    """One key written twice in one mapping."""
    return InfoldError("duplicate-key", f"{key!r} is here twice", (("first", str(first)),), at=at)


def missing_key(at: Spot, key: str, where: str, why: str = "") -> InfoldError:
    """A key that must be there."""
    return InfoldError(
        "missing-key", f"{where} needs {key!r}", (("why", why),) if why else (), at=at
    )


def needless_key(at: Spot, key: str, where: str, todo: str = "") -> InfoldError:
    """A key that means nothing where it stands."""
    return InfoldError("needless-key", f"{key!r} means nothing for {where}", todo=todo, at=at)


def wrong_type(at: Spot, key: str, wanted: str, found: str) -> InfoldError:
    """A value of the wrong type."""
    return InfoldError("wrong-type", f"{key} takes {wanted}, and this is {found}", at=at)


def bad_value(at: Spot, key: str, value: str, known: Iterable[str]) -> InfoldError:
    """A value that is none of the possible ones."""
    return InfoldError(
        "bad-value", f"{key} cannot be {value!r}", _near(value, known, "one of"), at=at
    )


def bad_duration(at: Spot, key: str, value: str) -> InfoldError:
    """A length of time that cannot be read."""
    return InfoldError(
        "bad-duration",
        f"{key} takes a length of time, and {value!r} is none",
        (("such as", "30 minutes, 1 hour 30 minutes, 2 days"),),
        at=at,
    )


def bad_percent(at: Spot, key: str, value: str) -> InfoldError:
    """A part that is not written in percent."""
    return InfoldError(
        "bad-value",
        f"{key} is not a part in percent: {value}",
        todo="Write 10% or 100%, with the sign.",
        at=at,
    )


def bad_instant(at: Spot, key: str, value: str) -> InfoldError:
    """A date or time that cannot be read."""
    return InfoldError(
        "bad-date",
        f"{key} takes a date or a time, and {value!r} is none",
        (("such as", "2024-01-31, 2024-01-31T09:00"),),
        at=at,
    )


def bad_column_type(
    at: Spot, column: str, type_: str, alike: str | None, known: Iterable[str]
) -> InfoldError:
    """A column type that Spark SQL does not have."""
    return InfoldError(
        "bad-type",
        f"{type_!r} (of {column}) is not a type of Spark SQL",
        (("nearest", alike),) if alike else _near(type_, known, "such as"),
        at=at,
    )


def not_a_time(at: Spot, key: str, column: str, type_: str) -> InfoldError:
    """A time column that holds something else."""
    return InfoldError(
        "not-a-time",
        f"{key} has to be a timestamp or a date, and {column} is {type_}",
        todo="Declare it as timestamp; timestamp_format says how it is written.",
        at=at,
    )


def optional_time(at: Spot, key: str, column: str) -> InfoldError:
    """A time that files may lack."""
    return InfoldError(
        "optional-time",
        f"{key} names {column}, which is optional",
        todo="A row without its time cannot be placed: leave `optional` out.",
        at=at,
    )


def no_such_column(at: Spot, key: str, column: str, known: Iterable[str]) -> InfoldError:
    """A key that names a column which is not there."""
    return InfoldError(
        "unknown-column",
        f"{key} names {column!r}, and there is no such column",
        _near(column, known, "columns"),
        at=at,
    )


def reserved_column(at: Spot, column: str) -> InfoldError:
    """A column whose name infold keeps for itself."""
    return InfoldError(
        "reserved-column",
        f"{column!r} starts with an underscore, and such columns are infold's own",
        todo="Give it another name.",
        at=at,
    )


# --- a query's names


def bad_sql(at: Spot, why: str) -> InfoldError:
    """A query that cannot be parsed."""
    return InfoldError("bad-sql", "this SQL cannot be read", (("why", why),), at=at)


def template(at: Spot, instead: str) -> InfoldError:
    """A block of dbt's templates in a query."""
    return InfoldError(
        "bad-sql",
        "this is a template of dbt, and a model is plain SQL",
        (("instead", instead),),
        at=at,
    )


def model_header(at: Spot) -> InfoldError:
    """The header of a model of SQLMesh."""
    return InfoldError(
        "no-front-matter",
        "this is the header of a model of SQLMesh",
        (
            ("name", "the file's own"),
            ("kind", "materialization: view, table, events, sessions, cumulative_aggregate"),
            ("by time range", "timeseries and incremental, of a table"),
        ),
        "Say it in front matter, between two lines of --- at the beginning of the file.",
        at=at,
    )


def not_one_select(at: Spot, what: str) -> InfoldError:
    """A file with no SELECT, with another statement, or with several."""
    return InfoldError(
        "not-one-select", f"a model is one SELECT, and this is {what}", todo="", at=at
    )


def unsupported_sql(at: Spot, what: str) -> InfoldError:
    """SQL that Spark knows and that cannot be analysed here."""
    return InfoldError(
        "unsupported-sql",
        f"{what} cannot be analysed",
        todo="Say the same without it, or build the table outside and read it as a source.",
        at=at,
    )


def not_in_spark(at: Spot, what: str, instead: str) -> InfoldError:
    """SQL of another dialect."""
    return InfoldError("unsupported-sql", f"Spark SQL has no {what}", todo=instead, at=at)


def unknown_function(at: Spot, name: str, known: Iterable[str]) -> InfoldError:
    """A call of a function that Spark does not have."""
    return InfoldError(
        "unknown-function",
        f"Spark has no function {name}",
        _near(name.lower(), known, ""),
        "Only built-in functions can be called: a session's own are not known to every run.",
        at=at,
    )


def long_column(at: Spot, name: str, shorter: str) -> InfoldError:
    """A column with all of its table's name before it."""
    return InfoldError(
        "unsupported-sql",
        f"{name}: a column is named with the last part of its table's name at most",
        todo=f"Write {shorter}, or give the table an alias.",
        at=at,
    )


def unknown_table(at: Spot, name: str, known: Iterable[str]) -> InfoldError:
    """A table in FROM that is neither a model nor a source."""
    return InfoldError(
        "unknown-table",
        f"there is no model or source {name!r}",
        _near(name, known, "there are"),
        at=at,
    )


def unknown_column(at: Spot, name: str, known: Iterable[str], tables: Iterable[str]) -> InfoldError:
    """A column that none of the tables in FROM has."""
    where = " or ".join(dict.fromkeys(tables))
    return InfoldError(
        "unknown-column",
        f"there is no column {name!r}" + (f" in {where}" if where else " here"),
        _near(name.rpartition(".")[2], known, "columns"),
        at=at,
    )


def dependency_cycle(at: Spot, names: Iterable[str]) -> InfoldError:
    """Models that read each other in a circle."""
    return InfoldError(
        "cycle",
        "these models depend on each other in a circle",
        (("cycle", " -> ".join(names)),),
        "One of them has to read something else.",
        at=at,
    )


def protected_dev(at: Spot, target: str) -> InfoldError:
    """A target for development that is marked protected."""
    return InfoldError(
        "protected-dev",
        f"{target} is the target for development, which is free, and is marked protected",
        todo="Remove `protected`, or name another target as `dev_target`.",
        at=at,
    )


def needless_lookback(at: Spot) -> InfoldError:
    """``lookback`` in a model: late rows are found, so there is nothing to look back for."""
    return InfoldError(
        "needless-lookback",
        "late rows make exactly the right cells stale, so there is no lookback to set",
        todo="Remove it. A window that a query reads beyond its cell is derived from the query; "
        "one that cannot be is declared by `bounds`.",
        at=at,
    )


def downgrade_is_an_option(at: Spot) -> InfoldError:
    """``allow_downgrade`` in a file, where it would hold for good."""
    return InfoldError(
        "unknown-key",
        "allow_downgrade holds for one run, so it is an option of the command and no key",
        todo="Remove it, and type `infold run --allow-downgrade`; or leave out `incremental`.",
        at=at,
    )


def bad_cron(at: Spot, key: str, text: str, why: str) -> InfoldError:
    """A cron expression that cannot be read."""
    return InfoldError(
        "bad-cron",
        f"{key} is {text!r}, and that is no cron expression",
        (("why", why),),
        "Five fields (`0 5 * * *`), or @hourly, @daily, @weekly, @monthly, @yearly.",
        at=at,
    )


def bad_zone(at: Spot, key: str, text: str) -> InfoldError:
    """A time zone that is not known."""
    return InfoldError(
        "bad-zone",
        f"{key} is {text!r}, and there is no such time zone",
        todo="A name such as UTC, Europe/Berlin or America/New_York.",
        at=at,
    )


def not_of_one_event(at: Spot, key: str, sql: str, why: str) -> InfoldError:
    """SQL in front matter that is no function of one event."""
    return InfoldError(
        "not-of-one-event",
        f"{key} is {sql!r}, which is no value of one event: {why}",
        todo="Name a column, a field of one, or an expression over the columns of one event.",
        at=at,
    )


def bound_of_no_input(at: Spot, name: str, inputs: Iterable[str]) -> InfoldError:
    """A declared bound of something that the model does not read by time."""
    return InfoldError(
        "unknown-table",
        f"incremental.bounds names {name!r}, and the model reads no such table by time",
        (("by time", ", ".join(inputs) or "nothing"),),
        at=at,
    )


def unknown_variable(at: Spot, name: str, known: Iterable[str]) -> InfoldError:
    """``@name`` in a query, of a name that stands for nothing."""
    return InfoldError(
        "unknown-variable",
        f"{name} stands for nothing here",
        (("known", ", ".join("@" + one for one in known)),),
        "Remove it: infold filters each input to what the cells in hand are made from.",
        at=at,
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


def too_deep(at: Spot) -> InfoldError:
    """SQL that is nested deeper than its analysis can follow."""
    return InfoldError(
        "too-deep",
        "this SQL is nested too deeply",
        todo="A list (IN (…)) says the same as thousands of ORs; a view or a table of its own "
        "takes a part of a long UNION ALL.",
        at=at,
    )


def no_models(folder: str, why: str) -> InfoldError:
    """A project whose models are not there, or cannot be read."""
    return InfoldError(
        "no-models",
        "the project's models cannot be read",
        (("folder", folder), ("why", why)),
        "Models are .sql files in the folder models/ beside infold.yml, or below it.",
    )
