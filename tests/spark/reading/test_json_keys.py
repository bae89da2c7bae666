"""The keys of JSON lines: in this process and by Spark, a file is judged in the same way."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import pytest
from tests.spark.reading.folder import Folder
from tests.spark.reading.test_json_plain import GOOD, OTHERS, PLAIN

from infold.core.formats import Format
from infold.core.model import Column, Drift, NewColumns, Source
from infold.lake.reading.source_file import SourceFile
from infold.spark.reading import json_lines
from infold.spark.reading.drift import PresentFile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark

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


@pytest.fixture
def folder(tmp_path: Path, spark: SparkSession) -> Folder:
    """An empty folder."""
    return Folder(tmp_path, spark)


def test_the_same_keys_as_by_spark(spark: SparkSession) -> None:
    """Of a line of any kind this process finds the keys that Spark does, or leaves it to Spark."""
    source = Source("raw.rows", Format.JSON, (Column("id", "string"),), path="*")
    files = [
        PresentFile(at, f"{at}", SourceFile(f"{at}", 0), spark_path=f"{at}")
        for at in range(len(LINES))
    ]
    lines = json_lines.frame_of_lines(spark, files, {at: [line] for at, line in enumerate(LINES)})

    there = json_lines.keys_there(lines, source, files, judge=False)

    here = {at: json_lines.keys_of([line]) for at, line in enumerate(LINES)}
    unlike = [
        (LINES[at][:60], one, there[at])
        for at, one in here.items()
        if one is not None and one != there[at]
    ]
    assert not unlike
    assert None not in [here[at] for at in range(len(PLAIN))]


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
