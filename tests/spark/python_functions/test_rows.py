# ruff: noqa: E501 (one case is one row of a table)
"""A function of a project gets and gives exact values or rows, or an error with its place."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from infold.core.functions import FunctionCode, PythonCode, PythonInput, PythonModule
from infold.spark.python_functions.author_code import FunctionFailedError
from infold.spark.python_functions.register import ArrowCall
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


LOCAL = NOON.replace(tzinfo=None)


def call(body: str, returns: pa.DataType, *, over: str = "row", **modules: str) -> ArrowCall:
    """A function ``f`` with one argument ``x``, and modules that it may import."""
    text = f"import pyarrow as pa\n\ndef f(x):\n    {body}\n"
    files = (("functions/f.py", text), *((f"lib/{name}.py", one) for name, one in modules.items()))
    name = f"infold__python__f__{abs(hash(files)):x}"
    return ArrowCall(FunctionCode(name, "f", ("STRING",), str(returns), files, over), returns)


@pytest.fixture
def far_east() -> Iterator[None]:
    """A machine in another time zone."""
    before = os.environ.get("TZ")
    os.environ["TZ"] = "Asia/Tokyo"
    time.tzset()
    yield
    os.environ.pop("TZ")
    if before is not None:
        os.environ["TZ"] = before
    time.tzset()


GIVEN = [
    (pa.array([None, NOON], INSTANT), [None, NOON]),
    (pa.array([LOCAL], pa.timestamp("us")), [LOCAL]),
    (pa.array([Decimal("1.50")], pa.decimal128(18, 2)), [Decimal("1.50")]),
    (pa.array([2**62 + 1, None], pa.int64()), [2**62 + 1, None]),
    (pa.array([date(1, 1, 1)], pa.date32()), [date(1, 1, 1)]),
    (pa.array([b"a"], pa.binary()), [b"a"]),
    (pa.array([[NOON, None]], pa.list_(INSTANT)), [[NOON, None]]),
    (pa.array([[("a", NOON)], []], pa.map_(pa.string(), INSTANT)), [{"a": NOON}, {}]),
    (pa.array([{"a": NOON}], pa.struct([("a", INSTANT)])), [{"a": NOON}]),
]


@pytest.mark.usefixtures("far_east")
@pytest.mark.parametrize(("column", "wanted"), GIVEN)
def test_values_are_exact_in_any_time_zone(column: pa.Array, wanted: Sequence[object]) -> None:
    """A function that gives back what it is given gives the same column; times are UTC."""
    found = call("return None if x is None else repr(x)", pa.string())(column).to_pylist()

    assert found == [None if one is None else repr(one) for one in wanted]
    assert call("return x", column.type)(column).equals(column)


RETURNED: list[tuple[str, pa.DataType, object]] = [
    ("return None", pa.int32(), None),
    ("return 3", pa.float64(), 3.0),
    ("return 3", pa.decimal128(9, 2), Decimal("3.00")),
    ("return (1, 2)", pa.list_(pa.int32()), [1, 2]),
    ("return {'a': 1}", pa.struct([("a", pa.int32()), ("b", pa.int32())]), {"a": 1, "b": None}),
]


@pytest.mark.parametrize(("body", "type_", "wanted"), RETURNED)
def test_values_of_the_type_are_taken(body: str, type_: pa.DataType, wanted: object) -> None:
    """Whole numbers are decimals and doubles too, and a field that is left out is NULL."""
    assert call(body, type_)(pa.array(["x"])).to_pylist() == [wanted]


def test_another_zone_is_the_same_instant() -> None:
    """A datetime of any zone is an instant."""
    east = timezone(timedelta(hours=9))
    body = "import datetime as d; return d.datetime(2024, 3, 9, 21, tzinfo=d.timezone(d.timedelta(hours=9)))"

    [found] = call(body, INSTANT)(pa.array(["x"])).to_pylist()
    assert found == NOON == datetime(2024, 3, 9, 21, tzinfo=east)


WRONG_VALUES = [
    ("return 7", pa.string(), "returned 7, which is no string"),
    ("return '7'", pa.int32(), "returned '7', which is no int: a str is no number"),
    ("return True", pa.int32(), "a bool is no number"),
    ("return 1.0", pa.int32(), "a float is no whole number"),
    ("return 2**31", pa.int32(), "returned 2147483648, which is no int: "),
    ("from decimal import Decimal; return Decimal('1.005')", pa.decimal128(9, 2), "which is no decimal(9,2)"),
    ("return 'a'", pa.binary(), "a str is not bytes"),
    ("import datetime; return datetime.datetime(2024, 1, 1)", INSTANT, "a datetime without a time zone is no instant"),
    ("import datetime; return datetime.date(2024, 1, 1)", INSTANT, "it is no datetime"),
    ("import datetime; return datetime.datetime(2024, 1, 1)", pa.date32(), "it is no date"),
    ("return [1, '2']", pa.list_(pa.int32()), "which is no array<int>: a str is no number"),
    ("return {'c': 1}", pa.struct([("a", pa.int32())]), "it has no field 'c'"),
    ("return x.nothing", pa.string(), "raised AttributeError: 'str' object has no attribute 'nothing'"),
    ("raise SystemExit", pa.string(), "raised SystemExit"),
    ("import lib.text; return lib.text.fail()", pa.string(), "raised ZeroDivisionError: division by zero"),
]  # fmt: skip


def failure(function: ArrowCall, *columns: pa.Array) -> dict[str, Any]:
    """What a call fails with."""
    with pytest.raises(FunctionFailedError) as caught:
        function(*columns)
    facts: dict[str, Any] = json.loads(str(caught.value).removeprefix(FUNCTION_FAILED))
    return facts


@pytest.mark.parametrize(("body", "type_", "what"), WRONG_VALUES)
def test_any_other_value_is_an_error(body: str, type_: pa.DataType, what: str) -> None:
    """Nothing is rounded, parsed or made NULL; the place is the author's."""
    text = "def fail():\n    return 1 / 0\n"
    found = failure(call(body, type_, text=text), pa.array(["x"]))

    assert what in found["what"]
    if "lib" in body:
        assert (found["file"], found["line"]) == ("lib/text.py", 2)
    else:
        assert (found["file"], found["line"]) == (
            "functions/f.py",
            3 if "returned" in found["what"] else 4,
        )


