"""Files of JSON lines: in this process, by Spark and by its own reader they say the same."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from unittest.mock import patch

import pytest
from tests.spark.reading.folder import Folder

from infold.core.files import IngestedFile
from infold.core.model import Drift, NewColumns
from infold.core.project import Project
from infold.core.target import Target
from infold.spark.reading import json_lines, source_rows

pytestmark = pytest.mark.spark


COLUMNS = {
    "id": "string",
    "at": "timestamp",
    "n": "bigint",
    "d": "decimal(18,2)",
    "x": "double",
    "ok": "boolean",
    "na'me": "string",
}
GOOD = '{"id":"a","at":"2024-01-01T00:00:00Z","n":1,"d":1.50,"x":0.1,"ok":true,"na\'me":"q"}'
KEYS: dict[str, Any] = {
    "on_new_columns": NewColumns.IGNORE,
    "on_drift": Drift.SET_ASIDE,
    "on_unreadable": Drift.SET_ASIDE,
}

PLAIN: list[str | bytes] = [
    '{"id":"b"}',
    '{"id":1.50}',
    '{"id":1e5,"x":1e5,"d":1e1,"n":10e0}',
    '{"id":-0,"x":-0,"n":-0}',
    '{"id":12345678901234567890123456789012345678901234567890.10}',
    '{"id":true,"ok":"false"}',
    '{"id":null,"n":null}',
    "{}",
    '{"id":""}',
    '{ "id" : "b" , "n" : 2 }',
    '{"id":"b","other":{"deep":[1,{"x":2}]}}',
    '{"id":"with { and } and [ and ]"}',
    '{"id":"\\u00e9\\n\\"\\/"}',
    '{"id":"\\ud83d\\ude00"}',
    '{"id":"é😀"}',
    '{"ID":"other case"}',
    '{"id":"{\\"a\\":1}"}',
    '{"id":"[1]"}',
    '{"n":"x"}',
    '{"d":1.505}',
    '{"at":"yesterday"}',
    '{"n":9223372036854775808}',
    '{"n":1.0,"x":1}',
    '{"id":"b"}   ',
    '{"id":"infold number:1"}',
    '{"":"no name"}',
]
OTHERS: list[str | bytes] = [
    "{'id':'b'}",
    '{"id":NaN}',
    '{"x":Infinity}',
    '{"id":"b","id":"c"}',
    '{"id":"b","i\\u0064":"c"}',
    '{"other":{"a":1,"a":2}}',
    '{"id":"b"}{"id":"c"}',
    '{"id":"b"} 5',
    '{"id":"b"}}',
    '[{"id":"b"}]',
    ' {"id":"b"}',
    "5",
    '"text"',
    "null",
    "{",
    '{"id":"b"',
    '{"id":"b",}',
    '{"id":01}',
    '{"id":+1}',
    '{"id":.5}',
    '{"id":1.}',
    '{"id":/*c*/1}',
    '{id:"b"}',
    '{"id":"tab\there"}',
    '{"id":"\\ud83d"}',
    '{"id":"\\x"}',
    '{"id":"\\u0001infold number:1"}',
    '{"id":{"a":1.50, "b":2}}',
    '{"id":[1, 2]}',
    '{"n":[1]}',
    '{"id" "b"}',
    '{"id":"b" "n":1}',
    '{"id":tru}',
    "{,}",
    "\ufeff" + '{"id":"b"}',
    '{"id":' + "9" * 1200 + "}",
    b'{"id":"\xff"}',
    b'{"id":"a\x00b"}',
]


@pytest.fixture(autouse=True)
def _large() -> Iterator[None]:
    """No file is so small that this process reads it."""
    with (
        patch.object(json_lines, "IN_PROCESS", -1),
        patch.object(json_lines, "worth_keeping", lambda _: False),
    ):
        yield


def read(folder: Folder, columns: Mapping[str, str], **keys: Any) -> list[str]:
    """The rows of all files, with their file and problem, in some order that is always the same."""
    source = folder.source(columns, **keys)
    project = Project("p", folder.root, None, {source.name: source}, (), Target("dev"))
    rows, counts, _ = source_rows.read_counted(
        folder.spark, project, source, folder.files, texts=False
    )
    found = rows.drop("_raw").toArrow().to_pylist()
    lines: dict[int, int] = {}
    for row in found:
        lines[row["_source_file"]] = lines.get(row["_source_file"], 0) + 1
    assert counts is None or {id_: rows for id_, rows in counts.items() if rows} == lines
    return sorted(repr([*row.items()]) for row in found)


def both(folder: Folder, columns: Mapping[str, str], **keys: Any) -> set[int]:
    """Compare the rows in both ways; the files whose rows Spark's own reader gave."""
    by_spark: set[int] = set()
    rows: Callable[..., Any] = json_lines.plain_rows

    def spied(*words: Any) -> Any:
        found, there = rows(*words)
        by_spark.update(there)
        return found, there

    with patch.object(json_lines, "plain_rows", spied):
        quick = read(folder, columns, **keys)
    with patch.object(json_lines, "may_be_plain", lambda *_: False):
        assert quick == read(folder, columns, **keys)
    return by_spark


