"""
Rows of a ledger that contradict each other: some are missing, or were changed by somebody else.

What is written twice is compared, by sums: a table's rows are in its cells and in its newest
version, and what a version changed adds up to the difference to the one before. That finds rows
that are gone. It is no proof that none is: `infold verify` compares the tables themselves.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from infold.core.environment import model_of_key
from infold.ledger.query import Query

_VERSIONS = "SELECT table_name, number, rows, snapshot FROM versions ORDER BY table_name, number"
_CELLS = 'SELECT table_name, sum("rows") FROM cells GROUP BY table_name'
_CHANGES = (
    "SELECT table_name, version, sum(added) - sum(removed) FROM changes "
    "GROUP BY table_name, version"
)
_KEPT = "SELECT table_key FROM kept_tables WHERE table_key IS NOT NULL"
_TRACES = "SELECT model, fingerprint FROM traces"
_INPUTS = "SELECT model, input, version FROM trace_inputs"
_FILES = "SELECT DISTINCT model FROM ingests WHERE file NOT IN (SELECT id FROM files)"
_CELLS_OF_FILES = (
    "SELECT DISTINCT of.model FROM file_cells AS of LEFT JOIN ingests AS taken "
    "ON taken.model = of.model AND taken.file = of.file WHERE taken.file IS NULL"
)

Versions = Mapping[str, list[tuple[int, int, Any]]]
"""Number, rows and snapshot of each version, by table."""


def contradictions(query: Query) -> Mapping[str, str]:
    """The tables with rows that contradict each other: what is wrong, in words."""
    found: dict[str, str] = {}
    versions: dict[str, list[tuple[int, int, Any]]] = defaultdict(list)
    for table, number, rows, snapshot in query.stream(_VERSIONS):
        versions[table].append((number, rows, snapshot))
    # Of a table that was replaced and is kept, versions and trace are elsewhere.
    kept = {key for (key,) in query.stream(_KEPT)}
    for table, why in (
        *_of_versions(query, versions),
        *_of_traces(query, versions),
        *_of_files(query),
    ):
        if table not in kept:
            found.setdefault(table, why)
    return found


def _of_versions(query: Query, versions: Versions) -> Iterator[tuple[str, str]]:
    """Versions that are missing, or that cells and changes do not add up to."""
    traces = {model for model, _ in query.stream(_TRACES)}
    cells = {table: int(rows) for table, rows in query.stream(_CELLS)}
    changed: dict[str, dict[int, int]] = defaultdict(dict)
    for table, number, rows in query.stream(_CHANGES):
        changed[table][number] = int(rows)
    read: dict[str, int] = {}
    for _, name, version in query.stream(_INPUTS):
        read[name] = min(version, read.get(name, version))
    for table, own in versions.items():
        held, rows = cells.get(table, 0), own[-1][1]
        if held != rows and table in traces:  # a model that left the project has no cells
            yield table, f"its cells have {held:,} rows, and its newest version {rows:,}"
        since = read.get(table, own[-1][0])
        for (_, before, _), (number, rows, _) in pairwise(own):
            if number > since and changed[table].get(number, 0) != rows - before:
                yield table, f"the changes of version {number} do not add up"
    for table in (cells.keys() | changed.keys()) - versions.keys():
        yield table, "its versions are missing"


def _of_traces(query: Query, versions: Versions) -> Iterator[tuple[str, str]]:
    """Traces that are missing, or that name versions which are not there."""
    traces = {model for model, _ in query.stream(_TRACES)}
    newest = {table: own[-1][0] for table, own in versions.items()}
    for model, name, version in query.stream(_INPUTS):
        # An environment that got another table erases what was known of the one before.
        erased = name not in newest and model_of_key(name) != name
        if version > newest.get(name, 0) and not erased:
            yield model, f"it was built from version {version} of {name}, which is missing"
        if model not in traces:
            yield model, "its trace is missing"


def _of_files(query: Query) -> Iterator[tuple[str, str]]:
    """Files that are missing where something else is known of them."""
    for (model,) in query.stream(_FILES):
        yield model, "files that it was built from are missing"
    for (model,) in query.stream(_CELLS_OF_FILES):
        yield model, "files with rows in it are missing"