def test_two_versions_are_in_one_process() -> None:
    """Each version has modules of its own, also those that it imports by an absolute name."""
    body = "from lib import text; return text.NAME + x"
    one, two = (call(body, pa.string(), text=f"NAME = '{name}'") for name in "ab")

    column = pa.array(["x"])
    found = [each(column).to_pylist() for each in (one, two, one)]
    assert found == [["ax"], ["bx"], ["ax"]]


def test_columns_of_arrow() -> None:
    """A function over Arrow gives a column as long, of the type or one that fits it."""
    assert call("return x", pa.int64(), over="arrow")(pa.array([1, None])).to_pylist() == [1, None]
    short = failure(call("return x[:1]", pa.int64(), over="arrow"), pa.array([1, 2]))
    assert "it has 1 values for 2 rows" in short["what"]
    assert (
        "it is no array"
        in failure(call("return 1", pa.int64(), over="arrow"), pa.array([1]))["what"]
    )


def test_series_of_pandas() -> None:
    """A function over pandas knows NULL from NaN, and whole numbers stay whole."""
    column = pa.array([2**62 + 1, None], pa.int64())
    assert call("return x + 1", pa.int64(), over="pandas")(column).to_pylist() == [2**62 + 2, None]
    numbers = pa.array([float("nan"), None])
    assert str(call("return x", pa.float64(), over="pandas")(numbers).to_pylist()) == "[nan, None]"
    assert "it is no Series" in failure(call("return 1", pa.int64(), over="pandas"), column)["what"]