def test_lines_of_all_kinds(folder: Folder) -> None:
    """Each in a file with a good one: the rows are the same, and the plain files are those."""
    for at, line in enumerate([*PLAIN, *OTHERS]):
        raw = line.encode() if isinstance(line, str) else line
        folder.put(f"{at:03}.json", GOOD.encode() + b"\n\n" + raw + b"\n" + GOOD.encode())

    by_spark = both(folder, COLUMNS, **KEYS)

    assert by_spark == {*range(1, len(PLAIN) + 1)}


def test_ends_of_lines_and_marks_of_files(folder: Folder) -> None:
    """As ever; a mark of UTF-8 at the beginning of a file is no part of its first line."""
    for name, end in (("lf", "\n"), ("crlf", "\r\n"), ("cr", "\r")):
        folder.put(f"{name}.json", "\ufeff" + end.join([GOOD, "", " \t", GOOD]) + end)
        folder.put(f"{name}.json.gz", end.join([GOOD, '{"id":"b"}']))
    folder.put("nothing.json", "")
    folder.put("blank.json", " \n\n")

    assert both(folder, COLUMNS, **KEYS) == {*range(1, 7)}


def test_drift_is_as_ever(folder: Folder) -> None:
    """A file with another key is set aside as a whole, and one that lacks one."""
    folder.put("a.json", GOOD)
    folder.put("b.json", '{"id":"a","more":1}\n')

    assert both(folder, COLUMNS, on_drift=Drift.SET_ASIDE) == {1}


def test_sources_that_cannot_be_plain(folder: Folder) -> None:
    """Where a missing key has a default; where the files begin with an object in a column."""
    folder.put("a.json", '{"id":{"a":1}}\n{"id":"b"}\n')
    columns = {"id": "string", "n": "bigint"}

    assert both(folder, columns, **KEYS) == set()


NAMED = {
    "ID": "string",
    "a.b`c d": "string",
    "v": "varchar(2)",
    "c": "char(2)",
    "l": "array<int>",
    "s": "struct<a:string>",
    "at": "timestamp_ntz",
    "day": "date",
}


def test_names_and_types(folder: Folder) -> None:
    """Names that one reader finds and the other does not, and types that are made of texts."""
    plain = [
        '{"ID":"x","id":"y","a.b`c d":"z"}',
        '{"v":"long","c":"x"}',
        '{"l":"[1, 2]"}',
        '{"s":"{\\"a\\": 1.50}"}',
        '{"at":"2024-01-01 1:00","day":"2024-1-1"}',
    ]
    for at, line in enumerate([*plain, '{"\\u0049D":{"a":1, "b":2}}', '{"l":[1, 2]}']):
        filled = dict.fromkeys(NAMED, "1") | {"l": None, "s": None}
        folder.put(f"{at}.json", f"{json.dumps(filled)}\n{line}\n")

    assert both(folder, NAMED, **KEYS) == {*range(1, len(plain) + 1)}


