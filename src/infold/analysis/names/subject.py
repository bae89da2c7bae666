"""What a rule looks at: one model with its text, its names looked up, and the models it reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from infold.analysis.names.column_types import Types
from infold.analysis.names.relation import Origin, Relation, Rows, Table
from infold.analysis.sql.parse import Parsed
from infold.analysis.sql.text import Text
from infold.core.interval import Granularity
from infold.core.model import Kind, Model, Source
from infold.core.project import Node
from infold.messages.errors import Spot


@dataclass(frozen=True, slots=True, eq=False)
class Draft:
    """A model as declared, its SELECT parsed, and the place of each key of the front matter."""

    model: Model
    parsed: Parsed
    places: Mapping[str, Spot] = field(default_factory=dict)
    landed: bool = False
    filters: tuple[str, ...] = ()
    """Filters by the interval of a run that were taken out of the text."""
    functions: tuple[str, ...] = ()
    """The functions of the project that it could call."""

    def place(self, key: str) -> Spot:
        """The place of a key's value; the model's own place when it was not written."""
        spot = self.places.get(key)
        place = self.model.place
        return spot or Spot(place.file, place.line, place.column)


@dataclass(slots=True, eq=False)
class Subject:
    """A draft with its names looked up."""

    draft: Draft
    relation: Relation
    sources: Mapping[str, Source]
    nodes: Mapping[str, Node]
    """The models before this one in dependency order, landed sources among them, by name."""
    kept_columns: Mapping[str, Mapping[str, Granularity | None]] = field(default_factory=dict)
    """For each model before it: the columns that keep its cell, and how coarse they are."""
    row_keys: Mapping[str, Rows] = field(default_factory=dict)
    """For each stored table before it: what tells its rows apart."""
    types: Mapping[str, Types] = field(default_factory=dict)
    """For each table before it: what is known of its columns' types."""
    inputs_are_right: bool = True
    """Whether everything that it reads was found to be right."""
    tables_read: tuple[str, ...] = ()
    """The tables that it names."""
    shared: dict[str, object] = field(default_factory=dict)
    """What one rule found out and others need."""

    @property
    def model(self) -> Model:
        """As declared; what rules find out is in ``shared``."""
        return self.draft.model

    @property
    def text(self) -> Text:
        """The SELECT alone, with what leads from its tokens to places in the file."""
        return self.draft.parsed.text

    def is_time_of_model(self, origin: Origin) -> bool:
        """Whether a column is the one that others follow a model by, which FROM names."""
        table = origin.entry.relation
        node = self.nodes.get(table.name.lower()) if isinstance(table, Table) else None
        known = time_column(node) if node is not None else None
        return known is not None and known.lower() == origin.column.lower()


def time_column(node: Node) -> str | None:
    """The column that other models follow this one by, cell by cell; None for a lookup."""
    if node.model.kind is Kind.SESSIONS:
        return "session_start"
    if node.model.timeseries is None:
        return None
    if node.model.kind is Kind.EVENTS:
        return node.model.timeseries.event_time_column
    if node.model.kind.is_by_cell:
        return node.model.timeseries.partition_column
    return None
