"""
How a ledger of an earlier format becomes one of the present format: one list for both databases.

Formats are numbered. The first one that was released is :data:`RELEASED`; each later one is an
:class:`Upgrade` of :data:`UPGRADES`, with statements as `schema` has them. All upgrades that a
ledger lacks are carried out in one transaction, by whoever opens it first. What the statements do
is never changed once they were released.

Statements are valid in SQLite and PostgreSQL alike, unless PostgreSQL has its own. The SQLite may
be an old one, as that of a distribution's Python: one before 3.35 drops no column, so there the
table is made anew. Its old one is renamed and not the new one: then the new one's text is as in a
new ledger.

A new upgrade comes with: the changed ``schema``, its statements here, the tables as they were
before, and the ledger of the format before it in ``tests/ledger/released``. Tests upgrade each of
those in both databases, and compare what comes out with a new ledger. Exported files are of any of
these formats, too (``earlier_files``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

RELEASED = 10
"""The format of the first released ledgers; earlier ones are seen to by ``before_release``."""


@dataclass(frozen=True, slots=True)
class Upgrade:
    """
    What makes a ledger of the format before it one of ``format``, and why, for people.

    ``postgresql`` takes the place of ``texts`` there, if it has any. ``before`` has the texts that
    made tables in the format before, of those tables that are other ones now, by name; an empty one
    is of a table that was not there.
    """

    format: int
    why: str
    texts: tuple[str, ...]
    postgresql: tuple[str, ...] = ()
    before: Mapping[str, str] = field(default_factory=dict)


UPGRADES: tuple[Upgrade, ...] = (
    Upgrade(
        11,
        "changes have no `last`: nobody asked for that of a cell as it was",
        (
            "ALTER TABLE changes RENAME TO changes_before",
            (
                "CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, "
                "cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, "
                "removed BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, "
                "content_before BIGINT NOT NULL, content_after BIGINT NOT NULL, PRIMARY KEY "
                "(table_name, version, cell_start, cell_end) ) WITHOUT ROWID"
            ),
            (
                "INSERT INTO changes SELECT table_name, version, cell_start, cell_end, added, "
                "removed, rows_before, rows_after, content_before, content_after "
                "FROM changes_before"
            ),
            "DROP TABLE changes_before",
        ),
        postgresql=("ALTER TABLE changes DROP COLUMN last",),
        before={
            "changes": "CREATE TABLE changes ( table_name TEXT NOT NULL, version BIGINT NOT NULL, "
            "cell_start BIGINT NOT NULL, cell_end BIGINT NOT NULL, added BIGINT NOT NULL, removed "
            "BIGINT NOT NULL, rows_before BIGINT NOT NULL, rows_after BIGINT NOT NULL, "
            "content_before BIGINT NOT NULL, content_after BIGINT NOT NULL, last BIGINT, PRIMARY "
            "KEY (table_name, version, cell_start, cell_end) ) WITHOUT ROWID",
        },
    ),
)


def newest_format() -> int:
    """The format that this program writes."""
    return RELEASED + len(UPGRADES)


def texts_since(format_: int, *, postgresql: bool = False) -> Iterator[str]:
    """The statements that a ledger of a released format lacks, in order."""
    for upgrade in _since(format_):
        yield from (postgresql and upgrade.postgresql) or upgrade.texts


def tables_of(format_: int, schema: Iterable[str]) -> tuple[str, ...]:
    """What makes the tables of a released format, in the order of their names, without indexes."""
    tables = {text.split()[2]: text for text in schema if text.startswith("CREATE TABLE")}
    for upgrade in reversed([*_since(format_)]):
        tables |= upgrade.before
    return tuple(text for _, text in sorted(tables.items()) if text)


def _since(format_: int) -> Iterator[Upgrade]:
    for number, upgrade in enumerate(UPGRADES, RELEASED + 1):
        assert upgrade.format == number, f"{upgrade.format} is not the format after {number - 1}"
        if upgrade.format > format_:
            yield upgrade