@pytest.mark.parametrize(
    ("name", "value"), [("_metadata", "x"), ('q"', {"a": 1}), (":{", {"a": 1})]
)
def test_names_that_no_plain_file_has(folder: Folder, name: str, value: object) -> None:
    """Where a column is called so, the other reader has the files."""
    rows = ({"id": "1", name: "1"}, {"id": "x", name: value})
    folder.put("a.json", "\n".join(json.dumps(row, separators=(",", ":")) for row in rows))

    assert both(folder, {"id": "string", name: "string"}, **KEYS) == set()


def test_files_that_were_ingested_before(folder: Folder) -> None:
    """They are not judged again, alone or beside new ones; however well they are packed."""
    folder.put("a.json", GOOD)
    folder.put("b.json", GOOD + "\n" + GOOD)
    folder.put("c.json.gz", (GOOD + "\n") * 200)
    folder.files[0] = _known(*folder.files[0])
    assert both(folder, COLUMNS, **KEYS) == {2, 3}
    folder.files[1:] = [_known(*one) for one in folder.files[1:]]
    assert both(folder, COLUMNS, **KEYS) == set()
    with (
        patch.object(json_lines, "IN_PROCESS", 1_000_000),
        patch("infold.spark.reading.json_lines._MOST_BYTES_READ_HERE", 5_000),
    ):
        assert both(folder, COLUMNS, **KEYS) == set()


def _known(id_: int, file: Any) -> tuple[int, Any]:
    return id_, IngestedFile(id_, file.path, file.size, file.fingerprint, 0)


def test_times_of_files(folder: Folder) -> None:
    """A column that has them is no column of the files; there may be no other."""
    folder.put("a.json", GOOD)
    columns = {**COLUMNS, "seen": "timestamp"}
    assert both(folder, columns, file_time_column="seen", **KEYS) == {1}
    assert both(folder, {"seen": "timestamp"}, file_time_column="seen", **KEYS) == set()


def test_many_columns(folder: Folder) -> None:
    """A line is looked at once, however many columns there are."""
    columns = {f"c{at}": "string" for at in range(120)}
    row = {name: f"[{name}" for name in columns}
    folder.put("a.json", "\n".join([json.dumps(row)] * 50))

    assert both(folder, columns, **KEYS) == {1}


def test_rows_that_do_not_fit_on_the_disk_are_not_kept(folder: Folder) -> None:
    """They are read as all others."""
    folder.put("a.json", GOOD)
    with patch.object(json_lines, "MOST_BYTES_ON_DISK", 10):
        assert both(folder, COLUMNS, **KEYS) == set()


def test_random_files(folder: Folder) -> None:
    """Random objects as JSON libraries write them, and some that are damaged."""
    draw = random.Random(1)
    for at in range(120):
        folder.put(f"{at:03}.json", "\n".join(_line(draw) for _ in range(6)))

    assert len(both(folder, COLUMNS, **KEYS)) > 20


VALUES: list[Callable[[random.Random], str]] = [
    lambda draw: json.dumps("".join(draw.choices("ab {}[]:,é", k=draw.randrange(6)))),
    lambda draw: json.dumps("".join(draw.choices('ab\\"/\n\u20ac', k=draw.randrange(4)))),
    lambda draw: str(draw.randrange(-(10 ** draw.randrange(1, 30)), 10)),
    lambda draw: f"{draw.uniform(-9, 9):.{draw.randrange(1, 4)}f}",
    lambda draw: f"{draw.randrange(99)}{draw.choice('eE')}{draw.choice(['', '+', '-'])}2",
    lambda draw: draw.choice(["true", "false", "null"]),
    lambda draw: (
        f'"2024-0{draw.randrange(10)}-01 1{draw.randrange(10)}:00:00{draw.choice(["", "Z"])}"'
    ),
]
ODD = ['{"a": 1}', "[1.50]", "NaN", "01", "", '"\\ud800"']


