"""What is known of the columns that a relation yields, and how far an input is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from infold.analysis.bounds.transitive import Gaps, Key, Needs, Shapes
from infold.analysis.names.relation import Columns
from infold.core.project import Bound


@dataclass(frozen=True, slots=True)
class Kept:
    """
    What is known of a relation: the inputs with a time column that it reads, and the columns
    (lower case) with a shape against every one of them. A field of one is named by both, with
    a NUL between.
    """

    inputs: frozenset[Key] = frozenset()
    columns: Mapping[str, Shapes] = field(default_factory=dict)
    items: tuple[Shapes, ...] | None = None
    """The same by position, where all columns are known; empty where nothing is known."""
    gaps: Mapping[str, Gaps] = field(default_factory=dict)
    """Where the NULLs of these columns come from."""
    gaps_of: tuple[Gaps, ...] = ()
    """The same by position, beside ``items``."""
    needs: Needs = field(default_factory=dict)
    """What has to be there for each of the inputs."""

    @property
    def named(self) -> Mapping[str, Shapes]:
        """The columns without the fields in them, for messages and for tables."""
        return {name: shapes for name, shapes in self.columns.items() if "\0" not in name}

    def also(self, fields: Iterable[tuple[str, Shapes, Gaps]]) -> Kept:
        """The same and what is known of fields: their names, shapes, and what their NULLs are."""
        found = [one for one in fields if one[1]]
        columns = {**self.columns, **{name: shapes for name, shapes, _ in found}}
        gaps = {**self.gaps, **{name: missing for name, _, missing in found}}
        return replace(self, columns=columns, gaps=gaps) if found else self

    @property
    def time(self) -> bool:
        """Whether it reads an input with a time column."""
        return bool(self.inputs)

    @staticmethod
    def of(
        inputs: frozenset[Key],
        names: Columns,
        items: tuple[Shapes, ...] | None,
        gaps: tuple[Gaps, ...],
        needs: Needs,
    ) -> Kept:
        """From what is known of each column in order."""
        if names is None or items is None:
            return Kept(inputs, needs=needs)
        known = [
            (name.lower(), shapes, missing)
            for name, shapes, missing in zip(names, items, gaps, strict=False)
            if shapes and name
        ]
        columns = {name: shapes for name, shapes, _ in known}
        missing_in = {name: missing for name, _, missing in known}
        return Kept(inputs, columns, items, missing_in, gaps, needs)


@dataclass(frozen=True, slots=True)
class Bounded:
    """How far one naming of an input is read; ``start``: where it stands in the model's own SQL."""

    name: str
    bound: Bound
    start: int | None
