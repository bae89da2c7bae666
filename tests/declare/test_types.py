"""Column types are those of Spark SQL, no more and no fewer."""

from __future__ import annotations

import pytest

from infold.declare.types import is_type

OF_SPARK = """
string; BIGINT; decimal; decimal(18,2); DECIMAL( 38 , 38 ); numeric(5); varchar(10); timestamp_ntz
array<string>; map<string, array<int>>; struct<a: int, `b c`: struct<d: decimal(9,2)>>
struct<a int, b string>; struct<`Last, First`: string>; map<string, struct<`a<b`: int>>
struct<`x,``>y`: array<struct<`(`: int>>, z: int>
"""
OF_OTHERS = """
text; decimal(39,2); decimal(2,3); decimal(0); varchar; array; array<>; array<string, int>
array<text>; map<string>; struct<a>; struct<a: int,>; struct<`a, b: int>; array<string; list<string>
"""


@pytest.mark.parametrize(("texts", "known"), [(OF_SPARK, True), (OF_OTHERS, False)])
def test_types_are_those_of_spark(texts: str, *, known: bool) -> None:
    """Simple, sized and nested types are accepted in any case and spacing; types of other systems,
    and too wide or incomplete ones, are refused.
    """
    for text in texts.strip().replace("\n", "; ").split("; "):
        assert is_type(text) is known, text
    assert not is_type("")
