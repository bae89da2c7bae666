"""A function of rows is called for each row or key, and gives exact rows or an error."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest

from infold.core.functions import PythonCode, PythonInput, PythonModule
from infold.spark.python_functions.author_code import FunctionFailedError
from infold.spark.python_models import EachKey, EachRow, RowFunction, author_code
from infold.system.failures import FUNCTION_FAILED

NOON = datetime(2024, 3, 9, 12, tzinfo=UTC)
INSTANT = pa.timestamp("us", tz="UTC")
CARRIED = pa.struct([("file", pa.int64()), ("problem", pa.string())])
ROWS = pa.list_(pa.struct([("id", pa.int32()), ("at", INSTANT)]))


def function(body: str, columns: dict[str, pa.DataType], *keys: str, **modules: str) -> RowFunction:
    """A function ``made`` with one argument, in the second line of its file."""
    texts = [PythonModule("", "models/made.py", f"import time\ndef made(given):\n    {body}\n")]
    texts += [PythonModule(f"lib.{at}", f"lib/{at}.py", text) for at, text in modules.items()]
    inputs = (PythonInput("raw", "given"),)
    code = PythonCode("made", tuple(texts), inputs, (), "")
    return RowFunction(author_code(code), tuple(columns.items()), frozenset(keys))


def events(body: str, columns: dict[str, pa.DataType], *rows: tuple[Any, ...]) -> Sequence[Any]:
    """What a function makes of rows with a number, an instant, and what is carried."""
    given = pa.table(
        {
            "id": pa.array([row[0] for row in rows], pa.int32()),
            "at": pa.array([row[1] for row in rows], INSTANT),
            "carried": pa.array([{"file": row[0], "problem": row[2]} for row in rows], CARRIED),
        }
    )
    calls = EachRow(function(body, columns), ("id", "at"), "carried")
    found = pa.Table.from_batches(calls(given.to_batches()))
    return [tuple(row.values()) for row in found.to_pylist()]


def test_a_row_makes_none_one_or_several() -> None:
    """Each result has what its row carries; a row with a problem is carried by, unseen."""
    body = "return {1: None, 2: given, 3: [given, given], 4: iter([given])}[given['id']]"
    rows = [(at, NOON, "broken" if at == 9 else None) for at in (1, 2, 3, 4, 9)]

    found = events(body, {"id": pa.int32(), "at": INSTANT}, *rows)

    shown = [(id_, at, carried["file"], carried["problem"]) for id_, at, carried in found]
    assert shown == [
        (2, NOON, 2, None),
        (3, NOON, 3, None),
        (3, NOON, 3, None),
        (4, NOON, 4, None),
        (None, None, 9, "broken"),
    ]


def test_no_rows_make_none() -> None:
    """A batch of which nothing is left has the declared columns."""
    assert events("return None", {"id": pa.int32()}, (1, NOON, None)) == []


def test_a_key_has_a_row_or_none() -> None:
    """The rows of a key are one list; the key is filled in."""
    body = "return {'n': len(given), 'last': given[-1]['at']} if given[0]['id'] else None"
    rows = [[{"id": 1, "at": None}, {"id": 2, "at": NOON}], [{"id": 0, "at": NOON}]]
    given = pa.record_batch({"who": pa.array(["ann", "bob"]), "_infold_rows": pa.array(rows, ROWS)})
    calls = EachKey(function(body, {"n": pa.int64(), "last": INSTANT}), ("who",))

    [found] = calls([given])

    assert found.to_pylist() == [{"who": "ann", "n": 2, "last": NOON}]


ID = {"id": pa.int32()}
WRONG = [
    ("return 1 / 0", ID, "raised ZeroDivisionError: division by zero", 3),
    ("raise SystemExit", ID, "raised SystemExit", 3),
    ("yield 1 / 0", ID, "raised ZeroDivisionError: division by zero", 3),
    ("return 5", ID, "returned 5, which is no row: a dict of its columns", 2),
    ("return 'ab'", ID, "returned 'ab', which is no row: a dict of its columns", 2),
    ("return [1]", ID, "returned 1, which is no row: a dict of its columns", 2),
    ("return {}", ID, "returned a row without 'id'", 2),
    ("return dict(given, x=1)", {**ID, "at": INSTANT}, "returned a row with 'x', which is none", 2),
    ("return {'id': 1.0}", ID, "returned 1.0 as 'id', which is no int: a float is no whole", 2),
    ("return {'id': 2**40}", ID, "as 'id', which is no int: ", 2),
    ("return {'id': given['at'].replace(tzinfo=None)}", {"id": INSTANT},
     "a datetime without a time zone is no instant", 2),
]  # fmt: skip


@pytest.mark.parametrize(("body", "columns", "what", "line"), WRONG)
def test_anything_else_is_an_error(
    body: str, columns: dict[str, pa.DataType], what: str, line: int
) -> None:
    """Nothing is cast or left out; the place is the author's, and the row is shown."""
    with pytest.raises(FunctionFailedError) as caught:
        events(body, columns, (7, NOON, None))

    facts = json.loads(str(caught.value).removeprefix(FUNCTION_FAILED))
    assert what in facts["what"]
    assert (facts["file"], facts["line"], facts["function"]) == ("models/made.py", line, "made")
    assert facts["arguments"] == f"{{'id': 7, 'at': {NOON}}}"


KEYS = [
    ("return {'id': 1, 'who': 'bob'}", "returned a row with 'who', a key, which the row is given"),
    ("return {'id': 'one'}", "returned 'one' as 'id', which is no int: a str is no number"),
    ("return {'id': given[1]['id']}", "raised IndexError"),
]


@pytest.mark.parametrize(("body", "what"), KEYS)
def test_a_row_of_a_key_that_is_none(body: str, what: str) -> None:
    """A key is not returned: the row has it anyway. What the function was given is shown."""
    rows = pa.array([[{"id": 5, "at": NOON}]], ROWS)
    calls = EachKey(function(body, ID, "who"), ("who",))

    with pytest.raises(FunctionFailedError) as caught:
        list(calls([pa.record_batch({"who": ["ann"], "_infold_rows": rows})]))

    facts = json.loads(str(caught.value).removeprefix(FUNCTION_FAILED))
    assert what in facts["what"]
    assert facts["arguments"] == f"[{{'id': 5, 'at': {NOON}}}]"


def test_of_many_rows_the_first_are_shown() -> None:
    """A message has no more than a few hundred letters of what was given."""
    rows = pa.array([[{"id": 5, "at": NOON}] * 99], ROWS)
    calls = EachKey(function("return 5", ID, "who"), ("who",))

    with pytest.raises(FunctionFailedError) as caught:
        list(calls([pa.record_batch({"who": ["ann"], "_infold_rows": rows})]))

    facts = json.loads(str(caught.value).removeprefix(FUNCTION_FAILED))
    assert len(facts["arguments"]) == 301


def test_several_rows_of_a_key_are_refused() -> None:
    """Rows are replaced by their key, so there is one."""
    given = pa.record_batch({"who": ["ann"], "_infold_rows": pa.array([[]], ROWS)})
    calls = EachKey(function("return [{'id': 1}]", ID), ("who",))

    with pytest.raises(FunctionFailedError, match="which is no row"):
        list(calls([given]))


def test_instants_that_python_has_not() -> None:
    """A value that no object of Python's can be is an error that names the column."""
    given = pa.record_batch({"at": pa.array([2**62], INSTANT)})

    with pytest.raises(FunctionFailedError, match="cannot be given at"):
        list(EachRow(function("return given", {"at": INSTANT}), ("at",))([given]))