def _line(draw: random.Random) -> str:
    odd = draw.random() < 0.03
    keys = draw.sample([*COLUMNS, "other"], draw.randrange(1, 8))
    parts = [
        f"{json.dumps(key)}{draw.choice([':', ': '])}"
        f"{draw.choice(ODD) if odd and at == 0 else draw.choice(VALUES)(draw)}"
        for at, key in enumerate(keys)
    ]
    if draw.random() < 0.02:
        parts.append(parts[0])
    return "{" + draw.choice([",", ", "]).join(parts) + "}" + draw.choice(["", "", "", " "])


BROKEN = [
    '{"id":"b","extra":1},',
    '{"id":"b","extra":1}{"id":"c","more":1}',
    '{"id":"b","extra":1} junk',
    '{"id":"a\tb","extra":1}',
    "{'id':'b','extra':1}",
    '{"x":NaN,"extra":1}',
    '\ufeff{"id":"b","extra":1}',
    '\v{"id":"b","extra":1}',
    '{"id":"b","extra":1',
    '{"id":"b","\\ud83d":1}',
]
"""Lines of which some readers find keys, and others none."""
EDGES = [
    *('{"id":"b","n":' + "9" * digits + "}" for digits in (1000, 1001)),
    *('{"id":"b","n":0.' + "1" * digits + "}" for digits in (998, 999, 1000, 1001)),
    *('{"id":' + "[" * deep + "]" * deep + "}" for deep in (500, 999, 1000, 5000)),
    *('{"' + "n" * length + '":1}' for length in (49_000, 50_000, 50_001)),
    *('{"id":{"' + "n" * length + '":1}}' for length in (49_000, 50_001)),
]
"""As long and as deep as a reader takes, and a little more."""
LINES = [
    line.encode() if isinstance(line, str) else line for line in (*PLAIN, *OTHERS, *BROKEN, *EDGES)
]


def test_a_file_is_judged_alike_in_steps_of_all_sizes(folder: Folder) -> None:
    """With a good line before it, a line of any kind has its file set aside always or never."""
    for at, line in enumerate(LINES):
        folder.put(f"{at:03}.json", GOOD.encode() + b"\n" + line)
    columns = dict.fromkeys(json.loads(GOOD), "string")
    keys = {"on_new_columns": NewColumns.SET_ASIDE, "on_drift": Drift.SET_ASIDE}

    here = folder.rows(columns, **keys)

    with (
        patch.object(json_lines, "IN_PROCESS", -1),
        patch.object(json_lines, "worth_keeping", lambda _: False),
    ):
        assert here == folder.rows(columns, **keys)


@pytest.mark.parametrize("in_process", [16 * 1024 * 1024, 0])
def test_nested_a_thousand_deep(folder: Folder, in_process: int) -> None:
    """JSON nested a thousand deep is read as far as Spark reads it, and set aside beyond."""

    def deep(depth: int) -> str:
        return '{"a":' * depth + "1" + "}" * depth

    for name, depth in (("near", 990), ("far", 1_100)):
        folder.put(f"{name}.json", f'{{"id":"{name}","deep":{deep(depth)}}}\n')
    folder.put("more.json", f'{{"id":"m","deep":1,"more":{deep(990)}}}\n')

    with patch.object(json_lines, "IN_PROCESS", in_process):
        found = folder.by_name({"id": "string", "deep": "string"}, on_drift=Drift.SET_ASIDE)

    assert found["near.json"] == [("near", deep(990))]
    assert [problem for _, problem in found["far.json"]] == ["unparsable: not one JSON object"]
    assert [problem for _, problem in found["more.json"]] == ["drift: extra column more"]
