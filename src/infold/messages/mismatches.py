"""
What is refused because ledger, tables and sources do not fit each other.

Backups that were put back, a ledger of something else, files that are gone: nothing of it is a
mistake of the project, and going on would make tables that follow from nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

from infold.messages.errors import ExitCode, InfoldError, Message

_FORGET = """\
  infold forget {model}
  infold run
(Without a terminal the first needs --yes. On a protected target both need --allow-refresh.)"""

_SHOWN = 5
"""How many tables are named where all are meant."""

_REPAIR = """\
  {infold} repair
  {infold} run
(`repair --dry-run` only says what it would do; without a terminal add --yes. On a protected
target the run needs --allow-refresh. Where definitions are applied by hand and the ledger knows
none, `apply`, with the same option, takes the place of the run.)"""


def ledger_behind(
    ledger: str, tables: Sequence[tuple[str, str]], infold: str, *, empty: bool
) -> InfoldError:
    """
    Tables hold commits that the ledger knows nothing of; each with what it does not know.

    ``infold`` is how commands about the target begin, here and in what follows.
    """
    what = (
        "these tables exist, and the ledger that describes them is missing"
        if empty
        else "the ledger does not know what is in these tables: it is older than they are, "
        "or another one"
    )
    return InfoldError(
        "ledger-behind",
        what,
        (("ledger", ledger), *tables),
        "Nothing was written: files that are in the tables would be ingested twice. "
        "Put the ledger back that was written with these tables"
        f"{f'; `{infold} ledger import FILE` makes it of an exported one' if empty else ''} "
        "(of two targets, each needs a warehouse of its own). If there is none, let the ledger "
        "fit the tables again, as far as anything is known of them:\n"
        f"{_REPAIR.format(infold=infold)}",
        exit_code=ExitCode.REFUSED,
    )


def tables_behind(ledger: str, tables: Sequence[tuple[str, str]], infold: str) -> InfoldError:
    """Tables lack commits that the ledger says they have; each with what it lacks."""
    return InfoldError(
        "tables-behind",
        "these tables are older than the ledger says",
        (("ledger", ledger), *tables),
        "Nothing was written: what the ledger knows to be in the tables is not in them. "
        "Was the warehouse put back from a backup, or a table rolled back? Put back the ledger of "
        "the same moment, or let the ledger fit the tables again:\n"
        f"{_REPAIR.format(infold=infold)}",
        exit_code=ExitCode.REFUSED,
    )


def catalog_lost(ledger: str, catalog: str, tables: Sequence[str], infold: str) -> InfoldError:
    """A catalog has none of the tables that the ledger knows."""
    shown = ", ".join(tables[:_SHOWN]) + (", …" if len(tables) > _SHOWN else "")
    return InfoldError(
        "catalog-lost",
        "the catalog has none of the tables that the ledger knows",
        (("ledger", ledger), ("catalog", catalog), (f"tables ({len(tables):,})", shown)),
        "Nothing was written. Is it another catalog than before, or an empty one in place of one "
        "that was lost? Then correct `catalog` or `warehouse` in infold.yml, or put the catalog "
        "back from a backup. If the tables are gone for good, have them built again:\n"
        f"{_REPAIR.format(infold=infold)}\nTheir former files stay in the warehouse: nothing tells "
        "any more whose they are. Delete their folders yourself, once the new tables are there.",
        exit_code=ExitCode.REFUSED,
    )


# Nobody may overwrite it: infold has not one commit in it.
erasure_not_declared = Message(
    "erasure-not-declared",
    "persons were asked to be erased by {column} of {source}, and infold.yml does not say so any "
    "more",
    {"erasure": "{erasure}"},
    "Nothing was written. Without it the next rebuild would bring their rows back. Write "
    "`{source}: {column}` below `{erasure}` in `erasures` again.",
    exit_code=ExitCode.REFUSED,
)

erasure_not_applied = Message(
    "erasure-not-applied",
    "{column} of {source} has keys of persons, and those who were asked to be erased before may "
    "have rows there",
    {"erasure": "{erasure}"},
    "Nothing was written. `infold erase {erasure} --again` has all earlier requests apply to it.",
    exit_code=ExitCode.REFUSED,
)

erasure_secret_changed = Message(
    "erasure-secret-changed",
    "the keys of erased persons were hashed with another secret than `erasure_secret` is now",
    {"target": "{target}"},
    "Nothing was written: with this secret nobody who was erased would be known. Set the former "
    "one again. If it is lost, nothing tells any more whom the requests are about: `infold "
    "teardown` drops tables, ledger and requests. Then ask for those who were erased again, "
    "and run.",
    exit_code=ExitCode.REFUSED,
)

erasure_no_secret = Message(
    "erasure-no-secret",
    "the target {target} names no secret to hash the keys of erased persons with",
    {"such as": "erasure_secret: ${{env:ERASURE_SECRET}}"},
    "Nothing was written. Name one in infold.yml, as long and random as a password, and keep it: "
    "the keys of requests are kept as hashes by it alone.",
)

erasure_column_unread = Message(
    "erasure-column-unread",
    "some cells of {model} are built by an earlier definition, which does not read {column}, and "
    "persons are erased by that",
    {"source": "{source}"},
    "Nothing was written. `infold restate {model}` builds all of it by the present definition.",
    exit_code=ExitCode.REFUSED,
)

table_name_taken = Message(
    "table-name-taken",
    "{model} was never built, and the name of its table is taken by one that infold did not make",
    {"table": "{table}", "metadata": "{location}"},
    "That table was left alone, and so is what reads {model}. Rename or drop it with what made it, "
    "or call the model something else.",
    exit_code=ExitCode.REFUSED,
)

orphans_of_others = Message(
    "orphans-of-others",
    "another project may have its tables in the namespace {namespace}, and nothing tells whose "
    "these are",
    {"tables": "{tables}"},
    "Nothing was written. Give those that are this project's by name, with `--drop TABLE` once for "
    "each. (--drop-orphans drops all of them, where the namespace has the name of the project.)",
    exit_code=ExitCode.REFUSED,
)

not_an_orphan = Message(
    "not-an-orphan",
    "{table} is no table that infold made and that nothing points to",
    {"such tables": "{orphans}"},
    "Nothing was written. `infold repair --drop TABLE` drops no other table. A model's table goes "
    "by `infold forget`, that of an environment by `infold env drop`.",
    exit_code=ExitCode.REFUSED,
)

other_warehouse = Message(
    "other-warehouse",
    "this ledger tells of tables in the warehouse {found}, and the target {target} has {warehouse}",
    {"ledger": "{ledger}"},
    "Nothing was written. Give each target a ledger of its own (`ledger` in infold.yml), then "
    "its tables are built there. To remove this ledger and its tables, run `infold teardown` with "
    "the former warehouse.",
    exit_code=ExitCode.REFUSED,
)

copied_warehouse = Message(
    "copied-warehouse",
    "this warehouse was copied or moved, and its tables still have their files where it was",
    {"warehouse": "{warehouse}", "files": "{files}"},
    "Nothing was written. Tables of Iceberg name their files by full paths: changed from here, "
    "those of the original would change. Where the folder was moved, move it back. To have the "
    "tables here as well, first give this project a ledger of its own, if `ledger` in infold.yml "
    "is a server or a full path: it is the original's. Then delete this warehouse (not the files "
    f"of the other one), and have it built again:\n{_REPAIR.format(infold='infold')}",
    exit_code=ExitCode.REFUSED,
)


def damaged_table(model: str, what: str, files: int = 0) -> InfoldError:
    """A stored table lost files (the first is ``what``), or has some that cannot be read."""
    facts = (("file", what), ("gone", f"{files:,} of its files")) if files else (("why", what),)
    return InfoldError(
        "damaged-table",
        f"the table of {model} is damaged",
        facts,
        "Put back what is missing, from a backup; or have the table built again from what it reads:"
        f"\n{_FORGET.format(model=model)}",
        exit_code=ExitCode.REFUSED,
    )


def is_damage_of(model: str, error: InfoldError) -> bool:
    """Whether an error says that a model's own table is damaged."""
    return error.what == damaged_table(model, "").what


def source_shrank(sources: Sequence[tuple[str, str]]) -> InfoldError:
    """Sources lost more of their files or rows than may go in one run; each with how much."""
    which = "a source has" if len(sources) == 1 else f"{len(sources)} sources have"
    return InfoldError(
        "source-shrank",
        f"{which} lost more than may go in one run",
        tuple(sources),
        "Nothing was written. Is a folder not mounted, emptied, or moved? If they are meant to go, "
        "--allow-removals takes their rows out of the tables, for this once; `removal_limit` of a "
        "source says how much of it may go in any run.",
        exit_code=ExitCode.REFUSED,
    )


other_project = Message(
    "other-project",
    "this ledger is of the project {found}, and this project is {project}",
    {"ledger": "{ledger}"},
    "Nothing was written. Give each project a ledger of its own (`ledger` of a target in "
    "infold.yml). A project that was renamed keeps its tables under its former name: call it "
    "{found} again, or start over with a new ledger.",
    exit_code=ExitCode.REFUSED,
)
