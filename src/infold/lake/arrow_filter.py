"""
Rows in memory for which a predicate of pyiceberg is true, whatever their columns are called.

pyiceberg takes a dot in a name for a step into a struct. So columns have other names meanwhile.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa
    from pyiceberg.expressions import BooleanExpression
    from pyiceberg.schema import Schema


class RowFilter:
    """A predicate over the columns of a schema; ``needed`` are those that it is about."""

    def __init__(self, truth: BooleanExpression, schema: Schema) -> None:
        from pyiceberg.expressions.visitors import bind, extract_field_ids
        from pyiceberg.io.pyarrow import expression_to_pyarrow
        from pyiceberg.schema import Schema as OfSchema

        bound = bind(schema, truth, case_sensitive=False)
        plain = [
            field.model_copy(update={"name": f"c{number}"})
            for number, field in enumerate(schema.fields)
        ]
        renamed = OfSchema(*plain)
        asked = {renamed.find_column_name(number) or "" for number in extract_field_ids(bound)}
        tops = {name.partition(".")[0] for name in asked}
        self._names = {
            field.name: one.name for field, one in zip(schema.fields, plain, strict=True)
        }
        self._expression = expression_to_pyarrow(bound, renamed)
        self.needed = tuple(name for name, top in self._names.items() if top in tops)

    def __call__(self, rows: pa.Table) -> pa.Table:
        """The rows for which it is true."""
        names = rows.column_names
        renamed = rows.rename_columns(
            [self._names.get(name, f"x{at}") for at, name in enumerate(names)]
        )
        return renamed.filter(self._expression).rename_columns(names)
