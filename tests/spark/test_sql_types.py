"""Types as texts that Spark SQL reads, whatever their fields are called; without a session."""

from __future__ import annotations

import pytest
from pyspark.sql import types as T

from infold.core.type_changes import type_of_text
from infold.declare.types import is_type
from infold.spark.stored_types import sql_type

NAMES = ("a", "A_1", "Last, First", "x`y", "a<b", "(", "é", "1", "a b", "select")


@pytest.mark.parametrize("name", NAMES)
def test_the_names_of_fields(name: str) -> None:
    """A field of any name, in a list in a map in an object, is found in the text again."""
    of = T.StructType([T.StructField(name, T.DecimalType(9, 2)), T.StructField("z", T.LongType())])
    text = sql_type(T.StructType([T.StructField(name, T.MapType(T.StringType(), T.ArrayType(of)))]))

    assert is_type(text), text
    fields = {"type": "struct", "fields": [
        {"name": name, "type": "decimal(9,2)"}, {"name": "z", "type": "bigint"},
    ]}  # fmt: skip
    array = {"type": "array", "elementType": fields}
    map_ = {"type": "map", "keyType": "string", "valueType": array}
    assert type_of_text(text) == {"type": "struct", "fields": [{"name": name, "type": map_}]}
