"""Hostile data files, as far as they need no Spark to be named.

Each row of them is tested with Spark, where such files are set aside.
"""

from __future__ import annotations

import io
from pathlib import Path
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkRuntimeError
from tests.hostile import contents
from tests.hostile.contents import FILES
from tests.hostile.outcome import error_fault, judged

from infold import api
from infold.core.files import ListedFile
from infold.messages.errors import InfoldError
from infold.spark.reading import csv_shape, source_rows

pytestmark = pytest.mark.deep


class AskedForError(Exception):
    """Spark was to read the file."""


class NoSpark:
    """Stands in for a session: nothing is wrong with a file as a whole once it is asked for."""

    def __getattr__(self, name: str) -> None:
        raise AskedForError(name)


UNSEEN = {"a broken page"}
"""What only who reads all of a file sees."""


@pytest.mark.parametrize("format_", ["csv", "packed", "json", "parquet"])
def test_a_file_of_another_format_is_a_named_error(format_: str, tmp_path: Path) -> None:
    """Before Spark starts, unless such files are set aside."""
    contents.write(tmp_path, aside=False)
    project, wrong = api.open_project(tmp_path), {}
    source = project.sources[f"raw.{format_}"]
    for file in FILES[format_]:
        path = f"landing/{format_}/{contents.named(format_, file)}"
        seen = ListedFile(path, len(file.content), 0, "1")
        try:
            source_rows.read(NoSpark(), project, source, [(1, seen)])  # type: ignore[arg-type]
            what = "no error"
        except InfoldError as error:
            what = error_fault(error) or (
                "" if file.whole or file.aside else f"an error: {error.slug}"
            )
        except (AskedForError, PySparkRuntimeError):  # types, too, are Spark's to read
            what = "Spark was asked" if file.whole and file.name not in UNSEEN else ""
        wrong[file.name] = what

    judged(f"whole {format_}", wrong)


def swallowing(text: str) -> int | None:
    """The same letter by letter: the line of the first quoted field that takes in others."""
    line, at = 1, 0
    starts = True
    while at < len(text):
        if text[at] != '"' or not starts:
            line += text[at] == "\n"
            starts = text[at] in ",\r\n"
            at += 1
            continue
        begins, began, taken = line, at, False
        at += 1
        while at < len(text):
            if text[at] == '"':
                if text[at + 1 : at + 2] != '"':
                    break
                at += 1
            at += 1
        inside = text[began:at]
        taken = "\n" in inside or "\r" in inside
        line += inside.count("\n")
        if at == len(text) or (taken and text[at + 1 : at + 2] not in ("", ",", "\r", "\n")):
            return begins
        at += 1
        starts = False
    return None


@given(text=st.text('a,"\n\r', max_size=30), size=st.integers(1, 9))
def test_quotes_that_span_lines_are_found(text: str, size: int) -> None:
    """In any text, wherever it is cut into pieces."""
    with patch.object(csv_shape, "_CHUNK", size):
        found = csv_shape.quotes_of(io.BytesIO(text.encode()), ",")

    assert found.swallows == swallowing(text)
