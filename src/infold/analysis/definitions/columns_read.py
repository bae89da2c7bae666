"""
The columns of stored tables that a model's rows are made of: what a change must touch to matter.

They are the columns that its canonical form names. Columns of a star inside the query count only if
they are passed on. A model reads all columns where its query is not understood, where it builds
upon a person's word, and where all columns decide about the order of events.
"""

from __future__ import annotations

from collections.abc import Mapping

from infold.analysis.definitions.canonical import Canon
from infold.analysis.definitions.clauses import Doubt
from infold.analysis.definitions.meanings import Meaning, Meanings, given, input_of, read_places
from infold.analysis.definitions.places import Need, all_positions, columns_of
from infold.analysis.names.relation import Table
from infold.core.model import Kind
from infold.core.project import Project


class ColumnsRead:
    """The columns that the models of a project read; each model is looked into once."""

    def __init__(self, project: Project) -> None:
        self._project = project
        self._meanings = Meanings.of(project, project.sources)
        self._found: dict[str, Mapping[str, frozenset[str]] | None] = {}

    def __call__(self, reader: str, name: str) -> frozenset[str] | None:
        """
        The columns of an input that a model reads, in lower case; None for all of them.

        The input's time column is always one of them: by it infold chooses the rows to read.
        """
        if reader not in self._found:
            self._found[reader] = columns_read(self._meanings[reader])
        columns = self._found[reader]
        if columns is None:
            return None
        time = self._project[reader].input(name).time_column
        return columns.get(name, frozenset()) | ({time.lower()} if time else frozenset())


def columns_read(meaning: Meaning) -> Mapping[str, frozenset[str]] | None:
    """The columns that a model reads of each stored table; None for all columns of all tables."""
    node = meaning.node
    if meaning.relation is None or node.overrides_used or node.bounds_declared or node.downgraded:
        return None
    try:
        needs = _needs(meaning)
    except (Doubt, RecursionError):
        return None
    columns: dict[str, frozenset[str]] = {}
    for table, column in needs:
        assert isinstance(table, Table), "a whole query needs nothing of a SELECT around it"
        columns[table.name] = columns.get(table.name, frozenset()) | {str(column)}
    return columns


def _needs(meaning: Meaning) -> frozenset[Need]:
    node, relation = meaning.node, meaning.relation
    assert relation is not None, "its names could be looked up"
    canon = Canon(meaning.prints, given(node.model), meaning.structs)
    needs = canon.form(relation, all_positions(relation), whole=True)[1]
    if node.model.kind is not Kind.SESSIONS:
        return needs
    if node.query is None or not node.query.unique or not node.query.key:
        raise Doubt  # all columns decide which of two events of one instant is first
    events = input_of(meaning)
    places = read_places(node, events)
    if isinstance(events, Table) and events.view is None:
        return needs | columns_of(events, places)
    return needs | canon.form(events, places)[1]
