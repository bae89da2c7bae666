"""What the parts of a file of whole JSON are."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infold.lake.reading.json_lines import json_values

CASES: list[tuple[str, list[str]]] = [
    ("", []),
    (" \n", []),
    ("[]", []),
    ("[ \n ]\n", []),
    ("[][]", []),
    ('{"a": 1}', ['{"a": 1}']),
    ('\ufeff{"a":\n 1}\n', ['{"a":\n 1}']),
    ('{"a": 1}{"b": 2}\n[{"c": 3}, {"d": 4}]', ['{"a": 1}', '{"b": 2}', '{"c": 3}', '{"d": 4}']),
    ('[{"a": "]}\\"[{,"}, {"b": [1, {"c": 2}]}]', ['{"a": "]}\\"[{,"}', '{"b": [1, {"c": 2}]}']),
    ('[1, "a,b", null, [{"a": 1}]]', ["1", '"a,b"', "null", '[{"a": 1}]']),
    ('null {"a": 1} true', ["null", '{"a": 1}', "true"]),
    ('{"a": 1}, {"b": 2}', ['{"a": 1}', ",", '{"b": 2}']),
    ('[{"a": 1}, , {"b": 2},]', ['{"a": 1}', ",", '{"b": 2}', ","]),
    ("[,]", [",", ","]),
    ('[{"a": 1,}, {"b": 2}]', ['{"a": 1,}', '{"b": 2}']),
    ('[{"a": 1} x, {"b": 2}]', ['{"a": 1} x', '{"b": 2}']),
    ('[{"a": 1}, {"b": 2}', ['{"a": 1}', '{"b": 2}', "["]),
    ('[{"a": 1},', ['{"a": 1}', "["]),
    ('[{"a": 1}, {"b": [2', ['{"a": 1}', '{"b": [2', "["]),
    ('[{"a": 1}, {"b": "2}]', ['{"a": 1}', '{"b": "2}]', "["]),
    ('[{"a": 1]}, {"b": 2}]', ['{"a": 1]}, {"b": 2}]', "["]),
    ('{"a": 1}]{"b": 2}', ['{"a": 1}', "]", '{"b": 2}']),
    ('{"a": "', ['{"a": "']),
    ("[", ["["]),
    ("<html>", ["<html>"]),
]


@pytest.mark.parametrize(("text", "parts"), CASES)
def test_parts(text: str, parts: list[str]) -> None:
    """Each part is there as it is written, and whatever is not in its place is a part too."""
    assert [part.decode() for part in json_values(text.encode())] == parts


_TEXTS = st.text(max_size=5)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | _TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXTS, inner, max_size=3),
    max_leaves=4,
)


@given(
    st.lists(
        st.dictionaries(_TEXTS, _VALUES, max_size=3) | st.lists(_VALUES, max_size=3), max_size=5
    ),
    st.sampled_from([None, 1]),
    st.booleans(),
)
def test_what_is_written_comes_back(values: list[Any], indent: int | None, plain: bool) -> None:
    """Whole JSON has its objects and the parts of its lists, however they are laid out."""
    text = "\n".join(json.dumps(one, indent=indent, ensure_ascii=plain) for one in values)
    wanted = [part for one in values for part in (one if isinstance(one, list) else [one])]

    found = [json.loads(part) for part in json_values(text.encode())]

    assert found == wanted


@given(st.text(alphabet='[]{},"\\a1 \n'))
def test_nothing_is_lost(text: str) -> None:
    """Of any text, all letters but blanks, commas and the brackets of lists are in some part."""
    found = b"".join(json_values(text.encode())).decode()

    assert [one for one in found if one in '{}"\\a1'] == [one for one in text if one in '{}"\\a1']
